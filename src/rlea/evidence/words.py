"""Word vectors: all texts about an entity, and those about its neighbours, as bags of words, of letters, of codes.

A name is one text of many. "album by Brad Paisley" may describe an entity in one graph, while in the other graph the
album's name or its neighbour has the same words. Words of only one graph, and very frequent words, are left out.
Letters, three in a row, find what words do not: other spellings, and typos. Codes such as model numbers tell variants
of one thing apart; they are compared without their hyphens (KXTS108W, KX-TS108W).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from rlea.evidence import WORDS
from rlea.evidence.channel import Channel
from rlea.evidence.vectors import by_products
from rlea.graph import GraphPair, KnowledgeGraph
from rlea.graph.hubs import prune_hubs
from rlea.graph.names import is_readable, plain
from rlea.graph.size import is_large
from rlea.graph.transliterate import transliterate
from rlea.progress import Progress, tick
from rlea.search.bags import count_terms, weigh_terms
from rlea.search.candidates import find_candidates
from rlea.search.embeddings import Embeddings
from rlea.search.pairs import Pairs
from rlea.search.rare_terms import search_terms

MOST_SHARED = 1 / 15  # a word that a larger share of all entities has is left out ...
FEW = 50  # ... if at least so many entities have it
AROUND, CODES = "words around", "codes"
SHORTEST_CODE, LONGEST_CODE = 3, 40  # characters of a code of letters and digits
MANY_DIGITS = 5  # of a code of digits alone: shorter ones are counts and years
_DIGIT, _LETTER, _SEPARATORS = re.compile("[0-9]"), re.compile(r"[^\W\d_]"), re.compile(r"[\W_]+")
_MOMENT = re.compile(r"[+-]?[0-9]{4,6}-[0-9]{2}")
PROPOSALS = 10  # nearest of every entity, both ways
PROPOSALS_IN_LARGE = (
    5  # in large graphs, where they are found by rare terms: four kinds of vectors propose as many each
)


def word_vectors(pair: GraphPair) -> tuple[Embeddings, ...]:
    """TF-IDF vectors of every entity, by inner product: words, these with its neighbours' words, letters, codes.

    Rows have unit length. A word, or three letters in a row, weighs 1 + log(count) times its rarity among the entities
    of both graphs.
    """
    texts = [texts_of(graph) for graph in (pair.source, pair.target)]
    # Words are separated by blanks; a letter or digit is a word too ("Part 2"). A word of one entity links nothing.
    counts = count_terms(map(str.split, [*texts[0], *texts[1]]), least=2)
    # Words of only one graph are dropped first: neighbours add no new ones to a graph.
    shared = np.flatnonzero(np.all([part.getnnz(axis=0) > 0 for part in _split(counts, len(texts[0]))], axis=0))
    own = _split(counts[:, shared], len(texts[0]))
    graphs = pair.source, pair.target
    if is_large(*(graph.num_entities for graph in graphs)):  # what a crowd refers to tells nobody from the others
        graphs = prune_hubs(pair.source), prune_hubs(pair.target)
    around = [part + neighbours_of(graph) @ part for part, graph in zip(own, graphs, strict=True)]
    tick("letters")
    letters = _split(count_terms(map(trigrams, [*texts[0], *texts[1]]), least=2), len(texts[0]))
    codes = _split(count_terms([*codes_of(pair.source), *codes_of(pair.target)], least=2), len(texts[0]))
    return _weigh(*own), _weigh(*around), _weigh(*letters), _weigh(*codes)


def trigrams(text: str) -> Iterator[str]:
    """Three letters in a row, of every word with a blank before and after it."""
    for word in text.split():
        spaced = f" {word} "
        for start in range(len(spaced) - 2):
            yield spaced[start : start + 3]


def codes_of(graph: KnowledgeGraph) -> list[list[str]]:
    """The codes in the texts of every entity: model numbers and the like, in lower case and without hyphens."""
    # A name that is nothing but a code is an identifier, which means nothing in another graph.
    result: list[list[str]] = [codes_in(name) if is_readable(name) else [] for name in graph.names]
    literals = graph.literals
    seen: dict[str, list[str]] = {}  # values repeat
    for entity, value in zip(literals.entity_ids.tolist(), literals.values, strict=True):
        if value not in seen:
            seen[value] = codes_in(value)
        result[entity] += seen[value]
    return result


def codes_in(text: str) -> list[str]:
    """Words of letters and digits, as they are and without what separates their parts; within a text, long numbers too.

    A value that is nothing but a number or a date is no code.

    >>> codes_in("Panasonic KX-TS108W, white, since 2019-10-01T00:00:00")
    ['kxts108w', 'ts108w']
    """
    found: list[str] = []
    if not _LETTER.search(text):
        return found
    for word in text.split():
        if not _DIGIT.search(word) or len(word) > LONGEST_CODE or _MOMENT.match(word):
            continue
        parts = _SEPARATORS.split(word.lower())
        for code in dict.fromkeys(["".join(parts), *parts]):
            shortest = MANY_DIGITS if code.isdigit() else SHORTEST_CODE
            if len(code) >= shortest and not code.isalpha():
                found.append(code)
    return found


def texts_of(graph: KnowledgeGraph) -> list[str]:
    """The texts of every entity, its name and literals, in Latin letters without accents and case."""
    texts: list[list[str]] = [[plain(transliterate(name))] if is_readable(name) else [] for name in graph.names]
    literals = graph.literals
    seen: dict[str, str] = {}  # values repeat
    for entity, value in zip(literals.entity_ids.tolist(), literals.values, strict=True):
        if value not in seen:
            seen[value] = plain(transliterate(value))
        texts[entity].append(seen[value])
    return [" ".join(parts) for parts in texts]


def neighbours_of(graph: KnowledgeGraph) -> Any:
    """How many triples join any two entities, a sparse (num_entities, num_entities) matrix."""
    from scipy.sparse import csr_matrix

    heads, tails = graph.triples[:, 0], graph.triples[:, 2]
    shape = (graph.num_entities, graph.num_entities)
    joins = csr_matrix((np.ones(len(heads), np.float32), (heads, tails)), shape=shape)
    return joins + joins.T


def _split(rows: Any, num_source: int) -> tuple[Any, Any]:
    return rows[:num_source], rows[num_source:]


def _weigh(source: Any, target: Any) -> Embeddings:
    from scipy.sparse import csr_matrix, vstack

    num_source, num_entities = source.shape[0], source.shape[0] + target.shape[0]
    both = vstack([source, target]).tocsr()
    shares = source.getnnz(axis=0), target.getnnz(axis=0)
    known = shares[0] + shares[1]
    kept = np.flatnonzero((shares[0] > 0) & (shares[1] > 0) & (known <= max(FEW, MOST_SHARED * num_entities)))
    if not len(kept):
        nothing = csr_matrix(np.zeros((num_entities, 1), np.float32))
        return Embeddings(nothing[:num_source], nothing[num_source:], name="words", measure="inner")
    both = weigh_terms(both[:, kept], known[kept])
    return Embeddings(both[:num_source], both[num_source:], name="words", measure="inner")


def word_channels(pair: GraphPair, progress: Progress, proposed: int = PROPOSALS_IN_LARGE) -> list[Channel]:
    """The words of an entity, these with its neighbours' words, its letters, and its codes.

    In large graphs each of them proposes so many partners for an entity.
    """
    channels = []
    columns = {
        "words": "similarity of the shared words",
        AROUND: "similarity of the neighbours' words",
        "letters": "similarity of the letters of all texts",
        CODES: "similarity of the codes in all texts",
    }
    has_edges = all(len(graph.triples) for graph in (pair.source, pair.target))
    for (column, meaning), vectors in zip(columns.items(), word_vectors(pair), strict=True):
        if column == AROUND and not has_edges:  # of a table these are its own words, which would count twice
            continue
        tick(column)
        info: dict[str, Any] = {"words": int(vectors.source.shape[1])}
        if is_large(pair.source.num_entities, pair.target.num_entities):
            by_terms = search_terms(vectors, proposed)
            found = by_terms.pairs
            info |= {"recall": round(by_terms.recall, 4), "sampled": by_terms.sampled}
        else:
            found = Pairs.of_candidates(find_candidates(vectors, *pair.entity_ids, PROPOSALS, progress))
        channels.append(by_products(WORDS, column, meaning, vectors, found, info))
    return channels
