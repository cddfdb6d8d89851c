"""What the cells of a grid share: pairs, vectors, candidates, agents; each is made once and kept while it is in use."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from rlea.agent.agent import Aligner
from rlea.experiments.code_version import code_version
from rlea.experiments.costs import Costs
from rlea.experiments.deciders import AGENT_CODE, settings_of, train_agent
from rlea.experiments.options import (
    DEMO,
    QUICK,
    SEED,
    TABLES,
    UNRELATED,
    UNRELATED_SYNTHETIC,
    Options,
    find_folder,
)
from rlea.experiments.partial import read_tables, unrelated
from rlea.experiments.store import locked
from rlea.graph import GraphPair, choose_pool
from rlea.io.read import read_demo
from rlea.io.readers import read_pair
from rlea.io.readers.vectors import read_embeddings
from rlea.io.synthetic import SyntheticSettings, generate
from rlea.io.writers.atomic import atomic
from rlea.io.writers.vectors import write_embeddings
from rlea.models import MODELS
from rlea.models.checkpoint import remove_checkpoint
from rlea.models.embed import embed_entities
from rlea.progress import Progress
from rlea.record import as_json
from rlea.search.candidates import Candidates, find_candidates
from rlea.search.embeddings import Embeddings

Kept = TypeVar("Kept")


class Workspace:
    """Inputs of cells. Only those of the last cell are held: all of a grid would not fit into memory."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self._kept: dict[str, tuple[Any, Any]] = {}  # what was made last, by kind: its key and itself
        self._digests: dict[Path, tuple[tuple[int, int], str]] = {}

    def cached(self, kind: str, key: object, make: Callable[[], Kept]) -> Kept:
        """What `make` returns, held until another key of the same kind is asked for."""
        if kind not in self._kept or self._kept[kind][0] != key:
            self._kept.pop(kind, None)  # before the next is made: both at once would be the peak of memory
            self._kept[kind] = (key, make())
        return cast("Kept", self._kept[kind][1])

    def pair(self, name: str, fold: str) -> GraphPair:
        """A pair by the name of its data set, such as EN_FR."""
        return self.cached("pair", (name, fold), lambda: self._read(name, fold))

    def _read(self, name: str, fold: str) -> GraphPair:
        if name == QUICK:
            settings = SyntheticSettings(num_entities=200, seeds=0.3, seed=SEED)
            return replace(generate(settings), name=QUICK, fold=fold)
        if name == DEMO:
            return read_demo()
        if name in TABLES:
            return read_tables(find_folder(self.options.data, name))
        if name == UNRELATED:
            return unrelated(read_demo().source, self._read("D_W", fold).source, name)
        if name == UNRELATED_SYNTHETIC:
            size = 200 if self.options.quick else 1000
            one, other = (generate(SyntheticSettings(num_entities=size, seed=seed)) for seed in (SEED, SEED + 1))
            return GraphPair(name, one.source, other.target)
        return read_pair(find_folder(self.options.data, name), fold)

    def is_as_wanted(self, path: Path, note: Path, wanted: dict[str, Any]) -> bool:
        """Whether a file is what would be made today; its digest tells a stop between writing it and its note."""
        try:
            made = json.loads(note.read_text(encoding="utf-8"))
        except ValueError:
            return False
        known = made if isinstance(made, dict) else {}
        return all(known.get(key) == value for key, value in wanted.items()) and known.get("file") == self.digest(path)

    def vectors_digest(self, inputs: Inputs, progress: Progress) -> str:
        """SHA-256 of the file of vectors; trains them where there is none."""
        return self.digest(inputs.vectors_file(progress))

    def digest(self, path: Path) -> str:
        """SHA-256 of a file, computed again when the file has changed."""
        state = (path.stat().st_mtime_ns, path.stat().st_size)
        if path not in self._digests or self._digests[path][0] != state:
            with path.open("rb") as file:
                self._digests[path] = (state, hashlib.file_digest(file, "sha256").hexdigest())
        return self._digests[path][1]


