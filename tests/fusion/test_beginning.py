"""Where a run begins: with enough seeds, with few, and with none."""

import numpy as np

from rlea.agent.bootstrap import ENOUGH_SEEDS, FEW, begin, vote
from rlea.evidence.channel import Channel
from rlea.graph import Links

from .conftest import make_channel, pairs_from


def diagonal(name, first, last, score=1.0):
    return make_channel(name, {(i, i): score for i in range(first, last)})


def agreed(beginning):
    return list(zip(beginning.agreed.source_ids.tolist(), beginning.agreed.target_ids.tolist(), strict=True))


def test_enough_seeds_and_nobody_is_asked():
    def refuse(_):
        raise AssertionError("a channel was asked")

    asked = Channel("names", ("names",), pairs_from([(0, 0)]), refuse)
    seeds = Links.of(np.arange(ENOUGH_SEEDS), np.arange(ENOUGH_SEEDS))
    found = begin(seeds, [asked])
    assert found.is_seeded
    assert len(found.agreed) == 0
    assert len(found.links) == ENOUGH_SEEDS
    assert found.tell() == "it began with 500 seeds"
    assert found.as_dict() == {"seeds": 500, "agreed": 0, "witnesses": {}, "told": "it began with 500 seeds"}


def test_few_seeds_come_first_and_their_entities_are_not_agreed_on_again():
    seeds = Links.of([0, 1], [1, 0])
    found = begin(seeds, [diagonal("names", 0, 80), diagonal("words", 0, 70), diagonal("paris", 75, 90)])
    assert not found.is_seeded
    assert found.least == 2
    assert agreed(found) == [(i, i) for i in (*range(2, 70), *range(75, 80))]
    assert found.links.source_ids.tolist()[:3] == [0, 1, 2]
    assert found.links.target_ids.tolist()[:3] == [1, 0, 2]
    assert found.witnesses == {"names": 80, "words": 70, "paris": 15}
    assert found.tell() == (
        "it began with 2 seeds, which are few, and 73 pairs that two or more of names, words, paris find the best "
        "both ways"
    )


def test_one_short_of_enough_is_few():
    seeds = Links.of(np.arange(ENOUGH_SEEDS - 1), np.arange(ENOUGH_SEEDS - 1))
    assert not begin(seeds, []).is_seeded
    assert begin(seeds, []).links.source_ids.tolist() == seeds.source_ids.tolist()


def test_where_two_agree_on_too_few_one_is_enough():
    channels = [diagonal("names", 0, FEW + 9), diagonal("words", 0, FEW - 1)]
    found = begin(Links.empty(), channels)
    assert (found.least, len(found.agreed)) == (1, FEW + 9)
    assert found.tell() == (
        "there are no seeds: it began with 59 pairs that one or more of names, words find the best both ways"
    )
    assert begin(Links.empty(), [channels[0], diagonal("words", 0, FEW)]).least == 2


def test_conflicting_votes_are_left_out():
    first = make_channel("names", {(0, 0): 1.0, (1, 1): 1.0, (2, 2): 1.0, (5, 5): 1.0})
    second = make_channel("words", {(0, 1): 1.0, (2, 2): 1.0, (3, 3): 1.0, (4, 5): 1.0})
    third = make_channel("paris", {(2, 3): 1.0})
    # 0 and 1 are claimed by different pairs with one witness each, as is target 5; (2, 2) has two of three.
    assert agreed(begin(Links.empty(), [first, second, third])) == [(2, 2)]
    # (3, 3) shares its target with (2, 3): without the third channel nobody contests it.
    assert agreed(begin(Links.empty(), [first, second])) == [(2, 2), (3, 3)]


def test_a_seed_settles_what_its_entities_are_in_conflict_about():
    first, second = make_channel("names", {(0, 0): 1.0}), make_channel("words", {(0, 1): 1.0})
    assert agreed(begin(Links.of([7], [0]), [first, second])) == [(0, 1)]


def test_pairs_of_equal_score_stand_out_for_nobody():
    torn = make_channel("names", {(0, 0): 0.5, (0, 1): 0.5, (1, 2): 0.5, (2, 3): 0.0})
    pairs, counts, witnesses = vote([torn])
    assert (pairs.source_ids.tolist(), pairs.target_ids.tolist()) == ([1], [2])
    assert counts.tolist() == [1.0]
    assert witnesses == {"names": 1}


def test_without_channels_there_is_nothing():
    found = begin(Links.empty(), [])
    assert len(found.links) == 0
    assert "there are no seeds" in found.tell()
    assert begin(Links.of([0], [0]), []).tell() == ("it began with one seed, and no pairs that channels agree on")
