"""Confidences that mean what they say: of links with 0.8, eight of ten are right.

Fitted on links of entities that training held out, as the agent decides them: a logistic function of how clearly the
pair stands out among the pairs of its source and of its target (log-odds of its softmax share, nobody being a rival
too) and of its worth itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlea.agent.memory import Floats
from rlea.agent.sight import Pairs

FEWEST = 80  # links to fit to: the defaults are about as near the truth as a fit to fewer
PLENTY = 1000  # from so many on an answer is taken for certain: to soften it would change next to nothing
MOST = 12.0  # log-odds are cut here: beyond, they say no more


@dataclass(frozen=True)
class Calibration:
    """Weights of the logistic function; the defaults take the mean of the two log-odds as they are."""

    bias: float = 0.0
    source: float = 0.5
    target: float = 0.5
    worth: float = 0.0

    @staticmethod
    def fit(odds: Floats, right: NDArray[np.bool_]) -> Calibration | None:
        """From rows of `log_odds` and whether the link was right; None where they are too few or all the same."""
        if len(right) < FEWEST or right.all() or not right.any():
            return None
        from sklearn.linear_model import LogisticRegression

        rows, answers = odds, right
        weights: NDArray[np.float64] | None = None
        if len(right) < PLENTY:
            # Few links are often told apart without an error, and the steepest curve fits best: every link would be
            # certain, right or wrong. So each answer is held to be the other with a small chance, that of one more
            # link of its kind going the other way (Platt's rule).
            counts = np.array([np.count_nonzero(~right), np.count_nonzero(right)])
            doubt = (1 / (counts + 2))[right.astype(np.int64)]
            rows, answers = np.concatenate([odds, odds]), np.concatenate([right, ~right])
            weights = np.concatenate([1 - doubt, doubt])
        used = [0, 1, 2]
        slopes = np.zeros(3)
        while used:
            model = LogisticRegression(C=100.0, max_iter=1000)  # next to no penalty
            model.fit(rows[:, used], answers, sample_weight=weights)
            lowest = int(np.argmin(model.coef_[0]))
            if model.coef_[0][lowest] >= 0:
                slopes[used] = model.coef_[0]
                return Calibration(float(model.intercept_[0]), *(float(slope) for slope in slopes))
            # A slope below zero would put a clearer pair lower: it goes, and the others are fitted anew.
            del used[lowest]
        share = float(right.mean())
        return Calibration(float(np.log(share / (1 - share))), 0.0, 0.0, 0.0)

    def confidences(self, odds: Floats) -> Floats:
        """Chances that links of these pairs are right, (num_pairs,) in (0, 1)."""
        logits = self.bias + odds.astype(np.float64) @ np.array([self.source, self.target, self.worth])
        return np.asarray(1 / (1 + np.exp(-np.clip(logits, -30, 30))), np.float32)


def log_odds(pairs: Pairs, worth: Floats) -> Floats:
    """(num_pairs, 3): log-odds of each pair among the pairs of its source and nobody, of its target; and its worth."""
    columns = [_odds(ids, worth) for ids in (pairs.source_ids, pairs.target_ids)]
    return np.asarray(np.clip(np.column_stack([*columns, worth]), -MOST, MOST), np.float32)


def _odds(ids: NDArray[np.int32], worth: Floats) -> NDArray[np.float64]:
    """log(exp(worth) / (1 + sum of exp(others' worth))), without overflow."""
    values = worth.astype(np.float64)
    highest = np.zeros(int(ids.max(initial=0)) + 1)
    np.maximum.at(highest, ids, values)
    own = np.exp(values - highest[ids])
    sums = np.exp(-highest) + np.bincount(ids, weights=own, minlength=len(highest))
    rest = np.maximum(sums[ids] - own, 1e-12)
    return np.asarray(np.log(np.maximum(own, 1e-12)) - np.log(rest))
