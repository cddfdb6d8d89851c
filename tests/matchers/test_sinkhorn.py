from __future__ import annotations

import numpy as np
import pytest

from rlea.matchers import hungarian
from rlea.matchers.sinkhorn import SinkhornSettings, log_transport_plan, match


def sums_of(task, **settings):
    """The mass of every row and of every column."""
    plan = np.exp(log_transport_plan(task.candidates, SinkhornSettings(**settings)))
    pairs = task.candidates.pairs
    return np.bincount(pairs.rows, weights=plan), np.bincount(pairs.columns, weights=plan)


def test_the_plan_has_its_marginals(make_task):
    task = make_task(np.random.default_rng(0).random((12, 12)))
    rows, columns = sums_of(task, temperature=0.1, iterations=500)
    np.testing.assert_allclose(columns, 1, rtol=1e-9)
    np.testing.assert_allclose(rows, 1, rtol=1e-3)


@pytest.mark.parametrize("shape", [(8, 13), (13, 8)])
def test_the_smaller_pool_gives_all_and_the_larger_takes_at_most_its_share(shape, make_task):
    sums = sums_of(make_task(np.random.default_rng(0).random(shape)), temperature=0.1, iterations=500)
    small, large = sums if shape[0] < shape[1] else sums[::-1]
    np.testing.assert_allclose(small, 1, rtol=1e-3)
    assert large.max() <= 1 + 1e-3
    assert large.min() < 0.9


def test_one_source_takes_its_nearest_target(make_task):
    assert match(make_task([[0.2, 0.9, 0.3, 0.5]])).target_ids.tolist() == [1]


def test_the_plan_is_the_textbook_one(make_task):
    """The iteration in its plain form, without logarithms."""
    task = make_task(np.random.default_rng(1).random((5, 5)))
    pairs = task.candidates.pairs
    scores = np.zeros((5, 5))
    scores[pairs.rows, pairs.columns] = pairs.scores
    plan = np.exp(scores / np.abs(scores).max() / 0.1)
    for _ in range(20):
        plan /= plan.sum(axis=1, keepdims=True)
        plan /= plan.sum(axis=0, keepdims=True)
    found = np.exp(log_transport_plan(task.candidates, SinkhornSettings(temperature=0.1, iterations=20)))
    np.testing.assert_allclose(found, plan[pairs.rows, pairs.columns], rtol=1e-9)


def test_a_cold_plan_is_the_best_assignment(make_task):
    rng = np.random.default_rng(2)
    for _ in range(5):
        task = make_task(rng.random((6, 6)))
        cold = match(task, SinkhornSettings(temperature=0.002, iterations=3000))
        assert cold.target_ids.tolist() == hungarian.match(task).target_ids.tolist()


def test_huge_scores_neither_overflow_nor_lose_a_row(make_task):
    task = make_task(1e6 * np.random.default_rng(3).normal(size=(9, 9)))
    settings = SinkhornSettings(temperature=1e-5)
    assert np.isfinite(log_transport_plan(task.candidates, settings)).all()
    assert len(match(task, settings)) == 9


@pytest.mark.parametrize("bad", [{"temperature": 0.0}, {"temperature": float("nan")}, {"iterations": 0}])
def test_settings_that_mean_nothing_are_refused(bad):
    with pytest.raises(ValueError, match="above 0"):
        SinkhornSettings(**bad)
