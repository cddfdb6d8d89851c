"""What a user may name as a graph: a path, several of them, a pattern, an address on the web, a SPARQL endpoint."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rlea.graph import KnowledgeGraph
from rlea.io.readers import read_graph
from rlea.io.readers.rows import GUESS, RowOptions
from rlea.io.readers.several import is_pattern, read_files
from rlea.io.readers.sparql import LIMIT, is_endpoint, read_endpoint
from rlea.io.readers.web import download, is_url
from rlea.progress import Progress, silent


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


def read_place(
    place: Any,
    *,
    query: str | Path | None = None,
    limit: int = LIMIT,
    rows: RowOptions = GUESS,
    progress: Progress = silent,
) -> KnowledgeGraph:
    """The graph that a text, a path or a list of these names.

    `query` and `limit` are for endpoints, `rows` for tables with one row per entity.
    """
    text = "" if is_paths(place) else str(place)
    if is_endpoint(text):
        return read_endpoint(text, query, limit=limit, progress=progress)
    if is_url(text):
        path, notes = download(text, progress)
        graph = read_graph(path, rows)
        return replace(graph, notes=(*notes, *graph.notes))
    if is_paths(place):
        files = [download(str(one), progress)[0] if is_url(str(one)) else Path(one) for one in place]
        return read_files(files, files[0])
    return read_graph(place, rows)


def recorded(place: Any) -> str:
    """What to write down of a place, so that it can be read again from another folder."""
    text = str(place)
    return text if is_url(text) or is_endpoint(text) else str(Path(place).absolute())


def short_name(place: Any) -> str:
    """A name for a graph: that of its file without extensions, or that of the endpoint's host."""
    text = str(place)
    if is_endpoint(text):
        return urlsplit(text).hostname or "endpoint"
    name = Path(urlsplit(text).path if is_url(text) else text).name
    return name.split(".")[0].strip("*") or name or "graph"
