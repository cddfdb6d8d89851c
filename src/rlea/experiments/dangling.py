"""A quarter of the targets removed: their sources should get no link. The paper assumes that all have one."""

from __future__ import annotations

import statistics

from rlea.experiments.deciders import DECIDERS
from rlea.experiments.deciding import DECIDERS_STORE, deciders_grid
from rlea.experiments.figures import Key, Result, Results, grouped, markdown_table, share, title
from rlea.experiments.grid import Grid
from rlea.experiments.options import TRAINED, choose
from rlea.experiments.published import TITLES
from rlea.experiments.workspace import Workspace
from rlea.views.report.plots import dots_plot

MODELS = ("aligne",)
OWN_DECIDERS = ("hungarian", "best-first", "rlea")
SHARE = 0.25
POOL = f"test-{100 * SHARE:g}%"
OWN_PAIRS = ("D_W",)
STORES = (DECIDERS_STORE,)


def grids(workspace: Workspace) -> list[Grid]:
    """The cells that were asked for."""
    options = workspace.options
    models = choose(options.models, MODELS, TRAINED, "model")
    deciders = choose(options.deciders, OWN_DECIDERS, DECIDERS, "decider")
    return [deciders_grid(workspace, "dangling", models, deciders, options.pairs_or(OWN_PAIRS), SHARE)]


def is_shown(result: Result) -> bool:
    """Whether a result is of the pool with targets taken away."""
    return bool(result["pool"] == POOL)


def _groups(results: Results) -> dict[Key, list[Result]]:
    """Results by pair, model and decider, a list over folds."""
    return grouped(results["deciders"], ("pair", "model", "decider"), POOL)


def table(results: Results) -> str:
    """How the deciders fare; the agent leaves out links that lower the F1 it expects."""
    rows = []
    for (pair, model, decider), own in _groups(results).items():
        scores = [[one[key] for one in own] for key in ("precision", "recall", "f1")]
        whole = [one.get("uncut", one)["f1"] for one in own]
        shown = [share(statistics.fmean(values)) for values in (*scores, whole)]
        error = share(statistics.fmean(one["ece"] for one in own)) if "ece" in own[0] else "-"
        rows.append([title(pair), TITLES[model], decider, str(len(own)), *shown, error])
    head = ["", "model", "decider", "folds", "precision", "recall", "F1", "F1 of all links", "calibration error"]
    return markdown_table(head, rows)


def remarks(results: Results) -> str:
    """Nothing: there is no figure of the paper to stand beside."""
    return ""


def pictures(results: Results) -> dict[str, str]:
    """F1 by decider."""
    rows = {
        f"{title(pair)}, {TITLES[model]}, {decider}": {"F1": statistics.fmean(one["f1"] for one in own)}
        for (pair, model, decider), own in _groups(results).items()
    }
    return {"dangling": dots_plot(rows, "F1")}
