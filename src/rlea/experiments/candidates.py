"""Figure 4: Hits@1, and seconds of a test episode, against the number of candidates.

The agent of the paper is trained anew for every number, which it meets in training too. The agent that remembers is
trained and chosen once, and given that many candidates to start from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from rlea.agent.agent import Agent
from rlea.agent.presets import AgentSettings
from rlea.errors import InputError
from rlea.experiments.costs import Costs
from rlea.experiments.deciding import TRAINED, agent_settings, check_known, code_of, paper_settings
from rlea.experiments.desk import FOLDS, PAIRS, QUICK, SEED, Desk, plain
from rlea.experiments.figures import figures_of, markdown_table, share, title
from rlea.experiments.grid import Cell, Grid, Results
from rlea.experiments.store import Store
from rlea.matching import Task
from rlea.metrics import link_metrics
from rlea.progress import Progress
from rlea.report.plots import lines_plot, stack_plots

MODELS = ("rdgcn",)  # as in the paper
DECIDERS = ("paper", "rlea")
NUMBERS = (1, 2, 3, 5, 10, 20, 50)
COLUMNS = (
    "model", "pair", "fold", "decider", "candidates", "hits@1", "precision", "recall", "f1", "matched", "seconds",
    "peak_memory_mb", "commit", "seed",
)  # fmt: skip


def grids(desk: Desk) -> list[Grid]:
    """The cells that were asked for."""
    options = desk.options
    models, deciders = options.models or MODELS, options.deciders or DECIDERS
    check_known(models, TRAINED, "model")
    for name in deciders:
        if name not in DECIDERS:
            raise InputError(
                f"{name!r} takes the candidates as they come", remedy="--deciders of this experiment are paper and rlea"
            )
    numbers = (1, 5) if options.quick else NUMBERS
    order: dict[str, Sequence[object]] = {
        "pair": PAIRS,
        "model": TRAINED,
        "fold": FOLDS,
        "decider": DECIDERS,
        "candidates": NUMBERS,
    }
    store = Store(options.output / "candidates", COLUMNS, ("model", "pair", "fold", "decider", "candidates"), order)
    cells = [
        Case(desk, model, pair, fold, decider, number).cell()
        for fold in options.folds
        for pair in options.pairs_or(PAIRS)
        for model in models
        for decider in deciders
        for number in numbers
    ]
    return [Grid(store, cells)]


@dataclass(frozen=True, eq=False)
class Case:
    """A decider given so many candidates an entity."""

    desk: Desk
    model: str
    pair_name: str
    fold: str
    decider: str
    number: int

    def cell(self) -> Cell:
        names = {"model": self.model, "pair": self.pair_name, "fold": self.fold, "decider": self.decider}
        chosen = "" if self.desk.options.quick else f" --pairs {self.pair_name} --folds {self.fold}"
        command = (
            f"rlea reproduce candidates {self.desk.options.command}{chosen}"
            f" --models {self.model} --deciders {self.decider}"
        )
        return Cell({**names, "candidates": self.number}, self.wanted, self.run, command)

    @property
    def settings(self) -> AgentSettings:
        return replace(paper_settings(self.desk.options), candidates=self.number)

    def wanted(self, progress: Progress) -> dict[str, Any]:
        agent = plain(asdict(self.settings)) if self.decider == "paper" else agent_settings("rlea", self.desk.options)
        return {
            "settings": {"candidates": self.number, "pool": "test", "decider": self.decider, "agent": agent},
            "code": code_of(self.decider),
            "fingerprint": self.desk.pair(self.pair_name, self.fold).fingerprint,
            "vectors": self.desk.vectors_digest(self.model, self.pair_name, self.fold, progress),
            "seed": SEED,
        }

    def run(self, progress: Progress) -> dict[str, Any]:
        pair = self.desk.pair(self.pair_name, self.fold)
        found, searched = self.desk.candidates(self.model, self.pair_name, self.fold, self.number, (), progress)
        task, costs = Task(pair.source, pair.target, pair.train, found, SEED), Costs()
        if self.decider == "paper":
            agent = Agent(self.settings, seed=SEED)
            with costs("training"):
                agent.fit(pair, found.embeddings, progress=progress)
            with costs("deciding"):
                matching = agent.match(task)
        else:
            context, before = self.desk.chosen_agent(self.model, self.pair_name, self.fold, progress)
            costs.seconds.update(before.seconds)
            with costs("deciding"):
                matching = context.match(task)
        import numba

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


def table(results: Results) -> str:
    """Hits@1 and seconds by number of candidates."""
    kept = results["candidates"].values()
    hits = figures_of(kept, ("pair", "decider", "candidates"))
    seconds = figures_of(kept, ("pair", "decider", "candidates"), "seconds")
    numbers = sorted({int(key[2]) for key in hits})
    rows = []
    for pair in (*PAIRS, QUICK):
        for decider in DECIDERS:
            own = [(pair, decider, str(number)) for number in numbers]
            if any(key in hits for key in own):
                names = [title(pair), decider]
                rows.append([*names, "Hits@1", *(share(hits[key].mean) if key in hits else "-" for key in own)])
                rows.append(["", "", "s", *(f"{seconds[key].mean:.2f}" if key in hits else "-" for key in own)])
    return markdown_table(["", "decider", "k =", *map(str, numbers)], rows)


def remarks(results: Results) -> str:
    """How seconds grow with the number of candidates, and what the paper saw."""
    kept = results["candidates"].values()
    seconds = figures_of(kept, ("pair", "decider", "candidates"), "seconds")
    parts = []
    for decider in DECIDERS:
        ratios = [
            seconds[pair, decider, "50"].mean / seconds[pair, decider, "10"].mean
            for pair in PAIRS
            if (pair, decider, "50") in seconds and (pair, decider, "10") in seconds
        ]
        if ratios:
            parts.append(f"{min(ratios):.1f} to {max(ratios):.1f} times for {decider}")
    if not parts:
        return ""
    return (
        "The paper's Hits@1 rises up to five candidates and stands still from ten on, and its time of an episode grows"
        f" exponentially. Here fifty candidates take, in place of ten, {', '.join(parts)}: the policy stands still"
        " within an episode, so that all pairs are scored at once and the decisions are one pass over a sorted list."
    )


def pictures(results: Results) -> dict[str, str]:
    """As in the paper: Hits@1 on the left, seconds of a test episode on the right; a row a decider."""
    kept = results["candidates"].values()
    plots = []
    for decider in DECIDERS:
        for value, label in (("hits@1", "Hits@1"), ("seconds", "seconds of an episode")):
            found = figures_of(kept, ("pair", "decider", "candidates"), value)
            lines = {
                title(pair): sorted((int(key[2]), one.mean) for key, one in found.items() if key[:2] == (pair, decider))
                for pair in (*PAIRS, QUICK)
            }
            lines = {name: points for name, points in lines.items() if points}
            if lines:
                plots.append(lines_plot(lines, f"candidates, {decider}", label))
    return {"candidates": stack_plots(plots, columns=2)}
