from __future__ import annotations

import numpy as np
import pytest

from rlea.matchers import greedy
from rlea.matchers.stable import match


@pytest.mark.parametrize(("shape", "k"), [((30, 30), 30), ((30, 30), 4), ((20, 35), 5), ((35, 20), 5)])
def test_no_pair_blocks(shape, k, make_task):
    rng = np.random.default_rng(k)
    task = make_task(np.round(rng.random(shape), 2) + 0.3 * rng.random(shape[1]).round(1), k=k)  # with ties
    matching = match(task)
    assert matching.is_one_to_one
    assert len(matching) > min(shape) // 2
    pairs = task.candidates.pairs
    scores = {
        (int(row), int(column)): float(score)
        for row, column, score in zip(pairs.rows, pairs.columns, pairs.scores, strict=True)
    }
    links = list(zip(matching.source_ids.tolist(), matching.target_ids.tolist(), strict=True))
    own_of_row = {row: scores[row, column] for row, column in links}
    own_of_column = {column: scores[row, column] for row, column in links}
    blocking = [
        (row, column)
        for (row, column), score in scores.items()
        if score > own_of_row.get(row, -np.inf) and score > own_of_column.get(column, -np.inf)
    ]
    assert blocking == []


@pytest.mark.parametrize("seed", range(5))
def test_is_the_greedy_matching_when_both_sides_rank_alike(seed, make_task):
    rng = np.random.default_rng(seed)
    task = make_task(np.round(rng.random((40, 50)), 1), k=8, seed=seed)
    stable, other = match(task), greedy.match(task)
    assert stable.source_ids.tolist() == other.source_ids.tolist()
    assert stable.target_ids.tolist() == other.target_ids.tolist()
