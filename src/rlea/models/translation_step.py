"""Training steps of translational models written out for processors: gradients of their losses.

`aligne`, `jape`, `mtranse` and `sea` have the same steps in the words of their papers, with automatic gradients; tests
hold them together. Here
- only rows that a batch touches are read and written (`rlea.models.row_optimisers`);
- a negative of AlignE costs one inner product, since |q - e|^2 = |q|^2 - 2 q.e + 1 for a unit vector e;
- a gradient is kept as a few vectors and, for each row, which of them to add: rows are then summed and moved in
  parallel without races, in the same order for any number of threads.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from rlea.graph import Ids
from rlea.models.kernels import FAST, add_scaled, dot

Matrix = NDArray[np.float32]
CHUNKS = 64  # parts of the rows or triples that threads take


class Table(NamedTuple):
    """A row per entity, then a row per relation; changed in place. What counts is each row scaled to unit length.

    Unit vectors are not stored but made from raw ones as they are read: the tables outgrow the processor's cache, and
    bringing another one through memory would cost more than the multiplication.
    """

    raw: Matrix  # (num_rows, dim)
    scales: NDArray[np.float32]  # (num_rows,) one over the length of the raw vector

    @staticmethod
    def of(raw: Matrix, scales: NDArray[np.float32] | None = None) -> Table:
        """Copies of the arrays; `scales` are those of an earlier run to the last bit, or else computed."""
        if scales is None:
            lengths = np.sqrt(np.einsum("rd,rd->r", raw, raw))
            scales = (1 / np.maximum(lengths, np.float32(1e-6))).astype(np.float32)
        return Table(raw.copy(), scales.copy())

    def units(self, rows: slice | Ids) -> Matrix:
        """Unit vectors of some rows."""
        result: Matrix = self.raw[rows] * self.scales[rows, None]
        return result


class Gradient(NamedTuple):
    """The gradient of a loss by unit vectors: that of row i is the sum over begins[i] <= j < begins[i + 1] of
    factors[j] * vectors[picks[j]]. Parts along a unit vector itself do not matter: normalising takes them out.
    """

    begins: NDArray[np.int64]  # (num_rows + 1,)
    picks: NDArray[np.int32]  # (num_terms,)
    factors: NDArray[np.float32]  # (num_terms,)
    vectors: Matrix  # (num_vectors, dim)

    @staticmethod
    def of(table: Table, rows: Ids, picks: Ids, factors: NDArray[np.float32], vectors: Matrix) -> Gradient:
        """From terms in any order, all three arrays of one shape; a row keeps its order. A row of -1 is left out."""
        begins, picks, factors = _group(rows.ravel(), picks.ravel(), factors.ravel(), len(table.raw))
        return Gradient(begins, picks, factors, vectors)

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
    _score_distance(table, positives, vectors, losses)
    picks = np.repeat(np.arange(batch, dtype=np.int32), 3)
    factors = np.tile(np.array([1, 1, -1], dtype=np.float32), batch)
    return float(losses.sum(dtype=np.float64)), Gradient.of(table, positives, picks, factors, vectors)


def margin_gradient(
    table: Table,
    positives: Ids,  # (batch, 3)
    negatives: Ids,  # (batch, 1) corrupting entities; a triple with -1 does not count
    corrupt_tail: NDArray[np.bool_],  # (batch,) whether they stand for the tail, else for the head
    margin: float,
) -> tuple[float, Gradient]:
    """Sum over triples of max(0, margin + |h + r - t|^2 - |h' + r - t'|^2), and its gradient."""
    batch = len(positives)
    vectors = np.empty((3 * batch, table.raw.shape[1]), dtype=np.float32)
    losses = np.empty(batch, dtype=np.float32)
    _score_margin(table, positives, negatives, corrupt_tail, np.float32(margin), vectors, losses)
    is_open = losses[:, None] > 0
    factors = np.where(corrupt_tail, np.float32(1), np.float32(-1))[:, None]
    gradient = _contrast(table, positives, negatives, corrupt_tail, is_open, is_open, factors, vectors)
    return float(losses.sum(dtype=np.float64)), gradient


def limit_gradient(
    table: Table,
    positives: Ids,  # (batch, 3)
    negatives: Ids,  # (batch, num_negatives) corrupting entities, -1 for none
    corrupt_tail: NDArray[np.bool_],  # (batch,)
    positive_limit: float,
    negative_limit: float,
    negative_weight: float,
) -> tuple[float, Gradient]:
    """Sum over triples of max(0, f - positive_limit), f = |h + r - t|^2, and over false ones of negative_weight times
    max(0, negative_limit - f); and its gradient.
    """
    batch = len(positives)
    vectors = np.empty((3 * batch, table.raw.shape[1]), dtype=np.float32)
    losses = np.empty(batch, dtype=np.float32)
    is_open = np.empty((batch, 1 + negatives.shape[1]), dtype=np.bool_)
    limits = np.float32(positive_limit), np.float32(negative_limit), np.float32(negative_weight)
    _score_limit(table, positives, negatives, corrupt_tail, *limits, vectors, is_open, losses)
    # The part of a negative's gradient along the unit vector itself is left out: normalising removes it.
    factors = np.float32(2.0) * limits[2]
    any_open = np.logical_or.reduce(is_open, axis=1, keepdims=True)
    gradient = _contrast(table, positives, negatives, corrupt_tail, any_open, is_open[:, 1:], factors, vectors)
    return float(losses.sum(dtype=np.float64)), gradient


def row_gradient(table: Table, rows: Ids, vectors: Matrix) -> Gradient:
    """The gradient that has vectors[i] for rows[i], summed where a row comes more than once."""
    numbers = np.arange(len(rows), dtype=np.int32)
    return Gradient.of(table, rows, numbers, np.ones(len(rows), dtype=np.float32), vectors)


def batch_rows(num_rows: int, *ids: Ids) -> Ids:
    """The rows that occur in arrays of ids, each once and in order; -1 stands for none."""
    touched = np.zeros(num_rows + 1, dtype=np.bool_)  # the last is where -1 goes
    for part in ids:
        touched[part.ravel()] = True
    return np.flatnonzero(touched[:num_rows]).astype(np.int32)


def _contrast(
    table: Table,
    positives: Ids,  # (batch, 3)
    negatives: Ids,  # (batch, num_negatives)
    corrupt_tail: NDArray[np.bool_],  # (batch,)
    has_loss: NDArray[np.bool_],  # (batch, 1)
    is_open: NDArray[np.bool_],  # (batch, num_negatives) which negatives have a part in it
    factors: Any,  # of the negatives
    vectors: Matrix,  # (3 * batch, dim)
) -> Gradient:
    """The gradient of true triples and the negatives that stand for one of their ends.

    Row i of `vectors` is for the end that is replaced, which stands in the true triple alone; row batch + i for the
    negatives; row 2 batch + i for the other end and the relation, which stand in both.
    """
    batch, num_negatives = negatives.shape
    numbers = np.arange(batch, dtype=np.int32)[:, None]
    in_both = np.stack([corrupt_tail, np.ones_like(corrupt_tail), ~corrupt_tail], axis=1)
    picks = np.concatenate(
        [numbers + np.int32(2 * batch) * in_both, np.repeat(numbers + np.int32(batch), num_negatives, axis=1)], axis=1
    )
    every = np.empty((batch, 3 + num_negatives), dtype=np.float32)
    every[:, :3], every[:, 3:] = (1, 1, -1), factors
    rows = np.concatenate([np.where(has_loss, positives, -1), np.where(is_open, negatives, -1)], axis=1)
    return Gradient.of(table, rows, picks, every, vectors)


@numba.njit(cache=True)
def _group(rows: Any, picks: Any, factors: Any, num_rows: Any) -> Any:
    """begins, picks and factors of a `Gradient`: a counting sort, which keeps the order of the terms of a row."""
    begins = np.zeros(num_rows + 1, dtype=np.int64)
    for row in rows:
        if row >= 0:
            begins[row + 1] += 1
    for row in range(num_rows):
        begins[row + 1] += begins[row]
    place = begins.copy()
    grouped_picks = np.empty(begins[num_rows], dtype=np.int32)
    grouped_factors = np.empty(begins[num_rows], dtype=np.float32)
    for term in range(len(rows)):
        if rows[term] >= 0:
            p = place[rows[term]]
            place[rows[term]] = p + 1
            grouped_picks[p] = picks[term]
            grouped_factors[p] = factors[term]
    return begins, grouped_picks, grouped_factors


@numba.njit(cache=True, fastmath=FAST, error_model="numpy")
def _difference(
    head: Any, relation: Any, tail: Any, head_scale: Any, relation_scale: Any, tail_scale: Any, gradient: Any
) -> Any:
    total = np.float32(0.0)
    for k in range(head.shape[0]):
        d = head_scale * head[k] + relation_scale * relation[k] - tail_scale * tail[k]
        gradient[k] = d + d
        total += d * d
    return total


@numba.njit(cache=True)
def _distance(table: Any, h: Any, r: Any, t: Any, gradient: Any) -> Any:
    """|h + r - t|^2 over unit vectors; fills in 2 (h + r - t), its gradient by h and r."""
    raw, scales = table.raw, table.scales
    return _difference(raw[h], raw[r], raw[t], scales[h], scales[r], scales[t], gradient)


@numba.njit(parallel=True, cache=True)
def _score_distance(table: Any, positives: Any, vectors: Any, losses: Any) -> None:
    for i in numba.prange(len(positives)):
        losses[i] = _distance(table, positives[i, 0], positives[i, 1], positives[i, 2], vectors[i])


@numba.njit(cache=True, fastmath=FAST, error_model="numpy")
def _subtract(a: Any, b: Any, result: Any) -> None:
    for k in range(a.shape[0]):
        result[k] = a[k] - b[k]


@numba.njit(parallel=True, cache=True)
def _score_margin(
    table: Any, positives: Any, negatives: Any, corrupt_tail: Any, margin: Any, vectors: Any, losses: Any
) -> None:
    """Losses, and where they are not zero: row i of `vectors` is 2 (h + r - t), row batch + i is 2 (h' + r - t'), row
    2 batch + i the first less the second."""
    batch = len(positives)
    for i in numba.prange(batch):
        losses[i] = np.float32(0.0)
        if negatives[i, 0] < 0:
            continue
        h, r, t = positives[i, 0], positives[i, 1], positives[i, 2]
        true, false = vectors[i], vectors[batch + i]
        near = _distance(table, h, r, t, true)
        if corrupt_tail[i]:
            t = negatives[i, 0]
        else:
            h = negatives[i, 0]
        loss = margin + near - _distance(table, h, r, t, false)
        if loss > np.float32(0.0):
            losses[i] = loss
            _subtract(true, false, vectors[2 * batch + i])


@numba.njit(cache=True, fastmath=FAST, error_model="numpy")
def _query(
    head: Any,
    relation: Any,
    tail: Any,
    head_scale: Any,
    relation_scale: Any,
    tail_scale: Any,
    tail_corrupt: Any,
    query: Any,
    difference: Any,
) -> Any:
    """Fill `query` (what negatives should not be near) and `difference` h + r - t; squared lengths of both."""
    query_square = np.float32(0.0)
    difference_square = np.float32(0.0)
    if tail_corrupt:
        for k in range(head.shape[0]):
            q = head_scale * head[k] + relation_scale * relation[k]
            d = q - tail_scale * tail[k]
            query[k] = q
            difference[k] = d
            query_square += q * q
            difference_square += d * d
    else:
        for k in range(head.shape[0]):
            q = tail_scale * tail[k] - relation_scale * relation[k]
            d = head_scale * head[k] - q
            query[k] = q
            difference[k] = d
            query_square += q * q
            difference_square += d * d
    return query_square, difference_square


@numba.njit(cache=True, fastmath=FAST, error_model="numpy")
def _combine(query: Any, difference: Any, near: Any, pull: Any, push: Any, num_open: Any, mixed: Any) -> None:
    """difference becomes the positive's gradient, mixed that plus the gradient of the query."""
    for k in range(query.shape[0]):
        d = pull * difference[k]
        difference[k] = d
        mixed[k] = d + push * (num_open * query[k] - near[k])


