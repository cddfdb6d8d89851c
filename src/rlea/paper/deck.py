"""The deck of candidate pairs that an episode plays through, and the compiled way to play it.

An episode pops pairs in order of similarity. A pair whose entities are both free may be skipped (training only); else
the agent says match or mismatch, and a match takes every other pair of its two entities out of the deck. Within an
episode the policy stands still, so all its answers can be computed before: what is left is one pass over the deck.
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


@dataclass(frozen=True, eq=False)
class Deck:
    """Candidate pairs, most similar first. At test time `labels` is empty: no gold, no difficulty, no skipping.

    Sources and targets are positions in the pools of the candidates. `difficulty` is in [0, 1] (equation 9, rescaled).
    """

    rows: Ids  # (num_pairs,)
    columns: Ids  # (num_pairs,)
    scores: Floats  # (num_pairs,), descending
    places: Ids  # (num_pairs,): the pair's place among the candidates of its row, 0 for the nearest
    num_rows: int
    num_columns: int
    labels: NDArray[np.bool_]  # (num_pairs,), or (0,) at test time
    difficulty: Floats  # (num_pairs,), or (0,) at test time

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def is_labelled(self) -> bool:
        return len(self.labels) == len(self.rows) and len(self.rows) > 0


def make_deck(candidates: Candidates, k: int, seed: int = 0) -> Deck:
    """The k best targets of every source as one sequence in descending similarity; ties in an order blind to ids."""
    columns = candidates.forward_columns[:, :k]
    rows, places = np.nonzero(columns >= 0)
    chosen = columns[rows, places]
    scores = candidates.forward_scores[rows, places]
    order = np.lexsort((tie_hash(rows, chosen, seed), -scores))
    return Deck(
        rows[order].astype(np.int32),
        chosen[order].astype(np.int32),
        scores[order].astype(np.float32),
        places[order].astype(np.int32),
        candidates.num_rows,
        candidates.num_columns,
        np.zeros(0, np.bool_),
        np.zeros(0, np.float32),
    )


def label_deck(deck: Deck, candidates: Candidates, seeds: Links, *, tau: float = 1.0, best_of: str = "source") -> Deck:
    """The deck with what training knows: which pairs are right, and how difficult each is (equation 9).

    `best_of` says whose best similarity the difficulty is measured from: the "source"'s own, as the paper has it, or
    the best of "all" pairs, as the authors' program does.
    """
    known = seeds.source_ids.astype(np.int64) << 32 | seeds.target_ids
    pairs = candidates.source_ids[deck.rows].astype(np.int64) << 32 | candidates.target_ids[deck.columns]
    labels = np.isin(pairs, known)
    if best_of == "source":
        best = np.full(deck.num_rows, -np.inf, dtype=np.float32)
        np.maximum.at(best, deck.rows, deck.scores)
        gap = best[deck.rows] - deck.scores
    else:
        gap = deck.scores.max(initial=0.0) - deck.scores
    difficulty = np.where(labels, gap, tau - gap)
    low, high = difficulty.min(initial=np.inf), difficulty.max(initial=-np.inf)
    scaled = (difficulty - low) / (high - low) if high > low else np.zeros(len(deck))
    return replace(deck, labels=labels, difficulty=scaled.astype(np.float32))


def skip_rates(
    deck: Deck, episode: int, *, basic: float = 0.5, discount: float = 0.99, least: float = 0.2, curriculum: bool = True
) -> Floats:
    """Equation 10: the rate at which each pair is skipped in an episode (the first is 1)."""
    weight = deck.difficulty if curriculum else np.ones(len(deck), np.float32)
    rates: Floats = np.maximum(least, discount ** (episode - 1) * basic * weight).astype(np.float32)
    return rates


class Steps(NamedTuple):
    """The decisions of one episode, in order: which pair of the deck, and what was said of it (1 = match)."""

    pairs: NDArray[np.int64]
    actions: NDArray[np.int8]


def play_deck(
    deck: Deck, match_probability: Floats, skip_rate: Floats, skip_draws: Floats, action_draws: Floats
) -> Steps:
    """One episode. Draws are uniform numbers in [0, 1), one per pair of the deck, used only if the pair comes up.

    A pair is skipped if its draw is below its skip rate, and matched if its draw is below its match probability.
    """
    pairs, actions = _play(
        deck.rows, deck.columns, deck.num_rows, deck.num_columns, match_probability, skip_rate, skip_draws, action_draws
    )
    return Steps(pairs, actions)


def rewards(
    deck: Deck,
    steps: Steps,
    *,
    true_match: float = 1.0,
    false_mismatch: float = -10.0,
    false_match: float = 0.0,
    true_mismatch: float = 0.0,
) -> Floats:
    """Equation 6 for every step of an episode."""
    right, matched = deck.labels[steps.pairs], steps.actions == 1
    values = np.where(
        right, np.where(matched, true_match, false_mismatch), np.where(matched, false_match, true_mismatch)
    )
    return values.astype(np.float32)


def returns(reward: Floats, discount: float) -> Floats:
    """The discounted sum of rewards from every step to the end of the episode, its own reward included."""
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
