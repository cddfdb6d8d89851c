"""MTransE (Chen et al., 2017) as the benchmarks train it: a space for each graph, and a matrix between the two.

Either graph is embedded by itself: for its triples (h, r, t) over unit vectors

    sum over triples of |h + r - t|^2

is made small, without false triples. A matrix M, orthogonal at first and kept near to it, takes the source space to
the target space; over the seeds (e, e')

    mapping_weight * (sum over seeds of |e M - e'|^2 + |M M^T - I|^2)

is made small, which moves vectors as well as M. An epoch is a pass over the triples, then a pass over the seeds in as
many batches; each of the two has an Adagrad of its own. Entities are compared by the cosine of e M and e'.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from rlea.graph import GraphPair, Ids
from rlea.models.training import Arrays, Device, choose_device, require_data, require_positive, train
from rlea.models.triples import initial_vectors, join_triples, shuffled
from rlea.progress import Progress, silent
from rlea.search.embeddings import Embeddings

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class MTransESettings:
    """Settings of MTransE; the defaults are the published ones unless the comment says otherwise."""

    dim: int = 100
    learning_rate: float = 0.01  # Adagrad
    initial_squares: float = 0.1  # Adagrad's sums start here: what the published runs' framework does unasked
    max_epochs: int = 2000
    batch_size: int = 5000
    mapping_weight: float = 5.0
    valid_from: int = 100  # first epoch with validation
    valid_every: int = 10  # epochs between validations, and between checkpoints
    # Validations in a row without a new best one; published: two that fall. The score wavers, and on
    # D_W_15K_V1 two stop by epoch 240, before the best one at 280.
    patience: int = 5
    # Our own, for pairs without validation links: of four 15K pairs three are best at epochs 280 to 310 and get worse
    # afterwards; the fourth still rises slowly.
    epochs_without_valid: int = 300

    def __post_init__(self) -> None:
        require_positive("MTransE", self)


class Trainer(Protocol):
    """Vectors in training (a row per entity, source first, then one per relation) and the matrix between them."""

    def train_triples(self, positives: Ids, cuts: list[int]) -> float:
        """A step for every batch of triples, given by rows; the loss, a sum."""
        ...

    def train_mapping(self, source_rows: Ids, target_rows: Ids, cuts: list[int]) -> float:
        """A step for every batch of seeds; the loss, a sum."""
        ...

    def units(self, num_rows: int) -> NDArray[np.float32]:
        """Unit vectors of the first rows."""
        ...

    def matrix(self) -> NDArray[np.float32]:
        """The matrix from the source space to the target space."""
        ...

    def arrays(self) -> Arrays:
        """All that the next step depends on."""
        ...


def train_mtranse(
    pair: GraphPair,
    settings: MTransESettings | None = None,
    *,
    seed: int = 0,
    device: str = "auto",  # or cpu, or cuda
    progress: Progress = silent,
    checkpoint: Path | None = None,
    epochs: int | None = None,
) -> Embeddings:
    """Unit vectors of all entities of a pair in the space of the target, compared by cosine.

    Learns from the triples, `pair.train` and (for stopping) `pair.valid`; `pair.test` is not read. On the CPU the same
    seed gives the same bytes for any number of threads. The rest is said at `rlea.models.training.train`.
    """
    settings = settings or MTransESettings()
    require_data(pair, "MTransE", seed)
    chosen = choose_device(device)

    def start(epoch: int, saved: Arrays) -> MTransE:
        return MTransE(pair, settings, seed, chosen, saved)

    return train(
        pair,
        settings,
        start,
        model="MTransE",
        version=1,
        measure="cosine",
        seed=seed,
        device=chosen,
        progress=progress,
        checkpoint=checkpoint,
        epochs=epochs,
    )


class MTransE:
    """MTransE in training."""

    def __init__(self, pair: GraphPair, settings: MTransESettings, seed: int, device: Device, saved: Arrays) -> None:
        self.settings, self.seed = settings, seed
        self.triples = join_triples(pair, swap=False)
        self.source_rows = pair.train.source_ids
        self.target_rows = pair.train.target_ids + np.int32(pair.source.num_entities)
        arrays = saved or fresh_arrays(self.triples.num_entities + self.triples.num_relations, settings, seed)
        trainer = WrittenOutTrainer if device == "cpu" else TorchTrainer
        self.trainer: Trainer = trainer(arrays, settings, device)

    def run_epoch(self, epoch: int) -> float:
        """A pass over all triples and one over all seeds; the loss per triple and that per seed, added."""
        from rlea.models.translation_step import parts

        positives, cuts = shuffled(self.triples, self.settings.batch_size, seed=self.seed, epoch=epoch)
        positives += np.array([0, self.triples.num_entities, 0], dtype=np.int32)  # relations follow the entities
        triple_loss = self.trainer.train_triples(positives, cuts)
        order, seed_cuts = parts(len(self.source_rows), len(cuts) - 1, seed=self.seed, epoch=epoch, stream=0)
        mapping_loss = self.trainer.train_mapping(self.source_rows[order], self.target_rows[order], seed_cuts)
        return triple_loss / len(positives) + mapping_loss / len(order)

    def vectors(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        from rlea.models.translation_step import mapped

        units = self.trainer.units(self.triples.num_entities)
        num_source = self.triples.num_source_entities
        return mapped(units[:num_source], self.trainer.matrix()), units[num_source:]

    def arrays(self, epoch: int) -> Arrays:
        return self.trainer.arrays()


def fresh_arrays(num_rows: int, settings: MTransESettings, seed: int) -> Arrays:
    """Random unit vectors, a random orthogonal matrix, and the sums of squared gradients of both Adagrads."""
    from rlea.models.translation_step import orthogonal

    raw = initial_vectors(num_rows, settings.dim, seed=seed)
    raw /= np.maximum(np.linalg.norm(raw, axis=1, keepdims=True), np.float32(1e-6))
    mapping = orthogonal(settings.dim, seed=seed, number=0)
    start = np.float32(settings.initial_squares)
    return {
        "raw": raw,
        "mapping": mapping,
        "triple_squares": np.full_like(raw, start),
        "seed_squares": np.full_like(raw, start),
        "mapping_squares": np.full_like(mapping, start),
    }


class TorchTrainer:
    """Both steps in the words of the paper, with automatic gradients; the reference, and the way to a GPU."""

    def __init__(self, arrays: Arrays, settings: MTransESettings, device: Device) -> None:
        import torch

        self.settings = settings
        self.raw = torch.tensor(arrays["raw"], device=device, requires_grad=True)
        self.mapping = torch.tensor(arrays["mapping"], device=device, requires_grad=True)
        rate = settings.learning_rate
        self.triple_optimiser = torch.optim.Adagrad([self.raw], lr=rate, eps=0.0)
        self.mapping_optimiser = torch.optim.Adagrad([self.raw, self.mapping], lr=rate, eps=0.0)
        self.squares = {
            "triple_squares": self.triple_optimiser.state[self.raw],
            "seed_squares": self.mapping_optimiser.state[self.raw],
            "mapping_squares": self.mapping_optimiser.state[self.mapping],
        }
        for name, state in self.squares.items():
            state["sum"] = torch.tensor(arrays[name], device=device)

    def train_triples(self, positives: Ids, cuts: list[int]) -> float:
        import torch

        rows = torch.as_tensor(positives, device=self.raw.device, dtype=torch.long)
        total = torch.zeros((), device=self.raw.device)
        for begin, end in pairwise(cuts):
            loss = distance_loss(self.raw, rows[begin:end])
            self._descend(loss, self.triple_optimiser)
            total += loss.detach()
        return float(total)

    def train_mapping(self, source_rows: Ids, target_rows: Ids, cuts: list[int]) -> float:
        import torch

        sources = torch.as_tensor(source_rows, device=self.raw.device, dtype=torch.long)
        targets = torch.as_tensor(target_rows, device=self.raw.device, dtype=torch.long)
        total = torch.zeros((), device=self.raw.device)
        for begin, end in pairwise(cuts):
            if begin < end:
                loss = mapping_loss(
                    self.raw, self.mapping, sources[begin:end], targets[begin:end], self.settings.mapping_weight
                )
                self._descend(loss, self.mapping_optimiser)
                total += loss.detach()
        return float(total)

    def _descend(self, loss: torch.Tensor, optimiser: torch.optim.Optimizer) -> None:
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()

    def units(self, num_rows: int) -> NDArray[np.float32]:
        import torch

        result: NDArray[np.float32] = torch.nn.functional.normalize(self.raw[:num_rows].detach()).cpu().numpy()
        return result

    def matrix(self) -> NDArray[np.float32]:
        result: NDArray[np.float32] = self.mapping.detach().cpu().numpy()
        return result

    def arrays(self) -> Arrays:
        squares = {name: state["sum"].cpu().numpy() for name, state in self.squares.items()}
        return {"raw": self.raw.detach().cpu().numpy(), "mapping": self.matrix(), **squares}


def distance_loss(raw: torch.Tensor, positives: torch.Tensor) -> torch.Tensor:
    """Sum of |h + r - t|^2 over triples (batch, 3), given by rows of the vectors before normalising."""
    import torch

    head, relation, tail = torch.nn.functional.normalize(raw)[positives].unbind(1)  # (batch, dim) each
    return (head + relation - tail).square().sum()


def mapping_loss(
    raw: torch.Tensor,  # (num_rows, dim) vectors before normalising
    mapping: torch.Tensor,  # (dim, dim)
    source_rows: torch.Tensor,  # (batch,)
    target_rows: torch.Tensor,  # (batch,)
    weight: float,
) -> torch.Tensor:
    """weight * (sum over seeds of |e M - e'|^2 + |M M^T - I|^2)."""
    import torch

    units = torch.nn.functional.normalize(raw)
    apart = (units[source_rows] @ mapping - units[target_rows]).square().sum()
    skew = (mapping @ mapping.T - torch.eye(len(mapping), device=mapping.device)).square().sum()
    return weight * (apart + skew)


class WrittenOutTrainer:
    """The same steps written out for processors. See `rlea.models.translation_step`."""

    def __init__(self, arrays: Arrays, settings: MTransESettings, device: Device = "cpu") -> None:
        from rlea.models.translation_step import Table

        self.settings = settings
        self.table = Table.of(arrays["raw"], arrays.get("scales"))
        names = ("mapping", "triple_squares", "seed_squares", "mapping_squares")
        self.mapping, self.triple_squares, self.seed_squares, self.mapping_squares = (
            arrays[name].copy() for name in names
        )

    def train_triples(self, positives: Ids, cuts: list[int]) -> float:
        from rlea.models.translation_step import adagrad_step, distance_gradient

        total = 0.0
        for begin, end in pairwise(cuts):
            loss, gradient = distance_gradient(self.table, positives[begin:end])
            adagrad_step(self.table, self.triple_squares, gradient, self.settings.learning_rate)
            total += loss
        return total

    def train_mapping(self, source_rows: Ids, target_rows: Ids, cuts: list[int]) -> float:
        from rlea.models.translation_step import adagrad_step, one_thread, row_gradient

        total = 0.0
        with one_thread():
            for begin, end in pairwise(cuts):
                if begin < end:
                    rows = np.concatenate([source_rows[begin:end], target_rows[begin:end]])
                    loss, by_units, by_mapping = self._mapping_gradients(rows)
                    gradient = row_gradient(self.table, rows, by_units)
                    adagrad_step(self.table, self.seed_squares, gradient, self.settings.learning_rate)
                    self.mapping_squares += by_mapping * by_mapping
                    rate = np.float32(self.settings.learning_rate)
                    self.mapping -= rate * by_mapping / np.sqrt(self.mapping_squares)
                    total += loss
        return total

    def _mapping_gradients(self, rows: Ids) -> tuple[float, NDArray[np.float32], NDArray[np.float32]]:
        """`mapping_loss`, and its gradients by the unit vectors of the rows and by the matrix."""
        units, weight = self.table.units(rows), np.float32(self.settings.mapping_weight)
        source, target = units[: len(rows) // 2], units[len(rows) // 2 :]
        apart = source @ self.mapping - target
        skew = self.mapping @ self.mapping.T - np.eye(len(self.mapping), dtype=np.float32)
        loss = float(weight) * (float(np.vdot(apart, apart)) + float(np.vdot(skew, skew)))
        by_apart = 2 * weight * apart
        by_units = np.concatenate([by_apart @ self.mapping.T, -by_apart])
        by_mapping = source.T @ by_apart + 4 * weight * (skew @ self.mapping)
        return loss, by_units, by_mapping

    def units(self, num_rows: int) -> NDArray[np.float32]:
        return self.table.units(slice(num_rows))

    def matrix(self) -> NDArray[np.float32]:
        return self.mapping

    def arrays(self) -> Arrays:
        return {
            "raw": self.table.raw,
            "scales": self.table.scales,
            "mapping": self.mapping,
            "triple_squares": self.triple_squares,
            "seed_squares": self.seed_squares,
            "mapping_squares": self.mapping_squares,
        }
