"""How good vectors are: where the right targets stand among all, measured against gold links.

Ties never help. Where several targets have the same score as the right one, the order among them is taken as drawn
at random, and every rank metric is its expected value over that draw; the order of a file, of a pool or of ids then
changes nothing. Ranks are found in blocks, and scores near the right one are compared in double precision; the
matrix of all scores is never held.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
from numpy.typing import NDArray

from rlea.errors import InputError
from rlea.graph import Links
from rlea.progress import Progress, silent
from rlea.search.candidates import manhattan_block, tie_hash
from rlea.search.rows import SHORTEST, next_shared, row_lengths, unit_rows

if TYPE_CHECKING:
    from rlea.search.embeddings import Embeddings, Vectors

Doubles = NDArray[np.float64]

BLOCK_LINKS = 1024
BLOCK_TARGETS = 4096  # a block of scores (1024 x 4096 floats) takes 16 MiB
SPARSE_BLOCK_CELLS = 16_000_000  # sparse vectors: a block spans the whole pool; no block of scores is held
# Scores closer than this, relative to the lengths of the vectors, differ by nothing but the order of additions
# (errors stay below 1e-13 up to a thousand dimensions), so they are equal.
TIE_TOLERANCE = 1e-12
# To rank all links takes time in proportion to links times targets: at a million of each, hours. Beyond so many pairs a
# sample is ranked, and shares are then known to half a point (one standard error).
MOST_PAIRS = 5 * 10**9
SAMPLE = 10_000


@dataclass(frozen=True)
class RankMetrics:
    """Where the right targets stand among all targets of the pool when these are sorted by score."""

    hits_at_1: float
    hits_at_5: float
    hits_at_10: float
    hits_at_50: float
    mr: float  # mean rank, 1 is best
    mrr: float  # mean of 1 / rank
    num_links: int  # that were ranked
    num_targets: int  # size of the pool
    unreachable: int  # links whose target is not in the pool; they rank behind all of it
    pool: str
    sampled_from: int | None = None  # links that there are, where too many to rank them all

    def as_dict(self) -> dict[str, Any]:
        """A flat object for machines; hits are spelt `hits@k`."""
        return {
            "hits@1": self.hits_at_1,
            "hits@5": self.hits_at_5,
            "hits@10": self.hits_at_10,
            "hits@50": self.hits_at_50,
            "mr": self.mr,
            "mrr": self.mrr,
            "num_links": self.num_links,
            "num_targets": self.num_targets,
            "unreachable": self.unreachable,
            "pool": self.pool,
            **({} if self.sampled_from is None else {"sampled_from": self.sampled_from}),
        }


def rank_metrics(
    embeddings: Embeddings,
    links: Links,
    target_pool_ids: NDArray[np.integer],
    *,
    pool: str = "test",
    progress: Progress = silent,
) -> RankMetrics:
    """Rank the right target of every link among `target_pool_ids`, an array of entity ids (repetitions count once).

    If g targets score higher than the right one and e - 1 others the same, its rank is g + 1, ..., g + e with equal
    probability. Hits@k is the probability of a rank of at most k, MR the expected rank (the "realistic" one, between
    the optimistic and the pessimistic), MRR the expected 1 / rank; all are averaged over the links. Vectors of zeros
    have the cosine 0 with everything. Where links times targets are more than `MOST_PAIRS`, `SAMPLE` links are ranked,
    always the same ones of the same links.
    """
    if len(links) == 0:
        raise InputError("there are no links to rank", remedy="evaluate against at least one gold link")
    pool_ids = np.unique(np.asarray(target_pool_ids, dtype=np.int64))
    sampled_from = None
    if len(links) > SAMPLE and len(links) * len(pool_ids) > MOST_PAIRS:
        sampled_from = len(links)
        # By a hash of the pair: neither ids nor the order of the links decide.
        drawn = np.argsort(tie_hash(links.source_ids, links.target_ids), kind="stable")[:SAMPLE]
        links = Links.of(links.source_ids[drawn], links.target_ids[drawn])
    better, equal = count_better_and_equal(embeddings, links, pool_ids, progress)
    reachable = np.isin(links.target_ids, pool_ids)
    better[~reachable], equal[~reachable] = len(pool_ids), 1

    def hits(k: int) -> float:
        return float((np.clip(k - better, 0, equal) / equal * reachable).mean())

    harmonic = np.append(0.0, np.cumsum(1.0 / np.arange(1, len(pool_ids) + 2)))  # of n: 1 + 1/2 + ... + 1/n
    return RankMetrics(
        hits_at_1=hits(1),
        hits_at_5=hits(5),
        hits_at_10=hits(10),
        hits_at_50=hits(50),
        mr=float((better + (equal + 1) / 2).mean()),
        mrr=float(((harmonic[better + equal] - harmonic[better]) / equal).mean()),
        num_links=len(links),
        num_targets=len(pool_ids),
        unreachable=int((~reachable).sum()),
        pool=pool,
        sampled_from=sampled_from,
    )


def count_better_and_equal(
    embeddings: Embeddings, links: Links, pool_ids: NDArray[np.int64], progress: Progress = silent
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For every link, how many targets of the pool score higher than the right one, and how many the same.

    The right target counts among the latter if it is in the pool. Two vectors of shape (num_links,).
    """
    for side, ids, vectors in (
        ("source", links.source_ids, embeddings.source),
        ("target", np.union1d(pool_ids, links.target_ids), embeddings.target),
    ):
        values = vectors[ids] if isinstance(vectors, np.ndarray) else vectors[ids].data
        if not np.isfinite(values).all():
            raise InputError(
                f"the {side} vectors hold values that are no finite numbers",
                remedy="train them again or repair the file they came from",
            )
    count = _count_dense if not embeddings.is_sparse else _count_sparse
    better, equal = count(embeddings, links, pool_ids, progress)
    # Against rounding at the very edge: a target always equals itself.
    return better, np.maximum(equal, np.isin(links.target_ids, pool_ids))


