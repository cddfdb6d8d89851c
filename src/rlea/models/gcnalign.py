"""GCN-Align (Wang et al., 2018): entities whose neighbourhoods look alike, seen by convolutions over both graphs.

Both graphs lie in one matrix of entities. A relation r is functional to the degree

    fun(r) = number of heads / number of triples,    ifun(r) = number of tails / number of triples,

and entity i listens to its neighbour j with the weight

    a_ij = sum over triples (i, r, j) of ifun(r) + sum over triples (j, r, i) of fun(r),    a_ii = 1,

in which no summand is below `weight_floor`. With D_jj = sum_i a_ij, how far j is heard (the published program's choice;
the rows' sums do worse in validation), and A = D^-1/2 (a_ij) D^-1/2 the two layers are

    output = A ReLU(A input),

the same for both graphs. In the structure channel `input` is a unit vector per entity; as in the published program no
further matrix stands before either layer. In the attribute channel, used where both graphs have attributes, `input` =
F W: F has a row per entity with 1 for each of its attributes, and W has a unit vector per attribute. What is learned
are these vectors before they are brought to unit length. They start short, 1/sqrt(number of rows) per coordinate, so
the first steps turn them far; steps across a vector lengthen it, and so the steps become smaller by themselves.
With d the Manhattan distance of two outputs, each channel of its own descends the mean of

    max(0, d(seed) + margin - d(negative)),

where a negative is a seed pair with one of its ends, either in turn, replaced by an entity drawn from both graphs.
The channels are compared by structure_weight * d_structure + (1 - structure_weight) * d_attributes, which is the
Manhattan distance between joined vectors that have these weights in them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import embedding, normalize

from rlea.graph import GraphPair, Ids, KnowledgeGraph
from rlea.models.edges import SparseMatrix
from rlea.models.torch_optimisers import as_array, to_device
from rlea.models.training import Arrays, Device, Floats, Options, Schedule, TrainedModel, train
from rlea.models.triples import initial_vectors, join_triples
from rlea.search.embeddings import Embeddings


@dataclass(frozen=True)
class GcnAlignSettings(Schedule):
    """Settings of GCN-Align; the defaults are the published ones unless the comment says otherwise."""

    title: ClassVar[str] = "GCN-Align"
    may_be_zero: ClassVar[tuple[str, ...]] = ("margin", "structure_weight", "weight_floor")
    at_most_one: ClassVar[tuple[str, ...]] = ("structure_weight",)
    dim: int = 100  # of the structure channel
    attribute_dim: int = 100
    learning_rate: float = 8.0  # plain gradient descent on the mean loss
    margin: float = 3.0
    num_negatives: int = 5  # per seed and end
    refresh_every: int = 10  # epochs between two draws of negatives
    structure_weight: float = 0.9
    weight_floor: float = 0.3  # of the published program: without it a hub's neighbours would hardly hear from it
    attribute_share: float = 0.7  # of the attributes of both graphs together, the most frequent
    max_epochs: int = 2000
    valid_from: int = 100
    valid_every: int = 10
    # Published: two that fall. On EN_DE_15K_V1 validation Hits@1 climbs from .438 at epoch 100 to .485 at 480 and
    # wavers by .008 on the way; where it peaks early ten cost 100 epochs.
    patience: int = 10
    # Our own, for pairs without validation links, between pairs that gain and pairs that lose by more: from epoch 200
    # to the end EN_FR and D_Y (15K, V1) stay as they are, EN_DE goes from .461 to .485, D_W fell from .357 to .346.
    epochs_without_valid: int = 200


class GcnAlign(TrainedModel):
    """GCN-Align in training: one or two channels over the same matrix, seeds and negatives."""

    version, measure = 2, "manhattan"
    settings: GcnAlignSettings

    def __init__(self, pair: GraphPair, settings: GcnAlignSettings, seed: int, device: Device) -> None:
        super().__init__(pair, settings, seed, device)
        rows, columns, weights = adjacency(pair, settings.weight_floor)
        self.matrix = SparseMatrix.of(rows, columns, weights, (self.num_entities, self.num_entities), device)
        self.features: SparseMatrix | None = None
        # Attributes can tell something only where both graphs have some, and they have weight.
        has_attributes = len(pair.source.literals) > 0 and len(pair.target.literals) > 0
        if has_attributes and settings.structure_weight < 1:
            owners, attributes = attribute_bags(pair, settings.attribute_share)
            self.num_attributes = int(attributes.max()) + 1
            shape = self.num_entities, self.num_attributes
            self.features = SparseMatrix.of(owners, attributes, np.ones(len(owners)), shape, device)
        self.info = {"attributes": self.features is not None}

    def start(self, epoch: int, saved: Arrays) -> None:
        settings = self.settings
        if not saved:
            saved = {"structure": short_vectors(self.num_entities, settings.dim, self.seed)}
            if self.features is not None:
                saved["attributes"] = short_vectors(self.num_attributes, settings.attribute_dim, self.seed)
        self.channels = [Channel(saved["structure"], None, self.matrix)]
        if self.features is not None:
            self.channels.append(Channel(saved["attributes"], self.features, self.matrix))

    def run_epoch(self, epoch: int) -> float:
        """One step down the loss of all seeds, in every channel; the sum of the channels' mean losses."""
        drawn_at = epoch - (epoch - 1) % self.settings.refresh_every
        seeds, negatives = to_device(self.device, self.seeds, self._draw(drawn_at))
        total = 0.0
        for channel in self.channels:
            loss = margin_loss(channel.output(), seeds, negatives, self.settings.margin)
            channel.descend(loss, self.settings.learning_rate)
            total += float(loss.detach())
        return total

    def joint_vectors(self) -> Floats:
        weights = (self.settings.structure_weight, 1 - self.settings.structure_weight)
        with torch.no_grad():
            outputs = [channel.output() * weight for channel, weight in zip(self.channels, weights, strict=False)]
            return as_array(torch.cat(outputs, dim=1))

    def arrays(self, epoch: int) -> Arrays:
        names = ("structure", "attributes")
        return {name: as_array(channel.table) for name, channel in zip(names, self.channels, strict=False)}

    def _draw(self, epoch: int) -> Ids:
        """Entities in place of a seed's source end [0] and target end [1]: (2, num_seeds, num_negatives)."""
        random = np.random.default_rng([self.seed, epoch])
        shape = (2, len(self.seeds), self.settings.num_negatives)
        return random.integers(0, self.num_entities, shape, dtype=np.int32)


