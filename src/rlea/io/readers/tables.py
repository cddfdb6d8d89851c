"""Graphs in tables: triples, literals and names as TSV, CSV or Parquet.

A graph is either one file of triples or a folder with

    triples.{tsv,csv,parquet}    head, relation, tail                             (optional beside one of the others)
    literals.{tsv,csv,parquet}   entity, attribute, value[, datatype, language]   (optional)
    names.{tsv,csv,parquet}      entity, name                                     (optional)

Columns are found by their header names, or by position where TSV or CSV has no header; `subject, predicate, object`
is understood for `head, relation, tail`. TSV and CSV may be compressed (`.tsv.gz`). An entity that stands only in
`names` is an entity without triples.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

import polars as pl

from rlea.errors import InputError
from rlea.graph import LITERAL_COLUMNS, KnowledgeGraph
from rlea.io.readers.columns import TABLE_SUFFIXES, Columns, Table, read_table
from rlea.io.readers.literals import normalised
from rlea.io.readers.text import error_at, shown, suffix_of
from rlea.io.readers.values import values_apart

MARKS = ("datatype", "language")  # of literals
TABLES = {
    "triples": Columns(
        required=("head", "relation", "tail"), synonyms={"subject": "head", "predicate": "relation", "object": "tail"}
    ),
    "literals": Columns(
        required=("entity", "attribute", "value"),
        optional=MARKS,
        may_be_empty=("value", "datatype", "language"),
        synonyms={"subject": "entity", "predicate": "attribute", "object": "value"},
    ),
    "names": Columns(required=("entity", "name"), may_be_empty=("name",)),
}


def read_triples_table(path: str | Path) -> KnowledgeGraph:
    """A graph from one file of triples or from a folder as described at the head of this module."""
    path = Path(path)
    if not path.is_dir():
        return graph_of_tables({"triples": read_table(path, TABLES["triples"], _kinds([path]))})
    found = {stem: file for stem in TABLES if (file := find_table(path, stem)) is not None}
    if not found:
        problem = "has no triples.tsv, triples.csv or triples.parquet, nor tables of literals or names"
        raise InputError(problem, path=path, remedy="put the graph's triples there under one of these names")
    kinds = _kinds(found.values())
    tables = {stem: read_table(file, TABLES[stem], kinds) for stem, file in found.items()}
    if "triples" not in tables:  # entities without relations
        nothing = pl.DataFrame(schema=dict.fromkeys(TABLES["triples"].required, pl.String))
        tables["triples"] = Table(path, nothing, "line")
    return graph_of_tables(tables)


def graph_of_tables(tables: Mapping[str, Table]) -> KnowledgeGraph:
    """A graph from the tables triples and, if there are any, literals and names."""
    names = _names(tables["names"]) if "names" in tables else None
    tables, notes = values_apart(tables)
    graph = KnowledgeGraph.build(
        tables["triples"].frame.select(TABLES["triples"].required),
        _literals(tables["literals"]) if "literals" in tables else None,
        names=names,
        notes=notes,
    )
    if not graph.num_entities:
        raise InputError("holds no triples", path=tables["triples"].path, remedy="give at least one triple")
    return graph


def _kinds(files: Collection[Path]) -> Mapping[str, pl.DataType]:
    """Categories for the columns whose strings recur; identifiers of entities share theirs, and so do all others.

    There are none for a lone text file, in which values are looked for.
    """
    if len(files) == 1 and not any(suffix_of(file) == ".parquet" for file in files):
        return {}
    node, term = pl.Categorical(pl.Categories.random()), pl.Categorical(pl.Categories.random())
    return dict.fromkeys(("head", "tail", "entity"), node) | dict.fromkeys(("relation", "attribute", *MARKS), term)


def find_table(folder: Path, stem: str) -> Path | None:
    """The table of that name in a folder, or None; more than one is an error, as it is not clear which one counts."""
    found = [
        path
        for path in sorted(folder.iterdir())
        if suffix_of(path) in TABLE_SUFFIXES and path.name.split(".", 1)[0] == stem and path.is_file()
    ]
    if len(found) > 1:
        remedy = "keep one of them and remove the other"
        raise InputError(f"has both {found[0].name} and {found[1].name}", path=folder, remedy=remedy)
    return found[0] if found else None


def _literals(table: Table) -> pl.DataFrame:
    frame = table.frame
    missing = [name for name in LITERAL_COLUMNS if name not in frame.columns]
    return normalised(frame.with_columns(pl.lit("").alias(name) for name in missing).select(LITERAL_COLUMNS))


def _names(table: Table) -> pl.DataFrame:
    names = table.frame.select("entity", "name").unique()
    if names["entity"].n_unique() < len(names):
        given: dict[str, str] = {}
        for entity, name, line in table.frame.select("entity", "name", "line").iter_rows():
            if given.setdefault(entity, name) != name:
                problem = f"gives {shown(entity)} the name {shown(name)} after {shown(given[entity])}"
                raise error_at(table.path, table.unit, line, problem, "keep one name per entity")
    return names
