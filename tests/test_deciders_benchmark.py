"""The benchmark of deciders on a small pair with a planted alignment, as its command line runs it."""

import csv
import json
import re
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest

from rlea.graph import Links
from rlea.matchers.confidence import keep_worthwhile
from rlea.matching import Matching
from rlea.readers import read_pair
from rlea.synthetic import SyntheticSettings, generate, synthetic_embeddings
from rlea.writers.vectors import write_embeddings

ROOT = Path(__file__).parent.parent


def load(folder, name):
    spec = spec_from_file_location(f"{folder}_{name}", ROOT / folder / f"{name}.py")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


benchmark = load("benchmarks", "deciders")


def write_openea(folder, pair):
    """The pair in the layout of the 15K folders; vectors are stored by identifier, so no order need be kept."""
    texts = {}
    for number, graph in ((1, pair.source), (2, pair.target)):
        rows = [(graph.entities[h], graph.relations[r], graph.entities[t]) for h, r, t in graph.triples]
        texts[f"rel_triples_{number}"] = rows
    splits = {"train": pair.train, "valid": pair.valid, "test": pair.test}
    texts["ent_links"] = []
    for name, links in splits.items():
        both = zip(links.source_ids, links.target_ids, strict=True)
        rows = [(pair.source.entities[s], pair.target.entities[t]) for s, t in both]
        texts[f"721_5fold/1/{name}_links"] = rows
        texts["ent_links"] += rows
    for name, rows in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")


@pytest.fixture
def desk(tmp_path):
    write_openea(tmp_path / "data" / "D_W_15K_V1", generate(SyntheticSettings(num_entities=150, seed=4)))
    pair = read_pair(tmp_path / "data" / "D_W_15K_V1", "1")
    (tmp_path / "vectors").mkdir()
    for model, noise in (("aligne", 0.9), ("mtranse", 1.6)):
        vectors = synthetic_embeddings(pair, noise=noise, dim=16)
        write_embeddings(tmp_path / "vectors" / f"{model}_D_W_1.safetensors", vectors, pair.source, pair.target)
    return tmp_path


@pytest.fixture
def run(desk, monkeypatch, capsys):
    def call(*more):
        words = ["--data", desk / "data", "--vectors", desk / "vectors", "--pairs", "D_W", "--output", desk / "out"]
        monkeypatch.setattr(sys, "argv", ["deciders.py", *map(str, [*words, *more])])
        capsys.readouterr()
        benchmark.main()
        return capsys.readouterr().err

    return call


