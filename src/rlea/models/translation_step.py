"""Training steps of translational models with a mapping, written out for processors: gradients and Adagrad.

`mtranse` and `sea` have the same steps in the words of their papers, with automatic gradients; tests hold them
together. Here
- only rows that a batch touches are read and written;
- a gradient is kept as a few vectors and, for each row, which of them to add: rows are then summed and moved in
  parallel without races, in the same order for any number of threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from rlea.graph import Ids
from rlea.models.unit_rows import FAST, adagrad_row, add_scaled, inverse_lengths

Matrix = NDArray[np.float32]

CHUNKS = 64  # parts of the rows or triples that threads take


@dataclass(frozen=True, eq=False)
class Table:
    """A row per entity, then a row per relation; changed in place. What counts is each row scaled to unit length."""

    raw: Matrix  # (num_rows, dim)
    scales: NDArray[np.float32]  # (num_rows,) one over the length of the raw vector

    @staticmethod
    def of(raw: Matrix, scales: NDArray[np.float32] | None = None) -> Table:
        """Copies of the arrays; `scales` are those of an earlier run to the last bit, or else computed."""
        if scales is None:
            scales = inverse_lengths(raw)
        return Table(raw.copy(), scales.copy())

    def units(self, rows: slice | Ids) -> Matrix:
        """Unit vectors of some rows."""
        result: Matrix = self.raw[rows] * self.scales[rows, None]
        return result


@dataclass(frozen=True, eq=False)
class Gradient:
    """The gradient of a loss by unit vectors: that of row i is the sum over begins[i] <= j < begins[i + 1] of
    factors[j] * vectors[picks[j]]. Parts along a unit vector itself do not matter: normalising takes them out.
    """

    begins: NDArray[np.int64]  # (num_rows + 1,)
    picks: NDArray[np.int32]  # (num_terms,)
    factors: NDArray[np.float32]  # (num_terms,)
    vectors: Matrix  # (num_vectors, dim)

    def cuts(self) -> NDArray[np.int64]:
        """Where to cut the rows into chunks of about as many terms."""
        shares = np.arange(CHUNKS + 1) * (self.begins[-1] / CHUNKS)
        cuts: NDArray[np.int64] = np.searchsorted(self.begins, shares).astype(np.int64)
        cuts[0], cuts[-1] = 0, len(self.begins) - 1
        return cuts


def distance_gradient(table: Table, positives: Ids) -> tuple[float, Gradient]:
    """Sum over triples (batch, 3) of |h + r - t|^2, and its gradient."""
    batch = len(positives)
    vectors = np.empty((batch, table.raw.shape[1]), dtype=np.float32)
    losses = np.empty(batch, dtype=np.float32)
    _score_distance(table.raw, table.scales, positives, vectors, losses)
    begins, picks, factors = _index_distance(positives, len(table.raw))
    return float(losses.sum(dtype=np.float64)), Gradient(begins, picks, factors, vectors)


def margin_gradient(
    table: Table,
    positives: Ids,  # (batch, 3)
    negatives: Ids,  # (batch,) corrupting entities; a triple with -1 does not count
    corrupt_tail: NDArray[np.bool_],  # (batch,) whether they stand for the tail, else for the head
    margin: float,
) -> tuple[float, Gradient]:
    """Sum over triples of max(0, margin + |h + r - t|^2 - |h' + r - t'|^2), and its gradient."""
    batch = len(positives)
    vectors = np.empty((3 * batch, table.raw.shape[1]), dtype=np.float32)
    losses = np.empty(batch, dtype=np.float32)
    _score_margin(table.raw, table.scales, positives, negatives, corrupt_tail, np.float32(margin), vectors, losses)
    begins, picks, factors = _index_margin(positives, negatives, corrupt_tail, losses, len(table.raw))
    return float(losses.sum(dtype=np.float64)), Gradient(begins, picks, factors, vectors)


def row_gradient(table: Table, rows: Ids, vectors: Matrix) -> Gradient:
    """The gradient that has vectors[i] for rows[i], summed where a row comes more than once."""
    order = np.argsort(rows, kind="stable").astype(np.int32)
    begins = np.zeros(len(table.raw) + 1, dtype=np.int64)
    np.cumsum(np.bincount(rows, minlength=len(table.raw)), out=begins[1:])
    return Gradient(begins, order, np.ones(len(rows), dtype=np.float32), vectors)


def adagrad_step(table: Table, squares: Matrix, gradient: Gradient, rate: float) -> None:
    """One step of Adagrad; `squares` (num_rows, dim) are its sums of squared gradients."""
    _adagrad_rows(
        table.raw,
        table.scales,
        squares,
        gradient.cuts(),
        gradient.begins,
        gradient.picks,
        gradient.factors,
        gradient.vectors,
        np.float32(rate),
    )


def batch_rows(num_rows: int, *ids: Ids) -> Ids:
    """The rows that occur in arrays of ids, each once and in order; -1 stands for none."""
    touched = np.zeros(num_rows + 1, dtype=np.bool_)  # the last is where -1 goes
    for part in ids:
        touched[part.ravel()] = True
    return np.flatnonzero(touched[:num_rows]).astype(np.int32)


def orthogonal(dim: int, *, seed: int, number: int) -> Matrix:
    """A random orthogonal matrix (dim, dim), another for every `number`."""
    random = np.random.default_rng([seed, 0, 2, 1 + number])
    q, r = np.linalg.qr(random.standard_normal((dim, dim)))
    return np.ascontiguousarray(q * np.sign(np.diag(r)), dtype=np.float32)  # signs: else not all are as likely


def parts(num_items: int, num_parts: int, *, seed: int, epoch: int, stream: int) -> tuple[Ids, list[int]]:
    """The numbers below `num_items` in a new order for every epoch, and the cuts between parts of about one size."""
    order = np.random.default_rng([seed, epoch, 2, 1 + stream]).permutation(num_items).astype(np.int32)
    return order, (np.arange(num_parts + 1) * num_items // num_parts).tolist()


def mapped(units: Matrix, mapping: Matrix) -> Matrix:
    """Unit vectors taken into the other space, and scaled to unit length again."""
    with one_thread():
        result: Matrix = units @ mapping
    result /= np.maximum(np.sqrt(np.einsum("nd,nd->n", result, result)), np.float32(1e-12))[:, None]
    return result


@contextmanager
def one_thread() -> Iterator[None]:
    """Matrix products on one thread: with more, sums would hang on their number."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    with threadpool_limits(limits=1, user_api="blas"):
        yield


