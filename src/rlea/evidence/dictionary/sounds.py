"""How letters sound alike: what a sign becomes in other letters, before any link has shown it."""

from __future__ import annotations

from collections.abc import Sequence

import numba
import numpy as np

from rlea.arithmetic import exp
from rlea.evidence.dictionary.corpus import LETTERS, Doubles, Ints
from rlea.graph.names import plain
from rlea.graph.transliterate import transliterate

VOWELS = "aeiouy"
ALIKE = ("bpvfw", "dtz", "gkcqxh", "szcjx", "lr", "mn", "jyi", "uw", "hf", "cztq")  # groups that stand for each other
SAME_GROUP, VOWEL_GAP, BETWEEN_VOWELS = 0.5, 0.5, 0.4
STEEPNESS = 3.0  # a letter that is different makes a chunk e**3 times less likely
NOTHING = 0.08  # probability that a sign is not heard
LEAST_MASS = 4.0  # of all chunks for a sound, beside 1 for its own letters: few words do not have all chunks

LONGEST = 8  # letters of a romanised sign that are looked at


def as_numbers(texts: Sequence[str]) -> tuple[Ints, Ints]:
    """Texts of Latin letters as (num_texts + 1,) starts and (num_letters,) numbers."""
    starts = np.concatenate([[0], np.cumsum([len(text) for text in texts], dtype=np.int64)]).astype(np.int64)
    return starts, np.array([LETTERS.index(one) for text in texts for one in text], np.int64)


def romanised(signs: Sequence[str]) -> tuple[Ints, tuple[str, ...]]:
    """For every sign the number of its Latin form, and these forms."""
    numbers: dict[str, int] = {}
    found = []
    for sign in signs:
        text = "".join(one for one in plain(transliterate(sign)) if one in LETTERS)[:LONGEST]
        found.append(numbers.setdefault(text, len(numbers)))
    return np.array(found, np.int64), tuple(numbers)


def by_sound(forms: Sequence[str], chunks: Sequence[str]) -> Doubles:
    """The probability of every chunk for every Latin form, and of none at the end; (num_forms, num_chunks + 1)."""
    result = np.empty((len(forms), len(chunks) + 1))
    costs, gaps = _costs()
    distances = np.empty((len(forms), len(chunks)))
    _distances(*as_numbers(forms), *as_numbers(chunks), costs, gaps, distances)
    for own, distance in zip(result, distances, strict=True):
        weights = exp(-STEEPNESS * distance)
        total = 0.0
        for weight in weights.tolist():
            total += weight
        own[:-1] = (1 - NOTHING) * weights / max(total, LEAST_MASS)
        own[-1] = NOTHING
    return result


def _costs() -> tuple[Doubles, Doubles]:
    costs = np.ones((26, 26))
    for group in ALIKE:
        for one in group:
            for other in group:
                costs[LETTERS.index(one), LETTERS.index(other)] = SAME_GROUP
    vowels = [LETTERS.index(one) for one in VOWELS]
    costs[np.ix_(vowels, vowels)] = BETWEEN_VOWELS
    np.fill_diagonal(costs, 0.0)
    gaps = np.ones(26)
    gaps[vowels] = VOWEL_GAP
    gaps[LETTERS.index("h")] = VOWEL_GAP
    return costs, gaps


@numba.njit(cache=True)
def _distances(starts, letters, chunk_starts, chunk_letters, costs, gaps, result):  # type: ignore[no-untyped-def]
    """Edit distances of every form from every chunk, by the costs of letters."""
    row = np.empty(64)
    for form in range(len(starts) - 1):
        own = letters[starts[form] : starts[form + 1]]
        for chunk in range(len(chunk_starts) - 1):
            other = chunk_letters[chunk_starts[chunk] : chunk_starts[chunk + 1]]
            row[0] = 0.0
            for j in range(len(other)):
                row[j + 1] = row[j] + gaps[other[j]]
            for i in range(len(own)):
                before = row[0]
                row[0] += gaps[own[i]]
                for j in range(len(other)):
                    kept = row[j + 1]
                    best = before + costs[own[i], other[j]]
                    best = min(best, kept + gaps[own[i]])
                    row[j + 1] = min(best, row[j] + gaps[other[j]])
                    before = kept
            result[form, chunk] = row[len(other)]
