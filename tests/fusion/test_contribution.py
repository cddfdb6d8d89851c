"""Who found which links: every link is some channel's, or structure's."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rlea.evidence import CHANNELS
from rlea.evidence.contribution import contributions
from rlea.matching import Matching

from .conftest import make_channel

POOL = np.arange(8, dtype=np.int32), np.arange(8, dtype=np.int32)

SAID = st.dictionaries(st.tuples(st.integers(0, 7), st.integers(0, 7)), st.sampled_from([0.5, 1.0]), max_size=16)


def matching_of(links):
    return Matching.of([s for s, _ in links], [t for _, t in links], np.ones(len(links)))


def test_links_are_counted_by_who_finds_them():
    names = make_channel("names", {(0, 0): 1.0, (1, 1): 1.0, (2, 3): 1.0})
    words = make_channel("words", {(0, 0): 1.0, (3, 2): 0.5, (3, 3): 0.5})
    around = make_channel("words", {(0, 0): 1.0, (4, 4): 1.0}, "words around")
    rows = contributions([names, words, around], matching_of([(s, s) for s in range(5)]), CHANNELS, POOL)
    assert [tuple(row.values()) for row in rows] == [
        ("structure", 0, 2, 2),
        ("names", 3, 2, 1),
        ("words", 4, 2, 1),  # its two vectors are one channel, and a pair of both is one pair
        ("attributes", 0, 0, 0),
        ("paris", 0, 0, 0),
    ]


def test_pairs_outside_the_pool_were_not_brought_into_the_game():
    names = make_channel("names", {(0, 0): 1.0, (1, 1): 1.0, (2, 3): 1.0, (5, 6): 1.0})
    pool = np.array([0, 2, 5]), np.array([0, 1, 3])
    (row,) = contributions([names], matching_of([(0, 0)]), ("names",), pool)
    assert row["proposed"] == 2


@given(SAID, SAID, SAID, st.permutations(range(8)))
@settings(max_examples=50, deadline=None)
def test_contributions_add_up(first, second, third, targets):
    matching = matching_of(list(enumerate(targets)))
    channels = [make_channel(name, said) for name, said in (("names", first), ("words", second), ("paris", third))]
    rows = {row["channel"]: row for row in contributions(channels, matching, CHANNELS, POOL)}
    alone = [
        {row["channel"]: row["found"] for row in contributions([channel], matching, CHANNELS, POOL)}
        for channel in channels
    ]
    for channel, single in zip(channels, alone, strict=True):
        assert single[channel.name] == rows[channel.name]["found"]
        assert single["structure"] == len(matching) - single[channel.name]
    assert all(0 <= row["alone"] <= row["found"] <= len(matching) for row in rows.values())
    shared = len(matching) - rows["structure"]["found"] - sum(rows[channel.name]["alone"] for channel in channels)
    # What several find is found at least twice and at most by all.
    twice = sum(rows[channel.name]["found"] - rows[channel.name]["alone"] for channel in channels)
    assert 2 * shared <= twice <= 3 * shared


def test_only_what_was_wanted_is_told_in_that_order():
    rows = contributions([], matching_of([(0, 0)]), ("words", "names"), POOL)
    assert [row["channel"] for row in rows] == ["words", "names"]
    assert contributions([], matching_of([]), ("structure",), POOL) == [
        {"channel": "structure", "proposed": 0, "found": 0, "alone": 0}
    ]
