"""Links held out of games: by the link alone, whatever the others, their order and the random seed."""

from dataclasses import replace

import numpy as np
import pytest

from rlea.agent.holdout import ASKED, HIDDEN, PART, GameSettings, draw, hold_out, make_games
from rlea.agent.memory import Board
from rlea.agent.passes import PassSettings
from rlea.agent.propagation import SpreadSettings
from rlea.graph import Links
from rlea.io.synthetic import SyntheticSettings, generate

SHORT = PassSettings(candidates=5, spread=SpreadSettings(dim=16))


def some_links(count, seed=0):
    rng = np.random.default_rng(seed)
    return Links.of(rng.choice(10**6, count, replace=False), rng.choice(10**6, count, replace=False))


def take(links, places):
    return Links.of(links.source_ids[places], links.target_ids[places])


@pytest.mark.parametrize("count", [6, 100, 2000])
def test_parts_do_not_hang_on_the_order_of_links(count):
    links = some_links(count)
    order = np.random.default_rng(1).permutation(count)
    np.testing.assert_array_equal(hold_out(take(links, order), 3), hold_out(links, 3)[order])


def test_a_link_stays_in_its_part_whatever_others_there_are():
    links = some_links(2000)
    whole = hold_out(links, 3)
    rng = np.random.default_rng(0)
    for share in (0.2, 0.5, 0.9):
        some = np.flatnonzero(rng.random(2000) < share)
        np.testing.assert_array_equal(hold_out(take(links, some), 3), whole[some])
    np.testing.assert_array_equal(hold_out(take(links, np.arange(1999)), 3), whole[:-1])


@pytest.mark.parametrize("parts", [2, 3, 5, 10])
def test_no_part_is_empty_and_all_are_much_alike(parts):
    for seed in range(20):
        for count in (parts, 2 * parts, 2 * parts + 1, 40, 3000):
            counts = np.bincount(hold_out(some_links(count, seed), parts), minlength=parts)
            assert len(counts) == parts
            assert 2 * parts * counts.min() >= count
            if count < 4 * parts:
                assert counts.min() >= 1
            if count == 3000:
                assert np.abs(counts / count - 1 / parts).max() < 0.05
    assert len(hold_out(Links.empty(), parts)) == 0


def test_few_links_are_dealt_out_evenly():
    """So few that drawing would leave a part empty in some case."""
    uneven = 0
    for seed in range(50):
        links = some_links(6, seed)
        drawn = np.bincount((3 * draw(links, PART)).astype(int), minlength=3)
        counts = np.bincount(hold_out(links, 3), minlength=3)
        uneven += drawn.min() == 0
        assert counts.tolist() == ([2, 2, 2] if drawn.min() == 0 else drawn.tolist())
    assert uneven > 5


def test_every_use_has_numbers_of_its_own():
    links = some_links(3000)
    numbers = [draw(links, what) for what in (PART, ASKED, HIDDEN)]
    assert all(0 <= drawn.min() < drawn.max() < 1 for drawn in numbers)
    assert np.abs(np.corrcoef(numbers) - np.eye(3)).max() < 0.06
    assert abs(np.corrcoef(hold_out(links, 3), numbers[2])[0, 1]) < 0.06
    order = np.random.default_rng(0).permutation(3000)[:100]
    np.testing.assert_array_equal(draw(take(links, order), HIDDEN), numbers[2][order])


@pytest.fixture(scope="module")
def pair():
    return generate(SyntheticSettings(120, seeds=0.5, valid=0.0))


def test_games_are_the_same_each_time_and_hide_some_targets(pair):
    board = Board.of(pair.source, pair.target)
    told = []
    for _ in range(2):
        games = make_games(board, pair, pair.train, GameSettings(dangling=0.3), SHORT)
        rows = []
        for game in games:
            asked = zip(game.asked.source_ids.tolist(), game.asked.target_ids.tolist(), game.hidden, strict=True)
            rows.append(sorted(asked))
            assert 0 < game.hidden.sum() < len(game.hidden)
        told.append(rows)
    assert told[0] == told[1]


def test_a_seed_more_changes_one_game_only_by_what_it_asks(pair):
    """In the game that holds it out nothing else is known; in the others it is."""
    board = Board.of(pair.source, pair.target)
    fewer = replace(pair, train=take(pair.train, np.arange(len(pair.train) - 1)))
    last = int(pair.train.source_ids[-1])
    games = [make_games(board, one, one.train, GameSettings(), SHORT) for one in (pair, fewer)]
    (mine,) = [number for number, game in enumerate(games[0]) if last in game.asked.source_ids]
    for number, (one, other) in enumerate(zip(*games, strict=True)):
        known = [set(game.scene.seeds.source_ids.tolist()) for game in (one, other)]
        asked = [set(game.asked.source_ids.tolist()) for game in (one, other)]
        assert known[0] - known[1] == (set() if number == mine else {last})
        assert asked[0] - asked[1] == ({last} if number == mine else set())
        assert not known[1] - known[0]
        assert not asked[1] - asked[0]
