"""Graphs as RDF: N-Triples (also compressed, and as N-Quads), Turtle or RDF/XML."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path

import numpy as np

from rlea.errors import InputError
from rlea.graph import KnowledgeGraph
from rlea.io.writers.iris import strict_iri

RDF_FORMATS = ("nt", "nt.gz", "ttl", "rdf", "nq")
_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDF_TYPE = _RDF + "type"
_RESOURCE = "http://www.w3.org/2000/01/rdf-schema#Resource"
# RDF says "plain text" and "text in a language" without a datatype.
_IMPLIED = ("", "http://www.w3.org/2001/XMLSchema#string", _RDF + "langString")
_ROWS_AT_A_TIME = 100_000  # some 20 MB of text

SPECIAL = re.compile(r'[\x00-\x1f\x7f"\\]')
# Code points, quotes and backslashes; the layout of OpenEA knows no other escapes.
PLAIN_ESCAPES = {number: f"\\u{number:04X}" for number in (*range(0x20), 0x7F)} | {ord('"'): '\\"', ord("\\"): "\\\\"}
_ESCAPES = PLAIN_ESCAPES | {ord(one): f"\\{letter}" for one, letter in zip("\n\r\t\b\f", "nrtbf", strict=True)}
LANGUAGE = re.compile(r"[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*")
_NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_NAME_START = (
    "A-Z_a-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c\u200d\u2070-\u218f\u2c00-\u2fef"
    "\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_XML_NAME_AT_END = re.compile(rf"[{_NAME_START}][{_NAME_START}\-.0-9\u00b7\u0300-\u036f\u203f\u2040]*\Z")


def put_rdf(temporary: Path, path: Path, graph: KnowledgeGraph, format_: str) -> None:
    """Write a graph to `temporary`; `path` is for errors."""
    chunks = (chunk.encode() for chunk in ntriples(graph, path))
    with temporary.open("wb") as file:
        if format_ in ("nt", "nq"):
            file.writelines(chunks)
        elif format_ == "nt.gz":
            # Neither name nor time is stored: the same text gives the same bytes.
            with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=file, mtime=0) as stream:
                stream.writelines(chunks)
        else:
            from pyoxigraph import RdfFormat, parse, serialize

            if format_ == "rdf":
                _check_xml(path, graph)
            triples = (quad.triple for chunk in chunks for quad in parse(chunk, RdfFormat.N_TRIPLES))
            serialize(triples, file, RdfFormat.TURTLE if format_ == "ttl" else RdfFormat.RDF_XML)


def ntriples(graph: KnowledgeGraph, path: Path) -> Iterator[str]:
    """The graph as N-Triples text, many lines at a time; `path` is for errors.

    Entities without a triple or literal are declared as rdfs:Resource, which says nothing else about them.
    """
    entities = [f"<{strict_iri(text)}>" for text in graph.entities]
    relations = [f"<{strict_iri(text)}>" for text in graph.relations]
    for rows in _slices(len(graph.triples)):
        yield "".join([f"{entities[h]} {relations[r]} {entities[t]} .\n" for h, r, t in graph.triples[rows].tolist()])
    literals = graph.literals
    attributes = [f"<{strict_iri(text)}>" for text in graph.attributes]
    class_attribute = graph.attributes.index(RDF_TYPE) if RDF_TYPE in graph.attributes else -1
    ending = cache(partial(_ending, path))  # there are few datatypes and languages
    for rows in _slices(len(literals)):
        columns = (
            literals.entity_ids[rows].tolist(),
            literals.attribute_ids[rows].tolist(),
            literals.values[rows],
            literals.datatypes[rows],
            literals.languages[rows],
        )
        lines = []
        for entity, attribute, value, datatype, language in zip(*columns, strict=True):
            if attribute == class_attribute and datatype == _RESOURCE:
                thing = f"<{strict_iri(value)}>"
            else:
                text = value.translate(_ESCAPES) if SPECIAL.search(value) else value
                thing = f'"{text}"{ending(datatype, language)}'
            lines.append(f"{entities[entity]} {attributes[attribute]} {thing} .\n")
        yield "".join(lines)
    alone = np.ones(graph.num_entities, dtype=bool)
    alone[graph.triples[:, [0, 2]].ravel()] = False
    alone[literals.entity_ids] = False
    yield "".join([f"{entities[entity]} <{RDF_TYPE}> <{_RESOURCE}> .\n" for entity in np.flatnonzero(alone).tolist()])


def _ending(path: Path, datatype: str, language: str) -> str:
    """What follows a quoted value in N-Triples; `path` is for errors."""
    if not language:
        return "" if datatype in _IMPLIED else f"^^<{strict_iri(datatype)}>"
    if not LANGUAGE.fullmatch(language):
        problem = f"cannot hold the language {language[:40]!r}, which is no language tag such as en or pt-br"
        raise InputError(problem, path=path, remedy="correct it, or write tables")
    return f"@{language}"


def _check_xml(path: Path, graph: KnowledgeGraph) -> None:
    """Raise on what RDF/XML has no notation for; the serializer would write a file that no other program reads."""
    remedy = "write .nt or .ttl"
    for predicate in (*graph.relations, *graph.attributes):
        if not _XML_NAME_AT_END.search(strict_iri(predicate)):
            raise InputError(f"RDF/XML cannot hold the predicate {predicate[:200]!r}", path=path, remedy=remedy)
    for value in graph.literals.values:
        if _NO_XML.search(value):
            raise InputError(f"RDF/XML cannot hold the control character in {value[:80]!r}", path=path, remedy=remedy)


def _slices(number: int) -> Iterator[slice]:
    return (slice(start, start + _ROWS_AT_A_TIME) for start in range(0, number, _ROWS_AT_A_TIME))
