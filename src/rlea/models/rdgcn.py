"""RDGCN (Wu et al., 2019): names, refined by attention between the graph of entities and the graph of relations.

The primal graph has the entities of both graphs as vertices and their triples as edges; X0 are unit vectors of the
entities' names, which are trained on. The dual graph has the relations as vertices; two of them are joined by an edge
of weight w = J(heads, heads') + J(tails, tails') where the Jaccard similarity of their heads or tails is above zero.

A relation r is shown by what it joins, c(r) = [mean of x over heads of r, mean of x over tails of r]. Dual attention
lets relations that are used alike speak to each other,

    a(r, s) = softmax over s of leaky_relu(w(r, s) * (u . V c(r) + v . V c(s))),      y(r) = relu(sum of a(r, s) z(s)),

and primal attention weighs the edges that leave an entity by their relations,

    b(h, r, t) = softmax over the triples of h of leaky_relu(q . y(r)),      att(h) = relu(sum of b(h, r, t) x(t)).

The two take turns twice (z is c itself the first time, y of the first turn the second time):

    X1 = X0 + alpha * att(X0),      X2 = X0 + beta * att(X1).

Two layers of graph convolution with a diagonal weight and a highway gate follow, with A the adjacency of the entities
with self-loops, normalised by D^-1/2 A D^-1/2:

    H' = G * relu(A H diag(w)) + (1 - G) * H,      G = sigmoid(H K + k).

Trained by the margin ranking loss of `rlea.models.ranking` over the seeds and their nearest neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Unpack

import numpy as np
import torch
from torch.nn.functional import leaky_relu, normalize

from rlea.errors import InputError
from rlea.graph import GraphPair, Ids
from rlea.models.edges import Edges, SparseMatrix, both_ways, distinct, multiply, softmax_by_row
from rlea.models.name_vectors import NameVectors, name_vectors
from rlea.models.ranking import Negatives, nearest, ranking_loss
from rlea.models.torch_optimisers import AdamModel, as_array, descend
from rlea.models.training import Arrays, Device, Floats, Options, Schedule, train
from rlea.models.triples import JointTriples, join_triples
from rlea.search.embeddings import Embeddings

_SLOPE = 0.2  # of the leaky rectifier below zero: what the published program's framework does unasked


@dataclass(frozen=True)
class RDGCNSettings(Schedule):
    """Settings of RDGCN; the defaults are the published ones unless the comment says otherwise."""

    title: ClassVar[str] = "RDGCN"
    may_be_zero: ClassVar[tuple[str, ...]] = ("alpha", "beta")
    dim: int = 300
    learning_rate: float = 0.002  # Adam, the whole graph in one step
    alpha: float = 0.1  # weight of the first interaction
    beta: float = 0.3  # weight of the second one
    margin: float = 1.0
    num_negatives: int = 125  # nearest neighbours of either end of a seed
    refresh_every: int = 10  # epochs between two searches for them
    max_epochs: int = 2000
    valid_from: int = 30
    valid_every: int = 10
    patience: int = 2
    # Our own, for pairs without validation links: the loss is near zero from epoch 20 on, and on EN_FR_15K_V1 and
    # D_W_15K_V1 no validation after epoch 30 was better than the one there.
    epochs_without_valid: int = 30
    encoder: str = ""  # our own: the folder of a sentence encoder; without it, names are compared by their letters


class RDGCN(AdamModel):
    """RDGCN in training: the network, the seeds, and the negatives that were last found."""

    version, measure = 2, "manhattan"
    settings: RDGCNSettings

    def __init__(self, pair: GraphPair, settings: RDGCNSettings, seed: int, device: Device) -> None:
        super().__init__(pair, settings, seed, device)
        if self.num_entities < 3:
            raise InputError(
                f"{pair.name} has one entity on either side, and RDGCN needs a third to tell a seed from",
                remedy="embed the entities by their names",
            )
        self.names = name_vectors(pair, settings.dim, seed=seed, encoder=settings.encoder)
        self.info = self.names.info
        self.anchors = torch.as_tensor(np.ascontiguousarray(self.seeds.T, dtype=np.int64), device=device)
        self.network = Network(join_triples(pair, swap=False), settings, device)

    def initial_parameters(self) -> Arrays:
        return initial_parameters(self.names, self.settings, self.seed)

    def start(self, epoch: int, saved: Arrays) -> None:
        super().start(epoch, saved)
        self.negatives: Negatives | None = None
        if "found" in saved:
            self._take_negatives(torch.as_tensor(saved["found"].astype(np.int64), device=self.device))

    def run_epoch(self, epoch: int) -> float:
        """One step over all seeds; the mean loss of a seed with a negative."""
        output = self.network.run(self.parameters)
        if (epoch - 1) % self.settings.refresh_every == 0:
            k = min(self.settings.num_negatives, self.num_entities - 2)
            before = None if self.negatives is None else self.negatives.others
            self._take_negatives(nearest(output.detach(), self.anchors, k, before))
        assert self.negatives is not None
        return float(descend(self.optimiser, ranking_loss(output, self.negatives, self.settings.margin)))

    def joint_vectors(self) -> Floats:
        with torch.no_grad():
            return as_array(self.network.run(self.parameters))

    def arrays(self, epoch: int) -> Arrays:
        assert self.negatives is not None
        return super().arrays(epoch) | {"found": as_array(self.negatives.others).astype(np.int32)}

    def _take_negatives(self, found: torch.Tensor) -> None:
        self.negatives = Negatives.of(self.anchors, found, self.num_entities)


def initial_parameters(names: NameVectors, settings: RDGCNSettings, seed: int) -> Arrays:
    """Names as they are, gates and attention at random (Glorot), diagonals 1, biases 0."""
    random = np.random.default_rng([seed, 0])
    dim = settings.dim

    def glorot(num_rows: int, num_columns: int) -> Floats:
        limit = np.sqrt(6 / (num_rows + num_columns))
        return random.uniform(-limit, limit, (num_rows, num_columns)).astype(np.float32)

    both = np.concatenate([names.source, names.target])
    nameless = ~both.any(axis=1)
    strangers = random.standard_normal((int(nameless.sum()), dim), dtype=np.float32)
    both[nameless] = strangers / np.linalg.norm(strangers, axis=1, keepdims=True)
    result: Arrays = {"names": both}
    for turn in (1, 2):
        result[f"dual{turn}.kernel"] = glorot(2 * dim, 2 * dim)  # V
        result[f"dual{turn}.ends"] = np.concatenate([glorot(2 * dim, 1), glorot(2 * dim, 1)], axis=1)  # u, v
        result[f"dual{turn}.bias"] = np.zeros(1, dtype=np.float32)
        result[f"primal{turn}.kernel"] = glorot(2 * dim, 1)[:, 0]  # q
        result[f"primal{turn}.bias"] = np.zeros(1, dtype=np.float32)
    for layer in (1, 2):
        result[f"gcn{layer}.diagonal"] = np.ones(dim, dtype=np.float32)
        result[f"gate{layer}.kernel"] = glorot(dim, dim)
        result[f"gate{layer}.bias"] = np.zeros(dim, dtype=np.float32)
    return result


class Network:
    """What does not change in training: both graphs as matrices. The parameters come in from outside."""

    def __init__(self, triples: JointTriples, settings: RDGCNSettings, device: Device = "cpu") -> None:
        self.settings = settings
        every = np.concatenate([triples.source, triples.target])
        heads, relations, tails = every.T
        size, num_relations = triples.num_entities, triples.num_relations
        self.primal, order = Edges.of(heads, tails, (size, size), device)
        self.relations = torch.as_tensor(relations[order].astype(np.int64), device=device)  # of the primal edges
        self.similarity = torch.as_tensor(dual_graph(every, num_relations, size), device=device)
        self.means = [mean_of(relations, ends, num_relations, size, device) for ends in (heads, tails)]
        self.adjacency = normalised_adjacency(every, size, device)

    def run(self, parameters: dict[str, torch.Tensor]) -> torch.Tensor:
        """The output vectors of all entities, (num_entities, dim)."""
        x0 = normalize(parameters["names"])
        shown = self.show_relations(x0)
        dual = self.attend_dual(shown, shown, parameters, 1)
        x1 = x0 + self.settings.alpha * self.attend_primal(x0, dual, parameters, 1)
        dual = self.attend_dual(self.show_relations(x1), dual, parameters, 2)
        x2 = x0 + self.settings.beta * self.attend_primal(x1, dual, parameters, 2)
        return self.convolve(self.convolve(x2, parameters, 1), parameters, 2)

    def show_relations(self, x: torch.Tensor) -> torch.Tensor:
        """c: the mean vectors of the heads and of the tails of every relation, (num_relations, 2 dim)."""
        return torch.cat([means @ x for means in self.means], dim=1)

    def attend_dual(
        self, shown: torch.Tensor, values: torch.Tensor, parameters: dict[str, torch.Tensor], turn: int
    ) -> torch.Tensor:
        """y: every relation as a mixture of those that are used alike, (num_relations, 2 dim)."""
        ends = shown @ parameters[f"dual{turn}.kernel"] @ parameters[f"dual{turn}.ends"]  # (num_relations, 2)
        logits = ends[:, :1] + ends[:, 1] + parameters[f"dual{turn}.bias"]
        logits = leaky_relu(self.similarity * logits, _SLOPE).masked_fill(self.similarity == 0, float("-inf"))
        return (logits.softmax(dim=1) @ values).relu()

    def attend_primal(
        self, x: torch.Tensor, dual: torch.Tensor, parameters: dict[str, torch.Tensor], turn: int
    ) -> torch.Tensor:
        """att: the tails of every entity's triples, weighed by their relations; zero where it is no head."""
        logits = leaky_relu(dual @ parameters[f"primal{turn}.kernel"] + parameters[f"primal{turn}.bias"], _SLOPE)
        weights = softmax_by_row(self.primal, logits.index_select(0, self.relations))
        return multiply(self.primal, weights, x).relu()

    def convolve(self, h: torch.Tensor, parameters: dict[str, torch.Tensor], layer: int) -> torch.Tensor:
        """One layer of graph convolution behind its highway gate."""
        convolved = ((self.adjacency @ h) * parameters[f"gcn{layer}.diagonal"]).relu()
        gate = torch.addmm(parameters[f"gate{layer}.bias"], h, parameters[f"gate{layer}.kernel"]).sigmoid()
        return torch.lerp(h, convolved, gate)


