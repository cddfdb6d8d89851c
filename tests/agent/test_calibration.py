"""Confidences: known chances found again, odds against a direct softmax, thresholds by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlea.agent.calibration import MOST, Calibration, fit_logistic, log_odds, solve
from rlea.matching import threshold_for
from rlea.search.pairs import Pairs


def calibration_error(chances, right, num_bins=10):
    """Mean distance between confidence and share of right links, over bins of equal width."""
    bins = np.minimum((chances * num_bins).astype(int), num_bins - 1)
    gaps = [abs(chances[bins == b].sum() - right[bins == b].sum()) for b in range(num_bins)]
    return sum(gaps) / len(chances)


def simulated(weights, size=20_000, seed=0):
    """Rows of odds and outcomes whose chance is a logistic function of them."""
    rng = np.random.default_rng(seed)
    odds = np.clip(rng.normal(0, 3, (size, 3)), -MOST, MOST).astype(np.float32)
    chances = 1 / (1 + np.exp(-(weights[0] + odds @ np.array(weights[1:]))))
    return odds, chances, rng.random(size) < chances


@pytest.mark.parametrize("weights", [(-1.0, 0.8, 0.3, 0.1), (0.5, 0.2, 0.2, 0.0), (2.0, 0.0, 0.6, 0.4)])
def test_fit_recovers_known_chances(weights):
    odds, _, right = simulated(weights)
    fitted = Calibration.fit(odds, right)
    np.testing.assert_allclose([fitted.bias, fitted.source, fitted.target, fitted.logit], weights, atol=0.12)
    fresh, chances, outcomes = simulated(weights, seed=1)
    found = fitted.confidences(fresh)
    assert calibration_error(found, outcomes) < 0.03
    assert np.abs(found - chances).mean() < 0.02
    # The measure can tell: unfitted confidences are off.
    assert calibration_error(Calibration(bias=3.0).confidences(fresh), outcomes) > 0.05


def test_a_slope_that_is_cut_leaves_the_rest_calibrated():
    """The logit counts against the pair where the odds are clear: its slope is cut, the mean must stay right."""
    rng = np.random.default_rng(0)
    odds = np.column_stack([rng.normal(3, 1, 20_000), rng.normal(3, 1, 20_000), rng.normal(6, 2, 20_000)])
    odds = odds.astype(np.float32)
    right = rng.random(20_000) < 1 / (1 + np.exp(-(odds @ np.array([0.6, 0.6, -0.4]))))
    fitted = Calibration.fit(odds, right)
    assert fitted.logit == 0
    assert fitted.confidences(odds).mean() == pytest.approx(right.mean(), abs=0.02)


@pytest.mark.parametrize(
    "weights",
    [
        (0.0, 0.5, -0.5, 0.2),
        (0.0, -0.2, 0.4, -0.3),
        (1.0, -0.5, -0.4, -0.3),
    ],
)
def test_slopes_are_never_below_zero(weights):
    odds, _, right = simulated(weights)
    fitted = Calibration.fit(odds, right)
    slopes = np.array([fitted.source, fitted.target, fitted.logit])
    assert (slopes >= 0).all()
    assert ((slopes > 0.1) == (np.array(weights[1:]) > 0)).all()
    assert fitted.confidences(odds).mean() == pytest.approx(right.mean(), abs=0.02)


def link_rows(size, rng):
    """Odds as those of links are, mostly clear and much alike, and outcomes that follow them."""
    clear = rng.normal(3, 2, (size, 1)) + rng.normal(0, 1, (size, 3))
    odds = np.clip(clear, -MOST, MOST).astype(np.float32)
    return odds, rng.random(size) < 1 / (1 + np.exp(-odds @ np.array([0.4, 0.4, 0.0])))


@pytest.mark.parametrize(("count", "wrong"), [(80, 4), (128, 16), (300, 10)])
def test_few_links_separated_without_an_error_make_none_certain(count, wrong):
    """The steepest curve would fit best and give every link of a like kind a confidence of 0 or 1."""
    right = np.arange(count) >= wrong
    odds = np.where(right[:, None], 12.0, -6.0).astype(np.float32) * np.ones(3, np.float32)
    confidences = Calibration.fit(odds, right).confidences(odds)
    assert confidences[right].max() == pytest.approx(1 - 1 / (count - wrong + 2), abs=0.005)
    assert confidences[~right].min() == pytest.approx(1 / (wrong + 2), abs=0.01)
    # Between the two it is unsure, and more is always better.
    between = Calibration.fit(odds, right).confidences(np.linspace(-6, 12, 50, dtype=np.float32)[:, None].repeat(3, 1))
    assert (np.diff(between) > 0).all()


def test_few_links_are_not_believed_too_much():
    """With a hundred links the fit must not be much worse than the defaults, which are off by 0.03 here."""
    errors = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        fitted = Calibration.fit(*link_rows(100, rng))
        assert fitted is not None
        odds, right = link_rows(5000, rng)
        with np.errstate(over="ignore"):
            errors.append(calibration_error(fitted.confidences(odds), right))
    assert np.mean(errors) < 0.05


def test_nothing_is_fitted_where_none_is_right_or_there_are_none():
    assert Calibration.fit(np.zeros((500, 3), np.float32), np.zeros(500, bool)) is None
    assert Calibration.fit(np.zeros((0, 3), np.float32), np.zeros(0, bool)) is None


@pytest.mark.parametrize("size", [60, 2000])
def test_where_all_are_right_a_link_that_nothing_speaks_for_is_less_sure(size):
    rows = np.random.default_rng(0).uniform(4, 12, (size, 3)).astype(np.float32)
    found = Calibration.fit(rows, np.ones(size, bool))
    assert found.base > 0.95
    sure, unsure = found.confidences(np.array([[10, 10, 10], [0, 0, 0]], np.float32))
    assert sure > 0.95
    assert unsure < sure - 0.2


def test_confidences_by_hand():
    rows = np.array([[0, 0, 5], [2, 4, -1], [-12, -12, -12]], np.float32)
    expected = 1 / (1 + np.exp([0, -3, 12]))
    np.testing.assert_allclose(Calibration().confidences(rows), expected, rtol=1e-5)
    more = Calibration(bias=1.0, source=0.0, target=0.0, logit=2.0)
    np.testing.assert_allclose(more.confidences(rows[:1]), 1 / (1 + np.exp(-11.0)), rtol=1e-5)


def test_steep_slopes_do_not_overflow():
    """Where training is separable the slopes grow: the least likely pair is simply unlikely."""
    steep = Calibration(bias=-10.0, source=4.0, target=4.0, logit=4.0)
    rows = np.array([[-12, -12, -12], [12, 12, 12]], np.float32)
    np.testing.assert_allclose(steep.confidences(rows), [0, 1], atol=1e-6)


# ---- logistic regression --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [30, 500, 5000])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_logistic_regression_is_that_of_scikit_learn(size, is_weighted):
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(size)
    rows = rng.normal(0, 3, (size, 3))
    answers = (rng.random(size) < 1 / (1 + np.exp(-(rows @ [0.8, -0.3, 0.1] - 0.5)))).astype(np.float64)
    weights = rng.random(size) + 0.1 if is_weighted else np.ones(size)
    theirs = LogisticRegression(C=100, tol=1e-10, max_iter=10_000).fit(rows, answers, weights)
    expected = [theirs.intercept_[0], *theirs.coef_[0]]
    found = fit_logistic(rows, answers, weights)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    order = rng.permutation(size)
    np.testing.assert_allclose(fit_logistic(rows[order], answers[order], weights[order]), found, atol=1e-7)


@pytest.mark.parametrize("gap", [1e-3, 1.0, 100.0])
def test_separable_answers_have_steep_and_finite_slopes(gap):
    from sklearn.linear_model import LogisticRegression

    answers = np.arange(100) % 2.0
    rows = np.column_stack([gap * (2 * answers - 1), np.ones(100), np.zeros(100)])
    found = fit_logistic(rows, answers, np.ones(100))
    assert np.isfinite(found).all()
    assert found[1] > 0
    assert abs(found[0]) < 1e-3  # both kinds are as frequent, and as far away
    logits = found[0] + rows @ found[1:]
    assert ((logits > 0) == (answers > 0)).all()
    theirs = LogisticRegression(C=100, tol=1e-10, max_iter=10_000).fit(rows, answers)
    assert found[1] == pytest.approx(theirs.coef_[0, 0], rel=1e-3)


@pytest.mark.parametrize("size", [1, 2, 7, 30])
def test_symmetric_systems_are_solved_from_their_lower_triangle(size):
    rng = np.random.default_rng(size)
    half = rng.standard_normal((size, size))
    matrix, right = half @ half.T + 0.1 * np.eye(size), rng.standard_normal(size)
    lower = np.tril(matrix) + np.triu(np.full((size, size), np.nan), 1)
    np.testing.assert_allclose(solve(lower, right), np.linalg.solve(matrix, right), rtol=1e-6)
    assert np.isfinite(solve(np.zeros((size, size)), right)).all()


# ---- odds -----------------------------------------------------------------------------------------------------------


def direct_odds(ids, logits):
    """log(p / (1 - p)) of the softmax among the pairs of the same id and no match."""
    result = []
    for own, i in enumerate(ids.tolist()):
        others = 1 + sum(np.exp(w) for k, w in enumerate(logits.tolist()) if ids[k] == i and k != own)
        share = np.exp(logits[own]) / (np.exp(logits[own]) + others)
        result.append(np.log(share / (1 - share)))
    return np.array(result)


rows_of_logits = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(-80, 80)),
    min_size=1,
    max_size=25,
    unique_by=lambda row: row[:2],
)


@settings(max_examples=60, deadline=None)
@given(rows_of_logits)
def test_log_odds_against_a_direct_softmax(rows):
    source, target, logits = np.array(sorted(rows)).T
    pairs, logits = Pairs(source.astype(np.int32), target.astype(np.int32)), (logits / 10).astype(np.float32)
    exact = logits.astype(np.float64)
    expected = np.column_stack([direct_odds(source, exact), direct_odds(target, exact), exact])
    np.testing.assert_allclose(log_odds(pairs, logits), np.clip(expected, -MOST, MOST), atol=1e-4)


def test_log_odds_of_extreme_logits_are_finite():
    pairs = Pairs(np.array([0, 0, 1, 2, 2], np.int32), np.array([0, 1, 1, 2, 3], np.int32))
    logits = np.array([1e30, -1e30, 5e4, -3e38, 800.0], np.float32)
    odds = log_odds(pairs, logits)
    assert np.isfinite(odds).all()
    assert odds[:, 0].tolist() == [MOST, -MOST, MOST, -MOST, MOST]
    level = log_odds(pairs, np.full(5, 1e30, np.float32))
    np.testing.assert_allclose(level[:, 0], [0, 0, MOST, 0, 0], atol=1e-6)
    none = np.zeros(0, np.int32)
    assert log_odds(Pairs(none, none), np.zeros(0, np.float32)).shape == (0, 3)


def test_threshold_by_hand():
    confidences = np.array([0.5, 1.0, 0.8, 0.9])  # means from the top: 1, .95, .9, .8
    assert threshold_for(confidences, 1.0) == 1.0
    assert threshold_for(confidences, 0.94) == 0.9
    assert threshold_for(confidences, 0.89) == 0.8
    assert threshold_for(confidences, 0.5) == 0.5
    assert threshold_for(confidences - 0.5, 0.9) == np.inf
    assert threshold_for(np.zeros(0), 0.9) == np.inf


def test_ties_at_the_threshold_do_not_break_the_promise():
    confidences = np.array([1.0, 0.8, 0.8])  # 1 and one 0.8 would do, but there is no telling the two apart
    assert confidences[confidences >= threshold_for(confidences, 0.9)].mean() >= 0.9
