from __future__ import annotations

import numpy as np
import pytest

from rlea.graph import Links
from rlea.matchers.seq import SeqSettings, match
from rlea.matching import Task
from rlea.search.candidates import find_candidates
from rlea.search.embeddings import Embeddings


def share_matched(similarity, settings=None):
    """How often one source and one target of this cosine are matched, over 400 seeds."""
    source = np.array([[1.0, 0.0]], dtype=np.float32)
    target = np.array([[similarity, np.sqrt(1 - similarity**2)]], dtype=np.float32)
    candidates = find_candidates(Embeddings(source, target), np.arange(1), np.arange(1), 10)
    tasks = (Task(None, None, Links.empty(), candidates, seed) for seed in range(400))  # type: ignore[arg-type]
    return np.mean([len(match(task, settings)) for task in tasks])


@pytest.mark.parametrize(
    ("similarity", "low", "high"), [(0.8, 1.0, 1.0), (0.5, 0.4, 0.6), (0.2, 0.12, 0.28), (-0.5, 0, 0)]
)
def test_a_pair_is_matched_for_sure_or_as_often_as_it_is_similar(similarity, low, high):
    assert low <= share_matched(similarity) <= high


def test_below_the_threshold_chance_decides():
    assert 0.72 <= share_matched(0.8, SeqSettings(threshold=0.9)) <= 0.88


def test_surer_pairs_go_first(make_task):
    matching = match(make_task([[1.0, 0.9], [0.95, 0.1]]), SeqSettings(threshold=0.0))
    assert dict(zip(matching.source_ids.tolist(), matching.target_ids.tolist(), strict=True)) == {0: 0, 1: 1}


def test_only_the_best_candidates_of_a_source_count(make_task):
    # The second source has lost its one candidate to the first.
    scores = [[1.0, 0.9], [0.95, 0.8]]
    assert len(match(make_task(scores), SeqSettings(threshold=0.0, candidates_per_source=1))) == 1
    assert len(match(make_task(scores), SeqSettings(threshold=0.0, candidates_per_source=2))) == 2


def test_no_candidates_at_all_is_refused():
    with pytest.raises(ValueError, match="at least 1"):
        SeqSettings(candidates_per_source=0)
