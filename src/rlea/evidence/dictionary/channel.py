"""The channel of the dictionary: how well the names of two entities translate into each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlea.arithmetic import exp
from rlea.evidence import DICTIONARY
from rlea.evidence.channel import Channel
from rlea.evidence.dictionary.corpus import has_signs, read_foreign, read_words
from rlea.evidence.dictionary.proposals import expected_vectors
from rlea.evidence.dictionary.translation import CrossFitted
from rlea.graph import GraphPair, Links
from rlea.graph.size import is_large
from rlea.progress import Progress, silent
from rlea.search.candidates import find_candidates
from rlea.search.pairs import Floats, Pairs, is_near, numbers
from rlea.search.rare_terms import search_terms

LEAST_LINKS = 100  # to learn a dictionary from
LEAST_APART = 0.3  # by how much the shares of names in other letters than Latin ones differ between the graphs
PROPOSALS = 10  # likeliest of every entity, both ways ...
EXPECTED = 40  # ... of so many that are nearest by what is expected of letters and words
GAIN_UNIT, MOST_GAIN = np.float32(10.0), np.float32(30.0)  # nats that are 1, and the most that counts
LEAST_SHOWN, LEAST_COUNT = 0.05, 1.5  # probability of an entry of the file, and in how many links it was seen


@dataclass(frozen=True)
class Entry:
    """What a phrase of one language means in the other, or which letters a sign becomes."""

    source: str
    target: str
    kind: str  # "word" or "letters"
    probability: float
    num_links: int  # that show it


class Remembered:
    """Scores of pairs that were asked for before: every game asks for nearly the same ones."""

    def __init__(self, ask: Callable[[Pairs], Floats]) -> None:
        self.ask = ask
        self.keys, self.rows = np.zeros(0, np.int64), np.zeros((0, 2), np.float32)

    def __call__(self, pairs: Pairs) -> Floats:
        """(num_pairs, 2)"""
        wanted = numbers(pairs)
        new = np.setdiff1d(wanted, self.keys)
        if len(new):
            asked = Pairs((new >> 32).astype(np.int32), (new & 0xFFFFFFFF).astype(np.int32))
            keys, rows = np.concatenate([self.keys, new]), np.concatenate([self.rows, self.ask(asked)])
            order = np.argsort(keys, kind="stable")
            self.keys, self.rows = keys[order], rows[order]
        return self.rows[np.searchsorted(self.keys, wanted)]


def dictionary_channels(pair: GraphPair, links: Links, progress: Progress = silent) -> list[Channel]:
    """A dictionary from these links, or no channel where both graphs have the same letters or links are too few.

    Links may be among those that are held out: no link counts for a pair of its own entities.
    """
    if len(links) < LEAST_LINKS:
        return []
    names = readable(pair, links)
    apart = signs_apart(names)
    if abs(apart) < LEAST_APART:
        return []
    is_turned = apart < 0  # the target's names are translated into those of the source
    ids = [np.asarray(ids, np.int64) for ids in (links.source_ids, links.target_ids)]
    of_foreign, of_words = (1, 0) if is_turned else (0, 1)
    order = np.lexsort(ids)  # what is counted is added up in this order
    ids = [part[order] for part in ids]
    known = np.array([names[0][s] != "" and names[1][t] != "" for s, t in zip(*ids, strict=True)], np.bool_)
    if known.sum() < LEAST_LINKS:
        return []
    foreign, words = read_foreign(names[of_foreign]), read_words(names[of_words])
    dictionary = CrossFitted.learn(foreign, words, ids[of_foreign][known], ids[of_words][known])

    def ask(pairs: Pairs) -> Floats:
        ends = np.asarray(pairs.source_ids, np.int64), np.asarray(pairs.target_ids, np.int64)
        return np.asarray(dictionary.score(ends[of_foreign], ends[of_words]), np.float32)

    rows = Remembered(ask)

    def score(pairs: Pairs) -> Floats:
        share, gain = rows(pairs).T
        return np.column_stack([share, np.minimum(gain, MOST_GAIN) / GAIN_UNIT]).astype(np.float32)

    vectors = expected_vectors(dictionary)
    searched: dict[str, Any] = {}
    if is_large(pair.source.num_entities, pair.target.num_entities):
        by_terms = search_terms(vectors, PROPOSALS)
        nearest, searched = by_terms.pairs, {"recall": round(by_terms.recall, 4), "sampled": by_terms.sampled}
    else:
        pools = pair.entity_ids
        nearest = Pairs.of_candidates(find_candidates(vectors, pools[of_foreign], pools[of_words], EXPECTED, progress))
    if is_turned:
        nearest = Pairs.of(nearest.target_ids, nearest.source_ids)
    proposals = nearest.some(is_near(nearest, score(nearest)[:, 0], PROPOSALS)) if len(nearest) else nearest
    info = {"links": int(known.sum()), "dictionary": entries(dictionary, is_turned), **searched}
    meanings = ("share of both names that translates", "by how much the words are likelier than by chance (nats)")
    columns = ("translation", "words translated")
    return [Channel(DICTIONARY, columns, proposals, score, info, rows, meanings)]


def readable(pair: GraphPair, links: Links) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of both graphs as the channel of names has them; "" where none can be read."""
    from rlea.models.name_vectors import readable_names

    back = Links(links.target_ids, links.source_ids)
    return readable_names(pair.source, pair.target, links)[0], readable_names(pair.target, pair.source, back)[0]