@numba.njit(parallel=True, cache=True)
def _score_limit(
    table: Any,
    positives: Any,
    negatives: Any,
    corrupt_tail: Any,
    positive_limit: Any,
    negative_limit: Any,
    weight: Any,
    vectors: Any,
    is_open: Any,
    losses: Any,
) -> None:
    """Losses, which of a triple and its negatives are beyond their limit, and the vectors of the gradient.

    Row i of `vectors` is the gradient 2 (h + r - t) of the positive alone, row batch + i is q = h + r where the tail is
    corrupted and q = t - r where the head is, row 2 batch + i the gradient of the relation.
    """
    raw, scales = table.raw, table.scales
    batch, dim = len(positives), raw.shape[1]
    for chunk in numba.prange(CHUNKS):
        near = np.empty(dim, dtype=np.float32)
        for i in range(chunk * batch // CHUNKS, (chunk + 1) * batch // CHUNKS):
            h, r, t = positives[i, 0], positives[i, 1], positives[i, 2]
            difference, query, mixed = vectors[i], vectors[batch + i], vectors[2 * batch + i]
            query_square, distance = _query(
                raw[h], raw[r], raw[t], scales[h], scales[r], scales[t], corrupt_tail[i], query, difference
            )
            is_open[i, 0] = distance > positive_limit
            loss = distance - positive_limit if is_open[i, 0] else np.float32(0.0)
            near[:] = np.float32(0.0)
            num_open = 0
            for j in range(negatives.shape[1]):
                entity = negatives[i, j]
                is_open[i, 1 + j] = False
                if entity >= 0:
                    inner = scales[entity] * dot(query, raw[entity])
                    gap = negative_limit - (query_square - np.float32(2.0) * inner + np.float32(1.0))
                    if gap > np.float32(0.0):
                        loss += weight * gap
                        num_open += 1
                        add_scaled(near, scales[entity], raw[entity])
                        is_open[i, 1 + j] = True
            losses[i] = loss
            sign = np.float32(-1.0) if corrupt_tail[i] else np.float32(1.0)
            pull = np.float32(2.0) if is_open[i, 0] else np.float32(0.0)
            _combine(query, difference, near, pull, sign * np.float32(2.0) * weight, np.float32(num_open), mixed)
