"""Every experiment by its command, on the quick pair: cells, table, picture, page; and nothing is run twice."""

import contextlib
import csv
import io
import json
import shutil
import sys
from dataclasses import replace

import numpy as np
import pytest

from rlea.experiments import EXPERIMENTS
from rlea.experiments.deciding import DECIDERS_STORE, decide
from rlea.experiments.options import Options
from rlea.experiments.workspace import Inputs, Workspace
from rlea.graph import Links
from rlea.io.readers.vectors import read_embeddings
from rlea.io.writers.vectors import write_embeddings
from rlea.matching import Task
from rlea.progress import silent

# Where a part of the cells shows that all work.
PARTS = {"evidence": ("--deciders", "all,no-names")}
# Cells of a quick run: models x deciders (and PARIS once), numbers of candidates, variants, stages x sizes, beginnings
# x shares; of those in PARTS.
CELLS = {
    "main": 40, "candidates": 4, "ablation": 3, "bootea": 9, "conventional": 5, "scale": 14, "evidence": 4,
    "dangling": 3, "overlap": 16,
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("reproduce")


@pytest.fixture(scope="module")
def reproduce(folder):
    """Run an experiment in the folder that all tests here share; what it says as JSON."""
    from rlea import cli

    def run(name, *more):
        printed = io.StringIO()
        before = sys.argv
        sys.argv = ["rlea", "reproduce", name, "--quick", "--work", str(folder), "--json", *more]
        try:
            with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
                cli.main()
        finally:
            sys.argv = before
        return json.loads(printed.getvalue())

    return run


@pytest.fixture(scope="module")
def main_run(reproduce):
    """The whole of `main`, once."""
    return reproduce("main")


def rows_of(folder, name="deciders"):
    with (folder / "quick" / "results" / f"{name}.csv").open() as file:
        return list(csv.DictReader(file))


def test_main_is_whole(main_run, folder):
    assert (main_run["done"], main_run["there"], main_run["failed"]) == (CELLS["main"], 0, {})
    rows, results = rows_of(folder), folder / "quick" / "results"
    assert tuple(rows[0]) == DECIDERS_STORE.at(results).columns
    hits = {(row["model"], row["decider"]): float(row["hits@1"]) for row in rows}
    assert len(hits) == CELLS["main"] == len(rows)
    runs = json.loads((results / "deciders.json").read_text())["runs"].values()
    assert len({run["fingerprint"] for run in runs}) == 1
    for model in ("mtranse", "jape", "sea", "rsn", "rdgcn"):
        # The planted alignment of the quick pair is there to be found by who looks at neighbours.
        assert min(hits[model, "rlea"], hits[model, "best-first"]) > 0.95
        assert hits[model, "rlea"] >= hits[model, "nearest"]
        # All deciders had the same vectors and candidates.
        assert (
            len({(run["vectors"], run["result"]["coverage"]) for run in runs if run["result"]["model"] == model}) == 1
        )
    table = (results / "main.md").read_text()
    assert table.count("\n| ") == 1 + 5
    assert "\n| RDGCN | 1 |" in table
    assert (results / "main.svg").read_text().startswith("<svg ")
    assert {str(results / name) for name in ("main.md", "main.svg", "deciders.csv")} <= set(main_run["written"])


def test_nothing_is_run_twice(main_run, reproduce, folder):
    before = (folder / "quick" / "results" / "deciders.json").read_bytes()
    again = reproduce("main")
    assert (again["done"], again["there"]) == (0, CELLS["main"])
    assert (folder / "quick" / "results" / "deciders.json").read_bytes() == before


def test_other_vectors_make_the_cells_of_their_model_run_again(main_run, reproduce, folder, tmp_path):
    """Vectors put there by hand are used as they are, and give other cells."""
    path, results = folder / "quick" / "sea_quick_1.safetensors", folder / "quick" / "results"
    for file in (path, path.with_suffix(".made.json"), results / "deciders.json", results / "deciders.csv"):
        shutil.copy2(file, tmp_path)
    pair = Workspace(Options(quick=True)).pair("quick", "1")
    vectors = read_embeddings(path, pair.source, pair.target)
    vectors.source[:] = np.random.default_rng(0).standard_normal(vectors.source.shape)
    write_embeddings(path, vectors, pair.source, pair.target)
    path.with_suffix(".made.json").unlink()
    again = reproduce("main", "--deciders", "nearest,csls")
    assert (again["done"], again["there"]) == (2, 8)
    hits = {(row["model"], row["decider"]): float(row["hits@1"]) for row in rows_of(folder)}
    assert hits["sea", "nearest"] < 0.05
    for file in tmp_path.iterdir():
        shutil.copy2(file, results if file.name.startswith("deciders") else path.parent)
    assert reproduce("main", "--deciders", "nearest,csls")["there"] == 10


def test_vectors_made_with_other_code_are_made_again(main_run, folder):
    def made():
        inputs = Inputs(Workspace(Options(work=folder / "quick", quick=True)), "mtranse", "quick", "1")
        path = inputs.vectors_file(silent)
        return path, path.stat().st_mtime_ns, inputs.workspace.digest(path)

    path, before, digest = made()
    assert made() == (path, before, digest)
    note = path.with_suffix(".made.json")
    note.write_text(note.read_text().replace('"code": "', '"code": "other'))
    _, after, again = made()
    assert after > before
    assert again == digest  # the same seed, the same bytes


SLOW = {"evidence", "overlap"}  # cells of these are run by test_evidence.py and test_overlap.py, too


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in EXPERIMENTS if name != "main"],
)
def test_the_other_experiments(main_run, reproduce, folder, name):
    part = PARTS.get(name, ())
    first = reproduce(name, *part)
    assert first["failed"] == {}
    # Cells that another experiment has run are there.
    assert first["done"] + first["there"] == CELLS[name]
    assert reproduce(name, *part) == first | {"done": 0, "there": CELLS[name]}
    folder = folder / "quick" / "results"
    assert (folder / f"{name}.md").read_text().startswith("| ")
    assert (folder / f"{name}.md").read_text().count("\n") > 2
    assert (folder / f"{name}.svg").read_text().startswith("<svg ")


