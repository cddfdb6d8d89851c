"""The game with opinions: pairs begin at what the channels say of them, and every match speaks for its neighbours'.

The rules are those of `rlea.agent.passes`; in place of given vectors there is the opinion of a pair, a logit, which a
temperature brings to the scale of best-first's key.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rlea.agent.engine import Extra, Game, Side, Vectors, no_extra, play, sort_rows
from rlea.agent.memory import Floats
from rlea.agent.passes import (
    SEARCHED,
    Decisions,
    PassSettings,
    Scene,
    keep_near,
    known_links,
    memory_of,
    rules_of,
    unsure,
)
from rlea.agent.propagation import spread
from rlea.evidence.channels import pairs_of
from rlea.graph.neighbourhood import Neighbourhood
from rlea.search.candidates import find_candidates
from rlea.search.embeddings import Embeddings
from rlea.search.pairs import Pairs, mean_of_best
from rlea.search.rows import inner_products

LEAST_LINKED = 0.1  # share of the entities with a link from which on vectors are made of links

Opinion = Callable[[Pairs], Floats]  # logits of pairs


def play_opinions(
    scene: Scene, settings: PassSettings, proposed: Pairs, opinion: Opinion, least: float, *, structure: bool = True
) -> Decisions:
    """Fixed passes: the first from opinions and seeds, the others from what the one before decided as well.

    `least` is the opinion of pairs that a match brings into the game within a pass; a later pass asks for their own.
    Without `structure` matches say nothing of each other, and one pass is all.
    """
    decisions: Decisions | None = None
    for _ in range(settings.fixed if structure else 1):
        decisions = _play_pass(scene, settings, proposed, opinion, least, decisions, structure)
    assert decisions is not None
    return keep_near(decisions, settings)


def _play_pass(
    scene: Scene,
    settings: PassSettings,
    proposed: Pairs,
    opinion: Opinion,
    least: float,
    before: Decisions | None,
    structure: bool,
) -> Decisions:
    memory = memory_of(scene, before)
    parts = [proposed] if before is None else [proposed, before.pairs]
    # Vectors are made of links: of few, they are mostly noise, and best-first's key does better without.
    share = len(memory.source_ids) / max(1, min(scene.board.num_source, scene.board.num_target))
    vectors = spread(memory, settings.spread) if structure and share >= LEAST_LINKED else None
    num_cells = len(scene.source_ids) * len(scene.target_ids)
    if vectors is not None and before is not None and num_cells <= settings.most_searched:
        found = Embeddings(vectors[0][:, ::SEARCHED], vectors[1][:, ::SEARCHED], measure="inner")
        unsure_ids = unsure(scene, before, settings.sure)
        parts.append(pairs_of(find_candidates(found, *unsure_ids, settings.candidates, coarse=True)))
    pairs = Pairs.of(
        *(np.concatenate([getattr(part, side) for part in parts]) for side in ("source_ids", "target_ids"))
    )
    bases = from_logits(opinion(pairs), settings)
    extra = no_extra()
    if vectors is not None:
        weight = np.float32(settings.likeness)
        likeness = inner_products(*vectors, pairs.source_ids, pairs.target_ids)
        means = [np.zeros(len(part), np.float32) for part in vectors]
        for part, ids in zip(means, (pairs.source_ids, pairs.target_ids), strict=True):
            best = mean_of_best(ids, likeness)
            part[: len(best)] = best
        bases += weight * (2 * likeness - means[0][pairs.source_ids] - means[1][pairs.target_ids])
        extra = Extra(weight, *vectors, *means)
    # A pair that a match brings in begins at twice a product, less the means of its two entities (`evidence_game`); of
    # vectors without a component only the means are left, which are set to give `least`.
    start = float(from_logits(np.array([least], np.float32), settings)[0])
    sides = [_side(around, ids, -start / 2) for around, ids in _both(scene)]
    nothing, no_rows = np.zeros((0, 0), np.float32), [_no_rows(side.starts) for side in sides]
    silent_vectors = Vectors(2, np.float32(1.0), nothing, nothing, *no_rows[0], *no_rows[1])
    starts = np.searchsorted(pairs.source_ids, np.arange(scene.board.num_source + 1)).astype(np.int64)
    source_ids, target_ids = pairs.source_ids.copy(), pairs.target_ids.copy()
    sort_rows(starts, source_ids, target_ids, bases, np.uint64(scene.seed))
    game = Game(sides[0], sides[1], silent_vectors, extra, source_ids, target_ids, bases, starts[:-1], starts[1:])
    known = known_links(scene, before)
    shape = (len(scene.board.source.functionality), len(scene.board.target.functionality))
    is_frozen = before is not None or not structure
    like = np.zeros(shape, np.float32) if before is None else memory.correspondence
    links, _, grown = play(game, *known, like, is_frozen, rules_of(settings, scene.seed))
    source_ids, target_ids, keys, confidences = links
    return Decisions(source_ids, target_ids, keys, confidences, Pairs(grown[0], grown[1]), grown[2])


def from_logits(logits: Floats, settings: PassSettings) -> Floats:
    """Logits on the scale of best-first's key."""
    return np.asarray(np.float32(settings.temperature) * logits + np.float32(settings.nobody), np.float32)


def _both(scene: Scene) -> tuple[tuple[Neighbourhood, np.ndarray], tuple[Neighbourhood, np.ndarray]]:
    return (scene.board.source, scene.source_ids), (scene.board.target, scene.target_ids)


def _side(around: Neighbourhood, ids: np.ndarray, mean: float) -> Side:
    count = len(around.starts) - 1
    is_open = np.zeros(count, np.bool_)
    is_open[ids] = True
    means = np.full(count, mean, np.float32)
    return Side(around.starts, around.relation_ids, around.neighbour_ids, around.functionality, means, is_open)


def _no_rows(starts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.zeros(len(starts), np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32)
