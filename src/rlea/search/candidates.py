"""Candidate pairs: the exact k best targets of every source and the k best sources of every target.

One blocked pass over the score matrix serves both directions; the matrix itself is never held.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
from numpy.typing import NDArray

from rlea.graph import Ids
from rlea.progress import Progress, silent
from rlea.search.rows import BlockProduct, Scale, from_whole, multiply_pairs, multiply_sparse_pairs, unit_rows

if TYPE_CHECKING:
    from rlea.search.embeddings import Embeddings

BLOCK_ROWS = 1024  # a block of scores (1024 x 4096 floats, 16 MiB) stays near the cache and keeps both cores busy
BLOCK_COLUMNS = 4096
LANES = 16  # scores that are compared at once
SPARSE_BLOCK_BYTES = 64 << 20  # sparse vectors: a block spans all columns, as many rows as fit here

Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Pairs:
    """Candidate pairs as flat arrays, row after row; within a row best first, ties in an order blind to ids."""

    rows: Ids  # (num_pairs,)
    columns: Ids  # (num_pairs,)
    scores: Floats  # (num_pairs,)
    row_starts: NDArray[np.int64]  # (num_rows + 1,): the pairs of row i are row_starts[i]:row_starts[i + 1]

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, eq=False)
class Candidates:
    """Scored pairs between two pools of entities. Rows and columns are positions in the pools, not entity ids.

    Row i of `forward_columns` holds the columns of the k best targets of source i, best first, with `forward_scores`;
    `backward_rows` the rows of the k best sources of target j. Unused places hold -1 with the score -inf (sparse
    vectors with nothing in common are no candidates).
    """

    source_ids: Ids  # (num_rows,) entity ids of the source pool
    target_ids: Ids  # (num_columns,) entity ids of the target pool
    forward_columns: Ids  # (num_rows, k)
    forward_scores: Floats  # (num_rows, k), descending
    backward_rows: Ids  # (num_columns, k)
    backward_scores: Floats  # (num_columns, k), descending
    embeddings: Embeddings  # for the score of a pair that is not among the candidates

    @property
    def num_rows(self) -> int:
        return len(self.source_ids)

    @property
    def num_columns(self) -> int:
        return len(self.target_ids)

    @property
    def is_complete(self) -> bool:
        """Every pair is a candidate, so that sparse methods are the dense ones."""
        return self.forward_columns.shape[1] >= self.num_columns and not bool((self.forward_columns < 0).any())

    @cached_property
    def pairs(self) -> Pairs:
        """The union of both directions, each pair once."""
        if self.is_complete:
            extra = np.zeros((0, 0), dtype=np.int32)
            counts = np.full(self.num_rows, self.num_columns, dtype=np.int64)
        else:
            extra = self.backward_rows
            counts = _count_pairs(self.forward_columns, self.backward_rows)
        starts = np.zeros(self.num_rows + 1, dtype=np.int64)
        np.cumsum(counts, out=starts[1:])
        rows = np.repeat(np.arange(self.num_rows, dtype=np.int32), counts)
        columns = np.empty(starts[-1], dtype=np.int32)
        scores = np.empty(starts[-1], dtype=np.float32)
        _fill_pairs(self.forward_columns, self.forward_scores, extra, self.backward_scores, starts, columns, scores)
        return Pairs(rows, columns, scores, starts)

    def best(self, k: int) -> Candidates:
        """The k best of them, each way."""
        if k >= max(self.forward_columns.shape[1], self.backward_rows.shape[1]):
            return self
        forward = self.forward_columns[:, :k].copy(), self.forward_scores[:, :k].copy()
        backward = self.backward_rows[:, :k].copy(), self.backward_scores[:, :k].copy()
        return Candidates(self.source_ids, self.target_ids, *forward, *backward, self.embeddings)

    def csls_means(self, k: int = 10) -> tuple[Floats, Floats]:
        """Mean score of the k best partners of every row and of every column; absent ones count as 0."""
        return _means(self.forward_scores, k), _means(self.backward_scores, k)

    def score_pairs(self, rows: NDArray[np.integer], columns: NDArray[np.integer]) -> Floats:
        """The scores of any pairs of positions, candidates or not: the same that the exact search gives them."""
        ids = self.source_ids[rows], self.target_ids[columns]
        source, target = self.embeddings.source, self.embeddings.target
        if self.embeddings.is_sparse:
            return multiply_sparse_pairs(prepare(source, self.embeddings), prepare(target, self.embeddings), *ids)
        if self.embeddings.measure == "manhattan":
            own, other = (np.ascontiguousarray(part, dtype=np.float32) for part in (source, target))
            return np.asarray(_manhattan_pairs(own, other, *ids))
        return multiply_pairs(*_dense(self.embeddings), self._scales, *ids)

    @cached_property
    def _scales(self) -> tuple[Scale, Scale]:
        return scales_of(self.embeddings)


def find_candidates(
    embeddings: Embeddings,
    source_ids: NDArray[np.integer],
    target_ids: NDArray[np.integer],
    k: int = 50,
    progress: Progress = silent,
    *,
    coarse: bool = False,
) -> Candidates:
    """Exact top k in both directions between the two pools, in blocks; the same on every machine.

    Of pairs with the same score at the edge of the k best, which ones stay is drawn without regard to ids. `coarse`
    takes half the time for dense vectors compared by cosine or inner product: their rows are rounded to about 1 in
    4,000 of the longest, for whoever wants pairs to be proposed and scores them in another way.
    """
    sources: Ids = np.asarray(source_ids, dtype=np.int32)
    targets: Ids = np.asarray(target_ids, dtype=np.int32)
    num_rows, num_columns = len(sources), len(targets)
    forward_k, backward_k = min(k, num_columns), min(k, num_rows)
    if num_rows == 0 or num_columns == 0:
        nothing, no_scores = np.zeros((num_rows, 0), np.int32), np.zeros((num_rows, 0), np.float32)
        nobody, none = np.zeros((num_columns, 0), np.int32), np.zeros((num_columns, 0), np.float32)
        return Candidates(sources, targets, nothing, no_scores, nobody, none, embeddings)
    # Pools are searched in a random order: among equals, "first come" then favours no id.
    rng = np.random.default_rng(0)
    row_order, column_order = rng.permutation(num_rows), rng.permutation(num_columns)
    scorer = _scorer(embeddings, sources[row_order], targets[column_order], coarse)
    lowest = np.float32(0.0 if embeddings.is_sparse else -np.inf)
    forward = _Best(num_rows, forward_k, lowest)
    backward = _Best(num_columns, backward_k, lowest)
    done, total = 0, num_rows * num_columns
    for top in range(0, num_rows, scorer.height):
        for left in range(0, num_columns, scorer.width):
            block = scorer.block(top, left)
            _keep_best_of_rows(block, top, left, forward.ids, forward.scores)
            _keep_best_of_columns(block, top, left, backward.ids, backward.scores)
            done += block.size
            progress("candidates", done, total)
    forward_columns, forward_scores = forward.finished(row_order, column_order)
    backward_rows, backward_scores = backward.finished(column_order, row_order)
    forward_scores, backward_scores = scorer.finish(forward_scores), scorer.finish(backward_scores)
    return Candidates(sources, targets, forward_columns, forward_scores, backward_rows, backward_scores, embeddings)


def prepare(vectors: Any, embeddings: Embeddings) -> Any:
    """Vectors of which the plain inner product is the measure (for `manhattan`: the vectors themselves)."""
    if isinstance(vectors, np.ndarray):
        vectors = np.ascontiguousarray(vectors, dtype=np.float32)
        return unit_rows(vectors) if embeddings.measure == "cosine" else vectors
    if embeddings.measure == "cosine":
        return unit_rows(vectors)
    vectors = vectors.tocsr()
    return vectors if vectors.has_sorted_indices else vectors.sorted_indices()


def scales_of(embeddings: Embeddings, *, coarse: bool = False) -> tuple[Scale, Scale]:
    """How the dense vectors of either side become whole numbers."""
    source, target = (Scale.of(part, embeddings.measure, coarse=coarse) for part in _dense(embeddings))
    return source, target


def _dense(embeddings: Embeddings) -> tuple[Floats, Floats]:
    assert isinstance(embeddings.source, np.ndarray)
    assert isinstance(embeddings.target, np.ndarray)
    return embeddings.source, embeddings.target


def tie_hash(rows: NDArray[np.integer], columns: NDArray[np.integer], seed: int = 0) -> NDArray[np.uint64]:
    """A pseudo-random key for every pair: settles ties the same way every time, without favouring low or equal ids."""
    return np.asarray(
        _hash_pairs(np.asarray(rows, dtype=np.int64), np.asarray(columns, dtype=np.int64), np.uint64(seed))
    )


class _Best:
    """Heaps of the best scores so far, the worst of the best on top (place 0)."""

    def __init__(self, count: int, k: int, lowest: np.float32) -> None:
        self.ids = np.full((count, k), -1, dtype=np.int32)
        self.scores = np.full((count, k), lowest, dtype=np.float32)

    def finished(self, own: NDArray[np.intp], other: NDArray[np.intp]) -> tuple[Ids, Floats]:
        """Sorted best first and back in the callers' order of positions."""
        _sort_best(self.ids, self.scores, own, other)
        ids = np.empty_like(self.ids)
        scores = np.empty_like(self.scores)
        ids[own] = np.where(self.ids < 0, -1, other[self.ids])
        scores[own] = np.where(self.ids < 0, -np.inf, self.scores)
        return ids, scores


