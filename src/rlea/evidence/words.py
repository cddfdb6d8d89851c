"""Words as vectors: all that is written about an entity, and about its neighbours, as one bag of words each.

A name is one text of many. "album by Brad Paisley" describes an entity of one graph, and in the other graph the album's
name or its neighbour has the same words. Words that only one graph has, or that are everywhere, say nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rlea.graph import GraphPair, KnowledgeGraph
from rlea.graph.names import is_readable
from rlea.graph.plain_names import plain
from rlea.graph.transliterate import transliterate
from rlea.search.bags import count_terms, weigh_terms
from rlea.search.embeddings import Embeddings

MOST_SHARED = 1 / 15  # of all entities that may have a word for it to count
FEW = 50  # entities that may have a word in any case


def word_vectors(pair: GraphPair) -> tuple[Embeddings, Embeddings]:
    """TF-IDF vectors of the words of every entity, and of these with its neighbours' words; unit rows, inner product.

    A word counts 1 + log(its number) times how rare it is among the entities of both graphs.
    """
    texts = [texts_of(graph) for graph in (pair.source, pair.target)]
    # Texts are words with blanks between them. One letter or digit is a word too: "Part 2". A word that occurs once
    # connects nothing.
    counts = count_terms(map(str.split, [*texts[0], *texts[1]]), least=2)
    # Words that only one graph has go at once: neighbours bring a graph no new ones.
    shared = np.flatnonzero(np.all([part.getnnz(axis=0) > 0 for part in _split(counts, len(texts[0]))], axis=0))
    own = _split(counts[:, shared], len(texts[0]))
    around = [part + neighbours_of(graph) @ part for part, graph in zip(own, (pair.source, pair.target), strict=True)]
    return _weigh(*own), _weigh(*around)


def texts_of(graph: KnowledgeGraph) -> list[str]:
    """What is written about every entity: its name and its literals, in Latin letters without accents and case."""
    texts: list[list[str]] = [[plain(transliterate(name))] if is_readable(name) else [] for name in graph.names]
    literals = graph.literals
    seen: dict[str, str] = {}  # values recur
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
