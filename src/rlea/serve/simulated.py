"""Queries as people type them, made from the names of a graph: to learn from, where there are no true queries."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rlea.serve.facts import Facts

EDITS = (0.0, 0.0, 0.2, 0.5, 1.0, 1.5, 2.0)  # per word of a name: from none to names that have little in common
WITH_PROPERTIES = 0.5  # share of queries
MOST_PROPERTIES = 3
REWORDED = 0.5  # share of queries whose words are others as well
MOST_GONE = 0.6  # share of the words of a name
ALPHABET = "abcdefghijklmnopqrstuvwxyz"


def change_name(name: str, others: Sequence[str], rng: np.random.Generator) -> str:
    """The name with some edits: of letters, or of whole words (dropped, shortened, turned round, one added)."""
    words = (reword(name, others, rng) if rng.random() < REWORDED else name).split()
    for _ in range(math.ceil(rng.choice(EDITS) * len(words))):
        if not words:
            break
        kind, place = int(rng.integers(8)), int(rng.integers(len(words)))
        if kind == 0 and len(words) > 2:  # one of two words alone means something else more often than not
            del words[place]
        elif kind == 1 and len(words) > 2:
            words[place] = words[place][0]
        elif kind == 2 and len(words) > 1:
            words = [*words[place:], *words[:place]]
        elif kind == 3 and len(words) > 2:
            more = others[int(rng.integers(len(others)))].split()
            words[place:place] = [more[int(rng.integers(len(more)))]] if more else []
        else:
            words[place] = _change_letter(words[place], rng)
    return " ".join(words) or name


def _change_letter(word: str, rng: np.random.Generator) -> str:
    place, kind = int(rng.integers(len(word))), int(rng.integers(4))
    letter = ALPHABET[int(rng.integers(len(ALPHABET)))]
    if kind == 0 and len(word) > 1:
        return word[:place] + word[place + 1 :]
    if kind == 1:
        return word[:place] + letter + word[place:]
    if kind == 2:
        return word[:place] + letter + word[place + 1 :]
    return word[:place] + word[place : place + 2][::-1] + word[place + 2 :]


def draw_properties(facts: Facts, entity: int, named: Sequence[int], rng: np.random.Generator) -> list[tuple[str, str]]:
    """Some properties of an entity with a value each; half of the time none.

    Some values are another entity's, as sources contradict each other: from none (year of a book) to all (prices).
    """
    known = [(name, fact.text) for name, fact in facts.of(entity) if fact.text != facts.graph.names[entity]]
    if not known or rng.random() >= WITH_PROPERTIES:
        return []
    number = int(rng.integers(1, MOST_PROPERTIES + 1))
    chosen = dict(known[int(place)] for place in rng.permutation(len(known))[:number])
    wrong = rng.random()
    for name in chosen:
        if rng.random() < wrong:
            stranger = named[int(rng.integers(len(named)))]
            values = [fact.text for fact in facts.values(stranger, name)]
            chosen[name] = values[0] if values else chosen[name]
    return list(chosen.items())


def reword(name: str, others: Sequence[str], rng: np.random.Generator) -> str:
    """The name as another source words it: some words are gone, others have been added. Short names stay."""
    words = name.split()
    if len(words) < 3:
        return name
    gone, added = rng.random(2)
    kept = [word for word in words if rng.random() >= MOST_GONE * gone] or [words[int(rng.integers(len(words)))]]
    for _ in range(int(rng.binomial(len(words), added))):
        more = others[int(rng.integers(len(others)))].split()
        if more:
            kept.insert(int(rng.integers(len(kept) + 1)), more[int(rng.integers(len(more)))])
    return " ".join(kept)
