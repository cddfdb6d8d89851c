"""Calibrated confidences: of links with confidence 0.8, eight of ten are right.

Fitted on the links that held-out entities get: a logistic function of how clearly the pair leads the other pairs of
its source and of its target (log-odds of its softmax share, no match being a rival too), and of its logit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numba
import numpy as np
from numpy.typing import NDArray

from rlea.agent.isotonic import pool
from rlea.arithmetic import exp, exp_of, log, log1p_of
from rlea.search.pairs import Floats, Pairs

FEWEST = 50  # links in the calibration set; with fewer, the defaults do about as well
PLENTY = 1000  # links from which on Platt's rule would change next to nothing
PENALTY = 0.01  # on the squares of the slopes, beside a sum over all links: next to none
MOST = 12.0  # log-odds are cut here: beyond, they say no more
BELIEVED = 10.0  # answers that a confidence is worth beside answers about links like it
ALIKE = 1.0  # difference of log-odds at which an answer says nothing any more


@dataclass(frozen=True)
class Calibration:
    """Weights of the logistic function; the defaults take the mean of the two log-odds as they are."""

    bias: float = 0.0
    source: float = 0.5
    target: float = 0.5
    logit: float = 0.0
    # Of the links that it was fitted to, the share that is right; 0 where these are not held-out links of true seeds.
    base: float = 0.0
    recall: float = 1.0  # share of the held-out links that were found

    @staticmethod
    def fit(odds: Floats, right: NDArray[np.bool_]) -> Calibration | None:
        """From rows of `log_odds` and whether the link was right; None where they are too few or all are wrong."""
        if len(right) < FEWEST or not right.any():
            return None
        if right.all():  # one link more that nothing speaks for, and that is wrong: not all are equally sure
            odds, right = np.concatenate([odds, np.zeros((1, 3), odds.dtype)]), np.append(right, False)
        rows, answers, weights = soften(odds, right)
        used = [0, 1, 2]
        slopes = np.zeros(3)
        while used:
            bias, *fitted = fit_logistic(rows[:, used], answers, weights)
            lowest = int(np.argmin(fitted))
            if fitted[lowest] >= 0:
                slopes[used] = fitted
                found = Calibration(bias, *(float(slope) for slope in slopes))
                # Its own share, and not that of the links: the answers of a few are softened.
                return replace(found, base=float(found.confidences(odds).mean()))
            # A slope below zero would put a clearer pair lower: it goes, and the others are fitted anew.
            del used[lowest]
        share = float((answers * weights).sum() / weights.sum())
        return Calibration(float(log(share / (1 - share))), 0.0, 0.0, 0.0, share)

    def confidences(self, odds: Floats) -> Floats:
        """Probabilities that links of these pairs are right, (num_pairs,) in (0, 1)."""
        values = odds.astype(np.float64)
        logits = self.bias + (values[:, 0] * self.source + values[:, 1] * self.target + values[:, 2] * self.logit)
        return np.asarray(1 / (1 + exp(-np.clip(logits, -30, 30))), np.float32)


def soften(
    rows: Floats | NDArray[np.float64], right: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Rows, answers of 0 and 1, and weights to fit a logistic function to.

    A few links are often separated without an error, and then the steepest curve fits best: every link would be
    certain. So each answer counts as the opposite with a small probability, that of one more link of its kind going
    the other way (Platt's rule).
    """
    values, answers = rows.astype(np.float64), right.astype(np.float64)
    if len(right) >= PLENTY:
        return values, answers, np.ones(len(right))
    counts = np.array([np.count_nonzero(~right), np.count_nonzero(right)])
    doubt = (1 / (counts + 2))[right.astype(np.int64)]
    parts = (values, values), (answers, 1 - answers), (1 - doubt, doubt)
    return np.concatenate(parts[0]), np.concatenate(parts[1]), np.concatenate(parts[2])


def log_odds(pairs: Pairs, logits: Floats) -> Floats:
    """(num_pairs, 3): log-odds of each pair among those of its source and no match, of its target; and its logit."""
    columns = [_odds(ids, logits) for ids in (pairs.source_ids, pairs.target_ids)]
    return np.asarray(np.clip(np.column_stack([*columns, logits]), -MOST, MOST), np.float32)


def _odds(ids: NDArray[np.int32], logits: Floats) -> NDArray[np.float64]:
    """log(exp(logits) / (1 + sum of exp(others' logits))), without overflow."""
    values = logits.astype(np.float64)
    highest = np.zeros(int(ids.max(initial=0)) + 1)
    np.maximum.at(highest, ids, values)
    own = exp(values - highest[ids])
    sums = exp(-highest) + np.bincount(ids, weights=own, minlength=len(highest))
    rest = np.maximum(sums[ids] - own, 1e-12)
    return np.asarray(log(np.maximum(own, 1e-12)) - log(rest))


