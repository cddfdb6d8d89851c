"""Pairs of entity ids with a score each: the best of every entity, leads over rivals, looking pairs up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numba
import numpy as np
from numpy.typing import NDArray

from rlea.graph import Ids

if TYPE_CHECKING:
    from rlea.graph.cannot_link import CannotLink
    from rlea.search.candidates import Candidates

Floats = NDArray[np.float32]

MOST_LEAD = 2.0  # leads are cut here: a larger one says no more


@dataclass(frozen=True, eq=False)
class Pairs:
    """Candidate pairs of entity ids, each once, sorted by source and then target."""

    source_ids: Ids  # (num_pairs,)
    target_ids: Ids  # (num_pairs,)

    def __len__(self) -> int:
        return len(self.source_ids)

    @staticmethod
    def of(source_ids: NDArray[np.integer], target_ids: NDArray[np.integer]) -> Pairs:
        width = int(np.max(target_ids, initial=0)) + 1
        keys = np.sort(np.asarray(source_ids, np.int64) * width + np.asarray(target_ids, np.int64))
        if len(keys):  # `np.unique` takes ten times as long
            keys = keys[np.append(True, keys[1:] != keys[:-1])]
        source, target = np.divmod(keys, width)
        return Pairs(source.astype(np.int32), target.astype(np.int32))

    @staticmethod
    def empty() -> Pairs:
        return Pairs(np.zeros(0, np.int32), np.zeros(0, np.int32))

    @staticmethod
    def union(parts: Sequence[Pairs]) -> Pairs:
        """Every pair of the parts once."""
        nothing = np.zeros(0, np.int32)
        return Pairs.of(
            np.concatenate([nothing, *(part.source_ids for part in parts)]),
            np.concatenate([nothing, *(part.target_ids for part in parts)]),
        )

    @staticmethod
    def of_candidates(candidates: Candidates) -> Pairs:
        """Candidates by the ids of their entities."""
        pairs = candidates.pairs
        return Pairs.of(candidates.source_ids[pairs.rows], candidates.target_ids[pairs.columns])

    def some(self, chosen: NDArray[np.bool_]) -> Pairs:
        """The chosen ones."""
        return Pairs(self.source_ids[chosen], self.target_ids[chosen])

    def allowed(self, barred: CannotLink) -> Pairs:
        """Those that may be linked."""
        return self if barred.is_empty else self.some(barred.allows(self.source_ids, self.target_ids))


def is_around(pairs: Pairs, source_ids: Ids, target_ids: Ids) -> NDArray[np.bool_]:
    """Which pairs have one of these entities, or a rival of theirs: an entity that is in a pair with one of them.

    So of every pair of these entities all other pairs of both its ends are among them, (num_pairs,).
    """
    is_source = np.zeros(int(max(pairs.source_ids.max(initial=-1), source_ids.max(initial=-1))) + 1, np.bool_)
    is_target = np.zeros(int(max(pairs.target_ids.max(initial=-1), target_ids.max(initial=-1))) + 1, np.bool_)
    is_source[source_ids], is_target[target_ids] = True, True
    own = is_source[pairs.source_ids] | is_target[pairs.target_ids]
    is_source[pairs.source_ids[own]], is_target[pairs.target_ids[own]] = True, True
    return np.asarray(is_source[pairs.source_ids] | is_target[pairs.target_ids])


def numbers(pairs: Pairs) -> NDArray[np.int64]:
    """One number a pair, in the order of sources and then targets."""
    return pairs.source_ids.astype(np.int64) << 32 | pairs.target_ids


def find_pairs(pairs: Pairs, source_ids: Ids, target_ids: Ids) -> NDArray[np.int64]:
    """The places of given pairs among `pairs`, which has them all."""
    return np.asarray(np.searchsorted(numbers(pairs), numbers(Pairs(source_ids, target_ids))), np.int64)


def discount_hubs(pairs: Pairs, scores: Floats, k: int = 10) -> Floats:
    """CSLS over the pairs at hand: twice the score, less the mean of the k best of either entity."""
    means = (mean_of_best(ids, scores, k)[ids] for ids in (pairs.source_ids, pairs.target_ids))
    return np.asarray(2 * scores - sum(means), np.float32)


def mean_of_best(ids: Ids, scores: Floats, k: int = 10) -> Floats:
    """The mean of the k best scores of every id (fewer where there are fewer; 0 without any)."""
    best = np.asarray(_best(ids, scores, int(ids.max(initial=-1)) + 1, k))
    counts = np.isfinite(best).sum(axis=1)
    return np.asarray(np.where(np.isfinite(best), best, 0).sum(axis=1) / np.maximum(counts, 1), np.float32)


def is_near(pairs: Pairs, values: Floats, k: int) -> NDArray[np.bool_]:
    """Which pairs are among the k best of their source, or of their target."""
    result = np.zeros(len(pairs), np.bool_)
    for ids in (pairs.source_ids, pairs.target_ids):
        best = np.asarray(_best(ids, values, int(ids.max(initial=-1)) + 1, k))
        result |= values >= best[ids, k - 1]
    return result


def leads(ids: Ids, keys: Floats, most: float = MOST_LEAD) -> Floats:
    """By how much each pair's key is above the best other one of the same id; `most` where there is no other."""
    if len(ids) == 0:
        return np.zeros(0, np.float32)
    best, second = _two_best(ids, keys, int(ids.max()) + 1)
    rivals = np.where(keys == best[ids], second[ids], best[ids])
    return np.asarray(np.clip(keys - rivals, -most, most), np.float32)


@numba.njit(cache=True)
def _best(ids, values, count, k):  # type: ignore[no-untyped-def]
    """The k best values of every id, best first, -inf where there are fewer."""
    best = np.full((count, k), -np.inf, np.float32)
    for place in range(len(ids)):
        row, value = best[ids[place]], values[place]
        if value > row[k - 1]:
            j = k - 1
            while j > 0 and row[j - 1] < value:
                row[j] = row[j - 1]
                j -= 1
            row[j] = value
    return best


@numba.njit(cache=True)
def _two_best(ids, keys, count):  # type: ignore[no-untyped-def]
    best, second = np.full(count, -np.inf, np.float32), np.full(count, -np.inf, np.float32)
    for k in range(len(ids)):
        i = ids[k]
        if keys[k] > best[i]:
            second[i], best[i] = best[i], keys[k]
        elif keys[k] > second[i]:
            second[i] = keys[k]
    return best, second
