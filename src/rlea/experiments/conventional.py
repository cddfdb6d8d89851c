"""Table 2: precision, recall and F1 beside the conventional aligners PARIS and LogMap, as published.

The paper takes the best vectors of a pair: RDGCN's, and BootEA's on D-W. Both are shown here. PARIS is also measured
here: it gets no seeds, aligns all entities and is judged by all known links; deciders are judged by the test links.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from rlea.evaluation import metrics
from rlea.evaluation.metrics import link_metrics
from rlea.evidence.paris import ParisSettings, run_paris
from rlea.experiments.code_version import code_version
from rlea.experiments.costs import Costs
from rlea.experiments.deciding import DECIDERS_STORE, deciders_grid
from rlea.experiments.figures import Result, Results, figures_of, markdown_table, points, share, title
from rlea.experiments.grid import Cell, Grid
from rlea.experiments.options import PAIRS, SEED, SHOWN_PAIRS, choose
from rlea.experiments.published import TABLE_2, TITLES
from rlea.experiments.store import Store, plain
from rlea.experiments.workspace import Workspace
from rlea.graph import GraphPair, Links
from rlea.io.synthetic import SyntheticSettings, generate
from rlea.matchers.paris import take_pairs
from rlea.progress import Progress
from rlea.views.report.plots import dots_plot

MODELS = ("bootea", "rdgcn")
DECIDERS = ("paper", "rlea")
PARIS = "paris"  # asked for like a decider, kept apart: it has neither vectors nor folds
MEASURES = ("precision", "recall", "f1")
PARIS_STORE = Store(
    Path(PARIS),  # one record a pair, whatever the folds
    ("aligner", "pair"),
    ("pool", *MEASURES, "matched", "gold", "iterations", "relations", "attributes", "classes", "seconds",
     "peak_memory_mb", "note"),
    {"pair": PAIRS},
)  # fmt: skip
STORES = (DECIDERS_STORE, PARIS_STORE)
OWN_PARIS = "PARIS here, no seeds, all links"


def grids(workspace: Workspace) -> list[Grid]:
    """The cells that were asked for."""
    options = workspace.options
    models = choose(options.models, MODELS, MODELS, "model")
    deciders = choose(options.deciders, (*DECIDERS, PARIS), (*DECIDERS, PARIS), "decider")
    pairs, trained = options.pairs_or(PAIRS), [name for name in deciders if name != PARIS]
    aligned = [paris_cell(workspace, pair) for pair in pairs if PARIS in deciders]
    decided = deciders_grid(workspace, "conventional", models, trained, pairs)
    return [decided, Grid(PARIS_STORE.at(options.output), aligned)]


def paris_cell(workspace: Workspace, name: str) -> Cell:
    """PARIS on a pair without seeds."""

    def without_seeds() -> GraphPair:
        """The graphs with all known links as gold and none as a seed: the same whatever the fold."""
        pair = workspace.pair(name, workspace.options.folds[0])
        known = Links.union([pair.train, pair.valid, pair.test])
        return replace(pair, train=Links.empty(), valid=Links.empty(), test=known, fold="")

    def wanted(progress: Progress) -> dict[str, Any]:
        return {
            "settings": plain(asdict(ParisSettings())),
            "code": code_version(take_pairs, metrics),
            "fingerprint": without_seeds().fingerprint,
            "seed": SEED,
        }

    def run(progress: Progress) -> dict[str, Any]:
        """Where a graph has no literals there is nothing to begin with, and the record says so."""
        pair = without_seeds()
        graphs = {"source": pair.source, "target": pair.target}
        without = [side for side, graph in graphs.items() if not len(graph.literals)]
        if without:
            note = f"no attribute triples of the {' and the '.join(without)} graph in the data at hand"
            return {"result": {"pool": "all", **dict.fromkeys(MEASURES), "note": note}, "notes": list(pair.notes)}
        toy = generate(SyntheticSettings(num_entities=20, seeds=0.0, seed=SEED))
        take_pairs(run_paris(toy), toy.source, toy.target, SEED)  # loads compiled code, which is not part of aligning
        costs = Costs()
        with costs("aligning"):
            found = run_paris(pair, progress=progress)
            matching = take_pairs(found, pair.source, pair.target, SEED)
        result = {
            **link_metrics(matching, pair.test, pool="all").as_dict(),
            "iterations": len(found.iterations),
            **{name: len(part) for name, part in found.schema.parts.items()},
            **costs.of("aligning"),
            "note": "",
        }
        turns = [asdict(turn) for turn in found.iterations]
        return {"result": result, "by_iteration": turns, "notes": list(pair.notes)}

    where = "--quick" if workspace.options.quick else f"--data DIR --pairs {name}"
    command = f"rlea reproduce conventional {where} --deciders {PARIS}"
    return Cell({"aligner": PARIS, "pair": name}, wanted, run, command)


def is_shown(result: Result) -> bool:
    """Whether a result is among those that the table shows."""
    if "aligner" in result:
        return result["f1"] is not None
    return result["model"] in MODELS and result["decider"] in DECIDERS and result["pool"] == "test"


def table(results: Results) -> str:
    """Precision / recall / F1 of every system, ours below the published."""
    found = _figures(results)
    pairs = [pair for pair in SHOWN_PAIRS if any(pair in row for row in found.values())]
    rows = [
        [name, *(" / ".join(map(share, row[pair])) if pair in row else "-" for pair in pairs)]
        for name, row in found.items()
    ]
    return markdown_table(["precision / recall / F1", *map(title, pairs)], rows)


def _figures(results: Results) -> dict[str, dict[str, tuple[float, ...]]]:
    found: dict[str, dict[str, tuple[float, ...]]] = {f"{name}, published": dict(row) for name, row in TABLE_2.items()}
    own = {one["pair"]: tuple(one[name] for name in MEASURES) for one in results[PARIS] if one["f1"] is not None}
    if own:
        found[OWN_PARIS] = own
    by_measure = [figures_of(results["deciders"], ("model", "decider", "pair"), measure) for measure in MEASURES]
    for model in MODELS:
        for decider, name in (("paper", "RLEA as in the paper"), ("rlea", "rlea")):
            row = {
                pair: tuple(figures[model, decider, pair].mean for figures in by_measure)
                for pair in SHOWN_PAIRS
                if (model, decider, pair) in by_measure[0]
            }
            if row:
                folds = max(by_measure[0][model, decider, pair].folds for pair in row)
                found[f"{name} on {TITLES[model]}, {folds} fold{'s' * (folds > 1)}"] = row
    return found


def remarks(results: Results) -> str:
    """Where the agent stands beside PARIS, and where PARIS here stands beside the published."""
    return "\n\n".join(part for part in (_beside_agent(results), _beside_published(results)) if part)


def _beside_agent(results: Results) -> str:
    f1 = figures_of(results["deciders"], ("model", "pair", "decider"), "f1")
    parts = []
    for pair, theirs in TABLE_2["PARIS"].items():
        own = [f1[model, pair, "rlea"].mean for model in MODELS if (model, pair, "rlea") in f1]
        if own:
            parts.append(points(pair, max(own) - theirs[-1]))
    if not parts:
        return ""
    return (
        f"F1 of the agent on the better vectors, in points above PARIS as published: {', '.join(parts)}. PARIS has no"
        " seeds and uses attribute values; RDGCN's vectors are made from names."
    )


def _beside_published(results: Results) -> str:
    theirs, runs = TABLE_2["PARIS"], results[PARIS]
    beside = [
        f"{points(one['pair'], one['f1'] - theirs[one['pair']][-1])} ({one['seconds']:.1f} s)"
        for one in runs
        if one["f1"] is not None and one["pair"] in theirs
    ]
    by_note: dict[str, list[str]] = {}
    for one in runs:
        if one["f1"] is None:
            by_note.setdefault(one["note"], []).append(title(one["pair"]))
    left_out = [f"{', '.join(pairs)} ({note})" for note, pairs in by_note.items()]
    text = f"F1 of PARIS here, in points above PARIS as published: {', '.join(beside)}. " if beside else ""
    if left_out:
        text += f"PARIS starts from literals that both graphs have, and was not run on {', '.join(left_out)}."
    return text.strip()


def pictures(results: Results) -> dict[str, str]:
    """F1 of every system."""
    rows = {name: {title(pair): values[-1] for pair, values in row.items()} for name, row in _figures(results).items()}
    return {"conventional": dots_plot(rows, "F1")}
