"""Held-out links: drawn by the link alone, whatever the others, their order and the random seed; and the examples."""

import numpy as np
import pytest

from planted import links_of, make_pairs, take
from rlea.agent import holdout
from rlea.agent.features import Features
from rlea.agent.holdout import HeldOut, HoldoutSettings, assign_parts, draw, hold_out, unseeded
from rlea.agent.memory import Graphs
from rlea.agent.passes import Decisions, Problem, no_decisions
from rlea.graph import Links
from rlea.io.synthetic import SyntheticSettings, generate

from .test_memory import random_graphs


def some_links(count, seed=0):
    rng = np.random.default_rng(seed)
    return Links.of(rng.choice(10**6, count, replace=False), rng.choice(10**6, count, replace=False))


# ---- parts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [6, 100, 2000])
def test_parts_do_not_depend_on_the_order_of_links(count):
    links = some_links(count)
    order = np.random.default_rng(1).permutation(count)
    np.testing.assert_array_equal(assign_parts(take(links, order), 3), assign_parts(links, 3)[order])


def test_a_link_stays_in_its_part_whatever_others_there_are():
    links = some_links(2000)
    whole = assign_parts(links, 3)
    rng = np.random.default_rng(0)
    for share in (0.2, 0.5, 0.9, 0.9995):
        some = np.flatnonzero(rng.random(2000) < share)
        np.testing.assert_array_equal(assign_parts(take(links, some), 3), whole[some])


@pytest.mark.parametrize("parts", [2, 3, 10])
def test_no_part_is_empty_and_all_are_much_alike(parts):
    for seed in range(20):
        for count in (parts, 2 * parts, 2 * parts + 1, 40, 3000):
            counts = np.bincount(assign_parts(some_links(count, seed), parts), minlength=parts)
            assert len(counts) == parts
            assert 2 * parts * counts.min() >= count
            if count < 4 * parts:
                assert counts.min() >= 1
            if count == 3000:
                assert np.abs(counts / count - 1 / parts).max() < 0.05
    assert len(assign_parts(Links.empty(), parts)) == 0


def test_few_links_are_dealt_out_evenly():
    """So few that drawing leaves a part empty now and then."""
    uneven = 0
    for seed in range(50):
        links = some_links(6, seed)
        drawn = np.bincount((3 * draw(links, holdout.PART)).astype(int), minlength=3)
        counts = np.bincount(assign_parts(links, 3), minlength=3)
        uneven += drawn.min() == 0
        assert counts.tolist() == ([2, 2, 2] if drawn.min() == 0 else drawn.tolist())
    assert uneven > 5


@pytest.mark.parametrize("values", [{"parts": 1}, {"dangling": 1.0}, {"dangling": -0.1}])
def test_settings_that_make_no_sense_are_refused(values):
    with pytest.raises(ValueError, match="needs two parts or more"):
        HoldoutSettings(**values)


# ---- games ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pair():
    return generate(SyntheticSettings(120, seeds=0.5, valid=0.0))


@pytest.fixture(scope="module")
def graphs(pair):
    return Graphs.of(pair.source, pair.target)


def test_every_link_is_held_out_once_and_is_no_part_of_its_game(pair, graphs):
    games = hold_out(graphs, pair.train, len(pair.train), HoldoutSettings(dangling=0.3))
    held = [links_of(game.links) for game in games]
    assert len(games) == 3
    assert set.union(*held) == links_of(pair.train)
    assert sum(map(len, held)) == len(pair.train)
    for game, own in zip(games, held, strict=True):
        assert links_of(game.problem.seeds) == links_of(pair.train) - own
        hidden = game.links.target_ids[game.is_dangling]
        assert 0 < len(hidden) < len(game.links)
        ids = game.problem.source_ids, game.problem.target_ids
        known = game.problem.seeds.source_ids, game.problem.seeds.target_ids
        assert sorted(ids[0]) == sorted(set(range(graphs.num_source)) - set(known[0].tolist()))
        assert sorted(ids[1]) == sorted(set(range(graphs.num_target)) - set(known[1].tolist()) - set(hidden.tolist()))
        assert ids[0].tolist() != sorted(ids[0])  # positions tell nothing


