"""Cells are run once, kept whole, and run again only when something they depend on has changed."""

import csv
import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlea.errors import InputError
from rlea.experiments.grid import Cell, Grid, Watch, is_finished, run_grids
from rlea.experiments.store import Store


def store_at(folder):
    return Store(folder / "cells", ("name", "pool"), ("hits@1", "seconds"), {"name": ("b", "a")})


def make_cells(names, ran, settings="as ever", fail=(), stop=()):
    def cell(name):
        def run(progress):
            if name in stop:
                raise KeyboardInterrupt
            if name in fail:
                raise InputError("is missing", path=name, remedy="bring it")
            ran.append(name)
            return {"result": {"hits@1": 0.25, "seconds": 1.5}, "more": 7}

        names_of = {"name": name, "pool": "test"}
        return Cell(names_of, lambda progress: {"settings": settings, "seed": 0}, run, f"make {name}")

    return [cell(name) for name in names]


def run(folder, *arguments, **options):
    return run_grids([Grid(store_at(folder), make_cells(*arguments, **options))])


def test_what_is_there_is_not_run_again(tmp_path):
    ran = []
    first = run(tmp_path, "abc", ran)
    second = run(tmp_path, "abcd", ran)
    assert (first.done, first.there, second.done, second.there) == (3, 0, 1, 3)
    assert ran == ["a", "b", "c", "d"]


def test_a_change_of_settings_runs_a_cell_again_in_its_place(tmp_path):
    ran = []
    run(tmp_path, "abc", ran)
    run(tmp_path, "b", ran, settings="others")
    assert ran == ["a", "b", "c", "b"]
    assert list(store_at(tmp_path).records()) == ["b", "a", "c"]
    assert store_at(tmp_path).records()["b"]["settings"] == "others"


def test_records_say_how_to_repeat_them(tmp_path):
    run(tmp_path, "a", [])
    record = store_at(tmp_path).records()["a"]
    assert record["command"] == "make a"
    assert record["result"] == {"name": "a", "pool": "test", "hits@1": 0.25, "seconds": 1.5}
    assert record["more"] == 7
    assert {"settings", "seed", "commit", "machine", "versions", "time"} <= set(record)


def test_a_stop_loses_the_cell_at_work_only(tmp_path):
    ran = []
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, "abcd", ran, stop=("c",))
    assert list(store_at(tmp_path).records()) == ["b", "a"]
    run(tmp_path, "abcd", ran)
    assert ran == ["a", "b", "c", "d"]


def test_a_cell_that_cannot_be_run_does_not_hold_up_the_others(tmp_path):
    ran = []
    outcome = run(tmp_path, "abc", ran, fail=("b",))
    assert ran == ["a", "c"]
    assert list(outcome.failed) == ["b"]
    assert "bring it" in outcome.failed["b"]
    assert list(store_at(tmp_path).records()) == ["a", "c"]


def test_cells_of_the_same_names_are_refused(tmp_path):
    with pytest.raises(ValueError, match="the same names"):
        run(tmp_path, "aa", [])


def test_the_watch_is_told_of_every_cell(tmp_path):
    told = []

    class Listening(Watch):
        def start(self, cells):
            told.append(len(cells))

        def tell(self, number, state, record=None, reason=""):
            told.append((number, state, record is not None, reason.split(":")[0]))

    run(tmp_path, "a", [])
    cells = make_cells("abc", [], fail=("c",))
    run_grids([Grid(store_at(tmp_path), cells)], watch=Listening())
    assert told[0] == 3
    states = [(number, state, has) for number, state, has, _ in told[1:] if state != "at work"]
    assert states == [(0, "there", True), (1, "done", True), (2, "failed", False)]


def test_lines_are_sorted_formatted_and_have_other_pools_last(tmp_path):
    store = store_at(tmp_path)
    for name, pool in (("z", "test"), ("a", "test-25%"), ("a", "test"), ("b", "test")):
        result = {"name": name, "pool": pool, "hits@1": 1 / 3, "seconds": 2.0}
        store.keep({"result": result, "commit": "0123456789ab", "seed": 0})
    assert store.lines.read_text().splitlines() == [
        "name,pool,hits@1,seconds,commit,seed",
        "b,test,0.3333,2.000,0123456789ab,0",
        "a,test,0.3333,2.000,0123456789ab,0",
        "z,test,0.3333,2.000,0123456789ab,0",
        "a,test-25%,0.3333,2.000,0123456789ab,0",
    ]
    assert list(store.records()) == ["b", "a", "z", "a test-25%"]


