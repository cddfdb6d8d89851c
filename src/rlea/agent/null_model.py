"""Games in which every link is wrong: what coincidence looks like, seen without a label.

Entities of one graph are all different, so two disjoint halves of a graph are a pair with no true link. And an entity
whose match was taken out of the game has no true link left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rlea.agent.bootstrap import bootstrap
from rlea.agent.memory import Graphs
from rlea.agent.passes import Decisions, Problem
from rlea.evidence.channel import Channel, silent_channel
from rlea.evidence.collect import Evidence
from rlea.graph import GraphPair, Ids, KnowledgeGraph, Links
from rlea.progress import Progress
from rlea.search.pairs import Floats

ENOUGH = 1000  # links of a null model; small graphs are halved, and their matches taken out, several times ...
MOST_DRAWS = 6  # ... but not more often than this
HALVES, TAKEN_OUT = 11, 12  # uses of random numbers


@dataclass(frozen=True, eq=False)
class NullRows:
    """Features of links that are all wrong."""

    unrelated: Floats  # (num, num_features) between halves of one graph
    taken_out: Floats  # (num, num_features) of entities whose match was taken out ...
    places: NDArray[np.int64]  # (num,) ... and the place of that match among the pair's links
    num_halved: int  # entities that could have had a link of the first kind


@dataclass(frozen=True, eq=False)
class Player:
    """The agent as null models need it."""

    play: Callable[[Problem, list[Channel]], Decisions]
    describe: Callable[[Problem, list[Channel], Decisions], Floats]  # links -> (num_links, num_features)
    wanted: Sequence[str]  # channels that it listens to
    encoder: str = ""  # of names


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


def play_null(
    player: Player,
    evidence: Evidence,
    problem: Problem,
    channels: list[Channel],
    last: Decisions,
    num_features: int,
    progress: Progress,
) -> NullRows:
    """Play both null models of a problem that was decided; small ones are drawn several times."""
    graphs = evidence.pair.source, evidence.pair.target
    draws = num_draws(min(len(problem.source_ids), len(problem.target_ids)))
    halvings = num_draws(sum(graph.num_entities for graph in graphs) // 2)
    nothing = np.zeros((0, num_features), np.float32)
    taken_out, places, unrelated, num_halved = [nothing], [np.zeros(0, np.int64)], [nothing], 0
    for draw in range(draws):
        progress("agent: null models", draw, draws + halvings)
        less = take_out(problem, last, draw)
        decisions = player.play(less.problem, channels)
        freed = less.is_freed(decisions)
        taken_out.append(player.describe(less.problem, channels, decisions)[freed])
        places.append(less.matches_of(decisions, last)[freed])
    for draw in range(halvings):
        progress("agent: null models", draws + draw, draws + halvings)
        for graph, vectors in zip(graphs, ("source", "target"), strict=True):
            unrelated.append(play_halves(player, graph, draw, evidence, vectors, channels))
            num_halved += graph.num_entities // 2
    progress("agent: null models", draws + halvings, draws + halvings)
    return NullRows(np.concatenate(unrelated), np.concatenate(taken_out), np.concatenate(places), num_halved)


def play_halves(
    player: Player, graph: KnowledgeGraph, draw: int, evidence: Evidence, side: str, channels: list[Channel]
) -> Floats:
    """Features of the links that are found between two halves of one graph, by channels as the pair has them."""
    ids = split(graph, draw)
    pair = halve(graph, ids)
    rows = [getattr(part, side) for part in evidence.vectors]
    vectors = [
        replace(part, source=own[ids[0]], target=own[ids[1]]) for part, own in zip(evidence.vectors, rows, strict=True)
    ]
    made = Evidence(pair, encoder=player.encoder, vectors=vectors, searches_words=evidence.searches_words)
    start = bootstrap(Links.empty(), made.collect(Links.empty(), Links.empty(), player.wanted))
    found = {(one.name, one.columns): one for one in made.collect(Links.empty(), start.links, player.wanted)}
    alike = [found.get((one.name, one.columns)) or silent_channel(one.name, one.columns) for one in channels]
    problem = Problem(Graphs.of(pair.source, pair.target), Links.empty(), *pair.entity_ids)
    return player.describe(problem, alike, player.play(problem, alike))


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
