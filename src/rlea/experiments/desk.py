"""What the cells of a grid share: pairs, vectors, candidates, agents. Made once, kept while they are in use."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from rlea.agent.context import ContextAgent
from rlea.errors import InputError
from rlea.experiments.code_version import code_version
from rlea.experiments.costs import Costs
from rlea.experiments.store import locked
from rlea.graph import GraphPair, choose_pool
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

PAIRS = ("EN_FR", "EN_DE", "D_W", "D_Y")
QUICK = "quick"  # the pair of a quick run, which is made and not read
FOLDS = ("1", "2", "3", "4", "5")
SEED = 0


@dataclass(frozen=True)
class Options:
    """What a user may choose of an experiment; each takes of it what it has a use for."""

    data: Path | None = None  # folder of the data sets; a quick run needs none
    work: Path = Path("runs")  # folder of vectors and agents: large, and made again if need be
    output: Path = Path("results")
    pairs: tuple[str, ...] = ()  # the experiment's own if empty, as below
    folds: tuple[str, ...] = ("1",)
    models: tuple[str, ...] = ()
    deciders: tuple[str, ...] = ()
    sizes: tuple[int, ...] = ()
    device: str = "auto"
    quick: bool = False

    def pairs_or(self, own: tuple[str, ...] = PAIRS) -> tuple[str, ...]:
        """The pairs to be looked at; a quick run has its own."""
        return (QUICK,) if self.quick else self.pairs or own

    def epochs(self, model: str) -> int | None:
        """A quick run shows that everything works, not how well; an epoch of RSN is a long one."""
        return (1 if model == "rsn" else 20) if self.quick else None

    @property
    def episodes(self) -> int | None:
        return 60 if self.quick else None

    @property
    def agent_device(self) -> str:
        """Where the paper's agent is trained: its steps are small, so that a GPU serves only where it is asked for."""
        return "cpu" if self.device == "auto" else self.device