class Channel:
    """One table that is learned, and what the two layers make of it."""

    def __init__(self, table: Floats, features: SparseMatrix | None, matrix: SparseMatrix) -> None:
        self.table = torch.tensor(table, device=matrix.weights.device, requires_grad=True)
        self.features, self.matrix = features, matrix

    def output(self) -> torch.Tensor:
        units = normalize(self.table)
        given = units if self.features is None else self.features @ units  # (num_entities, dim)
        return self.matrix @ (self.matrix @ given).relu()

    def descend(self, loss: torch.Tensor, rate: float) -> None:
        """One step of plain gradient descent."""
        (gradient,) = torch.autograd.grad(loss, self.table)
        with torch.no_grad():
            self.table.sub_(gradient, alpha=rate)


def margin_loss(output: torch.Tensor, seeds: torch.Tensor, negatives: torch.Tensor, margin: float) -> torch.Tensor:
    """The mean over seeds, ends and negatives of max(0, d(seed) + margin - d(negative)).

    `output` (num_entities, dim), `seeds` (num_seeds, 2), `negatives` (2, num_seeds, num_negatives): in place of the
    source end, then of the target end.
    """
    # `embedding` gathers rows like an index, and is much faster on the way back.
    ends = embedding(seeds, output)  # (num_seeds, 2, dim)
    near = (ends[:, 0] - ends[:, 1]).abs().sum(dim=1)  # (num_seeds,)
    kept = ends.flip(1).transpose(0, 1)[:, :, None]  # (2, num_seeds, 1, dim): who stays when an end is replaced
    far = (kept - embedding(negatives, output)).abs().sum(dim=3)  # (2, num_seeds, num_negatives)
    return (near[:, None] + margin - far).relu().mean()


