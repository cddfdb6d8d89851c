"""Pairs that are never linked: named one by one, or by classes that have no entity in common."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from rlea.graph.knowledge_graph import Ids, KnowledgeGraph

RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
WORD = 64  # bits of a number

Bits = NDArray[np.uint64]


class CannotLink(NamedTuple):
    """Which pairs of a source and a target entity are never linked; a tuple of arrays, for compiled code as well.

    A pair is barred if its key is among `keys`, or if its two entities have a bit in common.
    """

    keys: NDArray[np.int64]  # (num_pairs,) ascending: source id << 32 | target id
    source_bits: Bits  # (num_source, num_words); no rows where no classes are told apart
    target_bits: Bits  # (num_target, num_words)

    @staticmethod
    def of(pairs: Iterable[tuple[int, int]], bits: tuple[Bits, Bits] | None = None) -> CannotLink:
        """Pairs of ids, and the bits of both sides."""
        keys = np.array(sorted({source << 32 | target for source, target in pairs}), np.int64)
        nothing = np.zeros((0, 0), np.uint64)
        return CannotLink(keys, *(bits or (nothing, nothing)))

    @property
    def is_empty(self) -> bool:
        """Every pair may be linked."""
        return not len(self.keys) and not self.source_bits.any()

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Those that are named one by one."""
        return [(key >> 32, key & 0xFFFFFFFF) for key in self.keys.tolist()]

    def allows(self, source_ids: Ids, target_ids: Ids) -> NDArray[np.bool_]:
        """Which of these pairs may be linked, (num_pairs,)."""
        allowed = np.ones(len(source_ids), np.bool_)
        if len(self.keys):
            allowed &= ~np.isin(source_ids.astype(np.int64) << 32 | target_ids, self.keys)
        if len(self.source_bits):
            allowed &= ~(self.source_bits[source_ids] & self.target_bits[target_ids]).any(axis=1)
        return allowed

    def joined(self, source_ids: Ids, target_ids: Ids) -> CannotLink:
        """The same where several entities became one, which must not do what one of them must not.

        `source_ids` and `target_ids` have the new id of every entity.
        """
        pairs = [(int(source_ids[one]), int(target_ids[other])) for one, other in self.pairs]
        bits = []
        for old, ids in ((self.source_bits, source_ids), (self.target_bits, target_ids)):
            new = np.zeros((int(ids.max(initial=-1)) + 1 if len(old) else 0, old.shape[1]), np.uint64)
            if len(old):
                np.bitwise_or.at(new, ids, old)
            bits.append(new)
        return CannotLink.of(pairs, (bits[0], bits[1]))


NO_PAIRS = CannotLink.of([])


def class_bits(graph: KnowledgeGraph, disjoint: Sequence[tuple[str, str]]) -> tuple[Bits, Bits]:
    """Bits of the entities of a graph as a source and as a target, (num_entities, num_words) each.

    `disjoint` are pairs of classes that have no entity in common. Pair k has the bits 2k and 2k + 1: of its first and
    second class for a source, the other way round for a target, so that a source of one and a target of the other have
    a bit in common.
    """
    shape = graph.num_entities, -(-2 * len(disjoint) // WORD)
    bits = np.zeros(shape, np.uint64), np.zeros(shape, np.uint64)
    members = members_of(graph, {name for pair in disjoint for name in pair})
    for number, pair in enumerate(disjoint):
        for place, name in enumerate(pair):
            for side, bit in enumerate((2 * number + place, 2 * number + 1 - place)):
                bits[side][members[name], bit // WORD] |= np.uint64(1 << bit % WORD)
    return bits


def bits_of(graph: KnowledgeGraph, disjoint: Sequence[tuple[str, str]]) -> list[tuple[int, int]]:
    """The bits of `class_bits` as two whole numbers for every entity."""
    sides = class_bits(graph, disjoint)
    return [
        (int.from_bytes(first.tobytes(), "little"), int.from_bytes(second.tobytes(), "little"))
        for first, second in zip(*(side.astype("<u8") for side in sides), strict=True)
    ]


def members_of(graph: KnowledgeGraph, classes: Iterable[str]) -> dict[str, list[int]]:
    """The entities of each class: an object of rdf:type, or `attribute=value` such as kind=hotel."""
    wanted = {name: list[int]() for name in classes}
    facts = graph.literals
    for entity, attribute, value in zip(
        facts.entity_ids.tolist(), facts.attribute_ids.tolist(), facts.values, strict=True
    ):
        name = graph.attributes[attribute]
        for called in (value,) if name == RDF_TYPE else (f"{name}={value}",):
            if called in wanted:
                wanted[called].append(entity)
    for head, relation, tail in graph.triples.tolist():
        name, other = graph.relations[relation], graph.entities[tail]
        for called in (other,) if name == RDF_TYPE else (f"{name}={other}", f"{name}={graph.names[tail]}"):
            if called in wanted:
                wanted[called].append(head)
    return wanted
