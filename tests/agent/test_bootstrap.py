"""Links to learn from: enough seeds, few seeds, and none."""

import numpy as np

from planted import make_channel, make_pairs, rows_of
from rlea.agent.bootstrap import ENOUGH_SEEDS, FEW, bootstrap, count_votes
from rlea.evidence.channel import Channel
from rlea.graph import Links


def diagonal(name, first, last):
    return make_channel(name, {(i, i): 1.0 for i in range(first, last)})


def pseudo_seeds(seeds, channels):
    return rows_of(bootstrap(seeds, channels).pseudo_seeds)


def test_with_enough_seeds_no_channel_is_asked():
    def refuse(_):
        raise AssertionError("a channel was asked")

    channel = Channel("names", ("names",), make_pairs([(0, 0)]), refuse)
    found = bootstrap(Links.of(np.arange(ENOUGH_SEEDS), np.arange(ENOUGH_SEEDS)), [channel])
    assert found.is_seeded
    assert len(found.links) == ENOUGH_SEEDS
    assert found.as_dict() == {"seeds": 500, "pseudo_seeds": 0, "mutual_best": {}, "told": "Started from 500 seeds"}


def test_few_seeds_come_first_and_their_entities_get_no_pseudo_seed():
    channels = [diagonal("names", 0, 80), diagonal("words", 0, 70), diagonal("paris", 75, 90)]
    found = bootstrap(Links.of([0, 1], [1, 0]), channels)
    assert not found.is_seeded
    assert found.least == 2
    assert rows_of(found.pseudo_seeds) == [(i, i) for i in (*range(2, 70), *range(75, 80))]
    assert rows_of(found.links)[:3] == [(0, 1), (1, 0), (2, 2)]
    assert found.mutual_best == {"names": 80, "words": 70, "paris": 15}
    agree = "73 pairs on which two or more of names, words, paris agree (mutual best)"
    assert found.tell() == f"Started from 2 seeds and {agree}"
    assert bootstrap(Links.empty(), channels).tell().startswith("No seeds: started from 75 pairs on which two or more")


def test_one_seed_short_of_enough_is_few():
    seeds = Links.of(np.arange(ENOUGH_SEEDS - 1), np.arange(ENOUGH_SEEDS - 1))
    assert not bootstrap(seeds, []).is_seeded
    assert rows_of(bootstrap(seeds, []).links) == rows_of(seeds)


def test_where_two_channels_agree_on_too_few_pairs_one_vote_is_enough():
    names = diagonal("names", 0, FEW + 9)
    found = bootstrap(Links.empty(), [names, diagonal("words", 0, FEW - 1)])
    assert (found.least, len(found.pseudo_seeds)) == (1, FEW + 9)
    assert found.tell() == ("No seeds: started from 59 pairs on which one or more of names, words agree (mutual best)")
    assert bootstrap(Links.empty(), [names, diagonal("words", 0, FEW)]).least == 2


def test_conflicting_votes_are_left_out():
    first = make_channel("names", {(0, 0): 1.0, (1, 1): 1.0, (2, 2): 1.0, (5, 5): 1.0})
    second = make_channel("words", {(0, 1): 1.0, (2, 2): 1.0, (3, 3): 1.0, (4, 5): 1.0})
    third = make_channel("paris", {(2, 3): 1.0})
    # Sources 0 and 1 and target 5 have two pairs with one vote each; (2, 2) has two votes against one.
    assert pseudo_seeds(Links.empty(), [first, second, third]) == [(2, 2)]
    # (3, 3) shares its target with (2, 3): without the third channel there is no conflict.
    assert pseudo_seeds(Links.empty(), [first, second]) == [(2, 2), (3, 3)]


def test_a_seed_settles_a_conflict_about_its_entities():
    first, second = make_channel("names", {(0, 0): 1.0}), make_channel("words", {(0, 1): 1.0})
    assert pseudo_seeds(Links.of([7], [0]), [first, second]) == [(0, 1)]


def test_a_tie_is_no_vote():
    tied = make_channel("names", {(0, 0): 0.5, (0, 1): 0.5, (1, 2): 0.5, (2, 3): 0.0})
    pairs, votes, mutual_best = count_votes([tied])
    assert rows_of(pairs) == [(1, 2)]
    assert votes.tolist() == [1.0]
    assert mutual_best == {"names": 1}


def test_without_channels_there_is_nothing_but_the_seeds():
    assert len(bootstrap(Links.empty(), []).links) == 0
    one = bootstrap(Links.of([0], [0]), [])
    assert one.tell() == "Started from 1 seed alone: no channels agree on a pair"
