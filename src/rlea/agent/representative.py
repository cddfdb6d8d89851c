"""Are seeds like the entities that are to be linked? What is learned from popular ones does not hold for the others."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rlea.graph import GraphPair, Ids, KnowledgeGraph, Links

# Largest distance between the two distributions at which seeds still speak for the others; a few differ by chance.
MOST_UNLIKE, BY_CHANCE = 0.4, 0.5


def are_like_the_rest(pair: GraphPair, seeds: Links) -> bool:
    """Whether entities of seeds have about as many edges and literals as all others."""
    parts = (pair.source, seeds.source_ids), (pair.target, seeds.target_ids)
    most = MOST_UNLIKE + BY_CHANCE / np.sqrt(max(1, len(seeds)))
    return all(distance(counts, ids) <= most for graph, ids in parts for counts in counts_of(graph))


def counts_of(graph: KnowledgeGraph) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """How many edges every entity has, and how many literals."""
    edges = np.bincount(graph.triples[:, [0, 2]].ravel(), minlength=graph.num_entities)
    return edges, np.bincount(graph.literals.entity_ids, minlength=graph.num_entities)


def distance(counts: NDArray[np.int64], ids: Ids) -> float:
    """Between the distribution of counts over these entities and over the others, in [0, 1] (Kolmogorov, Smirnov)."""
    others = np.delete(counts, ids)
    if not len(ids) or not len(others):
        return 0.0
    steps = np.unique(counts)
    shares = [np.searchsorted(np.sort(part), steps, side="right") / len(part) for part in (counts[ids], others)]
    return float(np.abs(shares[0] - shares[1]).max())
