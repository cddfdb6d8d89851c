"""Adagrad and Adam over a table whose steps touch few rows, written out for processors.

For Adagrad a row without gradient stays as it is. Under Adam it also moves, by the momentum it has left. That path is
known beforehand (see `Adam`), so such rows move when they are next needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from rlea.graph import Ids
from rlea.models.kernels import FAST, add_scaled, dot
from rlea.models.translation_step import CHUNKS, Gradient, Matrix, Table

# Adam as its paper and every framework have it unless asked otherwise.
KEEP_FIRST, KEEP_SECOND, EPSILON = 0.9, 0.999, 1e-8
_LONGEST = 256  # steps after which nothing is left of a momentum: 0.9^256 is 2e-12
_SETTLED = 20_000  # steps after which Adam's correction for its start is below the precision of 32 bits


def adagrad_step(table: Table, squares: Matrix, gradient: Gradient, rate: float) -> None:
    """One step of Adagrad; `squares` (num_rows, dim) are its sums of squared gradients."""
    _move_rows(table, np.empty((0, 0), dtype=np.float32), squares, gradient, gradient.cuts(), np.float32(rate))


@dataclass(eq=False)
class Adam:
    """Adam over a table whose steps touch few rows, with the effect of moving every row at every step.

    A row without gradient moves by rate_t * m / sqrt(v) at step t, and m and v shrink by constant factors. After k
    such steps from step s its vector has moved by

        m / sqrt(v) * sum over j = 1..k of rate_(s + j) * (0.9 / sqrt(0.999))^j

    (but for epsilon, which is there for v = 0 alone), a number for the whole row times what the row remembers.
    """

    rate: float
    first: Matrix  # (num_rows, dim) m, as of step `last`
    second: Matrix  # (num_rows, dim) v, likewise
    last: NDArray[np.int64]  # (num_rows,) the step up to which a row has been moved
    steps: int  # taken so far

    @staticmethod
    def of(arrays: dict[str, NDArray[Any]], prefix: str, table: Table, rate: float) -> Adam:
        """As `arrays` have it, or before the first step where they do not."""
        if f"{prefix}.steps" not in arrays:
            raw = table.raw
            return Adam(rate, np.zeros_like(raw), np.zeros_like(raw), np.zeros(len(raw), dtype=np.int64), 0)
        state = {name: arrays[f"{prefix}.{name}"].copy() for name in ("first", "second", "last")}
        return Adam(rate, **state, steps=int(arrays[f"{prefix}.steps"][0]))

    def arrays(self, prefix: str) -> dict[str, NDArray[Any]]:
        return {
            f"{prefix}.first": self.first,
            f"{prefix}.second": self.second,
            f"{prefix}.last": self.last,
            f"{prefix}.steps": np.array([self.steps], dtype=np.int64),
        }

    def catch_up(self, table: Table, rows: Ids) -> None:
        """Move rows (each named once) by what they have missed. To be done before they are read."""
        _catch_up(*table, self.first, self.second, self.last, rows, np.int64(self.steps), self._rates)

    def step(self, table: Table, gradient: Gradient) -> None:
        """One step; the rows that have a gradient must be up to date."""
        self.steps += 1
        rate = np.float32(self._rates[min(self.steps, _SETTLED)])
        _move_rows(table, self.first, self.second, gradient, gradient.cuts(), rate)
        self.last[np.diff(gradient.begins) > 0] = self.steps

    @cached_property
    def _rates(self) -> NDArray[np.float64]:
        return self.rate * _CORRECTIONS


def _corrections() -> NDArray[np.float64]:
    """What makes up for m and v starting at zero, by step; the entry of step 0 is not used."""
    step = np.maximum(np.arange(_SETTLED + 1, dtype=np.float64), 1)
    result: NDArray[np.float64] = np.sqrt(1 - KEEP_SECOND**step) / (1 - KEEP_FIRST**step)
    return result


_CORRECTIONS = _corrections()


@dataclass(eq=False)
class MatrixAdam:
    """Adam over one small matrix, all of which has a gradient at every step."""

    rate: float
    value: Matrix
    first: Matrix
    second: Matrix

    @staticmethod
    def of(arrays: dict[str, NDArray[Any]], prefix: str, rate: float) -> MatrixAdam:
        """The matrix of that name, with its past where `arrays` have one."""
        value = arrays[prefix].copy()
        past = (arrays.get(f"{prefix}.{name}", np.zeros_like(value)).copy() for name in ("first", "second"))
        return MatrixAdam(rate, value, *past)

    def arrays(self, prefix: str) -> dict[str, NDArray[Any]]:
        return {prefix: self.value, f"{prefix}.first": self.first, f"{prefix}.second": self.second}

    def step(self, gradient: Matrix, steps: int) -> None:
        """The step with number `steps`, the first being 1."""
        self.first += np.float32(1 - KEEP_FIRST) * (gradient - self.first)
        self.second += np.float32(1 - KEEP_SECOND) * (gradient * gradient - self.second)
        rate = np.float32(self.rate * _CORRECTIONS[min(steps, _SETTLED)])
        self.value -= rate * self.first / (np.sqrt(self.second) + np.float32(EPSILON))


@numba.njit(cache=True, fastmath=FAST, error_model="numpy")
def _adagrad(raw: Any, squares: Any, scale: Any, gradient: Any, rate: Any) -> Any:
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


@numba.njit(cache=True, fastmath=FAST, error_model="numpy")
def _adam(raw: Any, first: Any, second: Any, scale: Any, gradient: Any, rate: Any) -> Any:
    """Chain rule through x / |x|, then Adam; one over the new length."""
    along = dot(gradient, raw) * scale * scale
    length_square = np.float32(0.0)
    for k in range(raw.shape[0]):
        g = (gradient[k] - along * raw[k]) * scale
        m = first[k] + np.float32(1 - KEEP_FIRST) * (g - first[k])
        v = second[k] + np.float32(1 - KEEP_SECOND) * (g * g - second[k])
        first[k] = m
        second[k] = v
        x = raw[k] - rate * m / (np.sqrt(v) + np.float32(EPSILON))
        raw[k] = x
        length_square += x * x
    return np.float32(1.0) / np.sqrt(max(length_square, np.float32(1e-12)))


@numba.njit(parallel=True, cache=True)
def _move_rows(table: Any, first: Any, second: Any, gradient: Any, cuts: Any, rate: Any) -> None:
    """A step for the rows that have a gradient: of Adam, or of Adagrad if there are no first moments."""
    raw, scales, begins = table.raw, table.scales, gradient.begins
    for chunk in numba.prange(len(cuts) - 1):
        total = np.empty(raw.shape[1], dtype=np.float32)
        for row in range(cuts[chunk], cuts[chunk + 1]):
            if begins[row] == begins[row + 1]:
                continue
            total[:] = np.float32(0.0)
            for term in range(begins[row], begins[row + 1]):
                add_scaled(total, gradient.factors[term], gradient.vectors[gradient.picks[term]])
            if len(first) > 0:
                scales[row] = _adam(raw[row], first[row], second[row], scales[row], total, rate)
            else:
                scales[row] = _adagrad(raw[row], second[row], scales[row], total, rate)


@numba.njit(cache=True, fastmath=FAST, error_model="numpy")
def _coast(raw: Any, first: Any, second: Any, distance: Any, keep_first: Any, keep_second: Any) -> Any:
    length_square = np.float32(0.0)
    for k in range(raw.shape[0]):
        x = raw[k] - distance * first[k] / (np.sqrt(second[k]) + np.float32(EPSILON))
        raw[k] = x
        length_square += x * x
        first[k] *= keep_first
        second[k] *= keep_second
    return np.float32(1.0) / np.sqrt(max(length_square, np.float32(1e-12)))


@numba.njit(parallel=True, cache=True)
def _catch_up(raw: Any, scales: Any, first: Any, second: Any, last: Any, rows: Any, steps: Any, rates: Any) -> None:
    shrink = KEEP_FIRST / np.sqrt(KEEP_SECOND)
    for chunk in numba.prange(CHUNKS):
        for i in range(chunk * len(rows) // CHUNKS, (chunk + 1) * len(rows) // CHUNKS):
            row = rows[i]
            since = last[row]
            missed = steps - since
            last[row] = steps
            if missed == 0 or since == 0:  # nothing happened, or nothing has happened yet
                continue
            distance, weight = 0.0, 1.0
            for j in range(1, min(missed, _LONGEST) + 1):
                weight *= shrink
                distance += rates[min(since + j, _SETTLED)] * weight
            # Beyond the longest path the rest of the momentum is nothing, and numbers that small are slow.
            keep_first = KEEP_FIRST**missed if missed <= _LONGEST else 0.0
            shares = np.float32(keep_first), np.float32(KEEP_SECOND**missed)
            scales[row] = _coast(raw[row], first[row], second[row], np.float32(distance), *shares)