def test_pseudo_seeds_are_held_out_but_never_known(pair, graphs):
    games = hold_out(graphs, pair.train, 20, HoldoutSettings(most=12, dangling=0.0))
    seeds = links_of(take(pair.train, slice(20)))
    for game in games:
        assert links_of(game.problem.seeds) <= seeds
        assert len(game.links) == 12
        assert links_of(game.links) >= seeds - links_of(game.problem.seeds)  # seeds come before pseudo-seeds
    assert set.union(*(links_of(game.links) for game in games)) > seeds


def test_a_link_more_changes_what_one_game_holds_out_and_what_the_others_know(pair, graphs):
    last = int(pair.train.source_ids[-1])
    fewer = take(pair.train, slice(-1))
    games = [hold_out(graphs, links, len(links), HoldoutSettings()) for links in (pair.train, fewer)]
    (mine,) = [number for number, game in enumerate(games[0]) if last in game.links.source_ids]
    for number, (one, other) in enumerate(zip(*games, strict=True)):
        known = [set(game.problem.seeds.source_ids.tolist()) for game in (one, other)]
        held = [set(game.links.source_ids.tolist()) for game in (one, other)]
        assert known[0] ^ known[1] == (set() if number == mine else {last})
        assert held[0] ^ held[1] == ({last} if number == mine else set())


@pytest.mark.parametrize(("count", "num_games"), [(0, 0), (5, 0), (6, 3)])
def test_too_few_links_make_no_game(pair, graphs, count, num_games):
    links = take(pair.train, slice(count))
    assert len(hold_out(graphs, links, count, HoldoutSettings())) == num_games


def test_all_without_a_seed_are_to_be_matched_in_random_order(pair):
    seeds = Links.of([1, 3], [0, 2])
    source_ids, target_ids = unseeded(pair, seeds)
    assert sorted(source_ids) == sorted(set(range(pair.source.num_entities)) - {1, 3})
    assert sorted(target_ids) == sorted(set(range(pair.target.num_entities)) - {0, 2})
    assert source_ids.tolist() != sorted(source_ids)
    assert source_ids.tolist() != target_ids.tolist()


# ---- examples -------------------------------------------------------------------------------------------------------


def game_of(rows, links, is_dangling, matched=()):
    graphs = random_graphs(np.random.default_rng(0), 40, 40)
    everyone = np.arange(40, dtype=np.int32)
    ends = [np.array([link[side] for link in matched], np.int32) for side in (0, 1)]
    ones = np.ones(len(matched), np.float32)
    decisions = Decisions(*ends, ones, ones, make_pairs(rows), np.zeros(len(rows), np.float32))
    problem = Problem(graphs, Links.empty(), everyone, everyone)
    return HeldOut(problem, links, np.array(is_dangling), no_decisions(), decisions)


def test_examples_and_judgement_by_hand():
    """Source 0 belongs to target 1; the counterpart of source 1, target 9, was taken away."""
    rows = [(0, 0), (0, 1), (1, 0), (1, 2), (2, 2)]
    game = game_of(rows, Links.of([0, 1], [1, 9]), [False, True], [(0, 0), (2, 2)])
    columns = np.arange(5, dtype=np.float32)[:, None]
    examples = game.examples(Features(columns, np.array([0.1, 0.2, 0.3, 0.9, 0.0], np.float32)))
    ends = zip(examples.starts, examples.starts[1:], strict=False)
    groups = [examples.features[examples.places[low:high], 0].tolist() for low, high in ends]
    assert groups == [[1, 0], [3, 2], [1]]  # sources 0 and 1, target 1; highest priority first
    assert [examples.features[truth, 0] if truth >= 0 else -1 for truth in examples.truths] == [1, -1, 1]
    known, is_right = game.judge(game.decisions)
    assert known.tolist() == [0]  # source 2 was not held out
    assert is_right.tolist() == [False, False]


def test_examples_keep_the_best_pairs_and_the_true_one():
    """One source with thirty pairs, the true one the last of them."""
    rows = [(0, t) for t in range(30)]
    game = game_of(rows, Links.of([0], [29]), [False])
    priorities = -np.arange(30, dtype=np.float32)
    examples = game.examples(Features(priorities[:, None], priorities))
    assert (-examples.features[examples.places, 0]).tolist() == [*range(holdout.KEPT_PAIRS), 29, 29]
    assert (-examples.features[examples.truths, 0]).tolist() == [29, 29]
