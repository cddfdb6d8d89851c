"""Cells of deciders: what they share, what makes them run again, and what their records say."""

import json
import re

import numpy as np
import pytest

from rlea.agent.context import ContextAgent
from rlea.experiments.deciding import cells_of, choose_dangling, store_of
from rlea.experiments.desk import Desk, Options
from rlea.experiments.grid import Grid, run_grids
from rlea.io.synthetic import synthetic_embeddings
from rlea.io.writers.vectors import write_embeddings
from rlea.matching import Matching, keep_worthwhile


@pytest.fixture
def options(tmp_path):
    """The quick pair with planted vectors in place of trained ones, good ones and bad ones."""
    options = Options(work=tmp_path / "work", output=tmp_path / "out", quick=True)
    pair = Desk(options).pair("quick", "1")
    for model, noise in (("aligne", 0.3), ("mtranse", 3.0)):
        vectors = synthetic_embeddings(pair, noise=noise, dim=16)
        write_embeddings(options.work / f"{model}_quick_1.safetensors", vectors, pair.source, pair.target)
    return options


def run(options, models, deciders, **more):
    cells = cells_of(Desk(options), "main", models, deciders, pairs=["quick"], **more)
    return run_grids([Grid(store_of(options.output), cells)])


def test_records_are_of_the_same_candidates_and_say_what_they_are_of(options, tmp_path):
    assert run(options, ["aligne", "mtranse"], ["nearest", "best-first"]).done == 4
    runs = store_of(options.output).records()
    assert list(runs) == [f"{m} quick 1 {d}" for m in ("mtranse", "aligne") for d in ("nearest", "best-first")]
    pair = Desk(options).pair("quick", "1")
    for record in runs.values():
        assert record["fingerprint"] == pair.fingerprint
        assert record["result"]["sources"] == record["result"]["targets"] == len(pair.test)
        assert ("ece" in record["result"]) == (record["result"]["decider"] == "best-first")
        assert re.fullmatch(r"([0-9a-f]{12}\+?)?", record["commit"])
        assert record["command"].startswith("rlea reproduce main --quick --models ")
    assert runs["aligne quick 1 nearest"]["vectors"] == runs["aligne quick 1 best-first"]["vectors"]
    assert runs["aligne quick 1 nearest"]["vectors"] != runs["mtranse quick 1 nearest"]["vectors"]
    assert (
        runs["aligne quick 1 nearest"]["result"]["hits@1"] > runs["mtranse quick 1 nearest"]["result"]["hits@1"] + 0.3
    )
    assert str(tmp_path) not in store_of(options.output).file.read_text()


@pytest.mark.parametrize("key", ["code", "fingerprint", "vectors", "settings", "seed"])
def test_a_record_of_something_else_is_not_taken_for_this(key, options):
    run(options, ["aligne"], ["nearest"])
    path = store_of(options.output).file
    whole = json.loads(path.read_text())
    whole["runs"]["aligne quick 1 nearest"][key] = "other"
    path.write_text(json.dumps(whole))
    assert run(options, ["aligne"], ["nearest"]).done == 1
    assert store_of(options.output).records()["aligne quick 1 nearest"][key] != "other"


def test_what_is_finished_is_kept_when_another_cell_fails(options):
    (options.work / "sea_quick_1.safetensors").write_text("{}")
    outcome = run(options, ["sea", "aligne"], ["nearest"])
    assert list(outcome.failed) == ["sea quick 1 nearest"]
    assert "sea_quick_1.safetensors" in outcome.failed["sea quick 1 nearest"]
    assert list(store_of(options.output).records()) == ["aligne quick 1 nearest"]


