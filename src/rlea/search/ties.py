"""Ties between pairs are broken by a hash of the pair: reproducible, and blind to the order of ids."""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray


def tie_hash(rows: NDArray[np.integer], columns: NDArray[np.integer], seed: int = 0) -> NDArray[np.uint64]:
    """A pseudo-random key for every pair: breaks ties the same way every time, without favouring low or equal ids."""
    return np.asarray(
        _hash_pairs(np.asarray(rows, dtype=np.int64), np.asarray(columns, dtype=np.int64), np.uint64(seed))
    )


@numba.njit(cache=True)
def mix(value):  # type: ignore[no-untyped-def]
    """The finaliser of splitmix64: every input bit affects every output bit."""
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
