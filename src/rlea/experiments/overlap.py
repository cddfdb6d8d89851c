"""Graphs that share only a part: are confidences right, how many links are written, how much is said to be shared?

A pair in which every entity has a counterpart is cut: a share of the links stays, and of each other link one end is
taken out of its graph, half of them on either side. So gold is complete, and a link that is not gold is wrong. The
overlap is the share of entities with a counterpart: of half the links it is two thirds. Seeds are drawn at random from
the links that are left, and are not judged; where fewer than 200 are left, half of them are seeds in place of 100.

Unrelated graphs share nothing: the source graph of the demo and that of D-W (without entities that a name of the demo
is part of), and two synthetic graphs. F1 is that of the links that `rlea align` writes by default; where no link can be
right there is none, and the number of links written stands in its place. Precision at .9 is that of links with a
confidence of .9 and more, the calibration error that of all links, written or not. Cells that lack a figure, such as
precision where there is no link, have no part in its mean.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numba
import numpy as np

from rlea import matching as matchings
from rlea.agent.agent import AgentSettings
from rlea.errors import InputError
from rlea.evaluation import metrics
from rlea.evaluation.metrics import calibration, expected_calibration_error, link_metrics
from rlea.evidence.paris import ParisSettings
from rlea.experiments.code_version import code_version
from rlea.experiments.costs import MEMORY
from rlea.experiments.deciders import AGENT_CODE
from rlea.experiments.figures import Result, Results, grouped, markdown_table, share, title
from rlea.experiments.grid import Cell, Grid
from rlea.experiments.options import (
    DEMO,
    PAIRS,
    QUICK,
    SEED,
    SMALL_PAIRS,
    TABLES,
    UNRELATED_PAIRS,
    UNRELATED_SYNTHETIC,
    choose,
    find_folder,
)
from rlea.experiments.partial import cut, draw_seeds
from rlea.experiments.store import Store, plain
from rlea.experiments.workspace import Workspace
from rlea.graph import GraphPair, Links
from rlea.io.synthetic import SyntheticSettings, generate
from rlea.matchers.paris import take_pairs
from rlea.matching import Matching, keep_sure
from rlea.pipeline import align
from rlea.progress import Progress
from rlea.views.report.plots import UNIT, lines_plot, stack_plots

AGENT, PARIS = DECIDERS = ("fused", "paris")
NO_SEEDS, MANY, FIFTH = BEGINNINGS = ("no-seeds", "100-seeds", "20%-seeds")
SHARES = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)  # of the links that stay
QUICK_SHARES = (0.0, 0.5, 1.0)
ALL = (*PAIRS, *SMALL_PAIRS, *UNRELATED_PAIRS)
ASKED = 0.95  # precision
# What a cell should keep to; remarks count those that do not.
MOST_ERROR, LEAST_PRECISION, MOST_OFF = 0.05, 0.93, 0.08
WORST = 3  # cells named
FEW = 10  # links, of which a share says little
STORE = Store(
    Path("overlap"),
    ("pair", "share", "beginning", "decider"),
    ("entities", "gold", "seeds", "links", "written", "precision", "recall", "f1", "links@.5", "precision@.5",
     "links@.9", "precision@.9", "ece", "overlap", "overlap_low", "overlap_high", "overlap_true", "expected_right",
     "links_asked", "precision_asked", "seconds", "peak_memory_mb"),
    {"pair": (*PAIRS, *SMALL_PAIRS, QUICK, *UNRELATED_PAIRS), "share": SHARES, "beginning": BEGINNINGS,
     "decider": DECIDERS},
)  # fmt: skip
STORES = (STORE,)


def grids(workspace: Workspace) -> list[Grid]:
    """The cells that were asked for: `models` are the ways to begin."""
    options = workspace.options
    if options.folds != ("1",):
        raise InputError("--folds means nothing here: all links of a data set are gold", remedy="leave it out")
    beginnings = choose(options.models, BEGINNINGS, BEGINNINGS, "beginning")
    deciders = choose(options.deciders, DECIDERS, DECIDERS, "decider")
    pairs = (QUICK, UNRELATED_SYNTHETIC) if options.quick else options.pairs or at_hand(options.data)
    cells = [
        cell_of(workspace, pair, part, beginning, decider)
        for pair in pairs
        for part in ((0.0,) if pair in UNRELATED_PAIRS else QUICK_SHARES if options.quick else SHARES)
        for beginning in beginnings
        for decider in deciders
        if part or beginning == NO_SEEDS
    ]
    return [Grid(STORE.at(options.output), cells)]


def at_hand(data: Path | None) -> tuple[str, ...]:
    """All pairs, but tables only where they are there."""
    absent = []
    for name in TABLES:
        try:
            find_folder(data, name)
        except InputError:
            absent.append(name)
    return tuple(name for name in ALL if name not in absent)


def seen_and_judged(workspace: Workspace, name: str, part: float, beginning: str) -> tuple[GraphPair, Links]:
    """What a decider may see, its seeds with it, and all links that are right beside them."""
    whole = workspace.pair(name, "1")
    if name in UNRELATED_PAIRS:
        return whole, Links.empty()
    known = Links.union([whole.train, whole.valid, whole.test])
    pair, links = workspace.cached("cut", (name, part), lambda: cut(whole, known, part, SEED))
    number = {NO_SEEDS: 0, MANY: min(100, len(links) // 2), FIFTH: round(0.2 * len(links))}[beginning]
    seeds, gold = draw_seeds(links, number, SEED)
    return GraphPair(pair.name, pair.source, pair.target, train=seeds), gold


def cell_of(workspace: Workspace, name: str, part: float, beginning: str, decider: str) -> Cell:
    """One decider on a pair of which a part is left."""

    def wanted(progress: Progress) -> dict[str, Any]:
        pair, gold = seen_and_judged(workspace, name, part, beginning)
        own = asdict(AgentSettings() if decider == AGENT else ParisSettings())
        # What links are written by default is decided by `matching`; the pipeline hands numbers on.
        code = (AGENT_CODE, matchings, metrics) if decider == AGENT else (take_pairs, matchings, metrics)
        return {
            "settings": plain({"matcher": decider, "pool": "all", "precision": ASKED, "own": own}),
            "code": code_version(*code),
            "fingerprint": replace(pair, test=gold).fingerprint,
            "gold": len(gold),
            "seed": SEED,
        }

    def run(progress: Progress) -> dict[str, Any]:
        """Align without a gold link at hand, then judge. Seconds and memory are those of aligning."""
        workspace.cached(f"compiled {decider}", None, lambda: load_compiled(decider))
        pair, gold = seen_and_judged(workspace, name, part, beginning)
        found = align(pair, matcher=decider, pool="all", keep="auto", seed=SEED, progress=progress)
        decided = found.matching.joined(found.doubtful)
        entities = min(graph.num_entities for graph in (pair.source, pair.target)) - len(pair.train)
        told = found.overlap
        estimate = (None, None, None) if told is None else (told.shared, told.low, told.high)
        asked = keep_sure(decided, ASKED)
        result = {
            "entities": entities,
            "gold": len(gold),
            "seeds": len(pair.train),
            "links": len(decided),
            "written": len(found.matching),
            **written_figures(found.matching, gold),
            **level_figures(decided, gold),
            "ece": expected_calibration_error(decided, gold, complete=True),
            **{
                key: None if value is None else value / entities
                for key, value in zip(("overlap", "overlap_low", "overlap_high"), estimate, strict=True)
            },
            "overlap_true": len(gold) / entities,
            "expected_right": found.expected_right,
            "links_asked": len(asked),
            "precision_asked": precision_of(asked, gold),
            "calibration": [list(one) for one in calibration(decided, gold, complete=True)],
            "seconds": sum(found.seconds.values()),
            "peak_memory_mb": round(found.peak_memory_mb, 1),
            "memory": MEMORY,
            "threads": numba.get_num_threads(),
        }
        return {"result": result, "beginning_of_run": found.info.get("bootstrap", {})}

    names = {"pair": name, "share": part, "beginning": beginning, "decider": decider}
    return Cell(names, wanted, run, command_of(workspace.options.quick, name, beginning, decider))


def load_compiled(decider: str) -> None:
    """Align a toy pair with and without seeds: compiling, or loading what is compiled, is not part of aligning."""
    toy = generate(SyntheticSettings(num_entities=140, seeds=0.75, seed=SEED))
    for pair in (toy.without_gold, GraphPair(toy.name, toy.source, toy.target)):
        align(pair, matcher=decider, pool="all")


def command_of(quick: bool, name: str, beginning: str, decider: str) -> str:
    """What repeats a cell, and those of the other shares with it."""
    if quick:
        return "rlea reproduce overlap --quick"
    data = "" if name in (DEMO, UNRELATED_SYNTHETIC) else " --data DIR"
    return f"rlea reproduce overlap{data} --pairs {name} --models {beginning} --deciders {decider}"


def written_figures(matching: Matching, gold: Links) -> dict[str, float | None]:
    """Precision (None of no links), recall and F1 (None where no link can be right)."""
    scores = link_metrics(matching, gold, pool="all", complete=True)
    recall, f1 = (scores.recall, scores.f1) if len(gold) else (None, None)
    return {"precision": precision_of(matching, gold), "recall": recall, "f1": f1}


def level_figures(decided: Matching, gold: Links) -> dict[str, Any]:
    """How many links have a confidence of .5 and more, of .9 and more, and the share of these that is right."""
    figures: dict[str, Any] = {}
    for level in (0.5, 0.9):
        kept, name = decided.at_least(level), share(level).rstrip("0")
        figures |= {f"links@{name}": len(kept), f"precision@{name}": precision_of(kept, gold)}
    return figures


def precision_of(links: Matching, gold: Links) -> float | None:
    """The share of links that is right; None of no links."""
    return link_metrics(links, gold, complete=True).precision if len(links) else None


# ---- what is shown --------------------------------------------------------------------------------------------------


def table(results: Results) -> str:
    """The agent by pair and share, then means, then its worst cells."""
    return "\n\n".join([_by_share(results), _means(results), _worst(results)])


def _agent(results: Results) -> list[Result]:
    return [one for one in results["overlap"] if one["decider"] == AGENT]


def _by_share(results: Results) -> str:
    groups = grouped(_agent(results), ("pair", "share"))
    rows = []
    for (pair, part), own in sorted(groups.items(), key=lambda item: item[0][0] in UNRELATED_PAIRS):
        cells = {one["beginning"]: one for one in own}
        shown = [_cell(cells[name]) if name in cells else "-" for name in BEGINNINGS]
        most = max(one["entities"] + one["seeds"] for one in own)
        rows.append([title(pair), "" if pair in UNRELATED_PAIRS else f"{100 * part:.0f} %", f"{most:,}", *shown])
    head = ["F1 / precision at .9 / calibration error / overlap (true)", "links left", "entities"]
    return markdown_table([*head, *(name.replace("-", " ").replace("%", " %") for name in BEGINNINGS)], rows)


def _cell(one: Result) -> str:
    """The figures of one run; where no link can be right, how many were written."""
    first = share(one["f1"]) if one["f1"] is not None else f"{one['written']:,} written"
    overlap = f"{_share(one['overlap'])} ({share(one['overlap_true'])})"
    return " / ".join([first, _share(one["precision@.9"]), share(one["ece"]), overlap])


def _share(value: float | None) -> str:
    return "-" if value is None else share(value)


def off(one: Result) -> float | None:
    """How far the estimated overlap is from the true one; None where there is no estimate."""
    return None if one["overlap"] is None else abs(one["overlap"] - one["overlap_true"])


def _means(results: Results) -> str:
    """Means over the cells of a decider and a beginning that have the figure."""
    rows = []
    for decider, beginning in sorted(
        grouped(results["overlap"], ("decider", "beginning")),
        key=lambda key: (DECIDERS.index(key[0]), BEGINNINGS.index(key[1])),
    ):
        own = [one for one in results["overlap"] if (one["decider"], one["beginning"]) == (decider, beginning)]
        figures = [
            _mean(one[name] for one in own) for name in ("f1", "precision", "precision@.5", "precision@.9", "ece")
        ]
        rows.append([decider, beginning, str(len(own)), *figures, _mean(map(off, own)), _asked(own)])
    head = ["means", "begins with", "cells", "F1", "precision", "precision at .5", "precision at .9"]
    more = ["calibration error", "overlap off by", f"asked {share(ASKED).rstrip('0')} (links)"]
    return markdown_table([*head, *more], rows)


def _mean(values: Iterable[float | None]) -> str:
    known = [value for value in values if value is not None]
    return share(statistics.fmean(known)) if known else "-"


def _asked(own: Sequence[Result]) -> str:
    count = sum(one["links_asked"] for one in own)
    return f"{_mean(one['precision_asked'] for one in own)} ({count:,})"


def _worst(results: Results) -> str:
    """The cells of the agent that are farthest from what they should be."""
    own = _agent(results)
    enough = [one for one in own if one["links@.9"] >= FEW]
    kinds: list[tuple[str, list[Result], Callable[[Result], Any], int]] = [
        ("calibration error", own, lambda one: one["ece"], -1),
        (f"precision at .9, of {FEW} links or more", enough, lambda one: one["precision@.9"], 1),
        ("overlap off by", [one for one in own if off(one) is not None], off, -1),
    ]
    rows = []
    for what, cells, figure, sign in kinds:
        ordered = sorted(cells, key=lambda one: sign * figure(one))[:WORST]
        rows.append([what, "; ".join(f"{_name(one)} {share(figure(one))}" for one in ordered) or "-"])
    return markdown_table(["worst cells of the agent", ""], rows)


def _name(one: Result) -> str:
    part = "" if one["pair"] in UNRELATED_PAIRS else f" {100 * one['share']:.0f} %"
    return f"{title(one['pair'])}{part} {one['beginning']}"


def remarks(results: Results) -> str:
    """How many cells of the agent are off, and by what PARIS differs."""
    own = _agent(results)
    if not own:
        return ""
    sure = [one for one in own if one["links@.9"]]
    low = [one for one in sure if one["precision@.9"] < LEAST_PRECISION]
    few = [one for one in low if one["links@.9"] < FEW]
    told = [distance for distance in map(off, own) if distance is not None]
    inside = [one for one in own if one["overlap"] is not None and _is_inside(one)]
    nothing = [one for one in own if not one["gold"]]
    parts = [
        f"Of {_cells(len(own))} of the agent, {sum(one['ece'] > MOST_ERROR for one in own)} have a calibration error "
        f"above {share(MOST_ERROR).rstrip('0')}.",
        f"Of {_cells(len(sure))} with links of a confidence of .9 and more, {len(low)} have a precision below "
        f"{share(LEAST_PRECISION).rstrip('0')} there, {len(few)} of them with fewer than {FEW} such links.",
        f"The overlap is off by more than {share(MOST_OFF).rstrip('0')} in {sum(one > MOST_OFF for one in told)} of "
        f"{_cells(len(told))}; the true one is between the bounds told in {len(inside)}.",
    ]
    if nothing:
        written, entities = (sum(one[key] for one in nothing) for key in ("written", "entities"))
        where = f"Where nothing is shared ({_cells(len(nothing))})"
        parts.append(f"{where}, {written:,} links are written for {entities:,} entities.")
    return " ".join([*parts, _beside_paris(results)]).strip()


def _cells(number: int) -> str:
    return f"{number} cell" + "s" * (number != 1)


def _is_inside(one: Result) -> bool:
    return bool(one["overlap_low"] <= one["overlap_true"] <= one["overlap_high"])


def _beside_paris(results: Results) -> str:
    """F1 of the agent beside that of PARIS, on the same cells."""
    names = ("pair", "share", "beginning")
    theirs = {tuple(one[name] for name in names): one for one in results["overlap"] if one["decider"] == PARIS}
    both = [(one, theirs[key]) for one in _agent(results) if (key := tuple(one[name] for name in names)) in theirs]
    scored = [(one["f1"], other["f1"]) for one, other in both if one["f1"] is not None]
    if not scored:
        return ""
    own, other = (statistics.fmean(column) for column in zip(*scored, strict=True))
    better = sum(one < other for one, other in scored)
    return (
        f"The mean F1 of the agent is {share(own)}, that of PARIS on the same cells {share(other)}; PARIS has the "
        f"higher F1 in {better} of {len(scored)}."
    )


def pictures(results: Results) -> dict[str, str]:
    """F1 by overlap, and the share of links that is right by confidence; both of the agent without seeds."""
    own = [one for one in _agent(results) if one["beginning"] == NO_SEEDS]
    pairs = dict.fromkeys(one["pair"] for one in own if one["pair"] not in UNRELATED_PAIRS)
    parts = [[pair for pair in pairs if (pair in PAIRS) is is_large] for is_large in (True, False)]
    by_overlap, reliability = [], []
    for part in filter(None, parts):
        lines = {title(pair): _f1_points([one for one in own if one["pair"] == pair]) for pair in part}
        by_overlap.append(lines_plot(lines, "overlap, no seeds", "F1", x_axis=UNIT, y_axis=UNIT))
        bins = {title(pair): pooled([one for one in own if one["pair"] == pair]) for pair in part}
        stated = {"as stated": [(0.0, 0.0), (1.0, 1.0)]}
        reliability.append(lines_plot(stated | bins, "confidence, no seeds", "right", x_axis=UNIT, y_axis=UNIT))
    drawn = {"overlap": by_overlap, "overlap_reliability": reliability}
    return {name: stack_plots(plots, columns=len(plots)) for name, plots in drawn.items() if plots}


def _f1_points(own: Sequence[Result]) -> list[tuple[float, float]]:
    return sorted((one["overlap_true"], one["f1"]) for one in own if one["f1"] is not None)


def pooled(own: Sequence[Result]) -> list[tuple[float, float]]:
    """Mean confidence and share right by bins of confidence over several runs; bins of few links are left out."""
    sums = np.zeros((10, 3))
    for one in own:
        for confidence, right, count in one["calibration"]:
            sums[min(int(10 * confidence), 9)] += count * confidence, count * right, count
    return [(float(a / count), float(b / count)) for a, b, count in sums.tolist() if count >= FEW]
