"""One small case, worked by hand, on which the matchers part ways."""

from __future__ import annotations

import numpy as np
import pytest

from rlea.matchers import MATCHERS

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
def test_every_matcher_finds_what_it_should(name, make_task):
    matching = MATCHERS[name](make_task(SCORES))
    assert set(zip(matching.source_ids.tolist(), matching.target_ids.tolist(), strict=True)) == EXPECTED[name]


def test_greedy_takes_an_easier_case_in_one_to_one_pairs(make_task):
    scores = np.eye(5)[[3, 1, 4, 0, 2]] + 0.1
    for name in sorted(name for name, matcher in MATCHERS.items() if not matcher.uses_structure):
        matching = MATCHERS[name](make_task(scores))
        assert matching.target_ids.tolist() == [3, 1, 4, 0, 2], name
        assert matching.source_ids.tolist() == [0, 1, 2, 3, 4], name


def test_a_source_whose_candidates_are_taken_stays_unmatched(make_task):
    # One candidate each: both sources want target 0, and targets 1 and 2 ask for source 0.
    task = make_task([[0.9, 0.5, 0.4], [0.8, 0.1, 0.2]], k=1)
    for name in ("greedy", "stable"):
        matching = MATCHERS[name](task)
        assert (matching.source_ids.tolist(), matching.target_ids.tolist()) == ([0], [0])
    hungarian = MATCHERS["hungarian"](task)
    assert set(zip(hungarian.source_ids.tolist(), hungarian.target_ids.tolist(), strict=True)) == {(0, 1), (1, 0)}