def test_what_the_others_found(main_run, reproduce, folder):
    for name in ("candidates", "bootea", "dangling", "scale"):
        reproduce(name)
    hits = {(row["decider"], row["candidates"]): float(row["hits@1"]) for row in rows_of(folder, "candidates")}
    assert set(hits) == {(decider, number) for decider in ("paper", "rlea") for number in ("1", "5")}
    assert min(hits["rlea", "1"], hits["rlea", "5"]) > 0.95
    (joint,) = rows_of(folder, "joint")
    assert float(joint["hits@1"]) > 0.95
    dangling = {row["decider"]: row for row in rows_of(folder) if row["pool"] == "test-25%"}
    assert set(dangling) == {"hungarian", "best-first", "rlea"}
    assert float(dangling["rlea"]["f1"]) > 0.9
    assert float(dangling["rlea"]["f1"]) > float(dangling["hungarian"]["f1"])
    stages = rows_of(folder, "scale")
    assert {row["entities"] for row in stages} == {"300", "600"}
    assert all(float(row["seconds"]) >= 0 for row in stages)  # a stage may take less than is printed
    assert all(float(row["hits@1"]) > 0.9 for row in stages if row["stage"] == "deciding: rlea")


def test_the_page_of_a_reproduction(main_run, reproduce, folder, run_cli):
    reproduce("conventional")
    folder = folder / "quick" / "results"
    done = run_cli("report", folder, "--output", folder / "page.html")
    assert done.code == 0, done.err
    page = (folder / "page.html").read_text()
    assert "Table 1 of the paper" in page
    assert "PARIS, published" in page
    assert page.count('src="data:image/svg+xml;base64,') >= 2
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "https://" not in page


