"""`make records`: which records are of today's program, on planted ones."""

import json
import re
import sys
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from rlea.experiments.options import Options
from rlea.io.synthetic import SyntheticSettings, generate
from rlea.io.writers.graphs import write_pair
from rlea.progress import silent

ROOT = Path(__file__).parent.parent


def load_script():
    spec = spec_from_file_location("records_script", ROOT / "scripts" / "records.py")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look for the module that they are in
    spec.loader.exec_module(module)
    return module


records = load_script()
SMALL = SyntheticSettings(num_entities=60, seed=1)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Results to plant, data of one pair, and vectors of one model; the real data is not looked at."""
    monkeypatch.delenv("RLEA_DATA", raising=False)
    (tmp_path / "results").mkdir()
    (tmp_path / "work").mkdir()
    write_pair(tmp_path / "data" / "EN_FR_15K_V1", generate(SMALL), "openea")
    (tmp_path / "work" / "sea_EN_FR_1.safetensors").write_bytes(b"vectors")
    return tmp_path


def options_of(folder, data="data"):
    return Options(data=folder / data if data else None, work=folder / "work", output=folder / "results")


def wanted_of(folder, experiment, file, key):
    """What a cell would be recorded with today, with its names."""
    _, cells = records.cells_today(options_of(folder), experiment)
    cell = cells[file, key]
    return {"result": cell.result, "commit": "0123456789ab", **cell.wanted(silent)}


def plant(folder, file, runs):
    whole = {"runs": runs} if isinstance(runs, dict) and "commit" not in runs else runs
    (folder / "results" / f"{file}.json").write_text(json.dumps(whole))


def found(folder, capsys, *arguments, data="data"):
    """Verdicts by file and cell, and the exit code."""
    where = ["--results", str(folder / "results"), "--work", str(folder / "work")]
    if data:
        where += ["--data", str(folder / data)]
    capsys.readouterr()
    code = records.main([*where, "--json", *arguments])
    rows = json.loads(capsys.readouterr().out)
    return {(row["file"], row["cell"]): row for row in rows}, code


def verdict(folder, capsys, what, file, key, record=None, **where):
    """The state of the only record, and what else it is asked for; `record` is planted first, if there is one."""
    if record is not None:
        plant(folder, file, {key: record})
    ((place, row),) = found(folder, capsys, **where)[0].items()
    assert place == (file, key)
    return row["state"], row[what]


STAGE = "deciding: seq 1000"


def test_a_fresh_a_stale_and_an_unknown_record(folder, capsys):
    today = wanted_of(folder, "scale", "scale", STAGE)
    other_code = today | {"code": "0" * 64}
    other_settings = today | {"settings": today["settings"] | {"dim": 7}}
    no_code = {key: value for key, value in today.items() if key != "code"}
    for record, state, why in (
        (today, "FRESH", []),
        (other_code, "STALE", ["code"]),
        (other_settings, "STALE", ["settings"]),
        (other_code | {"seed": 9}, "STALE", ["code", "seed"]),
        (no_code, "UNKNOWN", ["no code recorded"]),
        (no_code | {"settings": {}}, "STALE", ["settings"]),
    ):
        assert verdict(folder, capsys, "why", "scale", STAGE, record) == (state, why)
        rows, code = found(folder, capsys)
        assert (rows["scale", STAGE]["commit"], code) == ("0123456789ab", 0)
        assert found(folder, capsys, "--check")[1] == (state == "STALE")
    _, detail = verdict(folder, capsys, "detail", "scale", STAGE, other_settings)
    assert re.search(r"settings: dim 7, today \d+", detail)


def test_data_and_vectors_are_compared_where_they_are(folder, capsys):
    key = "sea EN_FR 1 nearest"
    today = wanted_of(folder, "main", "deciders", key)
    cell = folder, capsys, "why", "deciders", key
    of_detail = folder, capsys, "detail", "deciders", key
    assert verdict(*of_detail, today) == ("FRESH", "")
    assert verdict(*cell, today | {"vectors": "others"}) == ("STALE", ["vectors"])
    (folder / "work" / "sea_EN_FR_1.safetensors").unlink()
    assert verdict(*of_detail) == ("FRESH", "vectors not compared")
    assert not list((folder / "work").iterdir())  # nothing was trained
    (folder / "data" / "EN_FR_15K_V1").rename(folder / "gone")
    assert verdict(*cell) == verdict(*cell, data=None) == ("UNKNOWN", ["data not at hand"])
    # What can be told without the data is told.
    assert verdict(*cell, today | {"code": "0" * 64}, data=None) == ("STALE", ["code"])
    write_pair(folder / "data" / "EN_FR_15K_V1", generate(replace(SMALL, seed=2)), "openea")
    assert verdict(*cell, today) == ("STALE", ["data"])


def test_a_cell_that_there_is_no_more(folder, capsys):
    plant(folder, "scale", {STAGE: wanted_of(folder, "scale", "scale", STAGE), "deciding: dice 1000": {"commit": "c"}})
    rows, _ = found(folder, capsys)
    assert rows["scale", "deciding: dice 1000"]["why"] == ["no such cell today"]
    assert rows["scale", STAGE]["state"] == "FRESH"


def test_settings_of_trained_models(folder, capsys):
    settings = records.load_benchmark("embeddings").default_settings("sea")
    result = {"model": "sea", "pair": "D_W", "fold": "1", "training": {"settings": settings}}
    other = {**result, "training": {"settings": {**settings, "dim": 3}}}
    plant(folder, "embeddings", {"same": {"result": result, "commit": "c"}, "other": {"result": other, "commit": "c"}})
    rows, code = found(folder, capsys, "--check")
    assert rows["embeddings", "same"]["why"] == ["no code recorded"]
    assert (rows["embeddings", "other"]["state"], rows["embeddings", "other"]["why"]) == ("STALE", ["settings"])
    assert code == 1


def test_a_benchmark_can_be_stale_by_its_data(folder, capsys):
    from rlea.demo import demo_folder
    from rlea.pipeline import read

    plant(folder, "demo", {"pair": "demo", "fingerprint": read(demo_folder()).fingerprint, "commit": "c"})
    plant(folder, "agent", {"fingerprints": {"EN_FR": "other", "synthetic": "x"}, "commit": "c"})
    rows, _ = found(folder, capsys)
    assert rows["demo", ""]["state"] == "UNKNOWN"
    assert (rows["agent", ""]["state"], rows["agent", ""]["why"]) == ("STALE", ["data of EN_FR"])


def test_the_table_counts_and_names_every_record_if_wished(folder, capsys):
    today = wanted_of(folder, "scale", "scale", STAGE)
    plant(folder, "scale", {STAGE: today, "deciding: seq 3000": today | {"code": ""}})
    where = ["--results", str(folder / "results"), "--data", str(folder / "data")]
    assert records.main(where) == 0
    head, row, total = capsys.readouterr().out.splitlines()
    assert head.split() == ["file", "records", "fresh", "stale", "unknown", "why"]
    assert row.split()[:5] == ["scale", "2", "1", "1", "0"]
    assert total.split()[:5] == ["all", "2", "1", "1", "0"]
    assert records.main([*where, "--all"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert f"    FRESH   0123456789ab  {STAGE}" in lines
    assert any(line.startswith("    STALE") and "(code" in line for line in lines)


def test_every_record_here_is_judged(capsys, monkeypatch):
    """Not how they are judged: a changed default makes records stale, and no test fails for it."""
    monkeypatch.delenv("RLEA_DATA", raising=False)
    assert records.main(["--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) == sum(1 for _ in records.records_in(ROOT / "results"))
    assert {row["state"] for row in rows} <= set(records.STATES)
    for row in rows:
        assert row["state"] == "FRESH" or row["why"], row
