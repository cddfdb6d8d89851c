"""Figures 5 and 7: what the parts of the paper's agent contribute while it learns.

Correct matches, decisions and reward by episode for the full agent, the agent without the estimator of mutual
information, and the agent in an environment that shuffles its pairs.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numba

from rlea.errors import InputError
from rlea.evaluation.metrics import link_metrics
from rlea.experiments.costs import Costs
from rlea.experiments.deciders import code_of, paper_settings, train_paper_agent
from rlea.experiments.figures import Results, figures_of, grouped, markdown_table, title
from rlea.experiments.grid import Cell, Grid
from rlea.experiments.options import FOLDS, PAIRS, SEED, TRAINED, choose
from rlea.experiments.published import TITLES
from rlea.experiments.store import Store, plain
from rlea.experiments.workspace import Inputs, Workspace, all_inputs
from rlea.matching import Task
from rlea.progress import Progress
from rlea.views.report.plots import lines_plot, stack_plots

MODELS = ("aligne",)  # the paper does not say whose vectors it used
VARIANTS = {"paper": "full", "paper-no-estimator": "without the estimator", "paper-random": "random environment"}
CURVES = {"aligned": "right matches", "length": "decisions", "reward": "reward"}
STORE = Store(
    Path("ablation"),
    ("model", "pair", "fold", "preset"),
    ("hits@1", "precision", "matched", "episodes", *CURVES, "seconds", "peak_memory_mb"),
    {"pair": PAIRS, "model": TRAINED, "fold": FOLDS, "preset": tuple(VARIANTS)},
)
STORES = (STORE,)
POINTS = 50  # of a curve: each of 500 episodes would be a record of megabytes


def grids(workspace: Workspace) -> list[Grid]:
    """The cells that were asked for."""
    options = workspace.options
    models = choose(options.models, MODELS, TRAINED, "model")
    if options.deciders:
        raise InputError("--deciders means nothing here: its variants are those of the paper", remedy="leave it out")
    inputs = all_inputs(workspace, models, options.pairs_or(PAIRS))
    return [Grid(STORE.at(options.output), [cell_of(one, preset) for one in inputs for preset in VARIANTS])]


def cell_of(inputs: Inputs, preset: str) -> Cell:
    """One variant of the agent, trained over one model's vectors."""
    settings = paper_settings(inputs.options, preset)

    def wanted(progress: Progress) -> dict[str, Any]:
        return inputs.wanted({"preset": preset, "agent": plain(asdict(settings))}, code_of("paper"), progress)

    def run(progress: Progress) -> dict[str, Any]:
        pair, costs, episodes = inputs.pair, Costs(), settings.train.episodes
        found, _ = inputs.candidates(settings.candidates, progress)
        with costs("training"):
            agent = train_paper_agent(settings, pair, found.embeddings, inputs.options, progress)
        matching = agent.match(Task(pair.source, pair.target, pair.train, found, SEED))
        every = max(episodes // POINTS, 1)
        result = {
            **link_metrics(matching, pair.test).as_dict(),
            "episodes": episodes,
            **{key: agent.history[-1][key] for key in CURVES},
            "best_episode": agent.best_episode,
            "seconds": costs.seconds["training"],
            "peak_memory_mb": costs.memory_mb["training"],
            "threads": numba.get_num_threads(),
            "history": [row for row in agent.history if (row["episode"] - 1) % every == 0 or "valid_aligned" in row],
        }
        return {"result": result}

    return Cell({**inputs.names, "preset": preset}, wanted, run, inputs.command("ablation"))


def table(results: Results) -> str:
    """How each variant ended."""
    names = ("pair", "model", "preset")
    hits = figures_of(results["ablation"], names)
    ends = [figures_of(results["ablation"], names, key) for key in ("matched", *CURVES)]
    rows = [
        [
            title(pair),
            TITLES[model],
            VARIANTS[preset],
            str(hits[pair, model, preset].folds),
            str(hits[pair, model, preset]),
            *(f"{figures[pair, model, preset].mean:,.0f}" for figures in ends),
        ]
        for pair, model, preset in hits
    ]
    head = ["", "model", "agent", "folds", "Hits@1", "links", *(f"{name}, last episode" for name in CURVES.values())]
    return markdown_table(head, rows)


def remarks(results: Results) -> str:
    """What the curves say beside the paper's."""
    return (
        "In the paper the estimator makes the agent learn faster, and the random environment keeps it from learning."
        " docs/paper.md explains why the policy accepts nearly every pair, so that its links are those of greedy."
    )


def pictures(results: Results) -> dict[str, str]:
    """One row of three plots for a model, pair and fold, as in Figure 7."""
    plots = []
    groups = grouped(results["ablation"], ("model", "pair", "fold"))
    several = len({(model, fold) for model, _, fold in groups}) > 1
    for (model, pair, fold), own in groups.items():
        more = f", {TITLES[model]}, fold {fold}" if several else ""
        for key, label in CURVES.items():
            lines = {VARIANTS[one["preset"]]: [(row["episode"], row[key]) for row in one["history"]] for one in own}
            plots.append(lines_plot(lines, f"episode, {title(pair)}{more}", label))
    return {"ablation": stack_plots(plots, columns=len(CURVES))}
