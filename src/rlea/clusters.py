"""Clusters from pairs: entities that are the same thing, as sets, so that no single wrong pair joins two of them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

ONCE = 1, 0.0  # how often a number stands for an entity, and how sure pairs of these are
LEAST = 0.5  # mean confidence of the pairs between two clusters from which on they are one


@dataclass(frozen=True)
class Cluster:
    """Entities that are one thing, in order, and the mean confidence of all pairs of them."""

    members: tuple[int, ...]
    confidence: float


def cluster_pairs(
    confidences: Mapping[tuple[int, int], float],
    *,
    least: float = LEAST,
    kinds: Sequence[Hashable] | Mapping[int, Hashable] | None = None,
    forbidden: Iterable[tuple[int, int]] = (),
    opposed: Sequence[tuple[int, int]] | None = None,
    labels: Mapping[int, Hashable] | None = None,
    copies: Mapping[int, tuple[int, float]] | None = None,
) -> list[Cluster]:
    """Clusters of two members and more by average linkage: the two with the surest pairs between them first.

    `confidences` has pairs of numbers, each once in any order; a pair that is not there has confidence 0. Two clusters
    become one if the mean confidence over all pairs between them is `least` or more. `kinds` are what a cluster has at
    most one member of, such as the graph that an entity is from; `forbidden` pairs are never in one cluster, nor are
    two numbers of which one has a bit in the first set of `opposed` that the other has in its second, nor two that have
    different `labels`. `copies`
    says how often a number stands for an entity, if more than once, and how sure each pair of these is: means are over
    pairs of entities.

    >>> cluster_pairs({(0, 1): 0.9, (1, 2): 0.8, (0, 2): 0.4, (2, 3): 0.6})
    [Cluster(members=(0, 1, 2), confidence=0.7)]
    """
    copies = copies or {}
    sums: dict[int, dict[int, float]] = {one: {} for one in copies}  # cluster -> cluster -> sum between them
    for (one, other), confidence in confidences.items():
        if one != other:
            value = confidence * copies.get(one, ONCE)[0] * copies.get(other, ONCE)[0]
            sums.setdefault(one, {})[other] = value
            sums.setdefault(other, {})[one] = value
    members = {one: [one] for one in sums}
    counts = {one: copies.get(one, ONCE)[0] for one in sums}  # of entities
    # Sum of confidences within a cluster.
    inner = {one: copies.get(one, ONCE)[1] * counts[one] * (counts[one] - 1) / 2 for one in sums}
    own_kinds = {one: set() if kinds is None else {kinds[one]} for one in sums}
    own_bits = {one: (0, 0) if opposed is None else opposed[one] for one in sums}
    own_labels = {one: {labels[one]} if labels and one in labels else set() for one in sums}
    barred: dict[int, set[int]] = {one: set() for one in sums}
    for one, other in forbidden:
        if one != other and one in barred and other in barred:
            barred[one].add(other)
            barred[other].add(one)
    # The surest first; equals by the smallest members, which are the numbers of clusters.
    heap = [
        (-value / (counts[one] * counts[other]), one, other, counts[one], counts[other])
        for one, row in sums.items()
        for other, value in row.items()
        if one < other
    ]
    heapify(heap)
    while heap:
        mean, one, other, *sizes = heappop(heap)
        if -mean < least:
            break
        is_there = one in members and other in members
        if not is_there or sizes != [counts[one], counts[other]]:
            continue  # one of them has grown since
        if other in barred[one] or own_kinds[one] & own_kinds[other]:
            continue
        if own_bits[one][0] & own_bits[other][1] or own_bits[one][1] & own_bits[other][0]:
            continue
        if len(own_labels[one] | own_labels[other]) > 1:
            continue
        inner[one] += inner.pop(other) + sums[one].pop(other)
        members[one] += members.pop(other)
        counts[one] += counts.pop(other)
        own_kinds[one] |= own_kinds.pop(other)
        own_labels[one] |= own_labels.pop(other)
        (first, second), (more_first, more_second) = own_bits[one], own_bits.pop(other)
        own_bits[one] = first | more_first, second | more_second
        for third in barred.pop(other):
            barred[third] = barred[third] - {other} | {one}
            barred[one].add(third)
        del sums[other][one]
        for third, value in sums.pop(other).items():
            del sums[third][other]
            sums[one][third] = sums[third][one] = sums[one].get(third, 0.0) + value
        for third, value in sums[one].items():
            low, high = sorted((one, third))
            count = counts[low], counts[high]
            heappush(heap, (-value / (count[0] * count[1]), low, high, *count))
    found = [
        Cluster(tuple(sorted(own)), round(inner[one] * 2 / (counts[one] * (counts[one] - 1)), 6))
        for one, own in members.items()
        if counts[one] > 1
    ]
    return sorted(found, key=lambda cluster: cluster.members)
