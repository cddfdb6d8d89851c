"""SEA (Pei et al., 2019) as the benchmarks train it: a space for each graph, and a matrix each way between the two.

Either graph is embedded by itself: a true triple (h, r, t) is to be nearer than one with a false head or tail,

    sum over triples of max(0, margin + |h + r - t|^2 - |h' + r - t'|^2)        over unit vectors.

The matrix M takes the source space to the target space, and N takes it back. Seeds (e, e') are to meet in both spaces,
and entities without a seed, of which the links say nothing, are to come home from a journey there and back: with u(x)
for x scaled to unit length,

    seed_weight  * (sum over seeds of |u(e M) - e'|^2 + |u(e' N) - e|^2)
  + cycle_weight * (sum over the others of |u(e M N) - e|^2  +  sum over the others of |u(e' N M) - e'|^2).

An epoch is a pass over the triples, then a pass over the entities in as many batches; each of the two has an Adam of
its own. Entities are compared by the cosine of e M and e'.

The paper also has discriminators that must not be able to tell an entity of high degree from one of low degree. The
benchmarks' program, whose figures are the published ones, goes without; so does this one. That program scales e M to
unit length over a whole batch rather than row by row, as the formula is meant here; under Adam, to which the size of a
gradient hardly matters, the difference is one of weights between seeds and others.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, NamedTuple, Unpack

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import normalize

from rlea.graph import GraphPair, Ids
from rlea.models.kernels import one_thread
from rlea.models.negatives import Sampler
from rlea.models.row_optimisers import Adam, MatrixAdam
from rlea.models.torch_optimisers import adam_arrays, as_array, descend, descend_batches, restore_adam, to_device
from rlea.models.training import Arrays, Device, Floats, Options, Schedule, train
from rlea.models.translation import CompiledTable, TorchTable, TwoSpaces, orthogonal, parts, triple_scores
from rlea.models.translation_step import Table, batch_rows, margin_gradient, row_gradient
from rlea.models.triples import initial_vectors, shuffled
from rlea.search.embeddings import Embeddings


@dataclass(frozen=True)
class SEASettings(Schedule):
    """Settings of SEA; the defaults are the published ones unless the comment says otherwise."""

    title: ClassVar[str] = "SEA"
    may_be_zero: ClassVar[tuple[str, ...]] = ("cycle_weight",)
    dim: int = 100
    learning_rate: float = 0.01  # Adam
    max_epochs: int = 2000
    batch_size: int = 5000
    margin: float = 1.5
    seed_weight: float = 2.5  # ten times the other, as in the authors' own program
    cycle_weight: float = 0.25
    valid_from: int = 10
    valid_every: int = 10
    # Published: two that fall. The score wavers by .01 from one validation to the next, so two stop by chance: on
    # EN_FR_15K_V1 at epoch 190, and it goes on rising. Five stop there at 280 with .307; more would add about .01 for
    # half as much time again.
    patience: int = 5
    # Our own, for pairs without validation links: on EN_FR_15K_V1 the hundred epochs before this one add .014 to
    # validation Hits@1, and the hundred before those .05.
    epochs_without_valid: int = 300


class Entities(NamedTuple):
    """Rows of one batch: seeds, and entities of either graph that are in no seed."""

    seed_sources: Ids  # (num_seeds,)
    seed_targets: Ids  # (num_seeds,)
    other_sources: Ids
    other_targets: Ids

    def rows(self) -> Ids:
        return np.concatenate(self)


def all_entities(seeds: Ids, num_source: int, num_entities: int) -> Entities:
    """The seeds (n, 2), and every entity that is in none."""
    others = np.setdiff1d(np.arange(num_entities, dtype=np.int32), seeds)
    return Entities(seeds[:, 0], seeds[:, 1], others[others < num_source], others[others >= num_source])


def split_entities(entities: Entities, num_batches: int, *, seed: int, epoch: int) -> list[Entities]:
    """Batches with an equal share of each kind; batches without anything are left out."""

    def split(num_items: int, stream: int) -> list[Ids]:
        order, cuts = parts(num_items, num_batches, seed=seed, epoch=epoch, stream=stream)
        return [order[begin:end] for begin, end in pairwise(cuts)]

    of_seeds = split(len(entities.seed_sources), 0)
    of_sources, of_targets = split(len(entities.other_sources), 1), split(len(entities.other_targets), 2)
    batches = [
        Entities(*(rows[order] for rows, order in zip(entities, (seeds, seeds, sources, targets), strict=True)))
        for seeds, sources, targets in zip(of_seeds, of_sources, of_targets, strict=True)
    ]
    return [batch for batch in batches if len(batch.rows()) > 0]


def fresh_arrays(num_rows: int, settings: SEASettings, seed: int) -> Arrays:
    """Random vectors and orthogonal matrices, without a past."""
    return {
        "raw": initial_vectors(num_rows, settings.dim, seed=seed),
        "there": orthogonal(settings.dim, seed=seed, number=0),
        "back": orthogonal(settings.dim, seed=seed, number=1),
    }


class TorchTrainer(TorchTable):
    """The table and the matrices M (there) and N (back) between its spaces; either step has an Adam of its own."""

    def __init__(self, arrays: Arrays, settings: SEASettings, device: Device) -> None:
        super().__init__(arrays, settings, device)
        self.there, self.back = (
            torch.tensor(arrays[name], device=device, requires_grad=True) for name in ("there", "back")
        )
        self.parameters = {
            "triples.": {"raw": self.raw},
            "mapping.": {"raw": self.raw, "there": self.there, "back": self.back},
        }
        self.optimisers = {}
        for prefix, parameters in self.parameters.items():
            self.optimisers[prefix] = torch.optim.Adam(parameters.values(), lr=settings.learning_rate)
            restore_adam(self.optimisers[prefix], parameters, arrays, prefix)

    def train_triples(self, positives: Ids, negatives: Ids, corrupt_tail: NDArray[np.bool_], cuts: list[int]) -> float:
        """A step for every batch of triples, given by rows; the loss, a sum."""
        return descend_batches(self.optimisers["triples."], self.margin_loss, cuts, positives, negatives, corrupt_tail)

    def train_mapping(self, batches: list[Entities]) -> float:
        """A step for every batch of entities; the loss, a sum."""
        total = torch.zeros((), device=self.raw.device)
        # One copy to the device for all batches: many small ones would take longer than the steps.
        (rows,) = to_device(self.raw.device, np.concatenate([batch.rows() for batch in batches]))
        kinds = torch.split(rows, [len(kind) for batch in batches for kind in batch])
        for first in range(0, len(kinds), len(Entities._fields)):
            loss = self.mapping_loss(*kinds[first : first + len(Entities._fields)])
            total += descend(self.optimisers["mapping."], loss)
        return float(total)

    def margin_loss(self, positives: torch.Tensor, negatives: torch.Tensor, corrupt_tail: torch.Tensor) -> torch.Tensor:
        """Sum over triples of max(0, margin + |h + r - t|^2 - |h' + r - t'|^2), those with a negative."""
        near, far = triple_scores(self.raw, positives, negatives, corrupt_tail)  # (batch, 1) each
        loss: torch.Tensor = ((self.settings.margin + near - far).relu() * (negatives >= 0)).sum()
        return loss

    def mapping_loss(
        self,
        seed_sources: torch.Tensor,
        seed_targets: torch.Tensor,
        other_sources: torch.Tensor,
        other_targets: torch.Tensor,
    ) -> torch.Tensor:
        """The loss of the two mappings, a sum over rows."""
        units, there, back = normalize(self.raw), self.there, self.back
        sources, targets = units[seed_sources], units[seed_targets]
        meet = (normalize(sources @ there) - targets).square().sum()
        meet = meet + (normalize(targets @ back) - sources).square().sum()
        sources, targets = units[other_sources], units[other_targets]
        home = (normalize(sources @ there @ back) - sources).square().sum()
        home = home + (normalize(targets @ back @ there) - targets).square().sum()
        loss: torch.Tensor = self.settings.seed_weight * meet + self.settings.cycle_weight * home
        return loss

    def matrix(self) -> Floats:
        return as_array(self.there)

    def arrays(self) -> Arrays:
        """All that the next step depends on."""
        result: Arrays = {}
        for prefix, parameters in self.parameters.items():
            result |= adam_arrays(self.optimisers[prefix], parameters, prefix)
        return result


class CompiledTrainer(CompiledTable):
    """The same steps compiled for processors. See `rlea.models.translation_step`."""

    def __init__(self, arrays: Arrays, settings: SEASettings, device: Device = "cpu") -> None:
        super().__init__({name: arrays[name] for name in Table._fields if name in arrays}, settings, device)
        rate = settings.learning_rate
        self.adams = {name: Adam.of(arrays, name, self.table, rate) for name in ("triple_adam", "entity_adam")}
        self.matrices = {name: MatrixAdam.of(arrays, name, rate) for name in ("there", "back")}

    def train_triples(self, positives: Ids, negatives: Ids, corrupt_tail: NDArray[np.bool_], cuts: list[int]) -> float:
        total = 0.0
        for begin, end in pairwise(cuts):
            true, false = positives[begin:end], negatives[begin:end]
            self._catch_up(true, false)
            loss, gradient = margin_gradient(self.table, true, false, corrupt_tail[begin:end], self.settings.margin)
            self.adams["triple_adam"].step(self.table, gradient)
            total += loss
        return total

    def train_mapping(self, batches: list[Entities]) -> float:
        total, adam = 0.0, self.adams["entity_adam"]
        with one_thread():
            for batch in batches:
                rows = batch.rows()
                self._catch_up(rows)
                loss, by_units, *by_matrices = self._mapping_gradients(batch)
                adam.step(self.table, row_gradient(self.table, rows, by_units))
                for matrix, gradient in zip(self.matrices.values(), by_matrices, strict=True):
                    matrix.step(gradient, adam.steps)
                total += loss
        return total

    def _catch_up(self, *ids: Ids) -> None:
        rows = batch_rows(len(self.table.raw), *ids)
        for adam in self.adams.values():
            adam.catch_up(self.table, rows)

    def _mapping_gradients(self, batch: Entities) -> tuple[float, Floats, Floats, Floats]:
        """`mapping_loss`, and its gradients by the unit vectors of the batch's rows, by M and by N."""
        there, back = (matrix.value for matrix in self.matrices.values())
        meet, cycle = np.float32(self.settings.seed_weight), np.float32(self.settings.cycle_weight)
        sources, targets = self.table.units(batch.seed_sources), self.table.units(batch.seed_targets)
        # Seeds: e M is to be e', and e' N to be e.
        there_loss, by_mapped, by_targets = unit_loss(sources @ there, targets, meet)
        by_sources = by_mapped @ there.T
        by_there = sources.T @ by_mapped
        back_loss, by_mapped, more = unit_loss(targets @ back, sources, meet)
        by_sources += more
        by_targets += by_mapped @ back.T
        by_back = targets.T @ by_mapped
        loss = there_loss + back_loss
        # Others: e M N is to be e, and e' N M to be e'. The product of the matrices comes first: they have fewer rows.
        by_others = []
        for rows, first, second, by_first, by_second in (
            (batch.other_sources, there, back, by_there, by_back),
            (batch.other_targets, back, there, by_back, by_there),
        ):
            units, both = self.table.units(rows), first @ second
            home_loss, by_home, by_units = unit_loss(units @ both, units, cycle)
            by_both = units.T @ by_home
            by_first += by_both @ second.T
            by_second += first.T @ by_both
            by_others.append(by_units + by_home @ both.T)
            loss += home_loss
        return loss, np.concatenate([by_sources, by_targets, *by_others]), by_there, by_back

    def units(self, num_rows: int) -> Floats:
        """With every row up to date. The run itself goes on from rows as they are."""
        table, adams = deepcopy((self.table, self.adams))
        for adam in adams.values():
            adam.catch_up(table, np.arange(len(table.raw), dtype=np.int32))
        return table.units(slice(num_rows))

    def matrix(self) -> Floats:
        return self.matrices["there"].value

    def arrays(self) -> Arrays:
        result: Arrays = self.table._asdict()
        for name, adam in self.adams.items():
            result |= adam.arrays(name)
        for name, matrix in self.matrices.items():
            result |= matrix.arrays(name)
        return result


