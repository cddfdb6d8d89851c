"""Biased random walks over two graphs that seeds tie together (Guo et al., 2019, section 4).

Every triple is read both ways (a relation has a reverse of its own), and once more for every way to put the
counterpart of a seed entity in its place; so a walk that comes to a seed goes on in either graph. From entity i a walk
takes one of the triples of i, and the one to entity i + 1 with a probability in proportion to depth x cross, where

    depth = depth_bias  if i + 1 is two steps away from entity i - 1,     else 1 - depth_bias  (back, or round about),
    cross = cross_bias  if i + 1 and i - 1 are not of the same graph,     else 1 - cross_bias.

Draws are hashes of (seed, number of the walk, draw), not a stream, so that any number of threads draws alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from rlea.graph import Ids, Links
from rlea.models.kernels import GOLDEN, below, bits_of
from rlea.models.triples import JointTriples, swapped_copies
from rlea.search.candidates import mix

if TYPE_CHECKING:
    from rlea.models.rsn import RSNSettings


class JointGraph(NamedTuple):
    """Triples of both graphs, their reverses and their swapped copies, sorted by head; joint ids.

    The reverse of relation r has the id num_relations + r.
    """

    triples: Ids  # (num_triples, 3)
    begins: NDArray[np.int64]  # (num_entities + 1,) the triples of head e are those from begins[e] to begins[e + 1]
    neighbours: Ids  # tails of every head, sorted and without repetition
    neighbour_begins: NDArray[np.int64]  # (num_entities + 1,)
    num_source_entities: int
    num_relations: int  # without the reverses

    @property
    def num_entities(self) -> int:
        return len(self.begins) - 1

    @staticmethod
    def of(joint: JointTriples, seeds: Links) -> JointGraph:
        """`joint` without swapped copies; `seeds` link a source id to a target id of the target graph's own numbers."""
        forward = np.concatenate([joint.source, joint.target])
        reverse = forward[:, ::-1] + np.array([0, joint.num_relations, 0], dtype=np.int32)
        triples = np.concatenate([forward, reverse])
        target_ids = seeds.target_ids + np.int32(joint.num_source_entities)
        from_ids = np.concatenate([seeds.source_ids, target_ids])
        to_ids = np.concatenate([target_ids, seeds.source_ids])
        for _ in range(2):  # a copy has one end swapped, and a copy of a copy both
            triples = np.unique(np.concatenate([triples, swapped_copies(triples, from_ids, to_ids)]), axis=0)
        between = np.unique(triples[:, [0, 2]], axis=0)
        heads = np.arange(joint.num_entities + 1)
        return JointGraph(
            triples=np.ascontiguousarray(triples, dtype=np.int32),
            begins=np.searchsorted(triples[:, 0], heads),
            neighbours=np.ascontiguousarray(between[:, 1], dtype=np.int32),
            neighbour_begins=np.searchsorted(between[:, 0], heads),
            num_source_entities=joint.num_source_entities,
            num_relations=joint.num_relations,
        )


def draw_walks(graph: JointGraph, settings: RSNSettings, seed: int) -> Ids:
    """`walks_per_triple` walks that begin with each triple: (num_walks, walk_length), entities and relations in turn.

    No walk ends early: where it came from, it can always return to.
    """
    walks = np.empty((settings.walks_per_triple * len(graph.triples), settings.walk_length), dtype=np.int32)
    _walk(graph, settings.depth_bias, settings.cross_bias, np.uint64(seed), walks)
    return walks


_LOW = np.uint64(0xFFFFFFFF)


@numba.njit(cache=True)
def _is_neighbour(neighbours: Any, begin: Any, end: Any, entity: Any) -> Any:
    while begin < end:
        middle = (begin + end) // 2
        if neighbours[middle] < entity:
            begin = middle + 1
        elif neighbours[middle] > entity:
            end = middle
        else:
            return True
    return False


@numba.njit(parallel=True, cache=True)
def _walk(graph: Any, depth_bias: Any, cross_bias: Any, seed: Any, walks: Any) -> None:
    """Draw any triple of the entity, and draw again by chance where its bias is not the highest."""
    triples, begins, neighbours, neighbour_begins, num_source, _ = graph
    highest = max(depth_bias, 1 - depth_bias) * max(cross_bias, 1 - cross_bias)
    for w in numba.prange(len(walks)):
        walk = walks[w]
        walk[:3] = triples[w % len(triples)]
        state = bits_of(bits_of(seed) + np.uint64(w))
        for i in range(2, len(walk) - 1, 2):
            before, here = walk[i - 2], walk[i]
            while True:
                state += GOLDEN
                bits = mix(state)
                drawn = begins[here] + below(bits, begins[here + 1] - begins[here])
                after = triples[drawn, 2]
                is_near = after == before or _is_neighbour(
                    neighbours, neighbour_begins[before], neighbour_begins[before + 1], after
                )
                bias = 1 - depth_bias if is_near else depth_bias
                bias *= cross_bias if (before < num_source) != (after < num_source) else 1 - cross_bias
                if np.float64(bits & _LOW) * 2.0**-32 * highest < bias:
                    break
            walk[i + 1] = triples[drawn, 1]
            walk[i + 2] = after
