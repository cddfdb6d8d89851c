"""Candidates of evidence, and both matchers that take no vectors as the rest of the program calls them."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from rlea.agent.fused_matcher import candidates_of, find_by_paris, match

from rlea.evaluation.gold_ranks import GoldRanks
from rlea.evaluation.metrics import link_metrics
from rlea.graph import Links
from rlea.matchers import MATCHERS
from rlea.matching import Task

from .conftest import bytes_of, pairs_from, unlinked

SAID = st.dictionaries(st.tuples(st.integers(0, 9), st.integers(0, 9)), st.integers(-20, 20), max_size=40)


@given(SAID, st.permutations(range(10)), st.permutations(range(10)), st.integers(0, 10), st.integers(0, 10))
@settings(max_examples=60, deadline=None)
def test_candidates_are_the_best_both_ways_by_position_in_the_pools(said, rows, columns, num_rows, num_columns):
    source_ids, target_ids = np.array(rows[:num_rows], np.int32), np.array(columns[:num_columns], np.int32)
    scores = np.array([said[pair] for pair in sorted(said)], np.float32)
    found = candidates_of(pairs_from(said), scores, source_ids, target_ids, k=3)
    assert found.forward_columns.shape == (num_rows, 3)
    assert found.backward_rows.shape == (num_columns, 3)
    for i, entity in enumerate(source_ids.tolist()):
        own = sorted((said[s, t] for s, t in said if s == entity and t in target_ids), reverse=True)[:3]
        here = found.forward_columns[i][: len(own)]
        assert found.forward_scores[i].tolist() == own + [-np.inf] * (3 - len(own))
        assert [said[entity, int(target_ids[j])] for j in here] == own
        assert (found.forward_columns[i][len(own) :] == -1).all()
    for j, entity in enumerate(target_ids.tolist()):
        own = sorted((said[s, t] for s, t in said if t == entity and s in source_ids), reverse=True)[:3]
        assert found.backward_scores[j].tolist() == own + [-np.inf] * (3 - len(own))
        assert [said[int(source_ids[i]), entity] for i in found.backward_rows[j][: len(own)]] == own


def test_candidates_of_nothing():
    nobody = np.zeros(0, np.int32)
    for pools in ((nobody, nobody), (np.arange(2, dtype=np.int32), nobody), (np.arange(2, dtype=np.int32),) * 2):
        found = candidates_of(pairs_from([]), np.zeros(0, np.float32), *pools)
        assert len(found.pairs) == 0
        assert found.embeddings.name == "evidence"


def test_gold_links_are_ranked_among_them():
    pairs = pairs_from([(0, 0), (0, 1), (1, 1)])
    pools = np.arange(2, dtype=np.int32)
    found = candidates_of(pairs, np.array([1, 3, 2], np.float32), pools, pools)
    ranks = GoldRanks.of(found, Links.of([0, 1], [0, 1]))
    assert ranks.source_ranks.tolist() == [2, 1]
    assert ranks.target_ranks.tolist() == [1, 2]


def test_paris_is_not_shown_gold_or_validation_links(planted):
    ids = [
        np.setdiff1d(np.arange(300, dtype=np.int32), part)
        for part in (planted.train.source_ids, planted.train.target_ids)
    ]
    found = find_by_paris(planted, *ids)
    hidden = find_by_paris(unlinked(planted, planted.train), *ids)
    assert bytes_of(found.matching) == bytes_of(hidden.matching)
    assert found.matching.is_one_to_one
    assert link_metrics(found.matching, planted.test).precision > 0.8
    assert len(found.schema.relations) > 5
    assert found.trace is None
    positions = {int(entity): place for place, entity in enumerate(ids[0])}
    for s, t in list(zip(found.matching.source_ids, found.matching.target_ids, strict=True))[:20]:
        row = found.candidates.forward_columns[positions[int(s)]]
        assert t in ids[1][row[row >= 0]]


def test_as_a_matcher_it_needs_no_more_of_the_candidates_than_the_pools(planted, monkeypatch):
    asked = {}

    def find(pair, source_ids, target_ids, **more):
        asked.update(more, pair=pair, pools=(source_ids.tolist(), target_ids.tolist()))
        return find_by_paris(pair, source_ids, target_ids)

    monkeypatch.setattr("rlea.agent.fused_matcher.find_by_all", find)
    pool = np.array([3, 1, 2], np.int32)
    given = candidates_of(pairs_from([]), np.zeros(0, np.float32), pool, pool)
    found = match(Task(planted.source, planted.target, planted.train, given, 11))
    assert found.is_one_to_one
    assert asked["pools"] == ([3, 1, 2], [3, 1, 2])
    assert asked["seed"] == 11
    assert (len(asked["pair"].valid), len(asked["pair"].test)) == (0, 0)
    assert asked["pair"].train is planted.train
    assert not MATCHERS["fused"].takes_vectors
    assert MATCHERS["fused"].one_to_one
