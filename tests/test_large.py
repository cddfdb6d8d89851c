"""Large pairs, whose work is bounded: as good as in full, for every kind of pair. Small graphs stand in for them."""

from dataclasses import replace

import numpy as np
import pytest

import rlea
from planted import make_graph, make_pairs
from rlea.agent.holdout import HoldoutSettings, hold_out_together
from rlea.agent.memory import Graphs
from rlea.agent.null_model import region, round_up, take_out_few
from rlea.agent.passes import Decisions, Problem
from rlea.evaluation.metrics import link_metrics
from rlea.graph import GraphPair, Links
from rlea.io.synthetic import SyntheticSettings, generate

PLAIN = SyntheticSettings(num_entities=700, dangling=0.2, nameless=0.05, name_noise=0.1, seeds=0.0, valid=0.0)


@pytest.fixture
def bounded(monkeypatch):
    monkeypatch.setattr("rlea.graph.size.LARGE", 9)
    monkeypatch.setattr("rlea.agent.null_model.REGION", 400)
    monkeypatch.setattr("rlea.agent.verification.MOST_COMPARED", 300)


def f1(pair, **options):
    found = rlea.align(pair, **options)
    return link_metrics(found.matching, pair.test, complete=True).f1


def test_no_evidence_is_given_up_and_none_is_missed(bounded):
    pair = generate(PLAIN)
    found = rlea.align(pair)
    assert found.settings.matcher == "fused"
    assert link_metrics(found.matching, pair.test, complete=True).f1 > 0.97
    assert found.overlap.shared == pytest.approx(0.8 * 700, rel=0.1)
    recalls = [one["recall"] for one in found.info["evidence"] if one["channel"] == "words"]
    assert len(recalls) >= 3
    assert min(recalls) > 0.5


@pytest.mark.parametrize("seeds", [0.03, 0.3])
def test_seeds_are_learned_from_in_one_game(bounded, seeds):
    pair = generate(replace(PLAIN, seeds=seeds))
    assert f1(pair) > 0.95


def test_graphs_that_share_nothing_get_no_links(bounded):
    one, other = generate(PLAIN), generate(replace(PLAIN, seed=1))
    found = rlea.align(GraphPair("unrelated", one.source, other.target))
    assert len(found.matching) <= 7


def test_one_graph_may_be_much_larger(bounded):
    pair = generate(PLAIN)
    kept = np.sort(np.random.default_rng(0).permutation(700)[:90]).astype(np.int32)
    place = np.full(700, -1)
    place[kept] = np.arange(90)
    known = place[pair.test.source_ids] >= 0
    gold = Links.of(place[pair.test.source_ids[known]], pair.test.target_ids[known])
    small = GraphPair("unequal", pair.source.some(kept), pair.target, test=gold)
    found = rlea.align(small, keep="all").matching
    assert link_metrics(found, gold).recall > 0.7


def test_ten_entities_and_rows_without_relations(bounded):
    words = [f"{one} {two}" for one in ("amber", "birch", "cedar", "delta") for two in ("field", "grove", "hill")]
    label = "http://www.w3.org/2000/01/rdf-schema#label"
    sides = [
        make_graph(literals=[(f"{side}{number:02}", label, word) for number, word in enumerate(words)])
        for side in ("a", "b")
    ]
    found = rlea.align(GraphPair("rows", *sides), keep="all").matching
    assert np.array_equal(found.source_ids, found.target_ids)


def test_hubs_and_values_of_everybody_do_no_harm(bounded):
    crowded = generate(replace(PLAIN, hubs=3, hub_edges=700))
    assert f1(crowded) > 0.95


def test_all_parts_are_held_out_of_one_problem():
    pair = generate(replace(PLAIN, seeds=0.5))
    seeds = pair.train
    games = hold_out_together(Graphs.of_pair(pair), seeds, len(seeds), HoldoutSettings())
    assert len({id(game.problem) for game in games}) == 1
    held = np.concatenate([game.links.source_ids for game in games])
    assert len(np.unique(held)) == len(held) == len(seeds) // 2
    assert not set(held) & set(games[0].problem.seeds.source_ids.tolist())
    assert set(held) <= set(games[0].problem.source_ids.tolist())
    gone = np.concatenate([game.links.target_ids[game.is_dangling] for game in games])
    assert len(gone)
    assert not set(gone) & set(games[0].problem.target_ids.tolist())
    few = hold_out_together(Graphs.of_pair(pair), Links.of([0, 1], [0, 1]), 2, HoldoutSettings())
    assert few == []


def test_a_region_has_the_entities_asked_for_and_holds_together():
    graph = generate(replace(PLAIN, num_entities=3000)).source
    ids = region(graph, 300)
    assert len(ids) == len(np.unique(ids)) == 300
    by_chance = graph.some(np.sort(np.random.default_rng(0).permutation(3000)[:300]).astype(np.int32))
    assert graph.some(ids).num_triples > 2 * by_chance.num_triples
    assert len(region(graph, 5000)) == 3000
    assert len(region(make_graph(entities=[f"e{n}" for n in range(50)]), 20)) == 20


def test_what_is_around_a_match_that_was_taken_out_is_decided_again():
    pairs = make_pairs([(n, m) for n in range(400) for m in (n, (n + 1) % 400)])
    ids = np.arange(400, dtype=np.int32)
    ones = np.ones(400, np.float32)
    decisions = Decisions(ids, ids, ones, ones, pairs, np.ones(len(pairs), np.float32))
    graphs = Graphs.of(*(make_graph(entities=[f"{side}{n:03}" for n in range(400)]) for side in "ab"))
    less = take_out_few(Problem(graphs, Links.empty(), ids, ids), decisions)
    assert (len(less.source_ids), len(less.target_ids)) == (40, 40)
    is_open = set(less.problem.source_ids.tolist()), set(less.problem.target_ids.tolist())
    assert set(less.source_ids.tolist()) <= is_open[0]  # freed ...
    assert not set(less.source_ids.tolist()) & is_open[1]  # ... for their targets are gone
    assert not set(less.target_ids.tolist()) & is_open[0]
    gone = set(less.target_ids.tolist())
    for source in less.source_ids.tolist():  # whom it could get instead, and who has that one now
        rival = (source + 1) % 400
        assert rival in gone | is_open[1] | set(less.source_ids.tolist())
        assert rival in is_open[0] | gone
    assert len(is_open[0]) < 400


def test_rivals_grow_as_often_as_it_takes():
    assert [round_up(factor, 2.0) for factor in (0.5, 2.0, 2.1, 64.0)] == [1, 1, 2, 6]
    assert round_up(10.0, 1.0) == 1
