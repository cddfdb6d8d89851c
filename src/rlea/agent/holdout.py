"""Held-out games: some of the known links are held out, and the rest of the problem is played without them.

What the agent learns, it learns from the pairs of held-out entities, in the states in which such a game leaves them.
Vectors that were fitted to the seeds would give the held-out ones away and take no part.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rlea.agent.features import Features
from rlea.agent.learning import Examples
from rlea.agent.memory import Graphs
from rlea.agent.passes import Decisions, Problem, no_decisions
from rlea.agent.propagation import draw_numbers
from rlea.graph import GraphPair, Ids, Links

# Uses of random numbers: a link's part, whether it is learned from, whether its target is taken away.
PART, LEARNED, DANGLING = 1, 2, 3
KEPT_PAIRS = 20  # best of an entity by priority that training looks at: the others are no rivals


@dataclass(frozen=True)
class HoldoutSettings:
    """How links are held out."""

    parts: int = 3  # of the links, each held out once
    most: int = 1000  # held-out links of a game that are learned from: more cost time and teach no more
    # Share of the held-out targets that are taken out of the game as well: their sources are dangling, and the agent
    # learns what that looks like.
    dangling: float = 0.3

    def __post_init__(self) -> None:
        if self.parts < 2 or not 0 <= self.dangling < 1:
            raise ValueError("needs two parts or more, and a share below one")


@dataclass(frozen=True, eq=False)
class HeldOut:
    """A problem with links held out of it, and what was decided so far."""

    problem: Problem
    links: Links  # held out, and learned from
    is_dangling: NDArray[np.bool_]  # (num_links,) the target was taken away
    first: Decisions  # after the fixed passes
    decisions: Decisions  # now

    def then(self, decisions: Decisions) -> HeldOut:
        """The same game after another pass."""
        return replace(self, decisions=decisions)

    def examples(self, features: Features) -> Examples:
        """The pairs of all held-out entities of either side, the best of each by priority, in groups."""
        pairs = self.decisions.pairs
        answers, answers_back = self._answers()
        is_right = answers[pairs.source_ids] == pairs.target_ids
        places, sizes, truths = [], [], []
        for own, right in ((pairs.source_ids, answers), (pairs.target_ids, answers_back)):
            mine = np.flatnonzero(right[own] > -2)
            order = mine[np.lexsort((-features.priorities[mine], own[mine]))]
            ids, first, counts = np.unique(own[order], return_index=True, return_counts=True)
            rank = np.arange(len(order)) - np.repeat(first, counts)
            kept = order[(rank < KEPT_PAIRS) | is_right[order]]
            _, counts = np.unique(own[kept], return_counts=True)
            true_of = np.full(len(ids), -1, np.int64)
            true_places = kept[is_right[kept]]
            true_of[np.searchsorted(ids, own[true_places])] = true_places
            places.append(kept)
            sizes.append(counts)
            truths.append(true_of)
        used, inverse = np.unique(np.concatenate(places), return_inverse=True)
        truth = np.concatenate(truths)
        starts = np.concatenate([[0], np.cumsum(np.concatenate(sizes))]).astype(np.int64)
        new_truth = np.where(truth < 0, -1, np.searchsorted(used, np.maximum(truth, 0)))
        return Examples(features.columns[used], features.priorities[used], inverse.astype(np.int64), starts, new_truth)

    def judge(self, decisions: Decisions) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """The places of links of held-out sources, and for all links whether they are right."""
        answers = self._answers()[0][decisions.source_ids]
        return np.flatnonzero(answers > -2), answers == decisions.target_ids

    def _answers(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The right partner of every entity of either side: -1 for none (dangling), -2 where it was not held out."""
        answers = np.full(self.problem.graphs.num_source, -2, np.int64)
        answers[self.links.source_ids] = np.where(self.is_dangling, -1, self.links.target_ids)
        answers_back = np.full(self.problem.graphs.num_target, -2, np.int64)
        answers_back[self.links.target_ids] = self.links.source_ids
        return answers, answers_back