def test_the_agent_is_trained_once_for_all_vectors(options, monkeypatch):
    trained = []
    fit = ContextAgent.fit

    def counted(agent, pair, *arguments, **more):
        trained.append(arguments)
        return fit(agent, pair, *arguments, **more)

    monkeypatch.setattr(ContextAgent, "fit", counted)
    run(options, ["aligne", "mtranse"], ["rlea"])
    assert trained == [(None,)]
    runs = store_of(options.output).records()
    stages = {key: record["result"]["seconds_by_stage"] for key, record in runs.items()}
    assert stages["aligne quick 1 rlea"]["training"] == stages["mtranse quick 1 rlea"]["training"] > 0
    for key, record in runs.items():
        assert record["result"]["seconds"] == stages[key]["deciding"]
        assert stages[key]["choosing"] > 0
        assert 0 <= record["result"]["ece"] <= 1
        assert len(record["agent"]["history"]) > 1  # what was tried on validation links
    # With targets gone the same agent serves again, and links may be cut.
    run(options, ["aligne"], ["hungarian", "rlea"], dangling=0.25)
    assert len(trained) == 1
    pair = Desk(options).pair("quick", "1")
    left = len(pair.test) - round(0.25 * len(pair.test))
    result = store_of(options.output).records()["aligne quick 1 rlea test-25%"]["result"]
    assert (result["sources"], result["targets"], result["gold"]) == (len(pair.test), left, left)
    assert result["matched"] <= result["uncut"]["matched"]


def test_the_dangling_share_is_the_same_every_time_and_takes_targets_only(options):
    test = Desk(options).pair("quick", "1").test
    links, taken = choose_dangling(test, 0.25)
    again, _ = choose_dangling(test, 0.25)
    assert len(taken) == round(0.25 * len(test)) > 0
    assert np.array_equal(links.target_ids, again.target_ids)
    assert not np.isin(links.target_ids, taken).any()
    assert len(links) + len(taken) == len(test)
    whole, nobody = choose_dangling(test, 0.0)
    assert (len(whole), len(nobody)) == (len(test), 0)


def test_links_are_cut_where_expected_f1_is_greatest():
    confidences = np.array([0.1, 0.9, 0.8, 0.05, 0.6])
    cut = keep_worthwhile(Matching.of(range(5), range(5), confidences), 3)
    ordered = sorted(confidences, reverse=True)
    expected = [2 * sum(ordered[:n]) / (n + 3) for n in range(1, 6)]
    assert len(cut) == 1 + expected.index(max(expected)) == 3
    assert sorted(cut.confidences, reverse=True) == ordered[:3]
    assert len(keep_worthwhile(Matching.of([], [], []), 3)) == 0


def test_the_commit_knows_that_results_are_no_change_of_the_program(monkeypatch):
    from rlea.experiments import grid

    monkeypatch.setattr(grid, "commit", lambda: "0123456789ab+")
    assert grid.program_commit() in ("0123456789ab+", "0123456789ab")
    monkeypatch.setattr(grid, "commit", lambda: "0123456789ab")
    assert grid.program_commit() == "0123456789ab"


def test_the_100k_data_sets_run_where_they_are(tmp_path):
    from rlea.experiments import scale

    (tmp_path / "D_W_100K_V1").mkdir()
    grids = scale.grids(Desk(Options(data=tmp_path, output=tmp_path / "out", sizes=(1000,))))
    assert [grid.store.path.name for grid in grids] == ["scale", "deciders"]
    assert {cell.result["pair"] for cell in grids[1].cells} == {"D_W_100K"}
    assert len(grids[1].cells) == 8
    alone = scale.grids(Desk(Options(output=tmp_path / "out", sizes=(1000,))))
    assert len(alone) == 1
    assert {cell.result["entities"] for cell in alone[0].cells} == {1000}


def test_the_table_of_100k_stands_beside_the_paper():
    from rlea.experiments import scale

    result = {"model": "sea", "pair": "D_W_100K", "fold": "1", "decider": "rlea", "pool": "test", "hits@1": 0.5}
    paper = {**result, "decider": "paper", "hits@1": 0.25}
    kept = {"scale": {}, "deciders": {"a": {"result": result}, "b": {"result": paper}}}
    assert "| D-W | SEA | -<br>paper .291 | -<br>paper .293 | .250<br>paper .338 | .500 |" in scale.table_3(kept)
    assert "not at hand" in scale.table_3({"scale": {}})