def dual_graph(triples: Ids, num_relations: int, num_entities: int) -> Floats:
    """Edge weights (num_relations, num_relations): Jaccard similarity of the heads plus that of the tails.

    A relation always has the edge of weight 2 to itself.
    """
    from scipy.sparse import csr_matrix

    result = np.zeros((num_relations, num_relations), dtype=np.float32)
    for column in (0, 2):
        members = distinct(triples[:, 1], triples[:, column], num_entities)
        ones = np.ones(len(members[0]), dtype=np.float32)
        sets = csr_matrix((ones, members), shape=(num_relations, num_entities))
        shared = (sets @ sets.T).toarray()
        sizes = shared.diagonal()
        result += shared / np.maximum(sizes[:, None] + sizes - shared, 1)
    np.fill_diagonal(result, 2)
    return result


def mean_of(
    relations: Ids, entities: Ids, num_relations: int, num_entities: int, device: Device = "cpu"
) -> SparseMatrix:
    """The matrix that takes vectors of entities to their mean over each relation's distinct `entities`."""
    rows, columns = distinct(relations, entities, num_entities)
    weights = 1 / np.bincount(rows, minlength=num_relations)[rows]
    return SparseMatrix.of(rows, columns, weights, (num_relations, num_entities), device)


def normalised_adjacency(triples: Ids, num_entities: int, device: Device = "cpu") -> SparseMatrix:
    """D^-1/2 A D^-1/2 for the graph without directions, relations and repetitions, with self-loops."""
    rows, columns = both_ways(triples[:, 0], triples[:, 2], num_entities)
    scales = 1 / np.sqrt(np.bincount(rows, minlength=num_entities))
    return SparseMatrix.of(rows, columns, scales[rows] * scales[columns], (num_entities, num_entities), device)


def train_rdgcn(pair: GraphPair, settings: RDGCNSettings | None = None, **options: Unpack[Options]) -> Embeddings:
    """Vectors of all entities of a pair, compared by Manhattan distance; `rlea.models.training.train` says the rest.

    Learns from names, triples, `pair.train` and (for stopping) `pair.valid`. The record says which name vectors were
    used.
    """
    return train(RDGCN, pair, settings or RDGCNSettings(), **options)
