"""A scorer of links: a logistic function in which no evidence for a link ever counts against it.

Every feature is cut into segments at quantiles, and each segment has a slope of its own, never below zero once the
feature is turned to point upwards. So a curve can bend, and little data cannot make it fold.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

from rlea.arithmetic import exp_of, log1p_of

Doubles = NDArray[np.float64]

QUANTILES = (0.5, 0.75, 0.9, 0.97)  # of the values of a feature that are not zero: where its segments meet
FEWEST_VALUES = 20  # with fewer there is one knot, at zero
RIDGE = 5.0  # penalty on the squares of the slopes, of columns with unit spread
# Of a column, before it is scaled. What lies closer together than that, on scales of about one, comes from the game
# and not from the link: how far relations correspond differs by .001 where a few links are missing.
LEAST_SPREAD = 0.05
# Of Newton's quadratic model, and of slopes over one of them: the next round of learning begins where this one ends.
MOST_MODELS, MOST_SWEEPS = 12, 10


@dataclass(frozen=True, eq=False)
class Segments:
    """How features become columns: where to cut each, which way it points, and the scale of every column."""

    knots: tuple[Doubles, ...]
    signs: Doubles  # (num_features,) 1 or -1
    scales: Doubles  # (num_columns,)

    @staticmethod
    def of(rows: NDArray[np.float32], signs: Doubles) -> Segments:
        """Knots and scales by the values that these rows, (num_rows, num_features), have."""
        knots = []
        for values in np.ascontiguousarray(rows.T, np.float64):
            some = values[np.abs(values) > 1e-9]
            enough = len(some) >= FEWEST_VALUES
            knots.append(np.unique(np.quantile(some, QUANTILES)) if enough else np.zeros(1))
        raw = Segments(tuple(knots), signs, np.ones(sum(len(part) + 1 for part in knots)))
        return Segments(raw.knots, signs, np.maximum(raw.columns(rows).std(axis=1), LEAST_SPREAD))

    def columns(self, rows: NDArray[np.float32]) -> Doubles:
        """(num_columns, num_rows): how far each value reaches into each segment, pointing upwards."""
        made = []
        for values, knots, sign in zip(np.ascontiguousarray(rows.T, np.float64), self.knots, self.signs, strict=True):
            made.append(sign * np.minimum(values - knots[0], 0))
            for low, high in zip(knots, [*knots[1:], np.inf], strict=True):
                made.append(sign * (np.clip(values, low, high) - low))
        return np.array(made).reshape(len(self.scales), len(rows)) / self.scales[:, None]


def fit_slopes(
    columns: Doubles, answers: Doubles, weights: Doubles, prior: Doubles, start: Doubles, ridge: float = RIDGE
) -> Doubles:
    """Slopes that are not below zero and, last, the bias, of a penalised logistic regression.

    `columns` is (num_columns, num_rows), answers are in [0, 1]. The penalty is on how far slopes move away from
    `prior`, (num_columns + 1,). The loss is convex; it is approached by coordinate descent, sums in order, so the
    result is the same on every machine.
    """
    return np.asarray(_descend(np.ascontiguousarray(columns), answers, weights, prior, start.copy(), ridge))


@numba.njit(cache=True)
def apply_slopes(columns, slopes):  # type: ignore[no-untyped-def]
    """Logits, (num_rows,), added up in the order of the columns."""
    logits = np.full(columns.shape[1], slopes[-1])
    for k in range(columns.shape[0]):
        if slopes[k] > 0:
            for r in range(columns.shape[1]):
                logits[r] += slopes[k] * columns[k, r]
    return logits


@numba.njit(cache=True)
def _descend(columns, answers, weights, prior, slopes, ridge):  # type: ignore[no-untyped-def]
    """Newton's quadratic model of the loss, minimised one slope at a time; then the next model."""
    size, count = columns.shape
    logits = apply_slopes(columns, slopes)
    value = _value(logits, answers, weights, slopes - prior, ridge)
    curve, residual = np.empty(count), np.empty(count)
    for _ in range(MOST_MODELS):
        for r in range(count):
            chance = 1.0 / (1.0 + exp_of(-logits[r]))
            curve[r] = weights[r] * max(chance * (1.0 - chance), 1e-4)
            residual[r] = weights[r] * (chance - answers[r])  # of the model, kept up to date as slopes move
        tried = slopes.copy()
        bends = np.zeros(size)
        for k in range(size):
            for r in range(count):
                bends[k] += curve[r] * columns[k, r] * columns[k, r]
        total = curve.sum()
        for _sweep in range(MOST_SWEEPS):
            moved = 0.0
            step = -residual.sum() / max(total, 1e-12)
            tried[size] += step
            for r in range(count):
                residual[r] += curve[r] * step
            for k in range(size):
                slope = ridge * (tried[k] - prior[k])
                for r in range(count):
                    slope += residual[r] * columns[k, r]
                new = max(0.0, tried[k] - slope / (bends[k] + ridge))
                step = new - tried[k]
                if step != 0.0:
                    tried[k] = new
                    moved = max(moved, abs(step))
                    for r in range(count):
                        residual[r] += curve[r] * step * columns[k, r]
            if moved < 1e-3:
                break
        share, better = 1.0, False
        while share > 1e-3 and not better:
            now_slopes = slopes + share * (tried - slopes)
            now_logits = apply_slopes(columns, now_slopes)
            now = _value(now_logits, answers, weights, now_slopes - prior, ridge)
            better = now < value
            share *= 0.5
        if not better:
            break
        done = value - now < 1e-5 * abs(value)
        slopes, logits, value = now_slopes, now_logits, now
        if done:
            break
    return slopes


@numba.njit(cache=True)
def _value(logits, answers, weights, moved, ridge):  # type: ignore[no-untyped-def]
    total = 0.0
    for k in range(len(moved) - 1):
        total += 0.5 * ridge * moved[k] * moved[k]
    for r in range(len(logits)):
        logit = logits[r]
        total += weights[r] * (max(logit, 0.0) + log1p_of(exp_of(-abs(logit))) - answers[r] * logit)
    return total
