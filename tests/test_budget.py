"""`--memory`: what is given up to stay within it, what is refused, and what it says."""

import itertools

import pytest

import rlea
from rlea.budget import LEVELS, choose_frugality, frugal_settings, parse_memory
from rlea.evaluation.metrics import link_metrics
from rlea.io.synthetic import SyntheticSettings, generate

PAIR = SyntheticSettings(num_entities=500, dangling=0.2, seeds=0.0, valid=0.0)


@pytest.fixture(scope="module")
def pair():
    return generate(PAIR)


@pytest.mark.parametrize(
    ("text", "size"), [("", 0), ("8GB", 8e9), ("8", 8e9), ("1.5 g", 1.5e9), ("500mb", 5e8), ("2TB", 2e12)]
)
def test_sizes_are_read(text, size):
    assert parse_memory(text) == size


@pytest.mark.parametrize("text", ["much", "-1GB", "0", "0GB", "8 GiB x"])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(rlea.InputError, match="--memory is"):
        rlea.align(generate(PAIR), memory=text)


def test_a_budget_is_for_the_agent(pair):
    with pytest.raises(rlea.InputError, match="--memory is for the agent"):
        rlea.align(pair, matcher="mutual", memory="8GB")
    with pytest.raises(rlea.InputError, match="joint rounds have no bound"):
        rlea.align(pair, matcher="rlea", embedding="aligne", joint=1, memory="8GB")


def test_each_level_gives_up_more_and_takes_less(pair):
    for before, level in itertools.pairwise(LEVELS):
        assert level.megabytes < before.megabytes
        assert (level.names, level.words, level.kept, level.dim) < (before.names, before.words, before.kept, before.dim)
    settings = frugal_settings(rlea.AgentSettings(), LEVELS[1])
    assert (settings.kept, settings.passes.kept, settings.passes.vectors.dim) == (6, 6, 32)
    assert frugal_settings(rlea.AgentSettings(kept=3), LEVELS[1]).kept == 3


def test_the_level_goes_by_the_budget(pair, monkeypatch):
    assert choose_frugality(pair, "1MB") == (None, "")  # small graphs are computed in full
    monkeypatch.setattr("rlea.graph.size.LARGE", 100)
    monkeypatch.setattr("rlea.budget.BASE", 0.0)
    assert choose_frugality(pair, "7MB") == (None, "")
    level, note = choose_frugality(pair, "5MB")
    assert level is LEVELS[1]
    assert "6 names in place of 10" in note
    with pytest.raises(rlea.InputError, match="need about"):
        choose_frugality(pair, "1MB")


def test_a_frugal_run_says_so_and_finds_nearly_as_much(pair, monkeypatch):
    monkeypatch.setattr("rlea.graph.size.LARGE", 100)
    monkeypatch.setattr("rlea.budget.BASE", 0.0)
    whole, frugal = rlea.align(pair), rlea.align(pair, memory="4.5MB")
    assert any("to stay within 4.5MB" in note for note in frugal.summary()["notes"])
    assert not any("to stay within" in note for note in whole.summary()["notes"])
    proposed = [sum(row["proposed"] for row in one.info["channels"]) for one in (whole, frugal)]
    assert proposed[1] < 0.8 * proposed[0]
    scores = [link_metrics(one.matching, pair.test, complete=True).f1 for one in (whole, frugal)]
    assert scores[1] > scores[0] - 0.03
