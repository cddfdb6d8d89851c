"""AliNet (Sun et al., 2020): neighbours near and distant, joined by a gate.

Both graphs lie in one table of entities, and all weights serve both. From the input h of a layer (the first layer's is
learned, a vector per entity), with N(i) the direct neighbours of entity i and itself, and with A_ij = 1/sqrt(|N(i)|
|N(j)|) for j in N(i), direct neighbours are summed up by a convolution,

    near = tanh(A h W_near + b_near),

and those two steps away, M(i), which includes i, by attention,

    c_ij = LeakyReLU(tanh(h_i C_own h_i) + tanh(h_j C_other h_j)) for j in M(i),
    far_i = tanh(sum over j in M(i) of softmax_j(c_ij) h_j W_far).

A gate takes from either what is of use, and that is the layer's output:

    g = sigmoid(far W_gate + b_gate),    output = g * near + (1 - g) * far.

As in the published program the last layer is a convolution alone. An entity's vector joins the input and the outputs
of all layers, each at unit length, so that no layer outweighs another. With d the squared distance of two vectors
brought to unit length the loss is

    sum over seeds of d + negative_weight * sum over negatives of max(0, margin - d)
    + relation_weight * sum over triples (h, r, t) of |v_h - v_t - r|^2,    r = mean of v_h - v_t over r's triples,

where a negative is a seed with one end replaced by an entity near the end that stays, and where a few triples are drawn
anew for every relation and epoch. The seeds also lend edges: where two seeds are neighbours in one graph and their
counterparts are not in the other, they become so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import embedding, leaky_relu, normalize

from rlea.graph import GraphPair, Ids
from rlea.models.edges import Edges, both_ways, multiply, of_columns, of_rows
from rlea.models.torch_optimisers import AdamModel, as_array, descend, to_device
from rlea.models.training import Arrays, Device, Floats, Options, Schedule, train
from rlea.models.triples import join_triples
from rlea.search.embeddings import Embeddings


@dataclass(frozen=True)
class AliNetSettings(Schedule):
    """Settings of AliNet; the defaults are the published ones unless the comment says otherwise."""

    title: ClassVar[str] = "AliNet"
    may_be_zero: ClassVar[tuple[str, ...]] = (
        *("margin", "negative_weight", "relation_weight", "skipped_patterns", "gate_start"),
    )
    input_dim: int = 500
    hidden_dim: int = 400  # of the gated layer
    output_dim: int = 300  # of the last layer
    learning_rate: float = 0.001  # Adam
    batch_size: int = 3000  # seeds; every step passes over both graphs
    margin: float = 1.5
    negative_weight: float = 0.1
    num_negatives: int = 10  # per seed and end
    # Published: 2 % of the graph, which these are at 15K. A fixed number keeps the search from growing with the square.
    num_neighbours: int = 300
    refresh_every: int = 10  # epochs between two searches for neighbours
    # Our own: where the gate's bias starts. From 4 on a layer first listens to direct neighbours, and learns who of the
    # distant helps. From 0, half of an entity's vector is its own noise: most have no distant neighbour but themselves.
    # (Validation Hits@1 on EN_DE_15K_V1 after 40 epochs of a network of 160, 120, 100: .378 from 0, .520 from 2, .533
    # from 4. The published program's gate, a rectified tanh, starts just as closed to them.)
    gate_start: float = 4.0
    relation_weight: float = 0.01
    relation_triples: int = 3000  # drawn per step, the same number for every relation, at least two
    # Pairs of relations that most two-step paths of a graph have are hubs' and tell nothing: so many are left out.
    skipped_patterns: int = 5
    max_paths: int = 2_000_000  # our own: of more two-step paths in a graph only so many are looked at
    max_epochs: int = 2000
    valid_from: int = 10
    valid_every: int = 10
    # Published: two that fall. Small networks on EN_DE and D_W (15K, V1) still rose at epochs 40 and 60 when they were
    # stopped, by less from one validation to the next than scores waver.
    patience: int = 10
    epochs_without_valid: int = 200  # our own guess, for pairs without validation links


class AliNet(AdamModel):
    """AliNet in training: the network, seeds and their negatives, triples by relation."""

    version = 2
    fused = None
    settings: AliNetSettings

    def __init__(self, pair: GraphPair, settings: AliNetSettings, seed: int, device: Device) -> None:
        super().__init__(pair, settings, seed, device)
        triples = join_triples(pair, swap=False)
        every = np.concatenate(
            [triples.source, triples.target, lent_triples(triples.source, triples.target, self.seeds)]
        )
        shape = (self.num_entities, self.num_entities)
        rows, columns = both_ways(every[:, 0], every[:, 2], self.num_entities)
        near, _ = Edges.of(rows, columns, shape, device)
        distant = [two_steps(part, self.num_entities, settings, seed) for part in (triples.source, triples.target)]
        heads, tails = np.concatenate(distant, axis=1)
        far, _ = Edges.of(*both_ways(heads, tails, self.num_entities), shape, device)
        self.graph = Graph(near, _symmetric(near), far)
        self.relations = TriplesByRelation.of(every, settings.relation_triples)

    def start(self, epoch: int, saved: Arrays) -> None:
        self.neighbours: Ids | None = saved.get("neighbours")  # (2, num_seeds, num_neighbours)
        super().start(epoch, saved)

    def initial_parameters(self) -> Arrays:
        return initial_parameters(self.num_entities, self.settings, self.seed)

    def run_epoch(self, epoch: int) -> float:
        """Every seed once; the loss per seed."""
        settings = self.settings
        if self.is_refreshed_before(epoch):
            self.neighbours = self._find_neighbours()
        random = np.random.default_rng([self.seed, epoch])
        order = random.permutation(len(self.seeds))
        negatives = self._draw(random)
        num_steps = -(-len(order) // settings.batch_size)
        total = torch.zeros((), device=self.device)
        for batch in np.array_split(order, num_steps):
            heads, tails = self.relations.draw(random)
            outputs = network(self.parameters, self.graph)
            vectors = join_layers(outputs)
            loss = alignment_loss(vectors, self._ids(self.seeds[batch]), self._ids(negatives[:, batch]), settings)
            if settings.relation_weight > 0:
                translated = relation_loss(vectors, self._ids(heads), self._ids(tails))
                loss = loss + settings.relation_weight * translated
            total += descend(self.optimiser, loss)
        return float(total) / len(order)

    def joint_vectors(self) -> Floats:
        with torch.no_grad():
            return as_array(join_layers(network(self.parameters, self.graph)))

    def arrays(self, epoch: int) -> Arrays:
        result = super().arrays(epoch)
        if self.neighbours is not None and not self.is_refreshed_before(epoch + 1):
            result["neighbours"] = self.neighbours
        return result

    def _ids(self, array: NDArray[Any]) -> torch.Tensor:
        return to_device(self.device, array)[0]

    def _find_neighbours(self) -> Ids:
        """Entities of the source graph near each seed's target end [0], and of the target graph near its source end."""
        with torch.no_grad():
            units = normalize(network(self.parameters, self.graph)[-1])
            found = []
            sides = (units[: self.num_source], 0, 1), (units[self.num_source :], self.num_source, 0)
            for candidates, shift, staying_end in sides:
                count = min(self.settings.num_neighbours, len(candidates))
                staying = units[self._ids(self.seeds[:, staying_end])]
                blocks = range(0, len(staying), 1024)
                parts = [(staying[begin : begin + 1024] @ candidates.T).topk(count).indices for begin in blocks]
                found.append((torch.cat(parts) + shift).to(torch.int32).cpu().numpy())
        width = max(ids.shape[1] for ids in found)
        return np.stack([np.resize(ids.T, (width, len(self.seeds))).T for ids in found])

    def _draw(self, random: np.random.Generator) -> Ids:
        """Entities in place of a seed's source end [0] and target end [1]: (2, num_seeds, num_negatives).

        The entity that is replaced may be drawn; `alignment_loss` leaves it out.
        """
        shape = (2, len(self.seeds), self.settings.num_negatives)
        if self.neighbours is None:
            source = random.integers(0, self.num_source, shape[1:], dtype=np.int32)
            return np.stack([source, random.integers(self.num_source, self.num_entities, shape[1:], dtype=np.int32)])
        places = random.integers(0, self.neighbours.shape[2], shape)
        return np.take_along_axis(self.neighbours, places, axis=2)


