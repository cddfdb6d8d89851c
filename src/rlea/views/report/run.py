"""The HTML report of a run: its links, their confidence, the errors and the training.

It is made from the files in the folder of a run, so that it can be made again later, byte for byte.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from rlea.deciders import DECIDERS
from rlea.evaluation import metrics
from rlea.evaluation.gold_ranks import error_types
from rlea.evaluation.string_baseline import describe_probe, is_easy
from rlea.graph import Links
from rlea.graph.masking import describe_hidden
from rlea.io.writers.rows import DECIMALS
from rlea.matching import Matching
from rlea.progress import counted
from rlea.record import as_dict, as_json, is_number
from rlea.views.report import page
from rlea.views.report.hardest import HardestPairs, count_errors
from rlea.views.report.learning import CURVE_POINTS, choice_rows, learning_plots
from rlea.views.report.page import Plot, Section, make, paragraph
from rlea.views.report.plots import UNIT, bar_plot, line_plot, lines_plot, stacked_bar
from rlea.views.report.schema import TITLE as SCHEMA_TITLE
from rlea.views.report.schema import render_schema

if TYPE_CHECKING:
    from rlea.agent.trace import Trace
    from rlea.evaluation.gold_ranks import GoldRanks
    from rlea.graph import GraphPair
    from rlea.graph.schema import Schema

ROWS = 15  # of each table of examples


def render_run(
    pair: GraphPair,
    matching: Matching,
    record: dict[str, Any],
    *,
    trace: Trace | None = None,
    gold_ranks: GoldRanks | None = None,
    notes: Iterable[str] = (),
    schema: Schema | None = None,
) -> str:
    """The page as text. Links are judged if gold links are known.

    `record` is the contents of `run.json`. `notes` are shown besides those of the pair. `schema` are the corresponding
    relations, attributes and classes, if the matcher finds them.
    """
    record = {key: value for key, value in json.loads(as_json(record)).items() if key != "files"}  # of the page, too
    # Rounded as in links.tsv: the page must not depend on digits that are not written.
    confidences = np.round(matching.confidences.astype(np.float64), DECIMALS)
    matching = Matching.of(matching.source_ids, matching.target_ids, confidences)
    gold, summary, info = pair.test, as_dict(record.get("result")), as_dict(record.get("embedding_info"))
    complete, scored = _is_complete(summary), metrics.without_validation(matching, gold, pair.valid)
    types = error_types(matching, gold, gold_ranks, None if trace is None else trace.scored_pairs)
    told = [*summary.get("notes", pair.notes), *notes]
    about = _about(pair, summary, info, list(dict.fromkeys(told)))
    sections = [
        Section("", about + page.tiles(_figures(matching, scored, gold, summary))),
        Section("", page.plot_cards(link_plots(matching, scored, gold, complete))),
        Section("Results", _results(summary, matching, scored, gold)),
        Section("What each channel contributed", _channels(summary)),
        Section("Errors by type", _errors(types, summary, has_ranks=gold_ranks is not None)),
        Section("Hardest pairs", _hardest(pair, matching, complete, types, gold_ranks, trace)),
        Section(SCHEMA_TITLE, render_schema(schema, pair) if schema is not None else Markup()),
        Section("Training", _training(info)),
        *_examples(pair, matching, complete),
        Section("", page.fold_away("Record of the run", as_json(record))),
    ]
    title = f"{pair.name}, fold {pair.fold}" if pair.fold else pair.name
    return page.render_page(title, [section for section in sections if section.html])


def judge_links(
    matching: Matching, gold: Links, complete: bool = False, valid: Links | None = None
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which links are correct and which are wrong, two masks of shape (num_links,); neither if gold cannot judge."""
    correct = np.isin(metrics.pair_keys(matching), metrics.pair_keys(gold))
    judged = np.isin(matching.source_ids, gold.source_ids) | np.isin(matching.target_ids, gold.target_ids)
    if complete:
        scored = metrics.without_validation(matching, gold, valid or Links.empty())
        judged = np.isin(metrics.pair_keys(matching), metrics.pair_keys(scored))
    return correct, judged & ~correct


