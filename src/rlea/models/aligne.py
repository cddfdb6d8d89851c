"""AlignE (Sun et al., 2018: BootEA without bootstrapping): translation in one space that seeds tie together.

A triple (h, r, t) is scored by f = |h + r - t|^2 over unit vectors. The limit-based loss wants f at most
`positive_limit` for true triples and at least `negative_limit` for false ones,

    sum over true of max(0, f - positive_limit) + negative_weight * sum over false of max(0, negative_limit - f),

with false triples taken from the neighbourhood of the entity they replace, and with copies of true triples in which
a seed entity is swapped for its counterpart.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Unpack

import numpy as np
import torch
from numpy.typing import NDArray

from rlea.graph import GraphPair, Ids
from rlea.models.negatives import Sampler, nearest_neighbours
from rlea.models.torch_optimisers import Adagrad, as_array, descend, to_device, unit_rows
from rlea.models.training import Arrays, Device, Floats, Options, require_positive, train
from rlea.models.translation_step import adagrad_step, limit_gradient
from rlea.models.triples import initial_vectors, join_triples, shuffled
from rlea.models.unit_rows import Table
from rlea.search.embeddings import Embeddings


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
    # Validations in a row without a new best one; published: two that fall. Ten epochs add less to Hits@1 than
    # the score of some 1,500 validation links wavers, so two stop by chance, hundreds of epochs before the end.
    patience: int = 5
    # Our own, for pairs without validation links: on D_W_15K_V1 ten epochs add about .001 to validation Hits@1 from
    # there on, so more cost time for little; of the 15K pairs and folds some were at their best from 400 on.
    epochs_without_valid: int = 500

    def __post_init__(self) -> None:
        require_positive("AlignE", self, "positive_limit", "negative_limit", "negative_weight")


def train_aligne(pair: GraphPair, settings: AlignESettings | None = None, **options: Unpack[Options]) -> Embeddings:
    """Unit vectors of all entities of a pair, compared by cosine; `rlea.models.training.train` says the rest.

    Learns from the triples, `pair.train` and (for stopping) `pair.valid`. On the CPU the same seed gives the same bytes
    for any number of threads.
    """
    return train(AlignE, pair, settings or AlignESettings(), **options)


class AlignE:
    """AlignE in training: triples of both graphs, swapped where seeds allow, and negatives that are hard to tell."""

    title, version, measure = "AlignE", 3, "cosine"

    def __init__(self, pair: GraphPair, settings: AlignESettings, seed: int, device: Device) -> None:
        self.settings, self.seed, self.device = settings, seed, device
        self.info: dict[str, Any] = {}
        self.triples = join_triples(pair, swap=True)
        self.sampler = Sampler.of(self.triples)
        self.num_source = self.triples.num_source_entities

    def start(self, epoch: int, saved: Arrays) -> None:
        settings = self.settings
        self.searched = saved.get("searched")  # the vectors among which neighbours were last searched
        self.neighbours: Ids | None = None
        if self.searched is not None:
            self.neighbours = self._find_neighbours(epoch - (epoch - 1) % settings.refresh_every)
        if not saved:
            raw = initial_vectors(self.triples.num_entities + self.triples.num_relations, settings.dim, seed=self.seed)
            saved = {"raw": raw, "squares": np.full_like(raw, settings.initial_squares)}
        trainer = CompiledTrainer if self.device == "cpu" else TorchTrainer
        self.trainer: CompiledTrainer | TorchTrainer = trainer(saved, settings, self.device)

    def run_epoch(self, epoch: int) -> float:
        """One pass over all triples; the loss per triple."""
        settings, triples = self.settings, self.triples
        if self._is_refreshed_before(epoch):
            self.searched = self.trainer.units(triples.num_entities)
            self.neighbours = None  # given up first: for 100,000 entities a side one table takes 1.2 GB
            self.neighbours = self._find_neighbours(epoch)
        positives, cuts = shuffled(triples, settings.batch_size, seed=self.seed, epoch=epoch)
        negatives, corrupt_tail = self.sampler.draw(
            positives, settings.num_negatives, self.neighbours, seed=self.seed, epoch=epoch
        )
        positives = triples.as_rows(positives)
        loss = 0.0
        for begin, end in pairwise(cuts):
            loss += self.trainer.step(positives[begin:end], negatives[begin:end], corrupt_tail[begin:end])
        return loss / len(triples)

    def vectors(self) -> tuple[Floats, Floats]:
        units = self.trainer.units(self.triples.num_entities)
        return units[: self.num_source], units[self.num_source :]

    def arrays(self, epoch: int) -> Arrays:
        result = self.trainer.arrays()
        if self.searched is not None and not self._is_refreshed_before(epoch + 1):
            result["searched"] = self.searched
        return result

    def _is_refreshed_before(self, epoch: int) -> bool:
        return epoch > 1 and (epoch - 1) % self.settings.refresh_every == 0

    def _find_neighbours(self, epoch: int) -> Ids:
        assert self.searched is not None
        return nearest_neighbours(
            self.searched,
            self.num_source,
            self.settings.neighbour_share,
            at_least=self.settings.num_negatives,
            max_pool=self.settings.max_pool,
            seed=self.seed,
            epoch=epoch,
        )


class TorchTrainer:
    """Vectors in training (a row per entity, source first, then one per relation), with automatic gradients.

    The step in the words of the paper: the reference, and the way to a GPU.
    """

    def __init__(self, arrays: Arrays, settings: AlignESettings, device: Device) -> None:
        self.settings = settings
        self.raw = torch.tensor(arrays["raw"], device=device, requires_grad=True)
        self.optimiser = Adagrad({self.raw: arrays["squares"]}, settings.learning_rate)

    def step(self, positives: Ids, negatives: Ids, corrupt_tail: NDArray[np.bool_]) -> float:
        """One step of Adagrad down the loss of a batch, relations given by row; the loss, a sum."""
        true, false, is_tail = to_device(self.raw.device, positives, negatives, corrupt_tail)
        return float(descend(self.optimiser, limit_loss(self.raw, true, false, is_tail, self.settings)))

    def units(self, num_rows: int) -> Floats:
        """Unit vectors of the first rows."""
        return unit_rows(self.raw, num_rows)

    def arrays(self) -> Arrays:
        """All that the next step depends on."""
        return {"raw": as_array(self.raw), "squares": self.optimiser.sums(self.raw)}


def limit_loss(
    raw: torch.Tensor,  # (num_rows, dim) vectors before normalising
    positives: torch.Tensor,  # (batch, 3) rows of head, relation, tail
    negatives: torch.Tensor,  # (batch, num_negatives) rows of corrupting entities, -1 for none
    corrupt_tail: torch.Tensor,  # (batch,) whether they stand for the tail, else for the head
    settings: AlignESettings,
) -> torch.Tensor:
    """The limit-based loss of a batch, a sum over its triples."""
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


class CompiledTrainer:
    """The same step compiled for processors; some twenty times faster there. See `rlea.models.translation_step`."""

    def __init__(self, arrays: Arrays, settings: AlignESettings, device: Device = "cpu") -> None:
        self.settings = settings
        self.table, self.squares = Table.of(arrays["raw"], arrays.get("scales")), arrays["squares"].copy()

    def step(self, positives: Ids, negatives: Ids, corrupt_tail: NDArray[np.bool_]) -> float:
        loss, gradient = limit_gradient(
            self.table,
            positives,
            negatives,
            corrupt_tail,
            positive_limit=self.settings.positive_limit,
            negative_limit=self.settings.negative_limit,
            negative_weight=self.settings.negative_weight,
        )
        adagrad_step(self.table, self.squares, gradient, self.settings.learning_rate)
        return loss

    def units(self, num_rows: int) -> Floats:
        return self.table.units(slice(num_rows))

    def arrays(self) -> Arrays:
        return {"raw": self.table.raw, "squares": self.squares, "scales": self.table.scales}
