"""Compiled loops that several models share: products, distances and draws."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numba
import numpy as np

from rlea.search.candidates import mix

# Sums may be reordered and fused for vector instructions; not-a-number and infinity keep their meaning.
FAST = {"reassoc", "nsz", "contract"}
GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # keeps zero from being its own hash


@contextmanager
def one_thread() -> Iterator[None]:
    """Matrix products on one thread: with more, sums would depend on their number."""
    import scipy.linalg.cython_blas  # noqa: F401  # numba's np.dot calls it; loaded later it escapes the limit
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    with threadpool_limits(limits=1, user_api="blas"):
        yield


@numba.njit(cache=True, fastmath=FAST, error_model="numpy")
def dot(a: Any, b: Any) -> Any:
    """Inner product."""
    total = np.float32(0.0)
    for k in range(a.shape[0]):
        total += a[k] * b[k]
    return total


@numba.njit(cache=True, fastmath=FAST, error_model="numpy")
def add_scaled(total: Any, factor: Any, vector: Any) -> None:
    """total += factor * vector."""
    for k in range(total.shape[0]):
        total[k] += factor * vector[k]


@numba.njit(cache=True, fastmath=FAST, error_model="numpy")
def _manhattan(a: Any, b: Any) -> Any:
    total = np.float32(0.0)
    for d in range(a.shape[0]):
        total += abs(a[d] - b[d])
    return total


@numba.njit(cache=True)
def manhattan(a: Any, b: Any, bound: Any, step: Any) -> Any:
    """The Manhattan distance, or any number above `bound` once the sum is above it; looked at after every `step` terms.

    Most rivals are dismissed after a part of their coordinates.
    """
    total = np.float32(0.0)
    for begin in range(0, a.shape[0], step):
        # Slices, since a loop that counts from elsewhere than 0 is not put into vector registers: 16 times slower.
        total += _manhattan(a[begin : begin + step], b[begin : begin + step])
        if total > bound:
            return total
    return total


@numba.njit(cache=True, inline="always")
def below(bits: Any, bound: Any) -> Any:
    """A number in [0, bound) from the upper 32 of 64 random bits."""
    return np.int64(((bits >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32))


@numba.njit(cache=True, inline="always")
def bits_of(number: Any) -> Any:
    """64 random bits of a number."""
    return mix(number + GOLDEN)
