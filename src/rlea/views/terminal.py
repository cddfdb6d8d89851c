"""What the terminal shows: progress, tables, JSON. Results go to standard output, everything else to standard error."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.markdown import Markdown
from rich.markup import escape
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from rlea.progress import counted

if TYPE_CHECKING:
    from rlea.graph import GraphPair
    from rlea.pipeline import Result
    from rlea.progress import Progress as Report

out = Console(emoji=False)  # ":smile:" may be a name
err = Console(stderr=True, emoji=False)

_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")


def as_text(text: str) -> str:
    """What users gave, for use in markup: nothing in it is a command, neither to rich nor to the terminal."""
    return escape(_CONTROL.sub(" ", text))


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
    with Progress(*progress_columns(), console=err, transient=True) as bars:
        yield bar_reporter(bars)


def progress_columns() -> tuple[ProgressColumn, ...]:
    """What a bar shows."""
    return (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("[dim]{task.fields[note]}"),
    )


def bar_reporter(bars: Progress) -> Report:
    """A bar a stage, made when the stage is first heard of."""
    tasks: dict[str, Any] = {}

    def report(stage: str, done: float, total: float, note: str = "") -> None:
        if stage not in tasks:
            tasks[stage] = bars.add_task(stage, total=total, note=note)
        bars.update(tasks[stage], completed=done, total=total, note=note)

    return report


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
        f"{counted(graph.num_entities, 'entity')}, {counted(graph.num_triples, 'triple')}"
        for graph in (pair.source, pair.target)
    )
    return f"{pair.name}{fold}: {sides}; {counted(len(pair.train), 'seed')}"


def show_notes(pair: GraphPair, quiet: bool) -> None:
    """What the reader had to say."""
    if not quiet:
        for note in pair.notes:
            err.print(f"[yellow]Note:[/yellow] {as_text(note)}")


def show_strings(result: Result) -> None:
    """What equal strings would have solved, as a warning where it is most."""
    if result.strings is not None:
        from rlea.evaluation.string_baseline import describe_probe, is_easy

        told = result.strings.as_dict()
        text = as_text(describe_probe(told))
        out.print(f"[yellow]{text}[/yellow]" if is_easy(told) else f"[dim]{text}[/dim]", highlight=False)


def markdown_view(text: str) -> Markdown:
    """Markdown as a terminal can show it; breaks within cells become blanks."""
    return Markdown(text.replace("<br>", " "))


def percent(value: float | None) -> str:
    """A share as a percentage, or a dash."""
    return "-" if value is None else f"{100 * value:.1f}"


def bench_table(results: list[Result]) -> Table:
    """One row a matcher."""
    from rlea.pipeline import common_result

    first = common_result(results)
    if first.search["kind"] == "evidence":
        title = f"pool {first.pool} (per cent)"
    else:
        title = f"{first.settings.embedding}, pool {first.pool}, {first.settings.candidates} candidates"
        title += f" by {search_words(first)} (per cent)" if first.search["kind"] != "exact" else " (per cent)"
    title += f", {hidden_words(first)} hidden" if first.settings.hide else ""
    table = Table(title=as_text(title), title_justify="left")
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
        "links": f"{summary['matched']:,}" + (" (seeds are not repeated among them)" if len(result.pair.train) else ""),
        "pool": f"{result.pool}",
        **({"hidden": hidden_words(result)} if result.settings.hide else {}),
        "judged by gold": "-" if summary["judged"] is None else f"{summary['judged']:,}, {summary['correct']:,} right",
        "Hits@1": percent(summary["hits@1"]),
        "precision": percent(summary["precision"]),
        "recall": percent(summary["recall"]),
        "F1": percent(summary["f1"]),
        "gold among candidates": percent(summary["coverage"]),
        "search": search_words(result),
        "beginning": summary["began"] or "-",
        "seconds": ", ".join(f"{stage} {value:.1f}" for stage, value in seconds.items()),
        "peak memory": f"{summary['peak_memory_mb']:,.0f} MB",
    }
    if result.links is None:
        facts = {name: value for name, value in facts.items() if value != "-"}
    facts = {name: value for name, value in facts.items() if name != "beginning" or value != "-"}
    way = " + ".join(part for part in (result.settings.embedding, result.settings.matcher) if part)
    return fact_table(f"{way} on {result.pair.name}", facts)


def channel_table(result: Result) -> Table | None:
    """What each channel of evidence contributed; None where the matcher has none."""
    rows = result.summary()["channels"]
    if not rows:
        return None
    table = Table(title="What each channel contributed", title_justify="left")
    table.add_column("channel")
    for name in ("pairs proposed", "links it finds best", "no other does"):
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(row["channel"], *(f"{row[name]:,}" for name in ("proposed", "found", "alone")))
    return table


def search_words(result: Result) -> str:
    """How candidates were found; of an approximate search also how many of the exact ones."""
    search = result.search
    if search["kind"] in ("exact", "evidence"):
        return {"exact": "exact", "evidence": "by evidence"}[search["kind"]]
    if search["exact_instead"]:
        means = "an index" if search["kind"] == "names" else "cells"
        return f"exact search ({means} would not have been faster)"
    found = f"{percent(search['recall'])} % of the exact ones"
    if search["kind"] == "names":
        visits = "at most {:,} and {:,}".format(*search["budgets"])
        return f"index of names ({found}, {visits} visits a name)"
    return f"approximate search ({found}, {search['probes']:,} of {search['cells']:,} cells probed)"


def hidden_words(result: Result) -> str:
    """What no model was shown, and whether that is sure."""
    from rlea.masking import describe_hidden

    return describe_hidden(result.settings.hide, result.info)


def fact_table(title: str, facts: dict[str, Any]) -> Table:
    """Names and values; what is nested is left to the record."""
    table = Table(title=as_text(title), title_justify="left", show_header=False)
    for name, value in facts.items():
        if isinstance(value, float):
            shown = f"{value:.1f}" if name in ("seconds", "peak_memory_mb") else f"{value:.4f}"
        elif isinstance(value, dict | list):
            continue
        else:
            shown = str(value)
        table.add_row(name, as_text(shown))
    return table


def link_table(result: Result, count: int = 6) -> Table | str:
    """A few of the surest links, by name; a sentence where there is none."""
    import numpy as np

    matching, pair = result.matching, result.pair
    if not len(matching):
        why = f"{result.cut} left out all there were" if result.cut else "what was looked at has nothing in common"
        return f"[yellow]No link was found:[/yellow] {why}. Seeds, or all evidence (`--matcher fused`), may help."
    table = Table(title="Some of the surest links", title_justify="left")
    table.add_column("source")
    table.add_column("target")
    table.add_column("confidence", justify="right")
    order = np.argsort(-matching.confidences, kind="stable")
    # Spread over the first half where there are many, so that not all rows are alike.
    step = max(len(order) // 2 // count, 1) if len(order) > 2 * count else 1
    for place in order[::step][:count]:
        table.add_row(
            as_text(pair.source.names[matching.source_ids[place]]),
            as_text(pair.target.names[matching.target_ids[place]]),
            f"{matching.confidences[place]:.3f}",
        )
    return table
