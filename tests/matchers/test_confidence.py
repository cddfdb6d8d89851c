from __future__ import annotations

import numpy as np
import pytest

from rlea.matchers import greedy, hungarian, mutual, nearest
from rlea.matchers.confidence import ConfidenceSettings, log_sum_exp, rate_pairs, similarities
from rlea.search.candidates import find_candidates
from rlea.search.embeddings import Embeddings


def rate(task, row, column, temperature=0.05, nobody=-9.0):
    settings = ConfidenceSettings(temperature, nobody)
    return float(rate_pairs(task.candidates, [row], [column], settings=settings)[0])


def test_by_hand(make_task):
    task = make_task([[1.0, 0.9], [0.8, 0.5]])
    e = np.exp
    row_share = e(10) / (e(10) + e(9))
    column_share = e(10) / (e(10) + e(8))
    assert rate(task, 0, 0, temperature=0.1) == pytest.approx(np.sqrt(row_share * column_share), rel=1e-5)


def test_nobody_is_a_rival():
    """A lone pair is as sure as it is similar, and no surer."""
    for similarity in (0.0, 0.4, 0.9):
        target = np.array([[similarity, np.sqrt(1 - similarity**2)]], np.float32)
        alone = find_candidates(Embeddings(np.array([[1.0, 0.0]], np.float32), target), [0], [0], 1)
        share = np.exp(similarity / 0.1) / (np.exp(similarity / 0.1) + np.exp(0.4 / 0.1))
        got = rate_pairs(alone, [0], [0], settings=ConfidenceSettings(0.1, nobody=0.4))
        assert float(got[0]) == pytest.approx(share, rel=1e-4)


def test_equal_rivals_share(make_task):
    assert rate(make_task(np.ones((4, 9))), 2, 3) == pytest.approx(1 / 6)  # sqrt(1/9 * 1/4)


def test_a_clearer_lead_is_a_higher_confidence(make_task):
    levels = [rate(make_task([[score, 0.5], [0.4, 1.0]]), 0, 0) for score in (0.3, 0.5, 0.55, 0.7, 0.99)]
    assert levels == sorted(levels)
    assert levels[0] < 0.1 < 0.9 < levels[-1]
    row_rival = [rate(make_task([[0.6, rival], [0.1, 1.0]]), 0, 0) for rival in (0.1, 0.5, 0.7)]
    column_rival = [rate(make_task([[0.6, 0.1], [rival, 1.0]]), 0, 0) for rival in (0.1, 0.5, 0.7)]
    assert row_rival == sorted(row_rival, reverse=True)
    assert column_rival == sorted(column_rival, reverse=True)


def test_a_pair_has_the_same_confidence_whoever_chose_it(make_task):
    task = make_task(np.random.default_rng(0).random((15, 15)))
    given: dict[tuple[int, int], set[float]] = {}
    for matcher in (nearest, mutual, greedy, hungarian):
        matching = matcher.match(task)
        assert ((matching.confidences > 0) & (matching.confidences <= 1)).all()
        for source, target, confidence in zip(
            matching.source_ids.tolist(), matching.target_ids.tolist(), matching.confidences.tolist(), strict=True
        ):
            given.setdefault((source, target), set()).add(confidence)
    assert all(len(confidences) == 1 for confidences in given.values())


def test_a_pair_that_is_no_candidate_gets_little(make_task):
    task = make_task([[0.9, 0.1, 0.2], [0.1, 0.9, 0.3], [0.2, 0.3, 0.9]], k=1)
    assert rate(task, 0, 0) == pytest.approx(1.0)
    assert rate(task, 0, 1) < 1e-3


def test_every_measure_is_brought_to_the_scale_of_a_cosine():
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(6, 4)).astype(np.float32)
    for measure, low, high in (("cosine", -1, 1), ("inner", -1, 1), ("manhattan", 0, 1)):
        candidates = find_candidates(Embeddings(50 * vectors, 50 * vectors, measure=measure), range(6), range(6), 6)
        scaled = similarities(candidates, candidates.pairs.scores)
        assert scaled.min() >= low - 1e-6
        assert scaled.max() == pytest.approx(high, abs=1e-6)
        own = rate_pairs(candidates, np.arange(6), np.arange(6))
        assert own.mean() > 0.5, measure


def test_nothing_to_rate(make_task):
    assert rate_pairs(make_task(np.zeros((0, 3))).candidates, [], []).shape == (0,)


def test_sums_of_groups_without_overflow():
    sums = log_sum_exp(np.array([1000.0, 1000.0, -1000.0]), np.array([0, 0, 2]), 3)
    np.testing.assert_allclose(sums, [1000 + np.log(2), -np.inf, -1000])


def test_a_temperature_of_zero_is_refused():
    with pytest.raises(ValueError, match="above 0"):
        ConfidenceSettings(0.0)
