"""AlignE (Sun et al., 2018: BootEA without bootstrapping): translation in one space that seeds tie together.

A triple (h, r, t) is scored by f = |h + r - t|^2 over unit vectors. The limit-based loss wants f at most
`positive_limit` for true triples and at least `negative_limit` for false ones,

    sum over true of max(0, f - positive_limit) + negative_weight * sum over false of max(0, negative_limit - f),

with false triples taken from the neighbourhood of the entity they replace, and with copies of true triples in which
a seed entity is swapped for its counterpart.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from rlea.embed.early_stop import EarlyStop, hits_at_1, validation_pool
from rlea.embed.triples import JointTriples, initial_vectors, join_triples, shuffled
from rlea.embeddings import Embeddings
from rlea.errors import InputError
from rlea.graph import GraphPair, Ids
from rlea.progress import Progress, silent

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class AlignESettings:
    """Settings of AlignE; the defaults are the published ones unless the comment says otherwise."""

    dim: int = 100
    learning_rate: float = 0.01  # Adagrad
    initial_squares: float = 0.1  # Adagrad's sums start here: what the published runs' framework does unasked
    max_epochs: int = 2000
    batch_size: int = 5000
    positive_limit: float = 0.01
    negative_limit: float = 2.0  # the squared distance of unrelated unit vectors
    negative_weight: float = 0.2
    num_negatives: int = 10  # per positive
    neighbour_share: float = 0.1  # negatives come from this share of the graph, the nearest
    refresh_every: int = 10  # epochs between two searches for neighbours
    max_pool: int = 15_000  # our own: of larger graphs a sample this large is searched, or memory would run out
    valid_from: int = 100  # first epoch with validation
    valid_every: int = 10  # epochs between validations, and between checkpoints
    # Validations in a row without a new best one; published: two that do not rise. Ten epochs add less to Hits@1 than
    # the score of some 1,500 validation links wavers, so two stop by chance, hundreds of epochs before the end.
    patience: int = 5
    # Our own, for pairs without validation links: on D_W_15K_V1 ten epochs add about .001 to validation Hits@1 from
    # there on, so more cost time for little; up to there no 15K pair tried had begun to get worse.
    epochs_without_valid: int = 500

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if name not in ("positive_limit", "negative_limit", "negative_weight") and value <= 0:
                raise InputError(f"the AlignE setting {name} is {value}", remedy="it must be above zero")


class Trainer(Protocol):
    """Vectors in training: one row per entity (source first), then one per relation."""

    def step(self, positives: Ids, negatives: Ids, corrupt_tail: NDArray[np.bool_]) -> float:
        """Loss of a batch (a sum), then one step of Adagrad. Relations in `positives` are given by row."""
        ...

    def units(self, num_rows: int) -> NDArray[np.float32]:
        """Unit vectors of the first rows."""
        ...

    def arrays(self) -> dict[str, NDArray[np.float32]]:
        """All that the next step depends on."""
        ...


def train_aligne(
    pair: GraphPair,
    settings: AlignESettings | None = None,
    *,
    seed: int = 0,
    device: str = "auto",  # or cpu, or cuda
    progress: Progress = silent,
    checkpoint: Path | None = None,
    epochs: int | None = None,
) -> Embeddings:
    """Unit vectors of all entities of a pair, compared by cosine; those of the epoch with the best validation Hits@1.

    Learns from the triples, `pair.train` and (for stopping) `pair.valid`; `pair.test` is not read. On the CPU the same
    seed gives the same bytes for any number of threads; on a GPU sums are not ordered, so results vary a little.
    With `checkpoint`, the state is kept in that file, and a run that finds the file goes on from it. `epochs` bounds
    the training in place of the setting. Beside what the vectors are, `info` tells how the training went: `seconds`
    it took in all, and `resumed_at`, the epochs after which it was taken up again.
    """
    started = time.perf_counter()
    from rlea.embed.checkpoint import load_checkpoint, save_checkpoint
    from rlea.embed.negatives import Sampler, nearest_neighbours

    settings = settings or AlignESettings()
    if not 0 <= seed < 2**63:
        raise InputError(f"the seed is {seed}", remedy="give a number from 0 to 2^63 - 1")
    if epochs is not None:
        settings = replace(settings, max_epochs=epochs, epochs_without_valid=epochs)
    _require_data(pair)
    device = _choose_device(device)
    triples = join_triples(pair, swap=True)
    sampler = Sampler.of(triples)
    num_source, num_entities = triples.num_source_entities, triples.num_entities
    to_rows = np.array([0, num_entities, 0], dtype=np.int32)  # relations follow the entities in the table
    pool_ids = validation_pool(pair.target.num_entities, pair.train)
    validates = len(pair.valid) > 0
    last_epoch = settings.max_epochs if validates else min(settings.epochs_without_valid, settings.max_epochs)

    run = _identity(pair, settings, seed, device)
    stop = EarlyStop(settings.patience)
    epoch, loss = 0, float("nan")
    best: NDArray[np.float32] | None = None
    searched: NDArray[np.float32] | None = None  # the vectors among which neighbours were last searched
    saved: dict[str, NDArray[Any]] = {}
    seconds_before, resumed_at = 0.0, []
    if checkpoint is not None and checkpoint.exists():
        saved, state = load_checkpoint(checkpoint, run)
        epoch, loss, stop = state["epoch"], state["loss"], EarlyStop(**state["stop"])
        best, searched = saved.pop("best", None), saved.pop("searched", None)
        seconds_before, resumed_at = state["seconds"], [*state["resumed_at"], epoch]
        if epoch > last_epoch:
            raise InputError(
                f"is the checkpoint of epoch {epoch}, and at most {last_epoch} epochs are asked for",
                path=checkpoint,
                remedy=f"delete it to train afresh, or give --epochs {epoch} or more",
            )
        if epoch < last_epoch and not stop.should_stop:
            progress("aligne", epoch, last_epoch, f"going on from epoch {epoch}")
    trainer = _start(device, triples, settings, seed, saved)

    def find_neighbours(units: NDArray[np.float32], at_epoch: int) -> Ids:
        return nearest_neighbours(
            units,
            num_source,
            settings.neighbour_share,
            at_least=settings.num_negatives,
            max_pool=settings.max_pool,
            seed=seed,
            epoch=at_epoch,
        )

    def is_refreshed_before(next_epoch: int) -> bool:
        return next_epoch > 1 and (next_epoch - 1) % settings.refresh_every == 0

    neighbours: Ids | None = None
    if searched is not None:
        neighbours = find_neighbours(searched, epoch - (epoch - 1) % settings.refresh_every)

    while epoch < last_epoch and not stop.should_stop:
        epoch += 1
        if is_refreshed_before(epoch):
            searched = trainer.units(num_entities)
            neighbours = find_neighbours(searched, epoch)
        positives, cuts = shuffled(triples, settings.batch_size, seed=seed, epoch=epoch)
        negatives, corrupt_tail = sampler.draw(positives, settings.num_negatives, neighbours, seed=seed, epoch=epoch)
        positives += to_rows
        loss = 0.0
        for begin, end in pairwise(cuts):
            loss += trainer.step(positives[begin:end], negatives[begin:end], corrupt_tail[begin:end])
        loss /= len(triples)
        if validates and epoch >= settings.valid_from and (epoch - settings.valid_from) % settings.valid_every == 0:
            units = trainer.units(num_entities)
            if stop.record(epoch, hits_at_1(units[:num_source], units[num_source:], pair.valid, pool_ids)):
                best = units
        if checkpoint is not None and epoch % settings.valid_every == 0:
            arrays: dict[str, NDArray[Any]] = dict(trainer.arrays())
            if best is not None:
                arrays["best"] = best
            if searched is not None and not is_refreshed_before(epoch + 1):
                arrays["searched"] = searched
            now = {"run": run, "epoch": epoch, "loss": loss, "stop": asdict(stop), "resumed_at": resumed_at}
            seconds = seconds_before + time.perf_counter() - started
            save_checkpoint(checkpoint, arrays, {**now, "seconds": seconds})
        note = f"loss {loss:.3f}"
        if stop.best_epoch:
            note += f"  valid Hits@1 {stop.last_score:.3f}"
        progress("aligne", epoch, last_epoch, note)

    units = trainer.units(num_entities) if best is None else best
    info: dict[str, Any] = {
        "model": "AlignE",
        "seed": seed,
        "device": device,
        "settings": asdict(settings),
        "epochs": epoch,
        "epoch_of_vectors": stop.best_epoch or epoch,
        "loss_per_triple": loss,
        "valid_hits_at_1": stop.best_score if stop.best_epoch else None,
        "stopped": "validation no longer rose" if stop.should_stop else "number of epochs reached",
        "seconds": seconds_before + time.perf_counter() - started,
        "resumed_at": resumed_at,
    }
    if not validates:
        info["note"] = f"no validation links: trained for a fixed {last_epoch} epochs"
    return Embeddings(units[:num_source].copy(), units[num_source:].copy(), "aligne", "cosine", info)


class TorchTrainer:
    """The training step in the words of the paper, with automatic gradients; the reference, and the way to a GPU."""

    def __init__(self, arrays: dict[str, NDArray[np.float32]], settings: AlignESettings, device: str) -> None:
        import torch

        self.settings = settings
        self.raw = torch.tensor(arrays["raw"], device=device, requires_grad=True)
        self.optimiser = torch.optim.Adagrad([self.raw], lr=settings.learning_rate, eps=0.0)
        self.optimiser.state[self.raw]["sum"] = torch.tensor(arrays["squares"], device=device)

    def step(self, positives: Ids, negatives: Ids, corrupt_tail: NDArray[np.bool_]) -> float:
        import torch

        device = self.raw.device
        loss = limit_loss(
            self.raw,
            torch.as_tensor(positives, device=device, dtype=torch.long),
            torch.as_tensor(negatives, device=device, dtype=torch.long),
            torch.as_tensor(corrupt_tail, device=device),
            self.settings,
        )
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimiser.step()
        return float(loss.detach())

    def units(self, num_rows: int) -> NDArray[np.float32]:
        import torch

        result: NDArray[np.float32] = torch.nn.functional.normalize(self.raw[:num_rows].detach()).cpu().numpy()
        return result

    def arrays(self) -> dict[str, NDArray[np.float32]]:
        squares = self.optimiser.state[self.raw]["sum"]
        return {"raw": self.raw.detach().cpu().numpy(), "squares": squares.cpu().numpy()}


def limit_loss(
    raw: torch.Tensor,  # (num_rows, dim) vectors before normalising
    positives: torch.Tensor,  # (batch, 3) rows of head, relation, tail
    negatives: torch.Tensor,  # (batch, num_negatives) rows of corrupting entities, -1 for none
    corrupt_tail: torch.Tensor,  # (batch,) whether they stand for the tail, else for the head
    settings: AlignESettings,
) -> torch.Tensor:
    """The limit-based loss of a batch, a sum over its triples."""
    import torch

    units = torch.nn.functional.normalize(raw)
    head, relation, tail = units[positives].unsqueeze(2).unbind(1)  # (batch, 1, dim) each
    corrupting = units[negatives.clamp(min=0)]  # (batch, num_negatives, dim)
    is_tail = corrupt_tail[:, None, None]
    false_head, false_tail = torch.where(is_tail, head, corrupting), torch.where(is_tail, corrupting, tail)
    true_scores = (head + relation - tail).square().sum(dim=2)  # (batch, 1)
    false_scores = (false_head + relation - false_tail).square().sum(dim=2)  # (batch, num_negatives)
    too_far = (true_scores - settings.positive_limit).relu().sum()
    too_near = ((settings.negative_limit - false_scores).relu() * (negatives >= 0)).sum()
    return too_far + settings.negative_weight * too_near


class WrittenOutTrainer:
    """The same step written out for processors; some twenty times faster there. See `rlea.embed.limit_step`."""

    def __init__(self, arrays: dict[str, NDArray[np.float32]], settings: AlignESettings) -> None:
        from rlea.embed.limit_step import Tables

        self.settings = settings
        self.tables = Tables.of(arrays["raw"], arrays["squares"], arrays.get("scales"))

    def step(self, positives: Ids, negatives: Ids, corrupt_tail: NDArray[np.bool_]) -> float:
        from rlea.embed.limit_step import limit_step

        return limit_step(
            self.tables,
            positives,
            negatives,
            corrupt_tail,
            positive_limit=self.settings.positive_limit,
            negative_limit=self.settings.negative_limit,
            negative_weight=self.settings.negative_weight,
            learning_rate=self.settings.learning_rate,
        )

    def units(self, num_rows: int) -> NDArray[np.float32]:
        return self.tables.units(num_rows)

    def arrays(self) -> dict[str, NDArray[np.float32]]:
        return {"raw": self.tables.raw, "squares": self.tables.squares, "scales": self.tables.scales}


def _start(
    device: str, triples: JointTriples, settings: AlignESettings, seed: int, saved: dict[str, NDArray[Any]]
) -> Trainer:
    """A trainer with saved vectors, or with fresh ones where none are saved."""
    if not saved:
        raw = initial_vectors(triples.num_entities + triples.num_relations, settings.dim, seed=seed)
        saved = {"raw": raw, "squares": np.full_like(raw, settings.initial_squares)}
    return WrittenOutTrainer(saved, settings) if device == "cpu" else TorchTrainer(saved, settings, device)


def _choose_device(device: str) -> Literal["cpu", "cuda"]:
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


def _require_data(pair: GraphPair) -> None:
    if len(pair.train) == 0:
        raise InputError(
            f"{pair.name} has no training links, and AlignE needs some to bring two graphs into one space",
            remedy="give training links or embed the entities by their names",
        )
    if pair.source.num_triples == 0 or pair.target.num_triples == 0:
        raise InputError(
            f"{pair.name} has a graph without relation triples, and AlignE learns from nothing else",
            remedy="embed the entities by their names",
        )


def _identity(pair: GraphPair, settings: AlignESettings, seed: int, device: str) -> dict[str, Any]:
    """What must agree for a run to be taken up again: data (without the test links), settings, seed, device.

    The numbers of epochs may differ: a longer run is the shorter one carried on.
    """
    links = hashlib.sha256()
    for part in (pair.train, pair.valid):
        links.update(f"{len(part)}\n".encode())
        links.update(part.source_ids.tobytes() + part.target_ids.tobytes())
    kept = {name: value for name, value in asdict(settings).items() if "epochs" not in name}
    return {
        "model": "AlignE",
        # Of the state and of the random draws: carried on under other draws, a run would be neither old nor new.
        "version": 2,
        "source": pair.source.fingerprint,
        "target": pair.target.fingerprint,
        "links": links.hexdigest(),
        "seed": seed,
        "device": device,
        **kept,
    }