@numba.njit(cache=True, fastmath=FAST, error_model="numpy")
def _difference(
    head: Any, relation: Any, tail: Any, head_scale: Any, relation_scale: Any, tail_scale: Any, gradient: Any
) -> Any:
    """|h + r - t|^2 over unit vectors; fills in 2 (h + r - t), its gradient by h and r."""
    total = np.float32(0.0)
    for k in range(head.shape[0]):
        d = head_scale * head[k] + relation_scale * relation[k] - tail_scale * tail[k]
        gradient[k] = d + d
        total += d * d
    return total


@numba.njit(parallel=True, cache=True)
def _score_distance(raw: Any, scales: Any, positives: Any, vectors: Any, losses: Any) -> None:
    batch = len(positives)
    for chunk in numba.prange(CHUNKS):
        for i in range(chunk * batch // CHUNKS, (chunk + 1) * batch // CHUNKS):
            h, r, t = positives[i, 0], positives[i, 1], positives[i, 2]
            losses[i] = _difference(raw[h], raw[r], raw[t], scales[h], scales[r], scales[t], vectors[i])


@numba.njit(cache=True, fastmath=FAST, error_model="numpy")
def _subtract(a: Any, b: Any, result: Any) -> None:
    for k in range(a.shape[0]):
        result[k] = a[k] - b[k]


@numba.njit(parallel=True, cache=True)
def _score_margin(
    raw: Any, scales: Any, positives: Any, negatives: Any, corrupt_tail: Any, margin: Any, vectors: Any, losses: Any
) -> None:
    """Losses, and where they are not zero: row i of `vectors` is 2 (h + r - t), row batch + i is 2 (h' + r - t'), row
    2 batch + i the first less the second."""
    batch = len(positives)
    for chunk in numba.prange(CHUNKS):
        for i in range(chunk * batch // CHUNKS, (chunk + 1) * batch // CHUNKS):
            losses[i] = np.float32(0.0)
            if negatives[i] < 0:
                continue
            h, r, t = positives[i, 0], positives[i, 1], positives[i, 2]
            true, false = vectors[i], vectors[batch + i]
            near = _difference(raw[h], raw[r], raw[t], scales[h], scales[r], scales[t], true)
            if corrupt_tail[i]:
                t = negatives[i]
            else:
                h = negatives[i]
            far = _difference(raw[h], raw[r], raw[t], scales[h], scales[r], scales[t], false)
            loss = margin + near - far
            if loss > np.float32(0.0):
                losses[i] = loss
                _subtract(true, false, vectors[2 * batch + i])


@numba.njit(cache=True)
def _index_distance(positives: Any, num_rows: Any) -> Any:
    """begins, picks and factors of a `Gradient`."""
    batch = len(positives)
    begins = np.zeros(num_rows + 1, dtype=np.int64)
    for i in range(batch):
        for c in range(3):
            begins[positives[i, c] + 1] += 1
    for row in range(num_rows):
        begins[row + 1] += begins[row]
    place = begins.copy()
    picks = np.empty(begins[num_rows], dtype=np.int32)
    factors = np.empty(begins[num_rows], dtype=np.float32)
    for i in range(batch):
        for c in range(3):
            p = place[positives[i, c]]
            place[positives[i, c]] = p + 1
            picks[p] = i
            factors[p] = np.float32(-1.0) if c == 2 else np.float32(1.0)
    return begins, picks, factors


@numba.njit(cache=True)
def _index_margin(positives: Any, negatives: Any, corrupt_tail: Any, losses: Any, num_rows: Any) -> Any:
    """begins, picks and factors of a `Gradient` over the vectors of `_score_margin`."""
    batch = len(positives)
    begins = np.zeros(num_rows + 1, dtype=np.int64)
    for i in range(batch):
        if losses[i] > 0:
            for c in range(3):
                begins[positives[i, c] + 1] += 1
            begins[negatives[i] + 1] += 1
    for row in range(num_rows):
        begins[row + 1] += begins[row]
    place = begins.copy()
    picks = np.empty(begins[num_rows], dtype=np.int32)
    factors = np.empty(begins[num_rows], dtype=np.float32)
    for i in range(batch):
        if losses[i] > 0:
            for c in range(4):
                row = positives[i, c] if c < 3 else negatives[i]
                # The end that is replaced stands in the true triple alone, what replaces it in the false one alone;
                # the other end and the relation stand in both.
                replaced = c == (2 if corrupt_tail[i] else 0)
                p = place[row]
                place[row] = p + 1
                picks[p] = batch + i if c == 3 else i if replaced else 2 * batch + i
                falls = c == 2 or (c == 3 and not corrupt_tail[i])
                factors[p] = np.float32(-1.0) if falls else np.float32(1.0)
    return begins, picks, factors


@numba.njit(cache=True)
def sum_terms(begins: Any, picks: Any, factors: Any, vectors: Any, row: Any, total: Any) -> None:
    """The gradient of a row, into `total` (see `Gradient`)."""
    total[:] = np.float32(0.0)
    for term in range(begins[row], begins[row + 1]):
        add_scaled(total, factors[term], vectors[picks[term]])


@numba.njit(parallel=True, cache=True)
def _adagrad_rows(
    raw: Any, scales: Any, squares: Any, cuts: Any, begins: Any, picks: Any, factors: Any, vectors: Any, rate: Any
) -> None:
    for chunk in numba.prange(len(cuts) - 1):
        total = np.empty(raw.shape[1], dtype=np.float32)
        for row in range(cuts[chunk], cuts[chunk + 1]):
            if begins[row] < begins[row + 1]:
                sum_terms(begins, picks, factors, vectors, row, total)
                scales[row] = adagrad_row(raw[row], squares[row], scales[row], total, rate)
