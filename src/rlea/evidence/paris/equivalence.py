"""The probability that two entities are the same: the noisy-or of equation 13, and the maximal assignment from it."""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

from rlea.evidence.paris.facts import Doubles, Facts, Starts
from rlea.graph import Ids, Links

# Products of the same factors in another order differ in the last digits but are ties.
_TIE = 1.0 + 1e-9


@dataclass(frozen=True, eq=False)
class Equivalence:
    """Pairs of entities, sorted by source then target, each with its doubt: 1 - probability.

    Doubts distinguish what probabilities cannot: 1e-20 and 1e-30 are both the probability 1.
    """

    source_ids: Ids  # (num_pairs,)
    target_ids: Ids  # (num_pairs,)
    doubts: Doubles  # (num_pairs,) in [0, 1]

    def __len__(self) -> int:
        return len(self.source_ids)

    def partners(self, num_source: int) -> tuple[Starts, Ids, Doubles]:
        """Where the pairs of every source begin, their targets, and their doubts."""
        starts = np.searchsorted(self.source_ids, np.arange(num_source + 1)).astype(np.int64)
        return starts, self.target_ids, self.doubts

    def some(self, chosen: NDArray[np.bool_]) -> Equivalence:
        """The chosen pairs."""
        return Equivalence(self.source_ids[chosen], self.target_ids[chosen], self.doubts[chosen])

    def reversed(self) -> Equivalence:
        """The same pairs with source and target exchanged."""
        return Equivalence.sort(self.target_ids, self.source_ids, self.doubts)

    @staticmethod
    def sort(source_ids: Ids, target_ids: Ids, doubts: Doubles) -> Equivalence:
        """Pairs in any order."""
        order = np.lexsort((target_ids, source_ids))
        return Equivalence(source_ids[order], target_ids[order], doubts[order])

    @staticmethod
    def of(links: Links) -> Equivalence:
        """Links as certain pairs."""
        pairs = np.unique(np.stack([links.source_ids, links.target_ids], axis=1), axis=0)
        return Equivalence(pairs[:, 0].copy(), pairs[:, 1].copy(), np.zeros(len(pairs)))


@dataclass(frozen=True, eq=False)
class Weights:
    """The weight of a pair of facts, by source (row) and target (column) predicate, in [0, 1].

    `by_source` is Pr(target included in source) times the inverse functionality of the source predicate, `by_target`
    the same with the sides exchanged. Relations are oriented as in `Neighbourhood`, twice as many as there are.
    """

    relations_by_source: Doubles  # (2 * num_source_relations, 2 * num_target_relations)
    relations_by_target: Doubles
    attributes_by_source: Doubles  # (num_source_attributes, num_target_attributes)
    attributes_by_target: Doubles


def equate(
    source: Facts, target: Facts, assigned: Equivalence, weights: Weights, *, floor: float, max_pairs: int
) -> Equivalence:
    """All pairs with a probability of at least `floor`, by equation 13.

    `assigned` are the pairs that are evidence for their neighbours. A value, or a pair of neighbours, that is evidence
    for more than `max_pairs` pairs is ignored.
    """
    rows, columns, doubts = _equate(
        source.edge_arrays,
        target.edge_arrays,
        source.value_arrays,
        source.values.value_starts,
        (target.values.value_starts, target.values.value_attribute_ids, target.values.value_entity_ids),
        assigned.partners(source.num_entities),
        weights.relations_by_source,
        weights.relations_by_target,
        (1.0 - weights.attributes_by_source) * (1.0 - weights.attributes_by_target),
        target.num_entities,
        1.0 - floor,
        max_pairs,
    )
    return Equivalence.sort(rows, columns, doubts)


def fix(found: Equivalence, seeds: Equivalence) -> Equivalence:
    """Add the seeds as certain pairs and remove all other pairs of their entities."""
    if not len(seeds):
        return found
    free = ~np.isin(found.source_ids, seeds.source_ids) & ~np.isin(found.target_ids, seeds.target_ids)
    rows = np.concatenate([found.source_ids[free], seeds.source_ids])
    columns = np.concatenate([found.target_ids[free], seeds.target_ids])
    return Equivalence.sort(rows, columns, np.concatenate([found.doubts[free], seeds.doubts]))


