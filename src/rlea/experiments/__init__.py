"""The paper's tables and figures, one file each: `rlea reproduce` runs them by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from rlea.experiments import ablation, bootea, candidates, conventional, dangling, evidence, main, overlap, scale
from rlea.experiments.figures import Result, Results
from rlea.experiments.grid import Grid
from rlea.experiments.options import PAIRS
from rlea.experiments.store import Record, Store
from rlea.experiments.workspace import Workspace


class Parts(Protocol):
    """What the module of an experiment has: its cells, and how what is kept of them is shown."""

    __doc__: str | None  # the introduction, in Markdown

    @property
    def STORES(self) -> Sequence[Store]:  # noqa: N802 - a constant of the module
        """Those that the table is made from."""

    def grids(self, workspace: Workspace, /) -> list[Grid]:
        """The cells that were asked for."""

    def table(self, results: Results, /) -> str:
        """Markdown."""

    def remarks(self, results: Results, /) -> str:
        """What is to be said of the table, in Markdown; may be empty."""

    def pictures(self, results: Results, /) -> dict[str, str]:
        """SVG by the name of the file."""


@dataclass(frozen=True)
class Experiment:
    """One experiment. `rlea reproduce` runs its grids; its page has the introduction, table, remarks and pictures."""

    repeats: str  # what of the paper, such as "Table 1"
    summary: str  # what it asks, in a few words
    parts: Parts
    is_shown: Callable[[Result], bool] = lambda result: True  # whether the table shows a result of the stores
    pairs: tuple[str, ...] = PAIRS  # that may be asked for

    def records(self, folder: Path) -> dict[str, list[Record]]:
        """All that is kept in a folder of results, by the name of the store."""
        stores = (store.at(folder) for store in self.parts.STORES)
        return {store.path.name: list(store.records().values()) for store in stores}

    def shown(self, records: Iterable[Record]) -> list[Record]:
        """The records that the table shows."""
        return [record for record in records if self.is_shown(record["result"])]


def results_of(records: dict[str, list[Record]]) -> Results:
    """What was measured, without how."""
    return {name: [record["result"] for record in own] for name, own in records.items()}


EXPERIMENTS = {
    "main": Experiment("Table 1", "every decider over the vectors of five models: Hits@1", main, main.is_shown),
    "candidates": Experiment("Figure 4", "Hits@1 and seconds of an episode against candidates", candidates),
    "ablation": Experiment("Figures 5 and 7", "learning curves: full, no estimator, random environment", ablation),
    "bootea": Experiment(
        "Figure 6", "deciding better or training on: AlignE, BootEA, joint rounds", bootea, bootea.is_shown
    ),
    "conventional": Experiment(
        "Table 2", "precision, recall and F1 beside PARIS and LogMap", conventional, conventional.is_shown
    ),
    "scale": Experiment(
        "Table 3", "seconds and memory of every stage from 1,000 to 1,000,000 entities", scale, scale.is_shown
    ),
    "evidence": Experiment("nothing", "names, words, attributes, PARIS and structure together, or but one", evidence),
    "dangling": Experiment(
        "nothing", "a share of the targets taken away: who should have no link", dangling, dangling.is_shown
    ),
    "overlap": Experiment(
        "nothing", "graphs that share a part: are confidences right, and how much is shared", overlap, pairs=overlap.ALL
    ),
}
