"""Progress of a grid of experiment cells in the terminal: finished cells, the running cell, the latest results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Group
from rich.live import Live
from rich.table import Table

from rlea.experiments.grid import Cell, State, Watch
from rlea.experiments.store import Record
from rlea.progress import Progress as Report
from rlea.progress import silent
from rlea.views.terminal import as_text, bar_reporter, err, make_bars, progress_lines

FINISHED: tuple[State, ...] = ("there", "done", "failed")


@contextmanager
def grid_view(quiet: bool) -> Iterator[tuple[Report, Watch]]:
    """A table of the whole grid above the bars of the running cell; without a terminal, one line per finished cell."""
    try:
        if quiet:
            yield silent, Watch()
        elif not err.is_terminal:
            yield progress_lines(), Lines()
        else:
            bars = Bars()
            with Live(console=err, get_renderable=bars.view, refresh_per_second=4, transient=True):
                yield bars.report, bars
    except KeyboardInterrupt:
        err.print("Stopped. Finished cells are kept; the same command resumes from there.", highlight=False)
        raise typer.Exit(130) from None


class Lines(Watch):
    """For log files: one line per finished cell."""

    def start(self, cells: Sequence[Cell]) -> None:
        self.cells = cells

    def tell(self, number: int, state: State, record: Record | None = None, reason: str = "") -> None:
        if state in FINISHED:
            count = f"[{number + 1}/{len(self.cells)}]"
            words = [count, name_of(self.cells[number]), state, reason or outcome_of(record)]
            err.print("  ".join(word for word in words if word), markup=False, highlight=False, soft_wrap=True)


class Bars(Watch):
    """For terminals: a table of finished cells, one row per model (or stage, or aligner), one column per pair."""

    def __init__(self) -> None:
        self.cells: Sequence[Cell] = ()
        self.states: list[State] = []
        self.last: list[str] = []
        self._clear()

    def _clear(self) -> None:
        """Every cell has its own bars."""
        self.progress = make_bars()
        self._report = bar_reporter(self.progress)

    def report(self, stage: str, done: float, total: float, note: str = "") -> None:
        self._report(stage, done, total, note)

    def start(self, cells: Sequence[Cell]) -> None:
        self.states = ["waiting"] * len(cells)  # before `cells`: another thread may draw the view in between
        self.cells = cells

    def tell(self, number: int, state: State, record: Record | None = None, reason: str = "") -> None:
        self.states[number] = state
        if state == "at work":
            self._clear()
        elif state != "there":
            self.last = [*self.last, f"{name_of(self.cells[number])}  {reason or outcome_of(record)}"][-4:]

    def view(self) -> Group:
        """The table, the latest cells, and the bars of the running one."""
        cells, states = self.cells, self.states[: len(self.cells)]
        places = [place_of(cell) for cell in cells]
        rows, columns = dict.fromkeys(row for row, _ in places), dict.fromkeys(column for _, column in places)
        all_, finished, failed = Counter(places), Counter[Any](), Counter[Any]()
        for place, state in zip(places, states, strict=True):
            finished[place] += state in FINISHED
            failed[place] += state == "failed"
        count = sum(state in FINISHED for state in states)
        table = Table("", *map(as_text, columns), title=f"{count} of {len(cells)} cells", title_justify="left")
        for row in rows:
            shown = []
            for column in columns:
                place = (row, column)
                colour = "red" if failed[place] else "green" if finished[place] == all_[place] else "yellow"
                shown.append(f"[{colour}]{finished[place]}/{all_[place]}[/{colour}]" if all_[place] else "")
            table.add_row(as_text(row), *shown)
        at_work = [name_of(cell) for cell, state in zip(cells, states, strict=True) if state == "at work"]
        lines = [*(f"[dim]{as_text(line)}[/dim]" for line in self.last), *map(as_text, at_work)]
        return Group(table, *lines, self.progress)


def place_of(cell: Cell) -> tuple[str, str]:
    """Row and column of a cell."""
    names = cell.result
    row = next((names[key] for key in ("model", "stage", "aligner") if key in names), "")
    return str(row), str(names.get("pair", names.get("entities", "")))


def name_of(cell: Cell) -> str:
    """A short name for a cell."""
    return " ".join(str(value) for key, value in cell.result.items() if (key, value) != ("pool", "test"))


def outcome_of(record: Record | None) -> str:
    """The main figures of a finished cell."""
    if record is None:
        return ""
    result = record["result"]
    hits = f"Hits@1 {result['hits@1']:.4f}" if result.get("hits@1") is not None else ""
    seconds = f"{result['seconds']:.2f} s" if "seconds" in result else ""
    return "  ".join(word for word in (hits, seconds) if word)
