from __future__ import annotations

import itertools

import numpy as np
import pytest

from rlea.matchers.hungarian import HungarianSettings, match

SPARSE = HungarianSettings(dense_cells=0)


def total(matching, scores):
    return scores[matching.source_ids, matching.target_ids].astype(np.float64).sum()


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


@pytest.mark.parametrize("settings", [HungarianSettings(), SPARSE])
@pytest.mark.parametrize("shape", [(1, 1), (4, 4), (5, 5), (3, 5), (5, 3), (1, 4), (4, 1)])
def test_equals_brute_force(settings, shape, make_task):
    rng = np.random.default_rng(sum(shape))
    for _ in range(10):
        scores = rng.normal(size=shape).astype(np.float32)  # negative scores too
        short, long = sorted(shape)
        flat = scores if shape[0] <= shape[1] else scores.T
        expected = max(
            flat[np.arange(short), list(columns)].astype(np.float64).sum()
            for columns in itertools.permutations(range(long), short)
        )
        matching = match(make_task(scores), settings)
        assert matching.is_one_to_one
        assert len(matching) == short
        assert total(matching, scores) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("shape", [(5, 5), (4, 6), (6, 4)])
def test_few_candidates_most_pairs_first_then_the_best_sum(k, shape, make_task):
    rng = np.random.default_rng(k)
    for _ in range(10):
        scores = rng.normal(size=shape).astype(np.float32) + 3 * rng.normal(size=shape[1]).astype(np.float32)
        task = make_task(scores, k=k)
        count, value = best_by_trying(task.candidates)
        matching = match(task)
        assert len(matching) == count
        assert total(matching, scores) == pytest.approx(value, abs=1e-5)


def test_sparse_over_all_candidates_is_the_dense_matching(make_task):
    task = make_task(np.random.default_rng(0).random((60, 60)))
    dense, sparse = match(task), match(task, SPARSE)
    assert dense.target_ids.tolist() == sparse.target_ids.tolist()
    assert dense.confidences.tobytes() == sparse.confidences.tobytes()


def test_a_score_of_zero_is_a_pair_like_any_other(make_task):
    scores = np.array([[0.0, -1.0], [-1.0, 0.0]])
    for settings in (HungarianSettings(), SPARSE):
        assert match(make_task(scores), settings).target_ids.tolist() == [0, 1]
