"""Names as a channel: opaque identifiers, and names by a sentence encoder."""

import sys
import types
from dataclasses import replace

import numpy as np

from planted import links_of, make_graph
from rlea.agent.bootstrap import count_votes
from rlea.evidence import NAMES
from rlea.evidence.names import PROPOSALS, name_channels
from rlea.graph import GraphPair, Links
from rlea.progress import silent


class Encoder:
    """Knows two languages of six words each: a word and its translation have the same vector."""

    WORDS = (("one", "un"), ("two", "deux"), ("three", "trois"), ("four", "quatre"), ("five", "cinq"), ("six", "sechs"))

    def __init__(self, folder, device):
        self.folder = folder

    def encode(self, texts, show_progress_bar):
        return np.array([[float(text in words) for words in self.WORDS] for text in texts])


def channels_of(pair, encoder=""):
    found = name_channels(pair, Links.empty(), str(encoder), silent)
    return {channel.columns[0]: channel for channel in found}


def test_an_entity_has_no_more_proposals_than_both_ways_allow(planted):
    (channel,) = channels_of(planted).values()
    assert channel.name == NAMES
    assert 300 < len(channel.proposals) <= PROPOSALS * 600
    assert np.bincount(channel.proposals.source_ids).max() > 1


def test_a_sentence_encoder_finds_names_that_have_no_letter_in_common(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "sentence_transformers", types.SimpleNamespace(SentenceTransformer=Encoder))
    place = "http://x.org/"
    source, target = (
        make_graph([(place + words[side], "r", place + Encoder.WORDS[0][side]) for words in Encoder.WORDS])
        for side in (0, 1)
    )
    pair = GraphPair("", source, target)
    meaning = channels_of(pair, tmp_path)["meaning"]
    assert meaning.name == NAMES
    assert meaning.info == {"encoder": str(tmp_path)}
    expected = {(source.entity_index[place + one], target.entity_index[place + other]) for one, other in Encoder.WORDS}
    assert links_of(count_votes([meaning])[0]) == expected
    assert meaning.score(meaning.proposals).min() >= 0
    # An entity without a name is like none, not like all.
    bare = GraphPair("", replace(source, names=("",) * source.num_entities), target)
    assert all(len(channel.proposals) == 0 for channel in channels_of(bare, tmp_path).values())
