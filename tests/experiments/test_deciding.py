"""Cells of deciders: what they share, what makes them run again, and what their records say."""

import json
import re

import numpy as np
import pytest

from rlea import record as run_record
from rlea.experiments import scale, workspace
from rlea.experiments.deciding import DECIDERS_STORE, choose_dangling, deciders_grid
from rlea.experiments.grid import run_grids
from rlea.experiments.options import Options
from rlea.experiments.workspace import Workspace
from rlea.matching import Matching, keep_worthwhile


def run(options, models, deciders, **more):
    return run_grids([deciders_grid(Workspace(options), "main", models, deciders, ["quick"], **more)])


def test_records_are_of_the_same_candidates_and_say_what_they_are_of(options, tmp_path):
    assert run(options, ["aligne", "mtranse"], ["nearest", "best-first"]).done == 4
    runs = DECIDERS_STORE.at(options.output).records()
    assert list(runs) == [f"{m} quick 1 {d}" for m in ("mtranse", "aligne") for d in ("nearest", "best-first")]
    pair = Workspace(options).pair("quick", "1")
    for record in runs.values():
        assert record["fingerprint"] == pair.fingerprint
        assert record["result"]["sources"] == record["result"]["targets"] == len(pair.test)
        assert ("ece" in record["result"]) == (record["result"]["decider"] == "best-first")
        assert re.fullmatch(r"([0-9a-f]{12}\+?)?", record["commit"])
        assert record["command"].startswith("rlea reproduce main --quick --models ")
    good, same, bad = (
        runs[f"{name}"] for name in ("aligne quick 1 nearest", "aligne quick 1 best-first", "mtranse quick 1 nearest")
    )
    assert good["vectors"] == same["vectors"] != bad["vectors"]
    assert good["result"]["hits@1"] > bad["result"]["hits@1"] + 0.3
    assert str(tmp_path) not in DECIDERS_STORE.at(options.output).file.read_text()


def test_a_record_of_something_else_is_not_taken_for_this(options):
    run(options, ["aligne"], ["nearest"])
    path, key = DECIDERS_STORE.at(options.output).file, "aligne quick 1 nearest"
    for name in ("code", "fingerprint", "vectors", "settings", "seed"):
        whole = json.loads(path.read_text())
        whole["runs"][key][name] = "other"
        path.write_text(json.dumps(whole))
        assert run(options, ["aligne"], ["nearest"]).done == 1
        assert DECIDERS_STORE.at(options.output).records()[key][name] != "other"


def test_what_is_finished_is_kept_when_another_cell_fails(options):
    (options.work / "sea_quick_1.safetensors").write_text("{}")
    outcome = run(options, ["sea", "aligne"], ["nearest"])
    assert list(outcome.failed) == ["sea quick 1 nearest"]
    assert "sea_quick_1.safetensors" in outcome.failed["sea quick 1 nearest"]
    assert list(DECIDERS_STORE.at(options.output).records()) == ["aligne quick 1 nearest"]


def test_the_agent_is_trained_once_for_all_vectors(options, monkeypatch):
    trained, train = [], workspace.train_agent

    def counted(pair, **more):
        trained.append(pair.name)
        return train(pair, **more)

    monkeypatch.setattr(workspace, "train_agent", counted)
    run(options, ["aligne", "mtranse"], ["rlea"])
    runs = DECIDERS_STORE.at(options.output).records()
    stages = {key: record["result"]["seconds_by_stage"] for key, record in runs.items()}
    assert stages["aligne quick 1 rlea"]["training"] == stages["mtranse quick 1 rlea"]["training"] > 0
    for key, record in runs.items():
        assert record["result"]["seconds"] == stages[key]["deciding"]
        assert stages[key]["choosing"] > 0
        assert 0 <= record["result"]["ece"] <= 1
        assert len(record["agent"]["history"]) > 1  # what was tried on validation links
    # With targets gone the same agent serves again, and links may be cut.
    run(options, ["aligne"], ["hungarian", "rlea"], dangling=0.25)
    assert trained == ["quick"]
    pair = Workspace(options).pair("quick", "1")
    left = len(pair.test) - round(0.25 * len(pair.test))
    result = DECIDERS_STORE.at(options.output).records()["aligne quick 1 rlea test-25%"]["result"]
    assert (result["sources"], result["targets"], result["gold"]) == (len(pair.test), left, left)
    assert result["matched"] <= result["uncut"]["matched"]


def test_the_dangling_share_is_the_same_every_time_and_takes_targets_only(options):
    test = Workspace(options).pair("quick", "1").test
    links, taken = choose_dangling(test, 0.25)
    assert len(taken) == round(0.25 * len(test)) > 0
    assert choose_dangling(test, 0.25)[1] == taken
    assert not np.isin(links.target_ids, taken).any()
    assert len(links) + len(taken) == len(test)
    assert len(choose_dangling(test, 0.0)[0]) == len(test)


def test_links_are_cut_where_expected_f1_is_greatest():
    confidences = np.array([0.1, 0.9, 0.8, 0.05, 0.6])
    cut = keep_worthwhile(Matching.of(range(5), range(5), confidences), 3)
    ordered = sorted(confidences, reverse=True)
    expected = [2 * sum(ordered[:n]) / (n + 3) for n in range(1, 6)]
    assert len(cut) == 1 + expected.index(max(expected)) == 3
    assert sorted(cut.confidences, reverse=True) == ordered[:3]
    assert len(keep_worthwhile(Matching.of([], [], []), 3)) == 0


def test_the_commit_knows_that_results_are_no_change_of_the_program(monkeypatch):
    asked = []

    def git(folder, *words):
        asked.append(words)
        return "0123456789ab" if words[0] == "rev-parse" else " M src/x.py" * is_changed

    monkeypatch.setattr(run_record, "_git", git)
    for is_changed in (True, False):
        assert run_record.commit() in ("", "0123456789ab" + "+" * is_changed)
    assert not asked or {":(top,exclude)results", ":(top,exclude)docs"} <= set(asked[-1])


def test_the_100k_data_sets_run_where_they_are(tmp_path):
    (tmp_path / "D_W_100K_V1").mkdir()
    grids = scale.grids(Workspace(Options(data=tmp_path, output=tmp_path / "out", sizes=(1000,))))
    assert [one.store.path.name for one in grids] == ["scale", "deciders"]
    assert {cell.result["pair"] for cell in grids[1].cells} == {"D_W_100K"}
    assert len(grids[1].cells) == 8
    (alone,) = scale.grids(Workspace(Options(output=tmp_path / "out", sizes=(1000,))))
    assert {cell.result["entities"] for cell in alone.cells} == {1000}


@pytest.mark.parametrize("found", [False, True])
def test_the_table_of_100k_stands_beside_the_paper(found):
    result = {"model": "sea", "pair": "D_W_100K", "fold": "1", "pool": "test"}
    own = [result | {"decider": "rlea", "hits@1": 0.5}, result | {"decider": "paper", "hits@1": 0.25}]
    shown = (
        "| D-W | SEA | -<br>paper .291 | -<br>paper .293 | .250<br>paper .338 | .500 |" if found else "not available"
    )
    assert shown in scale.table_3({"scale": [], "deciders": own if found else []})