def adjacency(pair: GraphPair, floor: float) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
    """The matrix A of both graphs, source entities first: rows, columns and weights of its entries."""
    triples = join_triples(pair, swap=False)
    count = triples.num_entities
    every = np.concatenate([triples.source, triples.target]).astype(np.int64)
    fun = functionality(every[:, 0], every[:, 1], triples.num_relations)
    ifun = functionality(every[:, 2], every[:, 1], triples.num_relations)
    head, relation, tail = every[every[:, 0] != every[:, 2]].T  # a loop adds nothing to a_ii
    own = np.arange(count)
    keys = np.concatenate([head * count + tail, tail * count + head, own * count + own])
    summands = np.concatenate([np.maximum(ifun[relation], floor), np.maximum(fun[relation], floor), np.ones(count)])
    keys, places = np.unique(keys, return_inverse=True)
    weights = np.bincount(places, weights=summands, minlength=len(keys))
    rows, columns = np.divmod(keys, count)
    scales = 1 / np.sqrt(np.bincount(columns, weights=weights, minlength=count))
    return rows, columns, (scales[rows] * weights * scales[columns]).astype(np.float32)


def functionality(ends: NDArray[Any], relations: NDArray[Any], num_relations: int) -> NDArray[np.float64]:
    """Per relation, the number of its distinct ends over the number of its triples (0 for one without triples)."""
    distinct = np.unique(np.stack([relations, ends], axis=1), axis=0)[:, 0]
    triples = np.bincount(relations, minlength=num_relations)
    return np.bincount(distinct, minlength=num_relations) / np.maximum(triples, 1)


def attribute_bags(pair: GraphPair, share: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Who has which attribute, each once: entities of both graphs, source first, and numbers of attributes.

    Attributes are the same across the graphs if they have the same identifier. Only the most frequent are kept.
    """
    names = sorted({*pair.source.attributes, *pair.target.attributes})
    number = {name: place for place, name in enumerate(names)}

    def had(graph: KnowledgeGraph, shift: int) -> NDArray[np.int64]:
        joint = np.array([number[name] for name in graph.attributes], dtype=np.int64)
        return np.stack([graph.literals.entity_ids + shift, joint[graph.literals.attribute_ids]], axis=1)

    rows = np.unique(np.concatenate([had(pair.source, 0), had(pair.target, pair.source.num_entities)]), axis=0)
    counts = np.bincount(rows[:, 1], minlength=len(names))
    kept = np.sort(np.argsort(-counts, kind="stable")[: max(1, int(share * len(names)))])
    place = np.full(len(names), -1)
    place[kept] = np.arange(len(kept))
    rows = rows[place[rows[:, 1]] >= 0]
    return rows[:, 0], place[rows[:, 1]]


def short_vectors(num_rows: int, dim: int, seed: int) -> Floats:
    """Normal numbers of standard deviation 1/sqrt(num_rows), none beyond two deviations."""
    return initial_vectors(num_rows, dim, seed=seed) * np.float32(np.sqrt(dim / num_rows))


def train_gcnalign(pair: GraphPair, settings: GcnAlignSettings | None = None, **options: Unpack[Options]) -> Embeddings:
    """Vectors of all entities of a pair, compared by Manhattan distance; `rlea.models.training.train` says the rest.

    Learns from the triples, the attributes (which entity has which, not their values), `pair.train` and (for stopping)
    `pair.valid`. `info["attributes"]` tells whether the attribute channel was used.
    """
    return train(GcnAlign, pair, settings or GcnAlignSettings(), **options)
