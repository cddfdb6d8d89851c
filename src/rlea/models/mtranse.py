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
from typing import Any, Unpack

import numpy as np
import torch

from rlea.graph import GraphPair, Ids
from rlea.models.torch_optimisers import Adagrad, as_array, descend, to_device, unit_rows
from rlea.models.training import Arrays, Device, Floats, Options, require_positive, train
from rlea.models.translation_step import (
    adagrad_step,
    distance_gradient,
    mapped,
    one_thread,
    orthogonal,
    parts,
    row_gradient,
)
from rlea.models.triples import initial_vectors, join_triples, shuffled
from rlea.models.unit_rows import Table
from rlea.search.embeddings import Embeddings


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


def train_mtranse(pair: GraphPair, settings: MTransESettings | None = None, **options: Unpack[Options]) -> Embeddings:
    """Unit vectors of all entities in the space of the target, compared by cosine; the rest is said at
    `rlea.models.training.train`.

    Learns from the triples, `pair.train` and (for stopping) `pair.valid`. On the CPU the same seed gives the same bytes
    for any number of threads.
    """
    return train(MTransE, pair, settings or MTransESettings(), **options)


class MTransE:
    """MTransE in training."""

    title, version, measure = "MTransE", 1, "cosine"

    def __init__(self, pair: GraphPair, settings: MTransESettings, seed: int, device: Device) -> None:
        self.settings, self.seed, self.device = settings, seed, device
        self.info: dict[str, Any] = {}
        self.triples = join_triples(pair, swap=False)
        self.source_rows = pair.train.source_ids
        self.target_rows = pair.train.target_ids + np.int32(pair.source.num_entities)

    def start(self, epoch: int, saved: Arrays) -> None:
        arrays = saved or fresh_arrays(self.triples.num_entities + self.triples.num_relations, self.settings, self.seed)
        trainer = CompiledTrainer if self.device == "cpu" else TorchTrainer
        self.trainer: CompiledTrainer | TorchTrainer = trainer(arrays, self.settings, self.device)

    def run_epoch(self, epoch: int) -> float:
        """A pass over all triples and one over all seeds; the loss per triple and that per seed, added."""
        positives, cuts = shuffled(self.triples, self.settings.batch_size, seed=self.seed, epoch=epoch)
        triple_loss = self.trainer.train_triples(self.triples.as_rows(positives), cuts)
        order, seed_cuts = parts(len(self.source_rows), len(cuts) - 1, seed=self.seed, epoch=epoch, stream=0)
        mapping_loss = self.trainer.train_mapping(self.source_rows[order], self.target_rows[order], seed_cuts)
        return triple_loss / len(positives) + mapping_loss / len(order)

    def vectors(self) -> tuple[Floats, Floats]:
        units = self.trainer.units(self.triples.num_entities)
        num_source = self.triples.num_source_entities
        return mapped(units[:num_source], self.trainer.matrix()), units[num_source:]

    def arrays(self, epoch: int) -> Arrays:
        return self.trainer.arrays()


def fresh_arrays(num_rows: int, settings: MTransESettings, seed: int) -> Arrays:
    """Random unit vectors, a random orthogonal matrix, and the sums of squared gradients of both Adagrads."""
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
    """Vectors in training (a row per entity, source first, then one per relation) and the matrix between them.

    Both steps in the words of the paper, with automatic gradients: the reference, and the way to a GPU.
    """

    def __init__(self, arrays: Arrays, settings: MTransESettings, device: Device) -> None:
        self.settings = settings
        self.raw = torch.tensor(arrays["raw"], device=device, requires_grad=True)
        self.mapping = torch.tensor(arrays["mapping"], device=device, requires_grad=True)
        rate = settings.learning_rate
        self.triple_optimiser = Adagrad({self.raw: arrays["triple_squares"]}, rate)
        self.mapping_optimiser = Adagrad(
            {self.raw: arrays["seed_squares"], self.mapping: arrays["mapping_squares"]}, rate
        )

    def train_triples(self, positives: Ids, cuts: list[int]) -> float:
        """A step for every batch of triples, given by rows; the loss, a sum."""
        (rows,) = to_device(self.raw.device, positives)
        total = torch.zeros((), device=self.raw.device)
        for begin, end in pairwise(cuts):
            total += descend(self.triple_optimiser, distance_loss(self.raw, rows[begin:end]))
        return float(total)

    def train_mapping(self, source_rows: Ids, target_rows: Ids, cuts: list[int]) -> float:
        """A step for every batch of seeds; the loss, a sum."""
        sources, targets = to_device(self.raw.device, source_rows, target_rows)
        weight = self.settings.mapping_weight
        total = torch.zeros((), device=self.raw.device)
        for begin, end in pairwise(cuts):
            if begin < end:
                loss = mapping_loss(self.raw, self.mapping, sources[begin:end], targets[begin:end], weight)
                total += descend(self.mapping_optimiser, loss)
        return float(total)

    def units(self, num_rows: int) -> Floats:
        """Unit vectors of the first rows."""
        return unit_rows(self.raw, num_rows)

    def matrix(self) -> Floats:
        """The matrix from the source space to the target space."""
        return as_array(self.mapping)

    def arrays(self) -> Arrays:
        """All that the next step depends on."""
        return {
            "raw": as_array(self.raw),
            "mapping": self.matrix(),
            "triple_squares": self.triple_optimiser.sums(self.raw),
            "seed_squares": self.mapping_optimiser.sums(self.raw),
            "mapping_squares": self.mapping_optimiser.sums(self.mapping),
        }


def distance_loss(raw: torch.Tensor, positives: torch.Tensor) -> torch.Tensor:
    """Sum of |h + r - t|^2 over triples (batch, 3), given by rows of the vectors before normalising."""
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
    units = torch.nn.functional.normalize(raw)
    apart = (units[source_rows] @ mapping - units[target_rows]).square().sum()
    skew = (mapping @ mapping.T - torch.eye(len(mapping), device=mapping.device)).square().sum()
    return weight * (apart + skew)


class CompiledTrainer:
    """The same steps compiled for processors. See `rlea.models.translation_step`."""

    def __init__(self, arrays: Arrays, settings: MTransESettings, device: Device = "cpu") -> None:
        self.settings = settings
        self.table = Table.of(arrays["raw"], arrays.get("scales"))
        names = ("mapping", "triple_squares", "seed_squares", "mapping_squares")
        self.mapping, self.triple_squares, self.seed_squares, self.mapping_squares = (
            arrays[name].copy() for name in names
        )

    def train_triples(self, positives: Ids, cuts: list[int]) -> float:
        total = 0.0
        for begin, end in pairwise(cuts):
            loss, gradient = distance_gradient(self.table, positives[begin:end])
            adagrad_step(self.table, self.triple_squares, gradient, self.settings.learning_rate)
            total += loss
        return total

    def train_mapping(self, source_rows: Ids, target_rows: Ids, cuts: list[int]) -> float:
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

    def _mapping_gradients(self, rows: Ids) -> tuple[float, Floats, Floats]:
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

    def units(self, num_rows: int) -> Floats:
        return self.table.units(slice(num_rows))

    def matrix(self) -> Floats:
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
