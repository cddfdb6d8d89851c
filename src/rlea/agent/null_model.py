"""Games in which every link is wrong: what coincidence looks like, seen without a label.

Entities of one graph are all different, so two disjoint halves of a graph are a pair with no true link. And an entity
whose match was taken out of the game has no true link left. In halves an entity has fewer rivals than in the pair;
halves of these halves show what that does.

Few matches are taken out at a time, and neighbours are taken as they are matched in the pair. Else what is found in
place of a match would have fewer matched neighbours than the pair's own wrong links have, and would look worse.

A large pair is not played as often again. Few matches are taken out, and only what is around them is decided again. And
not the graphs are halved, but parts of them that lie together; how much likelier coincidences become as rivals grow is
seen between halves and quarters of these, and is taken to go on so up to the number of rivals in the pair.

Where one graph is larger than the other, halves are as unequal as the two are: the more rivals an entity has to choose
from, the better the best of them looks. The smaller graph then has too few, and is left out. Of n entities against N, N
are rivals in the pair, N / (n + N) of these in the halves, and the same share of the latter in halves of halves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from rlea.agent.bootstrap import bootstrap
from rlea.agent.memory import Graphs
from rlea.agent.passes import Decisions, Problem
from rlea.evidence.channel import Channel, silent_channel
from rlea.evidence.collect import Evidence
from rlea.graph import GraphPair, Ids, KnowledgeGraph, Links
from rlea.graph.hubs import prune_hubs
from rlea.graph.neighbourhood import Neighbourhood
from rlea.graph.size import is_large
from rlea.progress import Progress
from rlea.search.pairs import Floats, Pairs
from rlea.tasks import begin, shared

ENOUGH_HALVED = 1000  # links between halves of graphs; small graphs are halved several times for as many
ENOUGH_TAKEN_OUT = 4000  # matches taken out, which cost less than halves: no evidence is gathered anew
PARTS = 10  # of the links: one of them loses its targets at a time, another one its sources
MOST_DRAWS = 10  # of a null model
SIMILAR = 2 / 3  # of the size of the larger graph that the smaller one must have to be halved as well
SIDES = "source", "target"
REGION = 20_000  # entities of a large graph that are halved ...
STARTS = 100  # ... around one in so many of them
HALVES, TAKEN_OUT, REGIONS = 11, 12, 13  # uses of random numbers


@dataclass(frozen=True, eq=False)
class Played:
    """A game that was played: the problem, its channels, and what was decided."""

    problem: Problem
    channels: list[Channel]  # empty where nobody needs them any more
    decisions: Decisions
    features: Floats  # (num_links, num_features) of the channels
    logits: Floats  # (num_pairs,) that the channels make of all pairs of the decisions


@dataclass(frozen=True, eq=False)
class Player:
    """The agent as null models need it."""

    play: Callable[[Problem, list[Channel]], Played]
    replay: Callable[[Problem, Played], Played]  # the last pass of a game again, with fewer entities to be matched
    wanted: Sequence[str]  # channels that it listens to


@dataclass(frozen=True, eq=False)
class NullGame:
    """A game of a null model, and which of its links count."""

    game: Played
    is_null: NDArray[np.bool_]  # (num_links,) known to be wrong
    places: NDArray[np.int64]  # (num_links,) of matches taken out: the place among the pair's links; else empty
    num_entities: int  # that could have had a link


@dataclass(frozen=True, eq=False)
class NullGames:
    """All games of the null models of a pair."""

    taken_out: list[NullGame]
    halves: list[NullGame]
    quarters: list[NullGame]  # halves of these halves
    ratio: float  # of the number of rivals in halves to that in quarters
    growth: int = 1  # how often the rivals of halves grow by this ratio to those of the pair
    drawn: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))  # links of a large pair taken out

    @property
    def played(self) -> list[Played]:
        """All of them, in this order."""
        return [one.game for one in (*self.taken_out, *self.halves, *self.quarters)]


@dataclass(frozen=True, eq=False)
class TakenOut:
    """A problem without some matched entities, and the entities that were matched with them."""

    problem: Problem
    source_ids: Ids  # whose targets are gone
    target_ids: Ids  # whose sources are gone
    drawn: NDArray[np.int64]  # places of their links

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


def play_null(player: Player, evidence: Evidence, own: Played, progress: Progress) -> NullGames:
    """Play all null models of a problem that was decided; small ones are drawn several times."""
    graphs = evidence.pair.source, evidence.pair.target
    pools = len(own.problem.source_ids), len(own.problem.target_ids)
    share = pools[0] / sum(pools)
    is_halved = [size >= SIMILAR * max(pools) for size in pools]
    halved = [part for part, chosen in zip(zip(graphs, SIDES, strict=True), is_halved, strict=True) if chosen]
    large = is_large(*(graph.num_entities for graph in graphs))
    draws = 1 if large else num_draws(2 * min(pools) // PARTS, ENOUGH_TAKEN_OUT)
    ratio, growth = sum(pools) / max(pools), 1
    if large:
        wanted = [min(graph.num_entities, REGION) for graph, _ in halved]
        growth = round_up(max(pools) / (max(wanted, default=1) * max(share, 1 - share)), ratio)
    # Halves of a large graph would take as long as the pair: those of a part of it do.
    parts = [region_evidence(evidence, graph, side) if large else evidence for graph, side in halved]
    halved = [(getattr(part.pair, side), side) for part, (_, side) in zip(parts, halved, strict=True)]
    per_halving = round(sum(graph.num_entities for graph, _ in halved) * min(share, 1 - share))
    halvings = num_draws(per_halving, ENOUGH_HALVED)
    steps = draws + 2 * halvings * len(halved)
    games = NullGames([], [], [], ratio, growth)
    players = shared(player), shared(own)
    taken_out, halves = [], []
    for draw in range(draws):
        progress("agent: null models", draw, steps)
        taken_out.append(begin("matches taken out", play_taken_out, *players, draw))
    for draw in range(halvings):
        for number, (_, side) in enumerate(halved):
            done = draws + 2 * (draw * len(halved) + number)
            progress("agent: null models", done, steps, "halves of a graph")
            halves.append(begin("halves", play_halved, *players, shared(parts[number]), side, draw, share))
    for end in taken_out:
        one, drawn = end()  # from elsewhere it comes with graphs of its own
        problem = replace(one.game.problem, graphs=own.problem.graphs)
        games.taken_out.append(replace(one, game=replace(one.game, problem=problem)))
        if large:
            games = replace(games, drawn=drawn)
    for end in halves:
        half, quarter = end()
        games.halves.append(half)
        games.quarters.append(quarter)
    progress("agent: null models", steps, steps)
    return games


def play_taken_out(player: Player, own: Played, draw: int) -> tuple[NullGame, NDArray[np.int64]]:
    """The last pass without some of the matches, and the places of these."""
    graphs = own.problem.graphs
    large = is_large(graphs.num_source, graphs.num_target)
    less = take_out_few(own.problem, own.decisions) if large else take_out(own.problem, own.decisions, draw)
    game = replace(player.replay(less.problem, own), channels=[])
    freed, places = less.is_freed(game.decisions), less.matches_of(game.decisions, own.decisions)
    return NullGame(game, freed, places, len(less.source_ids) + len(less.target_ids)), less.drawn


def play_halved(
    player: Player, own: Played, evidence: Evidence, side: str, draw: int, share: float
) -> tuple[NullGame, NullGame]:
    """The game between two halves of a graph, and the one between halves of one of these.

    One of the halves is enough for the latter: evidence takes most of the time.
    """
    made = halve_evidence(evidence, getattr(evidence.pair, side), side, draw, share)
    game = play_halves(player, made, own.channels)
    half, part = (made.pair.target, "target") if share <= 0.5 else (made.pair.source, "source")
    return game, play_halves(player, halve_evidence(made, half, part, draw, share), own.channels)


def halve_evidence(evidence: Evidence, graph: KnowledgeGraph, side: str, draw: int, share: float) -> Evidence:
    """Evidence about two halves of a graph; `side` says which vectors are its own, `share` how large the first is."""
    ids = split(graph, draw, share)
    rows = [getattr(part, side) for part in evidence.vectors]
    vectors = [
        replace(part, source=own[ids[0]], target=own[ids[1]]) for part, own in zip(evidence.vectors, rows, strict=True)
    ]
    return Evidence(halve(graph, ids), encoder=evidence.encoder, vectors=vectors)


def region_evidence(evidence: Evidence, graph: KnowledgeGraph, side: str) -> Evidence:
    """Evidence about a part of a graph that lies together, on either side; entities keep most of their edges there."""
    ids = region(graph, REGION)
    # Pruned as the whole graph is: to a part that is small by itself nobody is a crowd.
    part, rows = prune_hubs(graph.some(ids)), [getattr(vectors, side)[ids] for vectors in evidence.vectors]
    vectors = [replace(one, source=own, target=own) for one, own in zip(evidence.vectors, rows, strict=True)]
    return Evidence(GraphPair("region", part, part), encoder=evidence.encoder, vectors=vectors)


def region(graph: KnowledgeGraph, count: int) -> Ids:
    """Ids of so many entities, ascending: some at random, their neighbours, the neighbours of these, and so on."""
    if graph.num_entities <= count:
        return np.arange(graph.num_entities, dtype=np.int32)
    around = Neighbourhood.of(prune_hubs(graph))
    random = np.random.default_rng([REGIONS, graph.num_entities])
    order = random.permutation(graph.num_entities)
    chosen, done = np.zeros(graph.num_entities, np.bool_), 0
    owners = np.repeat(np.arange(graph.num_entities), np.diff(around.starts))
    while (left := count - int(chosen.sum())) > 0:
        is_next = np.zeros(graph.num_entities, np.bool_)
        is_next[around.neighbour_ids[chosen[owners]]] = True
        reached = np.flatnonzero(is_next & ~chosen)
        # Where a part of the graph ends, the region goes on elsewhere.
        few = max(1, count // STARTS)
        fresh = order[done : done + few] if len(reached) < few else reached[:0]
        done += len(fresh)
        chosen[random.permutation(np.union1d(reached, fresh))[:left]] = True
    return np.flatnonzero(chosen).astype(np.int32)


def round_up(factor: float, ratio: float) -> int:
    """How often something has to grow by a ratio for it to grow by a factor at least; once at the least."""
    times, grown = 1, ratio
    while grown < factor * (1 - 1e-9) and ratio > 1 + 1e-3:
        times, grown = times + 1, grown * ratio
    return times


def play_halves(player: Player, made: Evidence, channels: list[Channel]) -> NullGame:
    """The game between two halves, by channels as the pair has them."""
    pair = made.pair
    start = bootstrap(Links.empty(), made.collect(Links.empty(), Links.empty(), player.wanted))
    found = {(one.name, one.columns): one for one in made.collect(Links.empty(), start.links, player.wanted)}
    alike = [found.get((one.name, one.columns)) or silent_channel(one.name, one.columns) for one in channels]
    problem = Problem(Graphs.of(pair.source, pair.target), Links.empty(), *pair.entity_ids)
    game = replace(player.play(problem, alike), channels=[])
    all_of_them = np.ones(len(game.decisions.source_ids), np.bool_)
    num_entities = min(pair.source.num_entities, pair.target.num_entities)
    return NullGame(game, all_of_them, np.zeros(0, np.int64), num_entities)


def take_out(problem: Problem, decisions: Decisions, draw: int) -> TakenOut:
    """Of a tenth of the links the target is taken out, of another tenth the source; other tenths in every draw.

    So in ten draws each link loses its target once and its source once.
    """
    order = np.random.default_rng(TAKEN_OUT).permutation(len(decisions.source_ids))
    parts = np.array_split(order, PARTS)
    no_target, no_source = parts[draw % PARTS], parts[(draw + PARTS // 2) % PARTS]
    less = Problem(
        problem.graphs,
        problem.seeds,
        problem.source_ids[~np.isin(problem.source_ids, decisions.source_ids[no_source])],
        problem.target_ids[~np.isin(problem.target_ids, decisions.target_ids[no_target])],
    )
    drawn = np.concatenate([no_target, no_source])
    return TakenOut(less, decisions.source_ids[no_target], decisions.target_ids[no_source], drawn)


def take_out_few(problem: Problem, decisions: Decisions) -> TakenOut:
    """The same for large graphs: of so few links that only what is around them has to be decided again.

    These are the freed entities, those with which they were candidates, and those to which the latter were linked.
    """
    graphs, pairs = problem.graphs, decisions.pairs
    order = np.random.default_rng(TAKEN_OUT).permutation(len(decisions.source_ids))
    count = min(len(order) // PARTS, ENOUGH_TAKEN_OUT // 2)
    no_target, no_source = order[:count], order[count : 2 * count]
    freed = decisions.source_ids[no_target], decisions.target_ids[no_source]
    is_open = np.zeros(graphs.num_source, np.bool_), np.zeros(graphs.num_target, np.bool_)
    for mask, ids in zip(is_open, freed, strict=True):
        mask[ids] = True
    for own_source, own_target in ((pairs.source_ids, pairs.target_ids), (decisions.source_ids, decisions.target_ids)):
        near = is_open[0][own_source] | is_open[1][own_target]
        is_open[0][own_source[near]], is_open[1][own_target[near]] = True, True
    is_open[0][decisions.source_ids[no_source]] = False
    is_open[1][decisions.target_ids[no_target]] = False
    source_ids, target_ids = (np.flatnonzero(mask).astype(np.int32) for mask in is_open)
    less = Problem(graphs, problem.seeds, source_ids, target_ids, is_part=True)
    return TakenOut(less, *freed, np.concatenate([no_target, no_source]))


def open_pairs(pairs: Pairs, problem: Problem) -> Pairs:
    """The pairs whose entities are both to be matched."""
    is_source = np.zeros(problem.graphs.num_source, np.bool_)
    is_target = np.zeros(problem.graphs.num_target, np.bool_)
    is_source[problem.source_ids], is_target[problem.target_ids] = True, True
    return pairs.some(is_source[pairs.source_ids] & is_target[pairs.target_ids])


def split(graph: KnowledgeGraph, draw: int, share: float = 0.5) -> tuple[Ids, Ids]:
    """Ids of two disjoint parts of the entities, ascending; the first has about this share of them.

    The smaller part is rounded up: it should not be empty.
    """
    order = np.random.default_rng([draw, HALVES, graph.num_entities]).permutation(graph.num_entities).astype(np.int32)
    # Rounding first: a share such as 1/3 must not depend on its last bit.
    smaller = int(np.ceil(round(min(share, 1 - share) * graph.num_entities, 6)))
    one, other = np.split(order, [smaller if share <= 0.5 else graph.num_entities - smaller])
    return np.sort(one), np.sort(other)


def halve(graph: KnowledgeGraph, ids: tuple[Ids, Ids]) -> GraphPair:
    """The two halves as a pair. Triples from one half to the other are lost."""
    return GraphPair("halves", graph.some(ids[0]), graph.some(ids[1]))


def num_draws(num_links: int, enough: int) -> int:
    """How often to draw a null model that has so many links, for enough of them."""
    return int(min(MOST_DRAWS, max(1, -(-enough // max(1, num_links)))))
