"""Vectors without training: labels of linked entities are propagated over both graphs.

Every link has a random vector, its label, the same in both graphs. At each step an entity takes the sum of its
neighbours' vectors, weighted by how identifying the relation is, and less the more neighbours the neighbour has; seeds
keep their labels. Corresponding relations rotate vectors by the same random angles in both graphs, and back when they
are followed the other way, so that "born in Rome" and "died in Rome" differ. The vector of an entity then encodes the
links around it, up to four steps away: two entities with the same links around them in the same relations have the
same vector. A match's own label returns to it unchanged by the way it went, and is taken out; what returns by another
way (a second relation between the same two, a triangle) is rotated and stays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from rlea.agent.memory import Memory, opposite
from rlea.arithmetic import cos, sin
from rlea.graph import Ids
from rlea.graph.neighbourhood import Neighbourhood
from rlea.search.candidates import hash_pair, mix
from rlea.search.pairs import Floats
from rlea.search.rows import lane_product

LABELS, ANGLES = 11, 12  # uses of random numbers


@dataclass(frozen=True)
class PropagationSettings:
    """How labels are propagated; chosen on validation links of EN_FR_15K_V1 and D_W_15K_V1."""

    dim: int = 256  # of one step; labels are random, so fewer dimensions are noise: 128 costs a point
    steps: int = 4
    turned: float = 0.75  # share of the dimensions that relations rotate; the others only say who the neighbours are
    unknown: float = 0.4  # weight of a relation without a counterpart
    correspondence: float = 0.1  # from which two relations count as each other's counterparts


def propagate(
    memory: Memory, settings: PropagationSettings | None = None, wanted: tuple[Ids, Ids] | None = None
) -> tuple[Floats, Floats]:
    """Vectors of all entities of both graphs, (num_entities, steps * dim); the inner product is the mean cosine.

    With `wanted`, of these source and target entities alone, which saves most of the work where they are few. The rows
    of all others are then zero.
    """
    settings = settings or PropagationSettings()
    labels = make_labels(memory.source_ids, memory.target_ids, settings.dim)
    groups, founders = group_relations(memory.correspondence, settings.correspondence)
    num_turned = round(settings.turned * settings.dim / 2)  # pairs of dimensions
    angles = np.zeros((len(founders) + 1, num_turned))  # relations without a counterpart turn nothing
    angles[1:] = 2 * np.pi * draw_numbers(founders[:, 0], founders[:, 1], num_turned, ANGLES)
    turns = np.stack([cos(angles), sin(angles)]).astype(np.float32)
    sides = (
        (memory.graphs.source, memory.source_ids, groups[0]),
        (memory.graphs.target, memory.target_ids, groups[1]),
    )
    first, second = (
        _propagate_side(*side, labels, memory, turns, settings, ids)
        for side, ids in zip(sides, wanted or (None, None), strict=True)
    )
    return first, second


def make_labels(source_ids: Ids, target_ids: Ids, dim: int) -> Floats:
    """Random vectors of unit length, (num_links, dim), that depend on the link alone.

    As in feature hashing. So one link more or less changes the vectors around it and no others; labels drawn one after
    another would all be new ones.
    """
    labels = np.empty((len(source_ids), dim), np.float32)
    _draw_signs(source_ids.astype(np.int64), target_ids.astype(np.int64), np.float32(1 / np.sqrt(dim)), labels)
    return labels


@numba.njit(cache=True)
def _draw_signs(first, second, size, labels):  # type: ignore[no-untyped-def]
    for k in range(len(first)):
        state = hash_pair(first[k], second[k], np.uint64(LABELS))
        for place in range(labels.shape[1]):
            state += np.uint64(0x9E3779B97F4A7C15)
            labels[k, place] = size if mix(state) < np.uint64(1 << 63) else -size


def draw_numbers(first: Ids, second: Ids, count: int, what: int) -> NDArray[np.float64]:
    """Uniform random numbers below 1, (num_pairs, count), that depend on the two ids of a pair and on their use."""
    return np.asarray(_draw(first.astype(np.int64), second.astype(np.int64), count, np.uint64(what)))


@numba.njit(cache=True)
def _draw(first, second, count, what):  # type: ignore[no-untyped-def]
    result = np.empty((len(first), count))
    for k in range(len(first)):
        state = hash_pair(first[k], second[k], what)
        for place in range(count):
            state += np.uint64(0x9E3779B97F4A7C15)
            result[k, place] = (mix(state) >> np.uint64(11)) * (1.0 / 9007199254740992.0)  # 53 bits
    return result


def group_relations(correspondence: Floats, least: float) -> tuple[tuple[Ids, Ids], Ids]:
    """Numbers of groups of corresponding oriented relations, per side: from 1, 0 for those without a counterpart.

    The opposite of a relation in group g is in group -g. Best pairs first: two that are free make a group, a free one
    joins the group of the other. Also returns the two that made each group, (num_groups, 2).
    """
    founders: list[tuple[int, int]] = []
    groups = tuple(np.zeros(size, np.int32) for size in correspondence.shape)
    half = correspondence.shape[0] // 2
    rows, columns = np.nonzero(correspondence[:half] >= least)  # the other half says the same of the opposites
    order = np.lexsort((columns, rows, -correspondence[rows, columns]))
    for o, p in zip(rows[order], columns[order], strict=True):
        own, other = int(groups[0][o]), int(groups[1][p])
        if own and other:
            continue
        if not own and not other:
            founders.append((int(o), int(p)))
        number = own or other or len(founders)
        for part, relation in ((groups[0], o), (groups[1], p)):
            part[relation], part[opposite(np.array([relation]), len(part))[0]] = number, -number
    return (groups[0], groups[1]), np.array(founders, np.int32).reshape(-1, 2)


def _propagate_side(
    around: Neighbourhood,
    ids: Ids,
    groups: Ids,
    labels: Floats,
    memory: Memory,
    turns: Any,
    settings: PropagationSettings,
    wanted: Ids | None,
) -> Floats:
    num_entities, dim, steps = len(around.starts) - 1, labels.shape[1], settings.steps
    degrees = np.diff(around.starts)
    identifying = around.functionality[opposite(around.relation_ids, len(around.functionality))]
    kinds = groups[around.relation_ids]
    known = np.where(kinds == 0, np.float32(settings.unknown), np.float32(1.0))
    weights = (known * identifying / np.sqrt(degrees[around.neighbour_ids])).astype(np.float32)
    is_seed, is_match = np.zeros(num_entities, np.bool_), np.zeros(num_entities, np.bool_)
    is_seed[ids[: memory.num_seeds]] = True
    is_match[ids[memory.num_seeds :]] = True
    own = np.zeros((num_entities, dim), np.float32)
    own[ids] = labels
    now = np.zeros((num_entities, dim), np.float32)
    now[ids] = labels * memory.weights[:, None]
    after = np.empty_like(now)
    result = np.zeros((num_entities, steps * dim), np.float32)
    needed = _needed(around, wanted, steps)
    edges = (around.starts, around.neighbour_ids, weights, kinds)
    share = np.float32(1 / np.sqrt(steps))
    for step in range(steps):
        part = result[:, step * dim : (step + 1) * dim]
        move: Any = (*edges, *turns, now, after, part, share, own, is_seed, is_match, step > 0, needed[step])
        _step(*move)
        now, after = after, now
    return result


def _needed(around: Neighbourhood, wanted: Ids | None, steps: int) -> list[NDArray[np.bool_]]:
    """At each step, the entities whose sums the wanted ones take up later; all of them where all are wanted."""
    num_entities = len(around.starts) - 1
    if wanted is None:
        return [np.ones(num_entities, np.bool_)] * steps
    is_needed = np.zeros(num_entities, np.bool_)
    is_needed[wanted] = True
    found = [is_needed]
    owners = np.repeat(np.arange(num_entities), np.diff(around.starts))
    for _ in range(steps - 1):
        is_needed = is_needed.copy()
        is_needed[around.neighbour_ids[is_needed[owners]]] = True
        found.append(is_needed)
    return found[::-1]


# No fast mathematics here: what is compiled afresh and what is loaded from the disk would round differently.
@numba.njit(cache=True, parallel=True)
def _step(  # type: ignore[no-untyped-def]
    starts,
    neighbours,
    weights,
    kinds,
    cosines,
    sines,
    now,
    after,
    result,
    share,
    own,
    is_seed,
    is_match,
    returns,
    is_needed,
):
    """Sums over neighbours, normalised; a match's own label, which comes back to it after two steps, is taken out.

    `result` has them all, times the share; in `after`, from which the next step goes on, seeds have their labels again.
    """
    dim, half = now.shape[1], cosines.shape[1]
    for entity in numba.prange(len(starts) - 1):
        if not is_needed[entity]:
            continue
        total = after[entity]
        total[:] = np.float32(0.0)
        for i in range(starts[entity], starts[entity + 1]):
            vector, weight = now[neighbours[i]], weights[i]
            cosine = cosines[abs(kinds[i])]
            sine = sines[abs(kinds[i])]
            back = np.float32(1.0) if kinds[i] >= 0 else np.float32(-1.0)
            # Dimension d turns with dimension half + d: so each runs over numbers that lie side by side.
            for d in range(half):
                a, b = vector[d], vector[half + d]
                total[d] += weight * (cosine[d] * a - back * sine[d] * b)
                total[half + d] += weight * (back * sine[d] * a + cosine[d] * b)
            for d in range(2 * half, dim):
                total[d] += weight * vector[d]
        before = lane_product(total, total)
        if returns and is_match[entity]:
            share_of_own = lane_product(total, own[entity])
            for d in range(dim):
                total[d] -= share_of_own * own[entity, d]
        length = lane_product(total, total)
        if length > 1e-6 * before:  # else what is left is the rounding error of taking it out
            scale = np.float32(1.0) / np.sqrt(length)
            for d in range(dim):
                total[d] *= scale
        else:
            total[:] = np.float32(0.0)
        row = result[entity]
        for d in range(dim):
            row[d] = total[d] * share
        if is_seed[entity]:
            total[:] = own[entity]
