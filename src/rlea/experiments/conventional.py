"""Table 2: precision, recall and F1 beside the conventional aligners PARIS and LogMap, as published.

The paper takes the best vectors of a pair: RDGCN's, and BootEA's on D-W. Both are shown here.
"""

from __future__ import annotations

from typing import Any

from rlea.experiments.deciding import cells_of, store_of
from rlea.experiments.desk import PAIRS, QUICK, Desk
from rlea.experiments.figures import figures_of, markdown_table, share, title
from rlea.experiments.grid import Grid, Results
from rlea.experiments.inputs import check_known
from rlea.experiments.published import TABLE_2, TITLES
from rlea.report.plots import dots_plot

MODELS = ("bootea", "rdgcn")
DECIDERS = ("paper", "rlea")
MEASURES = ("precision", "recall", "f1")


def grids(desk: Desk) -> list[Grid]:
    """The cells that were asked for."""
    options = desk.options
    models, deciders = options.models or MODELS, options.deciders or DECIDERS
    check_known(models, MODELS, "model")
    check_known(deciders, DECIDERS, "decider")
    cells = cells_of(desk, "conventional", models, deciders, pairs=options.pairs_or(PAIRS))
    return [Grid(store_of(options.output), cells)]


def has_any(results: Results) -> bool:
    """Whether there is something to show beside what is published."""
    return len(_figures(results)) > len(TABLE_2)


def shows(result: dict[str, Any]) -> bool:
    """Whether a cell is among those that the table shows."""
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


def remarks(results: Results) -> str:
    """Where the agent stands beside PARIS."""
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
        " seeds and looks at attribute values; RDGCN's vectors know the names. The toolkit has no PARIS of its own yet."
    )


def pictures(results: Results) -> dict[str, str]:
    """F1 of every system."""
    rows = {name: {title(pair): values[-1] for pair, values in row.items()} for name, row in _figures(results).items()}
    return {"conventional": dots_plot(rows, "F1")}
