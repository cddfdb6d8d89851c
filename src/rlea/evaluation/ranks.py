"""Hits@k, MR and MRR of vectors: the rank of the correct target among all targets, for every gold link.

Ties never help. Targets with the same score as the correct one are taken to be in random order, and every metric is its
expected value over that order; so the order of files, pools and ids changes nothing. Ranks are computed in blocks, and
scores close to the correct one are compared again in double precision; the matrix of all scores is never held.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
from numpy.typing import NDArray

from rlea.errors import InputError
from rlea.evaluation.metrics import as_record
from rlea.graph import Links
from rlea.progress import Progress, silent
from rlea.search.candidates import manhattan_block, tie_hash
from rlea.search.rows import SHORTEST, next_shared, row_lengths, unit_rows

if TYPE_CHECKING:
    from rlea.search.embeddings import Embeddings, Vectors

Doubles = NDArray[np.float64]

BLOCK_LINKS = 1024
BLOCK_TARGETS = 4096  # a block of scores (1024 x 4096 floats) takes 16 MiB
SPARSE_BLOCK_CELLS = 16_000_000  # sparse vectors: a block spans the whole pool, and no block of scores is held
# Scores closer than this, relative to the lengths of the vectors, differ only by rounding (below 1e-13 up to a thousand
# dimensions), so they count as equal.
TIE_TOLERANCE = 1e-12
# Ranking takes time in proportion to links times targets: hours at a million of each. Beyond this many pairs only a
# sample of the links is ranked; the standard error of a share is then half a percentage point.
MOST_PAIRS = 5 * 10**9
SAMPLE = 10_000


@dataclass(frozen=True)
class RankMetrics:
    """Metrics of the ranks of correct targets among all targets of the pool."""

    hits_at_1: float
    hits_at_5: float
    hits_at_10: float
    hits_at_50: float
    mr: float  # mean rank, 1 is best
    mrr: float  # mean of 1 / rank
    num_links: int  # links that were ranked
    num_targets: int  # size of the pool
    unreachable: int  # links whose target is not in the pool; they rank behind all of it
    pool: str
    sampled_from: int | None = None  # number of all links, if only a sample was ranked

    def as_dict(self) -> dict[str, Any]:
        """A flat dict for JSON; hits are spelt `hits@k`."""
        return as_record(self, () if self.sampled_from is not None else ("sampled_from",))


def rank_metrics(
    embeddings: Embeddings,
    links: Links,
    target_pool_ids: NDArray[np.integer],
    *,
    pool: str = "test",
    progress: Progress = silent,
) -> RankMetrics:
    """Rank the correct target of every link among `target_pool_ids`, an array of entity ids (duplicates count once).

    If g targets score higher than the correct one and e - 1 others the same, its rank is g + 1, ..., g + e with equal
    probability. Hits@k is the probability of a rank of at most k, MR the expected rank ("realistic": between optimistic
    and pessimistic), MRR the expected 1 / rank; all are averaged over the links. Vectors of zeros have cosine 0 with
    everything. If links times targets exceed `MOST_PAIRS`, `SAMPLE` links are ranked, chosen by a hash of the link.
    """
    if len(links) == 0:
        raise InputError("there are no links to rank", remedy="evaluate against at least one gold link")
    pool_ids = np.unique(np.asarray(target_pool_ids, dtype=np.int64))
    sampled_from = None
    if len(links) > SAMPLE and len(links) * len(pool_ids) > MOST_PAIRS:
        sampled_from = len(links)
        # By a hash of the pair, so that the order of the links does not matter.
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
    """For every link, how many targets of the pool score higher than the correct one, and how many the same.

    The correct target counts among the latter if it is in the pool. Two arrays of shape (num_links,).
    """
    for side, ids, vectors in (
        ("source", links.source_ids, embeddings.source),
        ("target", np.union1d(pool_ids, links.target_ids), embeddings.target),
    ):
        values = vectors[ids] if isinstance(vectors, np.ndarray) else vectors[ids].data
        if not np.isfinite(values).all():
            raise InputError(
                f"the {side} vectors hold values that are not finite numbers",
                remedy="train them again or repair the file they came from",
            )
    count = _count_dense if not embeddings.is_sparse else _count_sparse
    better, equal = count(embeddings, links, pool_ids, progress)
    # A target always equals itself, whatever rounding says.
    return better, np.maximum(equal, np.isin(links.target_ids, pool_ids))


Counts = tuple[NDArray[np.int64], NDArray[np.int64]]


def _count_dense(embeddings: Embeddings, links: Links, pool_ids: NDArray[np.int64], progress: Progress) -> Counts:
    better, equal = np.zeros((2, len(links)), dtype=np.int64)
    is_distance = embeddings.measure == "manhattan"
    longest = _longest(embeddings, pool_ids)
    pool = _rows(embeddings.target, pool_ids)  # (num_targets, dim)
    pool_factors = _factors(pool, embeddings)  # (num_targets,)
    scaled = pool if is_distance else _scaled(pool, pool_factors)
    # Upper bound on the relative error of a score in single precision, whatever the order of additions.
    error = (pool.shape[1] + 8) * 2.0**-23
    for part in _stretches(len(links), BLOCK_LINKS):
        source = _rows(embeddings.source, links.source_ids[part])  # (links, dim)
        right = _rows(embeddings.target, links.target_ids[part])  # (links, dim)
        factors = _factors(source, embeddings)  # (links,)
        own = _score_rows(source, right, factors, _factors(right, embeddings), is_distance)
        reach = -own if is_distance else row_lengths(source) * factors * longest
        scaled_source = source if is_distance else _scaled(source, factors)
        for stretch in _stretches(len(pool_ids), BLOCK_TARGETS):
            if is_distance:
                scores = manhattan_block(source, pool[stretch])
            else:
                with np.errstate(over="ignore", invalid="ignore"):  # what overflows here is computed exactly below
                    scores = scaled_source @ scaled[stretch].T
            _count_scores(
                scores,
                *(source, pool[stretch], factors, pool_factors[stretch], is_distance),
                *(own, error * reach, TIE_TOLERANCE * reach),
                *(better[part], equal[part]),
            )
        progress("evaluate", part.stop, len(links))
    return better, equal


def _count_sparse(embeddings: Embeddings, links: Links, pool_ids: NDArray[np.int64], progress: Progress) -> Counts:
    """As for dense vectors, but in double precision throughout, and skipping pairs that cannot matter.

    Features are renumbered, rarest in the pool first. A source then meets only the few targets that share its rare
    features; common features, which nearly all targets share, are added only where they could change the outcome.
    """
    better, equal = np.zeros((2, len(links)), dtype=np.int64)
    pool = _prepare_sparse(embeddings.target, pool_ids, embeddings.measure)
    longest = _longest(embeddings, pool_ids)
    number = np.empty(pool.shape[1], dtype=pool.indices.dtype)
    number[np.argsort(np.bincount(pool.indices, minlength=pool.shape[1]), kind="stable")] = np.arange(pool.shape[1])
    pool = _renumber(pool, number)
    inverted = pool.tocsc()  # (num_targets, dim)
    num_strips = 8 * numba.get_num_threads()  # links differ in cost: several strips per thread balance the load
    for part in _stretches(len(links), max(1, SPARSE_BLOCK_CELLS // max(len(pool_ids), 1))):
        source = _renumber(_prepare_sparse(embeddings.source, links.source_ids[part], embeddings.measure), number)
        right = _renumber(_prepare_sparse(embeddings.target, links.target_ids[part], embeddings.measure), number)
        matrices = ((rows.indptr, rows.indices, rows.data) for rows in (source, right, pool, inverted))
        given: Any = (*matrices, longest, num_strips, better[part], equal[part])
        _count_sparse_products(*given)
        progress("evaluate", part.stop, len(links))
    return better, equal


def _stretches(count: int, length: int) -> Iterator[slice]:
    for start in range(0, count, length):
        yield slice(start, min(start + length, count))


def _rows(vectors: Vectors, ids: NDArray[np.integer]) -> NDArray[np.float32]:
    return np.ascontiguousarray(vectors[ids], dtype=np.float32)


def _factors(vectors: NDArray[np.float32], embeddings: Embeddings) -> Doubles:
    """Factor that turns inner products of each vector into the measure, (num_vectors,)."""
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
    """The same vectors with feature f renamed `number[f]`, each row sorted by feature."""
    from scipy.sparse import csr_matrix

    result = csr_matrix((vectors.data, number[vectors.indices], vectors.indptr), shape=vectors.shape)
    result.sort_indices()
    return result


def _longest(embeddings: Embeddings, pool_ids: NDArray[np.int64]) -> float:
    """The greatest length of any vector in the pool."""
    if embeddings.measure == "cosine" or len(pool_ids) == 0:
        return 1.0
    chosen = embeddings.target[pool_ids]
    if not isinstance(chosen, np.ndarray):
        values, rows = chosen.data.astype(np.float64), np.repeat(np.arange(chosen.shape[0]), np.diff(chosen.indptr))
        return float(np.sqrt(np.bincount(rows, weights=values * values).max(initial=0.0)))
    return float(row_lengths(chosen).max())


@numba.njit(cache=True, inline="always")
def _score(a, b, a_factor, b_factor, is_distance):  # type: ignore[no-untyped-def]
    """Inner product or minus the distance in double precision, added in a fixed order: equal vectors score equally."""
    total = 0.0
    if is_distance:
        for place in range(len(a)):
            total -= abs(np.float64(a[place]) - np.float64(b[place]))
        return total
    for place in range(len(a)):
        total += np.float64(a[place]) * np.float64(b[place])
    return total * a_factor * b_factor


@numba.njit(cache=True)
def _score_rows(a, b, a_factors, b_factors, is_distance):  # type: ignore[no-untyped-def]
    result = np.empty(len(a), dtype=np.float64)
    for i in range(len(a)):
        result[i] = _score(a[i], b[i], a_factors[i], b_factors[i], is_distance)
    return result


@numba.njit(cache=True, parallel=True)
def _count_scores(  # type: ignore[no-untyped-def]
    scores, source, target, source_factors, target_factors, is_distance, own, doubt, tolerance, better, equal
):
    """Most scores are clear in single precision; the few close to the correct target's are computed again exactly."""
    for i in numba.prange(len(scores)):
        low, high = np.float32(own[i] - 2 * doubt[i]), np.float32(own[i] + 2 * doubt[i])
        num_better = 0
        num_equal = 0
        for j in range(scores.shape[1]):
            score = scores[i, j]
            if score < low:
                continue
            if score > high:  # an overflow to NaN is neither, and is computed exactly
                num_better += 1
                continue
            exact = _score(source[i], target[j], source_factors[i], target_factors[j], is_distance)
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
def _count_sparse_products(source, right, pool, inverted, longest, num_strips, better, equal):  # type: ignore[no-untyped-def]
    """Each of the first four is (starts, features or targets, data) of a matrix."""
    source_starts, source_features, source_data = source
    right_starts, right_features, right_data = right
    pool_starts, pool_features, pool_data = pool
    feature_starts, feature_targets, feature_data = inverted
    num_links, num_targets = len(better), len(pool_starts) - 1
    for strip in numba.prange(num_strips):
        scores = np.zeros(num_targets, dtype=np.float64)
        for i in range(strip, num_links, num_strips):
            start, end = source_starts[i], source_starts[i + 1]
            features, data = source_features[start:end], source_data[start:end]
            start, end = right_starts[i], right_starts[i + 1]
            own = _sparse_product(features, data, right_features[start:end], right_data[start:end])
            tolerance = TIE_TOLERANCE * np.sqrt((data * data).sum()) * longest
            # Leave out trailing features while together they give no target more than half of the correct one's score
            # (Cauchy-Schwarz): a target without the other half from the first features is clearly behind.
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
            # Twice the tolerance, so that rounding of the bound itself cannot hide a tie.
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
