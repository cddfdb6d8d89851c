"""Cells in which a decider decides over the vectors of a model: those of `results/deciders.csv`.

All deciders of a model, pair and fold are given the same vectors and the same candidates. `seconds` and
`peak_memory_mb` of a line are those of deciding, after training and with the candidates found; the record has those of
the other stages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numba
import numpy as np

from rlea.agent.context import ContextAgent
from rlea.evaluation.metrics import coverage, expected_calibration_error, link_metrics
from rlea.experiments.code_version import code_version
from rlea.experiments.costs import MEMORY, Costs
from rlea.experiments.desk import FOLDS, PAIRS, SEED, Desk, Options, plain
from rlea.experiments.grid import Cell
from rlea.experiments.inputs import Inputs, all_inputs, check_known
from rlea.experiments.store import Store
from rlea.graph import Links
from rlea.matchers import MATCHERS
from rlea.matching import Matching, Task, keep_worthwhile, toy_task
from rlea.models import MODELS
from rlea.paper.agent import Agent
from rlea.paper.agents import describe_agent
from rlea.paper.presets import PRESETS, AgentSettings
from rlea.progress import Progress

COLUMNS = (
    "model", "pair", "fold", "decider", "pool", "hits@1", "precision", "recall", "f1", "matched", "seconds",
    "peak_memory_mb", "commit", "seed",
)  # fmt: skip
PLAIN = ("nearest", "csls", "rinf", "sinkhorn", "hungarian", "stable", "seq", "best-first")
DECIDERS = (*PLAIN, "paper", "rlea")
TRAINED = tuple(name for name, model in MODELS.items() if model.trained)
CALIBRATED = ("best-first", "rlea")  # deciders whose confidences are meant as chances
CANDIDATES = 50


def store_of(output: Path) -> Store:
    """Where cells of deciders are kept."""
    order = {"pair": PAIRS, "model": TRAINED, "fold": FOLDS, "decider": DECIDERS}
    return Store(output / "deciders", COLUMNS, ("model", "pair", "fold", "decider", "pool"), order)


def cells_of(
    desk: Desk,
    experiment: str,
    models: Sequence[str],
    deciders: Sequence[str],
    *,
    pairs: Sequence[str],
    dangling: float = 0.0,
) -> list[Cell]:
    """The cells of models x pairs x folds x deciders, those that share vectors one after another."""
    check_known(models, TRAINED, "model")
    check_known(deciders, DECIDERS, "decider")
    return [
        Case(inputs, decider, dangling).cell(experiment)
        for inputs in all_inputs(desk, models, pairs)
        for decider in deciders
    ]


@dataclass(frozen=True, eq=False)
class Decided:
    """Links of a decider with what they cost by stage, and what an agent says of itself."""

    matching: Matching
    costs: Costs
    agent: dict[str, Any]


@dataclass(frozen=True, eq=False)
class Case:
    """One decider over one model's vectors; with `dangling`, that share of the test targets is taken away."""

    inputs: Inputs
    decider: str
    dangling: float = 0.0

    def cell(self, experiment: str) -> Cell:
        """What the grid runs."""
        pool = f"test-{100 * self.dangling:g}%" if self.dangling else "test"
        names = {**self.inputs.names, "decider": self.decider, "pool": pool}
        return Cell(names, self.wanted, self.run, self.inputs.command(experiment, f" --deciders {self.decider}"))

    def wanted(self, progress: Progress) -> dict[str, Any]:
        """What a record of this cell says if it was made by this code, with these settings, from these inputs."""
        settings = {"candidates": CANDIDATES, "pool": "test", "dangling": self.dangling, "decider": self.decider}
        settings["agent"] = agent_settings(self.decider, self.inputs.desk.options)
        return self.inputs.wanted(settings, code_of(self.decider), progress)

    def run(self, progress: Progress) -> dict[str, Any]:
        """Decide and judge."""
        pair = self.inputs.pair
        gold, taken = choose_dangling(pair.test, self.dangling)
        found, costs = self.inputs.candidates(CANDIDATES, progress, taken)
        decided = self.decide(Task(pair.source, pair.target, pair.train, found, SEED), progress)
        matching, facts = decided.matching, dict[str, Any]()
        if self.decider in CALIBRATED:
            facts["ece"] = expected_calibration_error(matching, gold)
        if self.decider == "rlea" and self.dangling:
            facts["uncut"] = link_metrics(matching, gold).as_dict()
            matching = keep_worthwhile(matching, min(found.num_rows, found.num_columns))
            facts["threshold"] = float(matching.confidences.min()) if len(matching) else None
        judged = link_metrics(matching, gold).as_dict()
        result = {
            **{key: value for key, value in judged.items() if key != "pool"},
            **facts,
            "seconds": decided.costs.seconds["deciding"],
            "seconds_by_stage": costs.seconds | decided.costs.seconds,
            "peak_memory_mb": decided.costs.memory_mb["deciding"],
            "peak_memory_mb_by_stage": costs.memory_mb | decided.costs.memory_mb,
            "memory": MEMORY,
            "threads": numba.get_num_threads(),
            "sources": found.num_rows,
            "targets": found.num_columns,
            "coverage": coverage(found, gold),
        }
        return {"result": result, "agent": decided.agent}

    def decide(self, task: Task, progress: Progress) -> Decided:
        """Train where the decider is trained, then decide; no decider sees a test link."""
        inputs, vectors, costs = self.inputs, task.candidates.embeddings, Costs()
        options = inputs.desk.options
        if self.decider == "paper":
            agent = Agent(paper_settings(options), seed=SEED, device=options.agent_device)
            with costs("training"):
                agent.fit(inputs.pair, vectors, progress=progress)
            with costs("deciding"):
                matching = agent.match(task)
            return Decided(matching, costs, told(agent))
        if self.decider == "rlea":
            context, before = inputs.desk.chosen_agent(inputs.model, inputs.pair_name, inputs.fold, progress)
            costs.seconds.update(before.seconds)
            costs.memory_mb.update(before.memory_mb)
            with costs("deciding"):
                matching = context.match(task)
            return Decided(matching, costs, told(context))
        MATCHERS[self.decider](toy_task(vectors))  # loads compiled code, which is not part of deciding
        with costs("deciding"):
            matching = MATCHERS[self.decider](task)
        return Decided(matching, costs, {})


