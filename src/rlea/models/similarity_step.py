"""One step of JAPE's similarity loss on the CPU, written out; `jape.similarity_loss` with autograd is the reference.

With U the table of unit vectors and a row of A for every entity i that has similar ones, 1 at i and -S(i, j) at the
entities j of the other graph, the loss is weight |A U|^2 and its gradient 2 weight A' A U.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from rlea.models.attributes import Similar
from rlea.models.limit_step import Tables
from rlea.models.unit_rows import adagrad_row, add_scaled, dot

_PART = 256  # rows a thread takes at a time


@dataclass(frozen=True, eq=False)
class Rows:
    """A sparse matrix by rows; a row without entries is left out, and `rows` says which are there."""

    rows: NDArray[np.int64]  # (number,)
    begins: NDArray[np.int64]  # (number + 1,)
    columns: NDArray[np.int32]
    values: NDArray[np.float32]


def residual_rows(similar: Similar, num_rows: int) -> tuple[Rows, Rows]:
    """The matrix A and its transpose."""
    from scipy.sparse import csr_matrix

    number, width = similar.matches.shape
    numbers = np.arange(number)
    real = similar.weights.ravel() > 0
    lines = np.concatenate([numbers, np.repeat(numbers, width)[real]])
    columns = np.concatenate([similar.rows, similar.matches.ravel()[real]])
    values = np.concatenate([np.ones(number, dtype=np.float32), -similar.weights.ravel()[real]])
    matrix = csr_matrix((values, (lines, columns)), shape=(number, num_rows), dtype=np.float32)
    return _rows(matrix), _rows(matrix.T.tocsr())


def similarity_step(tables: Tables, matrix: Rows, transposed: Rows, *, weight: float, learning_rate: float) -> float:
    """The loss before the step; `tables` are moved one Adagrad step down its gradient."""
    residuals = np.empty((len(matrix.rows), tables.raw.shape[1]), dtype=np.float32)
    losses = np.empty(len(matrix.rows), dtype=np.float32)
    _residuals(tables.raw, tables.scales, matrix.begins, matrix.columns, matrix.values, residuals, losses)
    _follow(
        tables.raw,
        tables.squares,
        tables.scales,
        transposed.rows,
        transposed.begins,
        transposed.columns,
        transposed.values,
        residuals,
        np.float32(2 * weight),
        np.float32(learning_rate),
    )
    return weight * float(losses.sum(dtype=np.float64))


def _rows(matrix: Any) -> Rows:
    matrix.sort_indices()
    rows = np.flatnonzero(np.diff(matrix.indptr))
    begins = np.append(matrix.indptr[rows], matrix.indptr[-1]).astype(np.int64)
    return Rows(rows, begins, matrix.indices.astype(np.int32), matrix.data.astype(np.float32))


@numba.njit(parallel=True, cache=True)
def _residuals(raw: Any, scales: Any, begins: Any, columns: Any, values: Any, residuals: Any, losses: Any) -> None:
    for i in numba.prange(len(residuals)):
        total = residuals[i]
        total[:] = np.float32(0.0)
        for p in range(begins[i], begins[i + 1]):
            add_scaled(total, values[p] * scales[columns[p]], raw[columns[p]])
        losses[i] = dot(total, total)


@numba.njit(parallel=True, cache=True)
def _follow(
    raw: Any,
    squares: Any,
    scales: Any,
    rows: Any,
    begins: Any,
    columns: Any,
    values: Any,
    residuals: Any,
    factor: Any,
    rate: Any,
) -> None:
    for part in numba.prange((len(rows) + _PART - 1) // _PART):
        gradient = np.empty(raw.shape[1], dtype=np.float32)
        for i in range(part * _PART, min((part + 1) * _PART, len(rows))):
            row = rows[i]
            gradient[:] = np.float32(0.0)
            for p in range(begins[i], begins[i + 1]):
                add_scaled(gradient, factor * values[p], residuals[columns[p]])
            scales[row] = adagrad_row(raw[row], squares[row], scales[row], gradient, rate)