def test_lines_and_tables_for_people(main_run, folder, run_cli):
    done = run_cli("reproduce", "main", "--quick", "--work", folder, "--models", "sea", "--deciders", "nearest,seq")
    assert done.code == 0
    assert "[1/2]  sea quick 1 nearest  there  Hits@1" in done.err
    assert "0 cells run, 2 there before, 0 failed." in done.out
    quiet = run_cli("reproduce", "main", "--quick", "--work", folder, "--models", "sea", "--deciders", "seq", "--quiet")
    assert quiet.err == ""


def test_experiments_are_listed(run_cli):
    listed = json.loads(run_cli("experiments", "--json").out)
    assert list(listed) == list(EXPERIMENTS) == list(CELLS)
    shown = run_cli("experiments").out
    assert all(name in shown for name in EXPERIMENTS)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["mian", "--quick"], "did you mean main"),
        (["main"], "--data is not given"),
        (["main", "--data", "gone"], "gone"),
        (["main", "--quick", "--models", "see"], "did you mean sea"),
        (["main", "--quick", "--deciders", "nearst"], "did you mean nearest"),
        (["main", "--quick", "--folds", "x"], "--folds"),
        (["main", "--quick", "--folds", "1-2"], "--folds means nothing with --quick"),
        (["main", "--quick", "--data", "."], "--data means nothing with --quick"),
        (["main", "--quick", "--sizes", "1000"], "--sizes means nothing here"),
        (["conventional", "--quick", "--models", "sea"], "unknown model 'sea' in this experiment"),
        (["conventional", "--quick", "--deciders", "seq"], "unknown decider 'seq' in this experiment"),
        (["scale", "--data", "gone"], "is no folder"),
        (["scale", "--folds", "2"], "100K"),
        (["scale", "--sizes", "1"], "--sizes has '1'"),
        (["main", "--quick", "--device", "gpu"], "unknown device"),
        (["main", "--data", ".", "--pairs", "EN_RF"], "did you mean EN_FR"),
        (["ablation", "--quick", "--deciders", "paper"], "--deciders means nothing here"),
        (["bootea", "--quick", "--models", "bootea", "--deciders", "joint"], "not trained jointly"),
    ],
)
def test_mistakes_are_answered(arguments, words, run_cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run_cli("reproduce", *arguments)
    assert done.code == 2
    assert words in " ".join((done.err + done.out).split())
    assert list(tmp_path.iterdir()) == []


def test_the_view_of_a_grid_on_a_terminal():
    from rich.console import Console

    from rlea.experiments.grid import Cell
    from rlea.experiments.grid_view import Bars

    names = [{"model": m, "pair": p, "decider": d} for m in ("sea", "rsn") for p in ("D_W", "D_Y") for d in "ab"]
    bars = Bars()
    bars.start([Cell(one, dict, dict, "") for one in names])
    bars.tell(0, "at work")
    bars.report("training", 3, 10, "loss 1")
    bars.tell(0, "done", {"result": {"hits@1": 0.5, "seconds": 2.0}})
    bars.tell(1, "failed", reason="no such file")
    bars.tell(2, "at work")
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(bars.view())
    text = console.export_text()
    assert "2 of 8 cells" in text
    assert "2/2" in text
    assert text.count("0/2") == 3
    assert "sea D_W a  Hits@1 0.5000  2.00 s" in text
    assert "sea D_W b  no such file" in text


def test_no_decider_is_given_a_test_link(folder, main_run):
    """With the test links shuffled among themselves every decider decides as before."""
    decided = []
    for shuffled in (False, True):
        inputs = Inputs(Workspace(Options(work=folder / "quick", quick=True)), "sea", "quick", "1")
        pair = inputs.pair
        if shuffled:
            mixed = np.random.default_rng(0).permutation(pair.test.target_ids)
            changed = replace(pair, test=Links.of(pair.test.source_ids, mixed))
            inputs.workspace._kept["pair"] = (("quick", "1"), changed)
        found, _ = inputs.candidates(10, silent)
        task = Task(pair.source, pair.target, pair.train, found, 0)
        for name in ("paper", "rlea"):
            links, _, _ = decide(inputs, name, task, silent)
            decided.append((links.source_ids.tolist(), links.target_ids.tolist()))
    assert decided[:2] == decided[2:]
