"""Terminal output: progress, tables, JSON. Results go to standard output, everything else to standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.markdown import Markdown
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from rlea.errors import InputError
from rlea.plain_text import json_line, visible
from rlea.progress import Overall, StageLog, counted, silent, tell_left
from rlea.record import command

if TYPE_CHECKING:
    from rlea.graph import GraphPair, KnowledgeGraph
    from rlea.progress import Progress as Report
    from rlea.result import Result

out = Console(emoji=False)  # a name may contain ":smile:"
err = Console(stderr=True, emoji=False)

WIDEST = len("agent: null models")  # of the names of stages


def as_text(text: str) -> str:
    """Text from users, safe for markup: neither rich nor the terminal takes any of it as a command."""
    return escape(visible(text))


class Reporter:
    """Progress on standard error: a bar or a seldom line, and the seconds of every stage for whoever asks for them.

    Without a plan every stage has a bar of its own; with one there is a single bar for all, and the time left.
    """

    def __init__(self, show: Report, bars: Progress | None = None, logs: Sequence[StageLog] = ()) -> None:
        self._show, self._bars, self.logs = show, bars, logs
        self._overall: Overall | None = None

    def __call__(self, stage: str, done: float, total: float, note: str = "") -> None:
        for log in self.logs:
            log.report(stage, done, note)
        if self._overall is None:
            self._show(stage, done, total, note)
            return
        self._overall.report(stage, done, total)
        left = tell_left(self._overall.left(time.monotonic()))
        if self._bars is None:
            self._show(stage, self._overall.share, 1.0, f"{note + ', ' if note else ''}{left}")
        else:
            name = f"{stage:<{WIDEST}}"  # or the bar would jump with every name
            self._bars.update(self._task, completed=self._overall.share, description=name, note=f"{left}  {note}")

    def expect(self, plan: Mapping[str, float]) -> None:
        """From now on all stages are one, by the seconds that each may take; an empty plan changes nothing."""
        if not plan:
            return
        self._overall = Overall(plan, time.monotonic())
        if self._bars is not None:
            for task in self._bars.task_ids:
                self._bars.remove_task(task)
            # The remaining time of rich goes by the bar alone; ours stands in the note.
            self._bars.columns = tuple(one for one in self._bars.columns if not isinstance(one, TimeRemainingColumn))
            self._task = self._bars.add_task(" " * WIDEST, total=1.0, note="")


@contextmanager
def progress_bars(quiet: bool, *, verbose: bool = False, log: Path | None = None) -> Iterator[Reporter]:
    """Progress on standard error. An interrupt ends the command with a message and exit code 130.

    `verbose` prints the seconds of every stage, `log` is a file that gets the same lines with the time before each.
    """
    with opened_log(log) as say:
        logs = [StageLog(say)] if say is not None else []
        if verbose:
            logs.append(StageLog(lambda line: err.print(as_text(line), highlight=False, soft_wrap=True)))
        how = "stopped"
        try:
            if quiet:
                yield Reporter(silent, logs=logs)
            elif not err.is_terminal:
                yield Reporter(progress_lines(), logs=logs)
            else:
                with make_bars(transient=True) as bars:
                    yield Reporter(bar_reporter(bars), bars, logs)
            how = "done"
        except InputError as problem:
            if say is not None:
                say(f"error: {problem}")
            raise
        except KeyboardInterrupt:
            err.print("Stopped. If a checkpoint was saved, the same command resumes from it.", highlight=False)
            raise typer.Exit(130) from None
        finally:
            for one in logs:
                one.end(how)


@contextmanager
def opened_log(path: Path | None) -> Iterator[Callable[[str], None] | None]:
    """A function that adds a line with the time to a file, which begins with the command; None without a file."""
    if path is None:
        yield None
        return
    from rlea.io.writers.atomic import check_writable

    check_writable(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:

        def say(line: str) -> None:
            file.write(f"{datetime.now(UTC).isoformat(timespec='seconds')} {line}\n")
            file.flush()  # to be read while the run goes on

        say(command())
        yield say


def make_bars(*, transient: bool = False) -> Progress:
    """Progress bars on standard error; `transient` ones disappear at the end."""
    name, share, note = map(TextColumn, ("{task.description}", "{task.percentage:>3.0f} %", "[dim]{task.fields[note]}"))
    columns = (SpinnerColumn(), name, BarColumn(), share, TimeElapsedColumn(), TimeRemainingColumn(), note)
    return Progress(*columns, console=err, transient=transient)


def bar_reporter(bars: Progress) -> Report:
    """Report progress as bars; the bar of a stage is added on its first report."""
    tasks: dict[str, Any] = {}

    def report(stage: str, done: float, total: float, note: str = "") -> None:
        if stage not in tasks:
            tasks[stage] = bars.add_task(stage, total=total, note=note)
        bars.update(tasks[stage], completed=done, total=total, note=note)

    return report


def progress_lines(every: float = 30.0) -> Report:
    """Report progress for log files: at most one line every 30 seconds."""
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
    """Plain JSON on standard output, without colours or line breaks."""
    is_utf = (sys.stdout.encoding or "utf-8").lower().startswith("utf")
    sys.stdout.write(json_line(value, only_ascii=not is_utf) + "\n")


def describe(pair: GraphPair) -> str:
    """A pair in one line."""
    fold = f", fold {pair.fold}" if pair.fold else ""
    sides = " / ".join(map(_size, (pair.source, pair.target)))
    return f"{pair.name}{fold}: {sides}; {counted(len(pair.train), 'seed')}"


def _size(graph: KnowledgeGraph) -> str:
    """Rows and values of tables, entities and triples of graphs."""
    if not graph.is_table:
        return f"{counted(graph.num_entities, 'entity')}, {counted(graph.num_triples, 'triple')}"
    references = f", {counted(graph.num_triples, 'reference')}" if graph.num_triples else ""
    return f"{counted(graph.num_entities, 'row')}, {counted(len(graph.literals), 'value')}{references}"


def show_notes(pair: GraphPair, quiet: bool) -> None:
    """Print the notes that reading the data produced."""
    for note in () if quiet else pair.notes:
        err.print(f"[yellow]Note:[/yellow] {as_text(note)}")


def show_overlap(result: Result) -> None:
    """Print how much the graphs seem to share, and what was made of it."""
    if result.overlap is not None:
        out.print(f"[bold]{as_text(result.overlap.tell())}.[/bold] {as_text(accepted_words(result))}", highlight=False)


def accepted_words(result: Result) -> str:
    """How many links were accepted, how many of them should be right, and how many were left out."""
    expected = result.expected_right
    text = f"{counted(len(result.matching), 'link')} accepted"
    if expected is not None and len(result.matching):
        text += f", of which about {expected:,.0f} should be right"
    if not len(result.doubtful):
        return text + "."
    worth = len(result.worth_a_look)
    look = f", {worth:,} of them worth a look (doubtful.tsv)" if worth else ""
    return f"{text}; {len(result.doubtful):,} left out{look}."


def show_cautions(result: Result) -> None:
    """Print what is to be known before links or scores are trusted."""
    for caution in result.cautions:
        out.print(f"[yellow]Note:[/yellow] {as_text(caution)}.")


def show_strings(result: Result) -> None:
    """Print the string baseline; yellow if it solves most of the links."""
    if result.strings is not None:
        from rlea.evaluation.string_baseline import describe_probe, is_easy

        strings = result.strings.as_dict()
        style = "yellow" if is_easy(strings) else "dim"
        out.print(f"[{style}]{as_text(describe_probe(strings))}[/{style}]", highlight=False)


def markdown_view(text: str) -> Markdown:
    """Markdown for the terminal; line breaks within cells become spaces."""
    return Markdown(text.replace("<br>", " "))


def percent(value: float | None) -> str:
    """A share as a percentage; a dash for None."""
    return "-" if value is None else f"{100 * value:.1f}"


def make_table(title: str, texts: Sequence[str], numbers: Sequence[str], folded: Sequence[str] = ()) -> Table:
    """An empty table with columns of text, then columns of numbers; columns `folded` break long words."""
    table = Table(title=as_text(title), title_justify="left")
    for name in texts:
        table.add_column(as_text(name), overflow="fold" if name in folded else "ellipsis")
    for name in numbers:
        table.add_column(as_text(name), justify="right")
    return table


def bench_table(results: list[Result]) -> Table:
    """A comparison, one row per matcher."""
    shared = next((result for result in results if not is_by_evidence(result)), results[0])
    title = f"pool {shared.pool}"
    if not is_by_evidence(shared):
        search = "" if shared.search["kind"] == "exact" else f" by {search_words(shared)}"
        title = f"{', '.join(shared.settings.embedding)}, {title}, {shared.settings.candidates} candidates{search}"
    title += " (per cent)" + (", gold is complete" if shared.settings.gold_complete else "")
    title += f", {hidden_words(shared)} hidden" if shared.settings.hide else ""
    table = make_table(title, ["matcher"], ("Hits@1", "precision", "recall", "F1", "links", "seconds", "MB"))
    best = max((result.links.f1 for result in results if result.links), default=0.0)
    for result in results:
        links, seconds = result.links, result.seconds
        assert links is not None
        table.add_row(
            result.settings.matcher,
            *(percent(value) for value in (links.hits_at_1, links.precision, links.recall, links.f1)),
            f"{len(result.matching):,}",
            (f"{seconds['train']:.1f} + " if "train" in seconds else "") + f"{seconds['match']:.2f}",
            f"{result.peak_memory_mb:,.0f}",
            style="bold" if links.f1 == best else "",
        )
    return table


def result_table(result: Result) -> Table:
    """The outcome of one run."""
    summary = result.summary()
    seconds = {"read": 0.0, **summary["seconds"]}  # reading comes first, though it is added last
    judged = "-" if summary["judged"] is None else f"{summary['judged']:,}, of which {summary['correct']:,} correct"
    has_unjudged = result.links is not None and result.links.judged < result.links.matched
    facts = {
        "links": f"{summary['matched']:,}" + (" (without the seeds)" if len(result.pair.train) else ""),
        "pool": f"{result.pool}",
        **({"hidden": hidden_words(result)} if result.settings.hide else {}),
        "links that gold can judge": judged + (", gold is complete" if summary["gold_complete"] else ""),
        "Hits@1": percent(summary["hits@1"]),
        "precision": percent(summary["precision"]),
        **({"precision of all links": percent(summary["precision_of_all"])} if has_unjudged else {}),
        "recall": percent(summary["recall"]),
        "F1": percent(summary["f1"]),
        "gold links among candidates": percent(summary["coverage"]),
        "search": search_words(result),
        **({"start": summary["started"]} if summary["started"] else {}),
        "seconds": ", ".join(f"{stage} {value:.1f}" for stage, value in seconds.items()),
        "peak memory": f"{summary['peak_memory_mb']:,.0f} MB",
    }
    if result.links is None:
        facts = {name: value for name, value in facts.items() if value != "-"}
    method = " + ".join(part for part in (*result.settings.embedding, result.settings.matcher) if part)
    return fact_table(f"{method} on {result.pair.name}", facts)


def channel_table(result: Result) -> Table | None:
    """What each channel contributed; None if the matcher uses no channels."""
    rows = result.summary()["channels"]
    table = make_table("What each channel contributed", ["channel"], ("pairs proposed", "mutual best links", "unique"))
    for row in rows:
        table.add_row(
            row["channel"], *(f"{row[name]:,}" if row[name] else "-" for name in ("proposed", "found", "alone"))
        )
    return table if rows else None


def is_by_evidence(result: Result) -> bool:
    """Whether the matcher finds its own candidates, without vectors."""
    return bool(result.search["kind"] == "evidence")


def search_words(result: Result) -> str:
    """How candidates were found and, for an approximate search, its recall."""
    search = result.search
    if search["kind"] in ("exact", "evidence"):
        return "by evidence" if is_by_evidence(result) else "exact"
    if search["exact_instead"]:
        means = "an index" if search["kind"] == "names" else "cells"
        return f"exact ({means} would not have been faster)"
    found = f"{percent(search['recall'])} % of the exact ones"
    if search["kind"] == "names":
        visits = "at most {:,} and {:,}".format(*search["budgets"])
        return f"index of names ({found}, {visits} visits per name)"
    return f"approximate search ({found}, {search['probes']:,} of {search['cells']:,} cells probed)"


def hidden_words(result: Result) -> str:
    """What was hidden from the models, and whether that is certain."""
    from rlea.graph.masking import describe_hidden

    return describe_hidden(result.settings.hide, result.info)


def fact_table(title: str, facts: dict[str, Any]) -> Table:
    """Names and values; nested values are left out (the record has them)."""
    table = Table(title=as_text(title), title_justify="left", show_header=False)
    for name, value in facts.items():
        if isinstance(value, dict | list):
            continue
        if isinstance(value, float):
            value = f"{value:.1f}" if name in ("seconds", "peak_memory_mb") else f"{value:.4f}"
        table.add_row(name, as_text(str(value)))
    return table


def link_table(result: Result, count: int = 6) -> Table | str:
    """A few of the most confident links, by name; a sentence if there are none."""
    import numpy as np

    matching, pair = result.matching, result.pair
    if not len(matching):
        if len(result.doubtful) and result.cut.startswith("--keep"):
            return "[yellow]No link is sure enough to be written.[/yellow] Add --keep all to see them, or give seeds."
        has_cut = len(result.doubtful) > 0
        if has_cut and result.settings.precision:
            surest = f"the surest has a confidence of {result.doubtful.confidences.max():.2f}"
            return (
                f"[yellow]No link is sure enough:[/yellow] {surest}. Ask for less, or add --keep all to see them all."
            )
        why = f"{result.cut} removed all of them" if has_cut else "the graphs have nothing in common that was used"
        return f"[yellow]No link was found:[/yellow] {why}. Seeds, or all evidence (`--matcher fused`), may help."
    table = make_table("Some of the most confident links", ("source", "target"), ["confidence"])
    order = np.argsort(-matching.confidences, kind="stable")
    # If there are many, take them from all of the first half: the very first ones look alike.
    step = max(len(order) // 2 // count, 1) if len(order) > 2 * count else 1
    for place in order[::step][:count]:
        table.add_row(
            as_text(pair.source.names[matching.source_ids[place]]),
            as_text(pair.target.names[matching.target_ids[place]]),
            f"{matching.confidences[place]:.3f}",
        )
    return table
