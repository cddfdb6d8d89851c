"""Functions from fixed operations: near the true values, with the right special values, and always the same bits."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlea import arithmetic
from rlea.arithmetic import cos, exp, log, log1p, log_add_exp, round_to_digits, sin

LONG = np.finfo(np.longdouble).nmant > 60  # on some machines a long double is a double and proves nothing
needs_long = pytest.mark.skipif(not LONG, reason="no longer numbers to compare with")
RANDOM = np.random.default_rng(0)


def error(found, true):
    """The largest relative error."""
    return float(np.max(np.abs((np.asarray(found, np.longdouble) - true) / true)))


@needs_long
@pytest.mark.parametrize(("low", "high"), [(-700.0, 700.0), (-1.0, 1.0), (-1e-8, 1e-8), (-745.0, -700.0)])
def test_exp_is_near(low, high):
    x = RANDOM.uniform(low, high, 20_000)
    true = np.exp(x.astype(np.longdouble))
    normal = true > 2.3e-308  # below, numbers are further apart
    if normal.any():
        assert error(exp(x)[normal], true[normal]) < 1e-15
    assert np.abs(exp(x) - true)[~normal].max(initial=0.0) <= 1e-323


@needs_long
def test_log_is_near():
    for x in (
        np.exp(RANDOM.uniform(-700, 700, 20_000)),
        RANDOM.uniform(0.5, 2.0, 20_000),
        2.0 ** np.arange(-1074, 1024),
    ):
        true = np.log(x.astype(np.longdouble))
        assert float(np.max(np.abs(log(x) - true) / np.maximum(np.abs(true), 0.1))) < 1e-15


@needs_long
def test_log1p_is_near():
    x = np.concatenate([RANDOM.uniform(-0.99, 5.0, 20_000), np.exp(RANDOM.uniform(-80, 80, 20_000))])
    assert error(log1p(x), np.log1p(x.astype(np.longdouble))) < 2e-15


@needs_long
def test_sin_and_cos_are_near():
    for high in (1.0, 100.0, 1e6):
        x = RANDOM.uniform(-high, high, 20_000)
        for found, true in ((sin, np.sin), (cos, np.cos)):
            assert float(np.max(np.abs(found(x) - true(x.astype(np.longdouble))))) < 1e-15 * max(1.0, high / 1e4)


@settings(max_examples=300, deadline=None)
@given(st.floats(-300, 300), st.floats(-300, 300))
def test_identities(x, y):
    assert exp(x + y) == pytest.approx(float(exp(x) * exp(y)), rel=1e-12)
    assert log(exp(x)) == pytest.approx(x, abs=1e-13, rel=1e-15)
    assert sin(x) ** 2 + cos(x) ** 2 == pytest.approx(1.0, abs=1e-15)
    assert sin(-x) == -sin(x)
    assert cos(-x) == cos(x)
    assert log_add_exp(x, y) == log_add_exp(y, x)
    assert log_add_exp(x, y) >= max(x, y)
    assert log_add_exp(x, y) == pytest.approx(math.log(math.exp(x) + math.exp(y)), rel=1e-14, abs=1e-14)


def test_special_values():
    nan, inf = math.nan, math.inf
    assert exp([0.0, -0.0, inf, -inf, 710.0, -746.0]).tolist() == [1.0, 1.0, inf, 0.0, inf, 0.0]
    assert log([1.0, 0.0, -0.0, inf]).tolist() == [0.0, -inf, -inf, inf]
    assert log1p([0.0, -1.0, inf]).tolist() == [0.0, -inf, inf]
    assert log1p([1e-300, -1e-300]).tolist() == [1e-300, -1e-300]
    assert sin(0.0) == 0.0
    assert cos(0.0) == 1.0
    for found in (exp(nan), log(nan), log(-1.0), log(-inf), log1p(-2.0), log1p(nan)):
        assert np.isnan(found)
    assert log_add_exp([-inf, -inf, inf, 5.0], [-inf, 3.0, 2.0, -inf]).tolist() == [-inf, 3.0, inf, 5.0]
    assert exp(709.78) < inf
    assert exp(-745.0) > 0.0


@pytest.mark.parametrize("function", [exp, log, log1p, sin, cos])
def test_shapes(function):
    x = RANDOM.uniform(0.1, 2.0, (3, 4, 5))
    found = function(x)
    assert found.shape == (3, 4, 5)
    assert found.dtype == np.float64
    assert (function(x[:, ::2, ::-1]) == found[:, ::2, ::-1]).all()
    assert function(x.astype(np.float32)).dtype == np.float64
    assert function(0.5).shape == ()
    assert function([]).shape == (0,)
    assert function(np.arange(1, 4)).shape == (3,)
    assert log_add_exp(x, x[0, 0]).shape == (3, 4, 5)


@pytest.mark.parametrize(
    ("function", "places"),
    [
        (exp, [k * math.log(2) / 2 for k in range(-60, 61)]),  # where the power of two changes
        (log, [2.0**k for k in range(-20, 20)] + [2.0**k * math.sqrt(0.5) for k in range(-20, 20)]),
        (log1p, [-0.5, -1e-16, 1e-16, 1e-8, 1.0, math.sqrt(2) - 1, 2.0**53]),
    ],
)
def test_nothing_falls_where_the_way_of_computing_changes(function, places):
    for place in places:
        steps = np.full(41, place)
        for i in range(20):
            steps[: 20 - i] = np.nextafter(steps[: 20 - i], -np.inf)
            steps[21 + i :] = np.nextafter(steps[21 + i :], np.inf)
        values = function(steps)
        # A last bit may be wrong on either side of a border, no more.
        assert (np.diff(values) >= -2 * np.spacing(np.abs(values[1:]))).all()
        assert values[-1] >= values[0] - 2 * np.spacing(abs(values[0]))


@settings(max_examples=300, deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from([1, 3, 6, 12]))
def test_rounding_to_digits(x, digits):
    found = float(round_to_digits(x, digits))
    if not 1e-290 < abs(x) < 1e307:
        return
    assert abs(Fraction(found) - Fraction(x)) <= Fraction(abs(x)) * Fraction(1, 10 ** (digits - 1)) * Fraction(
        501, 1000
    )
    assert found == pytest.approx(float(f"{x:.{digits - 1}e}"), rel=10.0 ** (1 - digits) * 1.001)
    assert round_to_digits(found, digits) == pytest.approx(found, rel=1e-15)
    assert round_to_digits(-x, digits) == -found


def test_rounding_to_digits_by_example():
    found = round_to_digits([123456.0, 0.00012345, -9.996, 0.0, 1234.5], 3)
    assert found.tolist() == [123000.0, 0.000123, -10.0, 0.0, 1230.0]
    assert round_to_digits([1e5, 1e22, 1e-7, 999.6], 3).tolist() == [1e5, 1e22, 1e-7, 1000.0]
    assert np.isnan(round_to_digits(math.nan, 3))
    assert round_to_digits([math.inf, -math.inf], 3).tolist() == [math.inf, -math.inf]


BITS = {
    "exp": (
        "0x1.1aec7b35a00d3p+0 0x1.5bf0a8b14576ap+1 0x1.85d6fd931e0bbp+3 0x1.223251387247cp+11 0x1.1428e1cbc0143p+178"
    ),
    "log": ("-0x1.26bb1bbb55515p+1 0x0.0p+0 0x1.d5240f0e0e078p-1 0x1.061acc9140e62p+1 0x1.343774f3e2362p+2"),
    "log1p": (
        "0x1.8663f793c46c7p-4 0x1.62e42fefa39efp-1 0x1.40b512eb53d60p+0 0x1.15a38d392d6cep+1 0x1.34bba22cd5df5p+2"
    ),
    "sin": (
        "0x1.98eaecb8bcb2cp-4 0x1.aed548f090ceep-1 0x1.326af0dcfcab0p-1 0x1.fd3c0d19d91a6p-1 -0x1.9b9dadc41aeb6p-1"
    ),
    "cos": (
        "0x1.fd712f9a817c0p-1 0x1.14a280fb5068cp-1 -0x1.9a2f7ef858b7dp-1 0x1.a924459c41abdp-4 -0x1.307e5980a1559p-1"
    ),
    "log_add_exp": (
        "0x1.5755dc3ee0c48p+0 0x1.0c70387e022b8p+0 0x1.98b90bfbe8e7cp+1 0x1.126e18819b6b4p+3 0x1.edd2f1a9fd058p+6"
    ),
}


@pytest.mark.parametrize("name", BITS)
def test_the_same_bits_as_ever(name):
    """These are made of operations that every machine rounds alike, so their results can be written down."""
    second = [[1.0, -2.0, 2.5, 8.0, 100.0]] if name == "log_add_exp" else []
    found = getattr(arithmetic, name)([0.1, 1.0, 2.5, 7.75, 123.456], *second)
    assert [one.hex() for one in found.tolist()] == BITS[name].split()


def test_one_number_or_many():
    x = RANDOM.uniform(-20, 20, 100)
    assert [arithmetic.exp_of(one) for one in x.tolist()] == exp(x).tolist()
    assert [arithmetic.log_of(one) for one in np.abs(x).tolist()] == log(np.abs(x)).tolist()
