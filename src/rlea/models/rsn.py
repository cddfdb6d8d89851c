"""RSN (Guo, Sun and Hu, 2019: RSN4EA): a recurrent network reads long walks over both graphs and skips.

A walk e_1, r_1, e_2, r_2, ... is a sequence x_1, x_2, ... of entities and relations in turn; how walks cross from one
graph to the other is said in `rlea.models.walks`. The network reads x_1 to x_t, normalised over the batch, and
foretells x_{t+1}. Its outputs h_t come from two layers of long short-term memory, and where x_t is a relation
the entity before it has a way around them:

    h'_t = h_t                        at an entity,
    h'_t = S1 h_t + S2 x_{t-1}        at a relation, whose subject x_{t-1} bears on the object x_{t+1} directly.

With y = x_{t+1}, and h'_t normalised over the batch, the loss of a step is that of noise-contrastive estimation,

    log(1 + exp(-s(y))) + sum over sampled z of log(1 + exp(s(z))),     s(z) = w_z . h'_t + b_z - log chance(z),

with a table w, b and samples of its own for entities and for relations. The same entity in both graphs stands in
like walks, and so comes to have like vectors x, compared by cosine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import embedding, softplus

from rlea.graph import GraphPair
from rlea.models.torch_optimisers import AdamModel, as_array
from rlea.models.training import Arrays, Device, Floats, Options, Schedule, train
from rlea.models.triples import join_triples
from rlea.models.walks import JointGraph, draw_walks
from rlea.search.embeddings import Embeddings

_LAYERS = 2
# Predictions scored at a time on the CPU, so that their scores of all negatives stay in the cache.
_ROWS = 128


@dataclass(frozen=True)
class RSNSettings(Schedule):
    """Settings of RSN; the defaults are the published ones unless the comment says otherwise."""

    title: ClassVar[str] = "RSN"
    at_most_one: ClassVar[tuple[str, ...]] = ("keep",)
    dim: int = 100  # of the vectors and of the network's state
    walk_length: int = 15  # entities and relations: eight entities, seven relations
    walks_per_triple: int = 2  # walks that begin with it, in either direction and with every swap of a seed
    depth_bias: float = 0.7
    cross_bias: float = 0.7
    keep: float = 0.6  # share of each layer's outputs that dropout leaves
    # Entities sampled for the loss of a batch, shared by all its predictions; of a small vocabulary a third, as in the
    # released program. Most of the time goes here: without a GPU a tenth of it is worth a thought.
    num_samples: int = 10_240
    learning_rate: float = 0.0005  # Adam
    clip: float = 2.0  # greatest norm of a gradient, from the released program
    max_epochs: int = 30
    batch_size: int = 512  # walks
    valid_from: int = 3
    valid_every: int = 3
    # Published: two that fall. Ten is all there are in 30 epochs: the scores waver by more than they rise, and stopped
    # after three D_Y_15K_V1 ended under the published figure.
    patience: int = 10
    epochs_without_valid: int = 30  # our own, for pairs without validation links

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.batch_size < 2:
            raise self.refused("batch_size", "two walks or more")
        if self.walk_length < 3 or self.walk_length % 2 == 0:
            raise self.refused("walk_length", "an odd number from 3: a walk begins and ends with an entity")
        for name in ("depth_bias", "cross_bias"):
            if getattr(self, name) >= 1:
                raise self.refused(name, "below one")


class RSN(AdamModel):
    """RSN in training: walks drawn once, the network, and Adam's moments."""

    version = 1
    settings: RSNSettings

    def __init__(self, pair: GraphPair, settings: RSNSettings, seed: int, device: Device) -> None:
        super().__init__(pair, settings, seed, device)
        graph = JointGraph.of(join_triples(pair, swap=False), pair.train)
        self.walks = torch.as_tensor(draw_walks(graph, settings, seed), device=device)
        self.sizes = graph.num_entities, 2 * graph.num_relations  # of the vocabularies
        self.samplers = {}
        for kind, column, size in zip(("entity", "relation"), (0, 1), self.sizes, strict=True):
            occurrences = np.bincount(graph.triples[:, column], minlength=size)
            num_samples = max(1, min(settings.num_samples, size // 3))
            self.samplers[kind] = NoiseSampler.of(occurrences, num_samples, device)

    def initial_parameters(self) -> Arrays:
        return initial_parameters(*self.sizes, self.settings.dim, seed=self.seed)

    def run_epoch(self, epoch: int) -> float:
        """One pass over all walks but those left over by the last whole batch; the loss per walk."""
        batch = min(self.settings.batch_size, len(self.walks))
        order = np.random.default_rng([self.seed, epoch]).permutation(len(self.walks))
        order = order[: len(order) // batch * batch].reshape(-1, batch)
        batches = torch.as_tensor(order, device=self.device)
        generator = torch.Generator(self.device)
        generator.manual_seed(int(np.random.SeedSequence([self.seed, epoch]).generate_state(1, np.uint64)[0] >> 1))
        loss = torch.zeros((), device=self.device)  # left there until the end: to look at it would be to wait for it
        for rows in batches:
            loss += self._step(self.walks[rows].long(), generator)
        return float(loss) / len(batches)

    def _step(self, walks: Tensor, generator: torch.Generator) -> Tensor:
        settings = self.settings
        batch, length = walks.shape
        shape = (_LAYERS, length - 1, batch, settings.dim)
        kept = torch.empty(shape, device=self.device).bernoulli_(settings.keep, generator=generator) / settings.keep
        noise = {kind: sampler.draw(generator) for kind, sampler in self.samplers.items()}
        loss = walk_loss(self.parameters, walks, kept, noise, self.samplers)
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(list(self.parameters.values()), settings.clip)
        self.optimiser.step()
        return loss.detach()

    def joint_vectors(self) -> Floats:
        return as_array(self.parameters["entities"]).copy()


def walk_loss(
    parameters: Mapping[str, Tensor],
    walks: Tensor,  # (batch, length) entities and relations in turn
    kept: Tensor,  # (layers, length - 1, batch, dim) what dropout leaves of outputs, as factors
    noise: Mapping[str, Tensor],  # sampled entities and relations
    samplers: Mapping[str, NoiseSampler],
) -> Tensor:
    """Loss per walk, a sum over the steps of the walk."""
    outputs = predictions(parameters, walks, kept)  # (batch, length - 1, dim)
    dim = outputs.shape[2]
    loss = outputs.new_zeros(())
    for kind, first in (("relation", 0), ("entity", 1)):  # a relation follows an entity, and the other way round
        loss = loss + noise_loss(
            outputs[:, first::2].reshape(-1, dim),
            walks[:, first + 1 :: 2].reshape(-1),
            parameters[f"{kind}_weights"],
            parameters[f"{kind}_biases"],
            noise[kind],
            samplers[kind].log_chances,
        )
    return loss / len(walks)


def predictions(parameters: Mapping[str, Tensor], walks: Tensor, kept: Tensor) -> Tensor:
    """The network's outputs h' at all elements of the walks but the last, normalised: (batch, length - 1, dim)."""
    entities = embedding(walks[:, :-1:2], parameters["entities"])  # (batch, length // 2, dim)
    relations = embedding(walks[:, 1::2], parameters["relations"])
    inputs = normalise(
        torch.stack([entities, relations], dim=2).flatten(1, 2), parameters["input_scale"], parameters["input_shift"]
    )
    hidden = inputs.transpose(0, 1).contiguous()  # (length - 1, batch, dim)
    for layer in range(_LAYERS):
        own = (parameters[f"lstm{layer}_{part}"] for part in ("w", "u", "b"))
        hidden = LinearLSTM.apply(hidden, *own) * kept[layer]  # type: ignore[no-untyped-call]
    hidden = hidden.transpose(0, 1)
    skipping = hidden[:, 1::2] @ parameters["s1"] + inputs[:, ::2] @ parameters["s2"]
    outputs = torch.stack([hidden[:, ::2], skipping], dim=2).flatten(1, 2)
    return normalise(outputs, parameters["output_scale"], parameters["output_shift"])


def noise_loss(
    outputs: Tensor,  # (n, dim)
    true: Tensor,  # (n,) the id that comes next
    weights: Tensor,  # (num_ids, dim)
    biases: Tensor,  # (num_ids, 1)
    noise: Tensor,  # (num_samples,) sampled ids
    log_chances: Tensor,  # (num_ids,) of being sampled
) -> Tensor:
    """The noise-contrastive loss, a sum over the predictions.

    A sampled id that happens to be the true one stays, as in the estimation's theory: noise may be true.
    """
    ids = torch.cat([true, noise])
    looked_up, offsets = embedding(ids, weights), embedding(ids, biases)[:, 0] - log_chances[ids]
    cut = len(true)
    true_scores = (outputs * looked_up[:cut]).sum(dim=1) + offsets[:cut]
    loss: Tensor = softplus(-true_scores).sum() + NoiseScores.apply(outputs, looked_up[cut:], offsets[cut:])  # type: ignore[no-untyped-call]
    return loss


def initial_parameters(num_entities: int, num_relations: int, dim: int, *, seed: int) -> dict[str, Floats]:
    """Tables and matrices as the released program fills them, but for the biases of predictions.

    Those begin where an id is as likely as any other, not at zero, where it is as likely to come next as not: the first
    thousand steps would go into unlearning that. `num_relations` counts the reverses too.
    """
    random = np.random.default_rng([seed, 0])

    def table(num_rows: int) -> NDArray[Any]:
        values = random.standard_normal((num_rows, dim))
        while (far := np.abs(values) > 2).any():
            values[far] = random.standard_normal(int(far.sum()))
        values *= np.sqrt(2.6 / (num_rows + dim))  # the width keeps the variance of 2 / (num_rows + dim)
        return values

    result: dict[str, NDArray[Any]] = {}
    for kind, tables, size in (("entity", "entities", num_entities), ("relation", "relations", num_relations)):
        result[tables], result[f"{kind}_weights"] = table(size), table(size)
        result[f"{kind}_biases"] = np.full((size, 1), -np.log(size))
    for skip in ("s1", "s2"):
        result[skip] = random.uniform(-1, 1, (dim, dim)) * np.sqrt(3 / dim)
    for place in ("input", "output"):
        result[f"{place}_scale"], result[f"{place}_shift"] = np.ones(dim), np.zeros(dim)
    for layer in range(_LAYERS):
        rows = np.linalg.qr(random.standard_normal((4 * dim, 2 * dim)))[0].T  # orthonormal
        result[f"lstm{layer}_w"], result[f"lstm{layer}_u"] = np.split(rows, 2)
        result[f"lstm{layer}_b"] = np.repeat([0.0, 0.0, 1.0, 0.0], dim)  # the forget gate, third of o, i, f, g, open
    return {name: value.astype(np.float32) for name, value in result.items()}


# ---- what torch does not have, its gradient written out --------------------------------------------------------------
# It needs a few calls per step of a walk, so that a GPU need not wait for them, and no second copy of the largest
# tensor, a score per prediction and sampled negative. Tests hold the gradients to automatic ones.


@dataclass(frozen=True, eq=False)
class NoiseSampler:
    """Ids drawn without replacement, those that occur more often with a higher chance.

    The id of rank k by occurrence (from 0) has the log-uniform probability p = log((k + 2) / (k + 1)) / log(n + 1) of
    being the next draw, as in TensorFlow's sampler. Draws go on until there are `num_samples` ids, which is the same
    as to let every id wait for an exponential time of rate p and to take the first; up to a time t that the mean
    number of ids settles, one is among them with probability 1 - exp(-t p).
    """

    rates: Tensor  # (num_ids,) p
    log_chances: Tensor  # (num_ids,) logarithm of the probability of being drawn
    num_samples: int

    @staticmethod
    def of(occurrences: NDArray[np.int64], num_samples: int, device: str) -> NoiseSampler:
        num_ids = len(occurrences)
        ranks = np.empty(num_ids)
        ranks[np.argsort(-occurrences, kind="stable")] = np.arange(num_ids)
        rates = np.log1p(1 / (ranks + 1)) / np.log(num_ids + 1)
        low, high = 0.0, 1.0
        while -np.expm1(-rates * high).sum() < min(num_samples, num_ids - 0.5):
            high *= 2
        for _ in range(100):
            time = (low + high) / 2
            low, high = (time, high) if -np.expm1(-rates * time).sum() < num_samples else (low, time)
        chances = np.log(-np.expm1(-rates * high))
        return NoiseSampler(
            torch.tensor(rates, dtype=torch.float32, device=device),
            torch.tensor(chances, dtype=torch.float32, device=device),
            num_samples,
        )

    def draw(self, generator: torch.Generator) -> Tensor:
        """Ids (num_samples,), sorted by nothing in particular."""
        waits = torch.empty_like(self.rates).exponential_(generator=generator) / self.rates
        return waits.topk(self.num_samples, largest=False, sorted=False).indices


class NoiseScores(torch.autograd.Function):
    """sum over rows and negatives of log(1 + exp(s)), s = rows (n, dim) . weights (m, dim) + offsets (m)."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, weights: Tensor, offsets: Tensor) -> Tensor:
        total = rows.new_zeros(())
        towards_rows, towards_weights = torch.empty_like(rows), torch.zeros_like(weights)
        towards_offsets = torch.zeros_like(offsets)
        size = _ROWS if rows.device.type == "cpu" else max(1, len(rows))
        for begin in range(0, len(rows), size):
            part = slice(begin, begin + size)
            scores = torch.addmm(offsets, rows[part], weights.T)
            total += torch.nn.functional.softplus(scores).sum()
            slopes = scores.sigmoid_()
            torch.mm(slopes, weights, out=towards_rows[part])
            towards_weights.addmm_(slopes.T, rows[part])
            towards_offsets += slopes.sum(dim=0)
        ctx.save_for_backward(towards_rows, towards_weights, towards_offsets)
        return total

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, ...]:
        return tuple(gradient * towards for towards in ctx.saved_tensors)


class LinearLSTM(torch.autograd.Function):
    """A layer of long short-term memory without the usual tanh: gates are sigmoids, memory and output are linear.

        o, i, f = sigmoid of, g = as they are: x_t W + h_{t-1} U + b     (blocks of dim columns, in this order)
        c_t = f c_{t-1} + i g,     h_t = o c_t

    Inputs (steps, batch, dim), W and U (dim, 4 dim), b (4 dim); the result is h (steps, batch, dim).
    """

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, w: Tensor, u: Tensor, b: Tensor) -> Tensor:
        steps, batch, dim = inputs.shape
        gates = torch.addmm(b, inputs.reshape(-1, dim), w).view(steps, batch, 4 * dim)
        cells = inputs.new_zeros(steps + 1, batch, dim)  # cells[t + 1] is c_t
        hidden = inputs.new_zeros(steps + 1, batch, dim)
        # All views at once: made one by one in the loop they would take longer than the sums.
        o, i, f, g = (gate.unbind() for gate in gates.view(steps, batch, 4, dim).unbind(2))
        whole, squashed, c, h = gates.unbind(), gates[:, :, : 3 * dim].unbind(), cells.unbind(), hidden.unbind()
        for t in range(steps):
            if t > 0:
                whole[t].addmm_(h[t], u)
            squashed[t].sigmoid_()
            torch.mul(i[t], g[t], out=c[t + 1])
            c[t + 1].addcmul_(f[t], c[t])
            torch.mul(o[t], c[t + 1], out=h[t + 1])
        ctx.save_for_backward(inputs, w, u, gates, cells, hidden)
        return hidden[1:].clone()

    @staticmethod
    def backward(ctx: Any, towards_hidden: Tensor) -> tuple[Tensor, ...]:
        inputs, w, u, gates, cells, hidden = ctx.saved_tensors
        steps, batch, dim = inputs.shape
        o, i, f, g = gates.view(steps, batch, 4, dim).unbind(2)
        # How the output moves with o before its sigmoid, and the memory with i, f, g before theirs: all at once.
        slopes = torch.stack([cells[1:] * o * (1 - o), g * i * (1 - i), cells[:-1] * f * (1 - f), i], dim=2)
        before = torch.empty_like(slopes)  # (steps, batch, 4, dim) gradients of the gates before their sigmoids
        steps_of = [
            part.unbind() for part in (o, f, slopes[:, :, 0], slopes[:, :, 1:], before[:, :, 0], before[:, :, 1:])
        ]
        open_output, kept_cell, output_slopes, cell_slopes, before_output, before_cell = steps_of
        whole, arriving, back = before.view(steps, batch, 4 * dim).unbind(), towards_hidden.unbind(), u.T
        towards_cell = torch.zeros_like(cells[0])
        spread = towards_cell[:, None]
        for t in reversed(range(steps)):
            of_output = arriving[t] if t == steps - 1 else torch.addmm(arriving[t], whole[t + 1], back)
            towards_cell.addcmul_(of_output, open_output[t])
            torch.mul(of_output, output_slopes[t], out=before_output[t])
            torch.mul(spread, cell_slopes[t], out=before_cell[t])
            towards_cell *= kept_cell[t]
        flat = before.view(steps * batch, 4 * dim)
        towards_u = hidden[1:-1].reshape(-1, dim).T @ flat[batch:]
        return (flat @ w.T).view_as(inputs), inputs.reshape(-1, dim).T @ flat, towards_u, flat.sum(dim=0)


def normalise(inputs: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """Batch normalisation (batch, steps, dim): each step by its own mean and deviation, `scale` and `shift` for all."""
    batch, steps, _ = inputs.shape
    flat = torch.nn.functional.batch_norm(
        inputs.reshape(batch, -1), None, None, scale.repeat(steps), shift.repeat(steps), training=True, eps=1e-3
    )
    return flat.view_as(inputs)


def train_rsn(pair: GraphPair, settings: RSNSettings | None = None, **options: Unpack[Options]) -> Embeddings:
    """Vectors of all entities of a pair, compared by cosine; `rlea.models.training.train` says the rest.

    Learns from the triples, `pair.train` and (for stopping) `pair.valid`. The same seed on the same machine, with the
    same number of threads, gives the same bytes. Made for a GPU: on two cores an epoch of a 15K pair takes many
    minutes.
    """
    return train(RSN, pair, settings or RSNSettings(), **options)