@dataclass(frozen=True, eq=False)
class Graph:
    """Who is near and who is two steps away, over the entities of both graphs; everyone is near itself."""

    near: Edges
    near_weights: torch.Tensor  # (num_near,), the matrix A
    far: Edges


def network(parameters: dict[str, torch.Tensor], graph: Graph) -> list[torch.Tensor]:
    """The input, the output of the gated layer, and that of the last: (num_entities, dim) each."""
    given = parameters["input"]
    near = convolve(given, parameters["near"], parameters["near_bias"], graph)
    far = attend(given, parameters["own"], parameters["other"], parameters["far"], graph)
    gate = (far @ parameters["gate"] + parameters["gate_bias"]).sigmoid()
    hidden = gate * near + (1 - gate) * far
    return [given, hidden, convolve(hidden, parameters["last"], parameters["last_bias"], graph)]


def convolve(given: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, graph: Graph) -> torch.Tensor:
    """Direct neighbours: tanh(A h W + b)."""
    return (multiply(graph.near, graph.near_weights, given @ weight) + bias).tanh()


def attend(
    given: torch.Tensor, own: torch.Tensor, other: torch.Tensor, weight: torch.Tensor, graph: Graph
) -> torch.Tensor:
    """Entities two steps away, weighted by attention."""
    of_own = ((given @ own) * given).sum(dim=1).tanh()  # (num_entities,)
    of_other = ((given @ other) * given).sum(dim=1).tanh()
    attention = leaky_relu(of_rows(graph.far, of_own) + of_columns(graph.far, of_other), 0.2)  # (num_far,)
    # Attention lies within 2 of zero, so the softmax needs no maximum taken off before its exponentials.
    shares = attention.exp()
    totals = multiply(graph.far, shares, given.new_ones(len(given), 1), tensor_gradient=True)  # (num_entities, 1)
    sums = multiply(graph.far, shares, given @ weight, tensor_gradient=True)
    return (sums / totals).tanh()


