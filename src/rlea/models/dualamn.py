"""Dual-AMN (Mao et al., 2021): relational reflection, proxies that all entities are compared with, hard negatives.

Neighbours are seen as `rlea.models.reflection` says, with f = tanh and an attention that looks at the relations alone.
There are two encoders with weights of their own, one for vectors of entities and one for vectors of relations. What an
encoder gives, v, is compared with a few proxies p, which bring far entities and both graphs together:

    rest = v - sum over p of softmax_p(cos(v, p)) p,    g = sigmoid(rest W + b),    output = g * v + (1 - g) * rest.

An entity's vector joins the outputs of both encoders, and dropout leaves a part of it in training. With d the squared
distance, every entity of both graphs is a negative of a seed's either end, and the loss of a seed is

    log sum over negatives of exp(scale * z + shift),   z = (d(seed) + margin - d(negative)), less its mean over
                                                            all negatives and divided by its standard deviation,

so that the hard negatives count and others do not, whatever the distances are like. Mean and deviation are taken as
they are: no gradient goes through them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Unpack

import numpy as np
import torch
from torch.nn.functional import embedding, normalize

from rlea.graph import GraphPair
from rlea.models.reflection import Attention, LabellingSchedule, ReflectionModel, layers
from rlea.models.torch_optimisers import descend, to_device
from rlea.models.training import Arrays, Options, train
from rlea.search.embeddings import Embeddings

ENCODERS = "entities", "relations"
LEAST_DEVIATION = 1e-6  # of tiny pairs, in which all negatives may be as far away


@dataclass(frozen=True)
class DualAMNSettings(LabellingSchedule):
    """Settings of Dual-AMN; the defaults are those of the published program unless the comment says otherwise."""

    title: ClassVar[str] = "Dual-AMN"
    may_be_zero: ClassVar[tuple[str, ...]] = ("margin", "dropout", "shift")
    dim: int = 128  # of entities, relations and every layer
    depth: int = 2
    num_proxies: int = 64
    dropout: float = 0.3
    learning_rate: float = 0.005  # RMSprop
    batch_size: int = 1024  # seeds and labels
    margin: float = 1.0
    scale: float = 30.0
    shift: float = 10.0
    label_from: int = 20
    label_every: int = 5
    max_epochs: int = 40
    valid_from: int = 5  # our own, as all that is about validation: the published program trains 40 epochs
    valid_every: int = 5
    patience: int = 8
    epochs_without_valid: int = 40


class DualAMN(ReflectionModel):
    """Dual-AMN in training."""

    version = 1
    settings: DualAMNSettings

    def initial_parameters(self) -> Arrays:
        settings = self.settings
        width = settings.dim * (settings.depth + 1)
        shapes: dict[str, tuple[int, ...]] = {}
        for name in ENCODERS:
            shapes[f"{name}.proxies"], shapes[f"{name}.gate"] = (settings.num_proxies, width), (width, width)
            shapes |= {f"{name}.attention.{layer}": (settings.dim,) for layer in range(settings.depth)}
        result = self.initial(shapes)
        return result | {f"{name}.bias": np.zeros(width, np.float32) for name in ENCODERS}

    def encode(self) -> torch.Tensor:
        given = self.parameters
        outputs = []
        for name, matrix in zip(ENCODERS, (self.neighbours.around, self.neighbours.own), strict=True):
            attention = [Attention(given[f"{name}.attention.{layer}"]) for layer in range(self.settings.depth)]
            joined = layers(matrix @ given[name], given["relations"], self.neighbours, attention, torch.tanh)
            outputs.append(
                beside_proxies(joined, given[f"{name}.proxies"], given[f"{name}.gate"], given[f"{name}.bias"])
            )
        return torch.cat(outputs, dim=1)

    def run_epoch(self, epoch: int) -> float:
        """Every seed and every label once; the mean loss."""
        known, generator = self.known(epoch), self.generator(epoch)
        order = np.random.default_rng([self.seed, epoch]).permutation(len(known))
        total = torch.zeros((), device=self.device)
        for batch in np.split(order, range(self.settings.batch_size, len(order), self.settings.batch_size)):
            (seeds,) = to_device(self.device, known[batch])
            vectors = self.dropped(self.encode(), generator)
            total += descend(self.optimiser, hard_loss(vectors, seeds, self.settings)) * len(batch)
        return float(total) / len(known)


def beside_proxies(joined: torch.Tensor, proxies: torch.Tensor, gate: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """What an encoder gives (num_entities, width), beside what is left of it without proxies (num_proxies, width)."""
    rest = joined - (normalize(joined) @ normalize(proxies).T).softmax(dim=1) @ proxies
    share = (rest @ gate + bias).sigmoid()
    return share * joined + (1 - share) * rest


def hard_loss(vectors: torch.Tensor, seeds: torch.Tensor, settings: DualAMNSettings) -> torch.Tensor:
    """The mean over seeds (batch, 2) of the losses of both ends; vectors (num_entities, width)."""
    ends = embedding(seeds, vectors)  # (batch, 2, width)
    near = (ends[:, 0] - ends[:, 1]).square().sum(dim=1)  # (batch,)
    lengths = vectors.square().sum(dim=1)  # (num_entities,), squared
    is_other = torch.ones(len(seeds), len(vectors), device=vectors.device)
    is_other[torch.arange(len(seeds), device=vectors.device)[:, None], seeds] = 0
    losses = []
    for end in ends.unbind(1):
        far = end.square().sum(dim=1, keepdim=True) + lengths - 2 * end @ vectors.T  # (batch, num_entities)
        excess = (near[:, None] + settings.margin - far) * is_other
        # The ends of the seed itself are no negatives: they count as one that is just beyond the margin.
        with torch.no_grad():
            deviation, mean = torch.std_mean(excess, dim=1, correction=0, keepdim=True)
        losses.append(
            (settings.scale * (excess - mean) / deviation.clamp(LEAST_DEVIATION) + settings.shift).logsumexp(1)
        )
    return (losses[0] + losses[1]).mean()


def train_dualamn(pair: GraphPair, settings: DualAMNSettings | None = None, **options: Unpack[Options]) -> Embeddings:
    """Unit vectors of all entities of a pair, compared by cosine; `rlea.models.training.train` says the rest.

    Learns from the triples, `pair.train` and (for stopping) `pair.valid`; labels are sought among all entities in no
    seed.
    """
    return train(DualAMN, pair, settings or DualAMNSettings(), **options)
