"""One AlignE training step on the CPU, written out: scores, gradients, Adagrad, and no tensor of differences.

`aligne.limit_loss` with autograd is the same step in the words of the paper; a test holds the two together. Here
- only rows that a batch touches are read and written (for Adagrad a row without gradient stays as it is);
- a negative costs one inner product, since |q - e|^2 = |q|^2 - 2 q.e + 1 for a unit vector e;
- gradients are gathered row by row instead of scattered triple by triple: the batch is indexed by row first, so rows
  run in parallel without races and sums are in the same order for any number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from rlea.graph import Ids
from rlea.models.unit_rows import FAST, adagrad_row, add_scaled, dot, inverse_lengths

_CHUNKS = 64  # parts of the rows with about the same number of gradient terms


@dataclass(frozen=True, eq=False)
class Tables:
    """A row per entity, then a row per relation; changed in place by `limit_step`.

    Unit vectors are not stored but made from raw ones as they are read: the tables outgrow the processor's cache, and
    bringing a third one through memory would cost more than the multiplication.
    """

    raw: NDArray[np.float32]  # (num_rows, dim)
    squares: NDArray[np.float32]  # (num_rows, dim) Adagrad's sums of squared gradients
    scales: NDArray[np.float32]  # (num_rows,) one over the length of the raw vector

    @staticmethod
    def of(raw: NDArray[np.float32], squares: NDArray[np.float32], scales: NDArray[np.float32] | None = None) -> Tables:
        """Copies of the arrays; `scales` are those of an earlier run to the last bit, or else computed."""
        if scales is None:
            scales = inverse_lengths(raw)
        return Tables(raw.copy(), squares.copy(), scales.copy())

    def units(self, num_rows: int) -> NDArray[np.float32]:
        """The unit vectors of the first `num_rows` rows."""
        return self.raw[:num_rows] * self.scales[:num_rows, None]


def limit_step(
    tables: Tables,
    positives: Ids,  # (batch, 3) entity, relation row, entity
    negatives: Ids,  # (batch, num_negatives) corrupting entities, -1 for none
    corrupt_tail: NDArray[np.bool_],  # (batch,)
    *,
    positive_limit: float,
    negative_limit: float,
    negative_weight: float,
    learning_rate: float,
) -> float:
    """Loss of the batch before the step; `tables` are moved one Adagrad step down its gradient."""
    batch, dim = len(positives), tables.raw.shape[1]
    slots = 3 + negatives.shape[1]
    vectors = np.empty((3 * batch, dim), dtype=np.float32)
    factors = np.empty(slots * batch, dtype=np.float32)
    losses = np.empty(batch, dtype=np.float32)
    _score(
        tables.raw,
        tables.scales,
        positives,
        negatives,
        corrupt_tail,
        np.float32(positive_limit),
        np.float32(negative_limit),
        np.float32(negative_weight),
        vectors,
        factors,
        losses,
    )
    begins, terms = _index(positives, negatives, corrupt_tail, factors, len(tables.raw))
    cuts = np.searchsorted(begins, np.arange(_CHUNKS + 1) * (begins[-1] / _CHUNKS)).astype(np.int64)
    cuts[0], cuts[-1] = 0, len(tables.raw)
    _update(tables.raw, tables.squares, tables.scales, cuts, begins, terms, factors, vectors, np.float32(learning_rate))
    return float(losses.sum(dtype=np.float64))


@numba.njit(cache=True, fastmath=FAST, error_model="numpy")
def _score_positive(
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
def _score(
    raw: Any,
    scales: Any,
    positives: Any,
    negatives: Any,
    corrupt_tail: Any,
    positive_limit: Any,
    negative_limit: Any,
    weight: Any,
    vectors: Any,
    factors: Any,
    losses: Any,
) -> None:
    """Losses, and the vectors and factors from which `_update` sums gradients.

    With q = h + r where the tail is corrupted and q = t - r where the head is, row i of `vectors` is q, row
    batch + i the gradient of the relation, row 2 batch + i the gradient 2 (h + r - t) of the positive alone.
    `factors[slot * batch + i]` belongs to head, relation, tail and the negatives, in this order of slots.
    """
    batch, dim = len(positives), raw.shape[1]
    for chunk in numba.prange(_CHUNKS):
        near = np.empty(dim, dtype=np.float32)
        for i in range(chunk * batch // _CHUNKS, (chunk + 1) * batch // _CHUNKS):
            h, r, t = positives[i, 0], positives[i, 1], positives[i, 2]
            query, mixed, difference = vectors[i], vectors[batch + i], vectors[2 * batch + i]
            query_square, distance = _score_positive(
                raw[h], raw[r], raw[t], scales[h], scales[r], scales[t], corrupt_tail[i], query, difference
            )
            is_open = distance > positive_limit
            loss = distance - positive_limit if is_open else np.float32(0.0)
            near[:] = np.float32(0.0)
            num_open = 0
            for j in range(negatives.shape[1]):
                entity = negatives[i, j]
                factor = np.float32(0.0)
                if entity >= 0:
                    inner = scales[entity] * dot(query, raw[entity])
                    gap = negative_limit - (query_square - np.float32(2.0) * inner + np.float32(1.0))
                    if gap > np.float32(0.0):
                        loss += weight * gap
                        num_open += 1
                        add_scaled(near, scales[entity], raw[entity])
                        # The part of the gradient along the unit vector itself is left out: normalising removes it.
                        factor = np.float32(2.0) * weight
                factors[(3 + j) * batch + i] = factor
            losses[i] = loss
            sign = np.float32(-1.0) if corrupt_tail[i] else np.float32(1.0)
            pull = np.float32(2.0) if is_open else np.float32(0.0)
            _combine(query, difference, near, pull, sign * np.float32(2.0) * weight, np.float32(num_open), mixed)
            any_open = np.float32(1.0) if is_open or num_open > 0 else np.float32(0.0)
            factors[i] = any_open
            factors[batch + i] = any_open
            factors[2 * batch + i] = -any_open


@numba.njit(cache=True)
def _index(positives: Any, negatives: Any, corrupt_tail: Any, factors: Any, num_rows: Any) -> Any:
    """Gradient terms by row (compressed rows): slot and row of `vectors` of each term that is not zero."""
    batch, num_negatives = negatives.shape
    begins = np.zeros(num_rows + 1, dtype=np.int64)
    for i in range(batch):
        if factors[i] == 0:
            continue
        for c in range(3):
            begins[positives[i, c] + 1] += 1
        for j in range(num_negatives):
            if factors[(3 + j) * batch + i] != 0:
                begins[negatives[i, j] + 1] += 1
    for row in range(num_rows):
        begins[row + 1] += begins[row]
    place = begins.copy()
    terms = np.empty((begins[num_rows], 2), dtype=np.int32)
    for i in range(batch):
        if factors[i] == 0:
            continue
        for c in range(3):
            # The end that is corrupted sees the positive alone; the other end and the relation also the query.
            alone = (c == 0 and not corrupt_tail[i]) or (c == 2 and corrupt_tail[i])
            p = place[positives[i, c]]
            place[positives[i, c]] = p + 1
            terms[p, 0] = c * batch + i
            terms[p, 1] = 2 * batch + i if alone else batch + i
        for j in range(num_negatives):
            if factors[(3 + j) * batch + i] != 0:
                p = place[negatives[i, j]]
                place[negatives[i, j]] = p + 1
                terms[p, 0] = (3 + j) * batch + i
                terms[p, 1] = i
    return begins, terms


@numba.njit(parallel=True, cache=True)
def _update(
    raw: Any, squares: Any, scales: Any, cuts: Any, begins: Any, terms: Any, factors: Any, vectors: Any, rate: Any
) -> None:
    for chunk in numba.prange(len(cuts) - 1):
        gradient = np.empty(raw.shape[1], dtype=np.float32)
        for row in range(cuts[chunk], cuts[chunk + 1]):
            if begins[row] == begins[row + 1]:
                continue
            gradient[:] = np.float32(0.0)
            for term in range(begins[row], begins[row + 1]):
                add_scaled(gradient, factors[terms[term, 0]], vectors[terms[term, 1]])
            scales[row] = adagrad_row(raw[row], squares[row], scales[row], gradient, rate)
