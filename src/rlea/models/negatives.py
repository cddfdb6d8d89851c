"""Negative triples: one end of a true triple replaced by an entity that is near it (truncated sampling) or by any.

Draws are hashes of (seed, epoch, number of the triple, draw), not a stream, so that any number of threads draws alike.
"""

from __future__ import annotations

from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from rlea.graph import Ids
from rlea.models.kernels import FAST, below, bits_of, one_thread
from rlea.models.triples import JointTriples
from rlea.search.candidates import mix

if TYPE_CHECKING:
    from rlea.models.aligne import AlignESettings

# After so many draws that hit true triples the negative is left out: in a tiny graph there may be no false triple.
DRAWS = 32
_PARTS = 32  # shares of the rows that threads take, fixed so that the blocks are the same for any number of threads
_BLOCK = 128  # rows of similarities held at a time


class Sampler(NamedTuple):
    """What drawing negatives needs: where each graph's entities lie, and the true triples as a hash set."""

    num_source_entities: int
    num_entities: int
    num_relations: int
    known: NDArray[np.uint64]  # open addressing, length a power of two, EMPTY where free

    @staticmethod
    def of(triples: JointTriples) -> Sampler:
        every = np.concatenate([triples.source, triples.target])
        slots = 1 << max(4, int(4 * len(every) - 1).bit_length())
        known = np.full(slots, _EMPTY, dtype=np.uint64)
        _fill_known(known, every, triples.num_relations, triples.num_entities)
        return Sampler(triples.num_source_entities, triples.num_entities, triples.num_relations, known)

    def draw(
        self, positives: Ids, num_negatives: int, neighbours: Ids | None, *, seed: int, epoch: int
    ) -> tuple[Ids, NDArray[np.bool_]]:
        """Corrupting entities (len(positives), num_negatives), -1 where none was found, and whether they are tails.

        One coin per positive decides which end is replaced. `neighbours` has a row per entity; without it the whole
        graph of the replaced entity is drawn from.
        """
        negatives = np.empty((len(positives), num_negatives), dtype=np.int32)
        corrupt_tail = np.empty(len(positives), dtype=np.bool_)
        near = np.empty((0, 0), dtype=np.int32) if neighbours is None else neighbours
        _draw(self, positives, near, np.uint64(seed), np.uint64(epoch), negatives, corrupt_tail)
        return negatives, corrupt_tail


def nearest_neighbours(
    units: NDArray[np.float32], num_source_entities: int, settings: AlignESettings, *, seed: int, epoch: int
) -> Ids:
    """For every entity, the share of its own graph that is most similar to it, itself left out, ordered by id.

    `units` (num_entities, dim) are unit vectors, the source graph's first. A graph of more than `max_pool` entities
    is represented by that many, drawn anew for every `epoch`: the nearest tenth of a random sample is a random
    sample of the nearest tenth, and time and memory grow with the number of entities instead of its square.
    The result is (num_entities, width); shorter rows are filled up by repeating, and -1 where there is no neighbour.
    """
    random = np.random.default_rng([seed, epoch, 1])
    graphs = []
    start = 0
    for size in (num_source_entities, len(units) - num_source_entities):
        pool = np.arange(size)
        if size > settings.max_pool:
            pool = np.sort(random.choice(size, settings.max_pool, replace=False))
        count = min(len(pool) - 1, max(settings.num_negatives, round(settings.neighbour_share * len(pool))))
        graphs.append((start, size, pool, count))
        start += size
    result = np.full((len(units), max(1, *(count for *_, count in graphs))), -1, dtype=np.int32)
    with one_thread():  # the kernel is parallel over blocks
        for start, size, pool, count in graphs:
            if count > 0:
                vectors = np.ascontiguousarray(units[start : start + size])
                candidates = vectors if len(pool) == size else vectors[pool]
                place = np.full(size, -1, dtype=np.int64)
                place[pool] = np.arange(len(pool))
                quantile = np.float32(NormalDist().inv_cdf(1 - count / len(pool)))
                ids = (start + pool).astype(np.int32)
                _nearest(vectors, candidates.T, count, quantile, place, ids, result[start : start + size])
    return result


_EMPTY = np.uint64(0xFFFFFFFFFFFFFFFF)


@numba.njit(cache=True, inline="always")
def _key(head: Any, relation: Any, tail: Any, num_relations: Any, num_entities: Any) -> Any:
    return np.uint64((np.int64(head) * num_relations + relation) * num_entities + tail)


@numba.njit(cache=True)
def _is_known(known: Any, key: Any) -> Any:
    mask = np.uint64(len(known) - 1)
    slot = mix(key) & mask
    while known[slot] != _EMPTY:
        if known[slot] == key:
            return True
        slot = (slot + np.uint64(1)) & mask
    return False


@numba.njit(cache=True)
def _fill_known(known: Any, triples: Any, num_relations: Any, num_entities: Any) -> None:
    mask = np.uint64(len(known) - 1)
    for i in range(len(triples)):
        key = _key(triples[i, 0], triples[i, 1], triples[i, 2], num_relations, num_entities)
        slot = mix(key) & mask
        while known[slot] != _EMPTY and known[slot] != key:
            slot = (slot + np.uint64(1)) & mask
        known[slot] = key


