"""Entities differ in how much is known of them, and with that how well they are linked.

What is learned from seeds that are popular entities does not hold for the others. And where nothing is known of an
entity its link is not found, though it may be there.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rlea.graph import GraphPair, Ids, KnowledgeGraph, Links
from rlea.matching import Matching

# Largest distance between the two distributions at which seeds still speak for the others; a few differ by chance.
MOST_UNLIKE, BY_CHANCE = 0.4, 0.5
RICH = 4  # one entity of so many is rich in edges and literals


def are_like_the_rest(pair: GraphPair, seeds: Links) -> bool:
    """Whether entities of seeds have about as many edges and literals as all others."""
    parts = (pair.source, seeds.source_ids), (pair.target, seeds.target_ids)
    most = MOST_UNLIKE + BY_CHANCE / np.sqrt(max(1, len(seeds)))
    return all(distance(counts, ids) <= most for graph, ids in parts for counts in counts_of(graph))


def share_found(pair: GraphPair, pools: tuple[Ids, Ids], matching: Matching) -> float:
    """Of all right links the share that was found, if entities that little is known of are shared as often as others.

    `pools` are the entities that were to be linked. The quarter of them with the most edges and literals, and all
    with as many as the last of these, are taken to have found all of their right links: as many as a standard error
    below what is seen, which is chance in small graphs.
    """
    shares = []
    links = matching.source_ids, matching.target_ids
    for graph, pool, ids in zip((pair.source, pair.target), pools, links, strict=True):
        right = np.bincount(ids, weights=matching.confidences, minlength=graph.num_entities)[pool]
        edges, literals = counts_of(graph)
        counts = (edges + literals)[pool]
        best = right[counts >= np.sort(counts)[-max(1, len(pool) // RICH)]]
        mean = best.mean()
        shares.append(min(1.0, right.mean() / max(mean - np.sqrt(mean * (1 - mean) / len(best)), 1e-9)))
    return float(np.mean(shares)) or 1.0


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
