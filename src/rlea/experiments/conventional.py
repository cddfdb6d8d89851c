"""Table 2: precision, recall and F1 beside the conventional aligners PARIS and LogMap, as published.

The paper takes the best vectors of a pair: RDGCN's, and BootEA's on D-W. Both are shown here. PARIS is also measured
here: it is given no seeds, aligns all entities and is judged by all known links, where deciders are judged by the test
links.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numba

from rlea.evaluation.metrics import link_metrics
from rlea.evidence.paris import ParisSettings, run_paris
from rlea.experiments.code_version import code_version
from rlea.experiments.costs import MEMORY, Costs
from rlea.experiments.deciding import cells_of, store_of
from rlea.experiments.desk import PAIRS, QUICK, SEED, Desk, plain
from rlea.experiments.figures import figures_of, markdown_table, share, title
from rlea.experiments.grid import Cell, Grid, Results
from rlea.experiments.inputs import check_known
from rlea.experiments.published import TABLE_2, TITLES
from rlea.experiments.store import Store
from rlea.graph import GraphPair, Links
from rlea.io.synthetic import SyntheticSettings, generate
from rlea.matchers.paris import take_pairs
from rlea.progress import Progress
from rlea.views.report.plots import dots_plot

MODELS = ("bootea", "rdgcn")
DECIDERS = ("paper", "rlea")
PARIS = "paris"  # asked for like a decider, kept apart: it has neither vectors nor folds
MEASURES = ("precision", "recall", "f1")
PARIS_COLUMNS = (
    "aligner", "pair", "pool", "precision", "recall", "f1", "matched", "gold", "iterations", "relations", "attributes",
    "classes", "seconds", "peak_memory_mb", "note", "commit", "seed",
)  # fmt: skip
OWN_PARIS = "PARIS here, no seeds, all links"


def grids(desk: Desk) -> list[Grid]:
    """The cells that were asked for."""
    options = desk.options
    models, deciders = options.models or MODELS, options.deciders or (*DECIDERS, PARIS)
    check_known(models, MODELS, "model")
    check_known(deciders, (*DECIDERS, PARIS), "decider")
    pairs = options.pairs_or(PAIRS)
    decided = cells_of(desk, "conventional", models, [name for name in deciders if name != PARIS], pairs=pairs)
    aligned = [ParisCase(desk, pair).cell() for pair in pairs if PARIS in deciders]
    return [Grid(store_of(options.output), decided), Grid(paris_store(options.output), aligned)]


def paris_store(output: Path) -> Store:
    """Where the runs of PARIS are kept: one a pair, whatever the folds."""
    return Store(output / PARIS, PARIS_COLUMNS, ("aligner", "pair"), {"pair": PAIRS})


@dataclass(frozen=True, eq=False)
class ParisCase:
    """PARIS on a pair without seeds."""

    desk: Desk
    pair_name: str

    def cell(self) -> Cell:
        """What the grid runs."""
        where = "--quick" if self.desk.options.quick else f"--data DIR --pairs {self.pair_name}"
        command = f"rlea reproduce conventional {where} --deciders {PARIS}"
        return Cell({"aligner": PARIS, "pair": self.pair_name}, self.wanted, self.run, command)

    @property
    def pair(self) -> GraphPair:
        """The graphs with all known links as gold and none as a seed: the same whatever the fold."""
        pair = self.desk.pair(self.pair_name, self.desk.options.folds[0])
        known = Links.union([pair.train, pair.valid, pair.test])
        return replace(pair, train=Links.empty(), valid=Links.empty(), test=known, fold="")

    def wanted(self, progress: Progress) -> dict[str, Any]:
        """What a record of this cell says if it was made by this code, with these settings, from these graphs."""
        return {
            "settings": plain(asdict(ParisSettings())),
            "code": code_version("rlea.matchers.paris", "rlea.evaluation.metrics"),
            "fingerprint": self.pair.fingerprint,
            "seed": SEED,
        }

    def run(self, progress: Progress) -> dict[str, Any]:
        """Align and judge; where a graph has no literals there is nothing to begin with, and the record says so."""
        pair = self.pair
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
            "seconds": costs.seconds["aligning"],
            "peak_memory_mb": costs.memory_mb["aligning"],
            "memory": MEMORY,
            "threads": numba.get_num_threads(),
            "note": "",
        }
        turns = [asdict(turn) for turn in found.iterations]
        return {"result": result, "by_iteration": turns, "notes": list(pair.notes)}


def has_any(results: Results) -> bool:
    """Whether there is something to show beside what is published."""
    return len(_figures(results)) > len(TABLE_2)


def shows(result: dict[str, Any]) -> bool:
    """Whether a cell is among those that the table shows."""
    if "aligner" in result:
        return result["f1"] is not None
    return result["model"] in MODELS and result["decider"] in DECIDERS and result["pool"] == "test"


def table(results: Results) -> str:
    """Precision / recall / F1 of every system, ours below the published."""
    found = _figures(results)
    pairs = [pair for pair in (*PAIRS, QUICK) if any(pair in row for row in found.values())]
    rows = []
    for name, row in found.items():
        shown = [" / ".join(map(share, row[pair])) if pair in row else "-" for pair in pairs]
        rows.append([name, *shown])
    return markdown_table(["precision / recall / F1", *map(title, pairs)], rows)


def _figures(results: Results) -> dict[str, dict[str, tuple[float, ...]]]:
    found: dict[str, dict[str, tuple[float, ...]]] = {f"{name}, published": dict(row) for name, row in TABLE_2.items()}
    own = {one["pair"]: tuple(one[name] for name in MEASURES) for one in _paris_runs(results) if one["f1"] is not None}
    if own:
        found[OWN_PARIS] = own
    kept = results["deciders"].values()
    by_measure = [figures_of(kept, ("model", "decider", "pair"), measure) for measure in MEASURES]
    for model in MODELS:
        for decider, name in (("paper", "RLEA as in the paper"), ("rlea", "rlea")):
            row = {
                pair: tuple(figures[model, decider, pair].mean for figures in by_measure)
                for pair in (*PAIRS, QUICK)
                if (model, decider, pair) in by_measure[0]
            }
            if row:
                folds = max(by_measure[0][model, decider, pair].folds for pair in row)
                found[f"{name} on {TITLES[model]}, {folds} fold{'s' * (folds > 1)}"] = row
    return found


def _paris_runs(results: Results) -> Iterable[dict[str, Any]]:
    return [record["result"] for record in results.get(PARIS, {}).values()]


def remarks(results: Results) -> str:
    """Where the agent stands beside PARIS, and where PARIS here stands beside the published."""
    return "\n\n".join(part for part in (_beside_agent(results), _beside_published(results)) if part)


def _beside_agent(results: Results) -> str:
    found = _figures(results)
    parts = []
    for pair, theirs in TABLE_2["PARIS"].items():
        best = max(
            (row[pair][-1] for name, row in found.items() if name.startswith("rlea on") and pair in row), default=None
        )
        if best is not None:
            parts.append(f"{title(pair)} {100 * (best - theirs[-1]):+.1f}")
    if not parts:
        return ""
    return (
        f"F1 of the agent on the better vectors, in points above PARIS as published: {', '.join(parts)}. PARIS has no"
        " seeds and looks at attribute values; RDGCN's vectors know the names."
    )


def _beside_published(results: Results) -> str:
    theirs, runs = TABLE_2["PARIS"], _paris_runs(results)
    beside = [
        f"{title(one['pair'])} {100 * (one['f1'] - theirs[one['pair']][-1]):+.1f} ({one['seconds']:.1f} s)"
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
        text += f"PARIS begins with literals that both graphs have, and is not run on {', '.join(left_out)}."
    return text.strip()


def pictures(results: Results) -> dict[str, str]:
    """F1 of every system."""
    rows = {name: {title(pair): values[-1] for pair, values in row.items()} for name, row in _figures(results).items()}
    return {"conventional": dots_plot(rows, "F1")}
