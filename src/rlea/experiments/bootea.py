"""Figure 6: deciding better over given vectors, or adding seeds while they are trained, or both.

AlignE and BootEA with and without Seq and RLEA as in the paper; beside them the agent that remembers, and its joint
rounds, in which its sure links train AlignE's vectors anew.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rlea.agent.context import ContextAgent
from rlea.agent.joint import train_jointly
from rlea.errors import InputError
from rlea.evaluation.metrics import expected_calibration_error, link_metrics
from rlea.evaluation.ranks import rank_metrics
from rlea.experiments.code_version import code_version
from rlea.experiments.costs import Costs
from rlea.experiments.deciding import cells_of, store_of
from rlea.experiments.desk import FOLDS, PAIRS, QUICK, SEED, Desk, plain
from rlea.experiments.figures import Figure, Key, figures_of, markdown_table, title
from rlea.experiments.grid import Cell, Grid, Results
from rlea.experiments.inputs import Inputs, all_inputs, check_known
from rlea.experiments.published import TITLES
from rlea.experiments.store import Store
from rlea.graph import GraphPair, choose_pool
from rlea.models import MODELS as KNOWN
from rlea.models.embed import embed_entities
from rlea.progress import Progress
from rlea.search.embeddings import Embeddings
from rlea.views.report.plots import dots_plot

MODELS = ("aligne", "bootea")
DECIDERS = ("nearest", "seq", "paper", "rlea")
JOINT = "joint"  # asked for like a decider, kept apart: it makes vectors of its own
ROUNDS = 2
JOINT_COLUMNS = (
    "model", "pair", "fold", "rounds", "hits@1", "precision", "recall", "f1", "matched", "ece", "commit", "seed",
)  # fmt: skip
COLUMNS = {"nearest": "", "seq": " + Seq", "paper": " + RLEA as in the paper", "rlea": " + rlea"}


def grids(desk: Desk) -> list[Grid]:
    """The cells that were asked for."""
    options = desk.options
    models, deciders = options.models or MODELS, options.deciders or (*DECIDERS, JOINT)
    plain_deciders = [name for name in deciders if name != JOINT]
    check_known(models, MODELS, "model")
    check_known(deciders, (*DECIDERS, JOINT), "decider")
    pairs = options.pairs_or(PAIRS)
    found = [Grid(store_of(options.output), cells_of(desk, "bootea", models, plain_deciders, pairs=pairs))]
    if JOINT in deciders:
        alone = [model for model in models if model != "bootea"]  # it has rounds of its own
        cells = [Case(inputs).cell() for inputs in all_inputs(desk, alone, pairs)]
        found.append(Grid(joint_store(options.output), cells))
    if not any(grid.cells for grid in found):
        raise InputError("bootea has its own rounds and is not trained jointly", remedy="use --models aligne")
    return found


def joint_store(output: Path) -> Store:
    """Where joint rounds are kept: a record a pair, with all its rounds."""
    return Store(output / "joint", JOINT_COLUMNS, ("model", "pair", "fold"), {"pair": PAIRS, "fold": FOLDS})


@dataclass(frozen=True, eq=False)
class Case:
    """A model and the agent trained in turn."""

    inputs: Inputs

    def cell(self) -> Cell:
        """What the grid runs."""
        command = self.inputs.command("bootea", f" --deciders {JOINT}")
        return Cell(self.inputs.names, self.wanted, self.run, command)

    def wanted(self, progress: Progress) -> dict[str, Any]:
        """What a record of this cell says if it was made by this code, with these settings, from these inputs."""
        model = self.inputs.model
        agent = plain(asdict(ContextAgent().settings))
        epochs = self.inputs.desk.options.epochs(model)
        settings = {"rounds": ROUNDS, "pool": "test", "epochs": epochs, "agent": agent}
        code = code_version("rlea.agent.joint", "rlea.evaluation.metrics", KNOWN[model].load().__module__)
        return self.inputs.wanted(settings, code, progress)

    def run(self, progress: Progress) -> dict[str, Any]:
        """All rounds; the one that validation links choose is the result."""
        inputs = self.inputs
        pair, desk, options = inputs.pair, inputs.desk, inputs.desk.options
        agent, _ = desk.context_agent(inputs.pair_name, inputs.fold, progress)
        costs, rounds = Costs(), list[dict[str, Any]]()
        _, _, target_ids = choose_pool(pair, "test")

        def embed(grown: GraphPair, number: int) -> Embeddings:
            if number == 0:
                return desk.vectors(inputs.model, inputs.pair_name, inputs.fold, progress)
            return embed_entities(
                grown,
                inputs.model,
                seed=SEED,
                progress=progress,
                device=options.device,
                epochs=options.epochs(inputs.model),
            )

        def note(number: int, agent: ContextAgent, vectors: Embeddings) -> None:
            links = agent.match(pair, vectors)
            rounds.append(
                {
                    "round": number,
                    **link_metrics(links, pair.test).as_dict(),
                    "ece": expected_calibration_error(links, pair.test),
                    "nearest": rank_metrics(vectors, pair.test, target_ids, pool="test").as_dict()["hits@1"],
                }
            )

        with costs("joint rounds"):
            joint = train_jointly(pair, embed, ROUNDS, seed=SEED, progress=progress, agent=agent, on_round=note)
        for row, more in zip(rounds, joint.rounds, strict=True):
            row |= {"sure": more["sure"], "valid": more["valid"]}
        best = chosen_round(rounds)
        result = {**{key: value for key, value in best.items() if key not in ("round", "nearest", "sure", "valid")}}
        result |= {"rounds": len(rounds) - 1, "chosen": best["round"], "by_round": rounds}
        return {"result": result | {"seconds": costs.seconds["joint rounds"]}}


def chosen_round(rounds: list[dict[str, Any]]) -> dict[str, Any]:
    """The round that `rlea align --joint` would keep: the last of those that find the most validation links."""
    return max(rounds, key=lambda row: (row["valid"] or 0.0, row["round"]))


def has_any(results: Results) -> bool:
    """Whether there is something to show."""
    return bool(_hits(results))


def shows(result: dict[str, Any]) -> bool:
    """Whether a cell is among those that the table shows."""
    return result["model"] in MODELS and result.get("decider", "rlea") in DECIDERS and result["pool"] == "test"


def table(results: Results) -> str:
    """Hits@1, a row a way."""
    found = _hits(results)
    pairs = [pair for pair in (*PAIRS, QUICK) if any(key[1] == pair for key in found)]
    rows = []
    for name in dict.fromkeys(key[0] for key in found):
        own = [found.get((name, pair)) for pair in pairs]
        folds = sorted({figure.folds for figure in own if figure is not None})
        rows.append([name, "/".join(map(str, folds)), *("-" if figure is None else str(figure) for figure in own)])
    return markdown_table(["", "folds", *map(title, pairs)], rows)


def _hits(results: Results) -> dict[Key, Figure]:
    """Figures by the name of the way, in the paper's order, and pair."""
    plain_ones = figures_of(results["deciders"].values(), ("model", "decider", "pair"))
    joint = figures_of(results.get("joint", {}).values(), ("model", "pair"))
    pairs = (*PAIRS, QUICK)
    found: dict[Key, Figure] = {
        (f"{TITLES[model]}{COLUMNS[decider]}", pair): plain_ones[model, decider, pair]
        for model in MODELS
        for decider in DECIDERS
        for pair in pairs
        if (model, decider, pair) in plain_ones
    }
    for (model, pair), figure in joint.items():
        found[f"{TITLES[model]} + rlea, joint rounds", pair] = figure
    return found