def signs_apart(names: tuple[tuple[str, ...], tuple[str, ...]]) -> float:
    """By how much the share of names with other letters than Latin ones is larger in the source than in the target."""
    counts = [sum(name != "" for name in side) for side in names]
    if not all(counts):  # names of one graph alone translate into nothing
        return 0.0
    one, other = (sum(map(has_signs, side)) / count for side, count in zip(names, counts, strict=True))
    return one - other


def is_useful(pair: GraphPair) -> bool:
    """Whether the names of the graphs are in different letters, so that there is something to learn."""
    return abs(signs_apart(readable(pair, Links.empty()))) >= LEAST_APART


def entries(dictionary: CrossFitted, is_turned: bool) -> tuple[Entry, ...]:
    """What the dictionary has seen, the most often seen first; `is_turned` if it leads from target to source."""
    whole = dictionary.whole
    foreign, words = whole.foreign, whole.words
    phrase = np.repeat(np.arange(len(foreign.phrase_texts)), np.diff(whole.starts))
    chances = (whole.counts + whole.priors) / (whole.seen[phrase] + 3.0)
    found = _rows("word", foreign.phrase_texts, words.texts, phrase, whole.word_of, chances, whole.counts)
    width = whole.logs.shape[1]
    signs, chunks = whole.entry_keys // width, whole.entry_keys % width
    told = exp(whole.logs[signs, chunks].astype(np.float64))
    found += _rows("letters", foreign.sign_texts, (*words.chunk_texts, ""), signs, chunks, told, whole.entry_counts)
    if is_turned:
        found = [Entry(one.target, one.source, one.kind, one.probability, one.num_links) for one in found]
    return tuple(sorted(found, key=lambda one: (-one.num_links, -one.probability, one.kind, one.source, one.target)))


def _rows(
    kind: str,
    sources: tuple[str, ...],
    targets: tuple[str, ...],
    source_ids: NDArray[np.int64],
    target_ids: NDArray[np.int64],
    chances: NDArray[np.float64],
    counts: NDArray[np.float64],
) -> list[Entry]:
    kept = np.flatnonzero((counts >= LEAST_COUNT) & (chances >= LEAST_SHOWN))
    return [
        Entry(
            sources[source_ids[k]], targets[target_ids[k]], kind, round(float(chances[k]), 4), round(float(counts[k]))
        )
        for k in kept.tolist()
    ]
