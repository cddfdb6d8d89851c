"""How likely each candidate of a query is the entity meant, or that none is: a softmax over candidates and "none".

The graph is its own null model. Its names, changed as people change names (typos, words dropped, added or turned
round), are searched for twice: with the entity in the graph, which shows what right candidates look like, and without
it, which shows what coincidence looks like. The weights are those that make the true answers most likely (conditional
logit). No weight of evidence may be negative: the best candidate never loses by more similarity or agreement.

A query is taken to have its entity in the graph half of the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

from rlea.arithmetic import exp_of, log_of

Doubles = NDArray[np.float64]

# Of a candidate: cosine, overlap, words left over (negative), equal letters, rarity of a shared word, values that agree
# and that contradict (negative).
# Of "none": 1, the first two of a candidate further down, the length of the query.
EVIDENCE, NONE = 7, 4
STRANGER = 4  # place of the candidate (from 0) that stands for those who have nothing to do with the query
PENALTY = 0.01  # on the squares of the weights, beside a sum over all queries: next to none
SWEEPS = 200  # over the weights; far fewer change anything
MOST_SIMULATED = 1000  # queries; each counts once with and once without its entity


@dataclass(frozen=True)
class Evidence:
    """What speaks for and against a candidate."""

    similarity: float  # cosine of the names, 0 to 1
    overlap: float = 0.0  # of three letters in a row, rare or not, 0 to 1: "Oslo Time" is not "Oslo"
    left_over: float = 0.0  # share of the words of either that have no similar word in the other
    is_equal: bool = False  # but for case, accents and punctuation
    rarity: float = 0.0  # of the rarest word that both have, 0 to 1: a model number tells more than "Turntable"
    support: float = 0.0  # sum over properties: agreement times how far the property tells entities apart
    conflict: float = 0.0  # sum over properties of what is missing to full agreement


@dataclass(frozen=True)
class Confidence:
    """The weights of the evidence."""

    weights: Doubles  # (EVIDENCE + NONE,)

    def of(self, candidates: Sequence[Evidence], num_letters: int) -> list[float]:
        """The probability of every candidate, best name first; with "none" they add up to 1."""
        rows = rows_of(candidates, num_letters)
        shares = np.zeros(len(rows))
        _softmax(rows, self.weights, shares)
        return [float(share) for share in shares[1:]]

    @staticmethod
    def fit(queries: Sequence[Doubles], answers: Sequence[int]) -> Confidence:
        """From rows of `rows_of` and the row that is right, 0 for none."""
        starts = np.append(0, np.cumsum([len(rows) for rows in queries]))
        weights = np.zeros(EVIDENCE + NONE)
        if len(queries):
            _fit(np.concatenate(queries), starts, np.array(answers, np.int64), weights)
        return Confidence(weights)


def rows_of(candidates: Sequence[Evidence], num_letters: int) -> Doubles:
    """A row for "none", then one for each candidate; (num_candidates + 1, EVIDENCE + NONE)."""
    rows = np.zeros((len(candidates) + 1, EVIDENCE + NONE))
    for place, one in enumerate(candidates, start=1):
        rows[place, :EVIDENCE] = (
            one.similarity, one.overlap, -one.left_over, one.is_equal, one.rarity, one.support, -one.conflict
        )  # fmt: skip
    rows[0, EVIDENCE] = 1.0
    if len(candidates) > STRANGER:
        rows[0, EVIDENCE + 1 : EVIDENCE + 3] = rows[1 + STRANGER, :2]
    rows[0, EVIDENCE + 3] = log_of(1.0 + num_letters)
    return rows


@numba.njit(cache=True, nogil=True)
def _softmax(rows, weights, shares):  # type: ignore[no-untyped-def]
    highest = -np.inf
    for r in range(len(rows)):
        total = 0.0
        for f in range(len(weights)):
            total += rows[r, f] * weights[f]
        shares[r] = total
        highest = max(highest, total)
    total = 0.0
    for r in range(len(rows)):
        shares[r] = exp_of(shares[r] - highest)
        total += shares[r]
    for r in range(len(rows)):
        shares[r] /= total


@numba.njit(cache=True, nogil=True)
def _fit(rows, starts, answers, weights):  # type: ignore[no-untyped-def]
    """One weight after the other by Newton's rule, all of them again and again; the likelihood is concave."""
    shares = np.zeros(len(rows))
    for _ in range(SWEEPS):
        moved = 0.0
        for f in range(len(weights)):
            slope, curve = PENALTY * weights[f], PENALTY
            for q in range(len(starts) - 1):
                own = rows[starts[q] : starts[q + 1]]
                _softmax(own, weights, shares[: len(own)])
                mean, square = 0.0, 0.0
                for r in range(len(own)):
                    mean += shares[r] * own[r, f]
                    square += shares[r] * own[r, f] * own[r, f]
                slope += mean - own[answers[q], f]
                curve += square - mean * mean
            # A long step could pass the best place; short ones come near it by and by.
            step = min(max(slope / curve, -1.0), 1.0)
            wanted = weights[f] - step
            if f < EVIDENCE:
                wanted = max(wanted, 0.0)
            moved = max(moved, abs(wanted - weights[f]))
            weights[f] = wanted
        if moved < 1e-4:
            break
