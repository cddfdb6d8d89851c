"""Run an experiment and write its results: the cells as CSV and JSON, a Markdown table, a picture."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from rlea.errors import InputError
from rlea.experiments import EXPERIMENTS, results_of
from rlea.experiments.grid import Outcome, Watch, run_grids
from rlea.experiments.options import Options, check_pair
from rlea.experiments.store import write_text
from rlea.experiments.workspace import Workspace
from rlea.io.writers.atomic import check_writable, write_all
from rlea.progress import Progress, silent
from rlea.settings import suggest


def reproduce(
    name: str, options: Options, *, progress: Progress = silent, watch: Watch | None = None
) -> tuple[Outcome, list[Path], str]:
    """Run the missing cells of an experiment; returns the outcome, the files written, and the table.

    Finished cells are not run again unless their settings, code, data or vectors have changed. A stopped run loses the
    current cell: the same command continues from there.
    """
    if name not in EXPERIMENTS:
        raise InputError(f"unknown experiment {name!r}", remedy=suggest(name, EXPERIMENTS))
    experiment = EXPERIMENTS[name]
    check_options(name, options)
    grids = experiment.parts.grids(Workspace(options))
    for pair in {cell.result["pair"]: None for grid in grids for cell in grid.cells if "pair" in cell.result}:
        check_pair(options.data, pair)
    for grid in grids:
        check_writable(grid.store.file)
        grid.store.records()  # raises now, not after hours of work, where it is something else
    check_writable(options.work / "agents" / "file")
    outcome = run_grids(grids, progress=progress, watch=watch)
    for grid in grids:
        grid.store.mend()
    records = experiment.records(options.output)
    if not any(experiment.shown(own) for own in records.values()):
        return outcome, [], ""
    results = results_of(records)
    table = experiment.parts.table(results)
    texts = {options.output / f"{name}.md": table + "\n"}
    texts |= {options.output / f"{stem}.svg": picture for stem, picture in experiment.parts.pictures(results).items()}
    written = write_all({path: partial(write_text, text) for path, text in texts.items()})
    stores = [path for grid in grids for path in (grid.store.lines, grid.store.file) if path.exists()]
    return outcome, [*stores, *written], table


def check_options(name: str, options: Options) -> None:
    """Refuse options that are wrong or would have no effect, before any work is done."""
    if options.device not in ("auto", "cpu", "cuda"):
        raise InputError(f"unknown device {options.device!r}", remedy="use auto, cpu or cuda")
    if options.data is not None and not options.data.is_dir():
        raise InputError("is no folder", path=options.data, remedy="give the folder of the data sets with --data")
    for pair in options.pairs:
        if pair not in EXPERIMENTS[name].pairs:
            raise InputError(f"unknown data set {pair!r}", remedy=suggest(pair, EXPERIMENTS[name].pairs))
    if options.sizes and name != "scale":
        raise InputError("--sizes means nothing here: it is for the experiment scale", remedy="leave it out")
    idle = {"--data": options.data, "--pairs": options.pairs, "--folds": options.folds != ("1",)}
    for option, given in idle.items():
        if options.quick and given:
            raise InputError(f"{option} means nothing with --quick, which makes its own pair", remedy="leave it out")
