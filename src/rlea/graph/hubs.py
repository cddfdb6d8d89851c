"""Pruning hubs: edges by which one entity has so many neighbours that they say next to nothing about it.

Where a matched pair is evidence for the pairs of its neighbours, n neighbours by a relation on one side and m on the
other make n * m pairs. In a large graph the few best-known entities have tens of thousands of neighbours by one
relation, so nearly all time and memory would go into the pairs that gain least.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rlea.graph import KnowledgeGraph

LARGE = 200_000  # entities from which on matchers over candidates do not see hubs (`deciders.Inputs.task`)
# Pairs of neighbours that an entity may cost on average: a few large hubs cost as much as all the rest together.
PAIRS_PER_ENTITY = 30
CROWD = 6_000  # neighbours by one relation: of two such hubs 36 million pairs would be looked at


def prune_hubs(graph: KnowledgeGraph, pairs_per_entity: float = PAIRS_PER_ENTITY) -> KnowledgeGraph:
    """The graph without the triples of its largest hubs, as many as needed for the rest to cost no more than wanted.

    A hub is an entity with one relation in one direction; with n neighbours it costs n * n pairs. Entities, relations,
    literals and names stay as they are.
    """
    sizes = _sizes(graph)
    # A triple of a hub with n neighbours stands for n pairs. (Most triples have a large hub at one end only.)
    triples_of_size = np.bincount(sizes)
    pairs = np.cumsum(triples_of_size * np.arange(len(triples_of_size)))
    largest = int(np.searchsorted(pairs, pairs_per_entity * graph.num_entities, side="right")) - 1
    keep = sizes <= max(largest, 1)
    return graph if bool(keep.all()) else replace(graph, triples=graph.triples[keep])


def prune_crowds(graph: KnowledgeGraph) -> KnowledgeGraph:
    """The graph without the triples of entities that thousands refer to by one relation: for graphs of any size."""
    sizes = _sizes(graph)
    return graph if sizes.max(initial=0) <= CROWD else replace(graph, triples=graph.triples[sizes <= CROWD])


def _sizes(graph: KnowledgeGraph) -> NDArray[np.int64]:
    """For every triple, how many neighbours its larger hub has by its relation."""
    heads, relations, tails = graph.triples.astype(np.int64).T
    return np.maximum(
        _group_sizes(heads * graph.num_relations + relations), _group_sizes(tails * graph.num_relations + relations)
    )


def _group_sizes(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """For every key, how many are equal to it."""
    _, number, counts = np.unique(keys, return_inverse=True, return_counts=True)
    return np.asarray(counts[number], dtype=np.int64)
