"""A quarter of the targets taken away: their sources should get no link. The paper assumes that all have one."""

from __future__ import annotations

from typing import Any

from rlea.experiments.deciding import cells_of, store_of
from rlea.experiments.desk import PAIRS, QUICK, Desk
from rlea.experiments.figures import markdown_table, share, title
from rlea.experiments.grid import Grid, Results
from rlea.experiments.published import TITLES
from rlea.report.plots import dots_plot

MODELS = ("aligne",)
DECIDERS = ("hungarian", "best-first", "rlea")
SHARE = 0.25
OWN_PAIRS = ("D_W",)


def grids(desk: Desk) -> list[Grid]:
    """The cells that were asked for."""
    options = desk.options
    models, deciders = options.models or MODELS, options.deciders or DECIDERS
    cells = cells_of(desk, "dangling", models, deciders, pairs=OWN_PAIRS, dangling=SHARE)
    return [Grid(store_of(options.output), cells)]


def has_any(results: Results) -> bool:
    """Whether there is something to show."""
    return bool(_kept(results))


def table(results: Results) -> str:
    """How the deciders fare; the agent leaves out links that lower the F1 it expects."""
    rows = []
    for one in _kept(results):
        error = share(one["ece"]) if "ece" in one else "-"
        whole = share(one["uncut"]["f1"]) if "uncut" in one else share(one["f1"])
        names = [title(one["pair"]), TITLES[one["model"]], one["decider"]]
        rows.append([*names, *(share(one[key]) for key in ("precision", "recall", "f1")), whole, error])
    head = ["", "model", "decider", "precision", "recall", "F1", "F1 of all links", "calibration error"]
    return markdown_table(head, rows)


def _kept(results: Results) -> list[dict[str, Any]]:
    pool = f"test-{100 * SHARE:g}%"
    kept = [record["result"] for record in results["deciders"].values() if record["result"]["pool"] == pool]
    return [one for one in kept if one["pair"] in (*PAIRS, QUICK)]


def remarks(results: Results) -> str:
    """Nothing beyond the table."""
    return ""


def pictures(results: Results) -> dict[str, str]:
    """F1 by decider."""
    rows: dict[str, dict[str, float]] = {}
    for one in _kept(results):
        rows.setdefault(f"{title(one['pair'])}, {TITLES[one['model']]}, {one['decider']}", {})["F1"] = one["f1"]
    return {"dangling": dots_plot(rows, "F1")}
