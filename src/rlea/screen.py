"""What the terminal shows: progress, tables, JSON. Results go to standard output, everything else to standard error."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console, Group
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

if TYPE_CHECKING:
    from rlea.explain import Case, Contradiction, Explanation, Relation
    from rlea.explain import Link as ExplainedLink
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
        f"{graph.num_entities:,} entities, {graph.num_triples:,} triples" for graph in (pair.source, pair.target)
    )
    return f"{pair.name}{fold}: {sides}; {len(pair.train):,} seeds"


def show_notes(pair: GraphPair, quiet: bool) -> None:
    """What the reader had to say."""
    if not quiet:
        for note in pair.notes:
            err.print(f"[yellow]Note:[/yellow] {escape(note)}")


def show_strings(result: Result) -> None:
    """What equal strings would have solved, as a warning where it is most."""
    if result.strings is not None:
        from rlea.probe import describe_probe, is_easy

        told = result.strings.as_dict()
        text = escape(describe_probe(told))
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
    from rlea.blind import describe_hidden

    return describe_hidden(result.settings.hide, result.info)


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
            escape(pair.source.names[matching.source_ids[place]]),
            escape(pair.target.names[matching.target_ids[place]]),
            f"{matching.confidences[place]:.3f}",
        )
    return table


def explanation_view(answer: Explanation, rows: int = 8) -> Group:
    """Why a link is as it is, in a few sentences and tables; `rows` bounds each table."""
    parts: list[Any] = [*_verdict(answer), *(f"[yellow]Note:[/yellow] {escape(note)}" for note in answer.notes)]
    if answer.case is not None:
        parts += _case_parts(answer.case, rows, "the vectors" if answer.embedding else "names, words or attributes")
    if answer.rivals:
        parts.append(_rival_table(answer))
    return Group(*parts)


def _verdict(answer: Explanation) -> list[str]:
    """What became of the pair, or of the source."""
    source, target, link = answer.source, answer.target, answer.link
    ends = escape(source.name) if target is None else f"{escape(source.name)} - {escape(target.name)}"
    shown = escape(source.identifier) if target is None else escape(f"{source.identifier} - {target.identifier}")
    by = f"by {answer.matcher}" + (f" on {answer.embedding}" if answer.embedding else "")
    lines = []
    if answer.outcome == "seed":
        lines.append("A seed: it was given, not decided.")
    elif answer.outcome == "matched":
        assert link is not None
        lines.append(f"Matched {escape(by)}: {_decision(link, answer)}.")
    elif answer.outcome == "not matched":
        lines.append(f"Not matched {escape(by)}.")
        for name, other in ((source.name, link), ("" if target is None else target.name, answer.taken)):
            if other is not None:
                partner = other.target if other is link else other.source
                lines.append(f"{escape(name)} is matched with {escape(partner.name)}: {_decision(other, answer)}.")
    else:
        lines.append(f"No link was found for it {escape(by)}.")
    if answer.left_out is not None:
        lost = answer.left_out
        lines.append(
            f"It was matched with {escape(lost.target.name)} ({_decision(lost, answer)}), "
            "which is not among the links that were kept."
        )
    if not answer.in_pool and answer.outcome != "seed":
        lines.append(f"It was not to be matched: not among the entities of the pool ({escape(answer.pool)}).")
    return [f"[bold]{ends}[/bold]", f"[dim]{shown}[/dim]", *lines]


def _decision(link: ExplainedLink, answer: Explanation) -> str:
    """When a link was decided and how surely."""
    if link.is_seed:
        return "a seed"
    step = "" if link.step is None else f"step {link.step:,} of {answer.num_steps:,}, "
    return f"{step}confidence {link.confidence:.2f}"


def _case_parts(case: Case, rows: int, beside: str) -> list[Any]:
    """What speaks for a pair, and what against it; `beside` is where more may come from."""
    parts: list[Any] = []
    if case.supports:
        table = Table(title=f"Neighbours that speak for it (evidence {case.evidence:.3f})", title_justify="left")
        table.add_column("neighbours")
        table.add_column("through", overflow="fold")
        for name in ("correspond", "identify", "trust", "evidence"):
            table.add_column(name, justify="right")
        shown = [row for row in case.supports[:rows] if row.evidence >= 0.0005 or row is case.supports[0]]
        for row in shown:
            table.add_row(
                escape(f"{row.source.name}\n{row.target.name}") + (" [dim](seed)[/dim]" if row.is_seed else ""),
                escape(f"{_arrow(row.source_relation)}\n{_arrow(row.target_relation)}"),
                *(f"{value:.2f}" for value in (row.correspondence, row.identifying, row.trust)),
                f"{row.evidence:.3f}",
            )
        table.caption = _more(len(case.supports) - len(shown))
        parts.append(table)
    else:
        parts.append(f"No matched neighbour speaks for it: what there is comes from {beside}.")
    against = [("source", row) for row in case.source_contradictions if _is_against(row)]
    against += [("target", row) for row in case.target_contradictions if _is_against(row)]
    against.sort(key=lambda found: -found[1].missing)
    if against:
        title = f"Neighbours matched elsewhere (missing {case.source_missing:.2f} / {case.target_missing:.2f})"
        table = Table("side", "neighbour", "through", "matched with", title=title, title_justify="left")
        table.add_column("weight", justify="right")
        for side, contradiction in against[:rows]:
            seed = " [dim](seed)[/dim]" if contradiction.is_seed else ""
            table.add_row(
                side,
                escape(contradiction.neighbour.name),
                escape(_arrow(contradiction.relation)),
                escape(contradiction.counterpart.name) + seed,
                f"{contradiction.missing:.2f}",
            )
        table.caption = _more(len(against) - rows)
        parts.append(table)
    return parts


def _is_against(row: Contradiction) -> bool:
    """Whether a contradiction is worth a row: no edge at all leads there, and one would be expected."""
    return not row.seen and row.missing >= 0.005


def _rival_table(answer: Explanation) -> Table:
    """Other targets of the same source."""
    title = "Its best candidates" if answer.outcome == "no link" else "Rivals"
    table = Table("target", title=title, title_justify="left")
    has_worth = any(rival.case.worth is not None for rival in answer.rivals)
    for name in ("worth", "evidence", "missing") if has_worth else ("evidence", "missing"):
        table.add_column(name, justify="right")
    table.add_column("what became of it")
    for rival in answer.rivals:
        case = rival.case
        worth = ["-" if case.worth is None else f"{case.worth:.2f}"] if has_worth else []
        missing = f"{case.source_missing + case.target_missing:.2f}"
        table.add_row(escape(rival.target.name), *worth, f"{case.evidence:.3f}", missing, escape(rival.why))
    return table


def _arrow(relation: Relation) -> str:
    """A relation with its direction, as seen from the entity in question."""
    return f"{relation.name} →" if relation.is_outward else f"← {relation.name}"


def _more(count: int) -> str | None:
    return f"and {count:,} more (--json has them all)" if count > 0 else None