@dataclass(frozen=True, eq=False)
class _Scorer:
    """Computes blocks of scores of two pools."""

    block: Callable[[int, int], Floats]  # of the rows from `top` on and the columns from `left` on
    height: int
    width: int
    finish: Callable[[Floats], Floats] = lambda found: found  # what blocks hold as scores, in the same order


def _scorer(embeddings: Embeddings, sources: Ids, targets: Ids, coarse: bool) -> _Scorer:
    if embeddings.is_sparse:
        return _sparse_scorer(embeddings, sources, targets)
    if embeddings.measure == "manhattan":
        return _manhattan_scorer(embeddings, sources, targets)
    return _product_scorer(embeddings, sources, targets, coarse)


def _sparse_scorer(embeddings: Embeddings, sources: Ids, targets: Ids) -> _Scorer:
    rows = prepare(embeddings.source[sources], embeddings)
    inverted = prepare(embeddings.target[targets], embeddings).tocsc()
    width = len(targets)
    height = int(max(1, min(BLOCK_ROWS, SPARSE_BLOCK_BYTES // (4 * max(width, 1)))))

    def block(top: int, left: int) -> Floats:
        part = rows[top : top + height]
        result = np.zeros((part.shape[0], width), dtype=np.float32)
        _multiply_sparse(part.indptr, part.indices, part.data, inverted.indptr, inverted.indices, inverted.data, result)
        return result

    return _Scorer(block, height, width)


def _manhattan_scorer(embeddings: Embeddings, sources: Ids, targets: Ids) -> _Scorer:
    rows, columns = prepare(embeddings.source[sources], embeddings), prepare(embeddings.target[targets], embeddings)

    def block(top: int, left: int) -> Floats:
        part, other = rows[top : top + BLOCK_ROWS], columns[left : left + BLOCK_COLUMNS]
        result = np.empty((len(part), len(other)), dtype=np.float32)
        manhattan_block(part, other, result)
        return result

    return _Scorer(block, BLOCK_ROWS, BLOCK_COLUMNS)


def _product_scorer(embeddings: Embeddings, sources: Ids, targets: Ids, coarse: bool) -> _Scorer:
    scales = scales_of(embeddings, coarse=coarse)
    source, target = _dense(embeddings)
    rows, columns = scales[0].whole(source, sources), scales[1].whole(target, targets)
    product = BlockProduct(BLOCK_ROWS * BLOCK_COLUMNS, coarse)
    broken = np.isnan(scales[0].factors[sources]), np.isnan(scales[1].factors[targets])
    is_sound = not (broken[0].any() or broken[1].any())

    def block(top: int, left: int) -> Floats:
        result = product(rows[top : top + BLOCK_ROWS], columns[left : left + BLOCK_COLUMNS])
        if not is_sound:  # what holds no numbers is like nobody
            result[broken[0][top : top + BLOCK_ROWS]] = np.nan
            result[:, broken[1][left : left + BLOCK_COLUMNS]] = np.nan
        return result

    return _Scorer(block, BLOCK_ROWS, BLOCK_COLUMNS, lambda found: from_whole(found, scales))


def _means(scores: Floats, k: int) -> Floats:
    best = scores[:, :k]
    if best.shape[1] == 0:
        return np.zeros(len(best), dtype=np.float32)
    return np.asarray(np.where(np.isfinite(best), best, 0.0).mean(axis=1), dtype=np.float32)


@numba.njit(cache=True)
def mix(value):  # type: ignore[no-untyped-def]
    """The finaliser of splitmix64: every input bit moves every output bit."""
    value ^= value >> np.uint64(30)
    value *= np.uint64(0xBF58476D1CE4E5B9)
    value ^= value >> np.uint64(27)
    value *= np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@numba.njit(cache=True)
def hash_pair(row, column, seed):  # type: ignore[no-untyped-def]
    """The tie key of one pair, for use inside compiled code (all numbers uint64)."""
    mixed = mix(np.uint64(row) + np.uint64(0x9E3779B97F4A7C15) * (np.uint64(seed) + np.uint64(1)))
    return mix(mixed ^ (np.uint64(column) * np.uint64(0xD6E8FEB86659FD93)))


@numba.njit(cache=True)
def _hash_pairs(rows, columns, seed):  # type: ignore[no-untyped-def]
    result = np.empty(len(rows), dtype=np.uint64)
    for i in range(len(rows)):
        result[i] = hash_pair(rows[i], columns[i], seed)
    return result


@numba.njit(cache=True)
def _replace_worst(ids, scores, new_id, new_score):  # type: ignore[no-untyped-def]
    """Put a pair in place of the worst kept one and restore the heap."""
    size = len(ids)
    place = 0
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        if child + 1 < size and scores[child + 1] < scores[child]:
            child += 1
        if scores[child] >= new_score:
            break
        ids[place] = ids[child]
        scores[place] = scores[child]
        place = child
    ids[place] = new_id
    scores[place] = new_score


@numba.njit(cache=True, parallel=True)
def _keep_best_of_rows(block, top, left, ids, scores):  # type: ignore[no-untyped-def]
    height, width = block.shape
    whole = width // LANES * LANES
    for i in numba.prange(height):
        row = block[i]
        own_ids, own_scores = ids[top + i], scores[top + i]
        worst = own_scores[0]
        for start in range(0, whole, LANES):
            # Most stretches hold nothing good enough; this loop, its length fixed and without branches, runs in vector
            # registers.
            num_better = 0
            for lane in range(LANES):
                num_better += row[start + lane] > worst
            if num_better:
                for j in range(start, start + LANES):
                    if row[j] > worst:
                        _replace_worst(own_ids, own_scores, left + j, row[j])
                        worst = own_scores[0]
        for j in range(whole, width):
            if row[j] > worst:
                _replace_worst(own_ids, own_scores, left + j, row[j])
                worst = own_scores[0]


@numba.njit(cache=True, parallel=True)
def _keep_best_of_columns(block, top, left, ids, scores):  # type: ignore[no-untyped-def]
    height, width = block.shape
    strip = 256
    for part in numba.prange((width + strip - 1) // strip):
        low, high = part * strip, min((part + 1) * strip, width)
        whole = low + (high - low) // LANES * LANES
        worst = np.empty(strip, dtype=np.float32)
        for j in range(low, high):
            worst[j - low] = scores[left + j, 0]
        for i in range(height):
            row = block[i]
            for start in range(low, whole, LANES):
                num_better = 0
                for lane in range(LANES):
                    num_better += row[start + lane] > worst[start - low + lane]
                if num_better:
                    for j in range(start, start + LANES):
                        if row[j] > worst[j - low]:
                            _replace_worst(ids[left + j], scores[left + j], top + i, row[j])
                            worst[j - low] = scores[left + j, 0]
            for j in range(whole, high):
                if row[j] > worst[j - low]:
                    _replace_worst(ids[left + j], scores[left + j], top + i, row[j])
                    worst[j - low] = scores[left + j, 0]


@numba.njit(cache=True, parallel=True)
def _sort_best(ids, scores, own, other):  # type: ignore[no-untyped-def]
    for i in numba.prange(len(ids)):
        _sort_descending(ids[i], scores[i], own[i], other)


@numba.njit(cache=True)
def _sort_descending(ids, scores, own, names):  # type: ignore[no-untyped-def]
    """Sort one row in place: score descending, equal scores by the tie key; empty places (-1) last."""
    order = np.argsort(-scores, kind="mergesort")
    ids[:] = ids[order]
    scores[:] = scores[order]
    size = len(ids)
    i = 0
    while i < size:
        j = i + 1
        while j < size and scores[j] == scores[i]:
            j += 1
        for a in range(i + 1, j):
            b = a
            while b > i and _comes_before(ids[b], ids[b - 1], own, names):
                ids[b], ids[b - 1] = ids[b - 1], ids[b]
                b -= 1
        i = j


@numba.njit(cache=True)
def _comes_before(first, second, own, names):  # type: ignore[no-untyped-def]
    if first < 0 or second < 0:
        return first >= 0
    return hash_pair(own, names[first], 0) < hash_pair(own, names[second], 0)


def manhattan_block(rows: Floats, columns: Floats, block: Floats) -> None:
    """Fill a block with minus the distances of rows and columns."""
    _manhattan_block(rows, np.ascontiguousarray(columns.T), block)


@numba.njit(cache=True, parallel=True)
def _manhattan_block(rows, turned, block):  # type: ignore[no-untyped-def]
    """`turned` are the columns of the block by dimension: many of them go through the vector registers together.

    Each score is added up dimension by dimension, in the order of `manhattan_score`.
    """
    dim, width = turned.shape
    strip = 256  # sums that stay in the fastest cache
    for i in numba.prange(len(rows)):
        row = rows[i]
        for low in range(0, width, strip):
            high = min(low + strip, width)
            sums = block[i, low:high]
            sums[:] = np.float32(0.0)
            whole = dim // 4 * 4
            for d in range(0, whole, 4):
                first, second = turned[d, low:high], turned[d + 1, low:high]
                _take_off(row[d : d + 4], first, second, turned[d + 2, low:high], turned[d + 3, low:high], sums)
            for d in range(whole, dim):
                for j in range(len(sums)):
                    sums[j] -= abs(row[d] - turned[d, low + j])


@numba.njit(cache=True)
def _take_off(values, first, second, third, fourth, sums):  # type: ignore[no-untyped-def]
    a, b, c, d = values[0], values[1], values[2], values[3]
    for j in range(len(sums)):
        sums[j] = (((sums[j] - abs(a - first[j])) - abs(b - second[j])) - abs(c - third[j])) - abs(d - fourth[j])


@numba.njit(cache=True, parallel=True)
def _manhattan_pairs(source, target, source_ids, target_ids):  # type: ignore[no-untyped-def]
    result = np.empty(len(source_ids), np.float32)
    for k in numba.prange(len(source_ids)):
        result[k] = manhattan_score(source[source_ids[k]], target[target_ids[k]])
    return result


@numba.njit(cache=True)
def manhattan_score(a, b):  # type: ignore[no-untyped-def]
    """Minus the sum of absolute differences."""
    total = np.float32(0.0)
    for d in range(len(a)):
        total -= abs(a[d] - b[d])
    return total


@numba.njit(cache=True, parallel=True)
def _multiply_sparse(indptr, indices, data, column_starts, column_rows, column_data, block):  # type: ignore[no-untyped-def]
    for i in numba.prange(len(indptr) - 1):
        row = block[i]
        for p in range(indptr[i], indptr[i + 1]):
            feature, weight = indices[p], np.float32(data[p])
            for q in range(column_starts[feature], column_starts[feature + 1]):
                row[column_rows[q]] += weight * np.float32(column_data[q])


@numba.njit(cache=True)
def _stands_in(columns, column):  # type: ignore[no-untyped-def]
    for other in columns:
        if other == column:
            return True
        if other < 0:
            return False
    return False


@numba.njit(cache=True)
def _count_pairs(forward_columns, backward_rows):  # type: ignore[no-untyped-def]
    counts = np.zeros(len(forward_columns), dtype=np.int64)
    for i in range(len(forward_columns)):
        for column in forward_columns[i]:
            counts[i] += column >= 0
    for j in range(len(backward_rows)):
        for i in backward_rows[j]:
            if i >= 0 and not _stands_in(forward_columns[i], j):
                counts[i] += 1
    return counts


@numba.njit(cache=True)
def _fill_pairs(forward_columns, forward_scores, backward_rows, backward_scores, starts, columns, scores):  # type: ignore[no-untyped-def]
    filled = starts[:-1].copy()
    num_forward = starts[:-1].copy()
    for i in range(len(forward_columns)):
        for place in range(forward_columns.shape[1]):
            if forward_columns[i, place] >= 0:
                columns[filled[i]] = forward_columns[i, place]
                scores[filled[i]] = forward_scores[i, place]
                filled[i] += 1
        num_forward[i] = filled[i]
    for j in range(len(backward_rows)):
        for place in range(backward_rows.shape[1]):
            i = backward_rows[j, place]
            if i >= 0 and not _stands_in(forward_columns[i], j):
                columns[filled[i]] = j
                scores[filled[i]] = backward_scores[j, place]
                filled[i] += 1
    names = np.arange(0 if len(columns) == 0 else columns.max() + 1)
    for i in range(len(forward_columns)):
        if filled[i] > num_forward[i]:  # the forward part is sorted already
            _sort_descending(columns[starts[i] : starts[i + 1]], scores[starts[i] : starts[i + 1]], i, names)
