"""What is heard of a training: the figures of the epochs at which it was judged."""

from __future__ import annotations

from dataclasses import replace

import pytest

import rlea
from rlea.graph import Links
from rlea.io.synthetic import SyntheticSettings, generate
from rlea.models.history import History
from rlea.progress import silent

EVERY_TEN = {"valid_from": 20, "valid_every": 10}


def hear(notes):
    heard = History(silent)
    for epoch, note in notes:
        heard("model", epoch, 50, note)
    return heard


def test_only_epochs_of_validation_are_kept():
    """Before the first one there is no score, and after it the same is said until the next."""
    notes = [(epoch, f"loss {epoch:.3f}" + (f"  valid Hits@1 0.{epoch // 10}00" if epoch >= 20 else ""))
             for epoch in range(1, 36)]  # fmt: skip
    assert hear(notes).rows(EVERY_TEN) == [
        {"epoch": 20, "loss": 20.0, "valid_hits_at_1": 0.2},
        {"epoch": 30, "loss": 30.0, "valid_hits_at_1": 0.3},
    ]


def test_words_without_figures_are_no_epochs():
    notes = [(20, "going on from epoch 20"), (0, "learning from attributes"), (30, "loss nan"), (40, "loss much")]
    assert hear(notes).rows(EVERY_TEN) == []


def test_all_that_is_told_is_passed_on():
    told = []
    heard = History(lambda *given: told.append(given))
    heard("model", 1, 2, "loss 1.000")
    heard("model", 2, 2)
    assert told == [("model", 1, 2, "loss 1.000"), ("model", 2, 2, "")]


@pytest.mark.parametrize("validates", [True, False])
def test_a_training_leaves_its_course_in_the_record(validates):
    """The words that `History` listens for are those that trainings say."""
    pair = generate(SyntheticSettings(num_entities=60, seed=1))
    pair = pair if validates else replace(pair, valid=Links.empty())
    info = rlea.embed_entities(pair, "aligne", device="cpu", epochs=130).info
    start, every = info["settings"]["valid_from"], info["settings"]["valid_every"]
    rows = info["history"]
    assert [row["epoch"] for row in rows] == list(range(start, info["epochs"] + 1, every))
    assert len(rows) > 1
    assert rows[-1]["loss"] < rows[0]["loss"]
    if not validates:
        assert not any("valid_hits_at_1" in row for row in rows)
        return
    best = max(rows, key=lambda row: row["valid_hits_at_1"])
    assert best["valid_hits_at_1"] == pytest.approx(info["valid_hits_at_1"], abs=0.0006)
    assert info["epoch_of_vectors"] in [row["epoch"] for row in rows]
