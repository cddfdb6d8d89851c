"""The probability that one relation, attribute or class is included in another: equations 12 and 17."""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np

from rlea.evidence.paris.equivalence import Equivalence, Weights, multiply_doubt
from rlea.evidence.paris.facts import Doubles, Facts


@dataclass(frozen=True, eq=False)
class Inclusion:
    """Pr(row included in column) for the relations and attributes of one graph (rows) in those of the other.

    The columns of `relations` are oriented: the second half are the inverses of the other graph's relations.
    """

    relations: Doubles  # (num_relations, 2 * num_other_relations)
    attributes: Doubles  # (num_attributes, num_other_attributes)


def include(facts: Facts, other: Facts, assigned: Equivalence, theta: float) -> Inclusion:
    """Equation 12: of the facts whose two ends have counterparts, the share that the other graph states too.

    Where no fact of a relation has counterparts, its probability is `theta`, as for all relations before the first
    entities are aligned.
    """
    partners = assigned.partners(facts.num_entities)
    sizes = len(facts.relations), len(other.relations)
    relations = _include_relations(facts.edge_arrays, other.edge_arrays, partners, *sizes)
    sizes = len(facts.values.attributes), len(other.values.attributes)
    attributes = _include_attributes(facts.value_arrays, other.value_arrays, partners, *sizes)
    return Inclusion(_share(relations, theta), _share(attributes, theta))


def weigh(source: Facts, target: Facts, forward: Inclusion, backward: Inclusion) -> Weights:
    """The weights of pairs of facts: inclusion each way times inverse functionality.

    `forward` is the inclusion of the source's relations in the target's, `backward` the reverse.
    """
    in_target = _oriented(forward.relations)
    in_source = _oriented(backward.relations).T
    source_inverse = _opposite(source.edges.functionality.astype(np.float64))
    target_inverse = _opposite(target.edges.functionality.astype(np.float64))
    return Weights(
        np.ascontiguousarray(in_source * source_inverse[:, None]),
        np.ascontiguousarray(in_target * target_inverse[None, :]),
        np.ascontiguousarray(backward.attributes.T * source.values.inverse_functionality[:, None]),
        np.ascontiguousarray(forward.attributes * target.values.inverse_functionality[None, :]),
    )


def include_classes(facts: Facts, other: Facts, assigned: Equivalence) -> Doubles:
    """Equation 17: the share of the members of a class (row) that are members of a class of the other graph (column).

    Shape (num_classes, num_other_classes), dense: classes are few compared with entities.
    """
    sums = _include_classes(
        (facts.class_starts, facts.class_ids),
        (other.class_starts, other.class_ids),
        assigned.partners(facts.num_entities),
        len(facts.classes),
        len(other.classes),
    )
    members = np.bincount(facts.class_ids, minlength=len(facts.classes))
    return np.asarray(sums / np.maximum(members, 1)[:, None])


def _share(counted: tuple[Doubles, Doubles], theta: float) -> Doubles:
    stated, all_facts = counted
    known = all_facts > 0.0
    shares = np.full_like(stated, theta)
    shares[known] = np.minimum(stated[known] / all_facts[known, None], 1.0)
    return shares


def _oriented(inclusion: Doubles) -> Doubles:
    """With rows for the inverses: the inverse of r is included in q as r is included in the inverse of q."""
    half = inclusion.shape[1] // 2
    return np.vstack([inclusion, np.hstack([inclusion[:, half:], inclusion[:, :half]])])


def _opposite(of_oriented: Doubles) -> Doubles:
    half = len(of_oriented) // 2
    return np.concatenate([of_oriented[half:], of_oriented[:half]])


@numba.njit(cache=True)
def _add_and_reset(missing, touched, stated):  # type: ignore[no-untyped-def]
    for place in touched:
        stated[place] += 1.0 - missing[place]
        missing[place] = 1.0


