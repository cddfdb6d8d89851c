"""Table 3 and beyond: what every stage costs as graphs grow, on synthetic pairs of 1,000 to 1,000,000 entities a side.

The pairs have a planted alignment, five triples an entity, and vectors of 64 dimensions, unequal ones as those of
trained models are, whose nearest targets are right for about half of 30,000 entities. Ten candidates an entity are
searched for, exactly or approximately, and decided over. An agent that was trained on a small pair of the kind decides
for the large ones: what it learns are the same few numbers. Each stage goes as far as it can be waited for. Where the
folder of the data sets has the 100K ones, they are run as the paper does.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numba
import numpy as np

from rlea.agent.context import ContextAgent
from rlea.errors import InputError
from rlea.evaluation.metrics import link_metrics
from rlea.experiments.code_version import code_version
from rlea.experiments.costs import MEMORY, Costs
from rlea.experiments.deciding import cells_of, store_of
from rlea.experiments.desk import PAIRS, SEED, Desk, Options, find_folder
from rlea.experiments.figures import figures_of, markdown_table, share, title
from rlea.experiments.grid import Cell, Grid, Results
from rlea.experiments.inputs import check_known
from rlea.experiments.published import TABLE_3, TITLES
from rlea.experiments.store import Store
from rlea.graph import GraphPair, choose_pool
from rlea.io.synthetic import SyntheticSettings, generate, synthetic_embeddings
from rlea.matchers import MATCHERS
from rlea.matching import Matching, Task, toy_task
from rlea.models.embed import embed_entities
from rlea.progress import Progress
from rlea.search.approximate import search_approximately
from rlea.search.candidates import Candidates, find_candidates
from rlea.search.embeddings import Embeddings
from rlea.views.report.plots import growth_plot

SIZES = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
QUICK_SIZES = (300, 600)
DIM, NOISE, CANDIDATES = 64, 0.7, 10
DECAY = 0.75  # dimension i is i^-DECAY as long as the first
EPOCHS = 10  # of the embedding stage: enough to time one
COLUMNS = ("stage", "entities", "seconds", "peak_memory_mb", "hits@1", "threads", "commit", "seed")
OF_100K = ("nearest", "seq", "paper", "rlea")
MODELS_OF_100K = ("jape", "sea")  # as in the paper


@dataclass(frozen=True)
class Stage:
    """What is timed, what is made before the clock runs, up to which size it can be waited for, whose code it is."""

    run: Callable[[World, Progress], Matching | float | None]
    prepare: Callable[[World], object]
    largest: float
    module: str


class World:
    """A synthetic pair of a size with what the stages need, made when it is first asked for."""

    def __init__(self, size: int) -> None:
        self.size = size

    @cached_property
    def pair(self) -> GraphPair:
        return generate(SyntheticSettings(num_entities=self.size, seed=SEED))

    @cached_property
    def vectors(self) -> Embeddings:
        return make_vectors(self.pair)

    @cached_property
    def pool(self) -> tuple[Any, Any]:
        _, source_ids, target_ids = choose_pool(self.pair, "test")
        return source_ids, target_ids

    @cached_property
    def candidates(self) -> Candidates:
        """Those that are decided over: exact ones as far as they are timed, approximate ones beyond."""
        if self.size <= STAGES["candidates, exact"].largest:
            found = find_candidates(self.vectors, *self.pool, CANDIDATES)
        else:
            found = search_approximately(self.vectors, *self.pool, CANDIDATES, seed=SEED).candidates
        _ = found.pairs  # made on first use
        return found

    @cached_property
    def task(self) -> Task:
        return Task(self.pair.source, self.pair.target, self.pair.train, self.candidates, SEED)

    @cached_property
    def agent(self) -> ContextAgent:
        """Trained on a small pair of the kind."""
        return small_agent(min(self.size, 2000))


@cache
def small_agent(size: int) -> ContextAgent:
    """An agent trained on a pair of that size; one serves all larger pairs."""
    small = generate(SyntheticSettings(num_entities=size, seed=SEED))
    return ContextAgent(seed=SEED).fit(small, make_vectors(small))


def make_vectors(pair: GraphPair) -> Embeddings:
    """Planted vectors with a few long dimensions and many short ones: search is easier than among equal ones."""
    vectors = synthetic_embeddings(pair, noise=NOISE, dim=DIM, seed=SEED)
    lengths = np.arange(1, DIM + 1, dtype=np.float32) ** np.float32(-DECAY)
    return replace(vectors, source=vectors.source * lengths, target=vectors.target * lengths)


def _matcher(name: str, largest: float) -> Stage:
    def prepare(world: World) -> object:
        MATCHERS[name](toy_task(world.vectors))  # loads compiled code
        return world.task

    return Stage(
        lambda world, progress: MATCHERS[name](world.task), prepare, largest, f"rlea.matchers.{name.replace('-', '_')}"
    )


def _embed(world: World, progress: Progress) -> None:
    embed_entities(world.pair, "mtranse", seed=SEED, epochs=EPOCHS, progress=progress, device="cpu")


def _search(world: World, progress: Progress) -> None:
    find_candidates(world.vectors, *world.pool, CANDIDATES, progress)


def _search_approximately(world: World, progress: Progress) -> float:
    return search_approximately(world.vectors, *world.pool, CANDIDATES, seed=SEED, progress=progress).recall


def _with_pair(world: World) -> object:
    embed_entities(World(300).pair, "mtranse", seed=SEED, epochs=1, device="cpu")  # loads compiled code
    return world.pair


def _with_vectors(world: World) -> object:
    small = World(300)
    find_candidates(small.vectors, *small.pool, CANDIDATES)  # loads compiled code
    search_approximately(small.vectors, *small.pool, CANDIDATES, seed=SEED, num_cells=10, probes=5)
    return world.vectors


def _with_agent(world: World) -> object:
    return world.agent, world.task


STAGES: dict[str, Stage] = {
    f"embedding (MTransE, {EPOCHS} epochs)": Stage(_embed, _with_pair, 100_000, "rlea.models.mtranse"),
    "candidates, exact": Stage(_search, _with_vectors, 100_000, "rlea.search.candidates"),
    "candidates, approximate": Stage(_search_approximately, _with_vectors, math.inf, "rlea.search.approximate"),
    "deciding: seq": _matcher("seq", math.inf),
    "deciding: hungarian": _matcher("hungarian", 100_000),
    "deciding: best-first": _matcher("best-first", math.inf),
    "deciding: rlea": Stage(
        lambda world, progress: world.agent.match(world.task), _with_agent, 300_000, "rlea.agent.context"
    ),
}


def grids(desk: Desk) -> list[Grid]:
    """The cells that were asked for: sizes one after another, since a size is made once; then the 100K data sets."""
    options = desk.options
    large = large_pairs(options)
    for name in ("pairs", "deciders", "models"):
        if getattr(options, name) and not large:
            raise InputError(
                f"--{name} means nothing without the 100K data sets", remedy="leave it out, or give --data"
            )
    if options.folds != ("1",) and not large:
        raise InputError("--folds means nothing without the 100K data sets", remedy="leave it out, or give --data")
    sizes = options.sizes or (QUICK_SIZES if options.quick else SIZES)
    store = Store(options.output / "scale", COLUMNS, ("stage", "entities"), {"stage": tuple(STAGES), "entities": ()})
    holder: dict[int, World] = {}
    quick = " --quick" if options.quick else ""
    cells = [
        Case(name, size, holder).cell(f"rlea reproduce scale{quick} --sizes {size}")
        for size in sizes
        for name, stage in STAGES.items()
        if size <= stage.largest
    ]
    found = [Grid(store, cells)]
    if large:
        models, deciders = options.models or MODELS_OF_100K, options.deciders or OF_100K
        check_known(models, MODELS_OF_100K, "model")
        check_known(deciders, OF_100K, "decider")
        found.append(Grid(store_of(options.output), cells_of(desk, "scale", models, deciders, pairs=large)))
    return found


def large_pairs(options: Options) -> tuple[str, ...]:
    """The 100K data sets that are there and wanted."""
    found = []
    for pair in options.pairs or PAIRS:
        try:
            find_folder(options.data, f"{pair}_100K")
        except InputError:
            continue
        found.append(f"{pair}_100K")
    return tuple(found)


@dataclass(frozen=True, eq=False)
class Case:
    """A stage at a size."""

    name: str
    size: int
    worlds: dict[int, World]  # at most one: that of the last cell

    def cell(self, command: str) -> Cell:
        """What the grid runs."""
        return Cell({"stage": self.name, "entities": self.size}, self.wanted, self.run, command)

    def wanted(self, progress: Progress) -> dict[str, Any]:
        """What a record of this cell says if it was made by this code, with these settings."""
        modules = (
            STAGES[self.name].module,
            "rlea.io.synthetic",
            "rlea.evaluation.metrics",
            "rlea.search.candidates",
            "rlea.search.approximate",
        )
        settings = {"dim": DIM, "noise": NOISE, "decay": DECAY, "candidates": CANDIDATES, "epochs": EPOCHS}
        return {"settings": settings, "code": code_version(*modules), "seed": SEED}

    def run(self, progress: Progress) -> dict[str, Any]:
        """Make what the stage needs, then time it."""
        if self.size not in self.worlds:
            self.worlds.clear()
            self.worlds[self.size] = World(self.size)
        world, stage, costs = self.worlds[self.size], STAGES[self.name], Costs()
        stage.prepare(world)
        with costs("stage"):
            found = stage.run(world, progress)
        result = {
            "seconds": costs.seconds["stage"],
            "peak_memory_mb": costs.memory_mb["stage"],
            "memory": MEMORY,
            "threads": numba.get_num_threads(),
            "hits@1": link_metrics(found, world.pair.test).hits_at_1 if isinstance(found, Matching) else None,
        }
        if isinstance(found, float):
            result["recall"] = found
        return {"result": result, "fingerprint": world.pair.fingerprint}


def has_any(results: Results) -> bool:
    """Whether there is something to show."""
    return bool(results["scale"])


def shows(result: dict[str, Any]) -> bool:
    """Whether a cell is among those that the table shows."""
    return "stage" in result or str(result["pair"]).endswith("_100K")


def table(results: Results) -> str:
    """Seconds (and GB) by stage and size, with the exponent: doubling the size takes 2^exponent times as long."""
    kept = {
        (record["result"]["stage"], record["result"]["entities"]): record["result"]
        for record in results["scale"].values()
    }
    sizes = sorted({size for _, size in kept})
    rows = []
    for stage in STAGES:
        own = {size: kept[stage, size] for size in sizes if (stage, size) in kept}
        if own:
            shown = [
                f"{_seconds(own[size]['seconds'])} ({own[size]['peak_memory_mb'] / 1000:.1f})" if size in own else "-"
                for size in sizes
            ]
            grows = exponent({size: row["seconds"] for size, row in own.items()})
            rows.append([stage, *shown, "-" if grows is None else f"{grows:.2f}"])
    return markdown_table(["seconds (GB)", *(f"{size:,}" for size in sizes), "exponent"], rows)


def _seconds(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def exponent(seconds: dict[int, float]) -> float | None:
    """The slope of log seconds over log size, from 10,000 on: what is smaller is ruled by fixed costs."""
    points = [(math.log(size), math.log(value)) for size, value in seconds.items() if size >= 10_000 and value > 0]
    if len(points) < 2:
        return None
    return statistics.linear_regression(*zip(*points, strict=True)).slope


def remarks(results: Results) -> str:
    """The recall of approximate search, and the 100K data sets beside the paper."""
    recalls = {
        record["result"]["entities"]: record["result"]["recall"]
        for record in results["scale"].values()
        if "recall" in record["result"]
    }
    parts = []
    if recalls:
        shown = ", ".join(f"{share(value)} at {size:,}" for size, value in sorted(recalls.items()))
        parts.append(f"Recall of the approximate search (share of the exact ten best that it finds): {shown}.")
    theirs = table_3(results)
    return "\n\n".join([*parts, theirs] if theirs else parts)


def table_3(results: Results) -> str:
    """Hits@1 on the 100K data sets beside the paper's, where they were run."""
    found = figures_of(results.get("deciders", {}).values(), ("model", "pair", "decider"))
    rows = []
    for model, columns in TABLE_3.items():
        for pair in PAIRS:
            own = {
                name: found[model, f"{pair}_100K", name] for name in OF_100K if (model, f"{pair}_100K", name) in found
            }
            if own:
                shown = [
                    (str(own[name]) if name in own else "-")
                    + (f"<br>paper {share(columns[name][pair])}" if name in columns else "")
                    for name in OF_100K
                ]
                rows.append([title(pair), TITLES[model], *shown])
    if rows:
        return markdown_table(["100K", "model", *OF_100K], rows)
    return "The 100K data sets of Table 3 were not at hand; where --data has them, this command runs them, too."


def pictures(results: Results) -> dict[str, str]:
    """Seconds and memory against entities, both on logarithmic scales."""
    found = {}
    for key, label, unit in (("seconds", "seconds", 1.0), ("peak_memory_mb", "peak memory, GB", 1000.0)):
        lines: dict[str, list[tuple[float, float]]] = {}
        for record in results["scale"].values():
            one = record["result"]
            lines.setdefault(one["stage"], []).append((one["entities"], one[key] / unit))
        plot = growth_plot({name: sorted(line) for name, line in lines.items()}, "entities a side", label)
        found["scale" if key == "seconds" else "scale_memory"] = plot
    return found
