"""Who is nearest by Manhattan distance: compiled, and with no more sums than the answer needs."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from rlea.graph import Ids

_STEP = 64  # terms summed before the sum is looked at


def first_places(
    queries: NDArray[np.float32], vectors: NDArray[np.float32], own_ids: Ids, pool_ids: Ids
) -> NDArray[np.bool_]:
    """Whether row `own_ids[i]` of `vectors` is nearer to query i than every other row of `pool_ids`.

    Queries (n, dim), vectors (num_entities, dim). A tie is no first place. Most rivals are dismissed after a part of
    their coordinates, when the distance is already larger.
    """
    result = np.empty(len(queries), dtype=np.bool_)
    _first_places(queries, vectors, own_ids, pool_ids, result)
    return result


@numba.njit(parallel=True, cache=True)
def _first_places(queries: Any, vectors: Any, own_ids: Any, pool_ids: Any, result: Any) -> None:
    for i in numba.prange(len(queries)):
        query = queries[i]
        bound = _distance(query, vectors[own_ids[i]], np.float32(np.inf))
        is_first = True
        for j in pool_ids:
            if j != own_ids[i] and _distance(query, vectors[j], bound) <= bound:
                is_first = False
                break
        result[i] = is_first


@numba.njit(cache=True)
def _distance(a: Any, b: Any, bound: Any) -> Any:
    """The distance, or any number above `bound` once the sum is above it."""
    total = np.float32(0.0)
    for begin in range(0, len(a), _STEP):
        total += _sum(a[begin : begin + _STEP], b[begin : begin + _STEP])
        if total > bound:
            return total
    return total


@numba.njit(cache=True, fastmath={"reassoc", "nsz", "contract"})
def _sum(a: Any, b: Any) -> Any:
    """Terms may be taken in any order, which makes vector instructions of the loop."""
    total = np.float32(0.0)
    for d in range(len(a)):
        total += abs(a[d] - b[d])
    return total
