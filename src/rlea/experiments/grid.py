"""Cells run one after another, each stored when it is finished: a stopped run loses at most the current cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from rlea.errors import InputError
from rlea.experiments.code_version import PACKAGE
from rlea.experiments.store import Record, Store
from rlea.progress import Progress, silent
from rlea.record import commit, describe_run

State = Literal["waiting", "at work", "there", "done", "failed"]


@dataclass(frozen=True, eq=False)
class Cell:
    """One measurement.

    `result` has its names (those of the store). `wanted` returns what a record of the finished cell must contain:
    settings, code, data, vectors, seed; it may have to train vectors first. `run` measures and returns a dict whose
    `result` is added to the names. `command` repeats the cell.
    """

    result: dict[str, Any]
    wanted: Callable[[Progress], dict[str, Any]]
    run: Callable[[Progress], dict[str, Any]]
    command: str


@dataclass(frozen=True)
class Grid:
    """Cells, and the store of their records."""

    store: Store
    cells: Sequence[Cell]


@dataclass
class Outcome:
    """How many cells were run and how many were finished before; those that failed, with the reason."""

    done: int = 0
    there: int = 0
    failed: dict[str, str] = field(default_factory=dict)


class Watch:
    """Is told the state of each cell; this one ignores it."""

    def start(self, cells: Sequence[Cell]) -> None:
        """Before the first cell of all grids."""

    def tell(self, number: int, state: State, record: Record | None = None, reason: str = "") -> None:
        """A cell has changed its state; `record` is that of a finished one."""


def run_grids(grids: Sequence[Grid], *, progress: Progress = silent, watch: Watch | None = None) -> Outcome:
    """Run the missing cells in order. A cell that fails for bad input is noted, and the others are run."""
    watch = watch or Watch()
    plan = [(grid.store, cell) for grid in grids for cell in grid.cells]
    keys = [(store.path, store.key(cell.result)) for store, cell in plan]
    if len(set(keys)) != len(keys):
        raise ValueError("two cells have the same names")
    outcome, name, program = Outcome(), commit(), sources()
    watch.start([cell for _, cell in plan])
    for number, (store, cell) in enumerate(plan):
        key = store.key(cell.result)
        watch.tell(number, "at work")
        try:
            wanted = cell.wanted(progress)
            record = store.records().get(key)  # read anew each time: another run may share the folder
            if is_finished(record, wanted):
                outcome.there += 1
                watch.tell(number, "there", record)
                continue
            found = cell.run(progress)
        except InputError as problem:
            outcome.failed[key] = str(problem)
            watch.tell(number, "failed", reason=str(problem))
            continue
        if sources() != program:
            raise InputError(
                "the program was changed while it ran, so what is measured is not what it is now",
                remedy="start again; finished cells are kept",
            )
        result = {**cell.result, **found.pop("result")}
        record = describe_run(result=result, **found, **wanted)
        # The commit when the run began: a later one is not the running program.
        record |= {"command": cell.command, "commit": name}
        store.keep(record)
        outcome.done += 1
        watch.tell(number, "done", record)
    return outcome


def is_finished(record: Record | None, wanted: dict[str, Any]) -> bool:
    """Whether a record is what a run would give today."""
    return record is not None and all(record.get(key) == value for key, value in wanted.items())


def sources() -> dict[Path, tuple[int, int]]:
    """The state of the source files: code versions are computed from them, so they must be those that are running."""
    states = {path: path.stat() for path in PACKAGE.rglob("*.py")}
    return {path: (state.st_mtime_ns, state.st_size) for path, state in states.items()}
