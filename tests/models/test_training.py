"""What all models share: who may be learned from, what makes a run another run, and what is refused."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from importlib import import_module

import numpy as np
import pytest
import torch

from rlea.errors import InputError
from rlea.graph import Links
from rlea.io.synthetic import SyntheticSettings, generate
from rlea.models import MODELS
from rlea.models.aligne import AlignESettings
from rlea.models.jape import JAPESettings
from rlea.models.training import choose_device, identity, repeatable, require_positive

TRAINED = [name for name, model in MODELS.items() if model.trained]


@pytest.fixture(scope="module")
def pair():
    return generate(SyntheticSettings(num_entities=60))


def train(name, pair, **more):
    function = getattr(import_module(f"rlea.models.{MODELS[name].module}"), MODELS[name].function)
    return function(pair, device="cpu", **more)


@pytest.mark.parametrize("name", TRAINED)
def test_nothing_is_learned_from_validation_and_test_links(name, pair):
    """Other validation and test links, the same vectors: one epoch, so that there is nothing to choose from."""
    rng = np.random.default_rng(0)
    mixed = {
        part: Links.of(links.source_ids, rng.permutation(links.target_ids))
        for part, links in (("valid", pair.valid), ("test", pair.test))
    }
    one, other = train(name, pair, epochs=1), train(name, replace(pair, **mixed), epochs=1)
    assert one.source.tobytes() == other.source.tobytes()
    assert one.target.tobytes() == other.target.tobytes()
    fewer = Links.of(pair.train.source_ids[:-2], pair.train.target_ids[:-2])
    assert train(name, replace(pair, train=fewer), epochs=1).source.tobytes() != one.source.tobytes()


@pytest.mark.parametrize("name", TRAINED)
def test_no_epochs_are_refused(name, pair):
    with pytest.raises(InputError, match="epochs is 0"):
        train(name, pair, epochs=0)


def test_every_setting_but_the_length_makes_another_run(pair):
    settings = JAPESettings()
    own = identity(pair, settings, "JAPE", 1, 0, "cpu")
    for field in fields(settings):
        value = getattr(settings, field.name)
        changed = replace(settings, **{field.name: value / 2 if isinstance(value, float) else value + 1})
        is_same = identity(pair, changed, "JAPE", 1, 0, "cpu") == own
        assert is_same == (field.name in ("max_epochs", "epochs_without_valid")), field.name
    assert identity(replace(pair, test=Links.empty()), settings, "JAPE", 1, 0, "cpu") == own
    for other in (
        identity(replace(pair, valid=Links.empty()), settings, "JAPE", 1, 0, "cpu"),
        identity(pair, settings, "JAPE", 2, 0, "cpu"),
        identity(pair, settings, "JAPE", 1, 1, "cpu"),
        identity(pair, settings, "JAPE", 1, 0, "cuda"),
    ):
        assert other != own


@dataclass(frozen=True)
class Some:
    rate: float = 1.0
    weight: float = 1.0
    kind: str = "x"
    flag: bool = False


@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf])
@pytest.mark.parametrize("name", ["rate", "weight"])
def test_numbers_that_cannot_train_are_refused(name, value):
    with pytest.raises(InputError, match=f"setting {name} is"):
        require_positive("X", replace(Some(), **{name: value}), "weight")


def test_zero_is_for_those_that_may():
    require_positive("X", Some(weight=0.0), "weight")
    with pytest.raises(InputError, match="above zero"):
        require_positive("X", Some(rate=0.0), "weight")
    with pytest.raises(InputError, match="dim is 0"):
        AlignESettings(dim=0)


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