def maximal(found: Equivalence, num_source: int, num_target: int) -> Equivalence:
    """The maximal assignment: the pairs of which neither entity has a better partner. All ties are kept."""
    is_best = _is_least(found.source_ids, found.doubts, num_source)
    return found.some(is_best & _is_least(found.target_ids, found.doubts, num_target))


def _is_least(groups: Ids, doubts: Doubles, num_groups: int) -> NDArray[np.bool_]:
    least = np.full(num_groups, np.inf)
    np.minimum.at(least, groups, doubts)
    return np.asarray(doubts <= least[groups] * _TIE)


@numba.njit(cache=True)
def multiply_doubt(doubts, touched, num_touched, place, factor):  # type: ignore[no-untyped-def]
    """Multiply one of many doubts, all 1 at first; `touched` lists the changed ones, and their number is returned."""
    if doubts[place] == 1.0 and factor < 1.0:
        touched[num_touched] = place
        num_touched += 1
    doubts[place] *= factor
    return num_touched


@numba.njit(cache=True)
def _equate(  # type: ignore[no-untyped-def]
    edges, other_edges, literals, value_starts, other_values, assigned, by_source, by_target, attribute_doubts,
    num_target, max_doubt, max_pairs,
):  # fmt: skip
    starts, relations, neighbours = edges
    other_starts, other_relations, other_neighbours = other_edges
    literal_starts, attributes, values = literals
    other_value_starts, other_attributes, other_entities = other_values
    assigned_starts, partners, partner_doubts = assigned
    num_oriented = by_source.shape[1]
    half = num_oriented // 2
    doubt = np.ones(num_target)
    touched = np.empty(num_target, dtype=np.int32)
    size = 1024
    rows, columns, doubts = np.empty(size, np.int32), np.empty(size, np.int32), np.empty(size)
    count = 0
    for x in range(len(starts) - 1):
        num_touched = 0
        for i in range(starts[x], starts[x + 1]):
            r, y = relations[i], neighbours[i]
            degree = starts[y + 1] - starts[y]
            for place in range(assigned_starts[y], assigned_starts[y + 1]):
                z, probability = partners[place], 1.0 - partner_doubts[place]
                if degree * (other_starts[z + 1] - other_starts[z]) > max_pairs:
                    continue
                for j in range(other_starts[z], other_starts[z + 1]):
                    # Seen from z, the relation leads back to the entity that is compared with x.
                    q = other_relations[j]
                    q = q - half if q >= half else q + half
                    factor = (1.0 - by_source[r, q] * probability) * (1.0 - by_target[r, q] * probability)
                    num_touched = multiply_doubt(doubt, touched, num_touched, other_neighbours[j], factor)
        for i in range(literal_starts[x], literal_starts[x + 1]):
            a, v = attributes[i], values[i]
            first, last = other_value_starts[v], other_value_starts[v + 1]
            if (value_starts[v + 1] - value_starts[v]) * (last - first) > max_pairs:
                continue
            for j in range(first, last):
                factor = attribute_doubts[a, other_attributes[j]]
                num_touched = multiply_doubt(doubt, touched, num_touched, other_entities[j], factor)
        for i in range(num_touched):
            w = touched[i]
            if doubt[w] <= max_doubt:
                if count == size:
                    size *= 2
                    rows, columns, doubts = _grow(rows, size), _grow(columns, size), _grow(doubts, size)
                rows[count], columns[count], doubts[count] = x, w, doubt[w]
                count += 1
            doubt[w] = 1.0
    return rows[:count], columns[:count], doubts[:count]


@numba.njit(cache=True)
def _grow(array, size):  # type: ignore[no-untyped-def]
    larger = np.empty(size, array.dtype)
    larger[: len(array)] = array
    return larger
