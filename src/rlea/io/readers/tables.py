"""Graphs in tables: triples, literals and names as TSV, CSV or Parquet.

A graph is either one file of triples or a folder with

    triples.{tsv,csv,parquet}    head, relation, tail
    literals.{tsv,csv,parquet}   entity, attribute, value[, datatype, language]   (optional)
    names.{tsv,csv,parquet}      entity, name                                     (optional)

Columns are found by their header names, or by position where TSV or CSV has no header; `subject, predicate, object`
is understood for `head, relation, tail`. TSV and CSV may be compressed (`.tsv.gz`). An entity that stands only in
`names` is an entity without triples.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rlea.errors import InputError
from rlea.graph import LITERAL_COLUMNS, KnowledgeGraph
from rlea.io.readers.columns import TABLE_SUFFIXES, Columns, read_table
from rlea.io.readers.link_files import LinkFile, read_link_rows
from rlea.io.readers.links import read_links, read_matching_and_gold
from rlea.io.readers.text import error_at, shown, suffix_of

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "LinkFile",
    "find_table",
    "read_link_rows",
    "read_links",
    "read_matching_and_gold",
    "read_triples_table",
]

_TRIPLES = Columns(
    required=("head", "relation", "tail"),
    synonyms={"subject": "head", "predicate": "relation", "object": "tail"},
)
_LITERALS = Columns(
    required=("entity", "attribute", "value"),
    optional=("datatype", "language"),
    may_be_empty=("value", "datatype", "language"),
    synonyms={"subject": "entity", "predicate": "attribute", "object": "value"},
)
_NAMES = Columns(required=("entity", "name"), may_be_empty=("name",))


def read_triples_table(path: str | Path) -> KnowledgeGraph:
    """A graph from one file of triples or from a folder as described at the head of this module."""
    path = Path(path)
    if not path.is_dir():
        return _filled(path, KnowledgeGraph.build(_read_triples(path)))
    triples = find_table(path, "triples")
    if triples is None:
        raise InputError(
            "has no triples.tsv, triples.csv or triples.parquet",
            path=path,
            remedy="put the graph's triples there under one of these names",
        )
    literals = find_table(path, "literals")
    names = find_table(path, "names")
    given = {} if names is None else _read_names(names)
    graph = KnowledgeGraph.build(
        _read_triples(triples),
        None if literals is None else _read_literals(literals),
        names={entity: name for entity, name in given.items() if name},
        entities=given,
    )
    return _filled(triples, graph)


def find_table(folder: Path, stem: str) -> Path | None:
    """The table of that name in a folder, or None; more than one is an error, as nobody could tell which counts."""
    found = [
        path
        for path in sorted(folder.iterdir())
        if suffix_of(path) in TABLE_SUFFIXES and path.name.split(".", 1)[0] == stem and path.is_file()
    ]
    if len(found) > 1:
        raise InputError(
            f"has both {found[0].name} and {found[1].name}", path=folder, remedy="keep one of them and remove the other"
        )
    return found[0] if found else None


def _read_triples(path: Path) -> pl.DataFrame:
    return read_table(path, _TRIPLES).frame.select(_TRIPLES.required)


def _filled(path: Path, graph: KnowledgeGraph) -> KnowledgeGraph:
    if not graph.num_entities:
        raise InputError("has a header but no triples", path=path, remedy="give at least one triple")
    return graph


def _read_literals(path: Path) -> pl.DataFrame:
    import polars as pl

    from rlea.io.readers.literals import normalised

    frame = read_table(path, _LITERALS).frame
    missing = [name for name in _LITERALS.optional if name not in frame.columns]
    return normalised(frame.with_columns(pl.lit("").alias(name) for name in missing).select(LITERAL_COLUMNS))


def _read_names(path: Path) -> dict[str, str]:
    table = read_table(path, _NAMES)
    given: dict[str, str] = {}
    for entity, name, line in table.frame.select("entity", "name", "line").iter_rows():
        if given.setdefault(entity, name) != name:
            raise error_at(
                path,
                table.unit,
                line,
                f"gives {shown(entity)} the name {shown(name)} after {shown(given[entity])}",
                "keep one name per entity",
            )
    return given