@numba.njit(parallel=True, cache=True)
def _draw(
    sampler: Any, positives: Any, neighbours: Any, seed: Any, epoch: Any, negatives: Any, corrupt_tail: Any
) -> None:
    num_source, num_entities, num_relations, known = sampler
    epoch_key = bits_of(bits_of(seed) ^ epoch)
    width = neighbours.shape[1]
    for i in numba.prange(len(positives)):
        stream = bits_of(epoch_key ^ np.uint64(i))
        head, relation, tail = positives[i, 0], positives[i, 1], positives[i, 2]
        replace_tail = (stream & np.uint64(1)) == np.uint64(1)
        corrupt_tail[i] = replace_tail
        replaced = tail if replace_tail else head
        start = np.int64(0) if replaced < num_source else np.int64(num_source)
        size = np.int64(num_source) if replaced < num_source else np.int64(num_entities - num_source)
        for j in range(negatives.shape[1]):
            chosen = np.int64(-1)
            for attempt in range(DRAWS):
                bits = bits_of(stream ^ np.uint64(1 + j * DRAWS + attempt))
                # Where even the neighbourhood is all true, the second half of the draws looks in the whole graph.
                if width > 0 and attempt < DRAWS // 2:
                    entity = np.int64(neighbours[replaced, below(bits, width)])
                    if entity < 0:
                        continue
                else:
                    entity = start + below(bits, size)
                if replace_tail:
                    key = _key(head, relation, entity, num_relations, num_entities)
                else:
                    key = _key(entity, relation, tail, num_relations, num_entities)
                if not _is_known(known, key):
                    chosen = entity
                    break
            negatives[i, j] = chosen


@numba.njit(cache=True, fastmath=FAST)
def _count_above(row: Any, threshold: Any) -> Any:
    count = np.int32(0)
    for j in range(len(row)):
        count += np.int32(row[j] > threshold)
    return count


@numba.njit(cache=True, fastmath=FAST, error_model="numpy")
def _moments(row: Any) -> Any:
    total, squares = np.float32(0.0), np.float32(0.0)
    for j in range(len(row)):
        total += row[j]
        squares += row[j] * row[j]
    mean = total / np.float32(len(row))
    return mean, np.sqrt(max(squares / np.float32(len(row)) - mean * mean, np.float32(1e-12)))


@numba.njit(cache=True, error_model="numpy")
def _bracket(row: Any, count: Any, quantile: Any) -> Any:
    """Two cuts about the `count`-th largest value, by interpolation from where a normal distribution would have it.

    Returns low, high, the number of values above low (at least `count`) and above high (fewer than `count`).
    Ends with exactly `count` values above low, or, where values tie at the cut, with low and high neighbouring floats.
    """
    mean, deviation = _moments(row)
    low, high = np.float32(-3.0), np.float32(3.0)
    above_low, above_high = len(row), 0
    cut = mean + quantile * deviation
    step = np.float32(0.1) * deviation
    passes = 0
    while above_low > count:
        if not (low < cut < high):
            cut = np.float32(0.5) * (low + high)
            if not (low < cut < high):
                break
        above = _count_above(row, cut)
        if above >= count:
            low, above_low = cut, above
        else:
            high, above_high = cut, above
        passes += 1
        if above_high == 0:
            cut = low + step
        elif above_low == len(row):
            cut = high - step
        elif passes % 4 == 3:
            cut = np.float32(0.5) * (low + high)
        else:
            cut = low + (high - low) * (np.float32(above_low - count) / np.float32(above_low - above_high))
        step *= np.float32(2.0)
    return low, high, above_low, above_high


@numba.njit(cache=True)
def _collect(row: Any, count: Any, quantile: Any, found: Any) -> None:
    """Ids of the `count` largest values, ascending; among equals at the cut the lowest ids."""
    low, high, above_low, above_high = _bracket(row, count, quantile)
    ties = count - above_high
    size = 0
    if above_low == count:
        for j in range(len(row)):
            # No branch: a wrong guess per hit would cost more than the needless store.
            found[size] = j
            size += row[j] > low
        return
    for j in range(len(row)):
        if row[j] > high:
            found[size] = j
            size += 1
        elif row[j] > low and ties > 0:
            found[size] = j
            size += 1
            ties -= 1


@numba.njit(parallel=True, cache=True)
def _nearest(vectors: Any, transposed: Any, count: Any, quantile: Any, place: Any, pool_ids: Any, result: Any) -> None:
    num_rows = len(vectors)
    for part in numba.prange(_PARTS):
        # One buffer for all blocks of a part: fresh pages for every product would cost more than the product.
        buffer = np.empty((_BLOCK, len(pool_ids)), dtype=np.float32)
        found = np.zeros(len(pool_ids) + 1, dtype=np.int32)  # one more: `_collect` stores before it decides
        for begin in range(part * num_rows // _PARTS, (part + 1) * num_rows // _PARTS, _BLOCK):
            end = min(begin + _BLOCK, (part + 1) * num_rows // _PARTS)
            similarity = buffer[: end - begin]  # (rows, pool)
            np.dot(vectors[begin:end], transposed, similarity)
            for i in range(begin, end):
                row = similarity[i - begin]
                if place[i] >= 0:
                    row[place[i]] = np.float32(-2.0)
                _collect(row, count, quantile, found)
                for j in range(count):
                    result[i, j] = pool_ids[found[j]]
                for j in range(count, result.shape[1]):
                    result[i, j] = result[i, j - count]
