"""Cells in which a decider decides over the vectors of a model: those of `results/deciders.csv`.

All deciders of a model, pair and fold are given the same vectors and the same candidates. `seconds` and
`peak_memory_mb` of a line are those of deciding, after training and with the candidates found; the record has those of
the other stages.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numba
import numpy as np

from rlea.evaluation.metrics import coverage, expected_calibration_error, link_metrics
from rlea.experiments import deciders
from rlea.experiments.costs import MEMORY, Costs
from rlea.experiments.deciders import CALIBRATED, DECIDERS
from rlea.experiments.grid import Cell, Grid
from rlea.experiments.options import FOLDS, PAIRS, SEED, TRAINED
from rlea.experiments.store import Store
from rlea.experiments.workspace import Inputs, Workspace, all_inputs
from rlea.graph import Links
from rlea.matchers import MATCHERS
from rlea.matching import Matching, Task, keep_worthwhile, toy_task
from rlea.progress import Progress

MEASURES = ("hits@1", "precision", "recall", "f1", "matched", "seconds", "peak_memory_mb")
CANDIDATES = 50
DECIDERS_STORE = Store(
    Path("deciders"),
    ("model", "pair", "fold", "decider", "pool"),
    MEASURES,
    {"pair": PAIRS, "model": TRAINED, "fold": FOLDS, "decider": DECIDERS},
)


def deciders_grid(
    workspace: Workspace,
    experiment: str,
    models: Sequence[str],
    names: Sequence[str],
    pairs: Sequence[str],
    dangling: float = 0.0,
) -> Grid:
    """The cells of models x pairs x folds x deciders, those that share vectors one after another."""
    inputs = all_inputs(workspace, models, pairs)
    cells = [decider_cell(experiment, one, name, dangling) for one in inputs for name in names]
    return Grid(DECIDERS_STORE.at(workspace.options.output), cells)


def decider_cell(experiment: str, inputs: Inputs, decider: str, dangling: float = 0.0) -> Cell:
    """One decider over one model's vectors; with `dangling`, that share of the test targets is taken away."""

    def wanted(progress: Progress) -> dict[str, Any]:
        settings = {"candidates": CANDIDATES, "pool": "test", "dangling": dangling, "decider": decider}
        settings["agent"] = deciders.settings_of(decider, inputs.options)
        return inputs.wanted(settings, deciders.code_of(decider), progress)

    def run(progress: Progress) -> dict[str, Any]:
        pair = inputs.pair
        gold, taken = choose_dangling(pair.test, dangling)
        found, costs = inputs.candidates(CANDIDATES, progress, taken)
        task = Task(pair.source, pair.target, pair.train, found, SEED)
        matching, own, agent = decide(inputs, decider, task, progress)
        facts: dict[str, Any] = {}
        if decider in CALIBRATED:
            facts["ece"] = expected_calibration_error(matching, gold)
        if decider == "rlea" and dangling:
            facts["uncut"] = link_metrics(matching, gold).as_dict()
            matching = keep_worthwhile(matching, min(found.num_rows, found.num_columns))
            facts["threshold"] = float(matching.confidences.min()) if len(matching) else None
        judged = link_metrics(matching, gold).as_dict()
        result = {
            **{key: value for key, value in judged.items() if key != "pool"},
            **facts,
            "seconds": own.seconds["deciding"],
            "seconds_by_stage": costs.seconds | own.seconds,
            "peak_memory_mb": own.memory_mb["deciding"],
            "peak_memory_mb_by_stage": costs.memory_mb | own.memory_mb,
            "memory": MEMORY,
            "threads": numba.get_num_threads(),
            "sources": found.num_rows,
            "targets": found.num_columns,
            "coverage": coverage(found, gold),
        }
        return {"result": result, "agent": agent}

    names = {**inputs.names, "decider": decider, "pool": f"test-{100 * dangling:g}%" if dangling else "test"}
    return Cell(names, wanted, run, inputs.command(experiment, f" --deciders {decider}"))


def decide(
    inputs: Inputs, decider: str, task: Task, progress: Progress, candidates: int | None = None
) -> tuple[Matching, Costs, dict[str, Any]]:
    """Train where the decider is trained, then decide; no decider sees a test link.

    Returns the links, what each stage cost, and what a record says of an agent. With `candidates` an agent is given so
    many per entity, in place of its own number.
    """
    costs = Costs()
    if decider == "paper":
        settings = deciders.paper_settings(inputs.options, candidates=candidates)
        pair, vectors = inputs.pair, task.candidates.embeddings
        with costs("training"):
            paper = deciders.train_paper_agent(settings, pair, vectors, inputs.options, progress)
        with costs("deciding"):
            matching = paper.match(task)
        return matching, costs, deciders.describe(paper)
    if decider == "rlea":
        agent, before = inputs.chosen_agent(progress)
        costs.seconds.update(before.seconds)
        costs.memory_mb.update(before.memory_mb)
        with costs("deciding"):
            matching = deciders.decide(agent, task, candidates)
        return matching, costs, deciders.describe(agent)
    MATCHERS[decider](toy_task(task.candidates.embeddings))  # loads compiled code, which is not part of deciding
    with costs("deciding"):
        matching = MATCHERS[decider](task)
    return matching, costs, {}


def choose_dangling(test: Links, share: float) -> tuple[Links, tuple[int, ...]]:
    """The test links that are left when a share of their targets is taken away, and the targets taken."""
    targets = np.unique(test.target_ids)
    taken = np.random.default_rng([SEED, 5]).permutation(targets)[: round(share * len(targets))]
    left = ~np.isin(test.target_ids, taken)
    return Links.of(test.source_ids[left], test.target_ids[left]), tuple(taken.tolist())
