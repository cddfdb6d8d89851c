from __future__ import annotations

import numpy as np

from rlea.matchers.rinf import match, rank_within


def test_ranks_within_groups_and_shared_ranks():
    groups = np.array([0, 1, 0, 1, 0, 0])
    values = np.array([0.3, 5.0, 0.9, 7.0, 0.3, 0.1])
    assert rank_within(groups, values).tolist() == [2.5, 2.0, 1.0, 1.0, 2.5, 4.0]
    assert rank_within(groups[:0], values[:0]).tolist() == []


def test_equals_the_dense_form(make_task):
    rng = np.random.default_rng(4)
    for shape in ((7, 7), (5, 9), (9, 5)):
        scores = rng.random(shape).astype(np.float32)
        wide = scores.astype(np.float64)

        def mean_ranks(preferences, axis):  # 1 is the highest
            higher = (np.expand_dims(preferences, axis) > np.expand_dims(preferences, axis + 1)).sum(axis=axis + 1)
            same = (np.expand_dims(preferences, axis) == np.expand_dims(preferences, axis + 1)).sum(axis=axis + 1)
            return higher + (same + 1) / 2

        by_source = mean_ranks(wide - wide.max(axis=0, keepdims=True) + 1, 1)
        by_target = mean_ranks(wide.T - wide.max(axis=1) + 1, 1).T
        average = (by_source + by_target) / 2
        best = [
            max(range(shape[1]), key=lambda j, row=row: (-average[row, j], wide[row, j])) for row in range(shape[0])
        ]
        assert match(make_task(scores)).target_ids.tolist() == best