def remarks(results: Results) -> str:
    """What the paper's figure claims, in points."""
    found = _hits(results)
    parts = []
    for what, high, low in (
        ("BootEA over AlignE", "BootEA", "AlignE"),
        ("RLEA as in the paper over AlignE alone", f"AlignE{COLUMNS['paper']}", "AlignE"),
        ("the agent over AlignE alone", f"AlignE{COLUMNS['rlea']}", "AlignE"),
        ("the agent over BootEA alone", f"BootEA{COLUMNS['rlea']}", "BootEA"),
    ):
        gains = [
            f"{title(pair)} {100 * (found[high, pair].mean - found[low, pair].mean):+.1f}"
            for pair in PAIRS
            if (high, pair) in found and (low, pair) in found
        ]
        if gains:
            parts.append(f"- {what}: {', '.join(gains)}")
    rounds = [record["result"] for record in results.get("joint", {}).values()]
    gains = [f"{title(one['pair'])} {100 * (one['hits@1'] - one['by_round'][0]['hits@1']):+.1f}" for one in rounds]
    if gains:
        parts.append(f"- joint rounds over their own first round, before any joint training: {', '.join(gains)}")
    return "In points of Hits@1:\n\n" + "\n".join(parts) if parts else ""


def pictures(results: Results) -> dict[str, str]:
    """The columns of the paper's figure as rows."""
    rows: dict[str, dict[str, float]] = {}
    for (name, pair), figure in _hits(results).items():
        rows.setdefault(name, {})[title(pair)] = figure.mean
    return {"bootea": dots_plot(rows, "Hits@1")}
