"""Two graphs and their links from files or from memory: the first step of every run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rlea.demo import demo_folder
from rlea.errors import InputError
from rlea.graph import GraphPair, KnowledgeGraph
from rlea.io.limits import check_lengths
from rlea.io.readers import read_pair
from rlea.io.readers.link_files import LinkFile, read_link_rows
from rlea.io.readers.links import ONE_TO_ONE, check_cardinality, make_pair
from rlea.io.readers.memory import graph_in_memory, links_in_memory
from rlea.io.readers.places import check_there, is_elsewhere, is_path, is_paths, read_place, recorded, short_name
from rlea.io.readers.row_files import STANDARD_INPUT
from rlea.io.readers.rows import GUESS, RowOptions
from rlea.io.readers.sparql import LIMIT, is_endpoint
from rlea.io.readers.verdicts import with_verdicts
from rlea.io.union import grown, union_of
from rlea.progress import Progress, silent


def read(
    source: Any,
    target: Any = None,
    *,
    fold: str | None = None,
    seeds: Any = None,
    valid: Any = None,
    gold: Any = None,
    source_query: str | Path | None = None,
    target_query: str | Path | None = None,
    endpoint_limit: int = LIMIT,
    id_column: str = "",
    name_column: str = "",
    columns: str | Sequence[str] = (),
    cardinality: str = ONE_TO_ONE,
    verdicts: str | Path | Sequence[str | Path] = (),
    add_source: str | Path | Sequence[str | Path] = (),
    add_target: str | Path | Sequence[str | Path] = (),
    progress: Progress = silent,
) -> GraphPair:
    """A benchmark folder, or two graphs of one's own with optional links.

    Each graph is one of

    - a path (text or `Path`): an RDF file, a table of triples, a table or database with one row per entity, a folder of
      tables or of RDF files, or a pattern for names of RDF files (`dumps/*.nt.gz`); "-" is a table on standard input;
    - a list of paths of RDF files, which together are one graph;
    - the address of a file (`https://...`), or of a SPARQL endpoint (`sparql+https://...`), of which all triples are
      read, or those of the CONSTRUCT query in the file `source_query` or `target_query`; at most `endpoint_limit`;
    - a polars or pandas frame with the columns head, relation, tail (or three columns without these names);
    - an iterable of triples, each a tuple of three strings;
    - a dict with such a frame or iterable as `triples` and, if need be, `literals` (entity, attribute, value and
      optionally datatype, language) and `names` (entity, name), as in a folder of tables;
    - an rdflib `Graph` or `Dataset`, or a pyoxigraph `Store` or `Dataset`.

    Of a table with one row per entity, `id_column` identifies rows, `name_column` names them, and `columns` are
    those to use; what is not given is found by looking. Where the two tables differ, give both with a comma
    ("sku,article", or "sku," to leave the second to be found); `columns` are those of both. Of a graph `name_column` is
    the attribute that names entities; the others are refused.

    Links (`seeds` to learn from, `valid` to choose settings by, `gold` to score with) are a path, a frame with the
    columns source, target and optionally confidence, an iterable of such tuples, or a dict source -> target. Of several
    links of an entity the first counts, unless `cardinality` says otherwise: 1:n keeps several targets of a source, n:1
    several sources of a target, n:m both. `verdicts` are folders of runs that people have reviewed: what they accepted
    are seeds, what they rejected is never linked. `RUN@57` are the first 57 entries of its log. `add_source` and
    `add_target` are files with further entities, triples and values of the two graphs.

    `inputs` of the pair has the absolute paths and the addresses that were given. Anything else is an `InputError`.

    >>> import rlea
    >>> pair = rlea.read([("a", "near", "b")], [("x", "near", "y")], seeds={"a": "x"})
    >>> pair.source.num_triples, len(pair.train)
    (1, 1)
    """
    check_cardinality(cardinality)
    reviewed = [verdicts] if isinstance(verdicts, str | Path) else list(verdicts)
    added = {"source": _as_list(add_source), "target": _as_list(add_target)}
    links = {"seeds": seeds, "valid": valid, "gold": gold}
    given = {"source": source, "target": target, **links}
    inputs = {name: recorded(value) for name, value in given.items() if is_path(value) and str(value) != STANDARD_INPUT}
    queries = {"source": source_query, "target": target_query}
    inputs |= {f"{side}_query": recorded(query) for side, query in queries.items() if query is not None}
    if endpoint_limit != LIMIT:
        inputs["endpoint_limit"] = str(endpoint_limit)
    rows = row_options(id_column, name_column, columns)
    inputs |= row_inputs(id_column, name_column, columns)
    inputs |= {f"add_{side}": "\n".join(map(recorded, more)) for side, more in added.items() if more}
    endpoints = [side for side in queries if is_path(given[side]) and is_endpoint(str(given[side]))]
    options = {f"--{side}-query": queries[side] is not None and side not in endpoints for side in queries}
    for option, is_wrong in {**options, "--endpoint-limit": endpoint_limit != LIMIT and not endpoints}.items():
        if is_wrong:
            remedy = "leave it out, or write sparql+https://... for the address of an endpoint"
            raise InputError(f"{option} is for SPARQL endpoints", remedy=remedy)
    if target is None:
        if any(value is not None for value in links.values()):
            raise InputError("links are given for a folder that has its own", remedy="name two graphs, or no links")
        if not is_path(source) or is_elsewhere(str(source)):
            raise InputError("there is one graph alone", remedy="give two graphs, or the folder of a pair")
        if Path(source).resolve() == demo_folder().resolve():
            inputs = {"demo": "yes", **{key: text for key, text in inputs.items() if key.startswith("add_")}}
        elif fold is not None:
            inputs["fold"] = fold
        check_there(source)
        pair = replace(read_pair(source, fold), inputs=inputs)
        if any(added.values()):
            every = zip((pair.source, pair.target), added.values(), rows, strict=True)
            pair = grown(pair, *(_with_more(graph, more, own, progress) for graph, more, own in every))
        for side, graph in (("source", pair.source), ("target", pair.target)):
            check_lengths(graph, f"the {side} graph")
        return with_verdicts(pair, reviewed) if reviewed else pair
    if fold is not None:
        raise InputError("--fold is for benchmark folders", remedy="leave it out for two graphs of your own")
    sides = {"source": source, "target": target}
    if all(str(one) == STANDARD_INPUT for one in sides.values()):
        raise InputError("both tables are to come from standard input", remedy="give the second one as a file")
    graphs = []
    for (side, one), own in zip(sides.items(), rows, strict=True):
        if is_path(one) or is_paths(one):
            graphs.append(read_place(one, query=queries[side], limit=endpoint_limit, rows=own, progress=progress))
        else:
            graphs.append(graph_in_memory(one, side))
        graphs[-1] = _with_more(graphs[-1], added[side], own, progress)
        check_lengths(graphs[-1], f"the {side} graph")
    known = {name for graph in graphs for name in (*graph.attributes, *graph.relations)}
    for column in rows[0].columns:
        if not known & {column} and column not in (*_names_of(rows, "id"), *_names_of(rows, "name")):
            raise InputError(f"no table has values in a column {column!r}", remedy="check --columns")
    splits = [None if value is None else _read_links(value, name) for name, value in links.items()]
    title = "-".join(short_name(one) if is_path(one) else side for side, one in sides.items())
    pair = make_pair(title, graphs, splits, default_pool="all", inputs=inputs, cardinality=cardinality)
    if gold is not None and not len(pair.test):
        place = gold if is_path(gold) else "gold"
        raise InputError("no gold link is left to score with", path=place, remedy="give links that are not seeds")
    if reviewed:
        pair = with_verdicts(pair, reviewed)
    if not len(pair.train):
        note = "there are no seeds: matching starts from what the two graphs have in common"
        pair = replace(pair, notes=(*pair.notes, note))
    return pair


def row_options(
    id_column: str, name_column: str, columns: str | Sequence[str], num_tables: int = 2
) -> list[RowOptions]:
    """What a user says of the columns of some tables: one name for all, or one of each with commas."""
    wanted = columns.split(",") if isinstance(columns, str) else columns
    kept = tuple(part.strip() for part in wanted if part.strip())
    each = (_of_each(id_column, "--id", num_tables), _of_each(name_column, "--name", num_tables))
    return [RowOptions(one, name, kept) for one, name in zip(*each, strict=True)]


def row_inputs(id_column: str, name_column: str, columns: str | Sequence[str]) -> dict[str, str]:
    """The same as a record has it; what is not given is left out."""
    kept = row_options("", "", columns)[0].columns
    given = {"id_column": id_column, "name_column": name_column, "columns": ",".join(kept)}
    return {key: text for key, text in given.items() if text}


def _names_of(rows: Sequence[RowOptions], field: str) -> list[str]:
    return [getattr(one, field) for one in rows]


def _of_each(text: str, option: str, num_tables: int) -> list[str]:
    parts = [part.strip() for part in text.split(",")]
    if len(parts) == 1:
        return parts * num_tables
    if len(parts) != num_tables or not any(parts):
        remedy = "name one column, or one of each table with commas between; nothing between them leaves the guess"
        raise InputError(f"{option} is {text!r}", remedy=remedy)
    return parts


def _as_list(places: str | Path | Sequence[str | Path]) -> list[str | Path]:
    return [places] if isinstance(places, str | Path) else list(places)


def _with_more(
    graph: KnowledgeGraph, places: Sequence[str | Path], rows: RowOptions, progress: Progress
) -> KnowledgeGraph:
    """A graph with what further files say of it."""
    return union_of(graph, [read_place(place, rows=rows, progress=progress) for place in places])


def _read_links(value: Any, name: str) -> LinkFile:
    if is_path(value):
        check_there(value)
    rows = read_link_rows(value) if is_path(value) else links_in_memory(value, name)
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


def read_one(
    graph: Any, rows: RowOptions = GUESS, progress: Progress = silent
) -> tuple[KnowledgeGraph, dict[str, str]]:
    """One graph, whatever `read` takes as one, and the path that it came from where there is one."""
    if isinstance(graph, KnowledgeGraph):
        return graph, {}
    if is_path(graph) or is_paths(graph):
        own = read_place(graph, rows=rows, progress=progress)
        check_lengths(own, "the graph")
        is_recorded = is_path(graph) and str(graph) != STANDARD_INPUT
        return own, {"graph": recorded(graph)} if is_recorded else {}
    return graph_in_memory(graph, "graph"), {}
