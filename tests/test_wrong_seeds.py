"""What is wrong with seeds, or with the size of a graph, is seen in the score or said in a note."""

import pytest

import rlea

N = 40


def side(letter):
    """A graph whose entities have telling names, in an order of its own."""
    triples = [(f"{letter}{n}", "next", f"{letter}{(7 * n + 1) % N}") for n in range(N)]
    return {"triples": triples, "names": [(f"{letter}{n}", f"place {n * n} of {n}") for n in range(N)]}


GOLD = [(f"a{n}", f"b{n}") for n in range(N)]
WRONG = [(f"a{n}", f"b{(n + 1) % 12}") for n in range(12)]


@pytest.mark.parametrize("pool", ["all", "test"])
def test_wrong_seeds_lower_the_score(pool):
    """Nothing can find the gold links that they contradict, which count as missed."""
    scores = []
    for seeds in (None, WRONG):
        pair = rlea.read(side("a"), side("b"), gold=GOLD, seeds=seeds)
        links = rlea.align(pair, matcher="mutual", pool=pool).links
        assert links.gold == N
        scores.append((links.recall, links.f1))
    assert scores[0] == (1.0, 1.0)
    assert scores[1][0] == (N - 12) / N
    assert scores[1][1] < 1.0
    assert any("gold: 12 of 40 links contradict a seed, and count as missed" in note for note in pair.notes)


def test_seeds_of_confidence_0_are_none():
    pair = rlea.read(side("a"), side("b"), seeds=[(*GOLD[0], 1.0), *((*link, 0.0) for link in WRONG[3:5])])
    assert len(pair.train) == 1
    assert any("left out 2 of 3 links of confidence 0" in note for note in pair.notes)


@pytest.mark.parametrize(("confidence", "count"), [(0.5, 3), (0.499, 1), (1e-9, 1)])
def test_seeds_that_are_rather_wrong_than_right_are_none(confidence, count):
    seeds = [(*GOLD[0], 1.0), *((*link, confidence) for link in GOLD[3:5])]
    pair = rlea.read(side("a"), side("b"), seeds=seeds, gold=[(*link, 0.1) for link in GOLD[10:20]])
    assert len(pair.train) == count
    told = any(
        "left out 2 of 3 links of a confidence below 0.5, as seeds count as certain" in one for one in pair.notes
    )
    assert told == (count == 1)
    assert len(pair.test) == 10  # links to be scored with are not believed for it