@dataclass(frozen=True)
class Inputs:
    """What a cell is made from: the vectors of a model on a fold of a pair."""

    workspace: Workspace
    model: str
    pair_name: str
    fold: str

    @property
    def options(self) -> Options:
        return self.workspace.options

    @property
    def names(self) -> dict[str, Any]:
        """What tells these inputs from others, as a line of results has it."""
        return {"model": self.model, "pair": self.pair_name, "fold": self.fold}

    @property
    def pair(self) -> GraphPair:
        """The graphs and their links."""
        return self.workspace.pair(self.pair_name, self.fold)

    def command(self, experiment: str, more: str = "") -> str:
        """What repeats a cell."""
        quick = self.options.quick
        where = "--quick" if quick else f"--data DIR --pairs {self.pair_name.removesuffix('_100K')} --folds {self.fold}"
        return f"rlea reproduce {experiment} {where} --models {self.model}{more}"

    def wanted(self, settings: dict[str, Any], code: str, progress: Progress) -> dict[str, Any]:
        """What a record says if it was made with these settings, by this code, from these inputs."""
        return {
            "settings": settings,
            "code": code,
            "fingerprint": self.pair.fingerprint,
            "vectors": self.workspace.vectors_digest(self, progress),
            "seed": SEED,
        }

    # ---- vectors ----------------------------------------------------------------------------------------------------

    @property
    def vectors_path(self) -> Path:
        return self.options.work / f"{self.model}_{self.pair_name}_{self.fold}.safetensors"

    def vectors(self, progress: Progress) -> Embeddings:
        """The vectors: from the file in the work folder, or trained and put there."""
        path, pair, workspace = self.vectors_file(progress), self.pair, self.workspace
        return workspace.cached(
            "vectors", workspace.digest(path), lambda: read_embeddings(path, pair.source, pair.target)
        )

    def vectors_file(self, progress: Progress) -> Path:
        """Where the vectors are, made if need be.

        A file that was put there by hand is taken as it is. One that was made here is made again when the model's
        code, its settings or the data have changed.
        """
        path, pair, workspace = self.vectors_path, self.pair, self.workspace
        note = path.with_suffix(".made.json")
        wanted = {
            "code": code_version(MODELS[self.model].load()),
            "epochs": self.options.epochs(self.model),
            "fingerprint": pair.fingerprint,
            "seed": SEED,
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        with locked(path.with_suffix(".lock")):  # another run may want the same vectors
            if path.exists() and (not note.exists() or workspace.is_as_wanted(path, note, wanted)):
                return path
            checkpoint = path.with_suffix(".checkpoint")
            vectors = self.train_vectors(pair, progress, checkpoint)
            _write_json(note, {"file": None})  # from here on the vectors are not by hand, even after a stop
            write_embeddings(path, vectors, pair.source, pair.target)
            _write_json(note, wanted | {"file": workspace.digest(path)})
            remove_checkpoint(checkpoint)
        return path

    def train_vectors(self, pair: GraphPair, progress: Progress, checkpoint: Path | None = None) -> Embeddings:
        """The model trained on a pair, which may have more seeds than that of these inputs."""
        device, epochs = self.options.device, self.options.epochs(self.model)
        return embed_entities(
            pair, self.model, seed=SEED, progress=progress, device=device, checkpoint=checkpoint, epochs=epochs
        )

    # ---- candidates -------------------------------------------------------------------------------------------------

    def candidates(self, k: int, progress: Progress, without: tuple[int, ...] = ()) -> tuple[Candidates, Costs]:
        """The k best among the test entities, `without` some targets, and what finding them cost."""
        vectors = self.vectors(progress)

        def find() -> tuple[Candidates, Costs]:
            _, source_ids, target_ids = choose_pool(self.pair, "test")
            target_ids = target_ids[~np.isin(target_ids, np.array(without, dtype=target_ids.dtype))]
            costs = Costs()
            with costs("candidates"):
                found = find_candidates(vectors, source_ids, target_ids, k)
                _ = found.pairs  # made on first use, and the first decider is not to pay for all
            return found, costs

        key = (self.workspace.vectors_digest(self, progress), self.pair_name, self.fold, k, without)
        return self.workspace.cached("candidates", key, find)

    # ---- the agent --------------------------------------------------------------------------------------------------

    def trained_agent(self, progress: Progress) -> tuple[Aligner, dict[str, Any]]:
        """The agent with what its training cost: from its file, or trained and put there.

        It learns from the graphs and the seeds, nothing from vectors, so it is trained once a pair and fold.
        """
        path = self.options.work / "agents" / f"rlea_{self.pair_name}_{self.fold}.safetensors"
        note, pair, workspace = path.with_suffix(".made.json"), self.pair, self.workspace
        wanted = {
            "code": code_version(AGENT_CODE),
            "fingerprint": pair.fingerprint,
            "settings": settings_of("rlea", self.options),
            "seed": SEED,
        }
        if not (path.exists() and note.exists() and workspace.is_as_wanted(path, note, wanted)):
            costs = Costs()
            with costs("training"):
                agent = train_agent(pair, progress=progress)
            path.parent.mkdir(parents=True, exist_ok=True)
            agent.save(path)
            cost = {"seconds": costs.seconds["training"], "peak_memory_mb": costs.memory_mb["training"]}
            _write_json(note, wanted | cost | {"file": workspace.digest(path)})
        return Aligner.load(path), json.loads(note.read_text(encoding="utf-8"))

    def chosen_agent(self, progress: Progress) -> tuple[Aligner, Costs]:
        """The agent with what it chose for these vectors on validation links, and the costs."""
        vectors, pair = self.vectors(progress), self.pair

        def choose() -> tuple[Aligner, Costs]:
            (agent, made), costs = self.trained_agent(progress), Costs()
            costs.seconds["training"], costs.memory_mb["training"] = made["seconds"], made["peak_memory_mb"]
            if len(pair.valid):
                with costs("choosing"):
                    agent.choose(pair, [vectors], progress=progress)
            return agent, costs

        key = (self.workspace.vectors_digest(self, progress), self.pair_name, self.fold)
        return self.workspace.cached("agent", key, choose)


def all_inputs(workspace: Workspace, models: Sequence[str], pairs: Sequence[str]) -> Iterator[Inputs]:
    """Folds x pairs x models, so that cells of the same pair come one after another."""
    for fold in workspace.options.folds:
        for pair in pairs:
            for model in models:
                yield Inputs(workspace, model, pair, fold)


def _write_json(path: Path, value: dict[str, Any]) -> None:
    with atomic(path) as temporary:
        temporary.write_text(as_json(value), encoding="utf-8")
