"""Figures 5 and 7: what the parts of the paper's agent do while it learns.

Right matches, decisions and reward by episode for the agent in full, without the estimator of mutual information, and
in an environment that shuffles its pairs.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from rlea.agent.agent import Agent
from rlea.agent.presets import PRESETS, AgentSettings
from rlea.errors import InputError
from rlea.experiments.costs import Costs
from rlea.experiments.deciding import TRAINED, check_known, code_of
from rlea.experiments.desk import FOLDS, PAIRS, QUICK, SEED, Desk, plain
from rlea.experiments.figures import markdown_table, share, title
from rlea.experiments.grid import Cell, Grid, Results
from rlea.experiments.store import Store
from rlea.matching import Task
from rlea.metrics import link_metrics
from rlea.progress import Progress
from rlea.report.plots import lines_plot, stack_plots

MODELS = ("aligne",)  # the paper does not say whose vectors it used
VARIANTS = {"paper": "full", "paper-no-estimator": "without the estimator", "paper-random": "random environment"}
CURVES = {"aligned": "right matches", "length": "decisions", "reward": "reward"}
POINTS = 50  # of a curve: each of 500 episodes would be a record of megabytes
COLUMNS = (
    "model", "pair", "fold", "preset", "hits@1", "precision", "matched", "episodes", "aligned", "length", "reward",
    "seconds", "peak_memory_mb", "commit", "seed",
)  # fmt: skip


def grids(desk: Desk) -> list[Grid]:
    """The cells that were asked for."""
    options = desk.options
    models = options.models or MODELS
    check_known(models, TRAINED, "model")
    if options.deciders:
        raise InputError("--deciders means nothing here: its variants are those of the paper", remedy="leave it out")
    order = {"pair": PAIRS, "model": TRAINED, "fold": FOLDS, "preset": tuple(VARIANTS)}
    store = Store(options.output / "ablation", COLUMNS, ("model", "pair", "fold", "preset"), order)
    cells = [
        Case(desk, model, pair, fold, preset).cell()
        for fold in options.folds
        for pair in options.pairs_or(PAIRS)
        for model in models
        for preset in VARIANTS
    ]
    return [Grid(store, cells)]


@dataclass(frozen=True, eq=False)
class Case:
    """One variant of the agent, trained over one model's vectors."""

    desk: Desk
    model: str
    pair_name: str
    fold: str
    preset: str

    def cell(self) -> Cell:
        names = {"model": self.model, "pair": self.pair_name, "fold": self.fold, "preset": self.preset}
        chosen = "" if self.desk.options.quick else f" --pairs {self.pair_name} --folds {self.fold}"
        command = f"rlea reproduce ablation {self.desk.options.command}{chosen} --models {self.model}"
        return Cell(names, self.wanted, self.run, command)

    @property
    def settings(self) -> AgentSettings:
        settings, episodes = PRESETS[self.preset], self.desk.options.episodes
        return settings if episodes is None else replace(settings, train=replace(settings.train, episodes=episodes))

    def wanted(self, progress: Progress) -> dict[str, Any]:
        return {
            "settings": {"preset": self.preset, "agent": plain(asdict(self.settings))},
            "code": code_of("paper"),
            "fingerprint": self.desk.pair(self.pair_name, self.fold).fingerprint,
            "vectors": self.desk.vectors_digest(self.model, self.pair_name, self.fold, progress),
            "seed": SEED,
        }

    def run(self, progress: Progress) -> dict[str, Any]:
        settings, pair = self.settings, self.desk.pair(self.pair_name, self.fold)
        found, _ = self.desk.candidates(self.model, self.pair_name, self.fold, settings.candidates, (), progress)
        agent, costs = Agent(settings, seed=SEED), Costs()
        with costs("training"):
            agent.fit(pair, found.embeddings, progress=progress)
        matching = agent.match(Task(pair.source, pair.target, pair.train, found, SEED))
        episodes = settings.train.episodes
        every = max(episodes // POINTS, 1)
        history = [row for row in agent.history if (row["episode"] - 1) % every == 0 or "valid_aligned" in row]
        import numba

        result = {
            **link_metrics(matching, pair.test).as_dict(),
            "episodes": episodes,
            **{key: agent.history[-1][key] for key in CURVES},
            "best_episode": agent.best_episode,
            "seconds": costs.seconds["training"],
            "peak_memory_mb": costs.memory_mb["training"],
            "threads": numba.get_num_threads(),
            "history": history,
        }
        return {"result": result}


def has_any(results: Results) -> bool:
    """Whether there is something to show."""
    return bool(results["ablation"])


def table(results: Results) -> str:
    """How each variant ended."""
    rows = []
    for record in results["ablation"].values():
        one = record["result"]
        ends = [f"{one[key]:,.0f}" for key in CURVES]
        rows.append([title(one["pair"]), VARIANTS[one["preset"]], share(one["hits@1"]), f"{one['matched']:,}", *ends])
    head = ["", "agent", "Hits@1", "links", *(f"{name}, last episode" for name in CURVES.values())]
    return markdown_table(head, rows)


def remarks(results: Results) -> str:
    """What the curves say beside the paper's."""
    return (
        "The paper sees the estimator help the agent to learn faster, and the random environment keep it from learning."
        " docs/agent.md has why the policy says yes to nearly every pair, and with it that its links are greedy's."
    )


def pictures(results: Results) -> dict[str, str]:
    """One row of three plots a pair, as in Figure 7."""
    plots = []
    kept = [record["result"] for record in results["ablation"].values()]
    for pair in (*PAIRS, QUICK):
        for key, label in CURVES.items():
            lines = {
                VARIANTS[one["preset"]]: [(row["episode"], row[key]) for row in one["history"]]
                for one in kept
                if one["pair"] == pair
            }
            if lines:
                plots.append(lines_plot(lines, f"episode, {title(pair)}", label))
    return {"ablation": stack_plots(plots, columns=len(CURVES))}
