"""RREA (Mao et al., 2020): neighbours mirrored across their relations, with pairs that are labelled as training goes.

Neighbours are seen as `rlea.models.reflection` says, with f = max(0, x) and an attention that looks at both entities
and at their relations. The same two layers serve the vectors of entities and those of relations; an entity's vector
joins both outputs, and dropout leaves a part of it in training. With d the Manhattan distance a step lowers the mean of

    max(0, d(seed) + margin - d(source, other target)) + max(0, d(seed) + margin - d(other source, target)),

where the others are drawn from both graphs. Every step sees the seeds and labels so often that there are as many as
entities.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Unpack

import numpy as np
import torch
from torch.nn.functional import embedding

from rlea.graph import GraphPair
from rlea.models.reflection import Attention, LabellingSchedule, ReflectionModel, layers
from rlea.models.torch_optimisers import descend, to_device
from rlea.models.training import Arrays, Options, train
from rlea.search.embeddings import Embeddings


@dataclass(frozen=True)
class RREASettings(LabellingSchedule):
    """Settings of RREA; the defaults are those of the published program unless the comment says otherwise."""

    title: ClassVar[str] = "RREA"
    may_be_zero: ClassVar[tuple[str, ...]] = ("margin", "dropout")
    dim: int = 100  # of entities, relations and every layer
    depth: int = 2
    dropout: float = 0.3
    learning_rate: float = 0.005  # RMSprop
    margin: float = 3.0
    label_from: int = 1200
    label_every: int = 1200
    max_epochs: int = 6000  # a step each
    valid_from: int = 300  # our own, as all that is about validation: the published program trains 6,000 epochs
    valid_every: int = 300
    patience: int = 20
    epochs_without_valid: int = 6000


class RREA(ReflectionModel):
    """RREA in training."""

    version = 1
    settings: RREASettings

    def initial_parameters(self) -> Arrays:
        return self.initial({f"attention.{layer}": (3 * self.settings.dim,) for layer in range(self.settings.depth)})

    def encode(self) -> torch.Tensor:
        given = self.parameters
        attention = []
        for layer in range(self.settings.depth):
            own, mirrored, relations = given[f"attention.{layer}"].chunk(3)
            attention.append(Attention(relations, own, mirrored))
        matrices = {"entities": self.neighbours.around, "relations": self.neighbours.own}
        outputs = [
            layers(matrix @ given[name], given["relations"], self.neighbours, attention, torch.relu)
            for name, matrix in matrices.items()
        ]
        return torch.cat(outputs, dim=1)

    def run_epoch(self, epoch: int) -> float:
        """One step; the loss before it."""
        known = self.known(epoch)
        random = np.random.default_rng([self.seed, epoch])
        rounds = -(-self.num_entities // len(known))
        chosen = np.concatenate([random.permutation(len(known)) for _ in range(rounds)])[: self.num_entities]
        seeds, others = to_device(
            self.device, known[chosen], random.integers(0, self.num_entities, (len(chosen), 2), dtype=np.int32)
        )
        vectors = self.dropped(self.encode(), self.generator(epoch))
        return float(descend(self.optimiser, margin_loss(vectors, seeds, others, self.settings.margin)))


def margin_loss(vectors: torch.Tensor, seeds: torch.Tensor, others: torch.Tensor, margin: float) -> torch.Tensor:
    """The mean over seeds (batch, 2) of the losses of both ends; `others` (batch, 2) are in place of either."""
    source, target = embedding(seeds, vectors).unbind(1)  # (batch, width) each
    other_source, other_target = embedding(others, vectors).unbind(1)
    near = (source - target).abs().sum(dim=1) + margin
    far = (source - other_target).abs().sum(dim=1), (other_source - target).abs().sum(dim=1)
    return ((near - far[0]).relu() + (near - far[1]).relu()).mean()


def train_rrea(pair: GraphPair, settings: RREASettings | None = None, **options: Unpack[Options]) -> Embeddings:
    """Unit vectors of all entities of a pair, compared by cosine; `rlea.models.training.train` says the rest.

    Learns from the triples, `pair.train` and (for stopping) `pair.valid`; labels are sought among all entities in no
    seed. Made for a GPU.
    """
    return train(RREA, pair, settings or RREASettings(), **options)
