"""How far two texts or values agree, from 0 to 1; one pair at a time, unlike `rlea.evidence.attributes`."""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import NamedTuple

from rlea.arithmetic import exp_of
from rlea.evidence.attributes.comparison import NUMBER_SCALE, TEXT_NOTHING
from rlea.evidence.words import trigrams
from rlea.graph.names import plain
from rlea.graph.transliterate import transliterate

LONGEST = 300  # letters of a text that are compared
LONGEST_FACT = 60  # letters; what is longer describes
SIMILAR = 0.4  # share of a word that a text must have for one that is spelt differently
NEXT_YEAR = 0.2  # agreement of dates with the same year, or of a year with the next: sources often differ so
_NUMBER = re.compile(r"[+-]?(\d{1,3}(,\d{3})+|\d+)(\.\d+)?([eE][+-]?\d{1,3})?")
_DATE = re.compile(r"([12]\d{3})(-\d{2}(-\d{2}(T.*)?)?)?")


class Value(NamedTuple):
    """A value as it is compared."""

    date: str  # "" for what is no date; years and days
    number: float | None
    plain: str  # in small Latin letters
    words: tuple[frozenset[str], ...]  # three letters in a row of every word
    grams: frozenset[str]  # ... of all words


@lru_cache(maxsize=10_000)  # some kilobytes each
def read_value(text: str) -> Value:
    """A value by its form: 1984 and 1984-05-02 are dates, 12.5 and 1,234 numbers, all else is text."""
    text = text.strip()[:LONGEST]
    date = text[:10] if _DATE.fullmatch(text) else ""
    number = float(text.replace(",", "")) if _NUMBER.fullmatch(text) else None
    if number is not None and not math.isfinite(number):
        number = None
    letters = plain(transliterate(text))
    words = tuple(frozenset(trigrams(word)) for word in letters.split())
    return Value(date, number, letters, words, frozenset().union(*words))


def agreement(one: str, other: str) -> float:
    """From 0, nothing in common, to 1, the same.

    >>> agreement("1984", "1984-05-02"), agreement("Vossen, G.", "G. Vossen"), agreement("1984", "1990")
    (1.0, 1.0, 0.0)
    """
    a, b = read_value(one), read_value(other)
    if a.plain == b.plain:
        return 1.0
    if a.date and b.date:
        if a.date.startswith(b.date) or b.date.startswith(a.date):
            return 1.0
        return NEXT_YEAR if abs(int(a.date[:4]) - int(b.date[:4])) <= 1 else 0.0
    if a.number is not None and b.number is not None:
        larger = max(abs(a.number), abs(b.number))
        return float(exp_of(-abs(a.number - b.number) / larger / NUMBER_SCALE)) if larger else 1.0
    return max(0.0, (overlap(a, b) - TEXT_NOTHING) / (1 - TEXT_NOTHING))


def overlap(one: Value, other: Value) -> float:
    """The share of three letters in a row that two texts have in common (Dice), 0 to 1."""
    return 2 * len(one.grams & other.grams) / max(len(one.grams) + len(other.grams), 1)


def left_over(one: Value, other: Value) -> float:
    """The share of the words of two texts that have little in common with the other text.

    >>> left_over(read_value("Oslo"), read_value("Oslo Time")), left_over(read_value("Dakotta"), read_value("Dakota"))
    (0.3333333333333333, 0.0)
    """
    sides = ((one.words, other.grams), (other.words, one.grams))
    alone = sum(len(word & grams) < SIMILAR * len(word) for words, grams in sides for word in words)
    return alone / max(len(one.words) + len(other.words), 1)


def contradicts(one: str, other: str) -> bool:
    """Whether values that do not agree speak against each other: two sources describe a thing in different words."""
    return min(len(one), len(other)) <= LONGEST_FACT
