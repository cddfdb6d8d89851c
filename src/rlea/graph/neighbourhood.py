"""A graph seen from its entities: every triple from both its ends, and how identifying each relation is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlea.graph import Ids, KnowledgeGraph


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """Edges by entity. The edges of entity e are starts[e]:starts[e + 1], sorted by oriented relation.

    An oriented relation is `r` seen from the head and `r + num_relations` seen from the tail, so there are twice as
    many as relations, and a triple gives two edges. `functionality[o]` is 1 / (mean number of entities that o leads to
    from one entity): 1 where o leads to one entity only, near 0 where it leads to many. The inverse functionality of o
    is the functionality of the opposite orientation.
    """

    starts: NDArray[np.int64]  # (num_entities + 1,)
    relation_ids: Ids  # (num_edges,) oriented
    neighbour_ids: Ids  # (num_edges,)
    functionality: NDArray[np.float32]  # (2 * num_relations,)

    @staticmethod
    def of(graph: KnowledgeGraph, max_relations: int | None = None) -> Neighbourhood:
        """All edges of a graph; loops (head = tail) say nothing about neighbours and are left out.

        With `max_relations`, only the most frequent relations are kept, numbered anew from 0 in their old order.
        """
        triples = graph.triples[graph.triples[:, 0] != graph.triples[:, 2]]
        count = graph.num_relations
        if max_relations is not None and count > max_relations:
            kept = most_frequent(graph, max_relations)
            number = np.full(count, -1, dtype=np.int32)
            number[kept] = np.arange(max_relations, dtype=np.int32)
            triples = triples[number[triples[:, 1]] >= 0]
            triples = np.stack([triples[:, 0], number[triples[:, 1]], triples[:, 2]], axis=1)
            count = max_relations
        head, relation, tail = triples.T
        entity = np.concatenate([head, tail])
        oriented = np.concatenate([relation, relation + count]).astype(np.int32)
        neighbour = np.concatenate([tail, head])
        order = np.lexsort((neighbour, oriented, entity))
        starts = np.zeros(graph.num_entities + 1, dtype=np.int64)
        np.cumsum(np.bincount(entity, minlength=graph.num_entities), out=starts[1:])
        edges = np.bincount(oriented, minlength=2 * count)
        # Distinct entities that o leaves from: every (entity, o) once.
        keys = np.unique(entity.astype(np.int64) * (2 * count) + oriented) % max(2 * count, 1)
        leaving = np.bincount(keys, minlength=2 * count)
        functionality = (leaving / np.maximum(edges, 1)).astype(np.float32)
        return Neighbourhood(starts, oriented[order], neighbour[order].astype(np.int32), functionality)


def most_frequent(graph: KnowledgeGraph, count: int) -> Ids:
    """The relations with the most triples (loops do not count), at most `count` of them, in the order of their ids."""
    triples = graph.triples[graph.triples[:, 0] != graph.triples[:, 2]]
    frequency = np.bincount(triples[:, 1], minlength=graph.num_relations)
    return np.sort(np.argsort(-frequency, kind="stable")[:count]).astype(np.int32)