class Desk:
    """Inputs of cells, by name. Only those of the last cell are held: a grid is larger than the memory."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self._pair: tuple[tuple[str, str], GraphPair] | None = None
        self._vectors: tuple[str, Embeddings] | None = None
        self._candidates: tuple[tuple[Any, ...], Candidates, Costs] | None = None
        self._chosen: tuple[tuple[str, ...], ContextAgent, Costs] | None = None
        self._digests: dict[Path, tuple[tuple[int, int], str]] = {}

    # ---- pairs ----------------------------------------------------------------------------------------------------

    def pair(self, name: str, fold: str) -> GraphPair:
        """A pair by the name of its data set, such as EN_FR."""
        if self._pair is None or self._pair[0] != (name, fold):
            self._pair = ((name, fold), self._read(name, fold))
        return self._pair[1]

    def _read(self, name: str, fold: str) -> GraphPair:
        if name == QUICK:
            settings = SyntheticSettings(num_entities=200, seeds=0.3, seed=SEED)
            return replace(generate(settings), name=QUICK, fold=fold)
        return read_pair(find_folder(self.options.data, name), fold)

    # ---- vectors --------------------------------------------------------------------------------------------------

    def vectors(self, model: str, name: str, fold: str, progress: Progress) -> Embeddings:
        """Vectors of a model: from the file in the work folder, or trained and put there."""
        path = self.vectors_file(model, name, fold, progress)
        digest = self._digest(path)
        if self._vectors is None or self._vectors[0] != digest:
            pair = self.pair(name, fold)
            self._vectors = (digest, read_embeddings(path, pair.source, pair.target))
        return self._vectors[1]

    def vectors_digest(self, model: str, name: str, fold: str, progress: Progress) -> str:
        """SHA-256 of the file of vectors; trains them where there is none."""
        return self._digest(self.vectors_file(model, name, fold, progress))

    def vectors_file(self, model: str, name: str, fold: str, progress: Progress) -> Path:
        """Where the vectors of a model are, made if need be.

        A file that was put there by hand is taken as it is. One that was made here is made again when the model's
        code, its settings or the data have changed.
        """
        path = self.options.work / f"{model}_{name}_{fold}.safetensors"
        beside = path.with_suffix(".made.json")
        pair = self.pair(name, fold)
        wanted = {
            "code": code_version(MODELS[model].load().__module__),
            "epochs": self.options.epochs(model),
            "fingerprint": pair.fingerprint,
            "seed": SEED,
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        with locked(path.with_suffix(".lock")):  # another run may want the same vectors
            if path.exists() and (not beside.exists() or self._is_as_wanted(path, beside, wanted)):
                return path
            checkpoint = path.with_suffix(".checkpoint")
            vectors = embed_entities(
                pair,
                model,
                seed=SEED,
                progress=progress,
                device=self.options.device,
                checkpoint=checkpoint,
                epochs=self.options.epochs(model),
            )
            _write_json(beside, {"file": None})  # from here on the vectors are not by hand, even after a stop
            write_embeddings(path, vectors, pair.source, pair.target)
            _write_json(beside, wanted | {"file": self._digest(path)})
            remove_checkpoint(checkpoint)
        return path

    # ---- candidates -----------------------------------------------------------------------------------------------

    def candidates(
        self, model: str, name: str, fold: str, k: int, without: tuple[int, ...], progress: Progress
    ) -> tuple[Candidates, Costs]:
        """The k best among the test entities, `without` some targets, and what finding them cost."""
        vectors = self.vectors(model, name, fold, progress)
        key = (self._vectors and self._vectors[0], name, fold, k, without)
        if self._candidates is None or self._candidates[0] != key:
            self._candidates = None  # before the next are made: both at once would be the peak of memory
            _, source_ids, target_ids = choose_pool(self.pair(name, fold), "test")
            target_ids = target_ids[~np.isin(target_ids, np.array(without, dtype=target_ids.dtype))]
            costs = Costs()
            with costs("candidates"):
                found = find_candidates(vectors, source_ids, target_ids, k)
                _ = found.pairs  # made on first use, and the first decider is not to pay for all
            self._candidates = (key, found, costs)
        return self._candidates[1:]

    # ---- agents ---------------------------------------------------------------------------------------------------

    def context_agent(self, name: str, fold: str, progress: Progress) -> tuple[ContextAgent, dict[str, Any]]:
        """The agent that remembers with what its training cost: from its file, or trained and put there.

        It learns from the graphs and the seeds, nothing from vectors, so it is trained once a pair and fold.
        """
        folder = self.options.work / "agents"
        path, beside = folder / f"rlea_{name}_{fold}.safetensors", folder / f"rlea_{name}_{fold}.made.json"
        pair = self.pair(name, fold)
        wanted = {
            "code": code_version("rlea.agent.context"),
            "fingerprint": pair.fingerprint,
            "settings": plain(asdict(ContextAgent().settings)),
            "seed": SEED,
        }
        if not (path.exists() and beside.exists() and self._is_as_wanted(path, beside, wanted)):
            costs, agent = Costs(), ContextAgent(seed=SEED)
            with costs("training"):
                agent.fit(pair, None, progress=progress)
            folder.mkdir(parents=True, exist_ok=True)
            agent.save(path)
            cost = {"seconds": costs.seconds["training"], "peak_memory_mb": costs.memory_mb["training"]}
            _write_json(beside, wanted | cost | {"file": self._digest(path)})
        return ContextAgent.load(path), json.loads(beside.read_text(encoding="utf-8"))

    def chosen_agent(self, model: str, name: str, fold: str, progress: Progress) -> tuple[ContextAgent, Costs]:
        """The agent that remembers with what it chose for a model's vectors on validation links, and the costs."""
        vectors, pair = self.vectors(model, name, fold, progress), self.pair(name, fold)
        key = (self.vectors_digest(model, name, fold, progress), name, fold)
        if self._chosen is None or self._chosen[0] != key:
            (agent, made), costs = self.context_agent(name, fold, progress), Costs()
            costs.seconds["training"], costs.memory_mb["training"] = made["seconds"], made["peak_memory_mb"]
            if len(pair.valid):
                with costs("choosing"):
                    agent.choose(pair, vectors, progress=progress)
            self._chosen = (key, agent, costs)
        return self._chosen[1:]

    # ---- files ----------------------------------------------------------------------------------------------------

    def _is_as_wanted(self, path: Path, beside: Path, wanted: dict[str, Any]) -> bool:
        """Whether a file is what would be made today; its digest tells a stop between writing it and its note."""
        try:
            made = json.loads(beside.read_text(encoding="utf-8"))
        except ValueError:
            return False
        known = made if isinstance(made, dict) else {}
        return all(known.get(key) == value for key, value in wanted.items()) and known.get("file") == self._digest(path)

    def _digest(self, path: Path) -> str:
        """SHA-256 of a file, counted again when the file is another one."""
        state = (path.stat().st_mtime_ns, path.stat().st_size)
        if path not in self._digests or self._digests[path][0] != state:
            with path.open("rb") as file:
                self._digests[path] = (state, hashlib.file_digest(file, "sha256").hexdigest())
        return self._digests[path][1]


def find_folder(data: Path | None, name: str) -> Path:
    """The folder of a data set: DATA/EN_FR_15K_V1 (or EN_FR), DATA/EN_FR_100K_V1, or one folder further down."""
    if data is None:
        raise InputError("the data sets are needed and --data is not given", remedy="give --data DIR, or --quick")
    if not data.is_dir():
        raise InputError("is no folder", path=data, remedy="give the folder of the data sets with --data")
    names = (f"{name}_V1" if name.endswith("K") else f"{name}_15K_V1", name)
    for place in (data, *sorted(path for path in data.iterdir() if path.is_dir())):
        for folder in (place / one for one in names):
            if folder.is_dir():
                return folder
    raise InputError(
        f"has no data set {names[0]}", path=data, remedy="put its folder there, or leave it out with --pairs"
    )


def plain(value: Any) -> Any:
    """A value as it comes back from a JSON file, so that the two can be compared."""
    return json.loads(as_json({"value": value}))["value"]


def _write_json(path: Path, value: dict[str, Any]) -> None:
    with atomic(path) as temporary:
        temporary.write_text(as_json(value), encoding="utf-8")
