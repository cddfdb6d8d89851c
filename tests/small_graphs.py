"""Small graphs and folders of files, built and looked at by many tests of readers and writers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from rlea.graph import LITERAL_COLUMNS, GraphPair, KnowledgeGraph, Links


def build(triples: Iterable[Any] = (), literals: Iterable[Any] = (), **more: Any) -> KnowledgeGraph:
    """A graph from rows of strings; those of literals may lack datatype and language."""
    return KnowledgeGraph.build(triple_frame(triples), literal_frame((*row, "", "")[:5] for row in literals), **more)


def triple_frame(rows: Iterable[Any]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema=dict.fromkeys(["head", "relation", "tail"], pl.String), orient="row")


def literal_frame(rows: Iterable[Any]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema=dict.fromkeys(LITERAL_COLUMNS, pl.String), orient="row")


def only_entities(*entities: str) -> KnowledgeGraph:
    return build(entities=entities, names={entity: f"name of {entity}" for entity in entities})


def relations(graph: KnowledgeGraph) -> set[tuple[str, str, str]]:
    """The triples as identifiers."""
    return {(graph.entities[h], graph.relations[r], graph.entities[t]) for h, r, t in graph.triples.tolist()}


def facts(graph: KnowledgeGraph) -> set[tuple[str, ...]]:
    """The literals: entity, attribute, value, datatype, language."""
    found = graph.literals
    ids = zip(found.entity_ids.tolist(), found.attribute_ids.tolist(), strict=True)
    texts = zip(found.values, found.datatypes, found.languages, strict=True)
    return {(graph.entities[e], graph.attributes[a], *text) for (e, a), text in zip(ids, texts, strict=True)}


def ids(links: Links) -> list[tuple[int, int]]:
    return list(zip(links.source_ids.tolist(), links.target_ids.tolist(), strict=True))


def named(pair: GraphPair, split: str) -> list[tuple[str, str]]:
    """The links of a split as identifiers."""
    return [(pair.source.entities[s], pair.target.entities[t]) for s, t in ids(getattr(pair, split))]


def write(folder: Path, files: Mapping[str, str | bytes | None]) -> Path:
    """Write files into a folder; None stands for no file."""
    for name, content in files.items():
        if content is not None:
            put(folder / name, content)
    return folder


def put(path: Path, content: str | bytes) -> Path:
    """Write a file, in a new folder if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path
