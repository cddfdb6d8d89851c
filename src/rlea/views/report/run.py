"""The page of a run: what was found, how sure it is, where it went wrong and how it was learnt.

It is made of what the folder of a run keeps, so that it can be made again later, the same to the byte.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from rlea.evaluation import metrics
from rlea.evaluation.gold_ranks import follow_links, pair_keys
from rlea.evaluation.string_baseline import describe_probe, is_easy
from rlea.graph import Links
from rlea.io.writers.rows import DECIMALS
from rlea.masking import describe_hidden
from rlea.matchers import MATCHERS
from rlea.matching import Matching
from rlea.progress import counted
from rlea.record import as_dict, as_json
from rlea.views.report.fates import count_fates
from rlea.views.report.hardest import Drawing
from rlea.views.report.learning import CURVE_POINTS, choice_rows, is_number, learning_plots
from rlea.views.report.page import (
    Plot,
    Section,
    fact_table,
    fold_away,
    make,
    paragraph,
    plot_cards,
    render_page,
    side_by_side,
    table,
    tiles,
)
from rlea.views.report.plots import UNIT, bar_plot, line_plot, lines_plot, stacked_bar
from rlea.views.report.schema import TITLE as SCHEMA_TITLE
from rlea.views.report.schema import render_schema

if TYPE_CHECKING:
    from rlea.agent.trace import Trace
    from rlea.evaluation.gold_ranks import Standing
    from rlea.graph import GraphPair
    from rlea.graph.schema import Schema

ROWS = 15  # of each table of examples


def render_run(
    pair: GraphPair,
    matching: Matching,
    record: dict[str, Any],
    *,
    trace: Trace | None = None,
    standing: Standing | None = None,
    notes: Iterable[str] = (),
    schema: Schema | None = None,
) -> str:
    """The page as text. Links are judged where gold links are known and only shown where they are not.

    `record` is what `run.json` holds or will hold. `notes` say what a reader should know beside what the record tells.
    `schema` is what corresponds besides entities, where the matcher says so.
    """
    record = json.loads(as_json(record))
    # As links.tsv keeps them: the page must not hang on digits that are not written.
    confidences = np.round(matching.confidences.astype(np.float64), DECIMALS)
    matching = Matching.of(matching.source_ids, matching.target_ids, confidences)
    gold, summary, info = pair.test, as_dict(record.get("result")), as_dict(record.get("embedding_info"))
    fates = follow_links(matching, gold, standing, _weighed(trace))
    title = f"{pair.name}, fold {pair.fold}" if pair.fold else pair.name
    sections = [
        Section(
            "",
            _about(pair, summary, [*pair.notes, *notes])
            + _seen(summary, info)
            + tiles(_figures(matching, gold, summary)),
        ),
        Section("", plot_cards(link_plots(matching, gold))),
        Section("Results", _results(summary, matching, gold)),
        Section("What each channel contributed", _channels(summary)),
        Section("Where errors come from", _errors(fates, summary, has_standing=standing is not None)),
        Section("The hardest pairs", _hardest(pair, matching, fates, standing, trace)),
        Section(SCHEMA_TITLE, render_schema(schema, pair) if schema is not None else Markup()),
        Section("How it was learnt", _learning(info)),
        *_examples(pair, matching),
        Section("", fold_away("Record of the run", as_json(record))),
    ]
    return render_page(title, [section for section in sections if section.html])


def judge_links(matching: Matching, gold: Links) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which links are right and which are wrong, two masks of shape (num_links,); neither where gold cannot tell."""
    right = np.isin(pair_keys(matching), pair_keys(gold))
    judged = np.isin(matching.source_ids, gold.source_ids) | np.isin(matching.target_ids, gold.target_ids)
    return right, judged & ~right


# ---- what was run, and what came out --------------------------------------------------------------------------------


