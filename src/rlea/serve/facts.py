"""What a graph says about an entity: types, and values by property. A property is an attribute or a relation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rlea.arithmetic import log
from rlea.graph import KnowledgeGraph
from rlea.graph.names import local_name, plain
from rlea.io.readers.ntriples import RDF_TYPE


class Fact(NamedTuple):
    """A value of an entity: text, or another entity."""

    text: str  # of an entity, its name
    datatype: str = ""
    entity: int = -1  # -1 for text


@dataclass(frozen=True, eq=False)
class Facts:
    """The facts of a graph, looked up by entity."""

    graph: KnowledgeGraph

    @cached_property
    def attributes(self) -> dict[str, int]:
        """Attributes by identifier, without the one that says the type."""
        return {name: number for number, name in enumerate(self.graph.attributes) if name != RDF_TYPE}

    @cached_property
    def relations(self) -> dict[str, int]:
        """Relations by identifier."""
        return {name: number for number, name in enumerate(self.graph.relations)}

    @cached_property
    def properties(self) -> dict[str, str]:
        """Readable names by identifier, the most used property first."""
        used = Counter(dict.fromkeys((*self.attributes, *self.relations), 0))
        for names, ids in (
            (self.graph.attributes, self.graph.literals.attribute_ids),
            (self.graph.relations, self.graph.triples[:, 1]),
        ):
            for name, count in zip(names, np.bincount(ids, minlength=len(names)).tolist(), strict=True):
                if name in used:
                    used[name] += count
        return {name: local_name(name) for name in sorted(used, key=lambda name: (-used[name], name))}

    @cached_property
    def weights(self) -> dict[str, float]:
        """How far a value of a property tells entities apart, from 0 (all have the same) to 1 (each has its own)."""
        literals, triples = self.graph.literals, self.graph.triples
        distinct: dict[str, int] = {}
        order = np.argsort(literals.attribute_ids, kind="stable")
        for name, number in self.attributes.items():
            rows = _run(literals.attribute_ids[order], number)
            distinct[name] = len({literals.values[row] for row in order[rows].tolist()})
        for name, number in self.relations.items():
            tails = len(np.unique(triples[triples[:, 1] == number, 2]))
            distinct[name] = max(distinct.get(name, 0), tails)
        most = max(self.graph.num_entities, 2)
        shares = log(np.maximum(list(distinct.values()), 1)) / log(most)
        return dict(zip(distinct, np.minimum(shares, 1.0).tolist(), strict=True))

    def values(self, entity: int, name: str) -> list[Fact]:
        """The values of a property of an entity."""
        return [fact for own, fact in self.of(entity) if own == name]

    def find(self, name: str, text: str) -> list[int]:
        """The entities that have a value with these letters, whatever case and accents."""
        if name not in self._found:
            known: dict[str, list[int]] = {}
            literals, triples = self.graph.literals, self.graph.triples
            for row in np.flatnonzero(literals.attribute_ids == self.attributes.get(name, -1)).tolist():
                known.setdefault(plain(literals.values[row]), []).append(int(literals.entity_ids[row]))
            for head, _, tail in triples[triples[:, 1] == self.relations.get(name, -1)].tolist():
                known.setdefault(plain(self.graph.names[tail]), []).append(head)
            self._found[name] = known
        return self._found[name].get(plain(text), [])

    @cached_property
    def _found(self) -> dict[str, dict[str, list[int]]]:
        """Entities by value, of every property that was searched."""
        return {}

    def of(self, entity: int) -> list[tuple[str, Fact]]:
        """All facts of an entity but its types, as (property, value): attributes, then relations from it."""
        graph, literals = self.graph, self.graph.literals
        found = []
        for row in range(*_run(literals.entity_ids, entity).indices(len(literals))):
            name = graph.attributes[literals.attribute_ids[row]]
            if name != RDF_TYPE:
                found.append((name, Fact(literals.values[row], literals.datatypes[row])))
        for _, relation, tail in graph.triples[_run(graph.triples[:, 0], entity)].tolist():
            found.append((graph.relations[relation], Fact(graph.names[tail], entity=tail)))
        return found

    @cached_property
    def _types(self) -> tuple[dict[int, tuple[str, ...]], dict[str, NDArray[np.int32]]]:
        literals = self.graph.literals
        of_entity: dict[int, list[str]] = {}
        if RDF_TYPE in self.graph.attributes:
            number = self.graph.attributes.index(RDF_TYPE)
            for row in np.flatnonzero(literals.attribute_ids == number).tolist():
                of_entity.setdefault(int(literals.entity_ids[row]), []).append(literals.values[row])
        having: dict[str, list[int]] = {}
        for entity, names in of_entity.items():
            for name in names:
                having.setdefault(name, []).append(entity)
        by_number = sorted(having, key=lambda name: (-len(having[name]), name))
        members = {name: np.array(having[name], np.int32) for name in by_number}
        return {entity: tuple(names) for entity, names in of_entity.items()}, members

    def types(self, entity: int) -> tuple[str, ...]:
        """The types of an entity."""
        return self._types[0].get(entity, ())

    @property
    def all_types(self) -> dict[str, str]:
        """Readable names by identifier, the type of most entities first."""
        return {name: local_name(name) for name in self._types[1]}

    def used_by(self, type_: str) -> set[str]:
        """The properties that entities of a type have."""
        graph, is_one = self.graph, self.having([type_])
        attributes = np.unique(graph.literals.attribute_ids[is_one[graph.literals.entity_ids]])
        relations = np.unique(graph.triples[is_one[graph.triples[:, 0]], 1])
        used = {graph.attributes[number] for number in attributes} | {graph.relations[number] for number in relations}
        return used - {RDF_TYPE}

    def having(self, types: Iterable[str], all_of_them: bool = False) -> NDArray[np.bool_]:
        """Which entities have one of the types, or all of them; (num_entities,)."""
        counts, number = np.zeros(self.graph.num_entities, np.int32), 0
        for name in set(types):
            counts[self._types[1].get(name, np.zeros(0, np.int32))] += 1
            number += 1
        return np.asarray(counts >= (number if all_of_them else 1))


def _run(numbers: NDArray[np.int32], number: int) -> slice:
    """Where a number stands in sorted numbers."""
    # Of the same type: else all numbers would be converted for every search.
    first, last = np.searchsorted(numbers, np.array((number, number + 1), numbers.dtype))
    return slice(int(first), int(last))
