"""Passes of the context agent over a task: each one plays the game from the seeds, remembering the pass before.

Every pass orders all pairs by what they are worth now, matches the best, lets the match speak for its neighbours'
pairs, and so on (`rlea.agent.engine`). The first passes take best-first's key, over the given vectors and
over those re-estimated from the links (`rlea.agent.propagation`). The passes after them take the key that the policy
has learned.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from rlea.agent.engine import Extra, Game, Rules, Side, Vectors, no_extra, play, sort_rows
from rlea.agent.features import Sight, look
from rlea.agent.memory import Board, Floats, Memory
from rlea.agent.propagation import SpreadSettings, spread
from rlea.graph import Ids, Links
from rlea.matchers.best_first import compiled_vectors, scale_of
from rlea.matching import Matching
from rlea.search.candidates import Candidates, find_candidates
from rlea.search.embeddings import Embeddings
from rlea.search.pairs import Pairs, find_pairs, is_near, mean_of_best, numbers
from rlea.search.rows import inner_products

SEARCHED = 2  # every second column of re-estimated vectors is looked at in the search


@dataclass(frozen=True)
class PassSettings:
    """Rules of the game; those that best-first has too are explained and measured there."""

    fixed: int = 2  # passes with best-first's key; a third adds nothing
    learned: int = 2  # passes with the policy's key
    candidates: int = 10  # best by re-estimated vectors, both ways; matches bring the others
    # Above so many pairs of entities the re-estimated vectors are not searched: the given candidates and those that
    # matches create must do.
    most_searched: int = 2_000_000_000
    sure: float = 0.9  # confidence of a match from which on nobody else is searched for its two entities
    likeness: float = 0.67  # weight of the re-estimated vectors beside the given ones in the fixed key
    evidence_weight: float = 3.0
    creation: float = 0.03
    floor: float = 0.005
    kept_weight: float = 0.5  # of the matches of the pass before, in the fixed passes
    temperature: float = 0.12  # of confidence in a fixed pass
    nobody: float = 0.3
    kept: int = 20  # best pairs of every entity after the fixed passes, by their key, that learned passes look at
    rivals: int = 10  # best of every entity by worth that a learned pass plays with; the others never come to the fore
    # How far the root of evidence that came or went since the pass before moves a learned key.
    moves: float = 24.0
    spread: SpreadSettings = field(default_factory=SpreadSettings)

    def __post_init__(self) -> None:
        if min(self.fixed, self.candidates, self.kept, self.rivals) < 1 or self.learned < 0:
            raise ValueError("needs a fixed pass, a candidate, a kept pair and a rival or more")


@dataclass(frozen=True, eq=False)
class Scene:
    """What a pass is played on: two graphs, the seeds, who is still to be matched. Gold links have no place in it."""

    board: Board
    seeds: Links
    source_ids: Ids
    target_ids: Ids
    given: Candidates | None = None  # by the given vectors; None where these may not be looked at
    seed: int = 0  # of the hash that settles ties

    @cached_property
    def given_bases(self) -> tuple[Floats, Floats, float]:
        """Means of the ten best of every source and target entity by the given vectors, and the scale of their CSLS."""
        assert self.given is not None
        rows, columns = self.given.csls_means()
        pairs = self.given.pairs
        scale = scale_of(self.given, 2 * pairs.scores - rows[pairs.rows] - columns[pairs.columns])
        source, target = np.zeros(self.board.num_source, np.float32), np.zeros(self.board.num_target, np.float32)
        source[self.given.source_ids], target[self.given.target_ids] = rows, columns
        return source, target, scale


@dataclass(frozen=True, eq=False)
class Decisions:
    """One pass: links in the order in which they were matched, and all pairs that came into the game."""

    source_ids: Ids
    target_ids: Ids
    keys: Floats  # of the links, when they were matched
    confidences: Floats
    pairs: Pairs
    worth: Floats | None = (
        None  # keys of `pairs`: before the first decision in a learned pass, after the last in a fixed
    )

    @property
    def matching(self) -> Matching:
        """The links alone, by their ids."""
        return Matching.of(self.source_ids, self.target_ids, self.confidences)


def play_fixed(scene: Scene, settings: PassSettings) -> Decisions:
    """The passes with best-first's key."""
    decisions: Decisions | None = None
    for _ in range(settings.fixed):
        decisions = _fixed_pass(scene, settings, decisions)
    assert decisions is not None
    return keep_near(decisions, settings)


def keep_near(decisions: Decisions, settings: PassSettings) -> Decisions:
    """A fixed pass with the best pairs of every entity alone, as learned passes take it: in order, with logits."""
    assert decisions.worth is not None
    pairs, near = decisions.pairs, is_near(decisions.pairs, decisions.worth, settings.kept)
    # An entity that was left over may be matched with one that is not among its best.
    near |= np.isin(numbers(pairs), numbers(Pairs(decisions.source_ids, decisions.target_ids)))
    places = np.flatnonzero(near)
    places = places[np.lexsort((pairs.target_ids[places], pairs.source_ids[places]))]
    kept = Pairs(pairs.source_ids[places], pairs.target_ids[places])
    worth, keys = (to_logits(values, settings) for values in (decisions.worth[places], decisions.keys))
    return replace(decisions, pairs=kept, worth=worth, keys=keys)


