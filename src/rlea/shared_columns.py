"""Which attributes of two graphs share a column: what a run knows to correspond, and what its links show."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rlea.graph import GraphPair, Ids, KnowledgeGraph
from rlea.graph.iri import to_iri
from rlea.graph.names import local_name
from rlea.graph.schema import Schema
from rlea.same_cells import CELL, compare_cells, literals_of, with_keys

# Attributes of the schema share a column from this mean of both inclusions on; and the lower one at least: an
# attribute of few values may be included in any other by coincidence.
LIKELY, LEAST = 0.5, 0.1
# An attribute holds the names if it is the name of nearly all entities that have it, and at least of half of all.
NEARLY_ALL, HALF = 0.9, 0.5
# Values of linked entities agree if most do, also beyond what values of entities that are not linked do: two columns of
# yes and no agree in half of all rows. And by so many standard deviations of chance: pairs of columns are many.
MOST, DEVIATIONS = 0.5, 4.0
FEWEST = 5  # linked entities with values of both
MOST_LINKS = 500  # that are looked at
SHIFTS = 8  # how often the targets are exchanged to see what agrees by chance

Groups = list[tuple[int | None, int | None]]
_BETWEEN = re.compile(r"[\s_\-.]+")  # words of a header


def shared_columns(pair: GraphPair, source_ids: Ids, target_ids: Ids, schema: Schema) -> Groups:
    """Attributes of the source and of the target by number that share a column, each in one; None where there is none.

    `source_ids` and `target_ids` are linked. The attributes that hold the names come first, then equal identifiers,
    what the schema says, equal headers, and attributes whose values agree for most links.
    """
    attributes = pair.source.attributes, pair.target.attributes
    known = [*name_attributes(pair), *corresponding(*attributes, schema)]
    groups = join_once(*attributes, known)
    alone = [np.array([group[side] for group in groups if group[1 - side] is None], np.int32) for side in (0, 1)]
    return join_once(*attributes, [*known, *agreeing(pair, source_ids, target_ids, *alone)])


def join_once(source: Sequence[str], target: Sequence[str], found: Iterable[tuple[str, str]]) -> Groups:
    """Every attribute in one group: earlier pairs go before later ones."""
    own, other = ({name: number for number, name in enumerate(names)} for names in (source, target))
    partner: dict[int, int] = {}
    taken: set[int] = set()
    for one, two in found:
        if one in own and two in other and own[one] not in partner and other[two] not in taken:
            partner[own[one]] = other[two]
            taken.add(other[two])
    joined = [(number, partner.get(number)) for number in range(len(source))]
    return [*joined, *((None, number) for number in range(len(target)) if number not in taken)]


def corresponding(source: Sequence[str], target: Sequence[str], schema: Schema) -> Iterable[tuple[str, str]]:
    """Attributes with equal identifiers, then what the schema says, the surest first, then those with equal headers.

    A header is an identifier or its last part. Case, blanks, hyphens, dots and underscores make no difference.
    """
    yield from ((name, name) for name in source)
    for found in schema.as_written().attributes:
        shares = found.source_in_target, found.target_in_source
        if sum(shares) / 2 >= LIKELY and min(shares) >= LEAST:
            yield found.source, found.target
    others: dict[str, list[str]] = {}
    for name in target:
        others.setdefault(_header(name), []).append(name)
    yield from ((name, other) for name in source for other in others.get(_header(name), ()))


def name_attributes(pair: GraphPair) -> Iterable[tuple[str, str]]:
    """The attributes that hold the names, if both graphs have one; an IRI in both graphs means the same in both."""
    found = [name_attribute(graph) for graph in (pair.source, pair.target)]
    if found[0] and found[1]:
        shared = set(pair.source.attributes) & set(pair.target.attributes)
        if not any(name in shared and to_iri(name) == name for name in found):
            yield found[0], found[1]


def name_attribute(graph: KnowledgeGraph) -> str:
    """The attribute that entities are named by; empty if there is none."""
    literals, names = graph.literals, graph.names
    ids = np.stack([literals.attribute_ids, literals.entity_ids], axis=1)
    is_name = np.array(
        [value.strip() == names[entity] for entity, value in zip(ids[:, 1].tolist(), literals.values, strict=True)],
        np.bool_,
    )
    counts, named = (
        np.bincount(np.unique(rows, axis=0)[:, 0], minlength=len(graph.attributes)) for rows in (ids, ids[is_name])
    )
    best = int(named.argmax()) if len(named) else 0
    if not named.sum() or named[best] < max(NEARLY_ALL * counts[best], HALF * graph.num_entities):
        return ""
    return graph.attributes[best]


def agreeing(
    pair: GraphPair, source_ids: Ids, target_ids: Ids, source_attributes: Ids, target_attributes: Ids
) -> list[tuple[str, str]]:
    """Pairs of these attributes whose values agree for most links, those first that agree most."""
    num_links, num_columns = len(source_ids), len(target_attributes)
    if num_links < FEWEST or not len(source_attributes) or not num_columns:
        return []
    some = np.unique(np.linspace(0, num_links - 1, MOST_LINKS).astype(int))
    source_ids, target_ids = source_ids[some], target_ids[some]
    source = _literals(pair.source, source_ids, source_attributes, 0)
    target = _literals(pair.target, target_ids, target_attributes, 1)
    agreed, counts = _count(source, target, 0, len(some), (len(source_attributes), num_columns))
    is_likely = (counts >= FEWEST) & (agreed >= MOST * counts)
    source = source.filter(pl.col("attribute").is_in(np.flatnonzero(is_likely.any(axis=1))))
    target = target.filter(pl.col("attribute").is_in(np.flatnonzero(is_likely.any(axis=0))))
    by_chance, tried = np.zeros(agreed.shape), np.zeros(agreed.shape)
    for shift in range(1, min(SHIFTS, len(some) - 1) + 1):
        more = _count(source, target, shift, len(some), agreed.shape)
        by_chance, tried = by_chance + more[0], tried + more[1]
    chance = (by_chance + 1) / (tried + 2)
    share = agreed / np.maximum(counts, 1)
    beyond = (share - chance) / (1 - chance)
    is_telling = agreed - chance * counts >= DEVIATIONS * np.sqrt(counts * chance * (1 - chance))
    found = np.argwhere(is_likely & is_telling & (beyond >= MOST)).tolist()
    found.sort(key=lambda place: (-round(float(beyond[*place]), 6), -counts[*place], place))
    names = pair.source.attributes, pair.target.attributes
    return [(names[0][source_attributes[one]], names[1][target_attributes[other]]) for one, other in found]


def _literals(graph: KnowledgeGraph, ids: Ids, attributes: Ids, side: int) -> pl.DataFrame:
    """The literals of some entities and attributes; `row` and `attribute` are places among these."""
    rows, columns = np.full(graph.num_entities, -1, np.int32), np.full(len(graph.attributes), -1, np.int32)
    rows[ids], columns[attributes] = np.arange(len(ids)), np.arange(len(attributes))
    found = literals_of(graph, rows, columns, side).filter((pl.col("row") >= 0) & (pl.col("column") >= 0))
    return with_keys(found).rename({"column": "attribute"})


def _count(
    source: pl.DataFrame, target: pl.DataFrame, shift: int, num_rows: int, shape: tuple[int, ...]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """How many rows of all pairs of attributes agree, and how many have values of both that can be compared."""
    target = target.with_columns((pl.col("row") + shift) % num_rows)
    one, two = (side.select("row", "attribute").unique() for side in (source, target))
    number = pl.col("attribute") * shape[1] + pl.col("attribute_right")
    cells = one.join(two, on="row").select("row", "attribute", "attribute_right", number.alias("column"))
    both = pl.concat(
        [
            cells.select("row", pl.col(name).alias("attribute"), "column").join(side, on=["row", "attribute"])
            for name, side in (("attribute", source), ("attribute_right", target))
        ]
    )
    found = compare_cells(both.select(*CELL, pl.exclude(*CELL, "attribute")))
    counts, differing = (
        np.bincount(cells["column"].to_numpy(), minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64)
        for cells in (found.comparable, found.differing)
    )
    return counts - differing, counts


def _header(name: str) -> str:
    own = short_name(name).casefold()
    return _BETWEEN.sub("", own) or own


def short_name(name: str) -> str:
    """The last part of an IRI; any other header as it is."""
    return local_name(name) if "://" in name or name.startswith("urn:") else name
