"""Figure 6: deciding better over given vectors, or adding seeds while they are trained, or both.

AlignE and BootEA with and without Seq and RLEA as in the paper; beside them the agent of this package (rlea), and
joint rounds, in which its most confident links become seeds of AlignE for the next round.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rlea.agent import joint
from rlea.agent.agent import Aligner
from rlea.errors import InputError
from rlea.evaluation import metrics
from rlea.evaluation.metrics import expected_calibration_error, link_metrics
from rlea.evaluation.ranks import rank_metrics
from rlea.experiments.code_version import code_version
from rlea.experiments.costs import Costs
from rlea.experiments.deciders import settings_of
from rlea.experiments.deciding import DECIDERS_STORE, deciders_grid
from rlea.experiments.figures import Figure, Key, Result, Results, figures_of, markdown_table, points, title
from rlea.experiments.grid import Cell, Grid
from rlea.experiments.options import FOLDS, PAIRS, SHOWN_PAIRS, choose
from rlea.experiments.published import TITLES
from rlea.experiments.store import Store
from rlea.experiments.workspace import Inputs, Workspace, all_inputs
from rlea.graph import GraphPair, choose_pool
from rlea.models import MODELS as ALL_MODELS
from rlea.progress import Progress
from rlea.search.embeddings import Embeddings
from rlea.views.report.plots import dots_plot

MODELS = ("aligne", "bootea")
DECIDERS = ("nearest", "seq", "paper", "rlea")
JOINT = "joint"  # asked for like a decider, kept apart: it makes vectors of its own
ROUNDS = 2
JOINT_STORE = Store(
    Path("joint"),  # a record a pair, with all its rounds
    ("model", "pair", "fold"),
    ("rounds", "hits@1", "precision", "recall", "f1", "matched", "ece"),
    {"pair": PAIRS, "fold": FOLDS},
)
STORES = (DECIDERS_STORE, JOINT_STORE)
ROWS = {"nearest": "", "seq": " + Seq", "paper": " + RLEA as in the paper", "rlea": " + rlea"}


def grids(workspace: Workspace) -> list[Grid]:
    """The cells that were asked for."""
    options = workspace.options
    models = choose(options.models, MODELS, MODELS, "model")
    deciders = choose(options.deciders, (*DECIDERS, JOINT), (*DECIDERS, JOINT), "decider")
    pairs, plain = options.pairs_or(PAIRS), [name for name in deciders if name != JOINT]
    found = [deciders_grid(workspace, "bootea", models, plain, pairs)]
    if JOINT in deciders:
        alone = [model for model in models if model != "bootea"]  # it has rounds of its own
        found.append(Grid(JOINT_STORE.at(options.output), [*map(joint_cell, all_inputs(workspace, alone, pairs))]))
    if not any(grid.cells for grid in found):
        raise InputError("bootea has its own rounds and is not trained jointly", remedy="use --models aligne")
    return found


def joint_cell(inputs: Inputs) -> Cell:
    """A model and the agent trained in turn; the round that validation links choose is the result."""

    def wanted(progress: Progress) -> dict[str, Any]:
        settings = {"rounds": ROUNDS, "pool": "test", "epochs": inputs.options.epochs(inputs.model)}
        settings["agent"] = settings_of("rlea", inputs.options)
        return inputs.wanted(settings, code_version(joint, metrics, ALL_MODELS[inputs.model].load()), progress)

    def run(progress: Progress) -> dict[str, Any]:
        pair, costs, rounds = inputs.pair, Costs(), list[dict[str, Any]]()
        agent, _ = inputs.trained_agent(progress)
        _, _, target_ids = choose_pool(pair, "test")

        def embed(grown: GraphPair, number: int) -> Embeddings:
            return inputs.vectors(progress) if number == 0 else inputs.train_vectors(grown, progress)

        def note(number: int, agent: Aligner, vectors: Embeddings) -> None:
            links = agent.match(pair, [vectors])
            rounds.append(
                {
                    "round": number,
                    **link_metrics(links, pair.test).as_dict(),
                    "ece": expected_calibration_error(links, pair.test),
                    "nearest": rank_metrics(vectors, pair.test, target_ids, pool="test").as_dict()["hits@1"],
                }
            )

        with costs("joint rounds"):
            trained = joint.train_jointly(pair, embed, ROUNDS, agent, progress=progress, on_round=note)
        for row, more in zip(rounds, trained.rounds, strict=True):
            row |= {"sure": more["sure"], "valid": more["valid"]}
        best = chosen_round(rounds)
        result = {key: value for key, value in best.items() if key not in ("round", "nearest", "sure", "valid")}
        result |= {"rounds": len(rounds) - 1, "chosen": best["round"], "by_round": rounds}
        return {"result": result | {"seconds": costs.seconds["joint rounds"]}}

    return Cell(inputs.names, wanted, run, inputs.command("bootea", f" --deciders {JOINT}"))


def chosen_round(rounds: list[dict[str, Any]]) -> dict[str, Any]:
    """The round that `rlea align --joint` would keep: the last of those that find the most validation links."""
    return max(rounds, key=lambda row: (row["valid"] or 0.0, row["round"]))


def is_shown(result: Result) -> bool:
    """Whether a result is among those that the table shows; joint rounds name no decider."""
    return result["model"] in MODELS and result.get("decider", "rlea") in DECIDERS and result["pool"] == "test"


def table(results: Results) -> str:
    """Hits@1, a row a way."""
    found = _hits(results)
    pairs = [pair for pair in SHOWN_PAIRS if any(key[1] == pair for key in found)]
    rows = []
    for name in dict.fromkeys(key[0] for key in found):
        own = [found.get((name, pair)) for pair in pairs]
        folds = sorted({figure.folds for figure in own if figure is not None})
        rows.append([name, "/".join(map(str, folds)), *("-" if figure is None else str(figure) for figure in own)])
    return markdown_table(["", "folds", *map(title, pairs)], rows)


def _hits(results: Results) -> dict[Key, Figure]:
    """Figures by the name of the row, in the paper's order, and pair."""
    plain = figures_of(results["deciders"], ("model", "decider", "pair"))
    found: dict[Key, Figure] = {
        (f"{TITLES[model]}{ROWS[decider]}", pair): plain[model, decider, pair]
        for model in MODELS
        for decider in DECIDERS
        for pair in SHOWN_PAIRS
        if (model, decider, pair) in plain
    }
    for (model, pair), figure in figures_of(results["joint"], ("model", "pair")).items():
        found[f"{TITLES[model]} + rlea, joint rounds", pair] = figure
    return found