def join_layers(outputs: list[torch.Tensor]) -> torch.Tensor:
    """All layers side by side, each at unit length, and the whole at unit length again."""
    joined = torch.cat([normalize(output) for output in outputs], dim=1)
    return joined * float(1 / np.sqrt(len(outputs)))


def alignment_loss(
    vectors: torch.Tensor,  # (num_entities, dim) unit vectors
    seeds: torch.Tensor,  # (batch, 2)
    negatives: torch.Tensor,  # (2, batch, num_negatives) in place of the source end, then of the target end
    settings: AliNetSettings,
) -> torch.Tensor:
    """Seeds near, negatives beyond the margin; a sum. Negatives that are the replaced entity itself do not count."""
    # `embedding` gathers rows like an index, and is much faster on the way back.
    ends = embedding(seeds, vectors)  # (batch, 2, dim)
    near = (ends[:, 0] - ends[:, 1]).square().sum()
    staying = ends.flip(1).transpose(0, 1)  # (2, batch, dim)
    # Of unit vectors the squared distance is 2 - 2 cos; the products spare a table of differences.
    far = 2 - 2 * torch.einsum("sbd,sbnd->sbn", staying, embedding(negatives, vectors))
    is_false = negatives != seeds.T[:, :, None]
    too_near = ((settings.margin - far).relu() * is_false).sum()
    return near + settings.negative_weight * too_near


def relation_loss(vectors: torch.Tensor, heads: torch.Tensor, tails: torch.Tensor) -> torch.Tensor:
    """Ids (num_relations, draws), a row of triples for each relation: how far they are from one translation."""
    differences = embedding(heads, vectors) - embedding(tails, vectors)  # (num_relations, draws, dim)
    spread: torch.Tensor = (differences - differences.mean(dim=1, keepdim=True)).square().sum()
    return spread


