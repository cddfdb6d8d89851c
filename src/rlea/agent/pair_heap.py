"""Compiled containers of pairs: a hash table from (source, target) to a pair's number, and a heap of keys.

Plain arrays and functions, since compiled classes cannot be cached on disk. A heap may hold several entries of one
pair; whoever pops an entry checks whether its key is still the pair's key.
"""

from __future__ import annotations

import numba
import numpy as np

from rlea.search.candidates import hash_pair


@numba.njit(cache=True)
def find(table, pair_source, pair_target, s, t):  # type: ignore[no-untyped-def]
    """The place of a pair in the table: its own, or the free one (holding -1) where it belongs."""
    mask = len(table) - 1
    place = np.int64(hash_pair(s, t, 0) & np.uint64(mask))
    while table[place] >= 0:
        pair = table[place]
        if pair_source[pair] == s and pair_target[pair] == t:
            return place
        place = (place + 1) & mask
    return place


@numba.njit(cache=True)
def make_table(pair_source, pair_target, num_pairs):  # type: ignore[no-untyped-def]
    """A table of the first num_pairs pairs, at most a third full, so that it can grow before it is made again."""
    size = 1024
    while size < 3 * num_pairs:
        size *= 2
    table = np.full(size, -1, np.int32)
    for pair in range(num_pairs):
        table[find(table, pair_source, pair_target, pair_source[pair], pair_target[pair])] = pair
    return table


@numba.njit(cache=True)
def grow(array, size):  # type: ignore[no-untyped-def]
    """The same array with room for more."""
    larger = np.empty(size, array.dtype)
    larger[: len(array)] = array
    return larger


@numba.njit(cache=True)
def is_earlier(key, pair, other_key, other, pair_source, pair_target, seed):  # type: ignore[no-untyped-def]
    """Whether an entry comes before another: by key, equal keys by a hash that is blind to the order of ids."""
    if key != other_key:
        return key > other_key
    return hash_pair(pair_source[pair], pair_target[pair], seed) < hash_pair(
        pair_source[other], pair_target[other], seed
    )


@numba.njit(cache=True)
def push(keys, pairs, size, key, pair, pair_source, pair_target, seed):  # type: ignore[no-untyped-def]
    """Add an entry to a heap of the given size; the arrays have room for it."""
    place = size
    while place > 0:
        parent = (place - 1) >> 1
        if not is_earlier(key, pair, keys[parent], pairs[parent], pair_source, pair_target, seed):
            break
        keys[place], pairs[place] = keys[parent], pairs[parent]
        place = parent
    keys[place], pairs[place] = key, pair


@numba.njit(cache=True)
def sink(keys, pairs, size, place, pair_source, pair_target, seed):  # type: ignore[no-untyped-def]
    """Restore a heap below a place whose entry may belong further down."""
    key, pair = keys[place], pairs[place]
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        if child + 1 < size and is_earlier(
            keys[child + 1], pairs[child + 1], keys[child], pairs[child], pair_source, pair_target, seed
        ):
            child += 1
        if not is_earlier(keys[child], pairs[child], key, pair, pair_source, pair_target, seed):
            break
        keys[place], pairs[place] = keys[child], pairs[child]
        place = child
    keys[place], pairs[place] = key, pair
