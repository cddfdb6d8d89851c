"""Metrics by hand, under ties, and blind to the order of ids."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from rlea.errors import InputError
from rlea.evaluation import ranks
from rlea.evaluation.metrics import (
    calibration,
    coverage,
    expected_calibration_error,
    link_metrics,
    precision_recall_curve,
)
from rlea.evaluation.ranks import count_better_and_equal, rank_metrics
from rlea.graph import Links
from rlea.matching import Matching
from rlea.search.candidates import find_candidates
from rlea.search.embeddings import MEASURES, Embeddings


def planted(scores, *, sparse=False):
    """Vectors whose inner products are the given scores."""
    matrix = np.asarray(scores, dtype=np.float32)
    kind = csr_matrix if sparse else np.asarray
    return Embeddings(kind(matrix), kind(np.eye(matrix.shape[1], dtype=np.float32)), measure="inner")


pytestmark = pytest.mark.usefixtures("one_thread")
either_kind = pytest.mark.parametrize("sparse", [False, True])

# ---- ranks ----------------------------------------------------------------------------------------------------------


@either_kind
def test_ranks_by_hand(sparse):
    scores = [
        [0.9, 0.1, 0.3, 0.2],  # the right target, 0, is first
        [0.9, 0.8, 0.7, 0.1],  # the right target, 2, is third
        [0.0, -0.5, 0.5, 0.0],  # the right target, 1, is last, behind two zeros
    ]
    result = rank_metrics(planted(scores, sparse=sparse), Links.of([0, 1, 2], [0, 2, 1]), np.arange(4))
    assert result.hits_at_1 == pytest.approx(1 / 3)
    assert result.hits_at_5 == result.hits_at_10 == result.hits_at_50 == 1.0
    assert result.mr == pytest.approx((1 + 3 + 4) / 3)
    assert result.mrr == pytest.approx((1 + 1 / 3 + 1 / 4) / 3)
    assert (result.num_links, result.num_targets, result.unreachable, result.pool) == (3, 4, 0, "test")
    assert [key for key in result.as_dict() if key.startswith("hits")] == ["hits@1", "hits@5", "hits@10", "hits@50"]


@either_kind
def test_of_too_many_links_a_sample_is_ranked_whatever_their_order(sparse, monkeypatch):
    rng = np.random.default_rng(0)
    scores = rng.random((400, 400))
    scores[np.arange(400), np.arange(400)] += np.arange(400) % 2  # half of the right targets are surely the best
    vectors, everyone = planted(scores, sparse=sparse), np.arange(400)
    whole = rank_metrics(vectors, Links.of(everyone, everyone), everyone)
    assert (whole.num_links, whole.sampled_from) == (400, None)
    assert "sampled_from" not in whole.as_dict()
    monkeypatch.setattr(ranks, "SAMPLE", 200)
    assert rank_metrics(vectors, Links.of(everyone, everyone), everyone) == whole  # few enough
    monkeypatch.setattr(ranks, "MOST_PAIRS", 400 * 400 - 1)
    drawn = rank_metrics(vectors, Links.of(everyone, everyone), everyone)
    assert (drawn.num_links, drawn.as_dict()["sampled_from"], drawn.num_targets) == (200, 400, 400)
    assert drawn.hits_at_1 == pytest.approx(whole.hits_at_1, abs=0.1)
    assert drawn.mr != whole.mr
    order = rng.permutation(400)
    assert rank_metrics(vectors, Links.of(order, order), everyone) == drawn


@either_kind
def test_ties_count_what_chance_would_give(sparse):
    # One target is better; the right one shares its score with two others: rank 2, 3 or 4, each in a third of cases.
    result = rank_metrics(planted([[0.5, 0.9, 0.5, 0.5, 0.1]], sparse=sparse), Links.of([0], [0]), np.arange(5))
    assert result.hits_at_1 == 0.0
    assert result.mr == pytest.approx(3.0)
    assert result.mrr == pytest.approx((1 / 2 + 1 / 3 + 1 / 4) / 3)
    many = rank_metrics(planted(np.zeros((1, 100)), sparse=sparse), Links.of([0], [17]), np.arange(100))
    assert (many.hits_at_1, many.hits_at_5, many.hits_at_10, many.hits_at_50) == (0.01, 0.05, 0.1, 0.5)
    assert many.mr == 50.5


@pytest.mark.parametrize("measure", MEASURES)
def test_equal_vectors_share_the_hit(measure):
    same = np.full((300, 37), 0.1, dtype=np.float32)
    result = rank_metrics(Embeddings(same, same, measure=measure), Links.of(range(300), range(300)), np.arange(300))
    assert (result.hits_at_1, result.mr) == (pytest.approx(1 / 300), pytest.approx(150.5))
    vectors = np.random.default_rng(0).normal(size=(500, 33)).astype(np.float32)
    links = Links.of(np.arange(500), np.arange(500))
    twice = rank_metrics(Embeddings(vectors, np.tile(vectors, (2, 1)), measure=measure), links, np.arange(1000))
    if measure != "inner":  # by inner product a longer vector may beat the same one
        assert (twice.hits_at_1, twice.mrr) == (pytest.approx(0.5), pytest.approx(0.75))
    alone = rank_metrics(Embeddings(vectors, vectors, measure=measure), links, np.arange(500))
    assert twice.mr == pytest.approx(2 * alone.mr - 0.5)
    if measure == "cosine":  # lengths do not matter, though 0.1 is no power of two and rounding differs
        longer = Embeddings(vectors, np.concatenate([vectors, 3 * vectors, 0.1 * vectors]))
        assert rank_metrics(longer, links, np.arange(1500)).hits_at_1 == pytest.approx(1 / 3)


@pytest.mark.parametrize(("measure", "sparse"), [*((m, False) for m in MEASURES), ("cosine", True), ("inner", True)])
def test_equals_the_full_matrix(measure, sparse, monkeypatch):
    monkeypatch.setattr(ranks, "BLOCK_LINKS", 7)
    monkeypatch.setattr(ranks, "BLOCK_TARGETS", 11)
    monkeypatch.setattr(ranks, "SPARSE_BLOCK_CELLS", 200)
    rng = np.random.default_rng(2)
    a, b = (rng.integers(-2, 3, size=(60, 6)).astype(np.float32) for _ in range(2))  # small numbers: many ties
    a[5] = b[7] = 0
    links, pool = Links.of(rng.permutation(60)[:40], rng.permutation(60)[:40]), np.arange(60)
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    if measure == "manhattan":
        scores = -np.abs(wide_a[:, None] - wide_b).sum(axis=2)
    else:
        scores = wide_a @ wide_b.T
        if measure == "cosine":
            lengths = np.linalg.norm(a, axis=1)[:, None] * np.linalg.norm(b, axis=1)
            scores = np.divide(scores, lengths, out=np.zeros_like(scores), where=lengths > 0)
    scores = scores.round(6)[links.source_ids]
    right = scores[np.arange(40), links.target_ids][:, None]
    better, equal = (scores > right).sum(axis=1), (scores == right).sum(axis=1)
    kind = csr_matrix if sparse else np.asarray
    result = rank_metrics(Embeddings(kind(a), kind(b), measure=measure), links, pool)
    assert result.mr == pytest.approx((better + (equal + 1) / 2).mean())
    for k, hits in ((1, result.hits_at_1), (5, result.hits_at_5), (10, result.hits_at_10), (50, result.hits_at_50)):
        assert hits == pytest.approx((np.clip(k - better, 0, equal) / equal).mean())
    assert equal.max() > 1


@given(seed=st.integers(0, 2**32 - 1), measure=st.sampled_from(MEASURES), sparse=st.booleans(), tied=st.booleans())
@settings(max_examples=60, deadline=None)
def test_renaming_and_reordering_change_nothing(seed, measure, sparse, tied):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, 23, 5)).astype(np.float32)
    if tied:
        a, b = a.round(), b.round()
    new_source, new_target = rng.permutation(23), rng.permutation(23)
    other_a, other_b = np.empty_like(a), np.empty_like(b)
    other_a[new_source], other_b[new_target] = a, b
    sources, targets, pool = rng.permutation(23)[:15], rng.permutation(23)[:15], np.arange(23)
    order = rng.permutation(15)
    kind = csr_matrix if sparse and measure != "manhattan" else np.asarray
    one = rank_metrics(Embeddings(kind(a), kind(b), measure=measure), Links.of(sources, targets), pool)
    two = rank_metrics(
        Embeddings(kind(other_a), kind(other_b), measure=measure),
        Links.of(new_source[sources][order], new_target[targets][order]),
        rng.permutation(pool),
    )
    assert one.as_dict() == pytest.approx(two.as_dict())


@pytest.mark.parametrize(
    ("measure", "source", "target", "expected"),
    [
        ("inner", [1, 1, 1], [[1e4, 1e-4, -1e4], [1e4, 0, -1e4], [1e4, 1e-4, -1e4]], [1.5, 3.0, 1.5]),  # too close
        ("inner", [1e30, 1e30], [[1e30, -1e30], [2e30, 0], [1e30, 2e30]], [3.0, 2.0, 1.0]),  # too large
        ("manhattan", [-3e38] * 40, [[value] * 40 for value in (3e38, 2e38, 3e38, -3e38)], [3.5, 2.0, 3.5, 1.0]),
    ],
)
def test_scores_beyond_single_precision_are_ranked_all_the_same(measure, source, target, expected):
    vectors = Embeddings(np.array([source], np.float32), np.array(target, np.float32), measure=measure)
    pool = np.arange(len(target))
    assert [rank_metrics(vectors, Links.of([0], [right]), pool).mr for right in pool] == expected


def test_only_the_pool_competes():
    embeddings = planted([[0.5, 0.9, 0.8]])
    assert rank_metrics(embeddings, Links.of([0], [0]), np.array([0, 1, 2])).mr == 3.0
    small = rank_metrics(embeddings, Links.of([0], [0]), np.array([0, 0, 2]), pool="all")
    assert (small.mr, small.num_targets, small.pool) == (2.0, 2, "all")
    outside = rank_metrics(embeddings, Links.of([0], [1]), np.array([0, 2]))
    assert (outside.hits_at_50, outside.mr, outside.unreachable) == (0.0, 3.0, 1)
    with pytest.raises(InputError, match="no links to rank"):
        rank_metrics(embeddings, Links.empty(), np.arange(3))


@pytest.mark.parametrize(("sparse", "side", "value"), [(False, "source", np.nan), (True, "target", np.inf)])
def test_vectors_that_are_not_finite_are_refused(sparse, side, value):
    embeddings = planted(np.eye(3), sparse=sparse)
    broken = getattr(embeddings, side).copy()
    broken[1, 1] = value
    with pytest.raises(InputError, match=f"{side} vectors hold values that are not finite numbers"):
        rank_metrics(replace(embeddings, **{side: broken}), Links.of([0, 1], [0, 1]), np.arange(3))


@pytest.mark.parametrize("measure", ["cosine", "inner"])
def test_rare_features_first_finds_what_the_full_product_finds(measure):
    # Rare and common features, weights of either sign, empty vectors and twins: all ways for a shortcut to go wrong.
    rng = np.random.default_rng(4)
    common = rng.random(80) ** 4
    a, b = (np.where(rng.random((150, 80)) < common, rng.normal(0.3, 1, (150, 80)), 0) for _ in range(2))
    b[:75] = np.where(rng.random((75, 80)) < 0.9, a[:75], b[:75])
    a[3] = b[9] = 0
    b[100:120] = b[:20]
    a, b = a.astype(np.float32), b.astype(np.float32)
    links = Links.of(np.arange(150), np.arange(150))
    dense, sparse = (Embeddings(kind(a), kind(b), measure=measure) for kind in (np.asarray, csr_matrix))
    one, two = (count_better_and_equal(kind, links, np.arange(150)) for kind in (dense, sparse))
    np.testing.assert_array_equal(one, two)
    assert (two[1][:20] >= 2).all()


# ---- links ----------------------------------------------------------------------------------------------------------

GOLD = Links.of([0, 1, 2, 3], [10, 11, 12, 13])


def matching_of(*links):
    return Matching.of(*zip(*links, strict=True)) if links else Matching.of([], [], [])


def test_links_by_hand():
    found = matching_of(
        (0, 10, 0.9),  # right
        (1, 12, 0.8),  # wrong, both ends are known
        (2, 99, 0.7),  # wrong, its source is known
        (77, 13, 0.6),  # wrong, its target is known
        (55, 66, 0.5),  # nobody knows
    )
    result = link_metrics(found, GOLD, pool="all")
    assert (result.correct, result.judged, result.gold, result.matched) == (1, 4, 4, 5)
    assert result.precision == result.recall == result.f1 == result.hits_at_1 == 0.25
    assert result.pool == "all"
    assert result.as_dict()["hits@1"] == 0.25
    strict = link_metrics(found, GOLD, complete=True)
    assert (strict.correct, strict.judged, strict.matched) == (1, 5, 5)
    assert strict.precision == strict.precision_of_all == result.precision_of_all == 0.2
    assert (strict.recall, strict.hits_at_1) == (0.25, 0.25)
    assert strict.f1 == pytest.approx(2 / 9)  # 2 * correct / (links + gold)


def test_links_between_strangers_are_wrong_if_gold_is_complete():
    found = matching_of((0, 10, 1.0), (55, 66, 0.9))
    assert expected_calibration_error(found, GOLD) == 0.0
    assert expected_calibration_error(found, GOLD, complete=True) == pytest.approx(0.45)
    assert sum(part.num_links for part in calibration(found, GOLD, complete=True)) == 2
    assert precision_recall_curve(found, GOLD, complete=True).precision.tolist() == [1.0, 0.5]
    nothing = matching_of((55, 66, 0.9))
    assert link_metrics(nothing, Links.empty(), complete=True).judged == 1


@pytest.mark.parametrize(
    ("found", "gold", "precision", "recall", "hits_at_1"),
    [
        ([(0, 10, 1.0), (1, 11, 1.0), (2, 13, 1.0)], GOLD, 2 / 3, 0.5, 0.5),
        ([(source, 10, 1.0) for source in range(4)], GOLD, 0.25, 0.25, 0.25),
        ([(0, 10, 0.9), (0, 11, 0.3)], GOLD, 0.5, 0.25, 0.25),  # the most confident link of a source counts
        ([(0, 10, 0.3), (0, 11, 0.9)], GOLD, 0.5, 0.25, 0.0),
        ([(0, 10, 0.9), (0, 11, 0.9)], GOLD, 0.5, 0.25, 0.125),  # equally confident ones share the hit
        ([(0, 10, 0.9), (0, 10, 0.2)], Links.of([0, 0, 1], [10, 10, 11]), 1.0, 0.5, 0.5),  # repetitions count once
        ([(0, 10, 0.9)], Links.of([0, 0], [10, 11]), 1.0, 0.5, 1.0),  # a source with two correct targets
        ([], GOLD, 0.0, 0.0, 0.0),
        ([(0, 10, 1.0)], Links.empty(), 0.0, 0.0, 0.0),
    ],
)
def test_precision_recall_and_hits(found, gold, precision, recall, hits_at_1):
    result = link_metrics(matching_of(*found), gold)
    assert (result.precision, result.recall, result.hits_at_1) == pytest.approx((precision, recall, hits_at_1))
    both = precision + recall
    assert result.f1 == pytest.approx(2 * precision * recall / both if both else 0)


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=50, deadline=None)
def test_renamed_links_score_the_same(seed):
    rng = np.random.default_rng(seed)
    found = Matching.of(rng.permutation(20)[:12], rng.permutation(20)[:12], rng.random(12).round(1))
    gold = Links.of(rng.permutation(20)[:10], rng.permutation(20)[:10])
    source, target = rng.permutation(20), rng.permutation(20)
    renamed = Matching.of(source[found.source_ids], target[found.target_ids], found.confidences)
    renamed_gold = Links.of(source[gold.source_ids][::-1], target[gold.target_ids][::-1])
    assert link_metrics(found, gold) == link_metrics(renamed, renamed_gold)
    one, two = precision_recall_curve(found, gold), precision_recall_curve(renamed, renamed_gold)
    assert (one.precision.tolist(), one.recall.tolist()) == (two.precision.tolist(), two.recall.tolist())
    assert expected_calibration_error(found, gold) == pytest.approx(expected_calibration_error(renamed, renamed_gold))


def test_coverage_of_either_direction():
    # Target 1 is no source's best, but its own best source is 1.
    scores = [[0.9, 0.1], [0.8, 0.2]]
    candidates = find_candidates(planted(scores), np.array([0, 1]), np.array([0, 1]), 1)
    gold = Links.of([0, 1], [0, 1])
    assert candidates.forward_columns.tolist() == [[0], [0]]
    assert coverage(candidates, gold) == 1.0
    assert coverage(candidates, Links.of([0, 1, 5], [0, 0, 1])) == pytest.approx(2 / 3)
    assert coverage(candidates, Links.empty()) == 0.0
    # Gold has ids, candidates have positions in the pool.
    candidates = find_candidates(planted(np.eye(6)[[0, 5, 2, 3, 4, 1]]), np.array([5, 1]), np.array([1, 5]), 1)
    assert coverage(candidates, Links.of([1, 5], [5, 1])) == 1.0
    assert coverage(candidates, Links.of([0, 1], [1, 0])) == 0.0


# ---- confidence -----------------------------------------------------------------------------------------------------


def test_calibration_by_hand():
    found = matching_of((0, 10, 1.0), (1, 11, 0.92), (2, 13, 0.96), (3, 99, 0.0), (50, 60, 0.5))
    bins = calibration(found, GOLD)
    assert [part.num_links for part in bins] == [1, 3]
    assert bins[0] == (0.0, 0.0, 1)
    assert bins[1] == (pytest.approx(0.96), pytest.approx(2 / 3), 3)
    assert expected_calibration_error(found, GOLD) == pytest.approx(0.75 * (0.96 - 2 / 3))


def test_an_honest_confidence_has_no_calibration_error():
    rng = np.random.default_rng(3)
    confidences = rng.random(20_000)
    right = rng.random(20_000) < confidences
    ids = np.arange(20_000)
    gold = Links.of(ids, np.where(right, ids, ids + 20_000))
    assert expected_calibration_error(Matching.of(ids, ids, confidences), gold) < 0.02
    boastful = Matching.of(ids, ids, np.sqrt(confidences))
    assert expected_calibration_error(boastful, gold) > 0.1


def test_the_curve_by_hand():
    found = matching_of((0, 10, 0.9), (1, 99, 0.8), (2, 12, 0.8), (3, 13, 0.1), (50, 60, 0.95))
    curve = precision_recall_curve(found, GOLD)
    assert curve.threshold.tolist() == [0.9, 0.8, 0.1]
    assert curve.precision.tolist() == [1.0, pytest.approx(2 / 3), 0.75]
    assert curve.recall.tolist() == [0.25, 0.5, 0.75]
    assert curve.average_precision == pytest.approx(0.25 * (1 + 2 / 3 + 0.75))
    whole = link_metrics(found, GOLD)
    assert (curve.precision[-1], curve.recall[-1]) == (whole.precision, whole.recall)


def test_no_links_and_a_confidence_that_is_no_number():
    curve = precision_recall_curve(matching_of(), GOLD)
    assert len(curve.threshold) == len(curve.precision) == len(curve.recall) == curve.average_precision == 0
    assert calibration(matching_of(), GOLD) == []
    assert expected_calibration_error(matching_of(), GOLD) == 0.0
    with pytest.raises(ValueError, match="not a number"):
        link_metrics(Matching.of([0], [10], [np.nan]), GOLD)
