"""Rows of vectors, dense and sparse: lengths and products with the same bits on every machine.

A BLAS library multiplies matrices fast, but the order of its additions differs from processor to processor, and every
step rounds. So rows are first scaled to whole numbers, small enough that a float holds every product and every partial
sum exactly: by the Cauchy-Schwarz inequality no partial sum exceeds the product of both lengths. Where nothing is
rounded, every order gives the same result.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]

LANES = 16  # sums side by side: vector instructions in a fixed order
SHORTEST = 1e-12  # rows shorter than this are divided by it when they are made unit vectors
FINE = 2.0**26  # length of scaled rows in double precision: rounding adds sqrt(dim) / 2, and up to 2**26.5 is exact
COARSE = 4095.0  # likewise in single precision, less what rounding adds: up to 4096 is exact
_ROUND = 1.5 * 2.0**52  # adding and subtracting it rounds to the nearest whole number


@dataclass(frozen=True, eq=False)
class Scale:
    """How the rows of one side become whole numbers."""

    factors: Doubles  # (num_rows,) what each row is multiplied by; nan where it holds a value that is not finite
    unit: float  # whole numbers times this are on the scale of the measure
    is_coarse: bool

    @staticmethod
    def of(vectors: Floats, measure: str, *, coarse: bool = False) -> Scale:
        """For rows compared by `cosine` or `inner`. Coarse rows multiply twice as fast and are exact to 1 in 4,000.

        Rows compared by inner product all have the same factor, set by the longest.
        """
        lengths = row_lengths(vectors)
        finite = np.isfinite(lengths)
        reach = coarse_reach(vectors.shape[1]) if coarse else FINE
        if measure == "cosine":
            factors, unit = reach / np.maximum(lengths, SHORTEST), 1.0 / reach
        else:
            longest = float(lengths[finite].max(initial=0.0)) or 1.0
            # A power of two where possible: it does not round whole numbers and halves.
            factor = reach / longest if coarse else math.ldexp(1.0, 26 - math.frexp(longest)[1])
            factors, unit = np.full(len(lengths), factor), 1.0 / factor
        factors[~finite] = np.nan
        return Scale(factors, unit, coarse)

    def whole(self, vectors: Floats, ids: Any = slice(None)) -> NDArray[Any]:
        """The rows with the given ids as whole numbers, (num_ids, dim); zeros where the factor is nan.

        Coarse rows are float32. Fine rows are int32, which takes no more memory than the vectors; make them float64 to
        multiply.
        """
        own = np.ascontiguousarray(vectors[ids], dtype=np.float32)
        result = np.empty(own.shape, np.float32 if self.is_coarse else np.int32)
        scale_rows(own, self.factors[ids], result)
        return result


class BlockProduct:
    """Multiplies blocks of whole numbers in memory allocated once; a result is valid until the next call."""

    def __init__(self, most: int, coarse: bool) -> None:
        """`most` is the size of the largest block."""
        self._result = np.empty(most, np.float32)
        self._exact = None if coarse else np.empty(most, np.float64)

    def __call__(self, rows: NDArray[Any], columns: NDArray[Any]) -> Floats:
        """The products of all rows with all columns, (num_rows, num_columns); fine ones are rounded once."""
        shape, size = (len(rows), len(columns)), len(rows) * len(columns)
        result = self._result[:size].reshape(shape)
        if self._exact is None:
            return np.matmul(rows, columns.T, out=result)
        exact = self._exact[:size].reshape(shape)
        np.matmul(rows.astype(np.float64), columns.astype(np.float64).T, out=exact)
        np.copyto(result, exact, casting="same_kind")
        return result


def coarse_reach(dim: int) -> float:
    """The greatest length of coarse rows before rounding."""
    return COARSE - (math.isqrt(dim) // 2 + 1)


def row_lengths(vectors: Floats) -> Doubles:
    """The Euclidean length of every row, (num_rows,); inf or nan where it holds a value that is not finite."""
    return np.asarray(np.sqrt(_square_lengths(np.ascontiguousarray(vectors, dtype=np.float32))))


def unit_rows(vectors: Any) -> Any:
    """Rows of length 1, dense or csr (with its columns sorted); rows of zeros stay as they are."""
    if isinstance(vectors, np.ndarray):
        lengths = np.maximum(row_lengths(vectors), SHORTEST)
        return np.asarray(vectors / lengths[:, None], dtype=np.float32)
    result = vectors.tocsr(copy=True)
    result.sum_duplicates()  # sorts them, too
    if not np.issubdtype(result.dtype, np.floating):
        result = result.astype(np.float64)
    _make_unit(result.indptr, result.data)
    return result


def multiply_pairs(
    source: Floats, target: Floats, scales: tuple[Scale, Scale], source_ids: Any, target_ids: Any
) -> Floats:
    """The inner products of pairs of rows, the same bits as those of a block; (num_pairs,)."""
    own, other = (np.ascontiguousarray(rows, dtype=np.float32) for rows in (source, target))
    ids = np.asarray(source_ids), np.asarray(target_ids)
    whole = np.asarray(_multiply_whole(own, other, scales[0].factors, scales[1].factors, *ids))
    return from_whole(whole, scales)


def from_whole(products: Floats, scales: tuple[Scale, Scale]) -> Floats:
    """Products of whole numbers, rounded to single precision, on the scale of the measure."""
    with np.errstate(over="ignore"):
        return np.asarray(products.astype(np.float64) * (scales[0].unit * scales[1].unit), dtype=np.float32)


def multiply_sparse_pairs(source: Any, target: Any, source_ids: Any, target_ids: Any) -> Floats:
    """Inner products of rows of two csr matrices with sorted columns, (num_pairs,)."""
    sides = (source.indptr, source.indices, source.data, target.indptr, target.indices, target.data)
    return np.asarray(_multiply_sparse_pairs(*sides, np.asarray(source_ids), np.asarray(target_ids)))


# ---- compiled --------------------------------------------------------------------------------------------------------


@numba.njit(cache=True)
def next_shared(own, i, i_stop, other, j, j_stop):  # type: ignore[no-untyped-def]
    """The places of the next value that two sorted stretches share, own[i:i_stop] and other[j:j_stop].

    Both are the ends of the stretches where no further value is shared.
    """
    while i < i_stop and j < j_stop:
        if own[i] == other[j]:
            return i, j
        if own[i] < other[j]:
            i += 1
        else:
            j += 1
    return i_stop, j_stop


@numba.njit(cache=True)
def whole_of(value):  # type: ignore[no-untyped-def]
    """Round a number below 2**51 to the nearest whole number, halves to the even one."""
    return (value + _ROUND) - _ROUND


@numba.njit(cache=True)
def square_length(row):  # type: ignore[no-untyped-def]
    """The sum of squares in double precision, added in lanes."""
    sums = np.zeros(LANES, np.float64)
    whole = len(row) // LANES * LANES
    for start in range(0, whole, LANES):
        for lane in range(LANES):
            value = np.float64(row[start + lane])
            sums[lane] += value * value
    total = 0.0
    for lane in range(LANES):
        total += sums[lane]
    for d in range(whole, len(row)):
        total += np.float64(row[d]) * np.float64(row[d])
    return total


@numba.njit(cache=True, parallel=True)
def _square_lengths(vectors):  # type: ignore[no-untyped-def]
    result = np.empty(len(vectors), np.float64)
    for i in numba.prange(len(vectors)):
        result[i] = square_length(vectors[i])
    return result


@numba.njit(cache=True, parallel=True)
def scale_rows(vectors, factors, result):  # type: ignore[no-untyped-def]
    """Multiply rows by their factors and round to whole numbers; zeros where the factor is nan."""
    for i in numba.prange(len(vectors)):
        factor = factors[i]
        if factor != factor:
            result[i] = 0
            continue
        for d in range(vectors.shape[1]):
            result[i, d] = whole_of(np.float64(vectors[i, d]) * factor)


@numba.njit(cache=True, parallel=True)
def _multiply_whole(source, target, source_factors, target_factors, source_ids, target_ids):  # type: ignore[no-untyped-def]
    result = np.empty(len(source_ids), np.float32)
    for k in numba.prange(len(source_ids)):
        a, b = source[source_ids[k]], target[target_ids[k]]
        a_factor, b_factor = source_factors[source_ids[k]], target_factors[target_ids[k]]
        sums = np.zeros(LANES, np.float64)  # exact, so that their order does not matter
        whole = len(a) // LANES * LANES
        for start in range(0, whole, LANES):
            for lane in range(LANES):
                x = whole_of(np.float64(a[start + lane]) * a_factor)
                y = whole_of(np.float64(b[start + lane]) * b_factor)
                sums[lane] += x * y
        total = 0.0
        for lane in range(LANES):
            total += sums[lane]
        for d in range(whole, len(a)):
            x = whole_of(np.float64(a[d]) * a_factor)
            y = whole_of(np.float64(b[d]) * b_factor)
            total += x * y
        result[k] = total
    return result


@numba.njit(cache=True, parallel=True)
def _make_unit(starts, data):  # type: ignore[no-untyped-def]
    for i in numba.prange(len(starts) - 1):
        total = 0.0
        for p in range(starts[i], starts[i + 1]):
            total += np.float64(data[p]) * np.float64(data[p])
        if total > 0.0:
            length = np.sqrt(total)
            for p in range(starts[i], starts[i + 1]):
                data[p] = np.float64(data[p]) / length


@numba.njit(cache=True, parallel=True)
def _multiply_sparse_pairs(  # type: ignore[no-untyped-def]
    s_starts, s_columns, s_values, t_starts, t_columns, t_values, source_ids, target_ids
):
    result = np.zeros(len(source_ids), np.float32)
    for k in numba.prange(len(source_ids)):
        i, i_stop = s_starts[source_ids[k]], s_starts[source_ids[k] + 1]
        j, j_stop = t_starts[target_ids[k]], t_starts[target_ids[k] + 1]
        total = np.float32(0.0)
        i, j = next_shared(s_columns, i, i_stop, t_columns, j, j_stop)
        while i < i_stop:
            total += np.float32(s_values[i]) * np.float32(t_values[j])
            i, j = next_shared(s_columns, i + 1, i_stop, t_columns, j + 1, j_stop)
        result[k] = total
    return result


@numba.njit(cache=True)
def lane_product(a, b):  # type: ignore[no-untyped-def]
    """The inner product of two vectors in sixteen sums side by side: vector instructions in a fixed order.

    With fastmath, freshly compiled code and code loaded from disk may round differently.
    """
    sums = np.zeros(LANES, np.float32)
    whole = len(a) // LANES * LANES
    for start in range(0, whole, LANES):
        for lane in range(LANES):
            sums[lane] += a[start + lane] * b[start + lane]
    total = np.float32(0.0)
    for lane in range(LANES):
        total += sums[lane]
    for d in range(whole, len(a)):
        total += a[d] * b[d]
    return total


@numba.njit(cache=True, parallel=True)
def inner_products(source: Any, target: Any, source_ids: Any, target_ids: Any) -> Any:
    """The inner products of pairs of rows, (num_pairs,)."""
    result = np.empty(len(source_ids), np.float32)
    for k in numba.prange(len(source_ids)):
        result[k] = lane_product(source[source_ids[k]], target[target_ids[k]])
    return result
