"""The links so far: seeds with full weight, matches with their confidence; and which relations correspond."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numba
import numpy as np

from rlea.graph import GraphPair, Ids, KnowledgeGraph, Links
from rlea.graph.cannot_link import NO_PAIRS, CannotLink
from rlea.graph.hubs import prune_crowds, prune_hubs
from rlea.graph.neighbourhood import Neighbourhood
from rlea.graph.size import is_large
from rlea.search.pairs import Floats

MAX_RELATIONS = 4000  # a side; the table of correspondences then has at most 64 M cells, 256 MB
SMOOTHING = 1.0  # pseudo-count against relations seen only once or twice


@dataclass(frozen=True, eq=False)
class Graphs:
    """The neighbourhoods of two graphs, and the pairs that are never linked. Made once for a pair."""

    source: Neighbourhood
    target: Neighbourhood
    cannot_link: CannotLink = NO_PAIRS

    @staticmethod
    def of(source: KnowledgeGraph, target: KnowledgeGraph, cannot_link: CannotLink = NO_PAIRS) -> Graphs:
        # A match of two hubs is evidence for the pairs of all their neighbours, and for none of these much.
        prune = prune_hubs if is_large(source.num_entities, target.num_entities) else prune_crowds
        source, target = prune(source), prune(target)
        return Graphs(Neighbourhood.of(source, MAX_RELATIONS), Neighbourhood.of(target, MAX_RELATIONS), cannot_link)

    @staticmethod
    def of_pair(pair: GraphPair) -> Graphs:
        return Graphs.of(pair.source, pair.target, pair.cannot_link)

    @property
    def num_source(self) -> int:
        return len(self.source.starts) - 1

    @property
    def num_target(self) -> int:
        return len(self.target.starts) - 1


@dataclass(frozen=True, eq=False)
class Memory:
    """Links with weights. Seeds come first and weigh 1; matches weigh their confidence."""

    graphs: Graphs
    source_ids: Ids  # (num_links,)
    target_ids: Ids  # (num_links,)
    weights: Floats  # (num_links,) in [0, 1]
    num_seeds: int

    @staticmethod
    def of(graphs: Graphs, seeds: Links, source_ids: Any = (), target_ids: Any = (), weights: Any = ()) -> Memory:
        """Seeds and matches; matches of entities that have a seed are left out."""
        source, target = np.asarray(source_ids, np.int32), np.asarray(target_ids, np.int32)
        free = ~(np.isin(source, seeds.source_ids) | np.isin(target, seeds.target_ids))
        trusted = np.concatenate([np.ones(len(seeds), np.float32), np.asarray(weights, np.float32)[free]])
        return Memory(
            graphs,
            np.concatenate([seeds.source_ids, source[free]]),
            np.concatenate([seeds.target_ids, target[free]]),
            trusted,
            len(seeds),
        )

    @cached_property
    def counterparts(self) -> Ids:
        """The target of every source entity, or -1."""
        result = np.full(self.graphs.num_source, -1, np.int32)
        result[self.source_ids] = self.target_ids
        return result

    @cached_property
    def counterparts_back(self) -> Ids:
        """The source of every target entity, or -1."""
        result = np.full(self.graphs.num_target, -1, np.int32)
        result[self.target_ids] = self.source_ids
        return result

    @cached_property
    def trust(self) -> Floats:
        """The weight of every source entity's link, 0 without one."""
        result = np.zeros(self.graphs.num_source, np.float32)
        result[self.source_ids] = self.weights
        return result

    @cached_property
    def correspondence(self) -> Floats:
        """How well oriented relations o and p correspond: (source relations, target relations), in [0, 1].

        Edges between linked entities that are in both graphs, as o in one and as p in the other, over the geometric
        mean of the edges that each has; every edge weighs the product of the weights of its two ends.
        """
        source, target = self.graphs.source, self.graphs.target
        return np.asarray(
            _correspondence(
                source.starts,
                source.relation_ids,
                source.neighbour_ids,
                target.starts,
                target.relation_ids,
                target.neighbour_ids,
                self.counterparts,
                self.counterparts_back,
                self.trust,
                len(source.functionality),
                len(target.functionality),
                np.float32(SMOOTHING),
            )
        )


def supposed_correspondence(graphs: Graphs, links: Links) -> Floats:
    """How oriented relations seem to correspond by the entities that have them: (source, target relations), in [0, 1].

    Of few links hardly any two are neighbours, so no edge between linked entities says which relations correspond. But
    a relation that leads away from a linked entity is likely to correspond to one of those of its counterpart: the
    links where both are seen, less those that would be by coincidence, over the geometric mean of those where each is.
    """
    both = np.zeros((len(graphs.source.functionality), len(graphs.target.functionality)), np.float32)
    here, there = np.zeros(both.shape[0], np.float32), np.zeros(both.shape[1], np.float32)
    for source, target in zip(links.source_ids.tolist(), links.target_ids.tolist(), strict=True):
        own, other = _relations_of(graphs.source, source), _relations_of(graphs.target, target)
        both[np.ix_(own, other)] += 1
        here[own] += 1
        there[other] += 1
    chance = np.outer(here, there) / np.float32(max(1, len(links)))
    return np.asarray(np.maximum(both - chance, 0) / (np.sqrt(np.outer(here, there)) + SMOOTHING), np.float32)


def _relations_of(around: Neighbourhood, entity: int) -> Ids:
    """The oriented relations that lead away from an entity, each once."""
    return np.unique(around.relation_ids[around.starts[entity] : around.starts[entity + 1]])


def opposite(oriented: Ids, num_oriented: int) -> Ids:
    """The other orientation of relations: seen from the tail where it was the head."""
    half = num_oriented // 2
    return np.where(oriented >= half, oriented - half, oriented + half).astype(np.int32)


@numba.njit(cache=True)
def _correspondence(  # type: ignore[no-untyped-def]
    s_starts,
    s_relations,
    s_neighbours,
    t_starts,
    t_relations,
    t_neighbours,
    there,
    back,
    trust,
    num_s,
    num_t,
    smoothing,
):
    counts = np.zeros((num_s, num_t), np.float32)
    s_totals, t_totals = np.zeros(num_s, np.float64), np.zeros(num_t, np.float64)
    for s in range(len(there)):
        t = there[s]
        if t < 0:
            continue
        for i in range(s_starts[s], s_starts[s + 1]):
            n = s_neighbours[i]
            m = there[n]
            if m < 0:
                continue
            weight = trust[s] * trust[n]
            s_totals[s_relations[i]] += weight
            for j in range(t_starts[t], t_starts[t + 1]):
                if t_neighbours[j] == m:
                    counts[s_relations[i], t_relations[j]] += weight
        for j in range(t_starts[t], t_starts[t + 1]):
            n = back[t_neighbours[j]]
            if n >= 0:
                t_totals[t_relations[j]] += trust[s] * trust[n]
    for o in range(num_s):
        for p in range(num_t):
            if counts[o, p] > 0:
                counts[o, p] /= np.float32(np.sqrt(s_totals[o] * t_totals[p])) + smoothing
    return counts
