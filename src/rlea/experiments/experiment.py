"""What an experiment is: its cells, and how what is kept of them is shown. Each has a file of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from rlea.experiments.figures import Result
from rlea.experiments.grid import Grid
from rlea.experiments.store import Record, Store
from rlea.experiments.workspace import Workspace

# Results by the name of the store: results["deciders"] has those of results/deciders.json.
Results = dict[str, list[Result]]


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """One experiment. `rlea reproduce` runs its grids; its page has the introduction, table, remarks and pictures."""

    repeats: str  # what of the paper, such as "Table 1"
    summary: str  # what it asks, in a few words
    intro: str | None  # Markdown: the docstring of its module
    stores: tuple[Callable[[Path], Store], ...]  # of a folder of results: those that the table is made from
    grids: Callable[[Workspace], list[Grid]]  # the cells that were asked for
    table: Callable[[Results], str]  # Markdown
    pictures: Callable[[Results], dict[str, str]]  # SVG by the name of the file
    remarks: Callable[[Results], str] = lambda results: ""  # Markdown
    is_shown: Callable[[Result], bool] = lambda result: True  # whether the table shows a result of the stores

    def records(self, folder: Path) -> dict[str, list[Record]]:
        """All that is kept in a folder of results, by the name of the store."""
        stores = (make(folder) for make in self.stores)
        return {store.path.name: list(store.records().values()) for store in stores}

    def shown(self, records: Iterable[Record]) -> list[Record]:
        """The records that the table shows."""
        return [record for record in records if self.is_shown(record["result"])]


def results_of(records: dict[str, list[Record]]) -> Results:
    """What was measured, without how."""
    return {name: [record["result"] for record in own] for name, own in records.items()}
