"""Pairs of graphs in the layout of the OpenEA benchmarks, with one fold of links (`721_5fold/1`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

from rlea.errors import InputError
from rlea.graph import GraphPair, KnowledgeGraph, Links
from rlea.graph.frames import literals_frame, triples_frame
from rlea.io.writers.rdf import LANGUAGE, PLAIN_ESCAPES, SPECIAL
from rlea.io.writers.tsv import put_table


def openea_writers(folder: Path, pair: GraphPair) -> tuple[dict[Path, Callable[[Path], None]], list[str]]:
    """The files of the layout, each with the function that writes it, and notes on what it cannot hold."""
    writers: dict[Path, Callable[[Path], None]] = {}
    notes: list[str] = []
    known = Links.union([pair.train, pair.valid, pair.test])
    for number, side, graph, linked in (
        (1, "source", pair.source, known.source_ids),
        (2, "target", pair.target, known.target_ids),
    ):
        for name, put in (("rel_triples", _put_relations), ("attr_triples", _put_attributes)):
            path = folder / f"{name}_{number}"
            writers[path] = partial(put, path, graph)
        found = np.zeros(graph.num_entities, dtype=bool)
        found[graph.triples[:, [0, 2]].ravel()] = True
        found[graph.literals.entity_ids] = True
        found[linked] = True
        if not found.all():
            notes.append(f"{side}: {int((~found).sum())} entities without triples, literals and links are not written")
    links = {"ent_links": known}
    links |= {"train_links": pair.train, "valid_links": pair.valid, "test_links": pair.test}
    for name, some in links.items():
        path = folder / name if some is known else folder / "721_5fold" / "1" / name
        writers[path] = partial(put_pair_links, path, pair, some, ())
    return writers, notes


def put_pair_links(path: Path, pair: GraphPair, links: Links, header: tuple[str, ...], temporary: Path) -> None:
    """Write links of a pair as identifiers to `temporary`; `path` is for errors."""
    sources = [pair.source.entities[number] for number in links.source_ids.tolist()]
    targets = [pair.target.entities[number] for number in links.target_ids.tolist()]
    put_table(temporary, header, zip(sources, targets, strict=True), shown=path)


def _put_relations(path: Path, graph: KnowledgeGraph, temporary: Path) -> None:
    put_table(temporary, (), triples_frame(graph).iter_rows(), shown=path)


def _put_attributes(path: Path, graph: KnowledgeGraph, temporary: Path) -> None:
    def rows() -> Iterator[tuple[str, str, str]]:
        for entity, attribute, value, datatype, language in literals_frame(graph).iter_rows():
            yield entity, attribute, _literal(path, value, datatype, language)

    put_table(temporary, (), rows(), shown=path)


def _literal(path: Path, value: str, datatype: str, language: str) -> str:
    """A literal as these files have them: bare where nothing in it could be taken for a quote or an escape."""
    if "\x00" in value or re.search(r'[<>"\s]', datatype) or (language and not LANGUAGE.fullmatch(language)):
        problem = f"cannot hold the literal {value[:80]!r} (datatype {datatype!r}, language {language!r})"
        raise InputError(problem, path=path, remedy="write .parquet")
    special = SPECIAL.search(value) is not None
    if not special and not language and not datatype and value.strip() == value:
        return value
    text = f'"{value.translate(PLAIN_ESCAPES) if special else value}"'
    if language:
        return f"{text}@{language}"
    return f"{text}^^<{datatype}>" if datatype else text
