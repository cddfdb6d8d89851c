"""The scorer of links: curves that only rise, slopes against a general solver, and rows in any order."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from rlea.agent.link_scorer import FEWEST_VALUES, LEAST_SPREAD, QUANTILES, Segments, apply_slopes, fit_slopes

values = st.integers(-8, 8).map(lambda number: number / 4)


@st.composite
def tables(draw):
    """Rows of features, few or enough for quantiles, and signs."""
    width = draw(st.integers(1, 3))
    count = draw(st.sampled_from([1, 5, FEWEST_VALUES - 1, FEWEST_VALUES, 60]))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    rows = np.round(rng.normal(0, 2, (count, width)) * (rng.random((count, width)) < 0.7), 1).astype(np.float32)
    return rows, np.array(draw(st.lists(st.sampled_from([1.0, -1.0]), min_size=width, max_size=width)))


def planted(weights, size=1500, seed=0):
    """Columns with unit spread, and answers whose chance is a logistic function of them; bias last."""
    rng = np.random.default_rng(seed)
    columns = rng.normal(0, 1, (len(weights) - 1, size))
    chances = 1 / (1 + np.exp(-(weights[-1] + weights[:-1] @ columns)))
    return columns, (rng.random(size) < chances).astype(np.float64)


def fit(columns, answers, weights=None, prior=None, start=None, **more):
    size = len(columns) + 1
    weights = np.ones(len(answers)) if weights is None else weights
    prior = np.zeros(size) if prior is None else prior
    return fit_slopes(columns, answers, weights, prior, prior if start is None else start, **more)


def loss_of(slopes, columns, answers, weights, prior, ridge):
    logits = slopes[-1] + slopes[:-1] @ columns
    loss = (weights * (np.logaddexp(0, logits) - answers * logits)).sum()
    return loss + 0.5 * ridge * ((slopes - prior)[:-1] ** 2).sum()


# ---- segments -------------------------------------------------------------------------------------------------------


@given(tables(), st.integers(0, 2), values, values)
def test_a_better_value_never_reaches_less_far(table, place, one, other):
    """In every column; with sign -1 the better value is the lower one. Columns of other features do not move."""
    rows, signs = table
    place %= rows.shape[1]
    segments = Segments.of(rows, signs)
    both = np.repeat(rows[:1], 2, axis=0)
    both[:, place] = sorted((one, other), reverse=bool(signs[place] < 0))
    worse, better = segments.columns(both).T
    ends = np.cumsum([0] + [len(part) + 1 for part in segments.knots])
    own = np.zeros(len(worse), bool)
    own[ends[place] : ends[place + 1]] = True
    assert (better[own] >= worse[own]).all()
    assert (better[~own] == worse[~own]).all()
    assert one == other or (better[own] > worse[own]).any()


@given(tables())
def test_segments_add_up_to_the_value(table):
    """Each part of a value lies in one segment."""
    rows, signs = table
    segments = Segments.of(rows, signs)
    parts = segments.columns(rows) * segments.scales[:, None]
    ends = np.cumsum([0] + [len(part) + 1 for part in segments.knots])
    for place, knots in enumerate(segments.knots):
        total = parts[ends[place] : ends[place + 1]].sum(axis=0)
        np.testing.assert_allclose(total, signs[place] * (rows[:, place] - knots[0]), atol=1e-6)


def test_knots_are_quantiles_of_values_that_are_not_zero():
    rng = np.random.default_rng(0)
    rows = np.zeros((400, 3), np.float32)
    rows[:300, 0] = rng.normal(2, 1, 300)
    rows[: FEWEST_VALUES - 1, 1] = 1 + np.arange(FEWEST_VALUES - 1)  # too few
    segments = Segments.of(rows, np.ones(3))
    np.testing.assert_allclose(segments.knots[0], np.quantile(rows[:300, 0].astype(np.float64), QUANTILES))
    assert [part.tolist() for part in segments.knots[1:]] == [[0.0], [0.0]]
    columns = segments.columns(rows)
    assert columns.shape == (len(QUANTILES) + 1 + 2 + 2, 400)
    spread = columns.std(axis=1)
    np.testing.assert_allclose(spread[spread > 0], 1)
    assert (segments.scales >= LEAST_SPREAD).all()


def test_no_rows_are_no_columns():
    segments = Segments.of(np.zeros((1, 2), np.float32), np.ones(2))
    assert segments.columns(np.zeros((0, 2), np.float32)).shape == (4, 0)


# ---- slopes ---------------------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.integers(1, 5), st.sampled_from([1, 3, 40, 200]), st.sampled_from([0.1, 5.0, 100.0]))
def test_no_slope_is_ever_negative(seed, width, count, ridge):
    rng = np.random.default_rng(seed)
    columns = rng.normal(0, 1, (width, count)) * rng.choice([0.0, 1.0, 30.0], (width, 1))
    answers = (rng.random(count) < rng.random()).astype(np.float64)
    prior = np.append(rng.random(width), 0.0)
    slopes = fit(columns, answers, rng.random(count), prior, ridge=ridge)
    assert np.isfinite(slopes).all()
    assert (slopes[:-1] >= 0).all()


def test_evidence_against_a_link_has_no_slope():
    columns, answers = planted(np.array([1.5, -1.5, 0.5, -0.3]))
    slopes = fit(columns, answers)
    assert slopes[1] == 0
    assert slopes[0] > slopes[2] > 0


@pytest.mark.parametrize("weights", [(2.0, 1.0, 0.5, 0.0, -1.0), (0.0, 0.5, 1.0, 2.0, 0.5), (1.0, 0.0, 2.0, 0.5, 0.0)])
def test_planted_weights_are_found_again_in_their_order(weights):
    weights = np.array(weights)
    for seed in range(3):
        columns, answers = planted(weights, 4000, seed)
        slopes = fit(columns, answers)
        np.testing.assert_allclose(slopes, weights, atol=0.2)
        assert np.argsort(slopes[:-1]).tolist() == np.argsort(weights[:-1]).tolist()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("ridge", [0.5, 5.0])
def test_slopes_are_those_of_a_general_solver(seed, ridge):
    rng = np.random.default_rng(seed)
    columns, answers = planted(np.array([1.0, -0.5, 0.3, 0.0, -0.5]), 300, seed)
    weights, prior = rng.uniform(0.1, 2, 300), np.array([0.2, 0.5, 0.0, 0.1, 0.0])
    slopes = fit(columns, answers, weights, prior, ridge=ridge)
    given = (columns, answers, weights, prior, ridge)
    bounds = [(0, None)] * 4 + [(None, None)]
    best = minimize(loss_of, np.maximum(prior, 0), given, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-14})
    assert loss_of(slopes, *given) <= best.fun * (1 + 1e-5)
    np.testing.assert_allclose(slopes, best.x, atol=0.02)


def test_with_no_data_the_prior_stays():
    prior = np.array([0.5, 0.0, 1.5, 0.25])
    slopes = fit(np.zeros((3, 0)), np.zeros(0), prior=prior)
    np.testing.assert_array_equal(slopes, prior)
    # Data that has no weight, or says nothing of a column, is none.
    columns, answers = planted(np.array([1.0, 1.0, 1.0, 0.0]), 100)
    np.testing.assert_allclose(fit(columns, answers, np.zeros(100), prior)[:-1], prior[:-1], atol=1e-9)
    columns[1] = 0.0
    assert fit(columns, answers, prior=prior)[1] == pytest.approx(prior[1], abs=1e-9)


def test_a_stronger_penalty_keeps_slopes_nearer_to_the_prior():
    columns, answers = planted(np.array([2.0, 1.0, 0.0]), 400)
    prior = np.array([0.1, 0.1, 0.0])
    moved = [np.abs(fit(columns, answers, prior=prior, ridge=ridge) - prior)[:-1].sum() for ridge in (1.0, 30.0, 1e6)]
    assert moved[0] > moved[1] > moved[2]
    assert moved[2] < 1e-2


def test_where_to_start_does_not_matter():
    columns, answers = planted(np.array([1.0, 0.5, 0.0, -0.5]))
    found = [
        fit(columns, answers, start=np.array(start)) for start in ((0.0, 0, 0, 0), (3.0, 2, 1, 1), (0.0, 5, 0, -2))
    ]
    np.testing.assert_allclose(found[1], found[0], atol=2e-3)
    np.testing.assert_allclose(found[2], found[0], atol=2e-3)


def test_the_start_is_left_as_it_is():
    columns, answers = planted(np.array([1.0, 0.0]), 50)
    start = np.array([0.5, 0.0])
    fit(columns, answers, start=start)
    assert start.tolist() == [0.5, 0.0]


@given(st.integers(0, 1000), st.integers(5, 80))
def test_rows_in_another_order_give_the_same_slopes(seed, count):
    rng = np.random.default_rng(seed)
    columns, answers = planted(np.array([1.0, 0.3, -0.2, 0.0]), count, seed)
    weights, order = rng.uniform(0.1, 1, count), rng.permutation(count)
    whole = fit(columns, answers, weights)
    again = fit(columns[:, order], answers[order], weights[order])
    np.testing.assert_allclose(again, whole, rtol=0, atol=1e-9)


def test_a_row_of_weight_two_is_two_rows():
    columns, answers = planted(np.array([1.0, 0.5, 0.0]), 60)
    twice = fit(np.repeat(columns, 2, axis=1), np.repeat(answers, 2))
    np.testing.assert_allclose(fit(columns, answers, np.full(60, 2.0)), twice, atol=1e-9)


def test_logits_by_hand():
    columns = np.array([[1.0, 2.0], [10.0, 20.0]])
    assert apply_slopes(columns, np.array([0.5, 0.0, 1.0])).tolist() == [1.5, 2.0]
    assert apply_slopes(columns, np.array([0.5, 0.1, -1.0])).tolist() == [0.5, 2.0]
