"""What channels contributed: readable features of pairs, and counts over the links of a run."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planted import make_channel, make_pairs, unlinked
from rlea.evidence import ATTRIBUTES, NAMES, PARIS, STRUCTURE, WORDS
from rlea.evidence.attributes import score_attributes
from rlea.evidence.collect import Evidence
from rlea.evidence.contribution import contributions, feature_columns, readable_features
from rlea.evidence.paris import ParisSettings, run_paris
from rlea.evidence.paris.channel import paris_channels
from rlea.graph import Links
from rlea.matching import Matching

CHANNELS = STRUCTURE, NAMES, WORDS, ATTRIBUTES, PARIS
POOL = np.arange(8, dtype=np.int32), np.arange(8, dtype=np.int32)
SCORES = st.dictionaries(st.tuples(st.integers(0, 7), st.integers(0, 7)), st.sampled_from([0.5, 1.0]), max_size=16)


def matching_of(links):
    return Matching.of([s for s, _ in links], [t for _, t in links], np.ones(len(links)))


# ---- features of a pair ---------------------------------------------------------------------------------------------


def test_columns_are_in_the_order_of_the_channels():
    pairs = make_pairs([(0, 0), (0, 1)])
    channels = [
        make_channel(NAMES, {(0, 0): 0.75}, "name"),
        make_channel(ATTRIBUTES, {(0, 0): 2.0, (0, 1): 1.0}, "attributes"),
    ]
    assert feature_columns(channels) == ("name", "attributes")
    assert readable_features(channels, pairs).tolist() == [[0.75, 2.0], [0.0, 1.0]]
    assert readable_features([], pairs).shape == (2, 0)


def test_every_feature_of_every_channel_has_a_meaning(planted):
    channels = Evidence(unlinked(planted)).collect(Links.empty(), Links.empty())
    assert all(len(channel.meanings) == len(channel.columns) for channel in channels)
    columns = feature_columns(channels)
    features = readable_features(channels, channels[0].proposals)
    assert np.isfinite(features).all()
    for column in ("name", "words", "words around", "paris"):
        values = features[:, columns.index(column)]
        assert values.min() >= -1e-6
        assert values.max() <= 1 + 1e-6


def test_attributes_give_log_odds_in_favour_and_against(planted):
    pair = unlinked(planted)
    found = score_attributes(pair)
    (channel,) = Evidence(pair).collect(Links.empty(), Links.empty(), (ATTRIBUTES,))
    features = readable_features([channel], channel.proposals)
    assert features[:, 0].tolist() == found.support.tolist()
    assert features[:, 1].tolist() == found.conflict.tolist()


def test_paris_gives_all_the_probabilities_that_it_found(planted, monkeypatch):
    """Those of its proposals, and of pairs that were not good enough to be proposed."""
    monkeypatch.setattr("rlea.evidence.paris.channel.PROPOSALS", 1)
    pair = unlinked(planted)
    found = run_paris(pair, ParisSettings(use_names=True))
    pairs = make_pairs(zip(found.source_ids, found.target_ids, strict=True))
    (channel,) = paris_channels(pair, Links.empty())
    assert len(pairs) > len(channel.proposals)
    known = dict(zip(zip(found.source_ids.tolist(), found.target_ids.tolist(), strict=True), found.doubts, strict=True))
    ends = zip(pairs.source_ids.tolist(), pairs.target_ids.tolist(), strict=True)
    assert readable_features([channel], pairs)[:, 0] == pytest.approx([1 - known[end] for end in ends], abs=1e-5)


# ---- counts over all links ------------------------------------------------------------------------------------------


def test_links_are_counted_by_channel():
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


def test_pairs_outside_the_pool_are_not_counted():
    names = make_channel("names", {(0, 0): 1.0, (1, 1): 1.0, (2, 3): 1.0, (5, 6): 1.0})
    pool = np.array([0, 2, 5]), np.array([0, 1, 3])
    (row,) = contributions([names], matching_of([(0, 0)]), ("names",), pool)
    assert row["proposed"] == 2


@given(SCORES, SCORES, SCORES, st.permutations(range(8)))
@settings(max_examples=50, deadline=None)
def test_contributions_add_up(first, second, third, targets):
    matching = matching_of(list(enumerate(targets)))
    channels = [make_channel(name, scores) for name, scores in (("names", first), ("words", second), ("paris", third))]
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
    # What several channels find is found at least twice and at most by all.
    twice = sum(rows[channel.name]["found"] - rows[channel.name]["alone"] for channel in channels)
    assert 2 * shared <= twice <= 3 * shared


def test_one_row_per_wanted_channel_in_that_order():
    rows = contributions([], matching_of([(0, 0)]), ("words", "names"), POOL)
    assert [row["channel"] for row in rows] == ["words", "names"]
    assert contributions([], matching_of([]), ("structure",), POOL) == [
        {"channel": "structure", "proposed": 0, "found": 0, "alone": 0}
    ]