# ---- the run and its results ----------------------------------------------------------------------------------------


def _about(pair: GraphPair, summary: dict[str, Any], info: dict[str, Any], notes: Iterable[str]) -> Markup:
    """The data, the settings, the notes, what was hidden from the models, and the string baseline."""
    source, target = pair.source, pair.target
    text = (
        f"{source.num_entities:,} and {target.num_entities:,} entities, {source.num_triples:,} and "
        f"{target.num_triples:,} triples, {counted(len(pair.train), 'seed')}."
    )
    names = ("embedding", "matcher", *(() if _is_by_evidence(summary) else ("candidates",)), "pool", "seed")
    settings = [
        f"{summary[name]} candidates{_search(summary)}" if name == "candidates" else f"{name} {summary[name]}"
        for name in names
        if summary.get(name, "") != ""
    ]
    if settings:
        text += f" Aligned with {', '.join(settings)}."
    if _is_complete(summary):
        text += " Gold is taken as complete."
    overlap = as_dict(summary.get("overlap"))
    if overlap.get("told"):
        text += f" {overlap['told']}."
    if is_number(summary.get("doubtful")) and summary["doubtful"]:
        text += f" Left out by {summary['cut']}: {counted(summary['doubtful'], 'doubtful link')}."
    if not len(pair.test):
        notes = [*notes, "there are no gold links, so nothing is judged; to see errors, align with --gold FILE"]
    html = paragraph(text) + Markup().join(paragraph(f"Note: {note}.") for note in notes)
    if summary.get("hidden"):
        html += paragraph(f"Hidden from all models: {describe_hidden(summary['hidden'], info)}.")
    if strings := as_dict(summary.get("strings")):
        html += make("run.html.j2", "strings", describe_probe(strings), is_easy(strings))
    return html


def _is_by_evidence(summary: dict[str, Any]) -> bool:
    """Whether the matcher found its own candidates, without vectors."""
    return as_dict(summary.get("search")).get("kind") == "evidence"


def _search(summary: dict[str, Any]) -> str:
    """How candidates were found, unless by the exact search."""
    search = summary.get("search", {})
    words = {"approximate": "approximate search", "names": "an index of names"}.get(search.get("kind"))
    if not words or search.get("exact_instead"):
        return ""
    return f" by {words} ({100 * search['recall']:.1f} % of the exact ones)"


def _figures(matching: Matching, scored: Matching, gold: Links, summary: dict[str, Any]) -> list[tuple[str, str]]:
    """The main figures, each with its meaning."""
    figures = [(f"{len(matching):,}", "links")]
    if is_number(summary.get("expected_right")) and len(matching):
        figures.append((f"{summary['expected_right']:,.0f}", "expected to be right"))
    if len(gold):
        links = metrics.link_metrics(scored, gold, complete=_is_complete(summary))
        ignored = f"; {links.matched - links.judged:,} not judged" if links.judged < links.matched else ""
        figures += [
            (f"{links.judged:,}", f"judged by gold: {links.correct:,} correct{ignored}"),
            (_percent(links.precision), f"precision, of {links.judged:,} judged"),
            (_percent(links.recall), f"recall, of {links.gold:,} in gold"),
            (_percent(links.f1), "F1"),
        ]
    if seconds := _seconds(summary):
        figures.append((f"{sum(seconds.values()):,.1f} s", "all stages"))
    return figures


def _channels(summary: dict[str, Any]) -> Markup:
    """How the run started, and what each channel contributed; empty for matchers without channels."""
    rows = summary.get("channels") or []
    if not rows:
        return Markup()
    started = str(summary.get("started", ""))
    keys = ("proposed", "found", "alone")
    shown = [(row["channel"], *(f"{row[key]:,}" if row[key] else "-" for key in keys)) for row in rows]
    columns = ("channel", "pairs proposed", "mutual best", "unique")
    note = (
        "Links by channel. A link is a mutual best of a channel if no other pair of its source or target has as high a "
        "score there; unique ones are so in no other channel. Links that are the mutual best of no channel were found "
        "by structure: matched neighbours support them. It proposes no pairs of its own."
    )
    return paragraph(f"{started}.") + page.table(columns, shown, (1, 2, 3)) + paragraph(note)


