"""One course of training for every model: epochs, validation, early stopping, checkpoints, progress and history."""

from __future__ import annotations

import hashlib
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar, Literal, TypedDict

import numpy as np
from numpy.typing import NDArray

from rlea.errors import InputError
from rlea.graph import GraphPair
from rlea.models.checkpoint import check_rows, check_state, going_on, load_checkpoint, save_checkpoint
from rlea.models.early_stop import EarlyStop, hits_at_1, validation_pool
from rlea.progress import Progress, silent
from rlea.record import as_rows
from rlea.search.embeddings import Embeddings

Arrays = dict[str, NDArray[Any]]
Floats = NDArray[np.float32]
Device = Literal["cpu", "cuda"]


class Schedule:
    """The settings that every trained model has. Those of a model are a frozen dataclass, with more of its own."""

    title: ClassVar[str]  # of the model as people write it, such as AlignE
    may_be_zero: ClassVar[tuple[str, ...]] = ()  # all other numbers are above zero
    at_most_one: ClassVar[tuple[str, ...]] = ()
    __dataclass_fields__: ClassVar[dict[str, Any]]

    max_epochs: int
    valid_from: int  # first epoch with validation
    valid_every: int  # epochs between validations, and between checkpoints
    patience: int  # validations in a row without a new best one before training stops; published: two that fall
    epochs_without_valid: int  # for pairs without validation links

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if isinstance(value, (str, bool)):
                continue
            least = "zero or more" if name in self.may_be_zero else "above zero"
            if not np.isfinite(value) or value < 0 or (value == 0 and name not in self.may_be_zero):
                raise self.refused(name, least)
        for name in self.at_most_one:
            if getattr(self, name) > 1:
                raise self.refused(name, "at most 1")

    def refused(self, name: str, what: str) -> InputError:
        """The error for a setting with a value that cannot be; it must be `what`."""
        return InputError(f"the {self.title} setting {name} is {getattr(self, name)}", remedy=f"it must be {what}")


class TrainedModel(ABC):
    """A model in training. All randomness of an epoch follows from the seed and the number of the epoch."""

    version: ClassVar[int]  # of the state and of the random draws: a checkpoint of another version is refused
    measure: ClassVar[str] = "cosine"  # how its vectors are compared
    settings: Any

    def __init__(self, pair: GraphPair, settings: Any, seed: int, device: Device) -> None:
        """Prepare the data; parameters come with `start`."""
        self.settings, self.seed, self.device = settings, seed, device
        self.num_source = pair.source.num_entities
        self.num_entities = self.num_source + pair.target.num_entities
        # (num_seeds, 2), in joint ids: source entities come first, then target entities
        self.seeds = np.stack([pair.train.source_ids, pair.train.target_ids + np.int32(self.num_source)], axis=1)
        # What else is recorded of a run. What is in it before `start` must also agree for a checkpoint to be resumed. A
        # "note" is for people.
        self.info: dict[str, Any] = {}

    @abstractmethod
    def start(self, epoch: int, saved: Arrays) -> None:
        """Make the parameters as they were after that epoch, when `arrays` returned `saved`; new ones for (0, {})."""

    @abstractmethod
    def run_epoch(self, epoch: int) -> float:
        """Train for one epoch (the first is 1); the mean loss."""

    @abstractmethod
    def joint_vectors(self) -> Floats:
        """Vectors of the entities as they are now, source entities first; not changed afterwards."""

    def vectors(self) -> tuple[Floats, Floats]:
        """Vectors of the source and of the target entities in one space."""
        both = self.joint_vectors()
        return both[: self.num_source], both[self.num_source :]

    @abstractmethod
    def arrays(self, epoch: int) -> Arrays:
        """All that the epochs after this one depend on."""

    def is_refreshed_before(self, epoch: int) -> bool:
        """Whether neighbours are searched for anew before an epoch, by the vectors of the one before it."""
        return epoch > 1 and (epoch - 1) % int(self.settings.refresh_every) == 0


class Options(TypedDict, total=False):
    """What every model can be trained with besides its settings; see `train`."""

    seed: int
    device: str
    progress: Progress
    checkpoint: Path | None
    epochs: int | None