def test_writers_at_the_same_time_lose_nothing(tmp_path):
    names = [f"{number:02d}" for number in range(24)]

    def write(part):
        for name in part:
            result = {"name": name, "pool": "test", "hits@1": 0.5, "seconds": 1.0}
            store_at(tmp_path).keep({"result": result, "commit": ""})

    threads = [threading.Thread(target=write, args=(names[start::3],)) for start in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(store_at(tmp_path).records()) == names
    assert not list(tmp_path.glob(".rlea-*"))


@given(st.dictionaries(st.text(), st.integers(), max_size=4), st.dictionaries(st.text(), st.integers(), max_size=4))
def test_finished_means_that_all_that_is_wanted_is_said(record, wanted):
    assert is_finished(record, wanted) == (set(wanted.items()) <= set(record.items()))
    assert not is_finished(None, wanted)


PROGRAM = """
import sys, time
from pathlib import Path
from rlea.experiments.grid import Cell, Grid, run_grids
from rlea.experiments.store import Store
folder = Path(sys.argv[1])
def cell(name):
    def run(progress):
        time.sleep(0.03)
        with (folder / "ran").open("a") as file:
            file.write(name + "\\n")
        return {"result": {"hits@1": 0.5, "blob": "x" * 20000}}
    return Cell({"name": name}, lambda progress: {"seed": 0}, run, "again")
store = Store(folder / "cells", ("name",), ("hits@1",), {"name": ()})
run_grids([Grid(store, [cell(f"{number:03d}") for number in range(40)])])
"""


@pytest.mark.skipif(os.name == "nt", reason="processes are killed by signal")
def test_killed_in_mid_grid_and_started_again(tmp_path):
    """No finished cell is run twice, and no line is doubled or torn, however often the run is killed."""
    ran = tmp_path / "ran"
    kills = 0
    for _ in range(20):
        process = subprocess.Popen([sys.executable, "-c", PROGRAM, str(tmp_path)])
        seen = len(ran.read_text().splitlines()) if ran.exists() else 0
        while process.poll() is None:
            now = len(ran.read_text().splitlines()) if ran.exists() else 0
            if now >= seen + 9 and kills < 3:
                process.send_signal(signal.SIGKILL)
                kills += 1
                process.wait()
            time.sleep(0.005)
        if process.returncode == 0:
            break
    assert kills == 3
    names = [f"{number:03d}" for number in range(40)]
    lines = ran.read_text().splitlines()
    # The cell at work when a kill came may have done its work without being kept: it alone may come again.
    assert sorted(set(lines)) == names
    assert len(lines) <= len(names) + kills
    with (tmp_path / "cells.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["name"] for row in rows] == names
    assert all(row["hits@1"] == "0.5000" and row["seed"] == "0" for row in rows)
    assert list(json.loads((tmp_path / "cells.json").read_text())["runs"]) == names


def test_a_program_that_is_changed_while_it_runs_keeps_nothing(tmp_path, monkeypatch):
    from rlea.experiments import grid

    states = iter([{"a": 1}, {"a": 1}, {"a": 2}])
    monkeypatch.setattr(grid, "sources", lambda: next(states))
    with pytest.raises(InputError, match="changed while it ran"):
        run(tmp_path, "ab", [])
    assert list(store_at(tmp_path).records()) == ["a"]


def test_lines_lost_to_a_kill_are_written_again(tmp_path):
    run(tmp_path, "ab", [])
    store = store_at(tmp_path)
    whole = store.lines.read_text()
    store.lines.write_text(whole[:-20])
    store.mend()
    assert store.lines.read_text() == whole
    before = store.lines.stat().st_mtime_ns
    store.mend()
    assert store.lines.stat().st_mtime_ns == before


@pytest.mark.parametrize(
    "text", ["[1, 2", "{}", '{"runs": []}', '{"runs": {"x": 1}}', '{"runs": {"x": {"result": {}}}}']
)
def test_files_of_something_else_are_named(tmp_path, text):
    (tmp_path / "cells.json").write_text(text)
    with pytest.raises(InputError, match=r"cells\.json.*not a file of recorded cells"):
        store_at(tmp_path).records()
