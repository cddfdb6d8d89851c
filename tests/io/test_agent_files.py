"""Agents that were changed, by damage or by hand: one sentence, whatever is in the file."""

import json

import numpy as np
import pytest
from safetensors.numpy import save_file

import rlea
from rlea.errors import InputError
from rlea.io.agent_files import load_agent_file, save_agent_file
from rlea.io.synthetic import SyntheticSettings, generate


@pytest.fixture(scope="module")
def agent(tmp_path_factory):
    """The file of an agent that was trained on a small pair."""
    path = tmp_path_factory.mktemp("agent") / "agent.safetensors"
    pair = generate(SyntheticSettings(60, seeds=0.4, valid=0.0, name_noise=0.2, seed=1))
    rlea.Aligner(channels=("names",)).fit(pair).save(path)
    return path


def places(value, path=()):
    """Every place in a JSON value, as the keys that lead there; of a list the first two."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    for key, one in inner:
        yield from places(one, (*path, key))


def changed(value, path, new):
    """A copy of a JSON value with another one at a place."""
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = changed(value[path[0]], path[1:], new)
    return copy


def test_what_was_saved_is_loaded_and_a_changed_byte_is_seen(agent, tmp_path):
    about, weights = load_agent_file(agent)
    save_agent_file(tmp_path / "x.safetensors", about, weights)
    assert (tmp_path / "x.safetensors").read_bytes() == agent.read_bytes()
    good, chance = agent.read_bytes(), np.random.default_rng(0)
    for place in chance.integers(len(good), size=60).tolist():
        spoilt = bytearray(good)
        spoilt[place] ^= 1
        (tmp_path / "x.safetensors").write_bytes(spoilt)
        with pytest.raises(InputError, match=r"x\.safetensors: "):
            rlea.Aligner.load(tmp_path / "x.safetensors")


def test_any_value_at_any_place_is_an_agent_or_one_sentence(agent, tmp_path):
    """As of a file that somebody wrote: its hash is right, or it has none."""
    about, weights = load_agent_file(agent)
    about["history"] = about["history"][:1]
    path, refused = tmp_path / "x.safetensors", set()
    for place in places(about):
        for new in (None, -1, 10**12, "text", [], {}, [[]]):
            save_file(weights, path, metadata={"rlea": json.dumps(changed(about, place, new))})
            try:
                rlea.Aligner.load(path)
            except InputError as problem:
                assert str(problem).startswith(f"{path}: ")  # noqa: PT017
                refused.add(place)
    typed = {place for place in places(about) if place[0:1] in (("settings",), ("weights",), ("calibration",))}
    assert typed <= refused


def test_weights_that_are_not_finite_are_refused(agent, tmp_path):
    about, weights = load_agent_file(agent)
    name = next(name for name, array in weights.items() if array.dtype == np.float32)
    weights[name] = np.full_like(weights[name], np.nan)
    save_agent_file(tmp_path / "x.safetensors", about, weights)
    with pytest.raises(InputError, match="has weights that are not finite"):
        rlea.Aligner.load(tmp_path / "x.safetensors")
