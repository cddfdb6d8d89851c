"""All evidence together, and with one channel left out at a time: precision, recall, F1, abstentions, seconds.

With seeds: those of a fold, a fifth of the links; test entities are matched and judged by the test links. Without
seeds: no link is known, all entities are matched, and all links of the data set are gold. Leaving a channel out does
not hide its data from the others: PARIS and words use names too, and PARIS uses the edges. `--hide names` hides names
from all channels. EN-DE and D-Y come without the attributes of their second graph, so there is no attribute channel to
leave out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rlea.errors import InputError
from rlea.evaluation import metrics
from rlea.evaluation.metrics import expected_calibration_error, link_metrics
from rlea.evidence import ATTRIBUTES, NAMES, PARIS, STRUCTURE, WORDS
from rlea.evidence.collect import Evidence
from rlea.experiments.code_version import code_version
from rlea.experiments.costs import Costs
from rlea.experiments.deciders import AGENT_CODE, channel_settings, decide_by_channels
from rlea.experiments.figures import Figure, Result, Results, grouped, markdown_table, share, title
from rlea.experiments.grid import Cell, Grid
from rlea.experiments.options import FOLDS, PAIRS, QUICK, SEED, choose
from rlea.experiments.published import TABLE_2
from rlea.experiments.store import Store
from rlea.experiments.workspace import Workspace
from rlea.graph import GraphPair, Links, choose_pool
from rlea.matching import keep_worthwhile
from rlea.progress import Progress
from rlea.views.report.plots import dots_plot

SEEDS, NO_SEEDS = BEGINNINGS = ("seeds", "no-seeds")
# Named here and not taken from `rlea.evidence`: the records are of these, whatever channels are added.
CHANNELS = (STRUCTURE, NAMES, WORDS, ATTRIBUTES, PARIS)
ALL = "all"
VARIANTS = (ALL, *(f"no-{name}" for name in CHANNELS))
NO_FOLD = "-"  # without seeds there is but one run
STORE = Store(
    Path("evidence"),
    ("pair", "beginning", "fold", "variant"),
    ("precision", "recall", "f1", "matched", "abstained", "ece", "seconds", "peak_memory_mb"),
    {"pair": PAIRS, "beginning": BEGINNINGS, "fold": (*FOLDS, NO_FOLD), "variant": VARIANTS},
)
STORES = (STORE,)


def grids(workspace: Workspace) -> list[Grid]:
    """The cells that were asked for: `models` are the ways to begin, `deciders` what is left out."""
    options = workspace.options
    beginnings = choose(options.models, BEGINNINGS, BEGINNINGS, "beginning")
    variants = choose(options.deciders, VARIANTS, VARIANTS, "variant")
    cells = [
        cell_of(workspace, pair, beginning, fold, variant)
        for pair in options.pairs_or(PAIRS)
        for beginning in beginnings
        for fold in (options.folds if beginning == SEEDS else (NO_FOLD,))
        for variant in variants
        if variant != f"no-{ATTRIBUTES}" or has_attributes(workspace, pair)
    ]
    return [Grid(STORE.at(options.output), cells)]


def has_attributes(workspace: Workspace, pair: str) -> bool:
    """Whether both graphs have literals, where the data is at hand to tell."""
    try:
        graphs = workspace.pair(pair, "1")
    except InputError:
        return False
    return all(len(graph.literals.values) > 0 for graph in (graphs.source, graphs.target))


def seen_and_judged(workspace: Workspace, name: str, beginning: str, fold: str) -> tuple[GraphPair, Links]:
    """What the agent may see, and the links that judge it."""
    whole = workspace.pair(name, "1" if fold == NO_FOLD else fold)
    if beginning == SEEDS:
        return whole, whole.test
    return GraphPair(whole.name, whole.source, whole.target), Links.union([whole.train, whole.valid, whole.test])


def cell_of(workspace: Workspace, name: str, beginning: str, fold: str, variant: str) -> Cell:
    """One run, with all channels or all but one; all variants are given the same channels."""
    channels: Sequence[str] = [channel for channel in CHANNELS if f"no-{channel}" != variant]

    def wanted(progress: Progress) -> dict[str, Any]:
        pair, gold = seen_and_judged(workspace, name, beginning, fold)
        return {
            "settings": channel_settings(channels),
            "code": code_version(AGENT_CODE, metrics),
            "fingerprint": replace(pair, test=gold).fingerprint,
            "gold": len(gold),
            "seed": SEED,
        }

    def run(progress: Progress) -> dict[str, Any]:
        """Learn, decide, judge. Seconds are those of a run by itself: channels that were there are charged as well."""
        pair, gold = seen_and_judged(workspace, name, beginning, fold)
        evidence = workspace.cached("evidence", (name, beginning, fold), lambda: Evidence(pair))
        pool, source_ids, target_ids = choose_pool(pair)
        evidence.asked.clear()
        known, costs = set(evidence.seconds), Costs()
        with costs("all"):
            matching, overlap, began = decide_by_channels(pair, evidence, channels, source_ids, target_ids, progress)
        most = min(len(source_ids), len(target_ids))
        kept = keep_worthwhile(matching, overlap.shared, overlap.least_confidence)
        result = {
            **{key: value for key, value in link_metrics(matching, gold).as_dict().items() if key != "pool"},
            "abstained": most - len(matching),
            "ece": expected_calibration_error(matching, gold),
            "worthwhile": link_metrics(kept, gold).as_dict() | {"abstained": most - len(kept)},
            **costs.of("all"),
            "seconds": costs.seconds["all"] + sum(evidence.seconds[key] for key in evidence.asked & known),
            "seconds_of_channels": sum(evidence.seconds[key] for key in evidence.asked),
            "entities_pool": pool,
        }
        return {"result": result, "beginning_of_run": began}

    command = "rlea reproduce evidence --quick"
    if name != QUICK:
        command = f"rlea reproduce evidence --data DIR --pairs {name} --models {beginning} --deciders {variant}"
        command += "" if fold == NO_FOLD else f" --folds {fold}"
    names = {"pair": name, "beginning": beginning, "fold": fold, "variant": variant}
    return Cell(names, wanted, run, command)


def table(results: Results) -> str:
    """A table of all evidence, then one of what leaving a channel out does to F1."""
    found = grouped(results["evidence"], ("pair", "beginning", "variant"))
    rows, lines = [], []
    for pair, beginning in grouped(results["evidence"], ("pair", "beginning")):
        if (pair, beginning, ALL) in found:
            rows.append([title(pair), beginning, *_of_all(found[pair, beginning, ALL]), _published(pair, beginning)])
        cells = [_left_out(found.get((pair, beginning, variant), []), variant) for variant in VARIANTS]
        lines.append([title(pair), beginning, *cells])
    head = ["", "begins with", "runs", "precision", "recall", "F1", "abstained", "calibration error", "seconds"]
    first = markdown_table([*head, "PARIS, published"], rows)
    second = markdown_table(["F1", "begins with", ALL, *(f"without {name}" for name in CHANNELS)], lines)
    return f"{first}\n\n{second}"


def _of_all(own: list[Result]) -> list[str]:
    shares = {name: str(Figure.of([one[name] for one in own])) for name in ("precision", "recall", "f1", "ece")}
    counts = {name: f"{np.mean([one[name] for one in own]):,.0f}" for name in ("abstained", "seconds")}
    order = ("precision", "recall", "f1", "abstained", "ece", "seconds")
    return [str(len(own)), *((shares | counts)[name] for name in order)]


def _published(pair: str, beginning: str) -> str:
    """PARIS has no seeds: it is not comparable with a run that has some."""
    row = TABLE_2["PARIS"].get(pair)
    return share(row[-1]) if row is not None and beginning == NO_SEEDS else ""


def _left_out(own: list[Result], variant: str) -> str:
    if not own:
        return "-"
    return f"{Figure.of([one['f1'] for one in own])}" + (f" ({len(own)})" if variant != ALL and len(own) > 1 else "")


def remarks(results: Results) -> str:
    """What leaving links out would do."""
    parts = []
    for (pair, beginning, variant), own in grouped(results["evidence"], ("pair", "beginning", "variant")).items():
        if variant == ALL:
            *scores, left = (
                float(np.mean([one["worthwhile"][key] for one in own]))
                for key in ("precision", "recall", "f1", "abstained")
            )
            parts.append(f"{title(pair)} {beginning} {' / '.join(map(share, scores))} ({left:,.0f} left out)")
    if not parts:
        return ""
    return (
        "Every entity that can be linked is linked. Cut where the best F1 is expected, precision / recall / F1 are: "
        f"{'; '.join(parts)}. Without seeds a tenth of the gold links are validation links, on which the rules for "
        "that case were chosen ([measuring.md](measuring.md))."
    )


def pictures(results: Results) -> dict[str, str]:
    """F1 of all evidence and of each left out."""
    rows: dict[str, dict[str, float]] = {}
    for (pair, beginning, variant), own in grouped(results["evidence"], ("pair", "beginning", "variant")).items():
        name = f"{title(pair)}, {'no seeds' if beginning == NO_SEEDS else 'seeds'}"
        shown = variant if variant == ALL else f"without {variant.removeprefix('no-')}"
        rows.setdefault(name, {})[shown] = float(np.mean([one["f1"] for one in own]))
    return {"evidence": dots_plot(rows, "F1")}
