"""Graphs and links that are in memory already: frames, stores of RDF libraries, rows.

Neither pandas nor rdflib is needed to read files, so their objects are recognised by the module of their type.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from numbers import Real
from pathlib import Path
from typing import Any

import polars as pl

from rlea.errors import InputError
from rlea.graph import KnowledgeGraph
from rlea.io.readers.columns import Columns, Table, frame_table
from rlea.io.readers.link_files import LINKS, LinkFile, links_of_table
from rlea.io.readers.tables import TABLES, graph_of_tables
from rlea.io.readers.text import error_at, shown

_GRAPH_KINDS = "a path, a frame or rows of head, relation and tail, a dict of such tables, or an RDF graph"


def graph_in_memory(value: Any, place: str) -> KnowledgeGraph:
    """A graph from any of the kinds that `rlea.read` names; `place` (source, target) stands for the path in errors."""
    library = _library(value)
    if isinstance(value, KnowledgeGraph):
        return value
    if library in ("rdflib", "pyoxigraph"):
        from rlea.io.readers.rdf import graph_of_quads

        return graph_of_quads(_rdflib_quads(value) if library == "rdflib" else value, Path(place))
    if not isinstance(value, Mapping):
        return graph_of_tables({"triples": _table(value, TABLES["triples"], place, _GRAPH_KINDS)})
    if "triples" not in value or not TABLES.keys() >= value.keys():
        listed = ", ".join(shown(str(key), 30) for key in value) or "none"
        problem = f"a dict of tables has the keys triples, literals and names, not {listed}"
        remedy = "give at least triples, as a frame or rows of head, relation and tail"
        raise InputError(problem, path=place, remedy=remedy)
    return graph_of_tables({key: _table(rows, TABLES[key], f"{place} {key}") for key, rows in value.items()})


def links_in_memory(value: Any, place: str) -> LinkFile:
    """Links from a frame of two columns (three with confidence), from pairs, or from a dict source -> target."""
    rows = value.items() if isinstance(value, Mapping) else value
    return links_of_table(_table(rows, LINKS, place, "a path, or a frame or pairs of source and target"))


def _library(value: Any) -> str:
    """The package that a value's class, or a class that it is derived from, belongs to."""
    packages = [kind.__module__.partition(".")[0] for kind in type(value).__mro__]
    return next((name for name in packages if name in ("polars", "pandas", "rdflib", "pyoxigraph")), "")


def _rdflib_quads(graph: Any) -> Iterable[Any]:
    from pyoxigraph import RdfFormat, parse

    if hasattr(graph, "quads"):  # a dataset: its graphs are merged, as those of a file are
        import rdflib

        merged = rdflib.Graph()
        for subject, predicate, thing, _ in graph.quads():
            merged.add((subject, predicate, thing))
        graph = merged
    return parse(graph.serialize(format="nt", encoding="utf-8"), RdfFormat.N_TRIPLES, lenient=True)


def _table(value: Any, columns: Columns, place: str, wanted: str = "a frame or rows") -> Table:
    """A frame or rows as a table: columns by their names, or by position where none of the names is known."""
    try:
        frame = _frame(value, columns, place, wanted)
    except UnicodeEncodeError as error:  # of Python's texts alone; files are decoded when they are read
        problem = f"has a text with half a character in it, {shown(error.object, 80)!a}"
        raise InputError(problem, path=place, remedy="decode it again with errors='replace'") from error
    is_named = any(name in columns.in_order for name in columns.named(frame.columns))
    if not is_named and len(columns.required) <= frame.width <= len(columns.in_order):
        frame = frame.rename(dict(zip(frame.columns, columns.in_order, strict=False)))
    return frame_table(Path(place), frame, columns)


def _frame(value: Any, columns: Columns, place: str, wanted: str) -> pl.DataFrame:
    library = _library(value)
    if isinstance(value, pl.DataFrame | pl.LazyFrame):
        return value.lazy().collect()
    if library == "pandas" and hasattr(value, "columns"):
        return _pandas_frame(value, place)
    if isinstance(value, Iterable) and not isinstance(value, str | bytes) and not library:
        schema = dict.fromkeys(columns.in_order, pl.String)
        return pl.DataFrame(_rows(value, columns, place), schema=schema, orient="row")
    raise InputError(f"is of the type {type(value).__name__}", path=place, remedy=f"give {wanted}")


def _pandas_frame(value: Any, place: str) -> pl.DataFrame:
    columns: dict[str, pl.Series] = {}
    for number, name in enumerate(map(str, value.columns)):
        column = value.iloc[:, number]
        if name in columns:
            raise InputError(f"has the column {shown(name, 30)} twice", path=place, remedy="give each another name")
        try:
            columns[name] = pl.Series(column.astype(object).where(column.notna(), None).tolist())
        except TypeError as error:
            problem = f"the column {shown(name, 30)} has values of several types"
            raise InputError(problem, path=place, remedy="store the column as text") from error
    return pl.DataFrame(columns)


def _rows(value: Iterable[Any], columns: Columns, place: str) -> list[tuple[str, ...]]:
    """Rows of text, those without the optional fields filled up; a confidence may be a number."""
    rows = []
    for number, row in enumerate(value, start=1):
        fields = row if isinstance(row, tuple | list) else ()
        texts = [
            _number_text(field) if name == "confidence" else field
            for name, field in zip(columns.in_order, fields, strict=False)
        ]
        is_complete = len(columns.required) <= len(fields) <= len(columns.in_order)
        if not is_complete or not all(isinstance(text, str) for text in texts):
            problem = f"{shown(repr(row))} is no row of {len(columns.required)} texts"
            raise error_at(Path(place), "row", number, problem, f"give rows of {', '.join(columns.required)}")
        rows.append((*texts, *[""] * (len(columns.in_order) - len(texts))))
    return rows


def _number_text(value: Any) -> Any:
    """A number as text, "" for none; anything else as it is."""
    if value is None or (isinstance(value, Real) and math.isnan(value)):
        return ""
    return str(value) if isinstance(value, Real) else value