def remarks(results: Results) -> str:
    """What the paper's figure claims, in points."""
    found = _hits(results)
    parts = []
    for what, high, low in (
        ("BootEA over AlignE", "BootEA", "AlignE"),
        ("RLEA as in the paper over AlignE alone", f"AlignE{ROWS['paper']}", "AlignE"),
        ("the agent over AlignE alone", f"AlignE{ROWS['rlea']}", "AlignE"),
        ("the agent over BootEA alone", f"BootEA{ROWS['rlea']}", "BootEA"),
    ):
        gains = [
            points(pair, found[high, pair].mean - found[low, pair].mean)
            for pair in PAIRS
            if (high, pair) in found and (low, pair) in found
        ]
        if gains:
            parts.append(f"- {what}: {', '.join(gains)}")
    gains = [points(one["pair"], one["hits@1"] - one["by_round"][0]["hits@1"]) for one in results["joint"]]
    if gains:
        parts.append(f"- joint rounds over their own first round, before any joint training: {', '.join(gains)}")
    return "In points of Hits@1:\n\n" + "\n".join(parts) if parts else ""


def pictures(results: Results) -> dict[str, str]:
    """The columns of the paper's figure as rows."""
    rows: dict[str, dict[str, float]] = {}
    for (name, pair), figure in _hits(results).items():
        rows.setdefault(name, {})[title(pair)] = figure.mean
    return {"bootea": dots_plot(rows, "Hits@1")}
