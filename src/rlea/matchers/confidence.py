"""The confidence of a link by similarity alone: how clearly the pair beats its rivals on both sides.

It is not calibrated: 0.8 does not promise that eight links of ten are right (`metrics.calibration` measures that where
gold links are known). It orders links, and it means the same for all matchers by similarity.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rlea.arithmetic import exp, log, log_add_exp

if TYPE_CHECKING:
    from rlea.search.candidates import Candidates

Doubles = NDArray[np.float64]


# The lowest mean calibration error of 0.02, 0.05 and 0.1 on an easy and a hard benchmark (EN_FR and D_W, name vectors,
# validation links): 0.02 suits the easy one better, 0.1 the hard one.
TEMPERATURE = 0.05
NO_MATCH = 0.4  # similarity at which no match is as likely as the pair


def rate_pairs(
    candidates: Candidates,
    rows: NDArray[Any],
    columns: NDArray[Any],
    scores: NDArray[Any],
    temperature: float = TEMPERATURE,
    no_match: float = NO_MATCH,
) -> Doubles:
    """The confidence in [0, 1] of pairs of positions; shape (num_pairs,).

    It is the geometric mean of two softmax probabilities: that of the pair among all candidates of its source, and
    among all of its target, by similarity / temperature. "No match" is one of the candidates: an entity may have no
    counterpart, and a pair without rivals need not be right. `scores` are those of the pairs.
    """
    pairs = candidates.pairs
    weights = similarities(candidates, pairs.scores) / temperature
    own = similarities(candidates, scores) / temperature
    shares = 0.0
    for groups, count, ids in (
        (pairs.rows, candidates.num_rows, rows),
        (pairs.columns, candidates.num_columns, columns),
    ):
        totals = log_add_exp(log_sum_exp(weights, groups, count), no_match / temperature)
        # A pair that is not a candidate is in neither total; the maximum keeps its share at most 1.
        shares = shares + (own - np.maximum(totals[ids], own))
    return exp(0.5 * shares)


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
