"""What all models share: who may be learned from, what makes a run another run, and what is refused."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import ClassVar

import numpy as np
import pytest
import torch

from rlea.errors import InputError
from rlea.graph import Links
from rlea.models import training
from rlea.models.aligne import AlignESettings, train_aligne
from rlea.models.jape import JAPE, JAPESettings
from rlea.models.torch_optimisers import trained_tensors
from rlea.models.training import Schedule, choose_device, identity, repeatable

from .conftest import bytes_of


def test_every_setting_but_the_length_makes_another_run(pair):
    settings = JAPESettings()
    own = identity(pair, settings, JAPE, 0, "cpu")
    for field in fields(settings):
        value = getattr(settings, field.name)
        changed = replace(settings, **{field.name: value / 2 if isinstance(value, float) else value + 1})
        is_same = identity(pair, changed, JAPE, 0, "cpu") == own
        assert is_same == (field.name in ("max_epochs", "epochs_without_valid")), field.name
    assert identity(replace(pair, test=Links.empty()), settings, JAPE, 0, "cpu") == own
    for other in (
        identity(replace(pair, valid=Links.empty()), settings, JAPE, 0, "cpu"),
        identity(pair, settings, type("Other", (JAPE,), {"version": 2}), 0, "cpu"),
        identity(pair, settings, JAPE, 1, "cpu"),
        identity(pair, settings, JAPE, 0, "cuda"),
    ):
        assert other != own


@dataclass(frozen=True)
class Some(Schedule):
    title: ClassVar[str] = "X"
    may_be_zero: ClassVar[tuple[str, ...]] = ("weight",)
    rate: float = 1.0
    weight: float = 1.0
    kind: str = "x"
    flag: bool = False


@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf])
@pytest.mark.parametrize("name", ["rate", "weight"])
def test_numbers_that_cannot_train_are_refused(name, value):
    with pytest.raises(InputError, match=f"the X setting {name} is"):
        Some(**{name: value})


def test_zero_is_for_those_that_may():
    assert Some(weight=0.0).weight == 0
    with pytest.raises(InputError, match="above zero"):
        Some(rate=0.0)


def test_devices():
    assert choose_device("cpu") == "cpu"
    assert choose_device("auto") == ("cuda" if torch.cuda.is_available() else "cpu")
    with pytest.raises(InputError, match="tpu"):
        choose_device("tpu")


def test_the_callers_way_of_summing_is_given_back(monkeypatch):
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        with repeatable("cuda"):
            assert not torch.is_deterministic_algorithms_warn_only_enabled()
        assert torch.is_deterministic_algorithms_warn_only_enabled()
        with pytest.raises(InputError, match="CUBLAS_WORKSPACE_CONFIG"), repeatable("cuda"):
            raise RuntimeError("set CUBLAS_WORKSPACE_CONFIG and try again")
        with pytest.raises(RuntimeError, match="else"), repeatable("cuda"):
            raise RuntimeError("something else")
    finally:
        torch.use_deterministic_algorithms(False)


# ---- checkpoints ----

SHORT = AlignESettings(dim=8, max_epochs=12, batch_size=300, refresh_every=3, valid_from=4, valid_every=4, patience=9)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "aligne.checkpoint"


def test_seconds_are_those_of_the_whole_training(pair, path, monkeypatch):
    clock = iter(range(0, 10**6, 100))  # every look at it is 100 s after the one before
    monkeypatch.setattr(training.time, "perf_counter", lambda: float(next(clock)))
    first = train_aligne(pair, SHORT, device="cpu", checkpoint=path, epochs=4)
    assert (first.info["seconds"], first.info["resumed_at"]) == (200, [])  # the second look is for the checkpoint
    second = train_aligne(pair, SHORT, device="cpu", checkpoint=path, epochs=8)
    assert (second.info["seconds"], second.info["resumed_at"]) == (300, [4])
    third = train_aligne(pair, SHORT, device="cpu", checkpoint=path, epochs=9)
    assert (third.info["seconds"], third.info["resumed_at"]) == (300, [4, 8])


def test_resuming_is_said(pair, path):
    train_aligne(pair, SHORT, device="cpu", checkpoint=path, epochs=7)
    told = []
    train_aligne(pair, SHORT, device="cpu", progress=lambda *call: told.append(call), checkpoint=path)
    assert told[0] == ("aligne", 4, 12, "going on from epoch 4")
    assert [call[1] for call in told[1:]] == list(range(5, 13))


def test_a_checkpoint_beyond_the_epochs_asked_for_is_refused(pair, path):
    train_aligne(pair, SHORT, device="cpu", checkpoint=path, epochs=8)
    before = path.read_bytes()
    with pytest.raises(InputError, match=r"aligne\.checkpoint: is the checkpoint of epoch 8.*delete it.*--epochs 8 or"):
        train_aligne(pair, SHORT, device="cpu", checkpoint=path, epochs=7)
    assert path.read_bytes() == before
    assert train_aligne(pair, SHORT, device="cpu", checkpoint=path, epochs=8).info["epochs"] == 8


def test_a_finished_run_is_not_trained_again(pair, path):
    first = train_aligne(pair, SHORT, device="cpu", checkpoint=path)

    def fail(stage, done, total, note=""):
        raise AssertionError("trained again")

    assert bytes_of(train_aligne(pair, SHORT, device="cpu", progress=fail, checkpoint=path)) == bytes_of(first)
    with pytest.raises(InputError, match="its seed differ"):
        train_aligne(pair, SHORT, seed=9, device="cpu", checkpoint=path)
    with pytest.raises(InputError, match="its links differ"):
        train_aligne(replace(pair, valid=Links.empty()), SHORT, device="cpu", checkpoint=path)


def test_returns_the_vectors_of_the_best_validation(pair):
    settings = replace(SHORT, dim=2, max_epochs=40, valid_every=1, valid_from=1, patience=40)
    embeddings = train_aligne(pair, settings, device="cpu")
    best = embeddings.info["epoch_of_vectors"]
    assert best < 40
    assert bytes_of(train_aligne(pair, settings, device="cpu", epochs=best)) == bytes_of(embeddings)


def test_parameters_keep_the_order_of_fresh_ones_and_are_copies():
    """A norm over all parameters rounds by their order, and files have an order of their own."""
    fresh = {name: np.zeros(2, dtype=np.float32) for name in ("b", "c", "a")}
    tensors = trained_tensors(fresh, {name: fresh[name] + 1 for name in ("a", "b", "c")}, "cpu")
    assert list(tensors) == ["b", "c", "a"]
    with torch.no_grad():
        for tensor in (*tensors.values(), *trained_tensors(fresh, {}, "cpu").values()):
            tensor += 1
    assert [tensor.tolist() for tensor in tensors.values()] == [[2, 2]] * 3
    assert not any(array.any() for array in fresh.values())
