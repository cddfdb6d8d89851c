"""A quarter of the targets taken away: their sources should get no link. The paper assumes that all have one."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

from rlea.experiments.deciding import cells_of, store_of
from rlea.experiments.desk import Desk
from rlea.experiments.figures import markdown_table, share, title
from rlea.experiments.grid import Grid, Results
from rlea.experiments.published import TITLES
from rlea.views.report.plots import dots_plot

MODELS = ("aligne",)
DECIDERS = ("hungarian", "best-first", "rlea")
SHARE = 0.25
POOL = f"test-{100 * SHARE:g}%"
OWN_PAIRS = ("D_W",)


def grids(desk: Desk) -> list[Grid]:
    """The cells that were asked for."""
    options = desk.options
    models, deciders = options.models or MODELS, options.deciders or DECIDERS
    cells = cells_of(desk, "dangling", models, deciders, pairs=options.pairs_or(OWN_PAIRS), dangling=SHARE)
    return [Grid(store_of(options.output), cells)]


def has_any(results: Results) -> bool:
    """Whether there is something to show."""
    return bool(_groups(results))


def shows(result: dict[str, Any]) -> bool:
    """Whether a cell is among those that the table shows."""
    return bool(result["pool"] == POOL)


def table(results: Results) -> str:
    """How the deciders fare; the agent leaves out links that lower the F1 it expects."""
    rows = []
    for (pair, model, decider), own in _groups(results).items():

        def mean(take: Callable[[dict[str, Any]], float], own: list[dict[str, Any]] = own) -> str:
            return share(statistics.fmean(take(one) for one in own))

        scores = [mean(lambda one, key=key: one[key]) for key in ("precision", "recall", "f1")]  # type: ignore[misc]
        whole = mean(lambda one: one.get("uncut", one)["f1"])
        error = mean(lambda one: one["ece"]) if "ece" in own[0] else "-"
        rows.append([title(pair), TITLES[model], decider, str(len(own)), *scores, whole, error])
    head = ["", "model", "decider", "folds", "precision", "recall", "F1", "F1 of all links", "calibration error"]
    return markdown_table(head, rows)


def _groups(results: Results) -> dict[tuple[str, str, str], list[dict[str, Any]]]:
    """Results by pair, model and decider, a list over folds."""
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for record in results["deciders"].values():
        one = record["result"]
        if one["pool"] == POOL:
            groups.setdefault((one["pair"], one["model"], one["decider"]), []).append(one)
    return groups


def remarks(results: Results) -> str:
    """Nothing beyond the table."""
    return ""


def pictures(results: Results) -> dict[str, str]:
    """F1 by decider."""
    rows = {
        f"{title(pair)}, {TITLES[model]}, {decider}": {"F1": statistics.fmean(one["f1"] for one in own)}
        for (pair, model, decider), own in _groups(results).items()
    }
    return {"dangling": dots_plot(rows, "F1")}