def train(
    model: type[TrainedModel],
    pair: GraphPair,
    settings: Schedule,
    *,
    seed: int = 0,
    device: str = "auto",  # or cpu, or cuda
    progress: Progress = silent,
    checkpoint: Path | None = None,  # the state is kept in this file, and a run that finds it resumes from it
    epochs: int | None = None,  # in place of those of the settings
) -> Embeddings:
    """Train a model and return the vectors of the epoch with the best validation Hits@1 (or the last without links).

    `pair.test` is not read. `info` records the run, among others `seconds` in all, `resumed_at` (the epochs after which
    it was resumed) and `history`, a row for every epoch of the validation schedule: epoch, loss and, where there are
    validation links, valid_hits_at_1.
    """
    started = time.perf_counter()
    require_data(pair, settings.title, seed)
    chosen = choose_device(device)
    validates = len(pair.valid) > 0
    last_epoch = settings.max_epochs if validates else min(settings.epochs_without_valid, settings.max_epochs)
    if epochs is not None:
        if epochs < 1:
            raise InputError(f"the number of epochs is {epochs}", remedy="it must be above zero")
        last_epoch = epochs
    stage = settings.title.lower().replace("-", "")
    pool_ids = validation_pool(pair.target.num_entities, pair.train)
    epoch, loss, stop = 0, float("nan"), EarlyStop(settings.patience)
    history: list[dict[str, Any]] = []
    best: tuple[Floats, Floats] | None = None
    saved: Arrays = {}
    seconds_before, resumed_at = 0.0, []
    with repeatable(chosen):
        if checkpoint is None or not checkpoint.exists():
            progress(stage, 0, last_epoch, "preparing")
        training = model(pair, settings, seed, chosen)
        run = identity(pair, settings, model, seed, chosen) | training.info
        resumed = checkpoint if checkpoint is not None and checkpoint.exists() else None
        if resumed is not None:
            saved, state = load_checkpoint(resumed, run)
            with going_on(resumed):
                check_state(state, {"epoch": 0, "seconds": 0.0, "resumed_at": [], "stop": asdict(stop)})
                epoch, loss, history = state["epoch"], float(state["loss"]), as_rows(state.get("history"))
                stop = EarlyStop(**state["stop"])
                if "best.source" in saved:
                    check_rows(
                        saved, {"best.source": pair.source.num_entities, "best.target": pair.target.num_entities}
                    )
                    best = saved.pop("best.source"), saved.pop("best.target")
                seconds_before, resumed_at = state["seconds"], [*state["resumed_at"], epoch]
            if epoch > last_epoch:
                raise InputError(
                    f"is the checkpoint of epoch {epoch}, and at most {last_epoch} epochs are asked for",
                    path=checkpoint,
                    remedy=f"delete it to train afresh, or give --epochs {epoch} or more",
                )
            if epoch < last_epoch and not stop.should_stop:
                progress(stage, epoch, last_epoch, f"going on from epoch {epoch}")
        with going_on(resumed):
            if resumed is not None and not saved:  # the models would begin anew
                raise ValueError("it has no parameters")
            training.start(epoch, saved)
            if resumed is not None:
                sides = dict(zip(("source", "target"), training.vectors(), strict=True))
                check_rows(sides, {"source": pair.source.num_entities, "target": pair.target.num_entities})
        while epoch < last_epoch and not stop.should_stop:
            epoch += 1
            with going_on(resumed):  # what does not fit is found in the first epoch
                loss = training.run_epoch(epoch)
            resumed = None
            if epoch >= settings.valid_from and (epoch - settings.valid_from) % settings.valid_every == 0:
                history.append({"epoch": epoch, "loss": loss})
                if validates:
                    now = training.vectors()
                    score = hits_at_1(*now, pair.valid, pool_ids, model.measure)
                    history[-1]["valid_hits_at_1"] = score
                    if stop.record(epoch, score):
                        best = now
            if checkpoint is not None and epoch % settings.valid_every == 0:
                arrays = dict(training.arrays(epoch))
                if best is not None:
                    arrays["best.source"], arrays["best.target"] = best
                state = {"run": run, "epoch": epoch, "loss": loss, "stop": asdict(stop), "history": history}
                state |= {"resumed_at": resumed_at, "seconds": seconds_before + time.perf_counter() - started}
                save_checkpoint(checkpoint, arrays, state)
            score_note = f"  valid Hits@1 {stop.last_score:.3f}" if stop.best_epoch else ""
            progress(stage, epoch, last_epoch, f"loss {loss:.3f}{score_note}")
        source, target = training.vectors() if best is None else best
    info: dict[str, Any] = {
        "model": settings.title,
        "seed": seed,
        "device": chosen,
        "settings": asdict(settings),
        "epochs": epoch,
        "epoch_of_vectors": stop.best_epoch or epoch,
        "loss": loss,
        "valid_hits_at_1": stop.best_score if stop.best_epoch else None,
        "stopped": "validation no longer rose" if stop.should_stop else "number of epochs reached",
        "seconds": seconds_before + time.perf_counter() - started,
        "resumed_at": resumed_at,
        "history": history,
        **training.info,
    }
    if not validates:
        fixed = f"no validation links: trained for a fixed {last_epoch} epochs"
        info["note"] = "; ".join([fixed, *([info["note"]] if "note" in info else [])])
    return Embeddings(source.copy(), target.copy(), stage, model.measure, info)


