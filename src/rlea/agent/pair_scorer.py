"""How likely a pair is right, as a logit: a linear model, and with enough to learn from, small networks on top.

    logit(s, t) = scale * (priority(s, t) - offset) + slopes . features(s, t) + correction(features(s, t))

The priority orders pairs well already, and training starts from it. First scale, offset and slopes are fitted: a
convex problem with a unique solution. With `bends` the slope of a feature may change at as many values, quantiles of
the true pairs; the problem stays convex. Then `correction`, a network with two hidden layers that begins at zero,
learns what that gets wrong. The softmax over an entity's pairs, and no match with logit 0, is the probability of each.

The logits of several members are averaged: a single network depends on the random seed. Each is trained
without one part of the examples. `logits(..., unseen=part)` asks the members that have not learned from that part; it
only said when their networks stopped, and all parts together gave the scales of the features. A second call of training
goes on from the first: what was learned is the centre of the prior, and networks keep their weights.

The arithmetic is our own, in compiled loops with sums in a fixed order: a matrix library sums in the order that suits
the processor, and training turns a last bit into another decision. Loops run over the hidden units, which lie side by
side, so that they use vector instructions without changing the order of any sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from rlea.search.pairs import Floats

ROWS_AT_A_TIME = 1 << 17  # pairs whose features are scaled at once: those of all would be a second copy
BLOCK = 512  # rows whose gradients are summed together, by one thread; sums of blocks are added in their order
EIGHT = 8  # rows, inputs and hidden units come in multiples of it


@dataclass(frozen=True)
class ScorerSettings:
    """The networks, and how they are trained."""

    hidden: int = 32  # units of each of the two layers
    members: int = 5  # networks for every part of the examples that is left out, at the most
    most_rows: int = 60_000  # pairs that the members of a part learn from together: of many examples one is steady
    rate: float = 3e-3  # Adam's
    decay: float = 1e-4
    epochs: int = 100  # of the networks, at the most, over all examples at once; 0: there is no network
    bends: int = 0  # values of every feature at which its slope may change
    patience: int = 10  # epochs without a better loss on the part that is left out, before training stops
    scale: float = 1.0  # of the priority, before training
    offset: float = 0.0  # priority whose logit is 0, before training
    prior: float = 10.0  # weight of the squares of the slopes, and of what scale and bias moved, beside a sum of losses

    def __post_init__(self) -> None:
        if self.hidden < EIGHT or self.hidden % EIGHT or self.members < 1:
            raise ValueError(f"needs a multiple of {EIGHT} hidden units, and one member or more")


class PairScorer:
    """Logits of pairs from their features and priorities.

    `linear` has a row a member: scale, bias (minus scale times offset), slopes. `weights` likewise: bias of the last
    layer, then the layers from the last to the first.
    """

    def __init__(self, width: int, settings: ScorerSettings, seed: int = 0, *, parts: int = 1, rows: int = 0) -> None:
        """Untrained, for so many rows of examples in parts."""
        self.width, self.settings, self.parts = width, settings, parts
        self.mean, self.spread = np.zeros(width, np.float32), np.ones(width, np.float32)
        self.knots, self.knot_mean = (np.zeros((settings.bends, width), np.float32) for _ in range(2))
        self.knot_spread = np.ones((settings.bends, width), np.float32)
        num_members = parts * max(1, min(settings.members, settings.most_rows // max(rows, 1)))
        self.linear = np.zeros((num_members, 2 + self._padded))
        self.linear[:, 0], self.linear[:, 1] = settings.scale, -settings.scale * settings.offset
        self.weights = np.zeros((num_members, self._first + self._padded * settings.hidden), np.float32)
        for member, row in enumerate(self.weights):
            self._draw(row, np.random.default_rng([seed, 17, member]))

    @property
    def _padded(self) -> int:
        return -(-self.width * (1 + self.settings.bends) // EIGHT) * EIGHT

    @property
    def _first(self) -> int:
        """Where the weights of the first layer begin in a row."""
        hidden = self.settings.hidden
        return 1 + 3 * hidden + hidden * hidden

    def _draw(self, row: Floats, random: np.random.Generator) -> None:
        """First weights, uniform within 1 / sqrt(inputs); the last layer stays at zero."""
        hidden = self.settings.hidden
        width = self.width * (1 + self.settings.bends)
        layers = ((1 + hidden, hidden + hidden * hidden, hidden), (1 + 2 * hidden + hidden**2, hidden, width))
        for start, count, inputs in layers:
            row[start : start + count] = (2 * random.random(count) - 1) / np.sqrt(max(inputs, 1))
        first = random.random(width * hidden)
        row[self._first : self._first + len(first)] = (2 * first - 1) / np.sqrt(max(width, 1))

    def measure(self, features: Floats, true_features: Floats) -> None:
        """Take scales, and the values at which slopes change, from the features that training meets.

        `true_features` are those of the true pairs: decisions are made where these lie.
        """
        self.mean, self.spread = (values[0] for values in _scale_of(features[None]))
        bends = self.settings.bends
        if bends and len(true_features):
            shares = np.arange(1, bends + 1) / (bends + 1)
            self.knots = np.quantile(true_features, shares, axis=0).astype(np.float32)
            self.knot_mean, self.knot_spread = _scale_of(np.maximum(features - self.knots[:, None], 0))

    def inputs(self, features: Floats) -> Floats:
        """Features on one scale, and what each is above its knots, padded: (num_pairs, a multiple of eight)."""
        result = np.zeros((len(features), self._padded), np.float32)
        result[:, : self.width] = (features - self.mean) / self.spread
        for number, (knots, mean, spread) in enumerate(
            zip(self.knots, self.knot_mean, self.knot_spread, strict=True), start=1
        ):
            above = (np.maximum(features - knots, 0) - mean) / spread
            result[:, number * self.width : (number + 1) * self.width] = above
        return result

    def left_out(self, member: int) -> int:
        """The part of the examples that a member is trained without; -1 where there is but one part."""
        return member % self.parts if self.parts > 1 else -1

    def logits(self, features: Floats, priorities: Floats, unseen: int | None = None) -> Floats:
        """(num_pairs,) the mean of all members, or of those that have not seen this part of the examples."""
        members = [
            member
            for member in range(len(self.weights))
            if unseen is None or self.parts == 1 or self.left_out(member) == unseen
        ]
        total = np.zeros(len(priorities))
        for low in range(0, len(priorities), ROWS_AT_A_TIME):
            rows = slice(low, low + ROWS_AT_A_TIME)
            inputs = self.inputs(features[rows])
            for member in members:
                part = apply_linear(inputs, priorities[rows], self.linear[member])
                if self.weights[member, : 1 + self.settings.hidden].any():  # else its network corrects nothing
                    part = forward(inputs, part, self.weights[member], self.settings.hidden, np.empty_like(part))
                total[rows] += part
        return np.asarray(total / len(members), np.float32)

    @property
    def is_linear(self) -> bool:
        """Whether there are no networks: then the logit is a sum over features."""
        return not self.weights[:, : 1 + self.settings.hidden].any()

    def add_columns(self, logits: Floats, columns: Floats, first: int, unseen: int | None = None) -> None:
        """Add to logits, in place, what some features say, the `first` and those after it: (num_pairs, num_columns).

        So the features of very many pairs need not be held at once. The sum is that of `logits` up to rounding.
        """
        linear = self._mean_linear(unseen)
        for number in range(columns.shape[1]):
            place = first + number
            # Every feature counts by itself and by what is above each of its knots.
            lows = np.concatenate([[-np.inf], self.knots[:, place]])
            means = np.concatenate([[self.mean[place]], self.knot_mean[:, place]])
            spreads = np.concatenate([[self.spread[place]], self.knot_spread[:, place]])
            slopes = np.array([linear[2 + part * self.width + place] for part in range(len(lows))])
            _add_column(logits, columns, number, lows, means, slopes / spreads)

    def add_priorities(self, logits: Floats, priorities: Floats, unseen: int | None = None) -> None:
        """Add to logits, in place, what the priorities say, and the bias."""
        scale, bias = self._mean_linear(unseen)[:2]
        logits += np.asarray(scale * priorities + bias, np.float32)

    def _mean_linear(self, unseen: int | None) -> NDArray[np.float64]:
        members = [
            member
            for member in range(len(self.weights))
            if unseen is None or self.parts == 1 or self.left_out(member) == unseen
        ]
        return np.asarray(self.linear[members].mean(axis=0))

    def state(self) -> dict[str, NDArray[Any]]:
        """All that was learned, as arrays."""
        arrays = {"mean": self.mean, "spread": self.spread, "knots": self.knots}
        arrays |= {"knot_mean": self.knot_mean, "knot_spread": self.knot_spread}
        return {**arrays, "linear": self.linear, "weights": self.weights}

    def load_state(self, state: dict[str, NDArray[Any]]) -> None:
        """Put it as it was, with as many members as there were; features and hidden units must be those of this one."""
        for name, own in self.state().items():
            given = state.get(name)
            first = 1 if name in ("linear", "weights") else 0  # the number of members is free
            if given is None or given.ndim != own.ndim or given.shape[first:] != own.shape[first:]:
                raise ValueError(f"{name} is missing or has another shape")
            setattr(self, name, np.array(given, own.dtype))
        count = len(self.weights)
        if len(self.linear) != count or count % self.parts or not count:
            raise ValueError("the number of members is not that of the parts")


def _scale_of(values: Floats) -> tuple[Floats, Floats]:
    """Mean and standard deviation over the second axis: (n, rows, width) -> (n, width) each."""
    mean = values.mean(axis=1, dtype=np.float64)
    return mean.astype(np.float32), np.maximum(values.std(axis=1, dtype=np.float64), 1e-3).astype(np.float32)


class Adam:
    """Adam with a penalty on large weights, for one member."""

    def __init__(self, weights: Floats, rate: float, decay: float = 0.0) -> None:
        self.weights, self.rate, self.decay = weights, rate, decay
        self._mean, self._square = np.zeros(len(weights)), np.zeros(len(weights))
        self._first, self._second = 1.0, 1.0  # powers of the two betas

    def step(self, gradient: NDArray[np.float64]) -> None:
        """Move the weights, in place."""
        gradient = gradient + self.decay * self.weights
        self._first, self._second = self._first * 0.9, self._second * 0.999
        self._mean += 0.1 * (gradient - self._mean)
        self._square += 0.001 * (gradient * gradient - self._square)
        root = np.sqrt(self._square / (1 - self._second)) + 1e-8
        self.weights -= (self.rate / (1 - self._first) * self._mean / root).astype(np.float32)


def gradient(inputs: Floats, weights: Floats, hidden: int, errors: Floats) -> NDArray[np.float64]:
    """The gradient of one member's weights, where `errors` are the derivatives of the loss by its logits."""
    parts = np.zeros((-(-len(errors) // BLOCK), len(weights)), np.float32)
    _backward(inputs, weights, hidden, errors, parts)
    return np.asarray(parts.sum(axis=0, dtype=np.float64))


def apply_linear(inputs: Floats, priorities: Floats, linear: NDArray[np.float64]) -> Floats:
    """What a member makes of pairs before its network corrects it, (num_pairs,)."""
    return np.asarray(_apply_linear(inputs, priorities, linear))


@numba.njit(cache=True, parallel=True)
def _add_column(logits, columns, number, lows, means, slopes):  # type: ignore[no-untyped-def]
    for r in numba.prange(len(logits)):
        value = columns[r, number]
        total = slopes[0] * (value - means[0])
        for k in range(1, len(lows)):
            total += slopes[k] * (max(value - lows[k], 0.0) - means[k])
        logits[r] += np.float32(total)


@numba.njit(cache=True)
def _apply_linear(inputs, priorities, linear):  # type: ignore[no-untyped-def]
    result = np.empty(len(priorities), np.float32)
    for r in range(len(priorities)):
        total = linear[0] * priorities[r] + linear[1]
        for i in range(inputs.shape[1]):
            total += linear[2 + i] * inputs[r, i]
        result[r] = total
    return result


@numba.njit(cache=True, inline="always")
def _add_eight(out, o, rows, r, a, b, c, d, e, f, g, h):  # type: ignore[no-untyped-def]
    """Add eight rows, times eight numbers, to a row."""
    for j in range(out.shape[1]):
        out[o, j] += ((a * rows[r, j] + b * rows[r + 1, j]) + (c * rows[r + 2, j] + d * rows[r + 3, j])) + (
            (e * rows[r + 4, j] + f * rows[r + 5, j]) + (g * rows[r + 6, j] + h * rows[r + 7, j])
        )


@numba.njit(cache=True)
def _multiply(x, matrix, start, out):  # type: ignore[no-untyped-def]
    """out = start + x @ matrix, row by row, inputs in eights."""
    for r in range(len(x)):
        out[r] = start
        for i in range(0, x.shape[1], 8):
            _add_eight(
                out, r, matrix, i,
                x[r, i], x[r, i + 1], x[r, i + 2], x[r, i + 3], x[r, i + 4], x[r, i + 5], x[r, i + 6], x[r, i + 7],
            )  # fmt: skip


@numba.njit(cache=True)
def _add_products(x, d, out):  # type: ignore[no-untyped-def]
    """out += x.T @ d, rows in eights; of both there is a multiple of eight."""
    for r in range(0, len(x), 8):
        for i in range(x.shape[1]):
            _add_eight(
                out, i, d, r,
                x[r, i], x[r + 1, i], x[r + 2, i], x[r + 3, i], x[r + 4, i], x[r + 5, i], x[r + 6, i], x[r + 7, i],
            )  # fmt: skip


@numba.njit(cache=True)
def _cut(layer):  # type: ignore[no-untyped-def]
    """Nothing below zero (ReLU)."""
    for r in range(len(layer)):
        for j in range(layer.shape[1]):
            layer[r, j] = max(layer[r, j], np.float32(0.0))


@numba.njit(cache=True)
def _layers(weights, hidden):  # type: ignore[no-untyped-def]
    """The last weight vector, and bias and matrix of the second and of the first layer."""
    at = 1 + hidden
    second_bias = weights[at : at + hidden]
    second = weights[at + hidden : at + hidden + hidden * hidden].reshape(hidden, hidden)
    at += hidden + hidden * hidden
    first_bias = weights[at : at + hidden]
    first = weights[at + hidden :].reshape(-1, hidden)
    return weights[1 : 1 + hidden], second_bias, second, first_bias, first


@numba.njit(cache=True, parallel=True)
def forward(inputs, bases, weights, hidden, out):  # type: ignore[no-untyped-def]
    """Logits of one member, in `out`: what `apply_linear` makes of pairs, corrected."""
    last, second_bias, second, first_bias, first = _layers(weights, hidden)
    for block in numba.prange((len(bases) + BLOCK - 1) // BLOCK):
        low, high = block * BLOCK, min((block + 1) * BLOCK, len(bases))
        one, two = np.empty((high - low, hidden), np.float32), np.empty((high - low, hidden), np.float32)
        _multiply(inputs[low:high], first, first_bias, one)
        _cut(one)
        _multiply(one, second, second_bias, two)
        _cut(two)
        for r in range(high - low):
            total = weights[0]
            for j in range(hidden):
                total += two[r, j] * last[j]
            out[low + r] = bases[low + r] + total
    return out


@numba.njit(cache=True, parallel=True)
def _backward(inputs, weights, hidden, errors, parts):  # type: ignore[no-untyped-def]
    """Gradients by block, in the order of the weights.

    The layers are computed again: keeping them for all rows would take more memory than it saves time.
    """
    last, second_bias, second, first_bias, first = _layers(weights, hidden)
    turned = second.T.copy()
    none = np.zeros(hidden, np.float32)
    for block in numba.prange(len(parts)):
        low, high = block * BLOCK, min((block + 1) * BLOCK, len(errors))
        size = (high - low + 7) // 8 * 8  # rows beyond the last are zero and add nothing
        x = np.zeros((size, inputs.shape[1]), np.float32)
        x[: high - low] = inputs[low:high]
        one, two = np.empty((size, hidden), np.float32), np.empty((size, hidden), np.float32)
        _multiply(x, first, first_bias, one)
        _cut(one)
        _multiply(one, second, second_bias, two)
        _cut(two)
        part = parts[block]
        g_last, g_second_bias, g_second, g_first_bias, g_first = _layers(part, hidden)
        back = np.zeros((size, hidden), np.float32)
        for r in range(high - low):
            error = errors[low + r]
            part[0] += error
            for j in range(hidden):
                g_last[j] += error * two[r, j]
                back[r, j] = error * last[j] if two[r, j] > 0 else np.float32(0.0)
                g_second_bias[j] += back[r, j]
        _add_products(one, back, g_second)
        back_one = np.empty((size, hidden), np.float32)
        _multiply(back, turned, none, back_one)
        for r in range(size):
            for j in range(hidden):
                if one[r, j] <= 0:
                    back_one[r, j] = np.float32(0.0)
                g_first_bias[j] += back_one[r, j]
        _add_products(x, back_one, g_first)
