"""Relational reflection (Mao et al., 2020), which RREA and Dual-AMN have in common, and their labels.

Both graphs lie in one table of entities, and every relation has a vector for either of its directions. Of two
neighbours i and j, r_ij is the mean of the vectors of all relations from i to j, at unit length. Entity i sees j as in
a mirror that stands across r_ij, which changes neither lengths nor angles between entities,

    mirrored_ij = x_j - 2 (x_j . r_ij) r_ij,    output_i = f(sum over j of softmax_j(attention_ij) mirrored_ij),

where f is a function by coordinates. The input of the first layer is f of a mean: of the vectors of i and its
neighbours, or of the vectors of i's relations. Input and outputs of all layers stand side by side.

Every few epochs the entities in no seed are compared by CSLS, twice the cosine less the mean cosine of either of the
two with the ten that are nearest to it. Pairs that are each other's best become seeds and stay.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import normalize

from rlea.graph import GraphPair, Ids
from rlea.models.edges import (
    Edges,
    SparseMatrix,
    both_ways,
    distinct,
    inner_by_edge,
    multiply,
    of_columns,
    of_rows,
    softmax_by_row,
)
from rlea.models.torch_optimisers import RMSpropModel, as_array, to_device
from rlea.models.training import Arrays, Device, Floats, Schedule
from rlea.models.triples import JointTriples, join_triples

NEAREST = 10  # whose mean cosine CSLS takes off
_BLOCK = 1024  # entities compared at a time


class LabellingSchedule(Schedule):
    """Settings of models that label pairs: the first time after `label_from` epochs, then every `label_every`."""

    dim: int
    depth: int
    dropout: float
    label_from: int
    label_every: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dropout >= 1:
            raise self.refused("dropout", "below 1, or nothing would be left")


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Who is beside whom, and how: an edge for every ordered pair of neighbours, of both graphs.

    A kind is a set of relations, in their directions, in which an entity stands to a neighbour. Few sets occur, so
    vectors of kinds stand for vectors of edges.
    """

    near: Edges  # columns are neighbours
    kinds: Edges  # the same edges in the same order; columns are kinds
    relations: SparseMatrix  # (num_kinds, num_relations): the mean over the relations of a kind
    around: SparseMatrix  # (num_entities, num_entities): the mean over an entity and its neighbours
    own: SparseMatrix  # (num_entities, num_relations): the mean over the relations that an entity has

    @property
    def num_relations(self) -> int:
        """In either direction."""
        return self.relations.edges.column_starts.shape[0] - 1

    @staticmethod
    def of(triples: JointTriples, device: Device) -> Neighbours:
        heads, relations, tails = np.concatenate([triples.source, triples.target]).astype(np.int64).T
        count, num_relations = triples.num_entities, triples.num_relations
        keys = np.concatenate([heads * count + tails, tails * count + heads])
        how = np.concatenate([relations, relations + num_relations])
        order = np.lexsort((how, keys))
        keys, how = keys[order], how[order]
        places, starts = np.unique(keys, return_index=True)
        rows, columns = np.divmod(places, count)
        numbers: dict[bytes, int] = {}  # of the kinds, in the order in which they occur
        kinds = np.array([numbers.setdefault(one.tobytes(), len(numbers)) for one in np.split(how, starts[1:])])
        members = [np.frombuffer(kind, np.int64) for kind in numbers]
        sizes = np.array([len(part) for part in members])
        shape = len(numbers), 2 * num_relations
        of_kinds = np.repeat(np.arange(len(numbers)), sizes), np.concatenate(members)
        return Neighbours(
            Edges.in_order(rows, columns, (count, count), device),
            Edges.in_order(rows, kinds, (count, len(numbers)), device),
            SparseMatrix.of(*of_kinds, np.repeat(1 / sizes, sizes), shape, device),
            _means(*both_ways(heads, tails, count), (count, count), device),
            _means(*distinct(keys // count, how, shape[1]), (count, shape[1]), device),
        )


@dataclass(frozen=True, eq=False)
class Attention:
    """What the attention of a layer looks at, vectors (dim,): the relations, and where given both entities."""

    relations: torch.Tensor
    own: torch.Tensor | None = None
    mirrored: torch.Tensor | None = None


Shape = Callable[[torch.Tensor], torch.Tensor]  # the function f


def layers(
    given: torch.Tensor, relations: torch.Tensor, neighbours: Neighbours, attention: list[Attention], shape: Shape
) -> torch.Tensor:
    """Input (num_entities, dim) and outputs of all layers side by side; relations (num_relations, dim)."""
    kinds = normalize(neighbours.relations @ relations)  # (num_kinds, dim)
    outputs = [shape(given)]
    for one in attention:
        outputs.append(shape(mirror(outputs[-1], kinds, neighbours, one)))
    return torch.cat(outputs, dim=1)


def mirror(vectors: torch.Tensor, kinds: torch.Tensor, neighbours: Neighbours, attention: Attention) -> torch.Tensor:
    """The sum over the neighbours of every entity, mirrored and weighted: (num_entities, dim)."""
    near, by_kind = neighbours.near, neighbours.kinds
    along = inner_by_edge(near, vectors, by_kind, kinds)  # (num_edges,)
    logits = of_columns(by_kind, kinds @ attention.relations)
    if attention.own is not None:
        logits = logits + of_rows(near, vectors @ attention.own)
    if attention.mirrored is not None:
        across = of_columns(by_kind, kinds @ attention.mirrored)
        logits = logits + of_columns(near, vectors @ attention.mirrored) - 2 * along * across
    weights = softmax_by_row(near, logits)
    return multiply(near, weights, vectors) - 2 * multiply(by_kind, weights * along, kinds)


class ReflectionModel(RMSpropModel):
    """A model over reflected neighbours that labels pairs as it goes."""

    settings: Any

    def __init__(self, pair: GraphPair, settings: Any, seed: int, device: Device) -> None:
        super().__init__(pair, settings, seed, device)
        self.neighbours = Neighbours.of(join_triples(pair, swap=False), device)

    @abstractmethod
    def encode(self) -> torch.Tensor:
        """Vectors of all entities as they are now, (num_entities, width)."""

    def start(self, epoch: int, saved: Arrays) -> None:
        self.labels: Ids = saved.pop("labels", np.zeros((0, 2), np.int32))  # (num_labels, 2), in joint ids
        super().start(epoch, saved)

    def arrays(self, epoch: int) -> Arrays:
        return {**super().arrays(epoch), "labels": self.labels}

    def joint_vectors(self) -> Floats:
        with torch.no_grad():
            return as_array(normalize(self.encode()))

    def known(self, epoch: int) -> Ids:
        """Seeds and labels for an epoch, (n, 2); before it new pairs are labelled if it is time."""
        since = epoch - 1 - self.settings.label_from
        if since >= 0 and since % self.settings.label_every == 0:
            known = np.concatenate([self.seeds, self.labels])
            sides = (0, self.num_source), (self.num_source, self.num_entities)
            free = [
                np.setdiff1d(np.arange(*side), ids).astype(np.int32) for side, ids in zip(sides, known.T, strict=True)
            ]
            with torch.no_grad():
                found = mutual_best(normalize(self.encode()), *free)
            self.labels = np.concatenate([self.labels, found])
        return np.concatenate([self.seeds, self.labels])

    def dropped(self, vectors: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """Vectors of which dropout leaves a part, and makes up for the rest."""
        keep = 1 - self.settings.dropout
        factors: torch.Tensor = torch.empty_like(vectors).bernoulli_(keep, generator=generator) / keep
        return vectors * factors

    def generator(self, epoch: int) -> torch.Generator:
        """For all that is drawn in an epoch on the device."""
        generator = torch.Generator(self.device)
        generator.manual_seed(int(np.random.default_rng([self.seed, epoch, 1]).integers(2**62)))
        return generator

    def initial(self, shapes: dict[str, tuple[int, ...]]) -> Arrays:
        """Vectors of entities and relations within .05 of zero, and those `shapes` within sqrt(6 / their sum)."""
        random = np.random.default_rng([self.seed, 0])
        dim = self.settings.dim
        result: Arrays = {}
        for name, count in (("entities", self.num_entities), ("relations", self.neighbours.num_relations)):
            result[name] = random.uniform(-0.05, 0.05, (count, dim)).astype(np.float32)
        for name, shape in shapes.items():
            bound = np.sqrt(6 / (sum(shape) if len(shape) > 1 else shape[0] + 1))
            result[name] = random.uniform(-bound, bound, shape).astype(np.float32)
        return result


def mutual_best(vectors: torch.Tensor, source_ids: Ids, target_ids: Ids) -> Ids:
    """Pairs (n, 2) of the given entities that are each other's best by CSLS; unit vectors of all entities."""
    if not len(source_ids) or not len(target_ids):
        return np.zeros((0, 2), np.int32)
    sides = [vectors[rows] for rows in to_device(vectors.device, source_ids, target_ids)]
    around = [_mean_nearest(one, other) for one, other in (sides, sides[::-1])]
    forth, back = (_best(sides[k], sides[1 - k], around[1 - k]) for k in (0, 1))
    rows = np.flatnonzero(back[forth] == np.arange(len(forth)))
    return np.stack([source_ids[rows], target_ids[forth[rows]]], axis=1)


def _mean_nearest(vectors: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    """The mean cosine of every vector with the ten nearest of the others."""
    count = min(NEAREST, len(others))
    return torch.cat([(part @ others.T).topk(count).values.mean(dim=1) for part in _blocks(vectors)])


def _best(vectors: torch.Tensor, others: torch.Tensor, around: torch.Tensor) -> NDArray[Any]:
    """For every vector the place of the best of the others; what is taken off for itself changes no order."""
    return as_array(torch.cat([(2 * part @ others.T - around).argmax(dim=1) for part in _blocks(vectors)]))


def _blocks(vectors: torch.Tensor) -> list[torch.Tensor]:
    return [vectors[begin : begin + _BLOCK] for begin in range(0, len(vectors), _BLOCK)]


def _means(rows: NDArray[Any], columns: NDArray[Any], shape: tuple[int, int], device: Device) -> SparseMatrix:
    """The mean over the entries of every row, each of which is given once."""
    weights = 1 / np.bincount(rows, minlength=shape[0])[rows]
    return SparseMatrix.of(rows, columns, weights, shape, device)
