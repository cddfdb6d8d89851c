"""Own PARIS beside the published figures: what it is judged by, when it is run again, and where it is not run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rlea.experiments import conventional
from rlea.experiments.conventional import OWN_PARIS, ParisCase
from rlea.experiments.desk import Desk, Options
from rlea.experiments.grid import results_of, run_grids
from rlea.graph import Links, Literals
from rlea.progress import silent

NOTHING = Literals(np.zeros(0, np.int32), np.zeros(0, np.int32), (), (), ())


@pytest.fixture
def desk(tmp_path):
    return Desk(Options(work=tmp_path, output=tmp_path / "results", deciders=("paris",), quick=True))


def put(desk, **changes):
    """The quick pair with something changed."""
    desk._pair = (("quick", "1"), replace(desk.pair("quick", "1"), **changes))


def test_paris_is_run_once_and_its_figures_are_shown(desk):
    grids = conventional.grids(desk)
    outcome = run_grids(grids)
    assert (outcome.done, outcome.failed) == (1, {})
    (record,) = grids[1].store.records().values()
    result, pair = record["result"], desk.pair("quick", "1")
    assert result["gold"] == len(pair.train) + len(pair.valid) + len(pair.test)
    assert result["f1"] > 0.9  # the planted alignment, found without a seed
    assert result["seconds"] > 0
    assert record["command"] == "rlea reproduce conventional --quick --deciders paris"
    assert result["iterations"] == len(record["by_iteration"])
    results = results_of(grids)
    row = next(line for line in conventional.table(results).splitlines() if OWN_PARIS in line)
    shown = [f"{result[name]:.3f}".removeprefix("0") for name in ("precision", "recall", "f1")]
    assert row.endswith(f"| {' / '.join(shown)} |")
    assert conventional.has_any(results)
    assert OWN_PARIS in conventional.pictures(results)["conventional"]
    assert run_grids(grids).there == 1
    assert "precision,recall,f1" in (desk.options.output / "paris.csv").read_text().splitlines()[0]


def test_the_fold_changes_nothing_and_gold_is_only_for_judging(desk):
    case, pair = ParisCase(desk, "quick"), desk.pair("quick", "1")
    wanted, found = case.wanted(silent), case.run(silent)
    put(desk, train=pair.test, valid=Links.empty(), test=Links.union([pair.valid, pair.train]))
    again = case.run(silent)
    assert case.wanted(silent) == wanted
    ours, theirs = (
        {key: value for key, value in one["result"].items() if key not in ("seconds", "peak_memory_mb")}
        for one in (found, again)
    )
    assert ours == theirs
    mixed = np.random.default_rng(0).permutation(pair.test.target_ids)
    put(desk, train=Links.of(pair.test.source_ids, mixed), valid=Links.empty(), test=Links.empty())
    wrong = case.run(silent)
    assert wrong["by_iteration"] == found["by_iteration"]
    assert wrong["result"]["f1"] < 0.1 < found["result"]["f1"]


@pytest.mark.parametrize("sides", [("target",), ("source",), ("source", "target")])
def test_without_literals_there_is_a_note_and_no_figure(desk, sides):
    pair = desk.pair("quick", "1")
    put(desk, **{side: replace(getattr(pair, side), literals=NOTHING) for side in sides})
    grids = conventional.grids(desk)
    assert run_grids(grids).failed == {}
    (record,) = grids[1].store.records().values()
    assert record["result"]["f1"] is None
    assert (
        record["result"]["note"] == f"no attribute triples of the {' and the '.join(sides)} graph in the data at hand"
    )
    results = results_of(grids)
    assert OWN_PARIS not in conventional.table(results)
    assert f"not run on quick ({record['result']['note']})" in conventional.remarks(results)
    assert not conventional.has_any(results)
    assert not conventional.shows(record["result"])
    assert run_grids(grids).there == 1
    # Once the attribute triples are there, it is run.
    put(desk, source=pair.source, target=pair.target)
    assert run_grids(grids).done == 1
    assert OWN_PARIS in conventional.table(results_of(grids))


def test_figures_stand_beside_the_published():
    def run(pair, f1, **more):
        return {"result": {"aligner": "paris", "pair": pair, "precision": 1.0, "recall": 0.5, "f1": f1, **more}}

    runs = {
        "paris EN_FR": run("EN_FR", 0.95, seconds=12.34),
        "paris EN_DE": {"result": {"aligner": "paris", "pair": "EN_DE", "f1": None, "note": "nothing there"}},
        "paris D_Y": {"result": {"aligner": "paris", "pair": "D_Y", "f1": None, "note": "nothing there"}},
    }
    results = {"deciders": {}, "paris": runs}
    assert f"| {OWN_PARIS} | 1.000 / .500 / .950 | - | - | - |" in conventional.table(results)
    text = conventional.remarks(results)
    assert "above PARIS as published: EN-FR +4.7 (12.3 s)." in text  # .903 there
    assert "is not run on EN-DE, D-Y (nothing there)." in text
    assert conventional.remarks({"deciders": {}}) == ""