def code_of(decider: str) -> str:
    """The version of the code that a decider's links come from; that of the vectors is in the vectors."""
    own = {"paper": "rlea.paper.agent", "rlea": "rlea.agent.context"}
    module = own.get(decider) or f"rlea.matchers.{decider.replace('-', '_')}"
    return code_version(module, "rlea.search.candidates", "rlea.evaluation.metrics")


def paper_settings(options: Options, preset: str = "paper", candidates: int | None = None) -> AgentSettings:
    """The agent as in the paper, or a preset near it; of few episodes in a quick run."""
    settings = PRESETS[preset]
    if candidates is not None:
        settings = replace(settings, candidates=candidates)
    if options.episodes is None:
        return settings
    return replace(settings, train=replace(settings.train, episodes=options.episodes))


def agent_settings(decider: str, options: Options) -> dict[str, Any]:
    """What a decider is trained with, as a record has it; nothing for the others."""
    if decider == "paper":
        return dict(plain(asdict(paper_settings(options))))
    return dict(plain(asdict(ContextAgent().settings))) if decider == "rlea" else {}


def told(agent: Agent | ContextAgent) -> dict[str, Any]:
    """What an agent says of itself beside its settings; of its history, what was tried on validation links."""
    about = describe_agent(agent)
    rows = [row for row in about.pop("history") if "valid_aligned" in row]
    del about["settings"]
    return {**about, "history": rows}


def choose_dangling(test: Links, share: float) -> tuple[Links, tuple[int, ...]]:
    """The test links that are left when a share of their targets is taken away, and the targets taken."""
    targets = np.unique(test.target_ids)
    taken = np.random.default_rng([SEED, 5]).permutation(targets)[: round(share * len(targets))]
    left = ~np.isin(test.target_ids, taken)
    return Links.of(test.source_ids[left], test.target_ids[left]), tuple(taken.tolist())
