"""Run an experiment and write what came of it: the cells as CSV and JSON, a Markdown table, a picture."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType

from rlea.errors import InputError
from rlea.experiments import EXPERIMENTS
from rlea.experiments.desk import PAIRS, QUICK, Desk, Options, find_folder
from rlea.experiments.grid import Grid, Outcome, Results, Watch, results_of, run_grids
from rlea.pipeline import suggest
from rlea.progress import Progress, silent
from rlea.writers.atomic import check_writable, write_all


def reproduce(
    name: str, options: Options, *, progress: Progress = silent, watch: Watch | None = None
) -> tuple[Outcome, list[Path], str]:
    """Run the cells of an experiment that are missing; what became of them, the files written, and the table.

    Cells that are finished are not run again unless their settings, code, data or vectors have changed. A stop loses
    the cell at work: the same command goes on from there.
    """
    module = load(name)
    check_options(options)
    desk = Desk(options)
    grids: Sequence[Grid] = module.grids(desk)
    for pair in {cell.result["pair"]: None for grid in grids for cell in grid.cells if "pair" in cell.result}:
        if pair != QUICK:
            find_folder(options.data, pair)
    for grid in grids:
        check_writable(grid.store.file)
    check_writable(options.work / "agents" / "file")
    outcome = run_grids(grids, progress=progress, watch=watch)
    results = results_of(grids)
    written = write_views(name, module, results, options.output)
    stores = [path for grid in grids for path in (grid.store.lines, grid.store.file) if path.exists()]
    return outcome, [*stores, *written], module.table(results)


def load(name: str) -> ModuleType:
    """The module of an experiment."""
    if name not in EXPERIMENTS:
        raise InputError(f"unknown experiment {name!r}", remedy=suggest(name, EXPERIMENTS))
    return import_module(f"rlea.experiments.{EXPERIMENTS[name].module}")


def check_options(options: Options) -> None:
    """Raise for what cannot be, before any work is done."""
    if options.device not in ("auto", "cpu", "cuda"):
        raise InputError(f"unknown device {options.device!r}", remedy="use auto, cpu or cuda")
    for pair in options.pairs:
        if pair not in PAIRS:
            raise InputError(f"unknown data set {pair!r}", remedy=suggest(pair, PAIRS))


def write_views(name: str, module: ModuleType, results: Results, output: Path) -> list[Path]:
    """The table and the pictures of what is kept."""
    texts = {output / f"{name}.md": module.table(results) + "\n"}
    texts |= {output / f"{stem}.svg": picture for stem, picture in module.pictures(results).items()}

    return write_all({path: partial(_write, text) for path, text in texts.items()})


def _write(text: str, path: Path) -> None:
    path.write_text(text, encoding="utf-8")
