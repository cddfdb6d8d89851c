"""An index of the names of a graph, searched for one text at a time and exactly.

Names are compared by the cosine of their pieces, two to four letters in a row, weighted by rarity, as by
`rlea.search.name_pieces`, which compares all names of two graphs at once. A text is compared with every name that has
a piece of it. For 100,000 names that takes a few milliseconds, so nothing is approximated.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numba
import numpy as np
from numpy.typing import NDArray

from rlea.arithmetic import log
from rlea.graph import Ids, KnowledgeGraph
from rlea.graph.names import LABELS, SECOND_LABELS, is_name, plain
from rlea.graph.transliterate import transliterate
from rlea.search.pairs import Floats

LONGEST = 300  # letters of a text that are read


def pieces_of(text: str) -> Counter[str]:
    """The pieces of a text and how often it has each; of another script, those of its Latin form as well."""
    text = text[:LONGEST]
    forms = dict.fromkeys((plain(text), plain(transliterate(text))))  # in this order: pieces are numbered as they come
    counts: Counter[str] = Counter()
    for form in forms:
        counts |= Counter(
            spaced[start : start + size]
            for spaced in (f" {word} " for word in form.split())
            for size in (2, 3, 4)
            for start in range(len(spaced) - size + 1)
        )
    return counts


@lru_cache(maxsize=10_000)
def words_of(text: str) -> frozenset[str]:
    """The words of a text; codes with hyphens in one piece as well.

    >>> sorted(words_of("Sony PS-LX350H"))
    ['lx350h', 'ps', 'pslx350h', 'sony']
    """
    text = transliterate(text[:LONGEST])
    return frozenset((*plain(text).split(), *(plain(part).replace(" ", "") for part in text.split()))) - {""}


def names_of(graph: KnowledgeGraph) -> list[tuple[int, str]]:
    """Every entity with its name and all its other labels, each text once; codes such as Q42 are no names."""
    found = {
        (number, name): None
        for number, (name, identifier) in enumerate(zip(graph.names, graph.entities, strict=True))
        if is_name(name, identifier)
    }
    wanted = [number for number, name in enumerate(graph.attributes) if name in (*LABELS, *SECOND_LABELS)]
    literals = graph.literals
    for row in np.flatnonzero(np.isin(literals.attribute_ids, wanted)).tolist():
        found[int(literals.entity_ids[row]), literals.values[row]] = None
    return list(found)


@dataclass(frozen=True, eq=False)
class NameSearch:
    """Names of entities, and for every piece the names that have it."""

    owners: Ids  # (num_names,) the entity of every name
    others: Mapping[int, tuple[str, ...]]  # entity -> names beside the one that the graph has for it
    num_entities: int
    numbers: Mapping[str, int]  # piece -> its number
    rarities: NDArray[np.float64]  # (num_pieces + 1,), the last is that of a piece that no name has
    starts: NDArray[np.int64]  # (num_pieces + 1,)
    names: Ids  # the names that have a piece, piece after piece
    weights: Floats  # of the piece in that name
    words: Mapping[str, int]  # word -> names that have it

    @staticmethod
    def build(graph: KnowledgeGraph) -> NameSearch:
        """The index of all names of a graph."""
        from scipy.sparse import csr_matrix

        named = names_of(graph)
        others: dict[int, tuple[str, ...]] = {}
        for entity, name in named:
            if name != graph.names[entity]:
                others[entity] = (*others.get(entity, ()), name)
        numbers: defaultdict[str, int] = defaultdict()
        numbers.default_factory = numbers.__len__
        pieces, counts, ends = array("i"), array("i"), array("q", [0])
        for _, name in named:
            found = pieces_of(name)
            pieces.extend([numbers[piece] for piece in found])
            counts.extend(found.values())
            ends.append(len(pieces))
        columns = np.array(pieces, np.int32)
        having = np.bincount(columns, minlength=len(numbers))
        rarities = log((1 + len(named)) / (1 + np.append(having, 0))) + 1
        values = (1 + log(np.array(counts, np.int32))) * rarities[columns]
        rows = np.repeat(np.arange(len(named)), np.diff(ends))
        values /= np.sqrt(np.bincount(rows, weights=values**2, minlength=len(named)))[rows]
        shape = (len(named), max(len(numbers), 1))
        by_piece = csr_matrix((values.astype(np.float32), columns, np.array(ends, np.int64)), shape=shape).tocsc()
        return NameSearch(
            np.array([entity for entity, _ in named], np.int32),
            others,
            graph.num_entities,
            dict(numbers),
            rarities,
            by_piece.indptr.astype(np.int64),
            by_piece.indices.astype(np.int32),
            by_piece.data,
            Counter(word for _, name in named for word in words_of(name)),
        )

    def rarity(self, one: frozenset[str], other: frozenset[str]) -> float:
        """How rare the rarest word is that two names share: 0 for none or one that all names have, 1 for one name."""
        fewest = min((self.words.get(word, 0) for word in one & other), default=0)
        if fewest == 0:
            return 0.0
        total = len(self.owners) + 1
        return float(log(total / (fewest + 1)) / log(total / 2)) if total > 2 else 1.0

    def find(self, text: str, k: int, allowed: NDArray[np.bool_] | None = None) -> tuple[Ids, Floats]:
        """The k entities whose names are most alike, best first, and their cosines; of equal ones the first by number.

        `allowed` (num_entities,) says who may be found. Entities that share no piece with the text are not found.
        """
        counts = pieces_of(text)
        known = sorted((self.numbers[piece], count) for piece, count in counts.items() if piece in self.numbers)
        if not known:
            return np.zeros(0, np.int32), np.zeros(0, np.float32)
        pieces = np.array([piece for piece, _ in known], np.int64)
        weights = (1 + log([count for _, count in known])) * self.rarities[pieces]
        strange = sorted(count for piece, count in counts.items() if piece not in self.numbers)
        rest = (1 + log(strange)) * self.rarities[-1]
        length = np.sqrt(np.cumsum(np.concatenate([weights, rest]) ** 2)[-1])
        if allowed is None:
            allowed = np.ones(self.num_entities, np.bool_)
        own = (weights / length).astype(np.float32)
        ids, scores = _find(pieces, own, self.starts, self.names, self.weights, self.owners, allowed, k)
        return ids, np.minimum(scores, np.float32(1))


@numba.njit(cache=True, nogil=True)
def _find(pieces, weights, starts, names, values, owners, allowed, k):  # type: ignore[no-untyped-def]
    sums = np.zeros(len(owners), np.float32)
    for place in range(len(pieces)):
        weight = weights[place]
        for p in range(starts[pieces[place]], starts[pieces[place] + 1]):
            sums[names[p]] += weight * values[p]
    best = np.zeros(len(allowed), np.float32)  # of the names of each entity
    for name in range(len(owners)):
        if sums[name] > best[owners[name]]:
            best[owners[name]] = sums[name]
    ids, scores = np.full(k, -1, np.int32), np.zeros(k, np.float32)
    filled = 0
    for entity in range(len(allowed)):
        score = best[entity]
        if score <= 0.0 or not allowed[entity] or (filled == k and score <= scores[k - 1]):
            continue
        place = min(filled, k - 1)
        while place > 0 and scores[place - 1] < score:
            ids[place], scores[place] = ids[place - 1], scores[place - 1]
            place -= 1
        ids[place], scores[place] = entity, score
        filled = min(filled + 1, k)
    return ids[:filled].copy(), scores[:filled].copy()