def rows_of(desk):
    with (desk / "out" / "deciders.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def runs_of(desk):
    return json.loads((desk / "out" / "deciders.json").read_text(encoding="utf-8"))["runs"]


def test_lines_and_records_of_all_deciders_asked_for(run, desk):
    run("--deciders", "nearest", "hungarian", "best-first")
    first = (desk / "out" / "deciders.csv").read_text(encoding="utf-8").splitlines()[0]
    assert first == (
        "model,pair,fold,decider,pool,hits@1,precision,recall,f1,matched,seconds,peak_memory_mb,commit,seed"
    )
    rows, runs = rows_of(desk), runs_of(desk)
    assert [(row["model"], row["decider"]) for row in rows] == [
        (model, decider) for model in ("mtranse", "aligne") for decider in ("nearest", "hungarian", "best-first")
    ]
    assert set(runs) == {f"{row['model']} D_W 1 {row['decider']}" for row in rows}
    hits = {(row["model"], row["decider"]): float(row["hits@1"]) for row in rows}
    assert hits["aligne", "best-first"] >= hits["aligne", "hungarian"] > hits["aligne", "nearest"] > 0.3
    assert hits["aligne", "nearest"] > hits["mtranse", "nearest"]
    pair = read_pair(desk / "data" / "D_W_15K_V1", "1")
    for record in runs.values():
        assert record["fingerprint"] == pair.fingerprint
        assert record["machine"]["cores"] >= 1
        assert record["seed"] == 0
        assert record["command"].startswith("python benchmarks/deciders.py --data DIR --vectors DIR --pairs D_W ")
        assert record["result"]["targets"] == len(pair.test)
        assert ("ece" in record["result"]) == (record["result"]["decider"] == "best-first")
        assert re.fullmatch(r"([0-9a-f]{12}\+?)?", record["commit"])
    assert str(desk) not in (desk / "out" / "deciders.json").read_text(encoding="utf-8")


def test_cells_that_are_there_are_not_made_again(run, desk):
    run("--models", "aligne", "--deciders", "nearest")
    before = runs_of(desk)["aligne D_W 1 nearest"]
    said = run("--models", "aligne", "--deciders", "nearest", "csls")
    assert re.search(r"nearest +is there", said)
    after = runs_of(desk)
    assert list(after) == ["aligne D_W 1 nearest", "aligne D_W 1 csls"]
    assert after["aligne D_W 1 nearest"] == before
    # Other vectors under the same name are another run.
    (desk / "vectors" / "mtranse_D_W_1.safetensors").replace(desk / "vectors" / "aligne_D_W_1.safetensors")
    said = run("--models", "aligne", "--deciders", "nearest")
    assert "is there" not in said
    changed = runs_of(desk)
    assert changed["aligne D_W 1 nearest"]["result"]["hits@1"] < before["result"]["hits@1"]
    assert changed["aligne D_W 1 csls"] == after["aligne D_W 1 csls"]


@pytest.mark.parametrize("key", ["program", "fingerprint", "vectors", "settings"])
def test_a_record_of_something_else_is_not_taken_for_this(key, run, desk):
    run("--models", "aligne", "--deciders", "nearest")
    path = desk / "out" / "deciders.json"
    whole = json.loads(path.read_text(encoding="utf-8"))
    whole["runs"]["aligne D_W 1 nearest"][key] = "other"
    path.write_text(json.dumps(whole), encoding="utf-8")
    assert "is there" not in run("--models", "aligne", "--deciders", "nearest")
    assert runs_of(desk)["aligne D_W 1 nearest"][key] != "other"


def test_what_is_finished_is_kept_when_a_later_cell_fails(run, desk):
    (desk / "vectors" / "sea_D_W_1.safetensors").write_text("{}")
    with pytest.raises(SystemExit, match="could not be run"):
        run("--models", "sea", "aligne", "--deciders", "nearest")
    assert list(runs_of(desk)) == ["aligne D_W 1 nearest"]
    assert "skipped: there is no jape_D_W_1.safetensors" in run("--models", "jape", "--deciders", "nearest")


def test_the_agent_is_trained_once_for_all_vectors(run, desk, monkeypatch):
    trained = []
    fit = benchmark.ContextAgent.fit

    def counted(agent, pair, *arguments, **more):
        trained.append(arguments)
        return fit(agent, pair, *arguments, **more)

    monkeypatch.setattr(benchmark.ContextAgent, "fit", counted)
    run("--deciders", "rlea")
    assert trained == [(None,)]
    runs = runs_of(desk)
    assert set(runs) == {"aligne D_W 1 rlea", "mtranse D_W 1 rlea"}
    stages = {key: record["result"]["seconds_by_stage"] for key, record in runs.items()}
    assert stages["aligne D_W 1 rlea"]["training"] == stages["mtranse D_W 1 rlea"]["training"] > 0
    for key, record in runs.items():
        assert record["result"]["seconds"] == stages[key]["deciding"]
        assert stages[key]["choosing"] > 0
        assert 0 <= record["result"]["ece"] <= 1
        assert len(record["agent"]["history"]) > 1  # what was tried on validation links
    agents = {path.name for path in (desk / "agents").iterdir()}
    assert agents == {"rlea_D_W_1.safetensors", "rlea_D_W_1.json"}
    # With targets gone the same agent serves again, and some of its links are cut.
    run("--models", "aligne", "--deciders", "hungarian", "rlea", "--dangling", "0.25")
    assert len(trained) == 1
    pair = read_pair(desk / "data" / "D_W_15K_V1", "1")
    left = len(pair.test) - round(0.25 * len(pair.test))
    result = runs_of(desk)["aligne D_W 1 rlea test-25%"]["result"]
    assert (result["sources"], result["targets"], result["gold"]) == (len(pair.test), left, left)
    assert result["pool"] == "test-25%"
    assert result["matched"] <= result["uncut"]["matched"]
    assert {row["pool"] for row in rows_of(desk)} == {"test", "test-25%"}


def test_the_dangling_share_is_the_same_every_time_and_takes_targets_only(desk):
    pair = read_pair(desk / "data" / "D_W_15K_V1", "1")
    links, taken = benchmark.choose_dangling(pair, 0.25)
    again, _ = benchmark.choose_dangling(pair, 0.25)
    assert len(taken) == round(0.25 * len(pair.test)) > 0
    assert np.array_equal(links.target_ids, again.target_ids)
    assert not np.isin(links.target_ids, taken).any()
    assert len(links) + len(taken) == len(pair.test)
    whole, nobody = benchmark.choose_dangling(pair, 0.0)
    assert (len(whole), len(nobody)) == (len(pair.test), 0)


def test_links_are_cut_where_expected_f1_is_greatest():
    confidences = np.array([0.1, 0.9, 0.8, 0.05, 0.6])
    links = Links.of(range(5), range(5))
    cut = keep_worthwhile(Matching.of(links.source_ids, links.target_ids, confidences), 3)
    ordered = sorted(confidences, reverse=True)
    expected = [2 * sum(ordered[:n]) / (n + 3) for n in range(1, 6)]
    assert len(cut) == 1 + expected.index(max(expected)) == 3
    assert sorted(cut.confidences, reverse=True) == ordered[:3]
    assert len(keep_worthwhile(Matching.of([], [], []), 3)) == 0


def test_records_made_elsewhere_are_taken_in(run, desk, monkeypatch):
    run("--models", "aligne", "--deciders", "nearest")
    run("--models", "mtranse", "--deciders", "nearest", "--output", desk / "other")
    words = ["--add", desk / "other" / "deciders.json", "--output", desk / "out"]
    monkeypatch.setattr(sys, "argv", ["deciders.py", *map(str, words)])
    benchmark.main()
    assert [row["model"] for row in rows_of(desk)] == ["mtranse", "aligne"]


def test_the_table_of_the_page_has_the_best_in_bold(tmp_path, monkeypatch):
    tables = load("scripts", "readme_tables")
    (tmp_path / "results").mkdir()
    lines = [
        "model,pair,fold,decider,pool,hits@1,f1",
        "aligne,D_W,1,hungarian,test,0.5004,0",
        "aligne,D_W,1,best-first,test,0.8126,0",
        "aligne,D_W,1,rlea,test,0.9126,0",
        "mtranse,D_W,1,rlea,test,1.0000,0",
        "mtranse,D_W,2,rlea,test,0.1000,0",
        "aligne,D_W,1,hungarian,test-25%,0,0.3",
        "aligne,D_W,1,best-first,test-25%,0,0.4",
        "aligne,D_W,1,rlea,test-25%,0,0.5",
    ]
    runs = {
        "aligne D_W 1 rlea": {"result": {"ece": 0.01, "pool": "test"}},
        "mtranse D_W 1 rlea": {"result": {"ece": 0.03, "pool": "test"}},
        "aligne D_W 1 rlea test-25%": {"result": {"ece": 0.5, "pool": "test-25%", "uncut": {"f1": 0.45}}},
    }
    (tmp_path / "results" / "deciders.json").write_text(json.dumps({"runs": runs}), encoding="utf-8")
    (tmp_path / "results" / "deciders.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    monkeypatch.setattr(tables, "ROOT", tmp_path)
    table = tables.deciders_table()
    *head, blank, summary = table.splitlines()
    assert head[-4:] == [
        "| D-W | hungarian | best-first | rlea |",
        "|---|---|---|---|",
        "| MTransE | - | - | **1.000** |",
        "| AlignE | .500 | .813 | **.913** |",
    ]
    assert blank == ""
    assert "first in 2 of 2 cells: by 10.0 points over best-first" in summary
    assert "by 41.2 over Hungarian" in summary
    assert ".030 at most, .020 in the mean" in summary
    assert "its F1 is .500" in summary
    assert "(.450 with all), where best-first has .400 and Hungarian .300" in summary
