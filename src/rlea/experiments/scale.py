"""Table 3 and beyond: what every stage costs as graphs grow, on synthetic pairs of 1,000 to 1,000,000 entities a side.

The pairs have a planted alignment, five triples per entity, and vectors of 64 dimensions of unequal length, as those
of trained models are; the nearest target is correct for about half of 30,000 entities. Ten candidates per entity are
searched for, exactly or approximately, and decided over. One agent, trained on a small pair of this kind, decides for
all larger ones: it learns the same few numbers on any of them. Each stage is run up to the size at which it takes too
long. The 100K data sets are run as in the paper if the folder of the data sets has them.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from rlea.agent.agent import Aligner
from rlea.errors import InputError
from rlea.evaluation import metrics
from rlea.evaluation.metrics import link_metrics
from rlea.experiments.code_version import code_version
from rlea.experiments.costs import Costs
from rlea.experiments.deciders import decide, module_of, train_agent
from rlea.experiments.deciding import DECIDERS_STORE, deciders_grid
from rlea.experiments.figures import Result, Results, figures_of, grouped, markdown_table, share, title
from rlea.experiments.grid import Cell, Grid
from rlea.experiments.options import PAIRS, SEED, Options, choose, find_folder
from rlea.experiments.published import TABLE_3, TITLES
from rlea.experiments.store import Store
from rlea.experiments.workspace import Workspace
from rlea.graph import GraphPair, Ids, choose_pool
from rlea.io import synthetic
from rlea.io.synthetic import SyntheticSettings, generate, synthetic_embeddings
from rlea.matchers import MATCHERS
from rlea.matching import Matching, Task
from rlea.models import MODELS
from rlea.models.embed import embed_entities
from rlea.progress import Progress, silent
from rlea.search import approximate, candidates
from rlea.search.approximate import search_approximately
from rlea.search.candidates import Candidates, find_candidates
from rlea.search.embeddings import Embeddings
from rlea.views.report.plots import growth_plot

SIZES = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
QUICK_SIZES = (300, 600)
DIM, NOISE, CANDIDATES = 64, 0.7, 10
DECAY = 0.75  # dimension i is i^-DECAY as long as the first
EPOCHS = 10  # of the embedding stage: enough to time one
OF_100K = ("nearest", "seq", "paper", "rlea")
MODELS_OF_100K = ("jape", "sea")  # as in the paper


@dataclass(frozen=True)
class Stage:
    """What is timed, what of the world it needs, up to which size it can be waited for, whose code it is."""

    run: Callable[[World, Progress], Matching | float | None]
    needs: tuple[str, ...]  # made before the clock runs
    largest: float
    module: Callable[[], ModuleType | Callable[..., Any]]  # a function, since a model takes seconds to import


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
    def pool(self) -> tuple[Ids, Ids]:
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

    @property
    def agent(self) -> Aligner:
        return small_agent(min(self.size, 2000))


@cache
def small_agent(size: int) -> Aligner:
    """An agent trained on a pair of that size; one serves all larger pairs."""
    small = World(size)
    return train_agent(small.pair, small.vectors)


def make_vectors(pair: GraphPair) -> Embeddings:
    """Planted vectors with a few long dimensions and many short ones: search is easier than among equal ones."""
    vectors = synthetic_embeddings(pair, noise=NOISE, dim=DIM, seed=SEED)
    lengths = np.arange(1, DIM + 1, dtype=np.float32) ** np.float32(-DECAY)
    return replace(vectors, source=vectors.source * lengths, target=vectors.target * lengths)


def _embed(world: World, progress: Progress) -> None:
    embed_entities(world.pair, "mtranse", seed=SEED, epochs=EPOCHS, progress=progress, device="cpu")


def _search(world: World, progress: Progress) -> None:
    find_candidates(world.vectors, *world.pool, CANDIDATES, progress)


def _search_approximately(world: World, progress: Progress) -> float:
    return search_approximately(world.vectors, *world.pool, CANDIDATES, seed=SEED, progress=progress).recall


def _matcher(name: str, largest: float) -> Stage:
    return Stage(lambda world, progress: MATCHERS[name](world.task), ("task",), largest, lambda: module_of(name))


STAGES: dict[str, Stage] = {
    f"embedding (MTransE, {EPOCHS} epochs)": Stage(_embed, ("pair",), 100_000, lambda: MODELS["mtranse"].load()),
    "candidates, exact": Stage(_search, ("vectors",), 100_000, lambda: candidates),
    "candidates, approximate": Stage(_search_approximately, ("vectors",), math.inf, lambda: approximate),
    "deciding: seq": _matcher("seq", math.inf),
    "deciding: hungarian": _matcher("hungarian", 100_000),
    "deciding: best-first": _matcher("best-first", math.inf),
    "deciding: rlea": Stage(
        lambda world, progress: decide(world.agent, world.task), ("agent", "task"), 300_000, lambda: module_of("rlea")
    ),
}


@cache
def warm_up(stage_name: str) -> None:
    """Load the compiled code of a stage, which is not part of what is timed."""
    STAGES[stage_name].run(World(QUICK_SIZES[0]), silent)


STORE = Store(
    Path("scale"),
    ("stage", "entities"),
    ("seconds", "peak_memory_mb", "hits@1", "threads"),
    {"stage": tuple(STAGES), "entities": ()},
)
STORES = (STORE, DECIDERS_STORE)


def grids(workspace: Workspace) -> list[Grid]:
    """The cells that were asked for: sizes one after another, since a size is made once; then the 100K data sets."""
    options = workspace.options
    large = large_pairs(options)
    unused = {name: getattr(options, name) for name in ("pairs", "deciders", "models")}
    for name, given in {**unused, "folds": options.folds != ("1",)}.items():
        if given and not large:
            raise InputError(
                f"--{name} means nothing without the 100K data sets", remedy="leave it out, or give --data"
            )
    sizes = options.sizes or (QUICK_SIZES if options.quick else SIZES)
    cells = [
        cell_of(workspace, name, size) for size in sizes for name, stage in STAGES.items() if size <= stage.largest
    ]
    found = [Grid(STORE.at(options.output), cells)]
    if large:
        models = choose(options.models, MODELS_OF_100K, MODELS_OF_100K, "model")
        deciders = choose(options.deciders, OF_100K, OF_100K, "decider")
        found.append(deciders_grid(workspace, "scale", models, deciders, large))
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


def cell_of(workspace: Workspace, stage_name: str, size: int) -> Cell:
    """A stage at a size."""
    stage = STAGES[stage_name]

    def wanted(progress: Progress) -> dict[str, Any]:
        settings = {"dim": DIM, "noise": NOISE, "decay": DECAY, "candidates": CANDIDATES, "epochs": EPOCHS}
        code = code_version(stage.module(), synthetic, metrics, candidates, approximate)
        return {"settings": settings, "code": code, "seed": SEED}

    def run(progress: Progress) -> dict[str, Any]:
        world, costs = workspace.cached("world", size, lambda: World(size)), Costs()
        warm_up(stage_name)
        for name in stage.needs:
            getattr(world, name)
        with costs("stage"):
            found = stage.run(world, progress)
        result = {
            **costs.of("stage"),
            "hits@1": link_metrics(found, world.pair.test).hits_at_1 if isinstance(found, Matching) else None,
        }
        if isinstance(found, float):
            result["recall"] = found
        return {"result": result, "fingerprint": world.pair.fingerprint}

    quick = " --quick" if workspace.options.quick else ""
    return Cell({"stage": stage_name, "entities": size}, wanted, run, f"rlea reproduce scale{quick} --sizes {size}")


def is_shown(result: Result) -> bool:
    """Whether a result is among those that are shown."""
    return "stage" in result or str(result["pair"]).endswith("_100K")


def table(results: Results) -> str:
    """Seconds (and GB) by stage and size, with the exponent: doubling the size takes 2^exponent times as long."""
    kept = {key: own[0] for key, own in grouped(results["scale"], ("stage", "entities")).items()}
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
    recalls = {one["entities"]: one["recall"] for one in results["scale"] if "recall" in one}
    parts = [table_3(results)]
    if recalls:
        shown = ", ".join(f"{share(value)} at {size:,}" for size, value in sorted(recalls.items()))
        parts.insert(0, f"Recall of the approximate search (share of the exact ten best that it finds): {shown}.")
    return "\n\n".join(parts)


def table_3(results: Results) -> str:
    """Hits@1 on the 100K data sets beside the paper's, where they were run."""
    found = figures_of(results["deciders"], ("model", "pair", "decider"))
    rows = []
    for model, columns in TABLE_3.items():
        for pair in PAIRS:
            own = {name: found.get((model, f"{pair}_100K", name)) for name in OF_100K}
            if any(own.values()):
                theirs = {name: f"<br>paper {share(figures[pair])}" for name, figures in columns.items()}
                shown = [f"{figure or '-'}{theirs.get(name, '')}" for name, figure in own.items()]
                rows.append([title(pair), TITLES[model], *shown])
    if rows:
        return markdown_table(["100K", "model", *OF_100K], rows)
    return "The 100K data sets of Table 3 were not available; this command runs them too if --data has them."


def pictures(results: Results) -> dict[str, str]:
    """Seconds and memory against entities, both on logarithmic scales."""
    found = {}
    for key, label, unit in (("seconds", "seconds", 1.0), ("peak_memory_mb", "peak memory, GB", 1000.0)):
        lines: dict[str, list[tuple[float, float]]] = {}
        for one in results["scale"]:
            lines.setdefault(one["stage"], []).append((one["entities"], one[key] / unit))
        plot = growth_plot({name: sorted(line) for name, line in lines.items()}, "entities a side", label)
        found["scale" if key == "seconds" else "scale_memory"] = plot
    return found
