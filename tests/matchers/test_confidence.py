from __future__ import annotations

import numpy as np
import pytest

from rlea.matchers import greedy, hungarian, mutual, nearest
from rlea.matchers.confidence import rate_pairs, similarities
from rlea.search.embeddings import Embeddings


def rate(task, row, column, temperature=0.05, no_match=-9.0):
    score = task.candidates.score_pairs([row], [column])
    return float(rate_pairs(task.candidates, [row], [column], score, temperature, no_match)[0])


def test_by_hand(make_task):
    e = np.exp
    shares = e(10) / (e(10) + e(9)), e(10) / (e(10) + e(8))
    task = make_task([[1.0, 0.9], [0.8, 0.5]])
    assert rate(task, 0, 0, temperature=0.1) == pytest.approx(np.sqrt(shares[0] * shares[1]), rel=1e-5)
    assert rate(make_task(np.ones((4, 9))), 2, 3) == pytest.approx(1 / 6)  # sqrt(1/9 * 1/4)


@pytest.mark.parametrize("similarity", [0.0, 0.4, 0.9])
def test_no_match_is_a_rival(similarity, make_task):
    """A pair without rivals is as sure as it is similar, and no surer."""
    target = np.array([[similarity, np.sqrt(1 - similarity**2)]], np.float32)
    alone = make_task(Embeddings(np.array([[1.0, 0.0]], np.float32), target))
    share = np.exp(similarity / 0.1) / (np.exp(similarity / 0.1) + np.exp(0.4 / 0.1))
    assert rate(alone, 0, 0, 0.1, no_match=0.4) == pytest.approx(share, rel=1e-4)


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
        found = matcher.match(task)
        for source, target, confidence in zip(found.source_ids, found.target_ids, found.confidences, strict=True):
            given.setdefault((int(source), int(target)), set()).add(float(confidence))
    assert len(given) > 15
    assert all(len(confidences) == 1 for confidences in given.values())


def test_a_pair_that_is_no_candidate_gets_little(make_task):
    task = make_task([[0.9, 0.1, 0.2], [0.1, 0.9, 0.3], [0.2, 0.3, 0.9]], k=1)
    assert rate(task, 0, 0) == pytest.approx(1.0)
    assert rate(task, 0, 1) < 1e-3
    nothing = np.zeros(0, np.int32)
    assert rate_pairs(make_task(np.zeros((0, 3))).candidates, nothing, nothing, np.zeros(0)).shape == (0,)


@pytest.mark.parametrize(("measure", "low"), [("cosine", -1), ("inner", -1), ("manhattan", 0)])
def test_every_measure_is_brought_to_the_scale_of_a_cosine(measure, low, make_task):
    vectors = 50 * np.random.default_rng(1).normal(size=(6, 4)).astype(np.float32)
    candidates = make_task(Embeddings(vectors, vectors, measure=measure)).candidates
    scaled = similarities(candidates, candidates.pairs.scores)
    assert scaled.min() >= low - 1e-6
    assert scaled.max() == pytest.approx(1, abs=1e-6)
    six = np.arange(6)
    assert rate_pairs(candidates, six, six, candidates.score_pairs(six, six)).mean() > 0.5


def test_huge_scores_do_not_overflow(make_task):
    assert rate(make_task([[1.0, -1.0], [-1.0, 1.0]]), 0, 0, temperature=1e-6) == pytest.approx(1.0)
