"""What the terminal shows: progress, tables, JSON. Results go to standard output, everything else to standard error."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

if TYPE_CHECKING:
    from rlea.graph import GraphPair
    from rlea.pipeline import Result
    from rlea.progress import Progress as Report

out = Console()
err = Console(stderr=True)


@contextmanager
def progress_bars(quiet: bool) -> Iterator[Report]:
    """Bars with time left on standard error, one a stage. An interrupt ends the command with a word and code 130."""
    try:
        with _reporter(quiet) as report:
            yield report
    except KeyboardInterrupt:
        err.print("Stopped. Where a checkpoint was kept, the same command goes on from it.", highlight=False)
        raise typer.Exit(130) from None


@contextmanager
def _reporter(quiet: bool) -> Iterator[Report]:
    from rlea.progress import silent

    if quiet:
        yield silent
        return
    if not err.is_terminal:
        yield progress_lines()
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("[dim]{task.fields[note]}"),
    )
    with Progress(*columns, console=err, transient=True) as bars:
        tasks: dict[str, Any] = {}

        def report(stage: str, done: float, total: float, note: str = "") -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=total, note=note)
            bars.update(tasks[stage], completed=done, total=total, note=note)

        yield report


def progress_lines(every: float = 30.0) -> Report:
    """For log files: a line at most every half minute, and none for work that is over before."""
    start = last = time.monotonic()

    def report(stage: str, done: float, total: float, note: str = "") -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= every:
            last = now
            line = f"{stage}: {100 * done / max(total, 1):.0f} % after {now - start:.0f} s  {note}"
            err.print(line.rstrip(), highlight=False)

    return report


def print_json(value: Any) -> None:
    """Plain JSON on standard output, whatever the terminal."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, default=str) + "\n")


def describe(pair: GraphPair) -> str:
    """A pair in one line."""
    fold = f", fold {pair.fold}" if pair.fold else ""
    sides = " / ".join(
        f"{graph.num_entities:,} entities, {graph.num_triples:,} triples" for graph in (pair.source, pair.target)
    )
    return f"{pair.name}{fold}: {sides}; {len(pair.train):,} seeds"


def show_notes(pair: GraphPair, quiet: bool) -> None:
    """What the reader had to say."""
    if not quiet:
        for note in pair.notes:
            err.print(f"[yellow]Note:[/yellow] {escape(note)}")


def percent(value: float | None) -> str:
    """A share as a percentage, or a dash."""
    return "-" if value is None else f"{100 * value:.1f}"


def bench_table(results: list[Result]) -> Table:
    """One row a matcher."""
    first = results[0]
    title = f"{first.settings.embedding}, pool {first.pool}, {first.settings.candidates} candidates (per cent)"
    table = Table(title=escape(title), title_justify="left")
    table.add_column("matcher")
    for name in ("Hits@1", "precision", "recall", "F1", "links", "seconds", "MB"):
        table.add_column(name, justify="right")
    best = max((result.links.f1 for result in results if result.links), default=0.0)
    for result in results:
        links = result.links
        assert links is not None
        style = "bold" if links.f1 == best else ""
        table.add_row(
            result.settings.matcher,
            percent(links.hits_at_1),
            percent(links.precision),
            percent(links.recall),
            percent(links.f1),
            f"{len(result.matching):,}",
            (f"{result.seconds['train']:.1f} + " if "train" in result.seconds else "")
            + f"{result.seconds['match']:.2f}",
            f"{result.peak_memory_mb:,.0f}",
            style=style,
        )
    return table


def result_table(result: Result) -> Table:
    """The outcome of one run."""
    summary = result.summary()
    seconds = {"read": 0.0, **summary["seconds"]}  # in the order of the flow, however they were added
    facts = {
        "links": f"{summary['matched']:,} (seeds are not repeated among them)",
        "pool": f"{result.pool}",
        "judged by gold": "-" if summary["judged"] is None else f"{summary['judged']:,}, {summary['correct']:,} right",
        "Hits@1": percent(summary["hits@1"]),
        "precision": percent(summary["precision"]),
        "recall": percent(summary["recall"]),
        "F1": percent(summary["f1"]),
        "gold among candidates": percent(summary["coverage"]),
        "seconds": ", ".join(f"{stage} {value:.1f}" for stage, value in seconds.items()),
        "peak memory": f"{summary['peak_memory_mb']:,.0f} MB",
    }
    if result.links is None:
        facts = {name: value for name, value in facts.items() if value != "-"}
    return fact_table(f"{result.settings.embedding} + {result.settings.matcher} on {result.pair.name}", facts)


def fact_table(title: str, facts: dict[str, Any]) -> Table:
    """Names and values; what is nested is left to the record."""
    table = Table(title=escape(title), title_justify="left", show_header=False)
    for name, value in facts.items():
        if isinstance(value, float):
            shown = f"{value:.1f}" if name in ("seconds", "peak_memory_mb") else f"{value:.4f}"
        elif isinstance(value, dict | list):
            continue
        else:
            shown = str(value)
        table.add_row(name, escape(shown))
    return table


def link_table(result: Result, count: int = 6) -> Table:
    """A few of the surest links, by name."""
    import numpy as np

    matching, pair = result.matching, result.pair
    table = Table(title="Some of the surest links", title_justify="left")
    table.add_column("source")
    table.add_column("target")
    table.add_column("confidence", justify="right")
    order = np.argsort(-matching.confidences, kind="stable")
    # Spread over the first half where there are many, so that not all rows are alike.
    step = max(len(order) // 2 // count, 1) if len(order) > 2 * count else 1
    for place in order[::step][:count]:
        table.add_row(
            escape(pair.source.names[matching.source_ids[place]]),
            escape(pair.target.names[matching.target_ids[place]]),
            f"{matching.confidences[place]:.3f}",
        )
    return table
