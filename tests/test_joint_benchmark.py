"""The benchmark of joint rounds on a small planted pair, as its command line runs it."""

import json
import sys

import pytest

from rlea.embed import aligne
from rlea.readers import read_pair
from rlea.synthetic import SyntheticSettings, generate
from test_deciders_benchmark import ROOT, load, write_openea


@pytest.fixture
def benchmark(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return load("benchmarks", "joint")


def test_rounds_are_recorded_and_trained_vectors_are_kept(benchmark, tmp_path, monkeypatch):
    write_openea(tmp_path / "data" / "D_W_15K_V1", generate(SyntheticSettings(num_entities=150, seed=4)))
    plain = aligne.AlignESettings.__init__
    monkeypatch.setattr(
        aligne.AlignESettings, "__init__", lambda self, **more: plain(self, **{"dim": 16, "max_epochs": 5, **more})
    )
    folders = ["--data", tmp_path / "data", "--vectors", tmp_path / "vectors", "--output", tmp_path / "out"]
    (tmp_path / "vectors").mkdir()
    words = [*folders, "--pairs", "D_W", "--rounds", "1", "--device", "cpu", "--agents", tmp_path / "agents"]
    monkeypatch.setattr(sys, "argv", ["joint.py", *map(str, words), "--model", "aligne", "--folds", "1"])
    benchmark.main()
    runs = json.loads((tmp_path / "out" / "joint.json").read_text(encoding="utf-8"))["runs"]
    assert next(iter(runs)) == "aligne D_W 1 0"
    assert set(runs) <= {"aligne D_W 1 0", "aligne D_W 1 1"}
    pair = read_pair(tmp_path / "data" / "D_W_15K_V1", "1")
    for record in runs.values():
        assert record["fingerprint"] == pair.fingerprint
        assert 0 < record["result"]["hits@1"] <= 1
        assert record["result"]["sure"] > 0
        assert 0 <= record["result"]["nearest"] < record["result"]["hits@1"]
    names = {path.name for path in (tmp_path / "vectors").iterdir()}
    assert "aligne_D_W_1.safetensors" in names
    assert "aligne D_W 1 1" in runs
    assert "aligne_D_W_1_round1.safetensors" in names
    # Again: nothing is trained, and the figures are the same.
    monkeypatch.setattr(aligne, "train_aligne", None)
    benchmark.main()
    again = json.loads((tmp_path / "out" / "joint.json").read_text(encoding="utf-8"))["runs"]
    assert {key: record["result"]["hits@1"] for key, record in again.items()} == {
        key: record["result"]["hits@1"] for key, record in runs.items()
    }


def test_without_data_nothing_is_run(benchmark, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["joint.py"])
    benchmark.main()
    assert "skipped" in capsys.readouterr().out
