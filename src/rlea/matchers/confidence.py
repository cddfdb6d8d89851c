"""The confidence of a link by similarity alone: how clearly the pair beats its rivals on both sides.

It is not calibrated: 0.8 does not promise that eight links of ten are right (`metrics.calibration` measures that where
gold links are known). It orders links, and it means the same for all matchers by similarity.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rlea.arithmetic import exp, log, log_add_exp

if TYPE_CHECKING:
    from rlea.search.candidates import Candidates

Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class ConfidenceSettings:
    """How a lead over the rivals becomes a confidence."""

    # The lowest mean calibration error of 0.02, 0.05 and 0.1 on an easy and a hard benchmark (EN_FR and D_W, name
    # vectors, validation links): 0.02 suits the easy one better, 0.1 the hard one.
    temperature: float = 0.05
    no_match: float = 0.4  # similarity at which no match is as likely as the pair

    def __post_init__(self) -> None:
        if not self.temperature > 0:
            raise ValueError("temperature must be above 0")


def rate_pairs(
    candidates: Candidates,
    rows: NDArray[Any],
    columns: NDArray[Any],
    scores: NDArray[Any] | None = None,
    settings: ConfidenceSettings | None = None,
) -> Doubles:
    """The confidence in [0, 1] of pairs of positions; shape (num_pairs,).

    It is the geometric mean of two softmax probabilities: that of the pair among all candidates of its source, and
    among all of its target, by similarity / temperature. "No match" is one of the candidates: an entity may have no
    counterpart, and a pair without rivals need not be right. Give the pairs' `scores` where they are known.
    """
    settings = settings or ConfidenceSettings()
    rows, columns = np.asarray(rows), np.asarray(columns)
    if len(rows) == 0:
        return np.zeros(0)
    if scores is None:
        scores = candidates.score_pairs(rows, columns)
    pairs = candidates.pairs
    weights = similarities(candidates, pairs.scores) / settings.temperature
    row_totals = log_sum_exp(weights, pairs.rows, candidates.num_rows)
    column_totals = log_sum_exp(weights, pairs.columns, candidates.num_columns)
    no_match = settings.no_match / settings.temperature
    row_totals, column_totals = log_add_exp(row_totals, no_match), log_add_exp(column_totals, no_match)
    own = similarities(candidates, scores) / settings.temperature
    # A pair that is not a candidate is in neither total; the maximum keeps its share at most 1.
    row_shares = own - np.maximum(row_totals[rows], own)
    column_shares = own - np.maximum(column_totals[columns], own)
    return exp(0.5 * (row_shares + column_shares))


def similarities(candidates: Candidates, scores: NDArray[Any]) -> Doubles:
    """Scores on the scale of a cosine, so that one temperature or threshold suits every measure.

    Cosines stay as they are. Inner products are divided by the largest absolute score among the candidates; minus
    distances likewise, plus 1, so that 1 means "the same" and 0 the most distant candidate.
    """
    values = np.asarray(scores, dtype=np.float64)
    measure = candidates.embeddings.measure
    if measure == "cosine" or values.size == 0:
        return values
    largest = float(np.abs(candidates.pairs.scores).max(initial=0.0)) or 1.0
    return values / largest + (1.0 if measure == "manhattan" else 0.0)


def log_sum_exp(values: Doubles, groups: NDArray[Any], num_groups: int) -> Doubles:
    """log(sum(exp(values))) of every group, without overflow; -inf for a group without values."""
    highest = np.full(num_groups, -np.inf)
    np.maximum.at(highest, groups, values)
    sums = np.bincount(groups, weights=exp(values - highest[groups]), minlength=num_groups)
    return np.where(sums > 0, highest + log(sums), -np.inf)
