"""Figure 4: Hits@1, and seconds of a test episode, against the number of candidates.

The paper's agent is trained anew for every number, since it sees that many candidates in training too. The agent of
this package (rlea) is trained once and given that many candidates to start from; it finds further ones by itself.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numba

from rlea.evaluation.metrics import link_metrics
from rlea.experiments.deciders import code_of, settings_of
from rlea.experiments.deciding import MEASURES, decide
from rlea.experiments.figures import Figure, Key, Results, figures_of, markdown_table, share, title
from rlea.experiments.grid import Cell, Grid
from rlea.experiments.options import FOLDS, PAIRS, SEED, SHOWN_PAIRS, TRAINED, choose
from rlea.experiments.published import TABLE_1, TITLES
from rlea.experiments.store import Store
from rlea.experiments.workspace import Inputs, Workspace, all_inputs
from rlea.matching import Task
from rlea.progress import Progress
from rlea.views.report.plots import lines_plot, stack_plots

MODELS = ("rdgcn",)  # as in the paper
DECIDERS = ("paper", "rlea")  # the others take the candidates as they come
NUMBERS = (1, 2, 3, 5, 10, 20, 50)
STORE = Store(
    Path("candidates"),
    ("model", "pair", "fold", "decider", "candidates"),
    MEASURES,
    {"pair": PAIRS, "model": TRAINED, "fold": FOLDS, "decider": DECIDERS, "candidates": NUMBERS},
)
STORES = (STORE,)
D_W_OF_ONE = 0.478  # Hits@1 of one candidate on D-W in the paper, below the vectors alone


def grids(workspace: Workspace) -> list[Grid]:
    """The cells that were asked for."""
    options = workspace.options
    models = choose(options.models, MODELS, TRAINED, "model")
    deciders = choose(options.deciders, DECIDERS, DECIDERS, "decider")
    cells = [
        cell_of(inputs, decider, number)
        for inputs in all_inputs(workspace, models, options.pairs_or(PAIRS))
        for decider in deciders
        for number in ((1, 5) if options.quick else NUMBERS)
    ]
    return [Grid(STORE.at(options.output), cells)]


def cell_of(inputs: Inputs, decider: str, number: int) -> Cell:
    """A decider given so many candidates an entity."""

    def wanted(progress: Progress) -> dict[str, Any]:
        settings = {"candidates": number, "pool": "test", "decider": decider}
        settings["agent"] = settings_of(decider, inputs.options, number)
        return inputs.wanted(settings, code_of(decider), progress)

    def run(progress: Progress) -> dict[str, Any]:
        pair = inputs.pair
        found, searched = inputs.candidates(number, progress)
        task = Task(pair.source, pair.target, pair.train, found, SEED)
        matching, costs, _ = decide(inputs, decider, task, progress, number)
        result = {
            **link_metrics(matching, pair.test).as_dict(),
            "seconds": costs.seconds["deciding"],
            "seconds_by_stage": searched.seconds | costs.seconds,
            "peak_memory_mb": costs.memory_mb["deciding"],
            "threads": numba.get_num_threads(),
        }
        return {"result": result}

    names = {**inputs.names, "decider": decider, "candidates": number}
    return Cell(names, wanted, run, inputs.command("candidates", f" --deciders {decider}"))


def _figures(results: Results, value: str) -> dict[Key, Figure]:
    return figures_of(results["candidates"], ("pair", "model", "decider", "candidates"), value)


def table(results: Results) -> str:
    """Hits@1 and seconds by number of candidates."""
    hits, seconds = _figures(results, "hits@1"), _figures(results, "seconds")
    numbers = sorted({key[-1] for key in hits})
    rows = []
    for pair in SHOWN_PAIRS:
        for model in TRAINED:
            for decider in DECIDERS:
                own = [(pair, model, decider, number) for number in numbers]
                if any(key in hits for key in own):
                    folds = max(hits[key].folds for key in own if key in hits)
                    names = [title(pair), TITLES[model], decider, str(folds)]
                    rows.append([*names, "Hits@1", *(share(hits[key].mean) if key in hits else "-" for key in own)])
                    cost = [f"{seconds[key].mean:.2f}" if key in hits else "-" for key in own]
                    rows.append(["", "", "", "", "s", *cost])
    return markdown_table(["", "model", "decider", "folds", "k =", *map(str, numbers)], rows)


def remarks(results: Results) -> str:
    """What the paper saw, and what is seen here."""
    hits, seconds = _figures(results, "hits@1"), _figures(results, "seconds")
    parts = []
    ratios = [
        seconds[pair, model, "paper", 50].mean / seconds[pair, model, "paper", 10].mean
        for pair, model, decider, number in seconds
        if (decider, number) == ("paper", 50) and (pair, model, "paper", 10) in seconds
    ]
    if ratios:
        parts.append(
            "The paper's Hits@1 rises up to five candidates and is constant from ten on, and its time per episode "
            f"grows exponentially. Here fifty candidates take its agent {min(ratios):.1f} to {max(ratios):.1f} times "
            "as long as ten: its policy does not change within an episode, so all pairs are scored at once and the "
            "decisions are one pass over a sorted list."
        )
    one = hits.get(("D_W", "rdgcn", "paper", 1))
    if one is not None:
        orig = TABLE_1["rdgcn"]["nearest"]["D_W"]
        parts.append(
            f"With one candidate the paper's agent has {share(D_W_OF_ONE)} on D-W, below the vectors alone "
            f"({share(orig)} in its table); here {share(one.mean)}."
        )
    return " ".join(parts)


def pictures(results: Results) -> dict[str, str]:
    """As in the paper: Hits@1 on the left, seconds of a test episode on the right; a row a model and decider."""
    plots = []
    figures = {label: _figures(results, value) for value, label in (("hits@1", "Hits@1"), ("seconds", "seconds"))}
    for model in TRAINED:
        for decider in DECIDERS:
            for label, found in figures.items():
                lines = {
                    title(pair): sorted(
                        (float(key[-1]), one.mean) for key, one in found.items() if key[:3] == (pair, model, decider)
                    )
                    for pair in SHOWN_PAIRS
                }
                lines = {name: points for name, points in lines.items() if points}
                if lines:
                    plots.append(lines_plot(lines, f"candidates, {decider} on {TITLES[model]}", label))
    return {"candidates": stack_plots(plots, columns=2)}
