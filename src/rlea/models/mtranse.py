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
from typing import ClassVar, Unpack

import numpy as np
import torch
from torch.nn.functional import normalize

from rlea.graph import GraphPair, Ids
from rlea.models.kernels import one_thread
from rlea.models.row_optimisers import adagrad_step
from rlea.models.torch_optimisers import Adagrad, as_array, descend_batches
from rlea.models.training import Arrays, Device, Floats, Options, train
from rlea.models.translation import AdagradSettings, CompiledTable, TorchTable, TwoSpaces, orthogonal, parts
from rlea.models.translation_step import distance_gradient, row_gradient
from rlea.models.triples import initial_vectors, shuffled
from rlea.search.embeddings import Embeddings


@dataclass(frozen=True)
class MTransESettings(AdagradSettings):
    """Settings of MTransE; the defaults are the published ones unless the comment says otherwise."""

    title: ClassVar[str] = "MTransE"
    mapping_weight: float = 5.0
    valid_from: int = 100
    valid_every: int = 10
    patience: int = 5  # published: two that fall. On D_W_15K_V1 two stop by epoch 240, before the best one at 280
    # Our own, for pairs without validation links: of four 15K pairs three are best at epochs 280 to 310 and get worse
    # afterwards; the fourth still rises slowly.
    epochs_without_valid: int = 300


def fresh_arrays(num_rows: int, settings: MTransESettings, seed: int) -> Arrays:
    """Random unit vectors, a random orthogonal matrix, and the sums of squared gradients of both Adagrads."""
    raw = initial_vectors(num_rows, settings.dim, seed=seed)
    raw /= np.maximum(np.linalg.norm(raw, axis=1, keepdims=True), np.float32(1e-6))
    arrays = {"raw": raw, "mapping": orthogonal(settings.dim, seed=seed, number=0)}
    for squares, name in (("triple_squares", "raw"), ("seed_squares", "raw"), ("mapping_squares", "mapping")):
        arrays[squares] = np.full_like(arrays[name], settings.initial_squares)
    return arrays


class TorchTrainer(TorchTable):
    """The table and the matrix from the source space to the target space; either step has an Adagrad of its own."""

    def __init__(self, arrays: Arrays, settings: MTransESettings, device: Device) -> None:
        super().__init__(arrays, settings, device)
        self.mapping = torch.tensor(arrays["mapping"], device=device, requires_grad=True)
        rate = settings.learning_rate
        self.of_triples = Adagrad({self.raw: arrays["triple_squares"]}, rate)
        self.of_seeds = Adagrad({self.raw: arrays["seed_squares"], self.mapping: arrays["mapping_squares"]}, rate)

    def train_triples(self, positives: Ids, cuts: list[int]) -> float:
        """A step for every batch of triples, given by rows; the loss, a sum."""
        return descend_batches(self.of_triples, self.distance_loss, cuts, positives)

    def train_mapping(self, seeds: Ids, cuts: list[int]) -> float:
        """A step for every batch of seeds (num_seeds, 2) that has some; the loss, a sum."""
        return descend_batches(self.of_seeds, self.mapping_loss, sorted({*cuts}), seeds)

    def distance_loss(self, positives: torch.Tensor) -> torch.Tensor:
        """Sum of |h + r - t|^2 over triples (batch, 3)."""
        head, relation, tail = normalize(self.raw)[positives].unbind(1)  # (batch, dim) each
        return (head + relation - tail).square().sum()

    def mapping_loss(self, seeds: torch.Tensor) -> torch.Tensor:
        """mapping_weight * (sum over seeds (batch, 2) of |e M - e'|^2 + |M M^T - I|^2)."""
        units, mapping = normalize(self.raw), self.mapping
        apart = (units[seeds[:, 0]] @ mapping - units[seeds[:, 1]]).square().sum()
        skew = (mapping @ mapping.T - torch.eye(len(mapping), device=mapping.device)).square().sum()
        loss: torch.Tensor = self.settings.mapping_weight * (apart + skew)
        return loss

    def matrix(self) -> Floats:
        return as_array(self.mapping)

    def arrays(self) -> Arrays:
        """All that the next step depends on."""
        return {
            "raw": as_array(self.raw),
            "mapping": self.matrix(),
            "triple_squares": self.of_triples.sums(self.raw),
            "seed_squares": self.of_seeds.sums(self.raw),
            "mapping_squares": self.of_seeds.sums(self.mapping),
        }


