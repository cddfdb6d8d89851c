"""Entities of one graph that are the same thing: which pairs to look at, and how likely each is.

The channels compare the graph with itself and propose pairs. A pair of an entity with itself is left out, every other
pair stands once. Its log-odds come from its fields (`evidence/fields.py`): what agrees by chance is known from how many
entities have a value, and that of n entities one given pair is the same thing has odds of 1 to n beforehand.

Edges are fields, too. Where neighbours turn out to be duplicates, their edges lead to the same entity: so pairs are
judged again with the clusters that were found.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlea.arithmetic import exp, log
from rlea.clusters import Cluster, cluster_pairs
from rlea.evidence import ATTRIBUTES, NAMES, WORDS
from rlea.evidence.collect import Evidence
from rlea.evidence.fields import Fields, compare_fields, read_fields
from rlea.graph import GraphPair, KnowledgeGraph, Links
from rlea.progress import Progress, silent
from rlea.search.bags import count_terms, having, weigh_terms
from rlea.search.candidates import find_candidates
from rlea.search.embeddings import Embeddings
from rlea.search.pairs import Pairs

ROUNDS = 2  # of judging pairs where there are edges; a third changes nothing
PROPOSALS = 10  # nearest by shared neighbours
MOST_ODDS = 14.0  # log-odds beyond which more says nothing new
DIGITS = 6  # of a confidence: what differs between machines is beyond


@dataclass(frozen=True, eq=False)
class OwnPairs:
    """Pairs of entities of one graph, each once with the smaller id first, how likely each is, and the clusters."""

    pairs: Pairs
    confidences: NDArray[np.float64]  # (num_pairs,)
    clusters: list[Cluster]
    fields: Fields

    def rate(self, pairs: Pairs) -> NDArray[np.float64]:
        """Confidences of any pairs, (num_pairs,)."""
        return rate_pairs(pairs, self.fields)


def find_duplicates(
    graph: KnowledgeGraph,
    *,
    threshold: float = 0.5,
    forbidden: Iterable[tuple[int, int]] = (),
    progress: Progress = silent,
) -> OwnPairs:
    """Pairs that some channel proposes, how likely each is to be the same thing, and clusters of them.

    `threshold` is the least mean confidence of the pairs between two parts of a cluster. `forbidden` pairs are never in
    one cluster.
    """
    pairs = propose_pairs(graph, progress)
    barred = list(forbidden)
    same = list(range(graph.num_entities))
    rounds = ROUNDS if graph.num_triples else 1
    for number in range(rounds):
        progress("duplicates", number, rounds, f"{len(pairs):,} pairs")
        fields = read_fields(graph, same)
        confidences = rate_pairs(pairs, fields)
        keys = zip(pairs.source_ids.tolist(), pairs.target_ids.tolist(), strict=True)
        found = cluster_pairs(dict(zip(keys, confidences.tolist(), strict=True)), least=threshold, forbidden=barred)
        same = list(range(graph.num_entities))
        for cluster in found:
            for member in cluster.members:
                same[member] = cluster.members[0]
    progress("duplicates", rounds, rounds)
    return OwnPairs(pairs, confidences, found, fields)


def propose_pairs(graph: KnowledgeGraph, progress: Progress = silent) -> Pairs:
    """Pairs with similar names, words, values or neighbours, each once, none of an entity with itself."""
    pair = GraphPair("itself", graph, graph)
    ids = pair.entity_ids[0]
    # That every entity is itself says which attributes correspond, and which hold names.
    same = Links.of(ids, ids)
    channels = Evidence(pair, progress=progress).collect(Links.empty(), same, (NAMES, WORDS, ATTRIBUTES))
    every = Pairs.union([*(channel.proposals for channel in channels), propose_by_neighbours(graph)])
    kept = every.some(every.source_ids != every.target_ids)
    return Pairs.of(np.minimum(kept.source_ids, kept.target_ids), np.maximum(kept.source_ids, kept.target_ids))


def propose_by_neighbours(graph: KnowledgeGraph) -> Pairs:
    """Entities with many neighbours in common, by the same relations, rare ones first."""
    if not graph.num_triples:
        return Pairs.empty()
    bags: list[list[str]] = [[] for _ in graph.entities]
    for head, relation, tail in graph.triples.tolist():
        bags[head].append(f"{relation}>{tail}")
        bags[tail].append(f"{relation}<{head}")
    counts = count_terms(bags, least=2)
    rows = weigh_terms(counts, having(counts))
    ids = np.arange(graph.num_entities, dtype=np.int32)
    return Pairs.of_candidates(find_candidates(Embeddings(rows, rows, measure="inner"), ids, ids, PROPOSALS))


def rate_pairs(pairs: Pairs, fields: Fields) -> NDArray[np.float64]:
    """Probabilities that pairs are the same thing, (num_pairs,), by their fields and the number of entities."""
    num_entities = max(2, len(fields.starts) - 1)
    support, conflict = compare_fields(pairs.source_ids, pairs.target_ids, *fields)
    odds = np.clip(support - conflict - float(log(float(num_entities))), -MOST_ODDS, MOST_ODDS)
    return np.asarray(np.round(1 / (1 + exp(-odds)), DIGITS))
