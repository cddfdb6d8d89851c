"""What the commands keep and refuse, called as the command line calls them."""

import json
from pathlib import Path

import pytest

from rlea import commands
from rlea.errors import InputError
from rlea.io.synthetic import SyntheticSettings, write_synthetic
from rlea.io.writers import vectors


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made: Path = tmp_path_factory.mktemp("commands") / "pair"
    write_synthetic(made, SyntheticSettings(num_entities=60))
    return made


def embed(folder: Path, output: Path, **more):
    settings = {"fold": None, "seed": 0, "device": "cpu", "epochs": 12} | more
    return commands.embed_to_file(folder, "aligne", output, **settings)


class KilledError(Exception):
    pass


def kill(stage: str, done: float, total: float, note: str = "") -> None:
    if done == 11:
        raise KilledError


def fail(*call: object) -> None:
    raise AssertionError("work was done")


def test_same_seed_same_file_even_after_an_interruption(folder, tmp_path, monkeypatch):
    import rlea.models.training as module

    whole = embed(folder, tmp_path / "whole.safetensors")
    assert whole["training"]["resumed_at"] == []
    assert whole["seconds"] == round(whole["training"]["seconds"], 1)
    clock = iter(range(0, 10**6, 100))  # every look at it is 100 s after the one before
    monkeypatch.setattr(module.time, "perf_counter", lambda: float(next(clock)))
    again = tmp_path / "again.safetensors"
    with pytest.raises(KilledError):
        embed(folder, again, progress=kill)
    assert sorted(path.name for path in tmp_path.iterdir() if "again" in path.name) == ["again.checkpoint"]
    (tmp_path / ".again.checkpoint.partial").write_text("left by a run that was killed while writing")
    resumed = embed(folder, again)
    assert resumed["seconds"] == 200  # one look up to the checkpoint of epoch 10, one after it
    assert resumed["training"]["resumed_at"] == [10]
    assert again.read_bytes() == (tmp_path / "whole.safetensors").read_bytes()
    record = json.loads((tmp_path / "again.json").read_text())
    assert record["result"]["training"]["resumed_at"] == [10]
    assert record["result"]["seconds"] == 200
    assert {path.name for path in tmp_path.iterdir() if "again" in path.name} == {"again.safetensors", "again.json"}


def test_embed_refuses_what_cannot_end_well_before_it_reads_anything(tmp_path):
    (tmp_path / "file").write_text("")
    for taken in ("a.checkpoint", "b.json", "c.safetensors"):
        (tmp_path / taken).mkdir()
    before = sorted(tmp_path.iterdir())
    nowhere = tmp_path / "no such pair"
    for output, problem in (
        ("file/x.safetensors", "file: is a file where a folder is needed"),
        ("a.safetensors", r"a\.checkpoint: is a folder"),
        ("b.safetensors", r"b\.json: is a folder"),
        ("c.safetensors", r"c\.safetensors: is a folder"),
        ("/proc/rlea/x.safetensors", "/proc/rlea/x.*cannot be written"),
    ):
        with pytest.raises(InputError, match=problem):
            embed(nowhere, tmp_path / output, progress=fail)
    for seed in (-1, 2**63):
        with pytest.raises(InputError, match=f"--seed is {seed}"):
            embed(nowhere, tmp_path / "x.safetensors", seed=seed, progress=fail)
    assert sorted(tmp_path.iterdir()) == before


def test_embed_finds_out_before_training_that_identifiers_are_too_long(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(vectors, "MAX_HEAD_BYTES", 21_000)
    with pytest.raises(InputError, match=r"x\.safetensors: the identifiers"):
        embed(folder, tmp_path / "x.safetensors", progress=fail)
    assert list(tmp_path.iterdir()) == []


def test_synthesize_refuses_files_and_full_folders(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match="file: is a file where a folder is needed"):
        commands.synthesize(tmp_path / "file", progress=fail)
    with pytest.raises(InputError, match="not empty"):
        commands.synthesize(tmp_path, progress=fail)
    with pytest.raises(InputError, match="cannot be written"):
        commands.synthesize(Path("/proc/rlea"), progress=fail)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    (tmp_path / "empty").mkdir()
    commands.synthesize(tmp_path / "empty", num_entities=20)
    assert (tmp_path / "empty" / "source.nt").exists()
