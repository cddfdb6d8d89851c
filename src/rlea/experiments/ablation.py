"""Figures 5 and 7: what the parts of the paper's agent do while it learns.

Right matches, decisions and reward by episode for the agent in full, without the estimator of mutual information, and
in an environment that shuffles its pairs.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numba

from rlea.errors import InputError
from rlea.evaluation.metrics import link_metrics
from rlea.experiments.costs import Costs
from rlea.experiments.deciding import TRAINED, code_of, paper_settings
from rlea.experiments.desk import FOLDS, PAIRS, SEED, Desk, plain
from rlea.experiments.figures import figures_of, markdown_table, title
from rlea.experiments.grid import Cell, Grid, Results
from rlea.experiments.inputs import Inputs, all_inputs, check_known
from rlea.experiments.published import TITLES
from rlea.experiments.store import Store
from rlea.matching import Task
from rlea.paper.agent import Agent
from rlea.progress import Progress
from rlea.views.report.plots import lines_plot, stack_plots

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
        Case(inputs, preset).cell()
        for inputs in all_inputs(desk, models, options.pairs_or(PAIRS))
        for preset in VARIANTS
    ]
    return [Grid(store, cells)]


@dataclass(frozen=True, eq=False)
class Case:
    """One variant of the agent, trained over one model's vectors."""

    inputs: Inputs
    preset: str

    def cell(self) -> Cell:
        """What the grid runs."""
        return Cell(
            {**self.inputs.names, "preset": self.preset}, self.wanted, self.run, self.inputs.command("ablation")
        )

    def wanted(self, progress: Progress) -> dict[str, Any]:
        """What a record of this cell says if it was made by this code, with these settings, from these inputs."""
        agent = plain(asdict(paper_settings(self.inputs.desk.options, self.preset)))
        return self.inputs.wanted({"preset": self.preset, "agent": agent}, code_of("paper"), progress)

    def run(self, progress: Progress) -> dict[str, Any]:
        """Train, and keep the curves."""
        options, pair = self.inputs.desk.options, self.inputs.pair
        settings = paper_settings(options, self.preset)
        found, _ = self.inputs.candidates(settings.candidates, progress)
        agent, costs = Agent(settings, seed=SEED, device=options.agent_device), Costs()
        with costs("training"):
            agent.fit(pair, found.embeddings, progress=progress)
        matching = agent.match(Task(pair.source, pair.target, pair.train, found, SEED))
        episodes = settings.train.episodes
        every = max(episodes // POINTS, 1)
        history = [row for row in agent.history if (row["episode"] - 1) % every == 0 or "valid_aligned" in row]
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


def shows(result: dict[str, Any]) -> bool:
    """Whether a cell is among those that the table shows."""
    return True


def table(results: Results) -> str:
    """How each variant ended."""
    names = ("pair", "model", "preset")
    hits = figures_of(results["ablation"].values(), names)
    ends = [figures_of(results["ablation"].values(), names, key) for key in ("matched", *CURVES)]
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
        "The paper sees the estimator help the agent to learn faster, and the random environment keep it from learning."
        " docs/agent.md has why the policy says yes to nearly every pair, and with it that its links are greedy's."
    )


def pictures(results: Results) -> dict[str, str]:
    """One row of three plots for a model, pair and fold, as in Figure 7."""
    plots = []
    kept = [record["result"] for record in results["ablation"].values()]
    groups = dict.fromkeys((one["model"], one["pair"], one["fold"]) for one in kept)
    several = len({(model, fold) for model, _, fold in groups}) > 1
    for model, pair, fold in groups:
        own = [one for one in kept if (one["model"], one["pair"], one["fold"]) == (model, pair, fold)]
        more = f", {TITLES[model]}, fold {fold}" if several else ""
        for key, label in CURVES.items():
            lines = {VARIANTS[one["preset"]]: [(row["episode"], row[key]) for row in one["history"]] for one in own}
            plots.append(lines_plot(lines, f"episode, {title(pair)}{more}", label))
    return {"ablation": stack_plots(plots, columns=len(CURVES))}