@dataclass(frozen=True, eq=False)
class TriplesByRelation:
    """Triples sorted by relation, to draw the same number of each."""

    heads: Ids
    tails: Ids
    starts: NDArray[np.int64]  # (num_relations,) of those that have triples
    counts: NDArray[np.int64]
    num_draws: int  # per relation

    @staticmethod
    def of(triples: Ids, num_triples: int) -> TriplesByRelation:
        ordered = triples[np.argsort(triples[:, 1], kind="stable")]
        _, starts, counts = np.unique(ordered[:, 1], return_index=True, return_counts=True)
        return TriplesByRelation(ordered[:, 0], ordered[:, 2], starts, counts, max(2, num_triples // len(starts)))

    def draw(self, random: np.random.Generator) -> tuple[Ids, Ids]:
        """Heads and tails (num_relations, num_draws); a triple may be drawn twice."""
        places = random.integers(0, self.counts[:, None], (len(self.starts), self.num_draws)) + self.starts[:, None]
        return self.heads[places], self.tails[places]


def lent_triples(source: Ids, target: Ids, seeds: Ids) -> Ids:
    """Triples between seeds, told of their counterparts where these have no triple in that direction yet."""
    count = int(max(source[:, [0, 2]].max(), target[:, [0, 2]].max(), seeds.max())) + 1
    lent = []
    for triples, others, (own, other) in ((source, target, (0, 1)), (target, source, (1, 0))):
        counterpart = np.full(count, -1, dtype=np.int32)
        counterpart[seeds[:, own]] = seeds[:, other]
        copies = np.stack([counterpart[triples[:, 0]], triples[:, 1], counterpart[triples[:, 2]]], axis=1)
        copies = copies[(copies[:, 0] >= 0) & (copies[:, 2] >= 0)]
        known = others[:, 0].astype(np.int64) * count + others[:, 2]
        lent.append(copies[~np.isin(copies[:, 0].astype(np.int64) * count + copies[:, 2], known)])
    return np.concatenate(lent)


def two_steps(triples: Ids, num_entities: int, settings: AliNetSettings, seed: int) -> NDArray[np.int64]:
    """Heads and tails (2, n) of the paths (h, r, x), (x, s, t) that make h and t distant neighbours.

    Left out are paths between direct neighbours, paths back to h, and the most frequent patterns (r, s).
    """
    heads, relations, tails = triples.astype(np.int64).T
    order = np.argsort(heads, kind="stable")
    first = np.searchsorted(heads[order], tails, side="left")
    counts = np.searchsorted(heads[order], tails, side="right") - first
    # Path p is triple before[p], then triple after[p]; `first[i] + 0, 1, ...` are the triples that go on from triple i.
    ends = np.cumsum(counts)
    chosen = draw_distinct(np.random.default_rng([seed, 0, 1]), int(counts.sum()), settings.max_paths)
    before = np.searchsorted(ends, chosen, side="right")
    after = order[first[before] + chosen - (ends - counts)[before]]
    keys = heads[before] * num_entities + tails[after]
    direct = np.concatenate([heads * num_entities + tails, tails * num_entities + heads])
    kept = ~np.isin(keys, direct) & (heads[before] != tails[after])
    before, after, keys = before[kept], after[kept], keys[kept]
    patterns = relations[before] * (relations.max() + 1) + relations[after]
    # A pattern counts once for a pair of entities, however many paths of it join them.
    distinct = np.unique(np.stack([patterns, keys]), axis=1)[0]
    names, frequencies = np.unique(distinct, return_counts=True)
    skipped = names[np.argsort(-frequencies, kind="stable")[: settings.skipped_patterns]]
    return np.stack(np.divmod(np.unique(keys[~np.isin(patterns, skipped)]), num_entities))


def draw_distinct(random: np.random.Generator, total: int, most: int) -> NDArray[np.int64]:
    """`most` of the numbers below `total`, each once and in order; all of them where there are no more than that.

    They are those of `random.choice(total, most, replace=False)`, which would hold an array of all numbers if it is to
    draw more than one in 50. A large graph with hubs can have many more paths than are looked at.
    """
    if total <= most:
        return np.arange(total)
    if total <= 10_000 or most <= total // 50:
        return np.sort(random.choice(total, most, replace=False))
    # A shuffle from the back: the number at each of the last places in turn changes places with one up to there.
    border = total - most
    places = np.arange(total - 1, border - 1, -1)
    partners = random.integers(0, places, endpoint=True)
    held = np.arange(border, total)  # at the last places, each as it is when its turn comes
    is_before = partners < border
    for place, partner in zip(places[~is_before].tolist(), partners[~is_before].tolist(), strict=True):
        held[partner - border] = held[place - border]
    # A place before the border gave its own number, and keeps the one that it got last: that one is not drawn.
    drawn, last = np.unique(partners[is_before][::-1], return_index=True)
    given_away = held[places[is_before][::-1][last] - border]
    return np.concatenate([drawn, np.setdiff1d(np.arange(border, total), given_away)])


def initial_parameters(num_entities: int, settings: AliNetSettings, seed: int) -> Arrays:
    """Matrices with uniform numbers within sqrt(6 / (rows + columns)), and biases of zero but for the gate's."""
    given, hidden, output = settings.input_dim, settings.hidden_dim, settings.output_dim
    shapes = {
        "input": (num_entities, given),
        "near": (given, hidden),
        "own": (given, given),
        "other": (given, given),
        "far": (given, hidden),
        "gate": (hidden, hidden),
        "last": (hidden, output),
    }
    random = np.random.default_rng([seed, 0])
    result: Arrays = {}
    for name, shape in shapes.items():
        bound = np.sqrt(6 / sum(shape))
        result[name] = random.uniform(-bound, bound, shape).astype(np.float32)
    for name, size in (("near_bias", hidden), ("gate_bias", hidden), ("last_bias", output)):
        result[name] = np.full(size, settings.gate_start if name == "gate_bias" else 0.0, dtype=np.float32)
    return result


def _symmetric(edges: Edges) -> torch.Tensor:
    """1 / sqrt(|N(i)| |N(j)|) for every edge between i and j."""
    scales = edges.row_starts.diff().float().rsqrt()
    return scales[edges.rows] * scales[edges.columns]


def train_alinet(pair: GraphPair, settings: AliNetSettings | None = None, **options: Unpack[Options]) -> Embeddings:
    """Vectors of all entities of a pair, compared by cosine; `rlea.models.training.train` says the rest.

    Learns from the triples, `pair.train` and (for stopping) `pair.valid`. Made for a GPU; a processor needs seconds for
    an epoch.
    """
    return train(AliNet, pair, settings or AliNetSettings(), **options)