def _about(pair: GraphPair, summary: dict[str, Any], notes: Iterable[str]) -> Markup:
    """The data and the settings in a few words, and what a reader should know first."""
    source, target = pair.source, pair.target
    text = (
        f"{source.num_entities:,} and {target.num_entities:,} entities, {source.num_triples:,} and "
        f"{target.num_triples:,} triples, {counted(len(pair.train), 'seed')}."
    )
    settings = [
        f"{summary[name]} candidates{_searched(summary)}" if name == "candidates" else f"{name} {summary[name]}"
        for name in ("embedding", "matcher", *(() if _is_by_evidence(summary) else ("candidates",)), "pool", "seed")
        if summary.get(name, "") != ""
    ]
    if settings:
        text += f" Aligned with {', '.join(settings)}."
    if summary.get("cut"):
        text += f" Links left out by {summary['cut']}."
    about = paragraph(text)
    for note in notes:
        about += paragraph(f"Note: {note}.")
    if not len(pair.test):
        about += paragraph(
            "There are no gold links, so nothing is judged: precision, recall, calibration and errors are missing. "
            "To have them, align with --gold FILE."
        )
    return about


def _seen(summary: dict[str, Any], info: dict[str, Any]) -> Markup:
    """What was hidden from the models, and what equal strings would have solved."""
    told = Markup()
    if summary.get("hidden"):
        told += paragraph(f"Hidden from all models: {describe_hidden(summary['hidden'], info)}.")
    if strings := as_dict(summary.get("strings")):
        told += make("run.html.j2", "strings", describe_probe(strings), is_easy(strings))
    return told


def _is_by_evidence(summary: dict[str, Any]) -> bool:
    """Whether the candidates are pairs that the matcher came upon itself."""
    return as_dict(summary.get("search")).get("kind") == "evidence"


def _searched(summary: dict[str, Any]) -> str:
    """How candidates were found, where it was not by the exact search."""
    search = summary.get("search", {})
    words = {"approximate": "approximate search", "names": "an index of names"}.get(search.get("kind"))
    return f" by {words} ({100 * search['recall']:.1f} % of the exact ones)" if words else ""


def _figures(matching: Matching, gold: Links, summary: dict[str, Any]) -> list[tuple[str, str]]:
    """The figures at the top, each with what it is of."""
    figures = [(f"{len(matching):,}", "links")]
    if len(gold):
        links = metrics.link_metrics(matching, gold)
        ignored = f"; {links.ignored:,} not judged" if links.ignored else ""
        figures += [
            (f"{links.matched:,}", f"judged by gold: {links.correct:,} right{ignored}"),
            (_percent(links.precision), f"precision, of {links.matched:,} judged"),
            (_percent(links.recall), f"recall, of {links.gold:,} in gold"),
            (_percent(links.f1), "F1"),
        ]
    if seconds := _seconds(summary):
        figures.append((f"{sum(seconds.values()):,.1f} s", "all stages"))
    return figures


def _results(summary: dict[str, Any], matching: Matching, gold: Links) -> Markup:
    tables = [fact_table("result", result_rows(summary, matching, gold))]
    if costs := cost_rows(summary):
        tables.append(fact_table("time and memory", costs))
    return side_by_side(tables)


def _channels(summary: dict[str, Any]) -> Markup:
    """How the run began, and what each kind of evidence had to do with its links; nothing for other matchers."""
    rows = summary.get("channels") or []
    if not rows:
        return Markup()
    began = str(summary.get("began", ""))
    shown = [(row["channel"], *(f"{row[key]:,}" for key in ("proposed", "found", "alone"))) for row in rows]
    columns = ("channel", "pairs proposed", "links it finds best", "no other does")
    note = (
        "A channel finds a link best where no other pair of its two entities has a higher score. What no channel finds "
        "best, structure found: matches that speak for their neighbours."
    )
    return paragraph(f"{began[:1].upper()}{began[1:]}.") + table(columns, shown, (1, 2, 3)) + paragraph(note)


