"""The channels of a pair: who is asked, what a known link shows, and names by a sentence encoder."""

import sys
import types
from dataclasses import replace

import numpy as np
import pytest

from rlea.agent.bootstrap import vote
from rlea.evidence import ATTRIBUTES, NAMES, PARIS, WORDS
from rlea.evidence import channels as module
from rlea.evidence.channels import CERTAINTY_UNIT, MOST_CERTAINTY, PROPOSALS, Evidence, collect, pairs_of, reason
from rlea.graph import GraphPair, Links

from .conftest import gold_of, make_graph, pairs_from, unlinked

CERTAIN = MOST_CERTAINTY / CERTAINTY_UNIT


@pytest.fixture(scope="module")
def evidence(planted):
    return Evidence(unlinked(planted))


def share_right(channel, gold):
    """Of the pairs that stand out for a channel, those that are right."""
    pairs, _, _ = vote([channel])
    right = dict(zip(gold.source_ids.tolist(), gold.target_ids.tolist(), strict=True))
    return np.mean([right[s] == t for s, t in zip(pairs.source_ids.tolist(), pairs.target_ids.tolist(), strict=True)])


def test_channels_come_in_one_order_and_only_those_wanted(evidence):
    found = evidence.collect(Links.empty(), (ATTRIBUTES, WORDS, NAMES))
    assert [channel.columns[0] for channel in found] == ["name", "words", "words around", "attributes"]
    assert [channel.name for channel in evidence.collect(Links.empty(), (WORDS,))] == [WORDS, WORDS]
    assert evidence.collect(Links.empty(), ()) == []
    assert evidence.collect(Links.empty(), ("structure", PARIS)) == []


def test_every_channel_knows_more_than_nothing(evidence, planted):
    for channel in [*evidence.collect(Links.empty(), (NAMES, WORDS, ATTRIBUTES)), *evidence.reason(Links.empty())]:
        assert share_right(channel, gold_of(planted)) > 0.3, channel.columns  # a draw is right in one of 300


def test_a_pair_has_the_same_row_in_any_company(evidence):
    rng = np.random.default_rng(0)
    for channel in [*evidence.collect(Links.empty(), (NAMES, WORDS, ATTRIBUTES)), *evidence.reason(Links.empty())]:
        rows = channel.score(channel.proposals)
        assert rows.shape == (len(channel.proposals), len(channel.columns))
        assert np.isfinite(rows).all()
        assert rows[:, 0].min() >= 0
        some = np.sort(rng.choice(len(rows), 5, replace=False))
        part = channel.score(
            pairs_from(np.column_stack([channel.proposals.source_ids, channel.proposals.target_ids])[some])
        )
        np.testing.assert_allclose(part, rows[some], atol=1e-6)


def test_no_entity_has_more_proposals_than_both_ways_allow(evidence):
    for channel in evidence.collect(Links.empty(), (NAMES, WORDS)):
        forward = np.bincount(channel.proposals.source_ids)
        assert len(channel.proposals) <= PROPOSALS * 600
        assert forward.max() > 1


def test_channels_are_made_once_for_the_same_links(planted, monkeypatch):
    made = []
    for name in ("_names", "_words", "_attributes"):
        monkeypatch.setattr(
            module, name, lambda *_, name=name: made.append(name) or ([] if name != "_attributes" else empty)
        )
    empty = module.Channel(ATTRIBUTES, ("attributes",), pairs_from([]), lambda pairs: np.zeros((len(pairs), 1)))
    evidence = Evidence(unlinked(planted))
    for links in (Links.empty(), Links.of([1], [2]), Links.of([1], [2]), Links.of([2], [1])):
        evidence.collect(links, (NAMES, WORDS, ATTRIBUTES))
    assert sorted(made) == ["_attributes"] * 3 + ["_names"] * 3 + ["_words"]  # words hang on no links
    assert set(evidence.seconds) == evidence.asked


def test_paris_is_certain_of_what_it_was_told_and_of_nothing_that_it_was_not(planted):
    """Told links that are wrong: whoever was told them repeats them, whoever was not does not think of them."""
    seeds = planted.train
    wrong = Links.of(seeds.source_ids, np.roll(seeds.target_ids, 7))
    told, kept_back = (
        Links.of(wrong.source_ids[part], wrong.target_ids[part]) for part in (slice(0, 75), slice(75, None))
    )
    channel = reason(unlinked(planted), told)
    said = channel.score(pairs_from(np.column_stack([told.source_ids, told.target_ids])))[:, 0]
    np.testing.assert_allclose(said, CERTAIN, atol=1e-4)
    unsaid = channel.score(pairs_from(np.column_stack([kept_back.source_ids, kept_back.target_ids])))[:, 0]
    assert (unsaid > 0.5 * CERTAIN).mean() < 0.05