def to_logits(keys: Floats, settings: PassSettings) -> Floats:
    """Keys of best-first on the scale of learned ones: nobody is worth 0, and shares are those of exponentials."""
    return np.asarray((keys - np.float32(settings.nobody)) / np.float32(settings.temperature), np.float32)


def known_links(scene: Scene, before: Decisions | None) -> tuple[Ids, Ids, Ids, Ids]:
    """Seeds and links of the pass before, for `play`: read-only, as best-first has them, or it is compiled twice."""
    earlier = Links.empty() if before is None else Links.of(before.source_ids, before.target_ids)
    return scene.seeds.source_ids, scene.seeds.target_ids, earlier.source_ids, earlier.target_ids


def memory_of(scene: Scene, decisions: Decisions | None) -> Memory:
    """The seeds, and the links of a pass as far as it is sure of them."""
    if decisions is None:
        return Memory.of(scene.board, scene.seeds)
    return Memory.of(scene.board, scene.seeds, decisions.source_ids, decisions.target_ids, decisions.confidences)


def unsure(scene: Scene, before: Decisions | None, sure: float) -> tuple[Ids, Ids]:
    """Source and target entities without a match that the pass before was sure of."""
    if before is None:
        return scene.source_ids, scene.target_ids
    done = before.confidences >= sure
    return (
        scene.source_ids[~np.isin(scene.source_ids, before.source_ids[done])],
        scene.target_ids[~np.isin(scene.target_ids, before.target_ids[done])],
    )


def see(scene: Scene, settings: PassSettings, decisions: Decisions) -> Sight:
    """What the policy sees of the pairs of a pass, after it."""
    return _see(scene, settings, decisions.pairs, memory_of(scene, decisions))


def play_learned(
    scene: Scene,
    settings: PassSettings,
    before: Decisions,
    value: Callable[[Sight, Pairs], Floats],
    rate: Callable[[Sight, Pairs, Floats], Floats],
    least: float = -np.inf,
) -> Decisions:
    """One pass with the policy's key: `value` says what every pair is worth, `rate` how sure a match of it would be.

    Both are functions of what is seen of the pairs and do not change within the pass, so all pairs are valued in bulk.
    The pairs are those of the pass before, which has brought in what matches create. `least`: no match below that key.
    """
    memory = memory_of(scene, before)
    sight = _see(scene, settings, before.pairs, memory)
    worth = value(sight, before.pairs)
    near = is_near(before.pairs, worth, settings.rivals)
    game = _game(scene, Pairs(before.pairs.source_ids[near], before.pairs.target_ids[near]), worth[near], no_extra())
    rules = rules_of(settings, scene.seed, anchored=True, least=least)
    known = known_links(scene, before)
    (source_ids, target_ids, keys, _), _, _ = play(game, *known, memory.correspondence, True, rules)
    rated = rate(sight, before.pairs, worth)
    confidences = rated[find_pairs(before.pairs, source_ids, target_ids)]
    return Decisions(source_ids, target_ids, keys, confidences, before.pairs, worth)


def given_csls(scene: Scene, pairs: Pairs) -> Floats:
    """CSLS of any pairs by the given vectors, on the scale of cosines; 0 where there are none."""
    if scene.given is None:
        return np.zeros(len(pairs), np.float32)
    given = scene.given
    rows, columns = np.full(scene.board.num_source, -1, np.int64), np.full(scene.board.num_target, -1, np.int64)
    rows[given.source_ids], columns[given.target_ids] = np.arange(given.num_rows), np.arange(given.num_columns)
    pair_rows, pair_columns = rows[pairs.source_ids], columns[pairs.target_ids]
    known = pair_rows * given.num_columns + pair_columns
    own = given.pairs.rows.astype(np.int64) * given.num_columns + given.pairs.columns
    order = np.argsort(own, kind="stable")
    place = np.minimum(np.searchsorted(own, known, sorter=order), max(len(own) - 1, 0))
    scores = np.zeros(len(pairs), np.float32)
    is_candidate = own[order[place]] == known if len(own) else np.zeros(len(pairs), np.bool_)
    scores[is_candidate] = given.pairs.scores[order[place[is_candidate]]]
    others = np.flatnonzero(~is_candidate)
    scores[others] = given.score_pairs(pair_rows[others], pair_columns[others])
    source_means, target_means, scale = scene.given_bases
    csls = 2 * scores - source_means[pairs.source_ids] - target_means[pairs.target_ids]
    return np.asarray(np.float32(scale) * csls, np.float32)


def _see(scene: Scene, settings: PassSettings, pairs: Pairs, memory: Memory) -> Sight:
    vectors = spread(memory, settings.spread)
    return look(pairs, memory, vectors, evidence_weight=settings.evidence_weight)