def unit_loss(vectors: Floats, units: Floats, weight: np.float32) -> tuple[float, Floats, Floats]:
    """weight * sum over rows of |vectors / their lengths - units|^2, and its gradients by `vectors` and by `units`."""
    scales = 1 / np.maximum(np.sqrt(np.einsum("nd,nd->n", vectors, vectors)), np.float32(1e-12))[:, None]
    scaled = vectors * scales
    apart = scaled - units
    along = np.einsum("nd,nd->n", apart, scaled)[:, None]
    by_vectors = 2 * weight * scales * (apart - along * scaled)
    return float(weight) * float(np.vdot(apart, apart)), by_vectors, -2 * weight * apart


class SEA(TwoSpaces):
    """SEA in training."""

    version = 2
    trainers = CompiledTrainer, TorchTrainer
    settings: SEASettings

    def __init__(self, pair: GraphPair, settings: SEASettings, seed: int, device: Device) -> None:
        super().__init__(pair, settings, seed, device)
        self.sampler = Sampler.of(self.triples)
        self.entities = all_entities(self.seeds, self.num_source, self.num_entities)

    def fresh_arrays(self) -> Arrays:
        return fresh_arrays(self.num_rows, self.settings, self.seed)

    def run_epoch(self, epoch: int) -> float:
        """A pass over all triples and one over all entities; the loss per triple and that per seed, added."""
        positives, cuts = shuffled(self.triples, self.settings.batch_size, seed=self.seed, epoch=epoch)
        negatives, corrupt_tail = self.sampler.draw(positives, 1, None, seed=self.seed, epoch=epoch)
        rows = self.triples.as_rows(positives)
        triple_loss: float = self.trainer.train_triples(rows, negatives, corrupt_tail, cuts)
        batches = split_entities(self.entities, len(cuts) - 1, seed=self.seed, epoch=epoch)
        mapping_loss: float = self.trainer.train_mapping(batches)
        return triple_loss / len(positives) + mapping_loss / len(self.seeds)


def train_sea(pair: GraphPair, settings: SEASettings | None = None, **options: Unpack[Options]) -> Embeddings:
    """Unit vectors of all entities in the space of the target, compared by cosine; the rest is said at
    `rlea.models.training.train`.

    Learns from the triples, `pair.train` and (for stopping) `pair.valid`. On the CPU the same seed gives the same bytes
    for any number of threads.
    """
    return train(SEA, pair, settings or SEASettings(), **options)
