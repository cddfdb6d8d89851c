"""The classic decoders: by hand, against their dense or brute-force forms, and by what defines them."""

from __future__ import annotations

import numpy as np
import pytest

from planted import links_of
from rlea.matchers import MATCHERS, csls, greedy, hungarian, rinf, seq, sinkhorn, stable
from rlea.search.embeddings import Embeddings

#          target 0  1     2
SCORES = [[0.45, 0.95, 0.85],  # source 0
          [0.20, 0.25, 0.10],  # source 1
          [0.70, 0.65, 0.35]]  # source 2  # fmt: skip

EXPECTED = {
    # Source 1 has only poor targets and takes the one that source 0 takes too.
    "nearest": {(0, 1), (1, 1), (2, 0)},
    # Targets choose back: 0 takes source 2, both 1 and 2 take source 0.
    "mutual": {(0, 1), (2, 0)},
    # 0.95, then 0.70, and source 1 gets what is left: 1.75 in all.
    "greedy": {(0, 1), (2, 0), (1, 2)},
    # With one score for both sides the stable matching is the greedy one.
    "stable": {(0, 1), (2, 0), (1, 2)},
    # Source 0 makes room: 0.85 + 0.25 + 0.70 = 1.80.
    "hungarian": {(0, 2), (1, 1), (2, 0)},
    # Column means 0.45, 0.617, 0.433: for source 1 the crowded target 1 (0.50 - 0.617) falls behind 0 (0.40 - 0.45).
    "csls": {(0, 1), (1, 0), (2, 0)},
    # Source 0 prefers targets 1 and 2 alike (both have it as their best), target 2 ranks it first, target 1 shares
    # its first rank with source 1; source 1 minds least to take target 0, which ranks it second.
    "rinf": {(0, 2), (1, 0), (2, 0)},
}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_case_on_which_the_decoders_differ(name, make_task):
    assert links_of(MATCHERS[name](make_task(SCORES))) == EXPECTED[name]


def test_a_case_on_which_they_agree(make_task):
    for name in (name for name, matcher in MATCHERS.items() if not matcher.uses_structure):
        matching = MATCHERS[name](make_task(np.eye(5)[[3, 1, 4, 0, 2]] + 0.1))
        assert links_of(matching) == {(0, 3), (1, 1), (2, 4), (3, 0), (4, 2)}, name


def test_a_source_whose_candidates_are_taken_stays_unmatched(make_task):
    # One candidate each: both sources want target 0, and targets 1 and 2 ask for source 0.
    task = make_task([[0.9, 0.5, 0.4], [0.8, 0.1, 0.2]], k=1)
    assert links_of(MATCHERS["greedy"](task)) == links_of(MATCHERS["stable"](task)) == {(0, 0)}
    assert links_of(MATCHERS["hungarian"](task)) == {(0, 1), (1, 0)}


# ---- csls and rinf ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("neighbours", [1, 10])
def test_csls_equals_its_dense_form(neighbours, make_task):
    rng = np.random.default_rng(neighbours)
    scores = rng.random((20, 30)).astype(np.float32) + 0.4 * rng.random(30).astype(np.float32)
    row_means = np.sort(scores, axis=1)[:, -neighbours:].mean(axis=1)
    column_means = np.sort(scores, axis=0)[-neighbours:].mean(axis=0)
    expected = (2 * scores - row_means[:, None] - column_means).argmax(axis=1)
    assert csls.match(make_task(scores), neighbours).target_ids.tolist() == expected.tolist()
    assert expected.tolist() != scores.argmax(axis=1).tolist()


def mean_ranks(preferences):
    """Ranks within each row, 1 for the highest; equal values share the mean of their ranks."""
    higher = (preferences[:, None] > preferences[:, :, None]).sum(axis=2)
    same = (preferences[:, None] == preferences[:, :, None]).sum(axis=2)
    return higher + (same + 1) / 2


@pytest.mark.parametrize("shape", [(7, 7), (5, 9), (9, 5)])
def test_rinf_equals_its_dense_form(shape, make_task):
    scores = np.random.default_rng(4).random(shape).astype(np.float32).astype(np.float64)
    by_source = mean_ranks(scores - scores.max(axis=0, keepdims=True) + 1)
    by_target = mean_ranks(scores.T - scores.max(axis=1) + 1).T
    keys = list(zip((-(by_source + by_target) / 2).tolist(), scores.tolist(), strict=True))
    best = [max(range(shape[1]), key=lambda j, row=row: (row[0][j], row[1][j])) for row in keys]
    assert rinf.match(make_task(scores)).target_ids.tolist() == best


# ---- hungarian -------------------------------------------------------------------------------------------------------


def best_by_trying(candidates):
    """(number of pairs, sum) of the best matching over the candidates, by trying all of them."""
    pairs = candidates.pairs
    options = [
        [(int(pairs.columns[place]), float(pairs.scores[place])) for place in np.flatnonzero(pairs.rows == row)]
        for row in range(candidates.num_rows)
    ]

    def best(row, taken):
        if row == len(options):
            return (0, 0.0)
        result = best(row + 1, taken)
        for column, score in options[row]:
            if column not in taken:
                count, value = best(row + 1, taken | {column})
                result = max(result, (count + 1, value + score))
        return result

    return best(0, frozenset())


