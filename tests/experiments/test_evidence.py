"""All evidence as an experiment: its cells, what a run may see, what is kept, and the tables."""

import json
import re

import pytest

from rlea.errors import InputError
from rlea.evidence import CHANNELS
from rlea.experiments import evidence
from rlea.experiments.desk import Desk, Options
from rlea.experiments.evidence import ALL, BEGINNINGS, COLUMNS, NO_FOLD, NO_SEEDS, SEEDS, VARIANTS
from rlea.experiments.grid import results_of, run_grids


@pytest.fixture(scope="module")
def options(tmp_path_factory):
    folder = tmp_path_factory.mktemp("evidence")
    return Options(
        work=folder / "work", output=folder / "out", quick=True, models=(NO_SEEDS,), deciders=(ALL, "no-names")
    )


@pytest.fixture(scope="module")
def outcome(options):
    """Two cells, run once."""
    return run_grids(evidence.grids(Desk(options)))


@pytest.fixture(scope="module")
def results(options, outcome):
    return results_of(evidence.grids(Desk(options)))


def cells(**more):
    (grid,) = evidence.grids(Desk(Options(**more)))
    return [tuple(cell.result.values()) for cell in grid.cells]


def test_cells_are_beginnings_by_what_is_left_out():
    assert cells(quick=True) == [
        ("quick", beginning, "1" if beginning == SEEDS else NO_FOLD, variant)
        for beginning in BEGINNINGS
        for variant in VARIANTS
    ]
    assert ("all", *(f"no-{name}" for name in CHANNELS)) == VARIANTS


def test_folds_are_for_seeds_only():
    found = cells(pairs=("EN_FR",), folds=("1", "2"), deciders=(ALL,))
    assert [row[1:3] for row in found] == [(SEEDS, "1"), (SEEDS, "2"), (NO_SEEDS, NO_FOLD)]


def test_attributes_are_left_out_only_where_there_are_such(tmp_path, monkeypatch):
    """Where the data is not at hand nobody can tell; where one graph has no literals there is nothing to leave out."""
    assert "no-attributes" not in {row[-1] for row in cells(pairs=("EN_FR",), data=tmp_path)}
    from rlea.masking import hide

    read = Desk.pair
    monkeypatch.setattr(Desk, "pair", lambda *arguments: hide(read(*arguments), "attributes"))
    assert {row[-1] for row in cells(quick=True)} == set(VARIANTS) - {"no-attributes"}


@pytest.mark.parametrize(
    ("more", "words"),
    [({"models": ("seed",)}, "unknown beginning 'seed'"), ({"deciders": ("no-name",)}, "unknown variant 'no-name'")],
)
def test_unknown_cells_are_refused(more, words):
    with pytest.raises(InputError, match=f"{words} in this experiment; did you mean {words.split(chr(39))[1]}s"):
        cells(quick=True, **more)


def test_without_seeds_no_link_is_known_and_all_are_judged(options):
    shelf = evidence._Shelf(Desk(options))
    whole = Desk(options).pair("quick", "1")
    pair, gold = shelf.pair("quick", NO_SEEDS, NO_FOLD)
    assert len(pair.train) == len(pair.valid) == len(pair.test) == 0
    assert len(gold) == len(whole.train) + len(whole.valid) + len(whole.test) == 200
    seen, judged = shelf.pair("quick", SEEDS, "1")
    assert seen.fingerprint == whole.fingerprint
    assert len(judged) == len(whole.test)


def test_cells_are_run_once(options, outcome):
    assert (outcome.done, outcome.there, outcome.failed) == (2, 0, {})
    again = run_grids(evidence.grids(Desk(options)))
    assert (again.done, again.there) == (0, 2)


@pytest.mark.parametrize("key", ["code", "fingerprint", "settings", "gold", "seed"])
def test_a_record_of_something_else_is_not_taken_for_this(key, options, outcome):
    (grid,) = evidence.grids(Desk(options))
    record = json.loads(grid.store.file.read_text())["runs"]["quick no-seeds - all"]
    from rlea.experiments.grid import is_finished
    from rlea.progress import silent

    wanted = grid.cells[0].wanted(silent)
    assert is_finished(record, wanted)
    assert not is_finished(record | {key: "other"}, wanted)


def test_what_a_record_says(results):
    runs = results["evidence"]
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
    assert "name" not in runs["quick no-seeds - no-names"]["beginning_of_run"]["witnesses"]


def test_rows_of_the_file(options, outcome):
    lines = (options.output / "evidence.csv").read_text().splitlines()
    assert lines[0] == ",".join(COLUMNS)
    assert len(lines) == 3
    assert lines[1].startswith("quick,no-seeds,-,all,")


def test_tables_remarks_and_picture(results):
    text = evidence.table(results)
    first, second = text.split("\n\n")
    f1 = {run["result"]["variant"]: run["result"]["f1"] for run in results["evidence"].values()}
    assert first.splitlines()[0].startswith("|  | begins with | runs | precision | recall | F1 |")
    assert first.splitlines()[2].startswith("| quick | no-seeds | 1 | ")
    assert re.search(rf"\| {f'{f1[ALL]:.3f}'.lstrip('0')}", first)
    assert second.splitlines()[0].endswith("| " + " | ".join(f"without {name}" for name in CHANNELS) + " |")
    shown = [cell.strip() for cell in second.splitlines()[2].strip("|").split("|")]
    assert shown[:2] == ["quick", "no-seeds"]
    assert shown[3] == shown[5] == shown[6] == shown[7] == "-"  # not run
    assert shown[2] != "-"
    assert shown[4] != "-"
    assert "--abstain" in evidence.remarks(results)
    assert "quick no-seeds" in evidence.remarks(results)
    assert evidence.remarks({"evidence": {}}) == ""
    assert evidence.pictures(results)["evidence"].startswith("<svg ")
    assert evidence.has_any(results)
    assert not evidence.has_any({"evidence": {}})


def test_published_figures_stand_beside_runs_without_seeds_only(results):
    (record,) = [run for key, run in results["evidence"].items() if key.endswith("all")]
    kept = {
        beginning: record | {"result": record["result"] | {"pair": "EN_FR", "beginning": beginning}}
        for beginning in BEGINNINGS
    }
    rows = {row.split(" | ")[1]: row for row in evidence.table({"evidence": kept}).split("\n\n")[0].splitlines()[2:]}
    assert re.search(r"\| \.\d{3} \|$", rows[NO_SEEDS])
    assert re.search(r"\|  \|$", rows[SEEDS])