def _results(summary: dict[str, Any], matching: Matching, scored: Matching, gold: Links) -> Markup:
    """Metrics of links, confidences, candidates, and vectors before matching; time and memory."""
    rows = [("links", f"{len(matching):,}")]
    if len(gold):
        complete = _is_complete(summary)
        links = metrics.link_metrics(scored, gold, complete=complete)
        rows += [
            ("links that gold can judge", f"{links.judged:,}"),
            ("of which correct", f"{links.correct:,}"),
            ("gold links", f"{links.gold:,}"),
            ("precision", _percent(links.precision)),
            ("precision if links not judged are wrong", _percent(links.precision_of_all)),
            ("recall", _percent(links.recall)),
            ("F1", _percent(links.f1)),
            ("Hits@1", _percent(links.hits_at_1)),
            ("expected calibration error", f"{metrics.expected_calibration_error(scored, gold, complete):.3f}"),
        ]
    if len(gold) and is_number(summary.get("coverage")):
        is_counted = is_number(summary.get("candidates")) and not _is_by_evidence(summary)
        count = f"{summary['candidates']:,} " if is_counted else ""
        rows.append((f"gold links among the {count}candidates", _percent(summary["coverage"])))
    ranks = as_dict(summary.get("ranks")) if len(gold) else {}
    for name, value in ranks.items():
        if name.startswith("hits@") and is_number(value):
            rows.append((f"vectors alone: Hits@{name.removeprefix('hits@')}", _percent(value)))
    if is_number(ranks.get("mrr")):
        rows.append(("vectors alone: mean reciprocal rank", f"{ranks['mrr']:.3f}"))
    costs = [(stage, f"{value:,.1f} s") for stage, value in _seconds(summary).items()]
    if is_number(summary.get("peak_memory_mb")):
        costs.append(("peak memory", f"{summary['peak_memory_mb']:,.0f} MB"))
    tables = {"result": rows, "time and memory": costs}
    return page.side_by_side([page.fact_table(title, facts) for title, facts in tables.items() if facts])


def _is_complete(summary: dict[str, Any]) -> bool:
    """Whether every entity without a gold link has no counterpart; older records do not say."""
    return bool(summary.get("gold_complete"))


def link_plots(matching: Matching, scored: Matching, gold: Links, complete: bool) -> list[Plot]:
    """Confidences and, if gold links are known, precision, recall and calibration."""
    counts, _ = np.histogram(matching.confidences, bins=20, range=(0.0, 1.0))
    plots = [Plot("Links by confidence", bar_plot(counts.tolist(), "confidence", "links"))]
    if not len(gold):
        return plots
    curve = metrics.precision_recall_curve(scored, gold, complete)
    last = len(curve.threshold) - 1
    keep = np.unique(np.linspace(0, max(last, 0), CURVE_POINTS).astype(np.intp))[: last + 1]
    lines = {
        name: list(zip(curve.threshold[keep].tolist(), values[keep].tolist(), strict=True))
        for name, values in (("precision", curve.precision), ("recall", curve.recall))
    }
    svg = lines_plot(lines, "confidence threshold", "share", x_axis=UNIT, y_axis=UNIT)
    note = f"average precision: {curve.average_precision:.2f}"
    plots.append(Plot("Precision and recall by threshold", svg, note))
    points = [(part.mean_confidence, part.accuracy) for part in metrics.calibration(scored, gold, complete)]
    svg = line_plot(points, "confidence", "share that is correct", diagonal=True)
    note = f"expected calibration error: {metrics.expected_calibration_error(scored, gold, complete):.3f}"
    plots.append(Plot("Calibration (diagonal = perfect)", svg, note))
    return plots


# ---- errors ---------------------------------------------------------------------------------------------------------


