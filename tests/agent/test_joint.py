"""Joint rounds: which links become seeds, when rounds end, and which round is kept. The agent is a stand-in."""

from dataclasses import replace

import numpy as np
import pytest

from planted import links_of
from rlea.agent.joint import share_kept, train_jointly, without
from rlea.graph import GraphPair, Links
from rlea.matching import Matching
from rlea.search.embeddings import Embeddings

from .test_agent import Unread


class StandIn:
    """An agent whose links of every round are given; what it chose is the number of choices."""

    def __init__(self, rounds):
        self.rounds, self.is_fitted = rounds, False
        self.weights = self.final_calibration = 0

    def fit(self, pair, *, progress):
        self.is_fitted = True

    def choose(self, pair, vectors, *, progress):
        self.weights += 1
        self.final_calibration += 1

    def match(self, pair, vectors, *, pool):
        assert pool == "all"
        return self.rounds[int(vectors[0].source[0, 0])]


def links_to(targets, confidence=0.99):
    """Source i is linked with targets[i]."""
    return Matching.of(np.arange(len(targets)), targets, np.full(len(targets), confidence))


PAIR = GraphPair("", None, None, Links.of([8], [8]), Links.of([0, 1, 2, 3], [0, 1, 2, 3]), Unread())
GOOD, BETTER, WORSE = [0, 1, 5, 6, 4, 2, 3], [0, 1, 2, 6, 4, 5, 3], [5, 1, 6, 0, 4, 2, 3]


def rounds_of(rounds, num_rounds=3, pair=PAIR):
    seeds, agent = [], StandIn([links_to(part) if isinstance(part, list) else part for part in rounds])

    def embed(given, number):
        seeds.append(links_of(given.train))
        return Embeddings(np.full((1, 1), number, np.float32), np.zeros((1, 1), np.float32))

    told = []
    joint = train_jointly(pair, embed, num_rounds, agent, on_round=lambda number, *_: told.append(number))
    assert told == [row["round"] for row in joint.rounds]
    return joint, seeds


def kept_round(joint):
    return int(joint.vectors.source[0, 0])


def test_sure_links_become_seeds_but_none_of_an_entity_with_a_validation_link():
    joint, seeds = rounds_of([GOOD, BETTER], num_rounds=1)
    assert seeds == [{(8, 8)}, {(8, 8), (4, 4)}]  # all others have an end in a validation link
    assert [row["valid"] for row in joint.rounds] == [0.5, 0.75]
    assert (kept_round(joint), joint.agent.weights, joint.agent.final_calibration) == (1, 2, 2)
    _, seeds = rounds_of([links_to(GOOD, 0.5), GOOD], num_rounds=1)
    assert seeds[1] == {(8, 8)}  # nothing is sure


def test_a_round_that_finds_fewer_validation_links_is_the_last_and_is_not_kept():
    joint, seeds = rounds_of([GOOD, WORSE, BETTER])
    assert [row["valid"] for row in joint.rounds] == [0.5, 0.25]
    assert len(seeds) == 2
    assert (kept_round(joint), joint.agent.weights) == (0, 1)


def test_rounds_end_where_links_stay_the_same():
    joint, _ = rounds_of([GOOD, GOOD, BETTER])
    assert [row["same"] for row in joint.rounds] == [0.0, 1.0]
    assert kept_round(joint) == 1


@pytest.mark.parametrize("num_rounds", [0, 2])
def test_without_validation_links_all_rounds_are_made_and_the_last_is_kept(num_rounds):
    joint, _ = rounds_of([GOOD, WORSE, BETTER], num_rounds, replace(PAIR, valid=Links.empty()))
    assert [row["valid"] for row in joint.rounds] == [None] * (num_rounds + 1)
    assert kept_round(joint) == num_rounds


def test_links_apart_and_links_kept():
    links = Links.of([0, 1, 2], [0, 1, 2])
    assert links_of(without(links, Links.of([0, 9], [7, 2]))) == {(1, 1)}
    assert share_kept(links, Links.of([0, 1, 3, 2], [0, 1, 3, 1])) == 0.5
    assert share_kept(links, Links.empty()) == 1.0
