"""Own PARIS beside the published figures: what it is judged by, when it is run again, and where it is not run."""

from dataclasses import replace

import numpy as np
import pytest

from rlea.experiments import EXPERIMENTS, conventional, results_of
from rlea.experiments.conventional import OWN_PARIS, paris_cell
from rlea.experiments.grid import run_grids
from rlea.experiments.options import Options
from rlea.experiments.workspace import Workspace
from rlea.graph import Links, Literals
from rlea.progress import silent

NOTHING = Literals(np.zeros(0, np.int32), np.zeros(0, np.int32), (), (), ())


@pytest.fixture
def workspace(tmp_path):
    return Workspace(Options(work=tmp_path, output=tmp_path / "results", deciders=("paris",), quick=True))


def put(workspace, **changes):
    """The quick pair with something changed."""
    workspace._kept["pair"] = (("quick", "1"), replace(workspace.pair("quick", "1"), **changes))


def kept(workspace):
    records = EXPERIMENTS["conventional"].records(workspace.options.output)
    return records["paris"][0], results_of(records)


def test_paris_is_run_once_and_its_figures_are_shown(workspace):
    grids = conventional.grids(workspace)
    outcome = run_grids(grids)
    assert (outcome.done, outcome.failed) == (1, {})
    record, results = kept(workspace)
    result, pair = record["result"], workspace.pair("quick", "1")
    assert result["gold"] == len(pair.train) + len(pair.valid) + len(pair.test)
    assert result["f1"] > 0.9  # the planted alignment, found without a seed
    assert record["command"] == "rlea reproduce conventional --quick --deciders paris"
    assert result["iterations"] == len(record["by_iteration"])
    row = next(line for line in conventional.table(results).splitlines() if OWN_PARIS in line)
    shown = [f"{result[name]:.3f}".removeprefix("0") for name in ("precision", "recall", "f1")]
    assert row.endswith(f"| {' / '.join(shown)} |")
    assert OWN_PARIS in conventional.pictures(results)["conventional"]
    assert run_grids(grids).there == 1


def test_the_fold_changes_nothing_and_gold_is_only_for_judging(workspace):
    cell, pair = paris_cell(workspace, "quick"), workspace.pair("quick", "1")
    wanted, found = cell.wanted(silent), cell.run(silent)
    put(workspace, train=pair.test, valid=Links.empty(), test=Links.union([pair.valid, pair.train]))
    again = cell.run(silent)
    assert cell.wanted(silent) == wanted
    ours, theirs = (
        {key: value for key, value in one["result"].items() if key not in ("seconds", "peak_memory_mb")}
        for one in (found, again)
    )
    assert ours == theirs
    mixed = np.random.default_rng(0).permutation(pair.test.target_ids)
    put(workspace, train=Links.of(pair.test.source_ids, mixed), valid=Links.empty(), test=Links.empty())
    wrong = cell.run(silent)
    assert wrong["by_iteration"] == found["by_iteration"]
    assert wrong["result"]["f1"] < 0.1 < found["result"]["f1"]


@pytest.mark.parametrize("sides", [("target",), ("source", "target")])
def test_without_literals_there_is_a_note_and_no_figure(workspace, sides):
    pair = workspace.pair("quick", "1")
    put(workspace, **{side: replace(getattr(pair, side), literals=NOTHING) for side in sides})
    grids = conventional.grids(workspace)
    assert run_grids(grids).failed == {}
    record, results = kept(workspace)
    note = f"no attribute triples of the {' and the '.join(sides)} graph in the data at hand"
    assert (record["result"]["f1"], record["result"]["note"]) == (None, note)
    assert OWN_PARIS not in conventional.table(results)
    assert f"not run on quick ({note})" in conventional.remarks(results)
    assert not conventional.is_shown(record["result"])
    # Once the attribute triples are there, it is run.
    put(workspace, source=pair.source, target=pair.target)
    assert run_grids(grids).done == 1
    assert OWN_PARIS in conventional.table(kept(workspace)[1])


def test_figures_stand_beside_the_published():
    own = {"aligner": "paris", "pair": "EN_FR", "precision": 1.0, "recall": 0.5, "f1": 0.95, "seconds": 12.34}
    missing = [{"aligner": "paris", "pair": pair, "f1": None, "note": "nothing there"} for pair in ("EN_DE", "D_Y")]
    results = {"deciders": [], "paris": [own, *missing]}
    assert f"| {OWN_PARIS} | 1.000 / .500 / .950 | - | - | - |" in conventional.table(results)
    text = conventional.remarks(results)
    assert "above PARIS as published: EN-FR +4.7 (12.3 s)." in text  # .903 there
    assert "was not run on EN-DE, D-Y (nothing there)." in text