def fit_logistic(rows: NDArray[np.float64], answers: NDArray[np.float64], weights: NDArray[np.float64]) -> list[float]:
    """Bias and slopes of a logistic regression: answers 0 or 1, a weight each. By Newton's method, sums in order."""
    return [float(value) for value in _newton(rows, answers, weights, PENALTY)]


def correct(logits: NDArray[np.float64], asked: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """Confidences, (num_links,), by their log-odds and by answers about some: log-odds of these, and 0 or 1.

    Each is the mean of itself, counted `BELIEVED` times, and of the answers about links with log-odds like its own. So
    answers say nothing of links that are far surer, or far less sure, than those that were asked about. A surer link
    stays the surer one.
    """
    ordered, places = np.unique(logits, return_inverse=True)
    counts, sums = _near(ordered, asked, right)
    own = 1 / (1 + exp(-ordered))
    rates = (BELIEVED * own + sums) / (BELIEVED + counts)
    levels, middles = pool(ordered, rates, np.bincount(places).astype(np.float64))
    return np.asarray(np.interp(ordered, middles, levels)[places])


@numba.njit(cache=True)
def _near(ordered, asked, right):  # type: ignore[no-untyped-def]
    """How many answers are about links like each, and how many of these say that it is right."""
    counts, sums = np.zeros(len(ordered)), np.zeros(len(ordered))
    for k in range(len(ordered)):
        for j in range(len(asked)):
            share = 1.0 - abs(ordered[k] - asked[j]) / ALIKE
            if share > 0:
                counts[k] += share
                sums[k] += share * right[j]
    return counts, sums


@numba.njit(cache=True)
def _newton(rows, answers, weights, penalty):  # type: ignore[no-untyped-def]
    size = rows.shape[1] + 1
    found = np.zeros(size)
    value = _loss(rows, answers, weights, penalty, found)
    for _ in range(100):
        slope, curve = np.zeros(size), np.zeros((size, size))
        for k in range(size):
            curve[k, k] = penalty if k > 0 else 1e-12
            slope[k] = penalty * found[k] if k > 0 else 0.0
        for r in range(len(rows)):
            chance = _chance(rows[r], found)
            error = weights[r] * (chance - answers[r])
            bend = weights[r] * chance * (1.0 - chance)
            for k in range(size):
                own = rows[r, k - 1] if k > 0 else 1.0
                slope[k] += error * own
                for j in range(k + 1):
                    curve[k, j] += bend * own * (rows[r, j - 1] if j > 0 else 1.0)
        step = solve(curve, slope)
        share, better = 1.0, False
        while share > 1e-6 and not better:  # where the loss is nearly flat a whole step may lead too far
            tried = found - share * step
            now = _loss(rows, answers, weights, penalty, tried)
            better = now < value
            share *= 0.5
        if not better:
            break
        moved = np.abs(tried - found).max()
        found, value = tried, now
        if moved < 1e-9:
            break
    return found


@numba.njit(cache=True)
def _chance(row, found):  # type: ignore[no-untyped-def]
    logit = found[0]
    for k in range(len(row)):
        logit += found[k + 1] * row[k]
    return 1.0 / (1.0 + exp_of(-logit))


@numba.njit(cache=True)
def _loss(rows, answers, weights, penalty, found):  # type: ignore[no-untyped-def]
    total = 0.0
    for k in range(1, len(found)):
        total += 0.5 * penalty * found[k] * found[k]
    for r in range(len(rows)):
        logit = found[0]
        for k in range(rows.shape[1]):
            logit += found[k + 1] * rows[r, k]
        # log(1 + exp(logit)) - answer * logit
        total += weights[r] * (max(logit, 0.0) + log1p_of(exp_of(-abs(logit))) - answers[r] * logit)
    return total


@numba.njit(cache=True)
def solve(lower, right):  # type: ignore[no-untyped-def]
    """The solution of a symmetric positive system, its lower triangle given (Cholesky)."""
    size = len(right)
    root, result = np.zeros((size, size)), right.copy()
    for k in range(size):
        for j in range(k + 1):
            total = lower[k, j]
            for i in range(j):
                total -= root[k, i] * root[j, i]
            root[k, j] = np.sqrt(max(total, 1e-12)) if k == j else total / root[j, j]
    for k in range(size):
        for i in range(k):
            result[k] -= root[k, i] * result[i]
        result[k] /= root[k, k]
    for k in range(size - 1, -1, -1):
        for i in range(k + 1, size):
            result[k] -= root[i, k] * result[i]
        result[k] /= root[k, k]
    return result
