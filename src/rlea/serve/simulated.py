"""Queries as people type them, made from the names of a graph: to learn from, where there are no true queries."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rlea.serve.facts import Facts

EDITS = (0.0, 0.0, 0.2, 0.5, 1.0, 1.5, 2.0)  # per word of a name: from none to names that have little in common
WITH_PROPERTIES = 0.5  # share of queries
MOST_PROPERTIES = 3
WRONG = 0.3  # share of values that are another entity's: sources contradict each other
ALPHABET = "abcdefghijklmnopqrstuvwxyz"


def change_name(name: str, others: Sequence[str], rng: np.random.Generator) -> str:
    """The name with some edits: of letters, or of whole words (dropped, shortened, turned round, one added)."""
    words = name.split()
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
    """Some properties of an entity with a value each, some of them wrong; half of the time none."""
    known = [(name, fact.text) for name, fact in facts.of(entity) if fact.text != facts.graph.names[entity]]
    if not known or rng.random() >= WITH_PROPERTIES:
        return []
    number = int(rng.integers(1, MOST_PROPERTIES + 1))
    chosen = dict(known[int(place)] for place in rng.permutation(len(known))[:number])
    for name in chosen:
        if rng.random() < WRONG:
            stranger = named[int(rng.integers(len(named)))]
            values = [fact.text for fact in facts.values(stranger, name)]
            chosen[name] = values[0] if values else chosen[name]
    return list(chosen.items())
