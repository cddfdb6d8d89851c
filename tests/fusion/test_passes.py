"""The game with opinions: scales, and what matches may and may not say."""

import numpy as np

from rlea.agent.fused_passes import from_logits, play_opinions
from rlea.agent.memory import Board
from rlea.agent.passes import PassSettings, Scene, to_logits
from rlea.evidence.channel import Table
from rlea.graph import Links

from .conftest import make_graph, pairs_from

SETTINGS = PassSettings(kept=10)


def ring(letter, size=12):
    """Entities in a row, each with the next; relations alternate, so that the ends are all that is special."""
    return make_graph(
        [(f"{letter}{i:02}", f"{letter}r{i % 3}", f"{letter}{i + 1:02}") for i in range(size - 1)],
    )


def play(said, *, seeds=(), structure=True, pool=None, least=-2.0):
    source, target = ring("a"), ring("b")
    links = Links.of([i for i, _ in seeds], [j for _, j in seeds])
    ids = [np.setdiff1d(np.arange(12, dtype=np.int32), taken) for taken in (links.source_ids, links.target_ids)]
    if pool is not None:
        ids = [np.array(part, np.int32) for part in pool]
    pairs = pairs_from(said)
    opinion = Table(pairs, np.array([said[pair] for pair in sorted(said)], np.float32), least)
    scene = Scene(Board.of(source, target), links, *ids)
    return play_opinions(scene, SETTINGS, pairs, opinion, least, structure=structure)


def found(decisions):
    return dict(zip(decisions.source_ids.tolist(), decisions.target_ids.tolist(), strict=True))


def test_logits_and_keys_are_two_scales_of_one_thing():
    logits = np.linspace(-8, 8, 33, dtype=np.float32)
    keys = from_logits(logits, SETTINGS)
    np.testing.assert_allclose(to_logits(keys, SETTINGS), logits, atol=1e-4)
    assert (np.diff(keys) > 0).all()
    np.testing.assert_allclose(to_logits(np.array([SETTINGS.nobody], np.float32), SETTINGS), 0, atol=1e-6)


def test_without_structure_the_better_opinion_wins_and_nobody_else_is_brought_in():
    said = {(0, 0): 1.0, (0, 1): 3.0, (1, 1): 2.0, (1, 0): -1.0, (5, 7): 4.0}
    decisions = play(said, structure=False)
    assert found(decisions) == {0: 1, 1: 0, 5: 7}
    assert set(zip(decisions.pairs.source_ids.tolist(), decisions.pairs.target_ids.tolist(), strict=True)) == set(said)


def test_matches_speak_for_their_neighbours():
    """The middle of the row is known; nobody has an opinion of the rest."""
    decisions = play({(5, 5): 6.0, (6, 6): 6.0}, seeds=[(4, 4), (7, 7)])
    links = found(decisions)
    assert links[5] == 5
    assert links[6] == 6
    assert sum(links.get(i) == i for i in range(12) if i not in (4, 7)) >= 8
    assert len(set(links.values())) == len(links)


def test_seeds_and_entities_outside_the_pool_are_not_matched_again():
    decisions = play({(i, i): 3.0 for i in range(12)}, seeds=[(4, 4)], pool=([1, 2, 3], [2, 3, 5]))
    links = found(decisions)
    assert set(links) <= {1, 2, 3}
    assert set(links.values()) <= {2, 3, 5}
    assert links[2] == 2
    assert links[3] == 3


def test_nobody_to_match_gives_no_links():
    for pool in (([], []), ([1, 2], []), ([], [1, 2])):
        decisions = play({}, pool=pool)
        assert len(decisions.source_ids) == len(decisions.matching) == 0
