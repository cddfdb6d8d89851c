"""Games in which every link is wrong: what coincidence looks like, seen without a label.

Entities of one graph are all different, so two disjoint halves of a graph are a pair with no true link. And an entity
whose match was taken out of the game has no true link left.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlea.agent.passes import Decisions, Problem
from rlea.graph import GraphPair, Ids, KnowledgeGraph

ENOUGH = 1000  # links of a null model; small graphs are halved, and their matches taken out, several times ...
MOST_DRAWS = 6  # ... but not more often than this
HALVES, TAKEN_OUT = 11, 12  # uses of random numbers


@dataclass(frozen=True, eq=False)
class TakenOut:
    """A problem without some matched entities, and the entities that were matched with them."""

    problem: Problem
    source_ids: Ids  # whose targets are gone
    target_ids: Ids  # whose sources are gone

    def is_freed(self, decisions: Decisions) -> NDArray[np.bool_]:
        """Which links are of an entity whose match was taken out."""
        return np.isin(decisions.source_ids, self.source_ids) | np.isin(decisions.target_ids, self.target_ids)

    def matches_of(self, decisions: Decisions, before: Decisions) -> NDArray[np.int64]:
        """For every link of a freed entity the place, among those before, of the match that this entity had."""
        graphs = self.problem.graphs
        by_source, by_target = np.zeros(graphs.num_source, np.int64), np.zeros(graphs.num_target, np.int64)
        by_source[before.source_ids] = by_target[before.target_ids] = np.arange(len(before.source_ids))
        is_source = np.isin(decisions.source_ids, self.source_ids)
        return np.where(is_source, by_source[decisions.source_ids], by_target[decisions.target_ids])


def take_out(problem: Problem, decisions: Decisions, draw: int) -> TakenOut:
    """Of a quarter of the links the target is taken out, of another quarter the source."""
    order = np.random.default_rng([draw, TAKEN_OUT]).permutation(len(decisions.source_ids))
    quarter = (len(order) + 3) // 4
    no_target, no_source = order[:quarter], order[quarter : 2 * quarter]
    less = Problem(
        problem.graphs,
        problem.seeds,
        problem.source_ids[~np.isin(problem.source_ids, decisions.source_ids[no_source])],
        problem.target_ids[~np.isin(problem.target_ids, decisions.target_ids[no_target])],
    )
    return TakenOut(less, decisions.source_ids[no_target], decisions.target_ids[no_source])


def split(graph: KnowledgeGraph, draw: int) -> tuple[Ids, Ids]:
    """Ids of two disjoint halves of the entities, ascending."""
    order = np.random.default_rng([draw, HALVES, graph.num_entities]).permutation(graph.num_entities)
    one, other = np.array_split(order.astype(np.int32), 2)
    return np.sort(one), np.sort(other)


def halve(graph: KnowledgeGraph, ids: tuple[Ids, Ids]) -> GraphPair:
    """The two halves as a pair. Triples from one half to the other are lost."""
    return GraphPair("halves", graph.some(ids[0]), graph.some(ids[1]))


def num_draws(num_links: int) -> int:
    """How often to draw a null model, for enough links of it."""
    return int(min(MOST_DRAWS, max(1, -(-ENOUGH // max(1, num_links)))))
