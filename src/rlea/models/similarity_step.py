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
from rlea.models.translation_step import Gradient
from rlea.models.unit_rows import Table, add_scaled, dot


@dataclass(frozen=True, eq=False)
class Residuals:
    """The matrix A row by row, and its transpose likewise, as compressed sparse rows."""

    matrix: Any
    transposed: Any

    @staticmethod
    def of(similar: Similar, num_rows: int) -> Residuals:
        from scipy.sparse import csr_matrix

        number, width = similar.matches.shape
        numbers = np.arange(number)
        real = similar.weights.ravel() > 0
        lines = np.concatenate([numbers, np.repeat(numbers, width)[real]])
        columns = np.concatenate([similar.rows, similar.matches.ravel()[real]])
        values = np.concatenate([np.ones(number, dtype=np.float32), -similar.weights.ravel()[real]])
        matrix = csr_matrix((values, (lines, columns)), shape=(number, num_rows), dtype=np.float32)
        matrix.sort_indices()
        transposed = matrix.T.tocsr()
        transposed.sort_indices()
        return Residuals(matrix, transposed)


def similarity_gradient(table: Table, residuals: Residuals, weight: float) -> tuple[float, Gradient]:
    """The loss, and its gradient."""
    matrix, transposed = residuals.matrix, residuals.transposed
    vectors = np.empty((matrix.shape[0], table.raw.shape[1]), dtype=np.float32)
    losses: NDArray[np.float32] = np.empty(matrix.shape[0], dtype=np.float32)
    _residuals(table.raw, table.scales, matrix.indptr, matrix.indices, matrix.data, vectors, losses)
    begins, factors = transposed.indptr.astype(np.int64), np.float32(2 * weight) * transposed.data
    gradient = Gradient(begins, transposed.indices.astype(np.int32), factors, vectors)
    return weight * float(losses.sum(dtype=np.float64)), gradient


@numba.njit(parallel=True, cache=True)
def _residuals(raw: Any, scales: Any, begins: Any, columns: Any, values: Any, residuals: Any, losses: Any) -> None:
    for i in numba.prange(len(residuals)):
        total = residuals[i]
        total[:] = np.float32(0.0)
        for p in range(begins[i], begins[i + 1]):
            add_scaled(total, values[p] * scales[columns[p]], raw[columns[p]])
        losses[i] = dot(total, total)