def result_rows(summary: dict[str, Any], matching: Matching, gold: Links) -> list[tuple[str, str]]:
    """The result as (what, value): of the links, of the confidences, and of the vectors before any decision."""
    rows = [("links", f"{len(matching):,}")]
    if not len(gold):
        return rows
    links = metrics.link_metrics(matching, gold)
    rows += [
        ("links that gold can judge", f"{links.matched:,}"),
        ("of these right", f"{links.correct:,}"),
        ("gold links", f"{links.gold:,}"),
        ("precision", _percent(links.precision)),
        ("recall", _percent(links.recall)),
        ("F1", _percent(links.f1)),
        ("Hits@1", _percent(links.hits_at_1)),
        ("expected calibration error", f"{metrics.expected_calibration_error(matching, gold):.3f}"),
    ]
    if is_number(summary.get("coverage")):
        is_counted = is_number(summary.get("candidates")) and not _is_by_evidence(summary)
        searched = f"{summary['candidates']:,} " if is_counted else ""
        rows.append((f"gold links among the {searched}candidates", _percent(summary["coverage"])))
    ranks = as_dict(summary.get("ranks"))
    for name, value in ranks.items():
        if name.startswith("hits@") and is_number(value):
            rows.append((f"vectors alone: Hits@{name.removeprefix('hits@')}", _percent(value)))
    if is_number(ranks.get("mrr")):
        rows.append(("vectors alone: mean reciprocal rank", f"{ranks['mrr']:.3f}"))
    return rows


def cost_rows(summary: dict[str, Any]) -> list[tuple[str, str]]:
    """Seconds by stage and memory, as far as they are recorded."""
    rows = [(stage, f"{value:,.1f} s") for stage, value in _seconds(summary).items()]
    if is_number(summary.get("peak_memory_mb")):
        rows.append(("memory at its peak", f"{summary['peak_memory_mb']:,.0f} MB"))
    return rows


def link_plots(matching: Matching, gold: Links) -> list[Plot]:
    """How sure the links are and, where gold links are known, whether they are right to be."""
    counts, _ = np.histogram(matching.confidences, bins=20, range=(0.0, 1.0))
    plots = [Plot("Links by confidence", bar_plot(counts.tolist(), "confidence", "links"))]
    if not len(gold):
        return plots
    curve = metrics.precision_recall_curve(matching, gold)
    last = len(curve.threshold) - 1
    keep = np.unique(np.linspace(0, max(last, 0), CURVE_POINTS).astype(np.intp))[: last + 1]
    lines = {
        name: list(zip(curve.threshold[keep].tolist(), values[keep].tolist(), strict=True))
        for name, values in (("precision", curve.precision), ("recall", curve.recall))
    }
    svg = lines_plot(lines, "links at least this sure", "share", x_axis=UNIT, y_axis=UNIT)
    note = f"average precision: {curve.average_precision:.2f}"
    plots.append(Plot("Precision and recall against confidence", svg, note))
    points = [(part.mean_confidence, part.accuracy) for part in metrics.calibration(matching, gold)]
    svg = line_plot(points, "confidence", "share that is right", diagonal=True)
    note = f"expected calibration error: {metrics.expected_calibration_error(matching, gold):.3f}"
    plots.append(Plot("Is the confidence to be trusted? On the diagonal it is", svg, note))
    return plots


# ---- where it went wrong --------------------------------------------------------------------------------------------


def _errors(fates: NDArray[np.int8], summary: dict[str, Any], *, has_standing: bool) -> Markup:
    """Every gold link once, by what became of it; nothing without gold links."""
    parts = count_fates(fates, with_candidates=has_standing)
    if not parts:
        return Markup()
    note = ""
    if not has_standing:
        note = (
            "The run does not keep who was among the candidates: a right target that was not is counted as lost or "
            "left out. Align again to tell them apart."
        )
    elif summary.get("matcher") in [name for name, matcher in MATCHERS.items() if matcher.uses_structure]:
        note = (
            "This matcher weighs pairs beyond the candidates, too. A right one that lost there may be counted as not "
            "among them."
        )
    bar = stacked_bar([(part.name, part.count) for part in parts], "What became of the gold links")
    return make("run.html.j2", "fates_card", bar, parts, len(fates), note)


