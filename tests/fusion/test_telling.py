"""What channels say, in numbers that people know."""

import numpy as np
import pytest

from rlea.fusion import ATTRIBUTES, CHANNELS, NAMES, PARIS, STRUCTURE
from rlea.fusion.channels import Evidence, reason
from rlea.fusion.telling import SAYINGS, tell_pairs
from rlea.graph import Links
from rlea.paris import ParisSettings, run_paris

from .conftest import make_channel, pairs_from, unlinked

PLACES = {column: place for place, column in enumerate(SAYINGS)}


def test_each_column_has_its_place_and_its_unit():
    pairs = pairs_from([(0, 0), (0, 1)])
    channels = [
        make_channel(NAMES, {(0, 0): 0.75}, "name"),
        make_channel(ATTRIBUTES, {(0, 0): 2.0, (0, 1): 1.0}, "attributes"),
        make_channel(ATTRIBUTES, {(0, 1): 1.0}, "conflict"),
        make_channel(PARIS, {(0, 0): np.log(4) / 5}, "paris"),
    ]
    told = tell_pairs(channels, pairs)
    assert told.shape == (2, len(SAYINGS))
    assert told[:, PLACES["name"]].tolist() == [0.75, 0.0]
    assert told[:, PLACES["attributes"]].tolist() == [10.0, 5.0]
    assert told[:, PLACES["conflict"]].tolist() == [0.0, 3.0]
    assert told[:, PLACES["paris"]] == pytest.approx([0.75, 0.0])
    assert np.isnan(told[:, PLACES["words"]]).all()
    assert np.isnan(told[:, PLACES["meaning"]]).all()


def test_every_channel_of_a_pair_can_be_told(planted):
    evidence = Evidence(unlinked(planted))
    channels = [*evidence.collect(Links.empty(), CHANNELS), *evidence.reason(Links.empty())]
    assert {channel for channel, _ in SAYINGS.values()} == {*CHANNELS} - {STRUCTURE}
    told = tell_pairs(channels, channels[0].proposals)
    assert np.isnan(told[:, PLACES["meaning"]]).all()  # no encoder
    rest = np.delete(told, PLACES["meaning"], axis=1)
    assert np.isfinite(rest).all()
    for column in ("name", "words", "words around", "paris"):
        assert told[:, PLACES[column]].min() >= -1e-6
        assert told[:, PLACES[column]].max() <= 1 + 1e-6


def test_paris_tells_the_probability_it_found(planted):
    pair = unlinked(planted)
    found = run_paris(pair, ParisSettings(use_names=True))
    channel = reason(pair, Links.empty())
    told = tell_pairs([channel], channel.proposals)[:, PLACES["paris"]]
    known = dict(zip(zip(found.source_ids.tolist(), found.target_ids.tolist(), strict=True), found.doubts, strict=True))
    ends = zip(channel.proposals.source_ids.tolist(), channel.proposals.target_ids.tolist(), strict=True)
    assert told == pytest.approx([1 - known[pair] for pair in ends], abs=1e-4)
