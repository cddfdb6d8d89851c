"""What a user may name as a graph: a path, several of them, a pattern, an address on the web, a SPARQL endpoint."""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rlea.errors import InputError
from rlea.graph import KnowledgeGraph
from rlea.graph.names import NAMED, local_name, names_by_attribute
from rlea.graph.texts import Texts
from rlea.io.readers import read_graph
from rlea.io.readers.row_files import STANDARD_INPUT
from rlea.io.readers.rows import GUESS, RowOptions
from rlea.io.readers.several import is_pattern, read_files
from rlea.io.readers.sparql import LIMIT, is_endpoint, read_endpoint
from rlea.io.readers.text import shown
from rlea.io.readers.web import download, is_url
from rlea.progress import Progress, silent

MOST_BESIDE = 1000  # names of a folder that are compared with one that is not there


def is_path(value: Any) -> bool:
    """Whether a value is one name of a graph, as text or path."""
    return isinstance(value, str | PathLike)


def is_paths(value: Any) -> bool:
    """Whether a value is a list of files and not of triples: texts of which one at least is a file or an address."""
    if not isinstance(value, list | tuple) or not value or not all(map(is_path, value)):
        return False
    return any(is_url(str(one)) or Path(one).exists() for one in value)


def is_elsewhere(text: str) -> bool:
    """Whether a text names a graph, and yet no file or folder."""
    return is_url(text) or is_endpoint(text) or is_pattern(text)


def check_there(place: Any) -> None:
    """Refuse a file or folder that is not there, if one beside it is called nearly so: that is told.

    Whatever else is wrong is for its reader to say.
    """
    path = Path(place)
    if str(place) == STANDARD_INPUT or is_elsewhere(str(place)) or path.exists() or not path.parent.is_dir():
        return
    beside = sorted(one.name for one in islice(path.parent.iterdir(), MOST_BESIDE))
    # Extensions count only between files that are called alike without: one.csv is no kunden.csv.
    alike = [name for name in beside if get_close_matches(short_name(path), [short_name(name)])]
    for name in get_close_matches(path.name, alike, n=1, cutoff=0):
        raise InputError("there is no such file or folder", path=path, remedy=f"did you mean {path.with_name(name)}")


def read_place(
    place: Any,
    *,
    query: str | Path | None = None,
    limit: int = LIMIT,
    rows: RowOptions = GUESS,
    progress: Progress = silent,
) -> KnowledgeGraph:
    """The graph that a text, a path or a list of these names.

    `query` and `limit` are for endpoints, `rows` for tables with one row per entity; of graphs, the name in it is the
    attribute that names entities.
    """
    if is_paths(place):
        files = [download(str(one), progress)[0] if is_url(str(one)) else Path(one) for one in place]
        graph = read_files(files, files[0])
    elif is_endpoint(str(place)):
        graph = read_endpoint(str(place), query, limit=limit, progress=progress)
    elif is_url(str(place)):
        path, notes = download(str(place), progress)
        graph = read_graph(path, rows)
        graph = replace(graph, notes=(*notes, *graph.notes))
    else:
        check_there(place)
        graph = read_graph(place, rows)
    first = str(place[0] if is_paths(place) else place)
    title = short_name(first) if is_elsewhere(first) else Path(first).name
    if rows.is_given and not graph.is_table:
        graph = _named(graph, rows, title)
    notes = tuple(f"{title}: {note}" if note.startswith(NAMED) else note for note in graph.notes)
    return graph if notes == graph.notes else replace(graph, notes=notes)  # a new object would forget its fingerprint


def _named(graph: KnowledgeGraph, rows: RowOptions, title: str) -> KnowledgeGraph:
    """A graph that is no table, with names by the attribute that the user names; other columns it has none."""
    for option, text in (("--id", rows.id), ("--columns", ",".join(rows.columns))):
        if text:
            remedy = "leave it out; of graphs, --name alone can be said"
            raise InputError(f"{option} {text} is for tables with one row per entity", path=title, remedy=remedy)
    names = names_by_attribute(graph, rows.name)
    if not names:
        listed = ", ".join(shown(local_name(name), 30) for name in graph.attributes[:8]) or "none"
        raise InputError(
            f"has no attribute {shown(rows.name)} (it has {listed})", path=title, remedy="name one of its attributes"
        )
    own = [names.get(identifier, name) for identifier, name in zip(graph.entities, graph.names, strict=True)]
    notes = tuple(note for note in graph.notes if not note.startswith(NAMED))
    told = f"{NAMED} {rows.name} ({len(names):,}), as --name says"
    return replace(graph, names=Texts.of(own), notes=(*notes, told))


def recorded(place: Any) -> str:
    """What to write down of a place, so that it can be read again from another folder."""
    text = str(place)
    return text if is_url(text) or is_endpoint(text) else str(Path(place).absolute())


def short_name(place: Any) -> str:
    """A name for a graph: that of its file without extensions, or that of the endpoint's host."""
    text = str(place)
    if text == STANDARD_INPUT:
        return "stdin"
    if is_endpoint(text):
        return urlsplit(text).hostname or "endpoint"
    name = Path(urlsplit(text).path if is_url(text) else text).name
    return name.split(".")[0].strip("*") or name or "graph"
