"""Figure 4: Hits@1, and seconds of a test episode, against the number of candidates.

The agent of the paper is trained anew for every number, which it meets in training too. The agent that remembers is
trained and chosen once, as ever, and given that many candidates to start from; more come into its game by themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numba

from rlea.agent.context import ContextAgent
from rlea.evaluation.metrics import link_metrics
from rlea.experiments.costs import Costs
from rlea.experiments.deciding import TRAINED, code_of, paper_settings
from rlea.experiments.desk import FOLDS, PAIRS, QUICK, SEED, Desk, plain
from rlea.experiments.figures import Figure, Key, figures_of, markdown_table, share, title
from rlea.experiments.grid import Cell, Grid, Results
from rlea.experiments.inputs import Inputs, all_inputs, check_known
from rlea.experiments.published import TABLE_1, TITLES
from rlea.experiments.store import Store
from rlea.matching import Task
from rlea.paper.agent import Agent
from rlea.progress import Progress
from rlea.views.report.plots import lines_plot, stack_plots

MODELS = ("rdgcn",)  # as in the paper
DECIDERS = ("paper", "rlea")  # the others take the candidates as they come
NUMBERS = (1, 2, 3, 5, 10, 20, 50)
D_W_OF_ONE = 0.478  # what the paper says of one candidate on D-W, below the vectors alone
COLUMNS = (
    "model", "pair", "fold", "decider", "candidates", "hits@1", "precision", "recall", "f1", "matched", "seconds",
    "peak_memory_mb", "commit", "seed",
)  # fmt: skip


def grids(desk: Desk) -> list[Grid]:
    """The cells that were asked for."""
    options = desk.options
    models, deciders = options.models or MODELS, options.deciders or DECIDERS
    check_known(models, TRAINED, "model")
    check_known(deciders, DECIDERS, "decider")
    order: dict[str, Sequence[object]] = {
        "pair": PAIRS, "model": TRAINED, "fold": FOLDS, "decider": DECIDERS, "candidates": NUMBERS
    }  # fmt: skip
    store = Store(options.output / "candidates", COLUMNS, ("model", "pair", "fold", "decider", "candidates"), order)
    cells = [
        Case(inputs, decider, number).cell()
        for inputs in all_inputs(desk, models, options.pairs_or(PAIRS))
        for decider in deciders
        for number in ((1, 5) if options.quick else NUMBERS)
    ]
    return [Grid(store, cells)]


@dataclass(frozen=True, eq=False)
class Case:
    """A decider given so many candidates an entity."""

    inputs: Inputs
    decider: str
    number: int

    def cell(self) -> Cell:
        """What the grid runs."""
        names = {**self.inputs.names, "decider": self.decider, "candidates": self.number}
        return Cell(names, self.wanted, self.run, self.inputs.command("candidates", f" --deciders {self.decider}"))

    def wanted(self, progress: Progress) -> dict[str, Any]:
        """What a record of this cell says if it was made by this code, with these settings, from these inputs."""
        if self.decider == "paper":
            agent = asdict(paper_settings(self.inputs.desk.options, candidates=self.number))
        else:
            agent = asdict(replace(ContextAgent().settings, candidates=self.number))
        settings = {"candidates": self.number, "pool": "test", "decider": self.decider, "agent": plain(agent)}
        return self.inputs.wanted(settings, code_of(self.decider), progress)

    def run(self, progress: Progress) -> dict[str, Any]:
        """Train where the decider is trained, decide, judge."""
        inputs, costs = self.inputs, Costs()
        pair, options = inputs.pair, inputs.desk.options
        found, searched = inputs.candidates(self.number, progress)
        task = Task(pair.source, pair.target, pair.train, found, SEED)
        if self.decider == "paper":
            agent = Agent(paper_settings(options, candidates=self.number), seed=SEED, device=options.agent_device)
            with costs("training"):
                agent.fit(pair, found.embeddings, progress=progress)
            with costs("deciding"):
                matching = agent.match(task)
        else:
            context, before = inputs.desk.chosen_agent(inputs.model, inputs.pair_name, inputs.fold, progress)
            costs.seconds.update(before.seconds)
            usual = context.settings
            context.settings = replace(usual, candidates=self.number)
            with costs("deciding"):
                matching = context.match(task)
            context.settings = usual
        result = {
            **link_metrics(matching, pair.test).as_dict(),
            "seconds": costs.seconds["deciding"],
            "seconds_by_stage": searched.seconds | costs.seconds,
            "peak_memory_mb": costs.memory_mb["deciding"],
            "threads": numba.get_num_threads(),
        }
        return {"result": result}


def has_any(results: Results) -> bool:
    """Whether there is something to show."""
    return bool(results["candidates"])


def _figures(results: Results, value: str) -> dict[Key, Figure]:
    return figures_of(results["candidates"].values(), ("pair", "model", "decider", "candidates"), value)


def shows(result: dict[str, Any]) -> bool:
    """Whether a cell is among those that the table shows."""
    return True


def table(results: Results) -> str:
    """Hits@1 and seconds by number of candidates."""
    hits, seconds = _figures(results, "hits@1"), _figures(results, "seconds")
    numbers = sorted({int(key[-1]) for key in hits})
    rows = []
    for pair in (*PAIRS, QUICK):
        for model in TRAINED:
            for decider in DECIDERS:
                own = [(pair, model, decider, str(number)) for number in numbers]
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
        seconds[pair, model, "paper", "50"].mean / seconds[pair, model, "paper", "10"].mean
        for pair, model, decider, number in seconds
        if (decider, number) == ("paper", "50") and (pair, model, "paper", "10") in seconds
    ]
    if ratios:
        parts.append(
            "The paper's Hits@1 rises up to five candidates and stands still from ten on, and its time of an episode "
            f"grows exponentially. Here fifty candidates take its agent {min(ratios):.1f} to {max(ratios):.1f} times "
            "as long as ten: its policy stands still within an episode, so that all pairs are scored at once and the "
            "decisions are one pass over a sorted list."
        )
    one = hits.get(("D_W", "rdgcn", "paper", "1"))
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
                    for pair in (*PAIRS, QUICK)
                }
                lines = {name: points for name, points in lines.items() if points}
                if lines:
                    plots.append(lines_plot(lines, f"candidates, {decider} on {TITLES[model]}", label))
    return {"candidates": stack_plots(plots, columns=2)}