def _errors(types: NDArray[np.int8], summary: dict[str, Any], *, has_ranks: bool) -> Markup:
    """The gold links by error type; empty without gold links."""
    counts = count_errors(types, with_candidates=has_ranks)
    if not counts:
        return Markup()
    note = ""
    if not has_ranks:
        note = "This run does not keep which gold links were candidates; the others count as wrong link or no link."
    elif summary.get("matcher") in [name for name, decider in DECIDERS.items() if decider.uses_structure]:
        note = "This matcher also scores pairs beyond the candidates; correct ones that lost count as not a candidate."
    bar = stacked_bar([(part.name, part.num_links) for part in counts], "Gold links by error type")
    return make("run.html.j2", "errors_card", bar, counts, len(types), note)


def _hardest(
    pair: GraphPair,
    matching: Matching,
    complete: bool,
    types: NDArray[np.int8],
    ranks: GoldRanks | None,
    trace: Trace | None,
) -> Markup:
    """Wrong and missed links with their neighbourhoods; without gold links, the least confident ones."""
    is_judged = len(pair.test) > 0
    hardest = HardestPairs(pair, matching, judge_links(matching, pair.test, complete, pair.valid)[1], ranks, trace)
    wrong = hardest.wrong_links()
    missed = hardest.missed_links(types, [one.source_id for one in wrong])
    groups = {
        "Wrong links, most confident first": wrong,
        "Missed gold links, worst rank first": missed,
        "Least confident links": [] if is_judged else hardest.doubtful_links(),
    }
    drawn = Markup().join(make("run.html.j2", "pictures", title, pairs) for title, pairs in groups.items() if pairs)
    return make("run.html.j2", "picture_key", is_judged) + drawn if drawn else Markup()


# ---- training -------------------------------------------------------------------------------------------------------


def _training(info: dict[str, Any]) -> Markup:
    plots = learning_plots(info)
    nothing = "No learning curves: nothing was trained in this run, or the training was not recorded."
    html = page.plot_cards(plots) if plots else paragraph(nothing)
    if choices := choice_rows(info):
        columns = ("weight of the re-estimated vectors", "weight of the given vectors", "correct", "")
        order = ", round by round" if info.get("joint") else ""
        html += paragraph(f"Settings that the agent tried on held-out links{order}:")
        html += page.table(columns, choices, (2,))
    return html


# ---- examples -------------------------------------------------------------------------------------------------------


def _examples(pair: GraphPair, matching: Matching, complete: bool) -> list[Section]:
    """Some confident links, the least confident, and the wrong ones."""
    correct, wrong = judge_links(matching, pair.test, complete, pair.valid)
    order = np.argsort(-matching.confidences, kind="stable")
    wrong_places = order[wrong[order]]
    tables = {
        "Links from the more confident half": order[:: max(len(order) // 2 // ROWS, 1)][:ROWS],
        "Least confident links": order[-ROWS:],
        f"Wrong links, most confident first ({len(wrong_places):,} in total)": wrong_places[:ROWS],
    }
    sections = []
    for heading, places in tables.items():
        rows = [_row(pair, matching, int(place), bool(correct[place]), bool(wrong[place])) for place in places]
        if rows:
            sections.append(Section(heading, make("run.html.j2", "link_table", rows, len(pair.test) > 0)))
    return sections


def _row(pair: GraphPair, matching: Matching, place: int, correct: bool, wrong: bool) -> dict[str, str]:
    """A link with its verdict, if gold can judge it, and the correct target, if it is wrong."""
    source, target = int(matching.source_ids[place]), int(matching.target_ids[place])
    should_be = pair.test.target_ids[pair.test.source_ids == source][:1] if wrong else []
    return {
        "source": pair.source.names[source],
        "target": pair.target.names[target],
        "source_id": pair.source.entities[source],
        "target_id": pair.target.entities[target],
        "confidence": f"{matching.confidences[place]:.3f}",
        "verdict": "correct" if correct else "wrong" if wrong else "",
        "should_be": pair.target.names[int(should_be[0])] if len(should_be) else "",
    }


def _seconds(summary: dict[str, Any]) -> dict[str, float]:
    return {str(stage): value for stage, value in as_dict(summary.get("seconds")).items() if is_number(value)}


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"
