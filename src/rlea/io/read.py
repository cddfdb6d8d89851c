"""Two graphs and their links from files or from memory: the first step of every run."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

from rlea.demo import demo_folder
from rlea.errors import InputError
from rlea.graph import GraphPair, KnowledgeGraph
from rlea.io.readers import read_graph, read_pair
from rlea.io.readers.link_files import LinkFile, read_link_rows
from rlea.io.readers.links import make_pair
from rlea.io.readers.memory import graph_in_memory, links_in_memory
from rlea.io.readers.text import error_at, shown


def read(
    source: Any, target: Any = None, *, fold: str | None = None, seeds: Any = None, valid: Any = None, gold: Any = None
) -> GraphPair:
    """A benchmark folder, or two graphs of one's own with optional links.

    Each graph is one of

    - a path (text or `Path`): an RDF file, a table of triples, or a folder of tables;
    - a polars or pandas frame with the columns head, relation, tail (or three columns without these names);
    - an iterable of triples, each a tuple of three strings;
    - a dict with such a frame or iterable as `triples` and, if need be, `literals` (entity, attribute, value and
      optionally datatype, language) and `names` (entity, name), as in a folder of tables;
    - an rdflib `Graph` or `Dataset`, or a pyoxigraph `Store` or `Dataset`.

    Links (`seeds` to learn from, `valid` to choose settings by, `gold` to score with) are a path, a frame with the
    columns source, target and optionally confidence, an iterable of such tuples, or a dict source -> target.

    `inputs` of the pair has the absolute paths that were given. Anything else is an `InputError`.

    >>> import rlea
    >>> pair = rlea.read([("a", "near", "b")], [("x", "near", "y")], seeds={"a": "x"})
    >>> pair.source.num_triples, len(pair.train)
    (1, 1)
    """
    links = {"seeds": seeds, "valid": valid, "gold": gold}
    given = {"source": source, "target": target, **links}
    inputs = {name: str(Path(value).absolute()) for name, value in given.items() if _is_path(value)}
    if target is None:
        if any(value is not None for value in links.values()):
            raise InputError("links are given for a folder that has its own", remedy="name two graphs, or no links")
        if not _is_path(source):
            raise InputError("there is one graph alone", remedy="give two graphs, or the folder of a pair")
        if Path(source).resolve() == demo_folder().resolve():
            inputs = {"demo": "yes"}
        elif fold is not None:
            inputs["fold"] = fold
        return replace(read_pair(source, fold), inputs=inputs)
    if fold is not None:
        raise InputError("--fold is for benchmark folders", remedy="leave it out for two graphs of your own")
    sides = {"source": source, "target": target}
    graphs = [read_graph(one) if _is_path(one) else graph_in_memory(one, side) for side, one in sides.items()]
    splits = [None if value is None else _read_links(value, name) for name, value in links.items()]
    name = "-".join(_stem(one) if _is_path(one) else side for side, one in sides.items())
    pair = make_pair(name, graphs, splits, default_pool="all", inputs=inputs)
    if gold is not None and not len(pair.test):
        place = gold if _is_path(gold) else "gold"
        raise InputError("no gold link is left to score with", path=place, remedy="give links that are not seeds")
    if not len(pair.train):
        note = "there are no seeds: matching starts from what the two graphs have in common"
        pair = replace(pair, notes=(*pair.notes, note))
    return pair


def _is_path(value: Any) -> bool:
    return isinstance(value, str | PathLike)


def _stem(path: Any) -> str:
    """A file's name without its extensions."""
    name = Path(path).name
    return name.split(".")[0] or name


def _read_links(value: Any, name: str) -> LinkFile:
    rows = read_link_rows(value) if _is_path(value) else links_in_memory(value, name)
    if not len(rows):
        raise InputError("holds no links", path=rows.path, remedy="give at least one pair of entities")
    return rows


def read_demo() -> GraphPair:
    """The two graphs that come with the package, places of the world in English and in French, with their links.

    >>> import rlea
    >>> pair = rlea.read_demo()
    >>> pair.source.num_entities, len(pair.train)
    (1887, 128)
    """
    return read(demo_folder())


def read_one(graph: Any) -> tuple[KnowledgeGraph, dict[str, str]]:
    """One graph, whatever `read` takes as one, and the path that it came from where there is one."""
    if isinstance(graph, KnowledgeGraph):
        return graph, {}
    if _is_path(graph):
        return read_graph(graph), {"graph": str(Path(graph).absolute())}
    return graph_in_memory(graph, "graph"), {}


def read_different(
    value: Any, source: KnowledgeGraph, target: KnowledgeGraph
) -> tuple[list[tuple[int, int]], dict[str, str]]:
    """Pairs of ids that are known to be two things, and the path of their file where there is one.

    Unlike seeds they need not be one-to-one. An identifier that its graph does not have is an error: a pair that was
    meant to be kept apart would not be.
    """
    if value is None:
        return [], {}
    rows = _read_links(value, "different")
    pairs = []
    for number, one, other in zip(rows.numbers, rows.sources, rows.targets, strict=True):
        for name, graph in ((one, source), (other, target)):
            if name not in graph.entity_index:
                raise error_at(rows.path, rows.unit, number, f"no graph has {shown(name)}", "correct the identifier")
        pairs.append((source.entity_index[one], target.entity_index[other]))
    return pairs, {"different": str(Path(value).absolute())} if _is_path(value) else {}
