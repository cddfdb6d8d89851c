"""Links in RDF: owl:sameAs (or skos:exactMatch) triples, or the cells of the Alignment API."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from rlea.errors import InputError
from rlea.graph.iri import from_iri
from rlea.io.readers.link_files import ALIGNMENT, IDENTITY, LinkFile, confidence_of
from rlea.io.readers.rdf import LINE_FORMATS, parse_rdf, rdf_format
from rlea.io.readers.text import error_at, read_text

_CELL = ("entity1", "entity2", "measure", "relation")


def read_rdf_links(path: Path) -> LinkFile:
    """The links of an RDF file; where it has cells of the Alignment API, only these count."""
    from pyoxigraph import Literal, NamedNode

    found: list[tuple[str, str, float, int]] = []
    cells: dict[object, dict[str, str]] = {}
    is_alignment = False
    num_quads = 0
    for num_quads, quad in enumerate(parse_rdf(path), start=1):
        predicate = quad.predicate.value
        if predicate in IDENTITY and isinstance(quad.subject, NamedNode) and isinstance(quad.object, NamedNode):
            found.append((from_iri(quad.subject.value), from_iri(quad.object.value), math.nan, num_quads))
        elif (match := ALIGNMENT.fullmatch(predicate)) is not None:
            is_alignment = True
            if match[1] in _CELL and isinstance(quad.object, NamedNode | Literal):
                cells.setdefault(quad.subject, {})[match[1]] = quad.object.value
    if is_alignment:
        return _from_cells(path, cells)
    if not found:
        remedy = "give links as owl:sameAs triples, in the Alignment API format, or as TSV"
        raise InputError("holds neither owl:sameAs triples nor cells of an alignment", path=path, remedy=remedy)
    if rdf_format(path) in LINE_FORMATS:
        # One statement per line, so the n-th quad is on the n-th line that is neither blank nor a comment.
        texts = (line.strip() for line in read_text(path).split("\n"))
        lines = [number for number, text in enumerate(texts, start=1) if text and not text.startswith("#")]
        if len(lines) == num_quads:  # not so where lines end in a carriage return alone
            rows = [(source, target, confidence, lines[place - 1]) for source, target, confidence, place in found]
            return LinkFile.of_matches(path, rows, "line", num_quads)
    return LinkFile.of_matches(path, found, "link", num_quads)


def _from_cells(path: Path, cells: Mapping[object, Mapping[str, str]]) -> LinkFile:
    found = []
    for number, cell in enumerate(cells.values(), start=1):
        for side in ("entity1", "entity2"):
            if not cell.get(side):
                raise error_at(path, "link", number, f"the cell has no {side}", "complete the cell or delete it")
        if cell.get("relation", "=").strip() in ("=", "equivalence", "EquivRelation"):
            confidence = confidence_of(path, "link", number, cell.get("measure", ""))
            found.append((from_iri(cell["entity1"]), from_iri(cell["entity2"]), confidence, number))
    return LinkFile.of_matches(path, found, "link", len(cells))
