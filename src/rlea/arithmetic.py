"""Functions that give the same bits on every machine: exp, log, log1p, log_add_exp, sin, cos, round_to_digits.

IEEE 754 fixes the results of +, -, *, / and the square root only. The exponential functions of two libraries differ in
the last bit, and one library has several for different processors. Where decisions depend on an order, the last bit can
change them. These functions use only the fixed operations, in a fixed order, without fastmath. Their relative error is
below 1e-15; near a zero of the function the absolute error is.

Names that end in `_of` take single numbers, for compiled code; the others take arrays of any shape, or numbers.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]

_LOG2_E = 1.4426950408889634
_LN2_HIGH = 6.93147180369123816490e-01  # its last 32 bits are zero, so that products with small whole numbers are exact
_LN2_LOW = 1.90821492927058770002e-10
_PI_2_HIGH = 1.57079632673412561417e00  # likewise
_PI_2_LOW = 6.07710050650619224932e-11
_F2, _F3, _F4, _F5, _F6, _F7, _F8, _F9, _F10, _F11, _F12, _F13 = (1 / math.factorial(n) for n in range(2, 14))
_POWERS = np.array([2.0**k for k in range(-1074, 1024)])  # exact
_TENS = np.array([float(f"1e{k}") for k in range(-307, 309)])  # correctly rounded


@numba.njit(cache=True)
def exp_of(x: float) -> float:
    """The exponential function of a number, for compiled code."""
    if not x <= 709.78:
        return x if x != x else np.inf
    if x < -745.0:
        return 0.0
    whole = math.floor(x * _LOG2_E + 0.5)
    k = float(whole)
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    z = r * r
    # The series up to r^13 (|r| < 0.35: the next term is below 5e-18), its even and its odd terms side by side.
    even = 1 + z * (_F2 + z * (_F4 + z * (_F6 + z * (_F8 + z * (_F10 + z * _F12)))))
    odd = 1 + z * (_F3 + z * (_F5 + z * (_F7 + z * (_F9 + z * (_F11 + z * _F13)))))
    total = even + r * odd
    if whole > 1023:
        return float(total * _POWERS[1023 + 1074] * 2.0)
    if whole < -1022:  # in two steps: the first is exact
        return float(total * _POWERS[-1000 + 1074] * _POWERS[whole + 1000 + 1074])
    return float(total * _POWERS[whole + 1074])


@numba.njit(cache=True)
def log_of(x: float) -> float:
    """The natural logarithm of a number, for compiled code; -inf of 0, nan below."""
    if not 0.0 < x < np.inf:
        return -np.inf if x == 0.0 else (np.inf if x == np.inf else np.nan)
    mantissa, exponent = math.frexp(x)
    if mantissa < 0.7071067811865476:
        mantissa *= 2.0
        exponent -= 1
    f = (mantissa - 1.0) / (mantissa + 1.0)
    z = f * f
    total = 0.0
    for n in range(23, 1, -2):  # |f| < 0.172: the next term is below 1e-18 of the sum
        total = z * (1.0 / n + total)
    return exponent * _LN2_HIGH + (2.0 * f * (1.0 + total) + exponent * _LN2_LOW)


@numba.njit(cache=True)
def log1p_of(x: float) -> float:
    """log(1 + x) of a number, for compiled code; precise also where x is small."""
    u = 1.0 + x
    if u == 1.0:
        return x
    if u <= 0.0 or u == np.inf:  # nothing was rounded, or nothing that matters
        return log_of(u)
    return log_of(u) + (x - (u - 1.0)) / u


@numba.njit(cache=True)
def log_add_exp_of(x: float, y: float) -> float:
    """log(exp(x) + exp(y)) without overflow, for compiled code."""
    larger, smaller = max(x, y), min(x, y)
    if smaller == -np.inf or larger == np.inf:
        return larger
    return larger + log1p_of(exp_of(smaller - larger))


@numba.njit(cache=True)
def sin_of(x: float) -> float:
    """The sine of an angle in radians up to a million, for compiled code."""
    return float(_turned(x, 0))


@numba.njit(cache=True)
def cos_of(x: float) -> float:
    """The cosine of an angle in radians up to a million, for compiled code."""
    return float(_turned(x, 1))


@numba.njit(cache=True)
def _turned(x, quarter):  # type: ignore[no-untyped-def]
    """The sine of x plus a number of quarter turns."""
    k = np.floor(x / 1.5707963267948966 + 0.5)
    r = (x - k * _PI_2_HIGH) - k * _PI_2_LOW
    z = r * r
    quadrant = (int(k) + quarter) % 4
    total = 1.0
    first = 19 if quadrant % 2 == 0 else 18  # |r| < 0.79: the next term is below 1e-20
    for n in range(first, 1, -2):
        total = 1.0 - z * (1.0 / (n * (n - 1))) * total
    if quadrant % 2 == 0:
        total *= r
    return -total if quadrant >= 2 else total


@numba.njit(cache=True)
def round_to_digits_of(x: float, digits: int) -> float:
    """A number rounded to significant digits, halves away from 0, for compiled code."""
    size = abs(x)
    if not _TENS[0] <= size < np.inf:
        return x
    shift = digits - np.searchsorted(_TENS, size, side="right") + 307  # places behind the decimal point
    if shift > 308:
        return x
    power = _TENS[abs(shift) + 307]
    scaled = size * power if shift >= 0 else size / power
    whole = math.floor(scaled)
    if scaled - whole >= 0.5:
        whole += 1
    result = whole / power if shift >= 0 else whole * power
    return float(result if x > 0 else -result)


_EXP, _LOG, _LOG1P, _SIN, _COS, _ROUND, _LOG_ADD_EXP = range(7)


@numba.njit(cache=True)
def _fill(function, x, more, result):  # type: ignore[no-untyped-def]
    """Fill `result` with one of the functions above, by its number: of functions as arguments no code is kept on disk.

    `more` holds second arguments where the function has some.
    """
    for i in range(len(x)):
        if function == _EXP:
            result[i] = exp_of(x[i])
        elif function == _LOG:
            result[i] = log_of(x[i])
        elif function == _LOG1P:
            result[i] = log1p_of(x[i])
        elif function == _SIN:
            result[i] = sin_of(x[i])
        elif function == _COS:
            result[i] = cos_of(x[i])
        elif function == _ROUND:
            result[i] = round_to_digits_of(x[i], int(more[0]))
        else:
            result[i] = log_add_exp_of(x[i], more[i])


def exp(x: Any) -> Doubles:
    """The exponential function of every number."""
    return _each(_EXP, x)


def log(x: Any) -> Doubles:
    """The natural logarithm of every number."""
    return _each(_LOG, x)


def log1p(x: Any) -> Doubles:
    """log(1 + x) of every number."""
    return _each(_LOG1P, x)


def sin(x: Any) -> Doubles:
    """The sine of every angle, in radians."""
    return _each(_SIN, x)


def cos(x: Any) -> Doubles:
    """The cosine of every angle, in radians."""
    return _each(_COS, x)


def round_to_digits(x: Any, digits: int) -> Doubles:
    """Every number rounded to significant digits, halves away from 0; tiny numbers stay as they are."""
    return _each(_ROUND, x, digits)


def log_add_exp(x: Any, y: Any) -> Doubles:
    """log(exp(x) + exp(y)) of every two numbers; shapes are broadcast."""
    return _each(_LOG_ADD_EXP, *np.broadcast_arrays(x, y))


def _each(function: int, x: Any, more: Any = ()) -> Doubles:
    values, second = (np.array(given, np.float64).reshape(-1) for given in (x, more))
    result = np.empty(np.shape(x))
    _fill(function, values, second, result.reshape(-1))
    return result