class CompiledTrainer(CompiledTable):
    """The same steps compiled for processors. See `rlea.models.translation_step`."""

    def train_triples(self, positives: Ids, cuts: list[int]) -> float:
        total = 0.0
        for begin, end in pairwise(cuts):
            loss, gradient = distance_gradient(self.table, positives[begin:end])
            adagrad_step(self.table, self.kept["triple_squares"], gradient, self.settings.learning_rate)
            total += loss
        return total

    def train_mapping(self, seeds: Ids, cuts: list[int]) -> float:
        total, rate = 0.0, self.settings.learning_rate
        with one_thread():
            for begin, end in pairwise(sorted({*cuts})):
                rows = seeds[begin:end].T.ravel()
                loss, by_units, by_mapping = self._mapping_gradients(rows)
                adagrad_step(self.table, self.kept["seed_squares"], row_gradient(self.table, rows, by_units), rate)
                self.kept["mapping_squares"] += by_mapping * by_mapping
                self.kept["mapping"] -= np.float32(rate) * by_mapping / np.sqrt(self.kept["mapping_squares"])
                total += loss
        return total

    def _mapping_gradients(self, rows: Ids) -> tuple[float, Floats, Floats]:
        """The loss, and its gradients by the unit vectors of the rows (sources, then targets) and by the matrix."""
        units, mapping = self.table.units(rows), self.kept["mapping"]
        weight = np.float32(self.settings.mapping_weight)
        source, target = units[: len(rows) // 2], units[len(rows) // 2 :]
        apart = source @ mapping - target
        skew = mapping @ mapping.T - np.eye(len(mapping), dtype=np.float32)
        loss = float(weight) * (float(np.vdot(apart, apart)) + float(np.vdot(skew, skew)))
        by_apart = 2 * weight * apart
        by_units = np.concatenate([by_apart @ mapping.T, -by_apart])
        return loss, by_units, source.T @ by_apart + 4 * weight * (skew @ mapping)

    def matrix(self) -> Floats:
        return self.kept["mapping"]


class MTransE(TwoSpaces):
    """MTransE in training."""

    version = 1
    trainers = CompiledTrainer, TorchTrainer
    settings: MTransESettings

    def fresh_arrays(self) -> Arrays:
        return fresh_arrays(self.num_rows, self.settings, self.seed)

    def run_epoch(self, epoch: int) -> float:
        """A pass over all triples and one over all seeds; the loss per triple and that per seed, added."""
        positives, cuts = shuffled(self.triples, self.settings.batch_size, seed=self.seed, epoch=epoch)
        triple_loss: float = self.trainer.train_triples(self.triples.as_rows(positives), cuts)
        order, seed_cuts = parts(len(self.seeds), len(cuts) - 1, seed=self.seed, epoch=epoch, stream=0)
        mapping_loss: float = self.trainer.train_mapping(self.seeds[order], seed_cuts)
        return triple_loss / len(positives) + mapping_loss / len(order)


def train_mtranse(pair: GraphPair, settings: MTransESettings | None = None, **options: Unpack[Options]) -> Embeddings:
    """Unit vectors of all entities in the space of the target, compared by cosine; the rest is said at
    `rlea.models.training.train`.

    Learns from the triples, `pair.train` and (for stopping) `pair.valid`. On the CPU the same seed gives the same bytes
    for any number of threads.
    """
    return train(MTransE, pair, settings or MTransESettings(), **options)
