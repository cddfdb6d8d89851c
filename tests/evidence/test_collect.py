"""The channels of a pair: which are made, from which links, how often, and that gold is not read."""

from dataclasses import replace

import numpy as np
import pytest

from planted import gold_of, links_of, make_graph, make_pairs, unlinked
from rlea.agent.bootstrap import count_votes
from rlea.evidence import ATTRIBUTES, NAMES, PARIS, STRUCTURE, VECTORS, WORDS
from rlea.evidence import collect as module
from rlea.evidence.collect import Evidence
from rlea.evidence.paris.channel import CERTAINTY_UNIT, MOST_CERTAINTY, paris_channels
from rlea.graph import GraphPair, Links
from rlea.io.synthetic import synthetic_embeddings

CERTAIN = MOST_CERTAINTY / CERTAINTY_UNIT
NONE = Links.empty()
CHANNELS = NAMES, WORDS, ATTRIBUTES, PARIS


@pytest.fixture(scope="module")
def vectors(planted):
    return replace(synthetic_embeddings(planted, noise=1.0), is_fitted=False)


@pytest.fixture(scope="module")
def evidence(planted, vectors):
    return Evidence(unlinked(planted), vectors=[vectors])


def columns_of(channels):
    return [channel.columns[0] for channel in channels]


def wrong_links(planted):
    return Links.of(planted.train.source_ids, np.roll(planted.train.target_ids, 7))


def test_channels_come_in_one_order_and_only_those_wanted(evidence, planted):
    every = ["name", "words", "words around", "letters", "attributes", "paris", "synthetic"]
    assert columns_of(evidence.collect(NONE, NONE, CHANNELS)) == every
    some = evidence.collect(NONE, NONE, (ATTRIBUTES, NAMES, STRUCTURE))
    assert columns_of(some) == ["name", "attributes", "synthetic"]
    without = Evidence(unlinked(planted))
    assert [channel.name for channel in without.collect(NONE, NONE, (WORDS,))] == [WORDS] * 3  # it has no codes
    assert without.collect(NONE, NONE, ()) == without.collect(NONE, NONE, (STRUCTURE,)) == []


def test_every_channel_knows_more_than_nothing(evidence, planted):
    gold = links_of(gold_of(planted))
    for channel in evidence.collect(NONE, NONE, CHANNELS):
        best = links_of(count_votes([channel])[0])
        assert len(best & gold) > 0.3 * len(best), channel.columns  # at random: one in 300


def test_a_pair_has_the_same_row_whichever_others_are_asked_for(evidence):
    rng = np.random.default_rng(0)
    for channel in evidence.collect(NONE, NONE, CHANNELS):
        rows = channel.score(channel.proposals)
        assert rows.shape == (len(channel.proposals), len(channel.columns))
        assert np.isfinite(rows).all()
        assert channel.name == VECTORS or rows[:, 0].min() >= 0
        some = np.sort(rng.choice(len(rows), 5, replace=False))
        np.testing.assert_array_equal(channel.score(channel.proposals.some(some)), rows[some])


def test_channels_are_made_once_for_the_same_links(planted, monkeypatch):
    made = []
    for name in ("name", "word", "attribute", "paris"):
        maker = lambda *_, name=name: made.append(name) or []  # noqa: E731
        monkeypatch.setattr(module, f"{name}_channels", maker)
    evidence = Evidence(unlinked(planted))
    one, other = Links.of([1], [2]), Links.of([2], [1])
    for certain, learned_from in ((NONE, NONE), (NONE, one), (one, one), (NONE, other)):
        evidence.collect(certain, learned_from, CHANNELS)
    # Words learn from no links, PARIS from certain ones alone.
    assert sorted(made) == ["attribute"] * 3 + ["name"] * 3 + ["paris"] * 2 + ["word"]
    assert set(evidence.seconds) == evidence.asked


def test_paris_is_certain_of_the_links_that_it_is_given_and_knows_no_others(planted):
    """Links that are wrong: PARIS repeats those that it is given, and does not find the others."""
    wrong = wrong_links(planted)
    given, held_out = (
        Links.of(wrong.source_ids[part], wrong.target_ids[part]) for part in (slice(0, 75), slice(75, None))
    )
    (channel,) = paris_channels(unlinked(planted), given)
    np.testing.assert_allclose(channel.score(make_pairs(links_of(given)))[:, 0], CERTAIN, atol=1e-4)
    scores = channel.score(make_pairs(links_of(held_out)))[:, 0]
    assert (scores > 0.5 * CERTAIN).mean() < 0.05


def test_links_do_not_show_in_the_scores_of_other_channels(planted, evidence):
    """Wrong links teach nothing about their own pairs."""
    wrong = wrong_links(planted)
    pairs = make_pairs(links_of(wrong))
    wanted = (NAMES, WORDS, ATTRIBUTES)
    untaught = {channel.columns: channel for channel in evidence.collect(NONE, NONE, wanted)}
    for channel in evidence.collect(NONE, wrong, wanted):
        before = untaught[channel.columns].score(pairs)[:, 0].mean()
        assert channel.score(pairs)[:, 0].mean() <= before + 0.02


def test_gold_is_not_kept(planted, vectors):
    """Not the test links, whoever asks; and permuted ones change no score."""
    assert len(Evidence(planted).pair.test) == 0
    mixed = Links.of(planted.test.source_ids, np.roll(planted.test.target_ids, 3))
    for one, other in zip(
        *(Evidence(pair).collect(planted.train, planted.train) for pair in (planted, replace(planted, test=mixed))),
        strict=True,
    ):
        assert one.score(one.proposals).tobytes() == other.score(other.proposals).tobytes()


def test_a_channel_that_finds_nothing_is_left_out():
    bare = GraphPair("", make_graph([("1", "r", "2")]), make_graph([("3", "s", "4")]))
    assert Evidence(bare).collect(NONE, NONE, CHANNELS) == []
