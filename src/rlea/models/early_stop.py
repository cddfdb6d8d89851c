"""When to stop training: validation Hits@1 that no longer rises."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from rlea.graph import Ids, Links
from rlea.models.kernels import manhattan, one_thread

_BLOCK = 512  # validation sources ranked at a time
_STEP = 64  # terms of a Manhattan distance summed before the sum is looked at


@dataclass
class EarlyStop:
    """The validation scores so far, as much of them as the decision needs."""

    patience: int  # stop after so many evaluations in a row without a new best one
    best_score: float = -1.0
    best_epoch: int = 0
    last_score: float = -1.0
    num_without_best: int = 0

    def record(self, epoch: int, score: float) -> bool:
        """Take in the score of an epoch; whether it is the best so far."""
        self.last_score = score
        if score > self.best_score:
            self.best_score, self.best_epoch, self.num_without_best = score, epoch, 0
            return True
        self.num_without_best += 1
        return False

    @property
    def should_stop(self) -> bool:
        return self.num_without_best >= self.patience


def validation_pool(num_target_entities: int, seeds: Links) -> Ids:
    """The target entities that validation sources are ranked against: all that are in no seed.

    Test links are not needed to know it, and must not be.
    """
    return np.setdiff1d(np.arange(num_target_entities, dtype=np.int32), seeds.target_ids)


def hits_at_1(
    source: NDArray[np.float32],
    target: NDArray[np.float32],
    links: Links,
    pool_ids: Ids,
    measure: str = "cosine",
) -> float:
    """The share of `links` whose target is more similar to the source than every other entity of the pool.

    Vectors (num_entities, dim) of either graph; a tie for the first place is no hit.
    """
    if len(links) == 0:
        raise ValueError("Hits@1 needs at least one link")
    num_links = len(links)
    in_pool = np.isin(links.target_ids, pool_ids)
    links = Links.of(links.source_ids[in_pool], links.target_ids[in_pool])  # who is not in the pool cannot be found
    if len(links) == 0:
        return 0.0
    if measure == "manhattan":
        is_first = np.empty(len(links), dtype=np.bool_)
        queries = np.ascontiguousarray(source[links.source_ids])
        _first_places(queries, np.ascontiguousarray(target), links.target_ids, pool_ids, is_first)
        return int(is_first.sum()) / num_links
    if measure == "cosine":
        source, target = _unit(source), _unit(target)
    candidates = np.ascontiguousarray(target[pool_ids].T)
    columns = np.searchsorted(pool_ids, links.target_ids, sorter=np.argsort(pool_ids))
    columns = np.argsort(pool_ids)[columns]
    num_hits = 0
    with one_thread():  # so that a score on the edge does not depend on their number
        for begin in range(0, len(links), _BLOCK):
            block = slice(begin, begin + _BLOCK)
            similarity = source[links.source_ids[block]] @ candidates  # (block, pool)
            gold = similarity[np.arange(len(similarity)), columns[block]]
            num_hits += int(((similarity >= gold[:, None]).sum(axis=1) == 1).sum())
    return num_hits / num_links


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.sqrt(np.einsum("nd,nd->n", vectors, vectors))
    if (np.abs(lengths - 1) <= 1e-5).all():
        return vectors  # as they are: dividing again would only move the last bit
    units: NDArray[np.float32] = vectors / np.maximum(lengths, np.float32(1e-12))[:, None]
    return units


@numba.njit(parallel=True, cache=True)
def _first_places(queries: Any, vectors: Any, own_ids: Any, pool_ids: Any, result: Any) -> None:
    """Whether row `own_ids[i]` of `vectors` is nearer to query i than every other row of `pool_ids`; a tie is not."""
    for i in numba.prange(len(queries)):
        query = queries[i]
        bound = manhattan(query, vectors[own_ids[i]], np.float32(np.inf), _STEP)
        is_first = True
        for j in pool_ids:
            if j != own_ids[i] and manhattan(query, vectors[j], bound, _STEP) <= bound:
                is_first = False
                break
        result[i] = is_first