Counts = tuple[NDArray[np.int64], NDArray[np.int64]]


def _count_dense(embeddings: Embeddings, links: Links, pool_ids: NDArray[np.int64], progress: Progress) -> Counts:
    better = np.zeros(len(links), dtype=np.int64)
    equal = np.zeros(len(links), dtype=np.int64)
    longest = _longest(embeddings, pool_ids)
    dim = embeddings.source.shape[1]
    pool = _rows(embeddings.target, pool_ids)  # (num_targets, dim)
    pool_factors = _factors(pool, embeddings)  # (num_targets,)
    scaled = pool if embeddings.measure == "manhattan" else _scaled(pool, pool_factors)
    for part in _stretches(len(links), BLOCK_LINKS):
        source = _rows(embeddings.source, links.source_ids[part])  # (links, dim)
        right = _rows(embeddings.target, links.target_ids[part])  # (links, dim)
        source_factors, right_factors = _factors(source, embeddings), _factors(right, embeddings)  # (links,)
        if embeddings.measure == "manhattan":
            own = _distance_rows(source, right)
        else:
            own = _multiply_rows(source, right, source_factors, right_factors)
            reach = row_lengths(source) * source_factors * longest
            # No score in single precision is further from the exact one, however the products are added.
            doubt = (dim + 8) * 2.0**-23 * reach
            scaled_source = _scaled(source, source_factors)
        for stretch in _stretches(len(pool_ids), BLOCK_TARGETS):
            if embeddings.measure == "manhattan":
                scores = np.empty((len(source), len(pool[stretch])), dtype=np.float32)
                manhattan_block(source, pool[stretch], scores)
                _count_distances(scores, source, pool[stretch], own, better[part], equal[part])
                continue
            with np.errstate(over="ignore", invalid="ignore"):  # what overflows here is computed exactly below
                scores = scaled_source @ scaled[stretch].T
            _count_products(
                scores,
                *(source, pool[stretch], source_factors, pool_factors[stretch]),
                *(own, doubt, TIE_TOLERANCE * reach),
                *(better[part], equal[part]),
            )
        progress("evaluate", part.stop, len(links))
    return better, equal


