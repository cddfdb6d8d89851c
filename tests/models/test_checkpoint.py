import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from rlea.errors import InputError
from rlea.io.array_files import read_safetensors
from rlea.io.synthetic import SyntheticSettings, generate
from rlea.models.checkpoint import load_checkpoint, remove_checkpoint, save_checkpoint
from rlea.models.embed import embed_entities


def test_what_is_saved_is_what_is_loaded(tmp_path: Path):
    path = tmp_path / "deep" / "run.safetensors"
    array = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)
    save_checkpoint(path, {"raw": array[:, ::2]}, {"run": {"seed": 1}, "epoch": 20, "loss": 0.1})
    arrays, state = load_checkpoint(path, {"seed": 1})
    assert arrays["raw"].tobytes() == np.ascontiguousarray(array[:, ::2]).tobytes()
    assert state == {"run": {"seed": 1}, "epoch": 20, "loss": 0.1}
    assert [file.name for file in path.parent.iterdir()] == ["run.safetensors"]


def test_a_failed_save_leaves_the_old_file(tmp_path: Path):
    path = tmp_path / "run.safetensors"
    save_checkpoint(path, {"a": np.zeros(3)}, {"run": {}})
    before = path.read_bytes()
    with pytest.raises(TypeError):
        save_checkpoint(path, {"a": np.ones(3)}, {"run": object()})
    assert path.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


def test_another_run_and_other_files_are_refused(tmp_path: Path):
    path = tmp_path / "run.safetensors"
    save_checkpoint(path, {"a": np.zeros(3)}, {"run": {"seed": 1, "dim": 5}})
    with pytest.raises(InputError, match=r"run\.safetensors: is the checkpoint of another run \(its seed differ"):
        load_checkpoint(path, {"seed": 2, "dim": 5})
    path.write_text("hello")
    with pytest.raises(InputError, match="is not a training checkpoint"):
        load_checkpoint(path, {})


def test_what_a_killed_run_left_is_overwritten_or_removed(tmp_path: Path):
    path = tmp_path / "run.checkpoint"
    left = tmp_path / ".run.checkpoint.partial"
    left.write_text("half")
    save_checkpoint(path, {"a": np.zeros(3)}, {"run": {}})
    assert [file.name for file in tmp_path.iterdir()] == ["run.checkpoint"]
    left.write_text("half")
    remove_checkpoint(path)
    remove_checkpoint(path)
    assert list(tmp_path.iterdir()) == []


def test_places_that_cannot_be_written_are_said(tmp_path: Path):
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "file" / "x", tmp_path / "folder", Path("/proc/rlea/x")):
        with pytest.raises(InputError, match=f"{path}: the checkpoint cannot be written"):
            save_checkpoint(path, {"a": np.zeros(3)}, {"run": {}})
    assert sorted(file.name for file in tmp_path.iterdir()) == ["file", "folder"]
    with pytest.raises(InputError, match="is not a training checkpoint"):
        load_checkpoint(tmp_path / "folder", {})


def test_the_checkpoint_of_an_unfinished_run_is_not_removed_by_another(tmp_path):
    path = tmp_path / "training.checkpoint"
    path.write_bytes(b"of another process")
    remove_checkpoint(path)
    assert path.exists()
    save_checkpoint(path, {"x": np.ones(2)}, {"run": {"seed": 1}})
    remove_checkpoint(path)
    assert not path.exists()


@pytest.mark.parametrize("state", ["[" * 100_000, "[1]", "7", '{"run": 7}', "{}"])
def test_a_checkpoint_with_odd_json_is_refused(state, tmp_path):
    path = tmp_path / "x.checkpoint"
    save_file({"x": np.ones(2)}, path, metadata={"state": state})
    with pytest.raises(InputError, match=r"x\.checkpoint: is "):
        load_checkpoint(path, {"seed": 1})


def test_a_number_that_is_none_is_found_before_the_training(tmp_path):
    path = tmp_path / "x.checkpoint"
    save_checkpoint(path, {"x": np.array([1.0, np.nan])}, {"run": {}})
    with pytest.raises(InputError, match="NaN"):
        load_checkpoint(path, {})


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A small pair, and the checkpoint of a training on it."""
    pair = generate(SyntheticSettings(12, seeds=0.4, valid=0.2, seed=1))
    path = tmp_path_factory.mktemp("trained") / "x.checkpoint"
    embed_entities(pair, "mtranse", checkpoint=path, epochs=10, device="cpu")
    return pair, path


@pytest.mark.parametrize(
    "change",
    [
        lambda arrays, state: state.update(epoch="ten"),
        lambda arrays, state: state.update(epoch=-1),
        lambda arrays, state: state.update(stop=[1]),
        lambda arrays, state: state.update(stop={**state["stop"], "patience": None}),
        lambda arrays, state: state.update(seconds={}),
        lambda arrays, state: state.update(loss=[]),
        lambda arrays, state: state.update(resumed_at=7),
        lambda arrays, state: state.pop("epoch"),
        lambda arrays, state: arrays.clear(),
        lambda arrays, state: arrays.update({name: array[:3] for name, array in arrays.items()}),
        lambda arrays, state: arrays.update({name: array.astype(np.int8) for name, array in arrays.items()}),
        lambda arrays, state: arrays.update({name: np.ones(5, np.float32) for name in arrays}),
    ],
)
def test_a_checkpoint_of_another_hand_is_one_sentence(change, trained, tmp_path):
    """Its hash is right: whoever writes a file can write that as well."""
    pair, good = trained
    metadata, arrays = read_safetensors(good, "", "")
    state = json.loads(metadata["state"])
    change(arrays, state)
    state.pop("sha256")
    save_checkpoint(tmp_path / "x.checkpoint", arrays, state)
    with pytest.raises(InputError, match=r"x\.checkpoint: is no whole checkpoint \(.*delete the file to train afresh"):
        embed_entities(pair, "mtranse", checkpoint=tmp_path / "x.checkpoint", epochs=11, device="cpu")