def test_links_do_not_show_in_what_the_static_channels_say(planted, evidence):
    """Wrong links teach nothing about the pairs that they are: no channel speaks for them."""
    wrong = Links.of(planted.train.source_ids, np.roll(planted.train.target_ids, 7))
    pairs = pairs_from(np.column_stack([wrong.source_ids, wrong.target_ids]))
    taught = evidence.collect(wrong, (NAMES, WORDS, ATTRIBUTES))
    untaught = evidence.collect(Links.empty(), (NAMES, WORDS, ATTRIBUTES))
    for one in taught:
        (other,) = [channel for channel in untaught if channel.columns == one.columns]
        assert one.score(pairs)[:, 0].mean() <= other.score(pairs)[:, 0].mean() + 0.02


def test_a_channel_with_nothing_to_say_is_not_there():
    bare = GraphPair("", make_graph([("1", "r", "2")]), make_graph([("3", "s", "4")]))
    assert collect(bare, Links.empty(), (NAMES, WORDS, ATTRIBUTES)) == []
    assert Evidence(bare).reason(Links.empty()) == []


def test_words_of_very_large_graphs_are_not_searched_but_speak(planted, monkeypatch):
    monkeypatch.setattr(module, "MOST_SEARCHED", 300 * 300 - 1)
    monkeypatch.setattr(module, "find_candidates", lambda *given: pytest.fail("words were searched"))
    found = collect(unlinked(planted), Links.empty(), (WORDS,))
    assert [len(channel.proposals) for channel in found] == [0, 0]
    gold = gold_of(planted)
    assert found[0].score(pairs_from(np.column_stack([gold.source_ids, gold.target_ids])))[:, 0].mean() > 0.1


class Encoder:
    """Knows two languages of seven words each: a word and its translation have the same vector."""

    WORDS = (("one", "un"), ("two", "deux"), ("three", "trois"), ("four", "quatre"), ("five", "cinq"), ("six", "sechs"))

    def __init__(self, folder, device):
        self.folder = folder

    def encode(self, texts, show_progress_bar):
        return np.array([[float(text in words) for words in self.WORDS] for text in texts])


def test_a_sentence_encoder_knows_names_that_have_no_letter_in_common(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "sentence_transformers", types.SimpleNamespace(SentenceTransformer=Encoder))
    source, target = (
        make_graph(
            [(f"http://x.org/{words[side]}", "r", f"http://x.org/{Encoder.WORDS[0][side]}") for words in Encoder.WORDS]
        )
        for side in (0, 1)
    )
    pair = GraphPair("", source, target)
    found = {channel.columns[0]: channel for channel in collect(pair, Links.empty(), (NAMES,), encoder=str(tmp_path))}
    meaning = found["meaning"]
    assert meaning.name == NAMES
    assert meaning.info == {"encoder": str(tmp_path)}
    expected = {
        (source.entity_index[f"http://x.org/{one}"], target.entity_index[f"http://x.org/{other}"])
        for one, other in Encoder.WORDS
    }
    best, _, _ = vote([meaning])
    assert set(zip(best.source_ids.tolist(), best.target_ids.tolist(), strict=True)) == expected
    assert meaning.score(meaning.proposals).min() >= 0
    # Who has no name is like nobody, not like everybody.
    bare = GraphPair("", replace(source, names=("",) * source.num_entities), target)
    assert [channel.columns[0] for channel in collect(bare, Links.empty(), (NAMES,), encoder=str(tmp_path))] == []
    without = collect(pair, Links.empty(), (WORDS,), encoder=str(tmp_path))
    assert all(channel.name == WORDS for channel in without)


def test_pairs_of_candidates_are_entities_and_not_positions():
    from rlea.agent.fused_matcher import candidates_of

    pairs = pairs_from([(4, 9), (7, 2)])
    found = pairs_of(candidates_of(pairs, np.array([1, 2], np.float32), np.array([7, 4]), np.array([2, 5, 9])))
    assert (found.source_ids.tolist(), found.target_ids.tolist()) == ([4, 7], [9, 2])
