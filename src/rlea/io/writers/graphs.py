"""Graphs and pairs of graphs as files: RDF, tables, or the layout of the OpenEA benchmarks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from rlea.errors import InputError
from rlea.graph import GraphPair, KnowledgeGraph
from rlea.io.writers.atomic import write_all
from rlea.io.writers.graph_files import GRAPH_FORMAT, put_graph_file
from rlea.io.writers.openea import openea_writers, put_pair_links
from rlea.io.writers.rdf import RDF_FORMATS, RDF_TYPE, put_rdf
from rlea.io.writers.tables import TABLE_FORMATS, table_writers

FORMATS = (*RDF_FORMATS, *TABLE_FORMATS, GRAPH_FORMAT, "openea")
# What the files and folders of a pair are called, up to their extension.
LAYOUT_NAMES = (
    *("source", "target", "seeds", "valid", "test"),
    *("rel_triples_1", "rel_triples_2", "attr_triples_1", "attr_triples_2", "ent_links", "721_5fold"),
)


def write_graph(path: str | Path, graph: KnowledgeGraph, format: str = "") -> tuple[str, ...]:  # noqa: A002
    """Write one graph and return notes on what the format cannot hold.

    The format is `rlea` or one of `RDF_FORMATS`, by default that of the file name, or one of `TABLE_FORMATS`, for
    which `path` is a folder that gets the files triples, literals and names. Reading the file back gives the same
    graph, but for two things that RDF lacks: names that were given beside the graph, and not chosen from its labels
    and identifiers, are lost there; and text of datatype xsd:string is plain text.
    """
    path = Path(path)
    format = format or _format_of(path)  # noqa: A001
    writers, notes = _graph_writers(path, graph, format)
    if format in TABLE_FORMATS:
        refuse_leftovers(path, writers, ("triples", "literals", "names"))
    write_all(writers)
    return notes


def write_pair(folder: str | Path, pair: GraphPair, format: str = "nt") -> tuple[str, ...]:  # noqa: A002
    """Write a pair of graphs with its links into a folder and return notes on what the format cannot hold.

    RDF formats and `rlea` give `source.nt` and `target.nt` (or another extension), tables the folders `source` and
    `target`, both with `seeds.tsv`, `valid.tsv` and `test.tsv` where there are such links. `openea` gives the layout of
    the OpenEA benchmarks with one fold, `721_5fold/1`. See `write_graph` for what RDF loses; `openea` loses names in
    the same way, and entities without a triple, literal or link.
    """
    if format not in FORMATS:
        raise InputError(f"unknown format {format!r}", remedy=f"use one of {', '.join(FORMATS)}")
    folder = Path(folder)
    writers: dict[Path, Callable[[Path], None]] = {}
    notes: list[str] = []
    if format == "openea":
        writers, notes = openea_writers(folder, pair)
    else:
        for side, graph in (("source", pair.source), ("target", pair.target)):
            place = folder / (side if format in TABLE_FORMATS else f"{side}.{format}")
            more, new_notes = _graph_writers(place, graph, format)
            writers |= more
            notes += [f"{side}: {note}" for note in new_notes]
        for stem, links in (("seeds", pair.train), ("valid", pair.valid), ("test", pair.test)):
            if len(links):
                path = folder / f"{stem}.tsv"
                writers[path] = partial(put_pair_links, path, pair, links, ("source", "target"))
    refuse_leftovers(folder, writers, LAYOUT_NAMES)
    write_all(writers)
    return tuple(notes)


def refuse_leftovers(folder: Path, writers: Iterable[Path], names: Sequence[str]) -> None:
    """Raise if the folder has files of an earlier graph that would be read together with the new ones."""
    if not folder.is_dir():
        return
    new = {path.relative_to(folder).parts[0] for path in writers}
    for entry in sorted(folder.iterdir()):
        if entry.name.split(".", 1)[0] in names and entry.name not in new:
            problem = f"has {entry.name} of something written before, which would be mixed up with the new files"
            raise InputError(problem, path=folder, remedy="give an empty folder or remove it")


def _format_of(path: Path) -> str:
    name = path.name.lower()
    files = (*RDF_FORMATS, GRAPH_FORMAT)
    found = next((known for known in files if name.endswith(f".{known}")), None)
    if found is None:
        remedy = f"use one of {', '.join('.' + known for known in files)}, or name a format"
        raise InputError("has no extension that names a format of graphs", path=path, remedy=remedy)
    return found


def _graph_writers(
    path: Path, graph: KnowledgeGraph, format_: str
) -> tuple[dict[Path, Callable[[Path], None]], tuple[str, ...]]:
    """The files of one graph, each with the function that writes it, and notes."""
    if format_ in TABLE_FORMATS:
        return table_writers(path, graph, format_), ()
    if format_ == GRAPH_FORMAT:
        return {path: lambda temporary: put_graph_file(temporary, graph)}, ()
    if format_ not in RDF_FORMATS:
        remedy = f"use one of {', '.join((*RDF_FORMATS, *TABLE_FORMATS, GRAPH_FORMAT))}"
        raise InputError(f"unknown format {format_!r}", remedy=remedy)
    notes = []
    if RDF_TYPE in graph.relations:
        number = int(np.sum(graph.triples[:, 1] == graph.relations.index(RDF_TYPE)))
        notes.append(f"{number} triples of the relation rdf:type are read back from RDF as literals")
    return {path: lambda temporary: put_rdf(temporary, path, graph, format_)}, tuple(notes)