def hold_out(graphs: Graphs, links: Links, num_seeds: int, settings: HoldoutSettings) -> list[HeldOut]:
    """A game for each part of the links, nothing decided yet; the first `num_seeds` are seeds, the others pseudo-seeds.

    What is known in a game are the seeds that are not held out. Of the held-out links at most `settings.most` are
    learned from, seeds before pseudo-seeds, which are the easier ones.
    """
    if len(links) < 2 * settings.parts:
        return []
    random = np.random.default_rng(3)  # orders of ids, which say nothing
    part_of = assign_parts(links, settings.parts)
    games = []
    for part in range(settings.parts):
        held = np.flatnonzero(part_of == part)
        certain = np.flatnonzero(part_of[:num_seeds] != part)
        known = Links.of(links.source_ids[certain], links.target_ids[certain])
        some = np.sort(held[np.lexsort((draw(links, LEARNED)[held], held >= num_seeds))][: settings.most])
        asked = Links.of(links.source_ids[some], links.target_ids[some])
        is_dangling = draw(asked, DANGLING) < settings.dangling
        source_ids = without(graphs.num_source, known.source_ids)
        target_ids = without(graphs.num_target, np.concatenate([known.target_ids, asked.target_ids[is_dangling]]))
        problem = Problem(graphs, known, random.permutation(source_ids), random.permutation(target_ids))
        nothing = no_decisions()
        games.append(HeldOut(problem, asked, is_dangling, nothing, nothing))
    return games


def hold_out_together(graphs: Graphs, links: Links, num_seeds: int, settings: HoldoutSettings) -> list[HeldOut]:
    """The same for large graphs: all parts are held out of one problem, which is played once for them all.

    Half of the seeds stay known at least, and as many links are learned from as in games of their own.
    """
    if len(links) < 2 * settings.parts:
        return []
    random = np.random.default_rng(3)
    order = np.lexsort((draw(links, LEARNED), np.arange(len(links)) >= num_seeds))  # seeds first
    held = order[: min(settings.parts * settings.most, num_seeds // 2)]
    pseudo = order[num_seeds:][: settings.parts * settings.most - len(held)]
    some = np.sort(np.concatenate([held, pseudo]))
    certain = np.setdiff1d(np.arange(num_seeds), held)
    known = Links.of(links.source_ids[certain], links.target_ids[certain])
    asked = Links.of(links.source_ids[some], links.target_ids[some])
    is_dangling = draw(asked, DANGLING) < settings.dangling
    source_ids = without(graphs.num_source, known.source_ids)
    target_ids = without(graphs.num_target, np.concatenate([known.target_ids, asked.target_ids[is_dangling]]))
    problem = Problem(graphs, known, random.permutation(source_ids), random.permutation(target_ids))
    part_of, nothing = assign_parts(asked, settings.parts), no_decisions()
    return [
        HeldOut(problem, Links.of(asked.source_ids[own], asked.target_ids[own]), is_dangling[own], nothing, nothing)
        for own in (np.flatnonzero(part_of == part) for part in range(settings.parts))
    ]


def assign_parts(links: Links, parts: int) -> NDArray[np.int64]:
    """The part of every link, (num_links,), at random; where parts come out very unequal, links are dealt evenly."""
    drawn = draw(links, PART)
    part_of = (parts * drawn).astype(np.int64)
    if np.bincount(part_of, minlength=parts).min() * 2 * parts < len(links):
        part_of[np.argsort(drawn, kind="stable")] = np.arange(len(links)) % parts
    return part_of


def draw(links: Links, what: int) -> NDArray[np.float64]:
    """A random number below 1 for every link, (num_links,): one for each use.

    It depends on the link alone, not on the random seed or on the other links. So which links are held out stays the
    same with another seed, and one link more or less moves no other: what is learned changes no more than it must.
    """
    return draw_numbers(links.source_ids, links.target_ids, 1, what)[:, 0]


def without(count: int, ids: Ids) -> Ids:
    """All ids below `count` but these, ascending."""
    return np.setdiff1d(np.arange(count, dtype=np.int32), ids)


def unseeded(pair: GraphPair, seeds: Links) -> tuple[Ids, Ids]:
    """All entities of both graphs without a seed, in random orders, so that positions tell nothing."""
    sides = ((pair.source.num_entities, seeds.source_ids), (pair.target.num_entities, seeds.target_ids))
    first, second = (
        np.random.default_rng([number, 9]).permutation(without(count, ids)) for number, (count, ids) in enumerate(sides)
    )
    return first, second