def _count_sparse(embeddings: Embeddings, links: Links, pool_ids: NDArray[np.int64], progress: Progress) -> Counts:
    """As for dense vectors, in double precision throughout and without the pairs that cannot matter.

    Features are renumbered, rarest in the pool first. A source then meets the few targets that share its rare
    features; the common ones, which nearly all targets share, are added only where they could still tip the scales.
    """
    better = np.zeros(len(links), dtype=np.int64)
    equal = np.zeros(len(links), dtype=np.int64)
    pool = _prepare_sparse(embeddings.target, pool_ids, embeddings.measure)
    longest = _longest(embeddings, pool_ids)
    number = np.empty(pool.shape[1], dtype=pool.indices.dtype)
    number[np.argsort(np.bincount(pool.indices, minlength=pool.shape[1]), kind="stable")] = np.arange(pool.shape[1])
    pool = _renumber(pool, number)
    inverted = pool.tocsc()  # (num_targets, dim)
    num_strips = 8 * numba.get_num_threads()  # links differ in cost: several strips per thread even that out
    for part in _stretches(len(links), max(1, SPARSE_BLOCK_CELLS // max(len(pool_ids), 1))):
        source = _renumber(_prepare_sparse(embeddings.source, links.source_ids[part], embeddings.measure), number)
        right = _renumber(_prepare_sparse(embeddings.target, links.target_ids[part], embeddings.measure), number)
        _count_sparse_products(
            *(source.indptr, source.indices, source.data),
            *(right.indptr, right.indices, right.data),
            *(pool.indptr, pool.indices, pool.data),
            *(inverted.indptr, inverted.indices, inverted.data),
            *(longest, num_strips, better[part], equal[part]),
        )
        progress("evaluate", part.stop, len(links))
    return better, equal


def _stretches(count: int, length: int) -> Iterator[slice]:
    for start in range(0, count, length):
        yield slice(start, min(start + length, count))


def _rows(vectors: Vectors, ids: NDArray[np.integer]) -> NDArray[np.float32]:
    return np.ascontiguousarray(vectors[ids], dtype=np.float32)


def _factors(vectors: NDArray[np.float32], embeddings: Embeddings) -> Doubles:
    """What the inner products of each vector are multiplied by to give the measure; shape (num_vectors,)."""
    if embeddings.measure != "cosine":
        return np.ones(len(vectors))
    return np.asarray(1.0 / np.maximum(row_lengths(vectors), SHORTEST))


def _scaled(vectors: NDArray[np.float32], factors: Doubles) -> NDArray[np.float32]:
    return np.asarray(vectors * factors[:, None], dtype=np.float32)


def _prepare_sparse(vectors: Any, ids: NDArray[np.integer], measure: str) -> Any:
    chosen = vectors[ids].astype(np.float64).tocsr()
    chosen.sum_duplicates()
    return unit_rows(chosen) if measure == "cosine" else chosen


def _renumber(vectors: Any, number: NDArray[np.integer]) -> Any:
    """The same vectors with feature f called `number[f]`, the features of each row in ascending order."""
    from scipy.sparse import csr_matrix

    result = csr_matrix((vectors.data, number[vectors.indices], vectors.indptr), shape=vectors.shape)
    result.sort_indices()
    return result


def _longest(embeddings: Embeddings, pool_ids: NDArray[np.int64]) -> float:
    """The greatest length of a vector of the pool."""
    if embeddings.measure == "cosine" or len(pool_ids) == 0:
        return 1.0
    chosen = embeddings.target[pool_ids]
    if not isinstance(chosen, np.ndarray):
        values, rows = chosen.data.astype(np.float64), np.repeat(np.arange(chosen.shape[0]), np.diff(chosen.indptr))
        return float(np.sqrt(np.bincount(rows, weights=values * values).max(initial=0.0)))
    return float(row_lengths(chosen).max())


@numba.njit(cache=True, inline="always")
def _product(a, b):  # type: ignore[no-untyped-def]
    """The inner product in double precision, added in one fixed order: equal vectors give equal results."""
    total = 0.0
    for place in range(len(a)):
        total += np.float64(a[place]) * np.float64(b[place])
    return total


@numba.njit(cache=True)
def _multiply_rows(a, b, a_factors, b_factors):  # type: ignore[no-untyped-def]
    result = np.empty(len(a), dtype=np.float64)
    for i in range(len(a)):
        result[i] = _product(a[i], b[i]) * a_factors[i] * b_factors[i]
    return result


@numba.njit(cache=True, parallel=True)
def _count_products(scores, source, target, source_factors, target_factors, own, doubt, tolerance, better, equal):  # type: ignore[no-untyped-def]
    """Most scores are clear in single precision; the few near the right target's are computed again exactly."""
    for i in numba.prange(len(scores)):
        low, high = np.float32(own[i] - 2 * doubt[i]), np.float32(own[i] + 2 * doubt[i])
        num_better = 0
        num_equal = 0
        for j in range(scores.shape[1]):
            score = scores[i, j]
            if score < low:
                continue
            if score > high:  # a sum that overflowed to no number is neither, and goes on
                num_better += 1
                continue
            exact = _product(source[i], target[j]) * source_factors[i] * target_factors[j]
            num_better += exact > own[i] + tolerance[i]
            num_equal += abs(exact - own[i]) <= tolerance[i]
        better[i] += num_better
        equal[i] += num_equal


@numba.njit(cache=True)
def _sparse_product(a_features, a_data, b_features, b_data):  # type: ignore[no-untyped-def]
    total = 0.0
    p, q = next_shared(a_features, 0, len(a_features), b_features, 0, len(b_features))
    while p < len(a_features):
        total += a_data[p] * b_data[q]
        p, q = next_shared(a_features, p + 1, len(a_features), b_features, q + 1, len(b_features))
    return total


@numba.njit(cache=True, parallel=True)
def _count_sparse_products(  # type: ignore[no-untyped-def]
    source_starts,
    source_features,
    source_data,
    right_starts,
    right_features,
    right_data,
    pool_starts,
    pool_features,
    pool_data,
    feature_starts,
    feature_targets,
    feature_data,
    longest,
    num_strips,
    better,
    equal,
):
    num_links, num_targets = len(better), len(pool_starts) - 1
    for strip in numba.prange(num_strips):
        scores = np.zeros(num_targets, dtype=np.float64)
        for i in range(strip, num_links, num_strips):
            start, end = source_starts[i], source_starts[i + 1]
            features, data = source_features[start:end], source_data[start:end]
            start, end = right_starts[i], right_starts[i + 1]
            own = _sparse_product(features, data, right_features[start:end], right_data[start:end])
            tolerance = TIE_TOLERANCE * np.sqrt((data * data).sum()) * longest
            # The last features are left out while together they give no target (Cauchy and Schwarz) more than half
            # of the right one's score: who has not the other half from the first features is clearly behind.
            first = len(features)
            squares = 0.0
            left_out = 0.0
            while first > 0:
                squares += data[first - 1] * data[first - 1]
                if np.sqrt(squares) * longest > 0.5 * own:
                    break
                first -= 1
                left_out = np.sqrt(squares) * longest
            for p in range(first):
                feature, weight = features[p], data[p]
                for q in range(feature_starts[feature], feature_starts[feature + 1]):
                    scores[feature_targets[q]] += weight * feature_data[q]
            # Twice the tolerance: rounding of the bound itself must not hide a tie.
            bar = own - left_out - 2 * tolerance
            num_better = 0
            num_equal = 0
            for j in range(num_targets):
                score = scores[j]
                scores[j] = 0.0
                if score < bar:
                    continue
                if first < len(features):
                    start, end = pool_starts[j], pool_starts[j + 1]
                    score = _sparse_product(features, data, pool_features[start:end], pool_data[start:end])
                num_better += score > own + tolerance
                num_equal += abs(score - own) <= tolerance
            better[i] = num_better
            equal[i] = num_equal


@numba.njit(cache=True)
def _distance(a, b):  # type: ignore[no-untyped-def]
    """The sum of absolute differences in double precision."""
    total = 0.0
    for place in range(len(a)):
        total += abs(np.float64(a[place]) - np.float64(b[place]))
    return total


@numba.njit(cache=True)
def _distance_rows(a, b):  # type: ignore[no-untyped-def]
    result = np.empty(len(a), dtype=np.float64)
    for i in range(len(a)):
        result[i] = _distance(a[i], b[i])
    return result


@numba.njit(cache=True, parallel=True)
def _count_distances(scores, source, target, own, better, equal):  # type: ignore[no-untyped-def]
    """As `_count_products`; scores are minus the distances in single precision."""
    # No distance in single precision is further from the exact one.
    doubt = (source.shape[1] + 8) * 2.0**-23
    for i in numba.prange(len(source)):
        tolerance = TIE_TOLERANCE * own[i]
        near, far = np.float32(own[i] * (1.0 - 2 * doubt)), np.float32(own[i] * (1.0 + 2 * doubt))
        num_better = 0
        num_equal = 0
        for j in range(len(target)):
            distance = -scores[i, j]
            if distance > far:
                continue
            if distance < near:
                num_better += 1
                continue
            exact = _distance(source[i], target[j])
            num_better += exact < own[i] - tolerance
            num_equal += abs(exact - own[i]) <= tolerance
        better[i] += num_better
        equal[i] += num_equal
