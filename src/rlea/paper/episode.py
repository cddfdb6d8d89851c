"""One episode: candidate pairs in descending similarity, decided one after another (section 3.1 of the paper).

A pair whose two entities are both free may be skipped (in training only); otherwise the agent says match or mismatch,
and a match removes every other pair of its two entities. The policy does not change within an episode, so all its
answers can be computed beforehand: what is left is one compiled pass over the pairs (`play`). `env.AlignmentEnv` is
the same game step by step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from rlea.graph import Ids, Links
from rlea.search.candidates import Candidates, tie_hash

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class EnvSettings:
    """Rules of an episode. The paper leaves all but the rewards open; the defaults are its authors' program's."""

    true_match: float = 1.0  # rewards of equation 6
    false_mismatch: float = -10.0
    # The paper's 0 "elsewise", in two. With both at 0 a wrong match costs only what it blocks, later in the episode.
    false_match: float = 0.0
    true_mismatch: float = 0.0
    basic_skip_rate: float = 0.5  # p_s of equation 10
    skip_discount: float = 0.99  # eta
    least_skip_rate: float = 0.2  # p_s^min
    curriculum: bool = True  # skip by difficulty; without it every pair alike
    dynamics: bool = True  # skip at all; without it every episode has the same pairs
    random_order: bool = False  # the paper's RandEnv: shuffled anew in every episode, no curriculum, no skipping


@dataclass(frozen=True, eq=False)
class PairSequence:
    """Candidate pairs, most similar first. At test time `labels` is empty: no gold, no difficulty, no skipping.

    Rows and columns are positions in the source and target pools of the candidates.
    """

    rows: Ids  # (num_pairs,)
    columns: Ids  # (num_pairs,)
    scores: Floats  # (num_pairs,), descending
    places: Ids  # (num_pairs,): the pair's place among the candidates of its row, 0 for the nearest
    num_rows: int
    num_columns: int
    labels: NDArray[np.bool_]  # (num_pairs,), or (0,) at test time
    difficulty: Floats  # (num_pairs,) in [0, 1], or (0,) at test time

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def is_labelled(self) -> bool:
        return len(self.labels) == len(self.rows) and len(self.rows) > 0


def make_sequence(candidates: Candidates, k: int, seed: int = 0) -> PairSequence:
    """The k best targets of every source as one sequence in descending similarity; the order of ties ignores ids."""
    columns = candidates.forward_columns[:, :k]
    rows, places = np.nonzero(columns >= 0)
    chosen = columns[rows, places]
    scores = candidates.forward_scores[rows, places]
    order = np.lexsort((tie_hash(rows, chosen, seed), -scores))
    return PairSequence(
        rows[order].astype(np.int32),
        chosen[order].astype(np.int32),
        scores[order].astype(np.float32),
        places[order].astype(np.int32),
        candidates.num_rows,
        candidates.num_columns,
        np.zeros(0, np.bool_),
        np.zeros(0, np.float32),
    )


def label_sequence(
    sequence: PairSequence, candidates: Candidates, seeds: Links, *, tau: float = 1.0, best_of: str = "source"
) -> PairSequence:
    """Add what training knows: which pairs are correct, and how difficult each is (equation 9, scaled to [0, 1]).

    `best_of` says whose best similarity the difficulty is measured from: that of the "source" itself, as in the paper,
    or of "all" pairs, as in the authors' program.
    """
    known = seeds.source_ids.astype(np.int64) << 32 | seeds.target_ids
    pairs = candidates.source_ids[sequence.rows].astype(np.int64) << 32 | candidates.target_ids[sequence.columns]
    labels = np.isin(pairs, known)
    if best_of == "source":
        best = np.full(sequence.num_rows, -np.inf, dtype=np.float32)
        np.maximum.at(best, sequence.rows, sequence.scores)
        gap = best[sequence.rows] - sequence.scores
    else:
        gap = sequence.scores.max(initial=0.0) - sequence.scores
    difficulty = np.where(labels, gap, tau - gap)
    low, high = difficulty.min(initial=np.inf), difficulty.max(initial=-np.inf)
    scaled = (difficulty - low) / (high - low) if high > low else np.zeros(len(sequence))
    return replace(sequence, labels=labels, difficulty=scaled.astype(np.float32))


def skip_rates(sequence: PairSequence, episode: int, rules: EnvSettings) -> Floats:
    """Equation 10: the rate at which each pair is skipped in an episode (the first is 1); zeros at test time."""
    if not sequence.is_labelled or rules.random_order or not rules.dynamics:
        return np.zeros(len(sequence), np.float32)
    weight = sequence.difficulty if rules.curriculum else np.ones(len(sequence), np.float32)
    faded = rules.skip_discount ** (episode - 1) * rules.basic_skip_rate * weight
    rates: Floats = np.maximum(rules.least_skip_rate, faded).astype(np.float32)
    return rates


class Steps(NamedTuple):
    """The decisions of one episode in order: position of the pair in the sequence, and the action (1 = match)."""

    pairs: NDArray[np.int64]
    actions: NDArray[np.int8]


def play(
    sequence: PairSequence, match_probability: Floats, skip_rate: Floats, skip_draws: Floats, action_draws: Floats
) -> Steps:
    """One episode. Draws are uniform numbers in [0, 1), one per pair of the sequence, used only if the pair comes up.

    A pair is skipped if its draw is below its skip rate, and matched if its draw is below its match probability.
    """
    sizes = sequence.num_rows, sequence.num_columns
    return Steps(
        *_play(sequence.rows, sequence.columns, *sizes, match_probability, skip_rate, skip_draws, action_draws)
    )


def rewards(sequence: PairSequence, steps: Steps, rules: EnvSettings) -> Floats:
    """Equation 6 for every step of an episode."""
    correct, matched = sequence.labels[steps.pairs], steps.actions == 1
    of_correct = np.where(matched, rules.true_match, rules.false_mismatch)
    of_wrong = np.where(matched, rules.false_match, rules.true_mismatch)
    return np.where(correct, of_correct, of_wrong).astype(np.float32)


def returns(reward: Floats, discount: float) -> Floats:
    """G of Algorithm 1: the discounted sum of rewards from every step to the end of the episode, its own included."""
    result = np.empty(len(reward), np.float32)
    _sum_back(reward, np.float32(discount), result)
    return result


@numba.njit(cache=True)
def _play(rows, columns, num_rows, num_columns, match_probability, skip_rate, skip_draws, action_draws):  # type: ignore[no-untyped-def]
    free_row = np.ones(num_rows, np.bool_)
    free_column = np.ones(num_columns, np.bool_)
    pairs = np.empty(len(rows), np.int64)
    actions = np.empty(len(rows), np.int8)
    count, left = 0, min(num_rows, num_columns)
    for i in range(len(rows)):
        if left == 0:
            break
        if not (free_row[rows[i]] and free_column[columns[i]]) or skip_draws[i] < skip_rate[i]:
            continue
        is_match = action_draws[i] < match_probability[i]
        pairs[count] = i
        actions[count] = 1 if is_match else 0
        count += 1
        if is_match:
            free_row[rows[i]] = False
            free_column[columns[i]] = False
            left -= 1
    return pairs[:count], actions[:count]


@numba.njit(cache=True)
def _sum_back(reward, discount, result):  # type: ignore[no-untyped-def]
    total = np.float32(0.0)
    for i in range(len(reward) - 1, -1, -1):
        total = reward[i] + discount * total
        result[i] = total
