"""Recorded trainings say what they were made with. Whether that is what is used today, `make records` tells."""

import json
from copy import deepcopy
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from rlea.models import MODELS

ROOT = Path(__file__).parents[2]
RECORDS = ROOT / "results" / "embeddings.json"


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    spec = spec_from_file_location("benchmark_of_embeddings", ROOT / "benchmarks" / "embeddings.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def records() -> dict[str, dict]:
    return json.loads(RECORDS.read_text(encoding="utf-8"))["runs"]


def test_recorded_runs_name_their_settings(records: dict[str, dict]):
    assert records
    for name, record in records.items():
        training = record["result"]["training"]
        assert MODELS[record["result"]["model"]].trained, name
        assert training["settings"], f"{name}: no settings are recorded"
        assert training["epochs"] <= training["settings"]["max_epochs"], name


def test_a_run_counts_as_there_only_under_the_present_settings(benchmark: ModuleType, records: dict[str, dict]):
    cell = "aligne EN_FR 1 cpu"
    kept = {cell: deepcopy(records[cell])}
    kept[cell]["result"]["training"]["settings"] = benchmark.default_settings("aligne")
    assert benchmark.is_there(kept, "aligne", "EN_FR", "1", "cpu")
    assert benchmark.is_there(kept, "aligne", "EN_FR", "1", "auto")
    assert not benchmark.is_there(kept, "aligne", "EN_FR", "1", "cuda")
    assert not benchmark.is_there(kept, "aligne", "EN_FR", "2", "cpu")
    kept[cell]["result"]["training"]["settings"]["patience"] += 1
    assert not benchmark.is_there(kept, "aligne", "EN_FR", "1", "cpu")
