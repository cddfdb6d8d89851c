"""Several entities for one: duplicates of a side are merged, the pair is aligned one-to-one, links are spread again.

A source with two targets is a source whose target stands twice in its graph. Merged, the two have all that is known of
them, and compete with nobody. Where there are no duplicates, nothing changes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rlea.agent.duplicates import find_duplicates
from rlea.graph import GraphPair, Ids, KnowledgeGraph, Links
from rlea.matching import Matching
from rlea.progress import Progress, silent

# Least mean confidence by which entities are merged: a wrong merger costs two links, a missing one costs one.
SURE = 0.8


@dataclass(frozen=True, eq=False)
class Side:
    """A graph in which duplicates are one entity, and which entities each of its own stands for."""

    graph: KnowledgeGraph
    new_ids: Ids  # (num_entities,) of the whole graph -> id in the merged one
    shares: NDArray[np.float64]  # (num_entities,) confidence that an entity belongs to its cluster

    @staticmethod
    def of(graph: KnowledgeGraph, is_merged: bool, progress: Progress = silent) -> Side:
        """The graph with its duplicates merged, or as it is."""
        first = np.arange(graph.num_entities, dtype=np.int32)
        shares = np.ones(graph.num_entities)
        for cluster in find_duplicates(graph, threshold=SURE, progress=progress).clusters if is_merged else []:
            members = list(cluster.members)
            first[members] = members[0]
            shares[members] = cluster.confidence
        new_ids = np.searchsorted(np.unique(first), first).astype(np.int32)
        return Side(graph.joined(first) if is_merged else graph, new_ids, shares)

    @property
    def num_merged(self) -> int:
        """Entities that went into another."""
        return len(self.new_ids) - self.graph.num_entities


@dataclass(frozen=True, eq=False)
class MergedPair:
    """A pair with the duplicates of one side or both merged."""

    source: Side
    target: Side

    @staticmethod
    def of(pair: GraphPair, cardinality: str, progress: Progress = silent) -> MergedPair:
        """Targets are merged for 1:n, sources for n:1, both for n:m."""
        one, other = cardinality.split(":")
        return MergedPair(Side.of(pair.source, one != "1", progress), Side.of(pair.target, other != "1", progress))

    def merge(self, pair: GraphPair) -> GraphPair:
        """The pair between merged graphs; of links that are in conflict now, the first is kept."""
        train, valid, test = (self._merge_links(links) for links in (pair.train, pair.valid, pair.test))
        return replace(pair, source=self.source.graph, target=self.target.graph, train=train, valid=valid, test=test)

    def spread(self, matching: Matching) -> Matching:
        """Every link between merged entities as links between all that they stand for.

        A link is as sure as that of the merged entities, times that both of its ends belong to them.
        """
        found = []
        for side, ids in ((self.source, matching.source_ids), (self.target, matching.target_ids)):
            order = np.argsort(side.new_ids, kind="stable")
            starts = np.searchsorted(side.new_ids[order], np.arange(side.graph.num_entities + 1))
            found.append([order[starts[one] : starts[one + 1]] for one in ids.tolist()])
        sources = [np.repeat(one, len(other)) for one, other in zip(*found, strict=True)]
        targets = [np.tile(other, len(one)) for one, other in zip(*found, strict=True)]
        nothing = np.zeros(0, np.int64)
        source_ids, target_ids = np.concatenate([nothing, *sources]), np.concatenate([nothing, *targets])
        chances = np.repeat(matching.confidences, [len(part) for part in sources])
        return Matching.of(
            source_ids, target_ids, chances * self.source.shares[source_ids] * self.target.shares[target_ids]
        )

    def _merge_links(self, links: Links) -> Links:
        ends = self.source.new_ids[links.source_ids], self.target.new_ids[links.target_ids]
        kept, taken = dict[int, int](), set[int]()
        for one, other in zip(*(part.tolist() for part in ends), strict=True):
            if one not in kept and other not in taken:
                kept[one] = other
                taken.add(other)
        return Links.of(list(kept), list(kept.values()))
