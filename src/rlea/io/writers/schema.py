"""What corresponds in the schemas: as tab-separated text, a file each for relations, attributes and classes; and as one
SSSOM mapping set in the terms of OWL and RDFS."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from rlea.graph.names import local_name
from rlea.graph.schema import (
    ATTRIBUTES,
    CLASSES,
    DECIMALS,
    RELATIONS,
    SCHEMA_FILES,
    Alignment,
    Schema,
    columns_of,
)
from rlea.io.writers.rows import LinkRows
from rlea.io.writers.sssom import MappingSet, put_mappings
from rlea.io.writers.tsv import put_table

__all__ = ["SCHEMA_FILES", "SCHEMA_SSSOM", "schema_files", "schema_sssom"]

SCHEMA_SSSOM = "schema.sssom.tsv"
LIKELY = 0.5  # probability from which on one is taken to be included in the other
# What SSSOM calls the things of each part; its predicates for the same, and for one within the other.
_TERMS = {
    RELATIONS: ("owl object property", "owl:equivalentProperty", "rdfs:subPropertyOf"),
    ATTRIBUTES: ("owl data property", "owl:equivalentProperty", "rdfs:subPropertyOf"),
    CLASSES: ("owl class", "owl:equivalentClass", "rdfs:subClassOf"),
}
_INVERSE = "owl:inverseOf"


def schema_files(schema: Schema) -> dict[str, Callable[[Path], None]]:
    """The files of a schema by name, each as the function that writes it: what `write_links` takes as `extra`.

    Lines are sorted, the surest first, under the header `source`, `target`, `source_in_target`, `target_in_source`;
    relations have a column `direction` after the target: `same`, or `inverse` where the source relation corresponds to
    the inverse of the target's. Of SCHEMA_FILES only those are here that have a line; where an earlier run left
    others, they are to be removed.
    """
    parts = schema.as_written().parts.items()
    return {
        file: partial(_put, file, part, found) for file, (part, found) in zip(SCHEMA_FILES, parts, strict=True) if found
    }


def _put(file: str, part: str, found: tuple[Alignment, ...], path: Path) -> None:
    rows = [
        (
            one.source,
            one.target,
            *(("inverse" if one.is_inverse else "same",) if part == RELATIONS else ()),
            f"{one.source_in_target:.{DECIMALS}f}",
            f"{one.target_in_source:.{DECIMALS}f}",
        )
        for one in found
    ]
    put_table(path, columns_of(part), rows, shown=file, remedy="give it another name in the graph")


def schema_sssom(schema: Schema, attributes: Container[str], about: MappingSet) -> dict[str, Callable[[Path], None]]:
    """The mapping set of a schema by its file name, as `schema_files`; empty where nothing is likely.

    Either inclusion counts from a probability of LIKELY on. Both make two properties or classes equivalent, with the
    lower of the probabilities as confidence; one makes the included the subject of rdfs:subPropertyOf or
    rdfs:subClassOf, whichever graph it is of. Inverse relations have owl:inverseOf; that one is included in the
    inverse of the other has no predicate. `attributes` are those of both graphs: "birthDate (year)" is none of them.
    """
    rows = [
        (*said, kind)
        for part, found in schema.as_written().parts.items()
        for one in found
        if one.source != one.target  # a property that both graphs use needs no mapping
        if part != ATTRIBUTES or (one.source in attributes and one.target in attributes)
        for kind, same, within in [_TERMS[part]]
        for said in _mappings(one, same, within)
    ]
    if not rows:
        return {}
    rows.sort(key=lambda row: (-row[3], *row[:3]))
    subjects, predicates, objects, confidences, kinds = map(list, zip(*rows, strict=True))
    labels = [tuple(map(local_name, names)) for names in (subjects, objects)]
    links = LinkRows(tuple(subjects), tuple(objects), np.array(confidences), *labels)
    more = {"subject_type": kinds, "object_type": kinds}
    # Found by the entities that have them, which is what the term says.
    told = replace(about, justification="semapv:InstanceBasedMatching")
    return {SCHEMA_SSSOM: lambda path: put_mappings(path, links, told, predicates, more)}


def _mappings(one: Alignment, same: str, within: str) -> Iterator[tuple[str, str, str, float]]:
    """Subject, predicate, object and confidence of what is likely."""
    there, back = one.source_in_target, one.target_in_source
    if min(there, back) >= LIKELY:
        yield one.source, _INVERSE if one.is_inverse else same, one.target, min(there, back)
    elif there >= LIKELY and not one.is_inverse:
        yield one.source, within, one.target, there
    elif back >= LIKELY and not one.is_inverse:
        yield one.target, within, one.source, back