@numba.njit(cache=True)
def _include_relations(edges, other_edges, partners, num_relations, num_others):  # type: ignore[no-untyped-def]
    starts, relations, neighbours = edges
    other_starts, other_relations, other_neighbours = other_edges
    partner_starts, partner_ids, doubts = partners
    stated, all_facts = np.zeros((num_relations, 2 * num_others)), np.zeros(num_relations)
    missing = np.ones(2 * num_others)  # by relation, the probability that no counterpart of a fact is stated
    touched = np.empty(2 * num_others, dtype=np.int64)
    for x in range(len(starts) - 1):
        for i in range(starts[x], starts[x + 1]):
            r, y = relations[i], neighbours[i]
            if r >= num_relations:  # the same fact seen from its tail
                continue
            no_counterpart, num_touched = 1.0, 0
            for a in range(partner_starts[x], partner_starts[x + 1]):
                for b in range(partner_starts[y], partner_starts[y + 1]):
                    first, second = partner_ids[a], partner_ids[b]
                    doubt = 1.0 - (1.0 - doubts[a]) * (1.0 - doubts[b])
                    no_counterpart *= doubt
                    # Search the end with fewer facts; seen from the other end, a relation is its inverse.
                    turned = (
                        other_starts[second + 1] - other_starts[second] < other_starts[first + 1] - other_starts[first]
                    )
                    if turned:
                        first, second = second, first
                    for j in range(other_starts[first], other_starts[first + 1]):
                        if other_neighbours[j] == second:
                            q = other_relations[j]
                            if turned:
                                q = q - num_others if q >= num_others else q + num_others
                            num_touched = multiply_doubt(missing, touched, num_touched, q, doubt)
            all_facts[r] += 1.0 - no_counterpart
            _add_and_reset(missing, touched[:num_touched], stated[r])
    return stated, all_facts


@numba.njit(cache=True)
def _include_attributes(literals, other_literals, partners, num_attributes, num_others):  # type: ignore[no-untyped-def]
    starts, attributes, values = literals
    other_starts, other_attributes, other_values = other_literals
    partner_starts, partner_ids, doubts = partners
    stated, all_facts = np.zeros((num_attributes, num_others)), np.zeros(num_attributes)
    missing = np.ones(num_others)
    touched = np.empty(num_others, dtype=np.int64)
    for x in range(len(starts) - 1):
        for i in range(starts[x], starts[x + 1]):
            a = attributes[i]
            no_counterpart, num_touched = 1.0, 0
            for place in range(partner_starts[x], partner_starts[x + 1]):
                z, doubt = partner_ids[place], doubts[place]
                no_counterpart *= doubt
                for j in range(other_starts[z], other_starts[z + 1]):
                    if other_values[j] == values[i]:
                        num_touched = multiply_doubt(missing, touched, num_touched, other_attributes[j], doubt)
            all_facts[a] += 1.0 - no_counterpart
            _add_and_reset(missing, touched[:num_touched], stated[a])
    return stated, all_facts


@numba.njit(cache=True)
def _include_classes(classes, other_classes, partners, num_classes, num_others):  # type: ignore[no-untyped-def]
    starts, ids = classes
    other_starts, other_ids = other_classes
    partner_starts, partner_ids, doubts = partners
    sums = np.zeros((num_classes, num_others))
    missing = np.ones(num_others)
    touched = np.empty(num_others, dtype=np.int64)
    for x in range(len(starts) - 1):
        if starts[x] == starts[x + 1]:
            continue
        num_touched = 0
        for place in range(partner_starts[x], partner_starts[x + 1]):
            z = partner_ids[place]
            for j in range(other_starts[z], other_starts[z + 1]):
                num_touched = multiply_doubt(missing, touched, num_touched, other_ids[j], doubts[place])
        for k in range(num_touched):
            for i in range(starts[x], starts[x + 1]):
                sums[ids[i], touched[k]] += 1.0 - missing[touched[k]]
            missing[touched[k]] = 1.0
    return sums