def _hardest(
    pair: GraphPair, matching: Matching, fates: NDArray[np.int8], standing: Standing | None, trace: Trace | None
) -> Markup:
    """Wrong and missed links with their neighbourhoods; where nobody can judge, the least sure ones."""
    is_judged = len(pair.test) > 0
    drawing = Drawing(pair, matching, judge_links(matching, pair.test)[1], standing, trace)
    wrong = drawing.wrong_links()
    groups = {
        "Wrong links, the surest first": wrong,
        "Gold links that were missed, those that stood worst first": drawing.missed_links(
            fates, [one.source_id for one in wrong]
        ),
        "The least sure links": [] if is_judged else drawing.doubtful_links(),
    }
    drawn = Markup().join(make("run.html.j2", "pictures", title, pairs) for title, pairs in groups.items() if pairs)
    return make("run.html.j2", "picture_key", is_judged) + drawn if drawn else Markup()


def _weighed(trace: Trace | None) -> Links | None:
    """The pairs that an agent is known to have weighed: the best of every source, and the links."""
    if trace is None:
        return None
    best = Links.of(trace.pair_source_ids, trace.pair_target_ids)
    return Links.union([best, Links.of(trace.source_ids, trace.target_ids)])


# ---- how it was learnt ----------------------------------------------------------------------------------------------


def _learning(info: dict[str, Any]) -> Markup:
    plots, choices = learning_plots(info), choice_rows(info)
    if plots:
        html = plot_cards(plots)
    else:
        html = paragraph("No learning curves: nothing was trained in this run, or its course is not recorded.")
    if choices:
        columns = ("weight of the re-estimated vectors", "weight of the given vectors", "right", "")
        order = ", one joint round after the other" if info.get("joint") else ""
        html += paragraph(f"What the agent tried on links held back for it{order}:") + table(columns, choices, (2,))
    return html


# ---- examples -------------------------------------------------------------------------------------------------------


def _examples(pair: GraphPair, matching: Matching) -> list[Section]:
    """Some sure links, the least sure, and the wrong ones."""
    right, wrong = judge_links(matching, pair.test)
    order = np.argsort(-matching.confidences, kind="stable")
    wrong_places = order[wrong[order]]
    tables = {
        "From the surer half": order[:: max(len(order) // 2 // ROWS, 1)][:ROWS],
        "Least sure": order[-ROWS:],
        f"Wrong, the surest first ({len(wrong_places):,} in all)": wrong_places[:ROWS],
    }
    sections = []
    for heading, places in tables.items():
        rows = [_row(pair, matching, int(place), bool(right[place]), bool(wrong[place])) for place in places]
        if rows:
            sections.append(Section(heading, make("run.html.j2", "link_table", rows, len(pair.test) > 0)))
    return sections


def _row(pair: GraphPair, matching: Matching, place: int, right: bool, wrong: bool) -> dict[str, str]:
    """A link in words, with the verdict where gold has one and what had been right where it is wrong."""
    source, target = int(matching.source_ids[place]), int(matching.target_ids[place])
    should_be = pair.test.target_ids[pair.test.source_ids == source][:1] if wrong else []
    return {
        "source": pair.source.names[source],
        "target": pair.target.names[target],
        "source_id": pair.source.entities[source],
        "target_id": pair.target.entities[target],
        "confidence": f"{matching.confidences[place]:.3f}",
        "verdict": "right" if right else "wrong" if wrong else "",
        "right": pair.target.names[int(should_be[0])] if len(should_be) else "",
    }


def _seconds(summary: dict[str, Any]) -> dict[str, float]:
    return {str(stage): value for stage, value in as_dict(summary.get("seconds")).items() if is_number(value)}


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"
