"""How a scorer of pairs learns from held-out links."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numba
import numpy as np
from numpy.typing import NDArray

from rlea.agent.calibration import solve
from rlea.agent.pair_scorer import Adam, PairScorer, ScorerSettings, apply_linear, forward, gradient
from rlea.arithmetic import exp_of, log_of
from rlea.progress import tick
from rlea.search.pairs import Floats

MOST_STEPS = 30  # of Newton's method; ten are usual
TICKING = 20  # epochs between two signs of life
NEXT_TO_NOTHING = 1e-4  # probability of a pair
ENOUGH_LINKS = 500  # held-out links from which on networks find more than noise


@dataclass(frozen=True, eq=False)
class Examples:
    """Pairs of held-out entities, in groups: the pairs of one entity each, with the true one or none."""

    features: Floats  # (num_pairs, num_features)
    priorities: Floats  # (num_pairs,)
    places: NDArray[np.int64]  # (num_places,) pairs of the groups, one group after another
    starts: NDArray[np.int64]  # (num_groups + 1,)
    truths: NDArray[np.int64]  # (num_groups,) the true pair, or -1 where no match is right

    @staticmethod
    def join(parts: list[Examples]) -> Examples:
        """All examples of several games, or of several states of one."""
        shifts = np.cumsum([0] + [len(part.priorities) for part in parts[:-1]])
        starts, total = [np.zeros(1, np.int64)], 0
        for part in parts:  # one may be without a group
            starts.append(part.starts[1:] + total)
            total += int(part.starts[-1])
        return Examples(
            np.concatenate([part.features for part in parts]),
            np.concatenate([part.priorities for part in parts]),
            np.concatenate([part.places + shift for part, shift in zip(parts, shifts, strict=True)]),
            np.concatenate(starts),
            np.concatenate(
                [np.where(part.truths < 0, -1, part.truths + shift) for part, shift in zip(parts, shifts, strict=True)]
            ),
        )

    def some(self, chosen: NDArray[np.bool_]) -> Examples:
        """The chosen groups, with their pairs."""
        sizes = np.diff(self.starts)
        kept = self.places[np.repeat(chosen, sizes)]
        used, places = np.unique(kept, return_inverse=True)
        truths = self.truths[chosen]
        return Examples(
            self.features[used],
            self.priorities[used],
            places.astype(np.int64),
            np.concatenate([[0], np.cumsum(sizes[chosen])]).astype(np.int64),
            np.where(truths < 0, -1, np.searchsorted(used, np.maximum(truths, 0))),
        )


def all_and_true(parts: list[Examples]) -> tuple[Floats, Floats]:
    """The features of all pairs, and of the true ones."""
    true = [part.features[part.truths[part.truths >= 0]] for part in parts]
    return np.concatenate([part.features for part in parts]), np.concatenate(true)


def supervise(scorer: PairScorer, parts: list[Examples], *, networks: bool = True) -> list[dict[str, float]]:
    """Raise the probability of the true pair among all pairs of its source, and of its target, and no match.

    The loss of a group is log(1 + sum of exp(logit)) - logit of the true pair; without the second term where no match
    is right. Each member learns from all parts but one, and keeps the weights with the least loss on that one. With a
    single part all learn from it to the last epoch. Without `networks` the linear part alone is fitted: of few examples
    they learn noise (`ENOUGH_LINKS`). Returns the mean losses of an epoch: of the parts learned from, and
    of those left out.
    """
    settings = scorer.settings if networks else replace(scorer.settings, epochs=0)
    batches = [_Batch(scorer, part) for part in parts]
    losses: list[list[tuple[float, float]]] = []
    for member, weights in enumerate(scorer.weights):
        left_out = scorer.left_out(member)
        learned = [batch for part, batch in enumerate(batches) if part != left_out and batch.num_groups]
        asked = [batch for part, batch in enumerate(batches) if part == left_out and batch.num_groups]
        if learned:
            linear = scorer.linear[member]
            fit_linear(linear, learned, settings.prior)
            for batch in batches:
                batch.bases = batch.apply(linear)
            losses.append(_train(weights, learned, asked, settings))
    rows = []
    for epoch in range(max(map(len, losses), default=0)):
        now = np.array([curve[epoch] for curve in losses if epoch < len(curve)])
        rows.append({"epoch": epoch + 1, "loss": float(now[:, 0].mean()), "held_out_loss": float(now[:, 1].mean())})
    return rows


class _Batch:
    """Examples as the networks take them."""

    def __init__(self, scorer: PairScorer, examples: Examples) -> None:
        self.examples, self.hidden = examples, scorer.settings.hidden
        self.inputs, self.num_groups = scorer.inputs(examples.features), len(examples.truths)
        self.bases, self.logits, self.errors = (np.empty(len(examples.priorities), np.float32) for _ in range(3))

    def apply(self, linear: NDArray[np.float64]) -> Floats:
        """Logits by the linear part of a member."""
        return apply_linear(self.inputs, self.examples.priorities, linear)

    def loss(self, weights: Floats) -> float:
        """The sum over all groups; `errors` are its derivatives by the logits."""
        own = self.examples
        forward(self.inputs, self.bases, weights, self.hidden, self.logits)
        return float(_softmax_errors(self.logits, own.places, own.starts, own.truths, self.errors))

    def gradient(self, weights: Floats) -> NDArray[np.float64]:
        """That of the loss, after `loss`."""
        return gradient(self.inputs, weights, self.hidden, self.errors)


def fit_linear(linear: NDArray[np.float64], batches: list[_Batch], prior: float) -> None:
    """Fit scale, bias and slopes in place, by Newton's method: the penalised loss is convex, so there is one answer."""
    start = linear.copy()
    value = _linear_loss(linear, start, batches, prior)
    for _ in range(MOST_STEPS):
        tick("learning")
        slope, curve = prior * (linear - start), prior * np.eye(len(linear))
        for batch in batches:
            own, logits = batch.examples, batch.apply(linear)
            _add_newton(batch.inputs, own.priorities, logits, own.places, own.starts, own.truths, slope, curve)
        step, share, better = solve(curve, slope), 1.0, False
        while share > 1e-3 and not better:
            tried = linear - share * step
            now = _linear_loss(tried, start, batches, prior)
            better = now < value
            share *= 0.5
        if not better:
            return
        done = value - now < 1e-6 * value
        linear[:], value = tried, now
        if done:
            return


