"""Several entities for one: duplicates of a side are merged, the pair is aligned one-to-one, links are spread again.

A source with two targets is a source whose target stands twice in its graph. Merged, the two have all that is known of
them, and compete with nobody. Where there are no duplicates, nothing changes. Seeds say which entities are one, and
which are not: those of one source are, those of two sources are not, unless these may be one as well.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rlea.agent.duplicates import Known, find_duplicates
from rlea.graph import GraphPair, Ids, KnowledgeGraph, Links
from rlea.matching import Matching
from rlea.progress import Progress, silent
from rlea.search.pairs import Pairs, numbers

# Least mean confidence by which entities are merged: a wrong merger costs two links, a missing one costs one.
SURE = 0.8
MOST_RATED = 50  # members of a cluster up to which every pair is rated; of more, equal ones for the most part, the mean


@dataclass(frozen=True, eq=False)
class Side:
    """A graph in which duplicates are one entity, and which entities each of its own stands for."""

    graph: KnowledgeGraph
    new_ids: Ids  # (num_entities,) of the whole graph -> id in the merged one
    # (num_entities,) how likely an entity is to have the link of what it went into, if that is right.
    shares: NDArray[np.float64]

    @staticmethod
    def whole(graph: KnowledgeGraph) -> Side:
        """The graph as it is."""
        return Side(graph, np.arange(graph.num_entities, dtype=np.int32), np.ones(graph.num_entities))

    @staticmethod
    def of(graph: KnowledgeGraph, known: Known, progress: Progress = silent) -> Side:
        """The graph with its duplicates merged."""
        first = np.arange(graph.num_entities, dtype=np.int32)
        shares = np.ones(graph.num_entities)
        found = find_duplicates(graph, threshold=SURE, known=known, progress=progress)
        certain = {one: number for number, group in enumerate(known.together) for one in group}
        for cluster in found.clusters:
            members = list(cluster.members)
            first[members] = members[0]
            if len(members) > MOST_RATED:
                shares[members] = cluster.confidence
                continue
            # Of a few that were joined by mistake one has the link, and it may be any of them.
            chance = 1 / len(members)
            for one in members:
                others = np.array([other for other in members if other != one], np.int32)
                rated = found.rate(Pairs(np.full(len(others), one, np.int32), others))
                is_same = [certain.get(int(other), -1) == certain.get(one, -2) for other in others]
                belongs = float(np.where(is_same, 1.0, rated).mean())
                shares[one] = belongs + (1 - belongs) * chance
        new_ids = np.searchsorted(np.unique(first), first).astype(np.int32)
        return Side(graph.joined(first), new_ids, shares)

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
        is_merged = [one != "1" for one in cardinality.split(":")]
        sides = [
            Side.of(graph, known_of(pair, is_target, all(is_merged)), progress) if merges else Side.whole(graph)
            for is_target, (graph, merges) in enumerate(zip((pair.source, pair.target), is_merged, strict=True))
        ]
        return MergedPair(*sides)

    def merge(self, pair: GraphPair) -> GraphPair:
        """The pair between merged graphs; of links that are in conflict now, the first is kept."""
        train, valid, test = (self._merge_links(links) for links in (pair.train, pair.valid, pair.test))
        barred = pair.cannot_link.joined(self.source.new_ids, self.target.new_ids)
        own = replace(pair, source=self.source.graph, target=self.target.graph, cannot_link=barred)
        return replace(own, train=train, valid=valid, test=test)

    def spread(self, matching: Matching, seeds: Links | None = None) -> Matching:
        """Every link between merged entities as links between all that they stand for.

        A link is as sure as that of the merged entities, times that both of its ends have it then. `seeds` are links of
        the whole pair: of entities that were merged with theirs there are links, too, and of themselves none.
        """
        known = Links.empty() if seeds is None else seeds
        merged = self._merge_links(known)
        ids = [
            np.concatenate([own, of_seeds])
            for own, of_seeds in (
                (matching.source_ids, merged.source_ids),
                (matching.target_ids, merged.target_ids),
            )
        ]
        confidences = np.concatenate([matching.confidences, np.ones(len(merged))])
        found = []
        for side, own in zip((self.source, self.target), ids, strict=True):
            order = np.argsort(side.new_ids, kind="stable")
            starts = np.searchsorted(side.new_ids[order], np.arange(side.graph.num_entities + 1))
            found.append([order[starts[one] : starts[one + 1]] for one in own.tolist()])
        sources = [np.repeat(one, len(other)) for one, other in zip(*found, strict=True)]
        targets = [np.tile(other, len(one)) for one, other in zip(*found, strict=True)]
        nothing = np.zeros(0, np.int64)
        source_ids, target_ids = np.concatenate([nothing, *sources]), np.concatenate([nothing, *targets])
        chances = np.repeat(confidences, [len(part) for part in sources])
        links = Matching.of(
            source_ids, target_ids, chances * self.source.shares[source_ids] * self.target.shares[target_ids]
        )
        own, given = (numbers(Pairs(part.source_ids, part.target_ids)) for part in (links, known))
        return links.some(~np.isin(own, given))

    def _merge_links(self, links: Links) -> Links:
        ends = self.source.new_ids[links.source_ids], self.target.new_ids[links.target_ids]
        kept, taken = dict[int, int](), set[int]()
        for one, other in zip(*(part.tolist() for part in ends), strict=True):
            if one not in kept and other not in taken:
                kept[one] = other
                taken.add(other)
        return Links.of(list(kept), list(kept.values()))


def known_of(pair: GraphPair, is_target: int, both: bool) -> Known:
    """What seeds and pairs that are never linked say of the entities of one side; `both` sides are merged."""
    seeds = list(zip(pair.train.source_ids.tolist(), pair.train.target_ids.tolist(), strict=True))
    apart = pair.cannot_link.pairs
    if not is_target:
        seeds, apart = ([(other, one) for one, other in pairs] for pairs in (seeds, apart))
    # The number of the group of every entity: those that seeds lead to from one of the other side, or in several steps.
    group_of, groups = dict[int, int](), dict[int, set[int]]()
    partner = dict[int, int]()  # of an entity of the other side
    for other, one in seeds:
        number = group_of.setdefault(one, one)
        groups.setdefault(number, {one})
        if other in partner and group_of[partner[other]] != number:
            joined = groups.pop(group_of[partner[other]])
            groups[number] |= joined
            group_of.update(dict.fromkeys(joined, number))
        partner[other] = one
    forbidden = {
        (min(one, same), max(one, same))
        for other, one in apart
        if other in partner
        for same in groups[group_of[partner[other]]]
        if one != same
    }
    together = [sorted(own) for own in groups.values() if len(own) > 1]
    # Where the other side is not merged, its entities are different ones, and so are theirs here.
    return Known(together=together, forbidden=sorted(forbidden), labels={} if both else group_of)
