"""Candidate pairs: the exact k best targets of every source and the k best sources of every target.

One blocked pass over the score matrix serves both directions; the whole matrix is never held in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numba
import numpy as np
from numpy.typing import NDArray

from rlea.graph import Ids
from rlea.progress import Progress, silent
from rlea.search.rows import BlockProduct, Scale, from_whole, multiply_pairs, multiply_sparse_pairs, unit_rows
from rlea.search.ties import hash_pair, mix, tie_hash
from rlea.search.top_k import BestLists, Floats, add_block, sort_descending

if TYPE_CHECKING:
    from rlea.graph.cannot_link import CannotLink
    from rlea.search.embeddings import Embeddings
    from rlea.search.pairs import Pairs

__all__ = [
    "CandidateLists",
    "CandidatePairs",
    "Candidates",
    "find_candidates",
    "hash_pair",
    "mix",
    "positions_in",
    "prepare",
    "tie_hash",
]

BLOCK_ROWS = 1024  # a block of scores (1024 x 4096 floats, 16 MiB) stays near the cache and keeps both cores busy
BLOCK_COLUMNS = 4096
SPARSE_BLOCK_BYTES = 64 << 20  # sparse vectors: a block spans all columns, as many rows as fit here


@dataclass(frozen=True, eq=False)
class CandidatePairs:
    """Candidate pairs as flat arrays, row after row; within a row best first, ties broken without regard to ids."""

    rows: Ids  # (num_pairs,)
    columns: Ids  # (num_pairs,)
    scores: Floats  # (num_pairs,)
    row_starts: NDArray[np.int64]  # (num_rows + 1,): the pairs of row i are row_starts[i]:row_starts[i + 1]

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, eq=False)
class CandidateLists:
    """Scored pairs between two pools of entities. Rows and columns are positions in the pools, not entity ids.

    Row i of `forward_columns` holds the columns of the k best targets of source i, best first, with `forward_scores`;
    row j of `backward_rows` the rows of the k best sources of target j. Unused places hold -1 and score -inf (sparse
    vectors with nothing in common are no candidates).
    """

    source_ids: Ids  # (num_rows,) entity ids of the source pool
    target_ids: Ids  # (num_columns,) entity ids of the target pool
    forward_columns: Ids  # (num_rows, k)
    forward_scores: Floats  # (num_rows, k), descending
    backward_rows: Ids  # (num_columns, k)
    backward_scores: Floats  # (num_columns, k), descending

    @staticmethod
    def of_pairs(pairs: Pairs, scores: Floats, source_ids: Ids, target_ids: Ids, k: int) -> CandidateLists:
        """The k best of scored pairs of entity ids for every entity of two pools, both ways; other pairs are left out.

        `scores` has shape (num_pairs,). Equal scores go by position in the pool.
        """
        rows, columns = positions_in(source_ids, pairs.source_ids), positions_in(target_ids, pairs.target_ids)
        inside = (rows >= 0) & (columns >= 0)
        rows, columns, scores = rows[inside], columns[inside], scores[inside]
        forward = _best_of_each(rows, columns, scores, len(source_ids), k)
        backward = _best_of_each(columns, rows, scores, len(target_ids), k)
        return CandidateLists(source_ids, target_ids, *forward, *backward)

    @property
    def num_rows(self) -> int:
        return len(self.source_ids)

    @property
    def num_columns(self) -> int:
        return len(self.target_ids)

    @property
    def is_complete(self) -> bool:
        """Every pair is a candidate, so that sparse methods equal the dense ones."""
        return self.forward_columns.shape[1] >= self.num_columns and not bool((self.forward_columns < 0).any())

    @cached_property
    def pairs(self) -> CandidatePairs:
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
        return CandidatePairs(rows, columns, scores, starts)

    def allowed(self, barred: CannotLink) -> Self:
        """The same without pairs that are never linked: the next best take their places."""
        if barred.is_empty:
            return self
        changed: dict[str, NDArray[Any]] = {}
        for ids, scores in (("forward_columns", "forward_scores"), ("backward_rows", "backward_scores")):
            places, is_forward = getattr(self, ids), ids == "forward_columns"
            own, partners = (self.source_ids, self.target_ids)[:: 1 if is_forward else -1]
            ends = np.repeat(own, places.shape[1]), partners[np.maximum(places, 0)].ravel()
            kept = barred.allows(*(ends if is_forward else ends[::-1])).reshape(places.shape)
            order = np.argsort(~kept, axis=1, kind="stable")
            changed[ids] = np.take_along_axis(np.where(kept, places, np.int32(-1)), order, axis=1)
            changed[scores] = np.take_along_axis(
                np.where(kept, getattr(self, scores), np.float32(-np.inf)), order, axis=1
            )
        return replace(self, **changed)

    def best(self, k: int) -> Self:
        """The same with at most k candidates per entity, each way."""
        if k >= max(self.forward_columns.shape[1], self.backward_rows.shape[1]):
            return self
        names = ("forward_columns", "forward_scores", "backward_rows", "backward_scores")
        return replace(self, **{name: getattr(self, name)[:, :k].copy() for name in names})


@dataclass(frozen=True, eq=False)
class Candidates(CandidateLists):
    """Candidates by the similarity of vectors, which can score every other pair too.

    >>> import numpy as np, rlea
    >>> vectors = rlea.Embeddings(np.eye(3, dtype=np.float32), np.eye(3, dtype=np.float32)[::-1])
    >>> found = rlea.find_candidates(vectors, np.arange(3), np.arange(3), k=1)
    >>> found.score_pairs(np.array([0, 0]), np.array([2, 0])).tolist()
    [1.0, 0.0]
    """

    embeddings: Embeddings

    def csls_means(self, k: int = 10) -> tuple[Floats, Floats]:
        """Mean score of the k best partners of every row and of every column; missing partners count as 0."""
        return _means(self.forward_scores, k), _means(self.backward_scores, k)

    def score_pairs(self, rows: NDArray[np.integer], columns: NDArray[np.integer]) -> Floats:
        """The scores of any pairs of positions, candidates or not: equal to those of the exact search; (num_pairs,)."""
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
    """Exact top k in both directions between the two pools, in blocks; the same result on every machine.

    Which of several pairs with the same score are kept as the last of the k best is random and does not depend on ids.
    `coarse` halves the time for dense vectors compared by cosine or inner product: their rows are rounded to about 1 in
    4,000 of the longest. Use it to propose pairs that are scored in another way.

    >>> import numpy as np, rlea
    >>> vectors = rlea.Embeddings(np.eye(3, dtype=np.float32), np.eye(3, dtype=np.float32)[::-1])
    >>> rlea.find_candidates(vectors, np.arange(3), np.arange(3), k=1).forward_columns.ravel().tolist()
    [2, 1, 0]
    """
    sources: Ids = np.asarray(source_ids, dtype=np.int32)
    targets: Ids = np.asarray(target_ids, dtype=np.int32)
    # Pools are searched in a random order: among equal scores the first come stays, and favours no id.
    rng = np.random.default_rng(0)
    row_order = rng.permutation(len(sources)).astype(np.int32)
    column_order = rng.permutation(len(targets)).astype(np.int32)
    scorer = _scorer(embeddings, sources[row_order], targets[column_order], coarse)
    lowest = 0.0 if embeddings.is_sparse else -np.inf
    forward = BestLists(len(sources), min(k, len(targets)), lowest)
    backward = BestLists(len(targets), min(k, len(sources)), lowest)
    done, total = 0, len(sources) * len(targets)
    for top in range(0, len(sources), scorer.height):
        for left in range(0, len(targets), scorer.width):
            block = scorer.block(top, left)
            rows = np.arange(top, top + block.shape[0], dtype=np.int32)
            columns = np.arange(left, left + block.shape[1], dtype=np.int32)
            add_block(block, rows, columns, forward, backward)
            done += block.size
            progress("candidates", done, total)
    for best, own, partners in ((forward, row_order, column_order), (backward, column_order, row_order)):
        best.renumber(own, partners)
        best.sort()
    forward_scores, backward_scores = scorer.finish(forward.scores), scorer.finish(backward.scores)
    return Candidates(sources, targets, forward.ids, forward_scores, backward.ids, backward_scores, embeddings)


def prepare(vectors: Any, embeddings: Embeddings) -> Any:
    """Vectors whose plain inner product is the measure (for `manhattan`: the vectors themselves)."""
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


def positions_in(pool: Ids, ids: Ids) -> Ids:
    """Where entities stand in a pool, -1 where they do not; (num_ids,)."""
    place = np.full(int(max(pool.max(initial=-1), ids.max(initial=-1))) + 1, -1, np.int32)
    place[pool] = np.arange(len(pool), dtype=np.int32)
    return place[ids]


def _best_of_each(own: Ids, other: Ids, scores: Floats, count: int, k: int) -> tuple[Ids, Floats]:
    order = np.lexsort((other, -scores, own))
    starts = np.searchsorted(own[order], np.arange(count))
    rank = np.arange(len(order)) - starts[own[order]] if len(order) else np.zeros(0, np.int64)
    lists = BestLists(count, k)
    near = rank < k
    lists.ids[own[order][near], rank[near]] = other[order][near]
    lists.scores[own[order][near], rank[near]] = scores[order][near]
    return lists.ids, lists.scores


@dataclass(frozen=True, eq=False)
class _Scorer:
    """Computes blocks of scores of two pools."""

    block: Callable[[int, int], Floats]  # (first row, first column) -> scores
    height: int
    width: int
    finish: Callable[[Floats], Floats] = lambda found: found  # from the numbers in blocks to scores


def _scorer(embeddings: Embeddings, sources: Ids, targets: Ids, coarse: bool) -> _Scorer:
    if embeddings.is_sparse:
        return _sparse_scorer(embeddings, sources, targets)
    if embeddings.measure == "manhattan":
        return _manhattan_scorer(embeddings, sources, targets)
    return _product_scorer(embeddings, sources, targets, coarse)


def _sparse_scorer(embeddings: Embeddings, sources: Ids, targets: Ids) -> _Scorer:
    rows = prepare(embeddings.source[sources], embeddings)
    inverted = prepare(embeddings.target[targets], embeddings).tocsc()
    width = max(len(targets), 1)
    height = int(max(1, min(BLOCK_ROWS, SPARSE_BLOCK_BYTES // (4 * width))))

    def block(top: int, left: int) -> Floats:
        part = rows[top : top + height]
        result = np.zeros((part.shape[0], width), dtype=np.float32)
        _multiply_sparse(part.indptr, part.indices, part.data, inverted.indptr, inverted.indices, inverted.data, result)
        return result

    return _Scorer(block, height, width)


def _manhattan_scorer(embeddings: Embeddings, sources: Ids, targets: Ids) -> _Scorer:
    rows, columns = prepare(embeddings.source[sources], embeddings), prepare(embeddings.target[targets], embeddings)

    def block(top: int, left: int) -> Floats:
        return manhattan_block(rows[top : top + BLOCK_ROWS], columns[left : left + BLOCK_COLUMNS])

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
        if not is_sound:  # a vector with a value that is not finite has no candidates
            result[broken[0][top : top + BLOCK_ROWS]] = np.nan
            result[:, broken[1][left : left + BLOCK_COLUMNS]] = np.nan
        return result

    return _Scorer(block, BLOCK_ROWS, BLOCK_COLUMNS, lambda found: from_whole(found, scales))


def _means(scores: Floats, k: int) -> Floats:
    best = scores[:, :k]
    if best.shape[1] == 0:
        return np.zeros(len(best), dtype=np.float32)
    return np.asarray(np.where(np.isfinite(best), best, 0.0).mean(axis=1), dtype=np.float32)


# ---- compiled --------------------------------------------------------------------------------------------------------


def manhattan_block(rows: Floats, columns: Floats) -> Floats:
    """Minus the Manhattan distances of rows and columns, (num_rows, num_columns)."""
    block = np.empty((len(rows), len(columns)), dtype=np.float32)
    _manhattan_block(rows, np.ascontiguousarray(columns.T), block)
    return block


@numba.njit(cache=True, parallel=True)
def _manhattan_block(rows, turned, block):  # type: ignore[no-untyped-def]
    """`turned` holds the columns of the block by dimension, so that vector registers work on many of them at once.

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
                _subtract_four(row[d : d + 4], first, second, turned[d + 2, low:high], turned[d + 3, low:high], sums)
            for d in range(whole, dim):
                for j in range(len(sums)):
                    sums[j] -= abs(row[d] - turned[d, low + j])


@numba.njit(cache=True)
def _subtract_four(values, first, second, third, fourth, sums):  # type: ignore[no-untyped-def]
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
def _contains(columns, column):  # type: ignore[no-untyped-def]
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
            if i >= 0 and not _contains(forward_columns[i], j):
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
            if i >= 0 and not _contains(forward_columns[i], j):
                columns[filled[i]] = j
                scores[filled[i]] = backward_scores[j, place]
                filled[i] += 1
    for i in range(len(forward_columns)):
        if filled[i] > num_forward[i]:  # the forward part is sorted already
            sort_descending(columns[starts[i] : starts[i + 1]], scores[starts[i] : starts[i + 1]], i)