def _fixed_pass(scene: Scene, settings: PassSettings, before: Decisions | None) -> Decisions:
    given, nothing = scene.given, np.zeros(0, np.int32)
    parts = [] if given is None else [_pairs_of(given)]
    if before is not None:
        parts.append((before.pairs.source_ids, before.pairs.target_ids))
    is_first = before is None and given is not None
    share = 1.0 if given is None else settings.likeness
    # With given vectors the first pass makes do with fewer dimensions and without a search: a better one is to come.
    estimate = replace(settings.spread, dim=settings.spread.dim // 2) if is_first else settings.spread
    memory = memory_of(scene, before)
    is_searched = not is_first and len(scene.source_ids) * len(scene.target_ids) <= settings.most_searched
    if is_searched or share > 0:
        vectors = spread(memory, estimate)
    if is_searched:
        # Some of the columns estimate the inner product well enough to propose pairs, in less time.
        found = Embeddings(vectors[0][:, ::SEARCHED], vectors[1][:, ::SEARCHED], measure="inner")
        unsure_ids = unsure(scene, before, settings.sure)
        parts.append(_pairs_of(find_candidates(found, *unsure_ids, settings.candidates, coarse=True)))
    pairs = Pairs.of(
        np.concatenate([nothing, *(part[0] for part in parts)]), np.concatenate([nothing, *(part[1] for part in parts)])
    )
    bases, extra = np.zeros(len(pairs), np.float32), no_extra()
    if share > 0:
        likeness = inner_products(*vectors, pairs.source_ids, pairs.target_ids)
        means = [np.zeros(len(part), np.float32) for part in vectors]
        for part, ids in zip(means, (pairs.source_ids, pairs.target_ids), strict=True):
            best = mean_of_best(ids, likeness)
            part[: len(best)] = best
        bases += np.float32(share) * (2 * likeness - means[0][pairs.source_ids] - means[1][pairs.target_ids])
        extra = Extra(np.float32(share), *vectors, *means)
    if share < 1:
        bases += np.float32(1 - share) * given_csls(scene, pairs)
    game = _game(scene, pairs, bases, extra, 1 - share)
    known = known_links(scene, before)
    shape = (len(scene.board.source.functionality), len(scene.board.target.functionality))
    like = np.zeros(shape, np.float32) if before is None else memory.correspondence
    links, _, grown = play(game, *known, like, before is not None, rules_of(settings, scene.seed))
    source_ids, target_ids, keys, confidences = links
    # The pairs as they came into the game; `play_fixed` keeps the best and sorts them.
    return Decisions(source_ids, target_ids, keys, confidences, Pairs(grown[0], grown[1]), grown[2])


def _pairs_of(candidates: Candidates) -> tuple[Ids, Ids]:
    pairs = candidates.pairs
    return candidates.source_ids[pairs.rows], candidates.target_ids[pairs.columns]


def _game(scene: Scene, pairs: Pairs, bases: Floats, extra: Any, given_share: float = 0.0) -> Any:
    """The pairs for compiled code; what pairs that come into the game later begin with, by either vectors."""
    sides = []
    means = np.zeros(scene.board.num_source, np.float32), np.zeros(scene.board.num_target, np.float32)
    if scene.given is not None and given_share > 0:
        *means_found, scale = scene.given_bases
        means = (means_found[0], means_found[1])
        vectors = compiled_vectors(scene.given, scale * given_share)
    else:
        none = np.zeros((0, 0), np.float32)
        no_rows = (np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32))
        vectors = Vectors(0, np.float32(0.0), none, none, *no_rows, *no_rows)
    for around, ids, own in (
        (scene.board.source, scene.source_ids, means[0]),
        (scene.board.target, scene.target_ids, means[1]),
    ):
        is_open = np.zeros(len(around.starts) - 1, np.bool_)
        is_open[ids] = True
        sides.append(Side(around.starts, around.relation_ids, around.neighbour_ids, around.functionality, own, is_open))
    starts = np.searchsorted(pairs.source_ids, np.arange(scene.board.num_source + 1)).astype(np.int64)
    pair_source, pair_target, bases = pairs.source_ids.copy(), pairs.target_ids.copy(), bases.copy()
    sort_rows(starts, pair_source, pair_target, bases, np.uint64(scene.seed))
    return Game(
        sides[0], sides[1], vectors, extra, pair_source, pair_target, bases, starts[:-1].copy(), starts[1:].copy()
    )


def rules_of(settings: PassSettings, seed: int, *, anchored: bool = False, least: float = -np.inf) -> Any:
    """For compiled code; `anchored` are learned passes, whose keys move with what changed since the pass before."""
    return Rules(
        np.float32(settings.moves if anchored else settings.evidence_weight),
        np.float32(np.inf if anchored else settings.creation),
        np.float32(settings.floor),
        np.float32(1.0),
        np.float32(1.0 if anchored else settings.kept_weight),
        np.float32(settings.temperature),
        np.float32(settings.nobody),
        np.uint64(seed),
        anchored,
        np.float32(least),
    )
