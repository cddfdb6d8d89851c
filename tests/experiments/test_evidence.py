"""All evidence as an experiment: its cells, what a run may see, what is kept, and the tables."""

import re

import pytest

from rlea.errors import InputError
from rlea.experiments import EXPERIMENTS, evidence, results_of
from rlea.experiments.evidence import ALL, BEGINNINGS, CHANNELS, NO_FOLD, NO_SEEDS, SEEDS, VARIANTS, seen_and_judged
from rlea.experiments.grid import is_finished, run_grids
from rlea.experiments.options import Options
from rlea.experiments.workspace import Workspace
from rlea.graph.masking import hide
from rlea.progress import silent


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    """In it two cells were run."""
    folder = tmp_path_factory.mktemp("evidence")
    asked = {"models": (NO_SEEDS,), "deciders": (ALL, "no-names")}
    workspace = Workspace(Options(work=folder / "work", output=folder / "out", quick=True, **asked))
    outcome = run_grids(evidence.grids(workspace))
    assert (outcome.done, outcome.there, outcome.failed) == (2, 0, {})
    return workspace


@pytest.fixture(scope="module")
def results(workspace):
    return results_of(EXPERIMENTS["evidence"].records(workspace.options.output))


def cells(**more):
    (grid,) = evidence.grids(Workspace(Options(**more)))
    return [tuple(cell.result.values()) for cell in grid.cells]


def test_cells_are_beginnings_by_what_is_left_out():
    assert cells(quick=True) == [
        ("quick", beginning, "1" if beginning == SEEDS else NO_FOLD, variant)
        for beginning in BEGINNINGS
        for variant in VARIANTS
    ]
    assert ("all", *(f"no-{name}" for name in CHANNELS)) == VARIANTS
    found = cells(pairs=("EN_FR",), folds=("1", "2"), deciders=(ALL,))
    assert [row[1:3] for row in found] == [(SEEDS, "1"), (SEEDS, "2"), (NO_SEEDS, NO_FOLD)]


def test_attributes_are_left_out_only_where_there_are_such(tmp_path, monkeypatch):
    """Where the data is not at hand nobody can tell; where one graph has no literals there is nothing to leave out."""
    assert "no-attributes" not in {row[-1] for row in cells(pairs=("EN_FR",), data=tmp_path)}
    read = Workspace.pair
    monkeypatch.setattr(Workspace, "pair", lambda *arguments: hide(read(*arguments), "attributes"))
    assert {row[-1] for row in cells(quick=True)} == set(VARIANTS) - {"no-attributes"}


def test_unknown_cells_are_refused():
    with pytest.raises(InputError, match="unknown beginning 'seed' in this experiment; did you mean seeds"):
        cells(quick=True, models=("seed",))
    with pytest.raises(InputError, match="unknown variant 'no-name' in this experiment; did you mean no-names"):
        cells(quick=True, deciders=("no-name",))


def test_without_seeds_no_link_is_known_and_all_are_judged(workspace):
    whole = workspace.pair("quick", "1")
    pair, gold = seen_and_judged(workspace, "quick", NO_SEEDS, NO_FOLD)
    assert len(pair.train) == len(pair.valid) == len(pair.test) == 0
    assert len(gold) == len(whole.train) + len(whole.valid) + len(whole.test) == 200
    seen, judged = seen_and_judged(workspace, "quick", SEEDS, "1")
    assert seen.fingerprint == whole.fingerprint
    assert len(judged) == len(whole.test)


def test_cells_are_run_once_unless_something_has_changed(workspace):
    (grid,) = evidence.grids(workspace)
    assert run_grids([grid]).there == 2
    record, wanted = grid.store.records()["quick no-seeds - all"], grid.cells[0].wanted(silent)
    assert is_finished(record, wanted)
    for key in ("code", "fingerprint", "settings", "gold", "seed"):
        assert not is_finished(record | {key: "other"}, wanted)


def test_what_a_record_says(workspace):
    (grid,) = evidence.grids(workspace)
    runs = grid.store.records()
    assert list(runs) == ["quick no-seeds - all", "quick no-seeds - no-names"]
    for record in runs.values():
        one = record["result"]
        assert one["matched"] + one["abstained"] == 200
        assert 0 <= one["ece"] <= 1
        assert one["worthwhile"]["abstained"] >= one["abstained"]
        assert one["seconds"] >= one["seconds_of_channels"] > 0
        assert one["entities_pool"] == "all"
        assert record["beginning_of_run"]["seeds"] == 0
        assert record["command"] == "rlea reproduce evidence --quick"
    assert runs["quick no-seeds - all"]["result"]["f1"] > 0.9
    assert set(runs["quick no-seeds - no-names"]["settings"]["channels"]) == set(CHANNELS) - {"names"}
    assert "name" not in runs["quick no-seeds - no-names"]["beginning_of_run"]["mutual_best"]
    lines = grid.store.lines.read_text().splitlines()
    assert lines[0] == ",".join(grid.store.columns)
    assert lines[1].startswith("quick,no-seeds,-,all,")


def test_tables_remarks_and_picture(results):
    first, second = evidence.table(results).split("\n\n")
    f1 = {one["variant"]: one["f1"] for one in results["evidence"]}
    assert first.splitlines()[0].startswith("|  | begins with | runs | precision | recall | F1 |")
    assert first.splitlines()[2].startswith("| quick | no-seeds | 1 | ")
    assert re.search(rf"\| {f'{f1[ALL]:.3f}'.lstrip('0')}", first)
    assert second.splitlines()[0].endswith("| " + " | ".join(f"without {name}" for name in CHANNELS) + " |")
    shown = [cell.strip() for cell in second.splitlines()[2].strip("|").split("|")]
    assert shown[:2] == ["quick", "no-seeds"]
    assert [cell != "-" for cell in shown[2:]] == [variant in f1 for variant in VARIANTS]
    assert "quick no-seeds" in evidence.remarks(results)
    assert evidence.remarks({"evidence": []}) == ""
    assert evidence.pictures(results)["evidence"].startswith("<svg ")


def test_published_figures_stand_beside_runs_without_seeds_only(results):
    whole = [{**results["evidence"][0], "pair": "EN_FR", "beginning": beginning} for beginning in BEGINNINGS]
    table = evidence.table({"evidence": whole}).split("\n\n")[0]
    rows = {row.split(" | ")[1]: row for row in table.splitlines()[2:]}
    assert re.search(r"\| \.\d{3} \|$", rows[NO_SEEDS])
    assert re.search(r"\|  \|$", rows[SEEDS])
