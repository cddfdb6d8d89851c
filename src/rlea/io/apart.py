"""Pairs of entities that are two things, and classes without a common entity: what a user knows not to be a link."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rlea.errors import InputError
from rlea.graph import GraphPair, KnowledgeGraph
from rlea.graph.cannot_link import CannotLink, class_bits, members_of
from rlea.io.readers.link_files import LinkFile, read_link_rows
from rlea.io.readers.memory import links_in_memory
from rlea.io.readers.places import check_there, is_path
from rlea.io.readers.rdf import RDF_FORMATS, parse_rdf
from rlea.io.readers.text import error_at, shown, suffix_of

DISJOINT = "http://www.w3.org/2002/07/owl#disjointWith"
Place = tuple[int, int]  # of a graph, and the id of an entity there


@dataclass(frozen=True)
class Apart:
    """What must not be linked, and the absolute paths of the files that say so."""

    pairs: Sequence[tuple[Place, Place]] = ()  # of entities, in the order of the file
    classes: Sequence[tuple[str, str]] = ()  # without a common entity
    inputs: tuple[tuple[str, str], ...] = ()

    def between(self, one: int, other: int, graphs: Sequence[KnowledgeGraph]) -> CannotLink:
        """What it says of the entities of two of the graphs, by their places."""
        found = []
        for first, second in self.pairs:
            found += [(a[1], b[1]) for a, b in ((first, second), (second, first)) if (a[0], b[0]) == (one, other)]
        bits = (class_bits(graphs[one], self.classes)[0], class_bits(graphs[other], self.classes)[1])
        return CannotLink.of(found, bits if self.classes else None)


def read_apart(different: Any, disjoint: Any, graphs: Sequence[KnowledgeGraph], *, ordered: bool = False) -> Apart:
    """What must not be linked: pairs of entities, pairs of classes; each a file, a frame, tuples, or None.

    `ordered`: there are two graphs, and the first of a pair is of the first. An identifier or a class that no graph has
    is an error: what was meant to be kept apart would not be.
    """
    inputs = tuple(
        (name, str(Path(value).absolute()))
        for name, value in (("different", different), ("disjoint", disjoint))
        if value is not None and is_path(value)
    )
    for value in (different, disjoint):
        if is_path(value):
            check_there(value)
    pairs, classes = list[tuple[Place, Place]](), list[tuple[str, str]]()
    if different is not None:
        rows = read_pairs(different, "different")
        for number, *names in zip(rows.numbers, rows.sources, rows.targets, strict=True):
            places = []
            for side, name in enumerate(names):
                own = [side] if ordered else range(len(graphs))
                found = [(k, graphs[k].entity_index[name]) for k in own if name in graphs[k].entity_index]
                if not found:
                    raise error_at(
                        rows.path, rows.unit, number, f"no graph has {shown(name)}", "correct the identifier"
                    )
                places.append(found)
            pairs += [(one, other) for one in places[0] for other in places[1] if one != other]
    if disjoint is not None:
        classes = read_disjoint(disjoint, graphs)
    return Apart(pairs, classes, inputs)


def read_disjoint(value: Any, graphs: Sequence[KnowledgeGraph]) -> list[tuple[str, str]]:
    """Pairs of classes: two columns, or owl:disjointWith in RDF, of which classes without entities do not matter."""
    if is_path(value) and suffix_of(Path(value)) in RDF_FORMATS:
        quads = [quad for quad in parse_rdf(Path(value)) if quad.predicate.value == DISJOINT]
        if not quads:
            problem = "says of no two classes that they are disjoint"
            raise InputError(problem, path=value, remedy="write owl:disjointWith, or a table of two columns")
        return sorted({(str(quad.subject.value), str(quad.object.value)) for quad in quads})
    rows = read_pairs(value, "disjoint")
    known = [members_of(graph, {*rows.sources, *rows.targets}) for graph in graphs]
    for number, *names in zip(rows.numbers, rows.sources, rows.targets, strict=True):
        if names[0] == names[1]:
            problem = f"{shown(names[0])} cannot be disjoint with itself"
            raise error_at(rows.path, rows.unit, number, problem, "name two classes")
        for name in names:
            if not any(members[name] for members in known):
                remedy = "write classes as rdf:type has them, or column=value for tables"
                raise error_at(rows.path, rows.unit, number, f"no entity has the class {shown(name)}", remedy)
    return sorted(set(zip(rows.sources, rows.targets, strict=True)))


def read_pairs(value: Any, name: str) -> LinkFile:
    """Pairs of identifiers from a file or from memory, at least one."""
    rows = read_link_rows(value) if is_path(value) else links_in_memory(value, name)
    if not len(rows):
        raise InputError("holds no links", path=rows.path, remedy="give at least one pair of entities")
    return rows


def keep_apart(pair: GraphPair, different: Any, disjoint: Any) -> GraphPair:
    """The pair with what must not be linked; its seeds must not be among that."""
    if different is None and disjoint is None:
        return pair
    graphs = pair.source, pair.target
    apart = read_apart(different, disjoint, graphs, ordered=True)
    barred = apart.between(0, 1, graphs)
    named = CannotLink.of(barred.pairs)
    wrong = ~named.allows(pair.train.source_ids, pair.train.target_ids)
    if wrong.any():
        place = int(wrong.argmax())
        ends = [
            graph.entities[ids[place]]
            for graph, ids in zip(graphs, (pair.train.source_ids, pair.train.target_ids), strict=True)
        ]
        remedy = "take it out of one of the two"
        raise InputError(f"{shown(ends[0])} - {shown(ends[1])} is a seed, and in --different", remedy=remedy)
    return replace(
        pair, cannot_link=barred.with_pairs(pair.cannot_link.pairs), inputs={**pair.inputs, **dict(apart.inputs)}
    )
