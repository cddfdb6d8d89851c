"""Vectors that count by their direction alone: a table row moves, and one over its new length is kept beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from rlea.graph import Ids

Matrix = NDArray[np.float32]

# Sums may be reordered and fused for vector instructions; not-a-number and infinity keep their meaning.
FAST = {"reassoc", "nsz", "contract"}


@dataclass(frozen=True, eq=False)
class Table:
    """A row per entity, then a row per relation; changed in place. What counts is each row scaled to unit length.

    Unit vectors are not stored but made from raw ones as they are read: the tables outgrow the processor's cache, and
    bringing another one through memory would cost more than the multiplication.
    """

    raw: Matrix  # (num_rows, dim)
    scales: NDArray[np.float32]  # (num_rows,) one over the length of the raw vector

    @staticmethod
    def of(raw: Matrix, scales: NDArray[np.float32] | None = None) -> Table:
        """Copies of the arrays; `scales` are those of an earlier run to the last bit, or else computed."""
        if scales is None:
            lengths = np.sqrt(np.einsum("rd,rd->r", raw, raw))
            scales = (1 / np.maximum(lengths, np.float32(1e-6))).astype(np.float32)
        return Table(raw.copy(), scales.copy())

    def units(self, rows: slice | Ids) -> Matrix:
        """Unit vectors of some rows."""
        result: Matrix = self.raw[rows] * self.scales[rows, None]
        return result


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
def adagrad_row(raw: Any, squares: Any, scale: Any, gradient: Any, rate: Any) -> Any:
    """Chain rule through x / |x|, then x -= rate g / sqrt(sum of g^2); one over the new length."""
    along = dot(gradient, raw) * scale * scale
    length_square = np.float32(0.0)
    for k in range(raw.shape[0]):
        g = (gradient[k] - along * raw[k]) * scale
        s = squares[k] + g * g
        squares[k] = s
        x = raw[k] - rate * g / np.sqrt(s)
        raw[k] = x
        length_square += x * x
    return np.float32(1.0) / np.sqrt(max(length_square, np.float32(1e-12)))