@pytest.mark.parametrize("dense_cells", [0, 4_000_000])
@pytest.mark.parametrize("shape", [(1, 1), (5, 5), (3, 5), (5, 3), (1, 4)])
@pytest.mark.parametrize("k", [None, 1, 2, 3])
def test_hungarian_finds_most_pairs_and_then_the_best_sum(dense_cells, shape, k, make_task):
    rng = np.random.default_rng(sum(shape))
    for _ in range(5):
        scores = rng.normal(size=shape).astype(np.float32) + 3 * rng.normal(size=shape[1]).astype(np.float32)
        scores[0, 0] = 0.0  # a pair like any other
        task = make_task(scores, k=k)
        matching = hungarian.match(task, dense_cells)
        assert matching.is_one_to_one
        total = scores[matching.source_ids, matching.target_ids].astype(np.float64).sum()
        assert (len(matching), total) == pytest.approx(best_by_trying(task.candidates), abs=1e-5)


def test_both_solvers_agree(make_task):
    task = make_task(np.random.default_rng(0).random((60, 60)))
    dense, sparse = hungarian.match(task), hungarian.match(task, dense_cells=0)
    assert dense.target_ids.tolist() == sparse.target_ids.tolist()
    assert dense.confidences.tobytes() == sparse.confidences.tobytes()


# ---- stable ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("shape", "k"), [((30, 30), 30), ((30, 30), 4), ((20, 35), 5), ((35, 20), 5)])
def test_stable_has_no_blocking_pair_and_is_the_greedy_matching(shape, k, make_task):
    rng = np.random.default_rng(k)
    task = make_task(np.round(rng.random(shape), 2) + 0.3 * rng.random(shape[1]).round(1), k=k, seed=k)  # with ties
    links = links_of(stable.match(task))
    assert links == links_of(greedy.match(task))
    assert len(links) > min(shape) // 2
    pairs = task.candidates.pairs
    scores = dict(zip(zip(pairs.rows.tolist(), pairs.columns.tolist(), strict=True), pairs.scores, strict=True))
    of_row, of_column = ({link[side]: scores[link] for link in links} for side in (0, 1))
    assert not any(
        score > max(of_row.get(row, -np.inf), of_column.get(column, -np.inf)) for (row, column), score in scores.items()
    )


# ---- seq -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("similarity", "threshold", "low", "high"),
    [(0.8, 0.7, 1.0, 1.0), (0.5, 0.7, 0.4, 0.6), (0.2, 0.7, 0.12, 0.28), (-0.5, 0.7, 0, 0), (0.8, 0.9, 0.72, 0.88)],
)
def test_seq_matches_a_pair_for_sure_or_as_often_as_it_is_similar(similarity, threshold, low, high, make_task):
    target = np.array([[similarity, np.sqrt(1 - similarity**2)]], dtype=np.float32)
    vectors = Embeddings(np.array([[1.0, 0.0]], dtype=np.float32), target)
    found = [len(seq.match(make_task(vectors, seed=seed), threshold)) for seed in range(300)]
    assert low <= np.mean(found) <= high


def test_seq_takes_surer_pairs_first_and_only_the_best_candidates(make_task):
    assert links_of(seq.match(make_task([[1.0, 0.9], [0.95, 0.1]]), threshold=0.0)) == {(0, 0), (1, 1)}
    # With one candidate each, the second source has lost its own to the first.
    task = make_task([[1.0, 0.9], [0.95, 0.8]])
    assert links_of(seq.match(task, threshold=0.0, candidates_per_source=1)) == {(0, 0)}


# ---- sinkhorn --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(12, 12), (8, 13), (13, 8)])
def test_sinkhorn_plan_has_its_marginals(shape, make_task):
    """The smaller pool gives all of its mass, the larger takes at most its own."""
    task = make_task(np.random.default_rng(0).random(shape))
    plan = np.exp(sinkhorn.log_transport_plan(task.candidates, 0.1, 500))
    sums = [np.bincount(ids, weights=plan) for ids in (task.candidates.pairs.rows, task.candidates.pairs.columns)]
    small, large = sorted(sums, key=len)
    np.testing.assert_allclose(small, 1, rtol=1e-3)
    assert large.max() <= 1 + 1e-3
    assert (large.min() < 0.9) == (shape[0] != shape[1])


def test_sinkhorn_plan_is_the_textbook_one(make_task):
    """The iteration in its plain form, without logarithms."""
    task = make_task(np.random.default_rng(1).random((5, 5)))
    pairs = task.candidates.pairs
    scores = np.zeros((5, 5))
    scores[pairs.rows, pairs.columns] = pairs.scores
    plan = np.exp(scores / np.abs(scores).max() / 0.1)
    for _ in range(20):
        plan /= plan.sum(axis=1, keepdims=True)
        plan /= plan.sum(axis=0, keepdims=True)
    found = np.exp(sinkhorn.log_transport_plan(task.candidates, 0.1, 20))
    np.testing.assert_allclose(found, plan[pairs.rows, pairs.columns], rtol=1e-9)


def test_a_cold_plan_is_the_best_assignment(make_task):
    rng = np.random.default_rng(2)
    for _ in range(5):
        task = make_task(rng.random((6, 6)))
        cold = sinkhorn.match(task, temperature=0.002, iterations=3000)
        assert cold.target_ids.tolist() == hungarian.match(task).target_ids.tolist()


def test_huge_scores_neither_overflow_nor_lose_a_row(make_task):
    task = make_task(1e6 * np.random.default_rng(3).normal(size=(9, 9)))
    assert np.isfinite(sinkhorn.log_transport_plan(task.candidates, temperature=1e-5)).all()
    assert len(sinkhorn.match(task, temperature=1e-5)) == 9
