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
from typing import Any, ClassVar, Unpack

import numpy as np
import torch
from numpy.typing import NDArray

from rlea.graph import GraphPair, Ids
from rlea.models.negatives import Sampler, nearest_neighbours
from rlea.models.row_optimisers import adagrad_step
from rlea.models.torch_optimisers import Adagrad, as_array, descend_batches
from rlea.models.training import Arrays, Device, Options, train
from rlea.models.translation import AdagradSettings, CompiledTable, TorchTable, TranslationModel, triple_scores
from rlea.models.translation_step import limit_gradient
from rlea.models.triples import shuffled
from rlea.search.embeddings import Embeddings


@dataclass(frozen=True)
class AlignESettings(AdagradSettings):
    """Settings of AlignE; the defaults are the published ones unless the comment says otherwise."""

    title: ClassVar[str] = "AlignE"
    may_be_zero: ClassVar[tuple[str, ...]] = ("positive_limit", "negative_limit", "negative_weight")
    positive_limit: float = 0.01
    negative_limit: float = 2.0  # the squared distance of unrelated unit vectors
    negative_weight: float = 0.2
    num_negatives: int = 10  # per positive
    neighbour_share: float = 0.1  # negatives come from this share of the graph, the nearest
    refresh_every: int = 10  # epochs between two searches for neighbours
    max_pool: int = 15_000  # our own: of larger graphs a sample this large is searched, or memory would run out
    valid_from: int = 100
    valid_every: int = 10
    # Published: two that fall. Ten epochs add less to Hits@1 than the score of some 1,500 validation links wavers, so
    # two stop by chance, hundreds of epochs before the end.
    patience: int = 5
    # Our own, for pairs without validation links: on D_W_15K_V1 ten epochs add about .001 to validation Hits@1 from
    # there on, so more cost time for little; of the 15K pairs and folds some were at their best from 400 on.
    epochs_without_valid: int = 500


class TorchTrainer(TorchTable):
    """The table with one Adagrad."""

    def __init__(self, arrays: Arrays, settings: Any, device: Device) -> None:
        super().__init__(arrays, settings, device)
        self.optimiser = Adagrad({self.raw: arrays["squares"]}, settings.learning_rate)

    def train_triples(self, positives: Ids, negatives: Ids, corrupt_tail: NDArray[np.bool_], cuts: list[int]) -> float:
        """A step for every batch of triples between two cuts, relations given by row; the loss, a sum."""
        batches = positives, negatives, corrupt_tail
        return descend_batches(self.optimiser, self.loss, cuts, *batches, precision=torch.float64)

    def loss(self, positives: torch.Tensor, negatives: torch.Tensor, corrupt_tail: torch.Tensor) -> torch.Tensor:
        """The loss of a batch, a sum over its triples."""
        settings = self.settings
        true_scores, false_scores = triple_scores(self.raw, positives, negatives, corrupt_tail)
        too_far = (true_scores - settings.positive_limit).relu().sum()
        too_near = ((settings.negative_limit - false_scores).relu() * (negatives >= 0)).sum()
        loss: torch.Tensor = too_far + settings.negative_weight * too_near
        return loss

    def arrays(self) -> Arrays:
        """All that the next step depends on."""
        return {"raw": as_array(self.raw), "squares": self.optimiser.sums(self.raw)}


class CompiledTrainer(CompiledTable):
    """The same steps compiled for processors; some twenty times faster there. See `rlea.models.translation_step`."""

    def train_triples(self, positives: Ids, negatives: Ids, corrupt_tail: NDArray[np.bool_], cuts: list[int]) -> float:
        total = 0.0
        for begin, end in pairwise(cuts):
            batch = positives[begin:end], negatives[begin:end], corrupt_tail[begin:end]
            loss, gradient = limit_gradient(self.table, *batch, *self.limits())
            adagrad_step(self.table, self.kept["squares"], gradient, self.settings.learning_rate)
            total += loss
        return total

    def limits(self) -> tuple[float, float, float]:
        """Those of true and of false triples, and the weight of the latter."""
        settings = self.settings
        return settings.positive_limit, settings.negative_limit, settings.negative_weight


class AlignE(TranslationModel):
    """AlignE in training: triples of both graphs, swapped where seeds allow, and negatives that are hard to tell."""

    version = 3
    trainers = CompiledTrainer, TorchTrainer
    swaps = True
    settings: AlignESettings

    def __init__(self, pair: GraphPair, settings: AlignESettings, seed: int, device: Device) -> None:
        super().__init__(pair, settings, seed, device)
        self.sampler = Sampler.of(self.triples)

    def start(self, epoch: int, saved: Arrays) -> None:
        self.searched = saved.pop("searched", None)  # the vectors among which neighbours were last searched
        self.neighbours: Ids | None = None
        if self.searched is not None:
            self.neighbours = self._find_neighbours(epoch - (epoch - 1) % self.settings.refresh_every)
        super().start(epoch, saved)

    def run_epoch(self, epoch: int) -> float:
        """One pass over all triples; the loss per triple."""
        settings, triples = self.settings, self.triples
        if self.is_refreshed_before(epoch):
            self.searched = self.joint_vectors()
            self.neighbours = None  # given up first: for 100,000 entities a side one table takes 1.2 GB
            self.neighbours = self._find_neighbours(epoch)
        positives, cuts = shuffled(triples, settings.batch_size, seed=self.seed, epoch=epoch)
        negatives, corrupt_tail = self.sampler.draw(
            positives, settings.num_negatives, self.neighbours, seed=self.seed, epoch=epoch
        )
        loss: float = self.trainer.train_triples(triples.as_rows(positives), negatives, corrupt_tail, cuts)
        return loss / len(triples)

    def arrays(self, epoch: int) -> Arrays:
        result = super().arrays(epoch)
        if self.searched is not None and not self.is_refreshed_before(epoch + 1):
            result["searched"] = self.searched
        return result

    def _find_neighbours(self, epoch: int) -> Ids:
        assert self.searched is not None
        return nearest_neighbours(self.searched, self.num_source, self.settings, seed=self.seed, epoch=epoch)


def train_aligne(pair: GraphPair, settings: AlignESettings | None = None, **options: Unpack[Options]) -> Embeddings:
    """Unit vectors of all entities of a pair, compared by cosine; `rlea.models.training.train` says the rest.

    Learns from the triples, `pair.train` and (for stopping) `pair.valid`. On the CPU the same seed gives the same bytes
    for any number of threads.
    """
    return train(AlignE, pair, settings or AlignESettings(), **options)