def choose_device(device: str) -> Device:
    """The device to train on, by its name or `auto`."""
    if device not in ("auto", "cpu", "cuda"):
        raise InputError(f"unknown device {device!r}", remedy="use auto, cpu or cuda")
    if device == "cpu":
        return "cpu"
    import torch

    if torch.cuda.is_available():
        return "cuda"
    if device == "cuda":
        raise InputError("no CUDA device is available", remedy="ask for the device 'cpu' or 'auto'")
    return "cpu"


def require_seed(seed: int) -> None:
    """Refuse a random seed out of range."""
    if not 0 <= seed < 2**63:
        raise InputError(f"the seed is {seed}", remedy="give a number from 0 to 2^63 - 1")


def require_data(pair: GraphPair, model: str, seed: int) -> None:
    """Refuse what no model can be trained on: no seeds, no triples, a random seed out of range."""
    require_seed(seed)
    if len(pair.train) == 0:
        raise InputError(
            f"{pair.name} has no training links, and {model} needs some to bring two graphs into one space",
            remedy="give training links or embed the entities by their names",
        )
    if pair.source.num_triples == 0 or pair.target.num_triples == 0:
        raise InputError(
            f"{pair.name} has a graph without relation triples, and {model} needs them",
            remedy="embed the entities by their names",
        )


def identity(pair: GraphPair, settings: Schedule, model: type[TrainedModel], seed: int, device: str) -> dict[str, Any]:
    """What must agree for a run to be resumed: data (without the test links), settings, seed, device.

    The numbers of epochs may differ: a longer run is the shorter one carried on.
    """
    links = hashlib.sha256()
    for part in (pair.train, pair.valid):
        links.update(f"{len(part)}\n".encode())
        links.update(part.source_ids.tobytes() + part.target_ids.tobytes())
    free = ("max_epochs", "epochs_without_valid")
    return {
        "model": settings.title,
        "version": model.version,
        "source": pair.source.fingerprint,
        "target": pair.target.fingerprint,
        "links": links.hexdigest(),
        "seed": seed,
        "device": device,
        **{name: value for name, value in asdict(settings).items() if name not in free},
    }


@contextmanager
def repeatable(device: Device) -> Iterator[None]:
    """On a GPU, let sums run in a fixed order; on the CPU nothing needs to change."""
    if device == "cpu":
        yield
        return
    import os

    import torch

    before = torch.are_deterministic_algorithms_enabled()
    only_warned = torch.is_deterministic_algorithms_warn_only_enabled()
    # Without it CUDA's products may differ between runs. It counts only if it is set before the first of them.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True)
    try:
        yield
    except RuntimeError as problem:
        if "CUBLAS_WORKSPACE_CONFIG" not in str(problem):
            raise
        raise InputError(
            "this process used the GPU before in a way that cannot be repeated to the byte",
            remedy="set CUBLAS_WORKSPACE_CONFIG=:4096:8 before starting it",
        ) from problem
    finally:
        torch.use_deterministic_algorithms(before, warn_only=only_warned)
