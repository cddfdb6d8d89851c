"""Games to learn from: seeds are held out, and the game is played from the others.

The given vectors were fitted to all seeds and would give the held-out ones away, so these games look at the graphs
alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlea.agent.features import Sight
from rlea.agent.learning import Examples, Trial
from rlea.agent.memory import Board
from rlea.agent.passes import Decisions, PassSettings, Scene, play_fixed
from rlea.agent.propagation import draw_numbers
from rlea.graph import GraphPair, Ids, Links
from rlea.progress import Progress, silent
from rlea.search.pairs import is_near

# What numbers are drawn for: a link's part, its being asked, its target's being hidden, its choosing among weights.
PART, ASKED, HIDDEN, CHOOSING = 1, 2, 3, 4
KEPT_PAIRS = 20  # of an entity, best by best-first's key, that training looks at: the others are no rivals


@dataclass(frozen=True)
class GameSettings:
    """How seeds are held out."""

    parts: int = 3  # of the seeds, each held out once
    # Share of the held-out targets that are taken out of the game as well: their sources have no counterpart, and the
    # agent learns what that looks like.
    dangling: float = 0.1

    def __post_init__(self) -> None:
        if self.parts < 2 or not 0 <= self.dangling < 1:
            raise ValueError("needs two parts or more, and a share below one")


def make_games(
    board: Board,
    pair: GraphPair,
    seeds: Links,
    settings: GameSettings,
    passes: PassSettings,
    progress: Progress = silent,
) -> list[Game]:
    """One game a part of the seeds, played through its fixed passes."""
    random = np.random.default_rng(3)  # of positions, which say nothing
    part_of = hold_out(seeds, settings.parts)
    games = []
    for part in range(settings.parts):
        held, rest = part_of == part, part_of != part
        known = Links.of(seeds.source_ids[rest], seeds.target_ids[rest])
        asked = Links.of(seeds.source_ids[held], seeds.target_ids[held])
        hidden = draw(asked, HIDDEN) < settings.dangling
        source_ids, target_ids = others(pair, known)
        target_ids = np.setdiff1d(target_ids, asked.target_ids[hidden])
        scene = Scene(board, known, random.permutation(source_ids), random.permutation(target_ids))
        games.append(Game(scene, asked, hidden, play_fixed(scene, passes)))
        progress("agent: games", part + 1, settings.parts)
    return games


class Game:
    """A scene with links held out of it, and where the game stands."""

    def __init__(self, scene: Scene, asked: Links, hidden: NDArray[np.bool_], decisions: Decisions) -> None:
        self.scene, self.asked, self.hidden = scene, asked, hidden
        self.first = self.decisions = decisions  # after the fixed passes, and now
        # Who is right for an asked entity: its counterpart, or -1 (nobody) where that was taken out; -2: not asked.
        self.answers = np.full(scene.board.num_source, -2, np.int64)
        self.answers[asked.source_ids] = np.where(hidden, -1, asked.target_ids)
        self.answers_back = np.full(scene.board.num_target, -2, np.int64)
        self.answers_back[asked.target_ids] = asked.source_ids

    def examples(self, sight: Sight) -> Examples:
        """The pairs of all asked entities of either side, the best of each by key, in groups."""
        pairs = self.decisions.pairs
        is_right = self.answers[pairs.source_ids] == pairs.target_ids
        places, sizes, truths = [], [], []
        for own, answers in ((pairs.source_ids, self.answers), (pairs.target_ids, self.answers_back)):
            mine = np.flatnonzero(answers[own] > -2)
            order = mine[np.lexsort((-sight.keys[mine], own[mine]))]
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
        every = np.concatenate(places)
        used, inverse = np.unique(every, return_inverse=True)
        truth = np.concatenate(truths)
        starts = np.concatenate([[0], np.cumsum(np.concatenate(sizes))]).astype(np.int64)
        new_truth = np.where(truth < 0, -1, np.searchsorted(used, np.maximum(truth, 0)))
        return Examples(sight.features[used], sight.keys[used], inverse.astype(np.int64), starts, new_truth)

    def trial(self, sight: Sight) -> Trial:
        """All pairs that could be matched, with rewards where an end was asked."""
        pairs = self.decisions.pairs
        near = is_near(pairs, sight.keys, KEPT_PAIRS)
        source, target = pairs.source_ids[near], pairs.target_ids[near]
        asked = (self.answers[source] > -2) | (self.answers_back[target] > -2)
        rewards = np.where(asked, np.where(self.answers[source] == target, 1.0, -1.0), 0.0).astype(np.float32)
        return Trial(sight.features[near], sight.keys[near], source, target, rewards)

    def judge(self, decisions: Decisions) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Links of asked sources (their places), and for all links whether they are right."""
        answers = self.answers[decisions.source_ids]
        return np.flatnonzero(answers > -2), answers == decisions.target_ids


def draw(links: Links, what: int) -> NDArray[np.float64]:
    """A random number below 1 for every link, (num_links,): one for each use.

    It depends on the link alone, not on the random seed or on the other links. So which links are held out stays the
    same with another seed, and one link more or less moves no other: what is learned changes no more than it must.
    """
    return draw_numbers(links.source_ids, links.target_ids, 1, what)[:, 0]


def hold_out(links: Links, parts: int) -> NDArray[np.int64]:
    """The part of every link, (num_links,), at random; where parts come out very unequal, links are dealt evenly."""
    drawn = draw(links, PART)
    part_of = (parts * drawn).astype(np.int64)
    if np.bincount(part_of, minlength=parts).min() * 2 * parts < len(links):
        part_of[np.argsort(drawn, kind="stable")] = np.arange(len(links)) % parts
    return part_of


def others(pair: GraphPair, seeds: Links) -> tuple[Ids, Ids]:
    """All entities of both graphs without a seed, in the order of their ids."""
    return (
        np.setdiff1d(np.arange(pair.source.num_entities, dtype=np.int32), seeds.source_ids),
        np.setdiff1d(np.arange(pair.target.num_entities, dtype=np.int32), seeds.target_ids),
    )
