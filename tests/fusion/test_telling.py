"""What channels say, in numbers that people know."""

import numpy as np
import pytest

from rlea.evidence import ATTRIBUTES, CHANNELS, NAMES, STRUCTURE
from rlea.evidence.attributes import score_attributes
from rlea.evidence.channels import Evidence, reason
from rlea.evidence.paris import ParisSettings, run_paris
from rlea.evidence.telling import SAYINGS, columns_of, tell_pairs
from rlea.graph import Links

from .conftest import make_channel, pairs_from, unlinked


def test_columns_stand_in_the_order_of_the_channels():
    pairs = pairs_from([(0, 0), (0, 1)])
    channels = [
        make_channel(NAMES, {(0, 0): 0.75}, "name"),
        make_channel(ATTRIBUTES, {(0, 0): 2.0, (0, 1): 1.0}, "attributes"),
    ]
    assert columns_of(channels) == ("name", "attributes")
    assert tell_pairs(channels, pairs).tolist() == [[0.75, 2.0], [0.0, 1.0]]
    assert tell_pairs([], pairs).shape == (2, 0)


def test_every_channel_of_a_pair_can_be_told(planted):
    evidence = Evidence(unlinked(planted))
    channels = [*evidence.collect(Links.empty(), CHANNELS), *evidence.reason(Links.empty())]
    assert {channel for channel, _ in SAYINGS.values()} == {*CHANNELS} - {STRUCTURE}
    columns = columns_of(channels)
    assert columns == tuple(name for name in SAYINGS if name != "meaning")  # no encoder
    told = tell_pairs(channels, channels[0].proposals)
    assert np.isfinite(told).all()
    for column in ("name", "words", "words around", "paris"):
        values = told[:, columns.index(column)]
        assert values.min() >= -1e-6
        assert values.max() <= 1 + 1e-6


def test_attributes_tell_what_they_add_to_the_log_odds_and_take_off(planted):
    pair = unlinked(planted)
    found = score_attributes(pair)
    (channel,) = Evidence(pair).collect(Links.empty(), (ATTRIBUTES,))
    told = tell_pairs([channel], channel.proposals)
    assert told[:, 0].tolist() == found.support.tolist()
    assert told[:, 1].tolist() == found.conflict.tolist()


def test_paris_tells_all_the_probabilities_that_it_found(planted, monkeypatch):
    """Of its proposals, and of pairs that were not good enough to be any."""
    monkeypatch.setattr("rlea.evidence.channels.PROPOSALS", 1)
    pair = unlinked(planted)
    found = run_paris(pair, ParisSettings(use_names=True))
    pairs = pairs_from(zip(found.source_ids, found.target_ids, strict=True))
    channel = reason(pair, Links.empty())
    assert len(pairs) > len(channel.proposals)
    told = tell_pairs([channel], pairs)[:, 0]
    known = dict(zip(zip(found.source_ids.tolist(), found.target_ids.tolist(), strict=True), found.doubts, strict=True))
    ends = zip(pairs.source_ids.tolist(), pairs.target_ids.tolist(), strict=True)
    assert told == pytest.approx([1 - known[ends] for ends in ends], abs=1e-5)
