"""Names as a parallel corpus: signs and words of one language, words and letters of the other.

The language that is translated from is that of the graph with more names in other letters than Latin ones. Its names
are runs of *signs* (letters, syllables, ideographs) and Latin words as they stand. The other graph's names are words in
Latin letters, whatever their script.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlea.graph.names import plain
from rlea.graph.transliterate import transliterate

LONGEST_PHRASE = 4  # signs in a row that can mean a word
LONGEST_CHUNK = 4  # letters that one sign can become
MOST_CHUNKS = 6_000  # the most frequent ones; a word with others is spelled by shorter ones
LETTERS = "abcdefghijklmnopqrstuvwxyz"
_RUNS = re.compile(r"[0-9a-z]+|[^0-9a-z]+")

Ints = NDArray[np.int64]
Doubles = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Foreign:
    """Names that are translated, as signs in their places; a Latin word or a number takes one place."""

    starts: Ints  # (num_names + 1,) of the places
    signs: Ints  # (num_places,) number of the sign; -1 for a Latin word
    runs: Ints  # (num_places,) the run that it is in: a word is not spelled across two
    weights: Doubles  # (num_places,) -log of the share of names that have what stands there
    phrase_starts: Ints  # (num_names + 1,) of the phrases
    phrases: Ints  # (num_phrases,) number of the phrase
    places: Ints  # (num_phrases,) its first place
    lengths: Ints  # (num_phrases,) and how many it takes
    sign_texts: tuple[str, ...]
    phrase_texts: tuple[str, ...]

    @property
    def num_names(self) -> int:
        """Number of names."""
        return len(self.starts) - 1


@dataclass(frozen=True, eq=False)
class Words:
    """Names that are translated into, as words in Latin letters."""

    starts: Ints  # (num_names + 1,) of the words
    words: Ints  # number of the word; each once in a name
    shares: Doubles  # (num_words,) of the names that have it
    letter_starts: Ints  # (num_words + 1,) of the letters
    letters: Ints  # 0 to 25; a word with other characters has none: it is not spelled
    chunks: Ints  # (num_letters, LONGEST_CHUNK) the chunk of 1, 2, ... letters that begins here; -1 if there is none
    by_chance: Doubles  # (num_words,) log of the probability of its letters, each by the one before it
    texts: tuple[str, ...]
    chunk_texts: tuple[str, ...]

    @property
    def num_names(self) -> int:
        """Number of names."""
        return len(self.starts) - 1


def has_signs(text: str) -> bool:
    """Whether a text has letters that are not Latin ones."""
    return not text.isascii() and any(not one.isascii() and one.isalpha() for one in _spelled(text))


def _spelled(text: str) -> str:
    """A name without case, accents and punctuation, in its own script."""
    return unicodedata.normalize("NFC", plain(text))


def read_foreign(names: Sequence[str]) -> Foreign:
    """The names as signs and phrases; an empty name has none."""
    signs: dict[str, int] = {}
    sounds: dict[str, str] = {}
    phrases: dict[str, int] = {}
    phrase_texts: list[str] = []
    starts, of_place, runs, contents = [0], list[int](), list[int](), list[str]()
    phrase_starts, own_phrases, places, lengths = [0], list[int](), list[int](), list[int]()
    number = 0
    shown = Counter[str]()
    for name in names:
        mine = set()
        for token in _spelled(name).split():
            for run in _RUNS.findall(token):
                number += 1
                first = len(of_place)
                parts = [run] if run.isascii() else list(run)
                for part in parts:
                    of_place.append(-1 if run.isascii() else signs.setdefault(part, len(signs)))
                    if part not in sounds:
                        sounds[part] = plain(transliterate(part)) or part
                    runs.append(number)
                    contents.append(part)
                mine.update(parts)
                for size in range(1, LONGEST_PHRASE + 1):
                    for place in range(len(parts) - size + 1):
                        some = parts[place : place + size]
                        # Signs in a row are known by their sounds: most have simpler and older forms.
                        key = some[0] if size == 1 else " ".join(sounds[one] for one in some)
                        if key not in phrases:
                            phrases[key] = len(phrases)
                            phrase_texts.append("".join(some))
                        own_phrases.append(phrases[key])
                        places.append(first + place)
                        lengths.append(size)
        shown.update(mine)
        starts.append(len(of_place))
        phrase_starts.append(len(own_phrases))
    count = max(1, len(names))
    shares = np.array([shown[part] / count for part in contents], np.float64)
    return Foreign(
        starts=np.array(starts, np.int64),
        signs=np.array(of_place, np.int64),
        runs=np.array(runs, np.int64),
        weights=_minus_log(shares),
        phrase_starts=np.array(phrase_starts, np.int64),
        phrases=np.array(own_phrases, np.int64),
        places=np.array(places, np.int64),
        lengths=np.array(lengths, np.int64),
        sign_texts=tuple(signs),
        phrase_texts=tuple(phrase_texts),
    )


def read_words(names: Sequence[str]) -> Words:
    """The names as words, and the words as letters and chunks."""
    numbers: dict[str, int] = {}
    starts, words = [0], list[int]()
    for name in names:
        own = dict.fromkeys(plain(transliterate(name)).split())
        words += [numbers.setdefault(word, len(numbers)) for word in own]
        starts.append(len(words))
    texts = tuple(numbers)
    counts = np.bincount(np.array(words, np.int64), minlength=len(texts))
    spelled = [word if word.isascii() and word.isalpha() else "" for word in texts]
    seen = Counter[str]()
    for word in spelled:
        for size in range(1, LONGEST_CHUNK + 1):
            seen.update(word[place : place + size] for place in range(len(word) - size + 1))
    # Single letters always: with them every word can be spelled.
    often = sorted(seen, key=lambda chunk: (len(chunk) > 1, -seen[chunk], chunk))[:MOST_CHUNKS]
    chunk_numbers = {chunk: number for number, chunk in enumerate(often)}
    letter_starts = np.concatenate([[0], np.cumsum([len(word) for word in spelled], dtype=np.int64)])
    chunks = np.full((int(letter_starts[-1]), LONGEST_CHUNK), -1, np.int64)
    for word, first in zip(spelled, letter_starts.tolist(), strict=False):
        for place in range(len(word)):
            for size in range(1, min(LONGEST_CHUNK, len(word) - place) + 1):
                chunks[first + place, size - 1] = chunk_numbers.get(word[place : place + size], -1)
    letters = np.array([LETTERS.index(letter) for word in spelled for letter in word], np.int64)
    return Words(
        np.array(starts, np.int64),
        np.array(words, np.int64),
        (counts + 0.5) / max(1, len(names)),
        letter_starts.astype(np.int64),
        letters,
        chunks,
        _by_chance(letters, letter_starts),
        texts,
        tuple(often),
    )


def _by_chance(letters: Ints, starts: NDArray[np.int64]) -> Doubles:
    """Log-probabilities of words by pairs of letters, the end of the word among them."""
    end = len(LETTERS)
    counts = np.ones((end + 1, end + 1))
    befores, afters = [], []
    for first, last in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        own = letters[first:last]
        befores.append(np.concatenate([[end], own]) if len(own) else own)
        afters.append(np.concatenate([own, [end]]) if len(own) else own)
    if befores:
        np.add.at(counts, (np.concatenate(befores), np.concatenate(afters)), 1)
    logs = -_minus_log(counts / counts.sum(axis=1, keepdims=True))
    return np.array([_in_order(logs[one, other]) for one, other in zip(befores, afters, strict=True)], np.float64)


def _in_order(values: Doubles) -> float:
    total = 0.0
    for value in values.tolist():
        total += value
    return total


def _minus_log(values: Doubles) -> Doubles:
    from rlea.arithmetic import log

    return -log(values)