def _linear_loss(linear: NDArray[np.float64], start: NDArray[np.float64], batches: list[_Batch], prior: float) -> float:
    moved = linear - start
    total = 0.5 * prior * float((moved * moved).sum())
    for batch in batches:
        own = batch.examples
        total += float(_softmax_errors(batch.apply(linear), own.places, own.starts, own.truths, batch.errors))
    return total


@numba.njit(cache=True)
def _add_newton(inputs, priorities, logits, places, starts, truths, slope, curve):  # type: ignore[no-untyped-def]
    """Add first and second derivatives (lower triangle) of the loss of all groups by scale, bias and slopes.

    Pairs with next to no probability are left out of the second ones: these only say how far to step.
    """
    size = len(slope)
    row, mean, light = np.empty(size), np.empty(size), np.empty(size)
    for group in range(len(truths)):
        low, high = starts[group], starts[group + 1]
        highest = 0.0
        for place in range(low, high):
            highest = max(highest, logits[places[place]])
        weight = exp_of(-highest)
        for place in range(low, high):
            weight += exp_of(logits[places[place]] - highest)
        mean[:] = 0.0
        light[:] = 0.0
        for place in range(low, high):
            pair = places[place]
            probability = exp_of(logits[pair] - highest) / weight
            row[0], row[1] = priorities[pair], 1.0
            for k in range(2, size):
                row[k] = inputs[pair, k - 2]
            if probability < NEXT_TO_NOTHING:
                for k in range(size):
                    light[k] += probability * row[k]
                continue
            for k in range(size):
                own = probability * row[k]
                mean[k] += own
                for j in range(k + 1):
                    curve[k, j] += own * row[j]
        for k in range(size):
            slope[k] += mean[k] + light[k]
            for j in range(k + 1):
                curve[k, j] -= mean[k] * mean[j]
        pair = truths[group]
        if pair >= 0:
            slope[0] -= priorities[pair]
            slope[1] -= 1.0
            for k in range(2, size):
                slope[k] -= inputs[pair, k - 2]


def _train(
    weights: Floats, learned: list[_Batch], asked: list[_Batch], settings: ScorerSettings
) -> list[tuple[float, float]]:
    """Train one member in place; the mean losses of every epoch, learned and left out, before its step."""
    optimiser = Adam(weights, settings.rate, settings.decay)
    count, count_asked = sum(batch.num_groups for batch in learned), sum(batch.num_groups for batch in asked)
    best, kept, since = np.inf, weights.copy(), 0
    if not settings.epochs:
        loss = sum(batch.loss(weights) for batch in learned) / count
        return [(loss, sum(batch.loss(weights) for batch in asked) / count_asked if asked else loss)]
    losses = []
    for epoch in range(settings.epochs):
        if epoch % TICKING == 0:
            tick("learning")
        if asked:
            loss_asked = sum(batch.loss(weights) for batch in asked) / count_asked
            since += 1
            if loss_asked < best:
                best, since = loss_asked, 0
                kept[:] = weights
            if since >= settings.patience:
                break
        loss = sum(batch.loss(weights) for batch in learned) / count
        losses.append((loss, loss_asked if asked else loss))
        optimiser.step(np.sum([batch.gradient(weights) for batch in learned], axis=0) / count)
    if asked and sum(batch.loss(weights) for batch in asked) / count_asked >= best:
        weights[:] = kept
    return losses


@numba.njit(cache=True)
def _softmax_errors(logits, places, starts, truths, errors):  # type: ignore[no-untyped-def]
    """The sum of the losses of all groups, and its derivatives by the logits, into `errors`."""
    total, sums = 0.0, np.zeros(len(logits))
    for group in range(len(truths)):
        low, high = starts[group], starts[group + 1]
        highest = 0.0  # that of no match
        for place in range(low, high):
            highest = max(highest, logits[places[place]])
        weight = exp_of(-highest)
        for place in range(low, high):
            weight += exp_of(logits[places[place]] - highest)
        total += highest + log_of(weight)
        for place in range(low, high):
            sums[places[place]] += exp_of(logits[places[place]] - highest) / weight
        if truths[group] >= 0:
            total -= logits[truths[group]]
            sums[truths[group]] -= 1.0
    for pair in range(len(logits)):
        errors[pair] = sums[pair]
    return total
