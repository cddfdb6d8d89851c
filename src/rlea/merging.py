"""Two graphs as one: a row for every entity of the world, linked ones joined, as a table and as a graph.

Values of attributes that correspond stand in one column, with where they came from. Where the two graphs contradict
each other, both values are shown and counted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rlea.graph import GraphPair, Ids, KnowledgeGraph
from rlea.graph.frames import literals_frame, triples_frame
from rlea.graph.iri import to_iri
from rlea.graph.schema import Schema
from rlea.io.writers.rows import DECIMALS
from rlea.matching import Matching
from rlea.same_cells import CELL, compare_cells, containing, literals_of, with_keys
from rlea.shared_columns import shared_columns, short_name

MERGED_FILES = ("merged.csv", "merged.nt")  # in the folder of a run, once they are asked for
FIXED = ("source", "target", "confidence", "source_label", "target_label", "conflicts")
OTHER = "other"  # column of the attributes that have none of their own
MOST_COLUMNS = 50  # attributes with a column of their own, the most filled: spreadsheets grow slow with more
CONFLICT, VALUES = " ≠ ", " | "  # between the values of both graphs that contradict each other; between others


@dataclass(frozen=True, eq=False)
class Merged:
    """The table, and the attributes that each of its columns is made of."""

    frame: pl.DataFrame
    columns: dict[str, tuple[str, ...]]
    others: tuple[str, ...]  # attributes without a column of their own

    @property
    def renamed(self) -> list[tuple[str, str]]:
        """The headers of columns that are called one thing in the source and another in the target."""
        pairs = [(short_name(names[0]), short_name(names[-1])) for names in self.columns.values()]
        return [(one, other) for one, other in pairs if one.casefold() != other.casefold()]


def merge(pair: GraphPair, matching: Matching, schema: Schema | None = None, *, most: int = MOST_COLUMNS) -> Merged:
    """One row per entity: those of the source graph with their counterparts, then those of the target graph alone.

    Seeds count as links with confidence 1. If an entity has several links, the surest joins it. The columns are
    FIXED, then two for each of the `most` filled attributes: its values, and " (from)" where they come from (source,
    target, both or conflict). Values of all other attributes are in OTHER, as "attribute: values".

    Two graphs contradict each other where both have values for an attribute and none of them agrees: numbers are
    compared by value, dates as far as both are known, text without case, accents and punctuation; short forms and
    other notations agree with what they mean (same_values.py), and the one that says more is kept. A text agrees with
    one that contains it ("0118523", "tt0118523"). Texts in different languages, and classes, never contradict each
    other.
    """
    source_ids, target_ids, confidences = choose_links(pair, matching)
    rows = _rows(pair, source_ids, target_ids, confidences)
    groups = shared_columns(pair, source_ids, target_ids, schema or Schema())
    source_column, target_column = (np.zeros(len(g.attributes), np.int32) for g in (pair.source, pair.target))
    for number, (one, other) in enumerate(groups):
        if one is not None:
            source_column[one] = number
        if other is not None:
            target_column[other] = number
    target_row = np.zeros(pair.target.num_entities, np.int32)
    alone = np.setdiff1d(np.arange(pair.target.num_entities), target_ids)
    target_row[target_ids] = source_ids
    target_row[alone] = pair.source.num_entities + np.arange(len(alone))
    cells = _cells(
        literals_of(pair.source, np.arange(pair.source.num_entities, dtype=np.int32), source_column, 0),
        literals_of(pair.target, target_row, target_column, 1),
    )
    names = [
        tuple(graph.attributes[k] for graph, k in zip((pair.source, pair.target), group, strict=True) if k is not None)
        for group in groups
    ]
    filled = np.bincount(cells["column"].to_numpy(), minlength=len(groups))
    order = sorted(np.flatnonzero(filled).tolist(), key=lambda column: (-filled[column], names[column]))
    order = [*sorted(order[:most], key=lambda column: _place(groups[column], pair)), *order[most:]]
    titles = _titles([names[column][0] for column in order])
    counted = cells.filter(pl.col("from") == "conflict").group_by("row").agg(pl.len().cast(pl.Int32).alias("conflicts"))
    frame = rows.join(counted, on="row", how="left", maintain_order="left").with_columns(
        pl.col("conflicts").fill_null(0)
    )
    by_column = {key[0]: part for key, part in cells.partition_by("column", as_dict=True, include_key=False).items()}
    for column, title in zip(order[:most], titles, strict=False):
        named = by_column[column].rename({"text": title, "from": f"{title} (from)"})
        frame = frame.join(named, on="row", how="left", maintain_order="left")
    rest = order[most:]
    if rest:
        known = pl.DataFrame({"column": rest, "title": titles[most:]}, schema_overrides={"column": pl.Int32})
        texts = cells.join(known, on="column").sort("row", "title")
        told = texts.group_by("row").agg(pl.format("{}: {}", "title", "text").str.join("; ").alias(OTHER))
        frame = frame.join(told, on="row", how="left", maintain_order="left")
    columns = {title: names[column] for column, title in zip(order[:most], titles, strict=False)}
    return Merged(frame.drop("row"), columns, tuple(name for column in rest for name in names[column]))


def _place(group: tuple[int | None, int | None], pair: GraphPair) -> tuple[int, int]:
    """Where a column stands: those of the source first; of a table in its order, of a graph all in one place."""
    side, own = (1, group[1]) if group[0] is None else (0, group[0])
    graph = pair.target if side else pair.source
    headers = graph.columns
    return side, headers.index(graph.attributes[own]) if own is not None and headers else 0


def choose_links(pair: GraphPair, matching: Matching) -> tuple[Ids, Ids, NDArray[np.float64]]:
    """The seeds, then the surest link of every entity: no entity has two."""
    order = np.lexsort((matching.target_ids, matching.source_ids, -np.round(matching.confidences, DECIMALS)))
    source_ids = np.concatenate([pair.train.source_ids, matching.source_ids[order]])
    target_ids = np.concatenate([pair.train.target_ids, matching.target_ids[order]])
    confidences = np.concatenate([np.ones(len(pair.train)), matching.confidences[order]])
    seen: tuple[set[int], set[int]] = set(), set()
    kept = []
    for place, ends in enumerate(zip(source_ids.tolist(), target_ids.tolist(), strict=True)):
        if ends[0] not in seen[0] and ends[1] not in seen[1]:
            kept.append(place)
            for own, end in zip(seen, ends, strict=True):
                own.add(end)
    return source_ids[kept], target_ids[kept], confidences[kept]


def merged_graph(pair: GraphPair, matching: Matching) -> KnowledgeGraph:
    """All triples and literals of both graphs; a linked entity has the identifier of the source graph.

    Relations and attributes stay as they are. A key that is no IRI and stands for different entities in the two graphs
    gets " (target)" behind it in the target's triples.
    """
    source_ids, target_ids, _ = choose_links(pair, matching)
    called = [_own_name(name, pair) for name in pair.target.entities]
    for one, two in zip(source_ids.tolist(), target_ids.tolist(), strict=True):
        called[two] = pair.source.entities[one]
    new = pl.DataFrame(
        {"old": list(pair.target.entities), "new": called}, schema=dict.fromkeys(("old", "new"), pl.String)
    )
    triples = triples_frame(pair.target)
    literals = literals_frame(pair.target)
    for name in ("head", "tail"):
        triples = triples.with_columns(pl.col(name).replace_strict(new["old"], new["new"]))
    literals = literals.with_columns(pl.col("entity").replace_strict(new["old"], new["new"]))
    return KnowledgeGraph.build(
        pl.concat([triples_frame(pair.source), triples]),
        pl.concat([literals_frame(pair.source), literals]),
        entities=[*pair.source.entities, *called],
    )


def _rows(pair: GraphPair, source_ids: Ids, target_ids: Ids, confidences: NDArray[np.float64]) -> pl.DataFrame:
    """The fixed columns, but for conflicts, and `row`."""
    source, target = pair.source, pair.target
    alone = np.setdiff1d(np.arange(target.num_entities), target_ids).tolist()
    partner: list[int | None] = [None] * source.num_entities
    sure: list[float | None] = [None] * source.num_entities
    for one, two, confidence in zip(source_ids.tolist(), target_ids.tolist(), confidences.tolist(), strict=True):
        partner[one], sure[one] = two, round(confidence, DECIMALS)
    own, other = [*range(source.num_entities), *[None] * len(alone)], [*partner, *alone]
    texts = {"source": source.entities, "target": target.entities}, {"source": source.names, "target": target.names}
    ids = {"source": own, "target": other}
    columns = {
        f"{side}{ending}": [None if k is None else part[side][k] for k in ids[side]]
        for part, ending in zip(texts, ("", "_label"), strict=True)
        for side in ids
    }
    strings = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
    return strings.with_columns(
        pl.Series("row", range(len(own)), dtype=pl.Int32),
        pl.Series("confidence", [*sure, *[None] * len(alone)], dtype=pl.Float64),
    ).select("row", *(name for name in FIXED if name != "conflicts"))


def _cells(source: pl.DataFrame, target: pl.DataFrame) -> pl.DataFrame:
    """The cells that hold something: row, column, text, from."""
    cell = CELL
    own, other = pl.col("side") == 0, pl.col("side") == 1
    every = pl.concat([source, target])
    sides = every.group_by(cell).agg(own.any().alias("has_source"), other.any().alias("has_target"))
    is_both = pl.col("has_source") & pl.col("has_target")
    # Only values that meet others are compared: most do not, and the keys take most of the time.
    both = with_keys(every.join(sides.filter(is_both).select(cell), on=cell))
    alone = every.join(sides.filter(~is_both).select(cell), on=cell).with_columns(pl.col("value").alias("key"))
    found = compare_cells(both)
    conflicts = found.differing.join(containing(both.join(found.differing, on=cell)), on=cell, how="anti")
    conflicts = conflicts.with_columns(pl.lit(True).alias("conflict"))
    both = both.drop("coarser").join(found.spare, on=[*cell, "side", "key"], how="anti")
    shown = (
        pl.concat([both, alone])
        .sort(*cell, "side", "value")
        .unique([*cell, "key"], keep="first", maintain_order=True)
        .group_by(*cell, maintain_order=True)
        .agg(
            *(
                pl.col("value").filter(which).str.join(VALUES).alias(name)
                for name, which in (("one", own), ("two", other))
            )
        )
    )
    is_conflict = pl.col("conflict").fill_null(False)
    one, two = (pl.when(pl.col(name) != "").then(pl.col(name)) for name in ("one", "two"))
    return (
        shown.join(sides, on=cell)
        .join(conflicts, on=cell, how="left")
        .select(
            *cell,
            pl.when(is_conflict)
            .then(pl.format("{}" + CONFLICT + "{}", "one", "two"))
            .otherwise(pl.concat_str([one, two], separator=VALUES, ignore_nulls=True))
            .alias("text"),
            pl.when(is_conflict)
            .then(pl.lit("conflict"))
            .when(is_both)
            .then(pl.lit("both"))
            .when("has_source")
            .then(pl.lit("source"))
            .otherwise(pl.lit("target"))
            .alias("from"),
        )
        .filter(pl.col("text") != "")
        .sort(cell)
    )


def _titles(names: Iterable[str]) -> list[str]:
    """Short names of attributes as titles of columns, the whole identifier where a short one is taken."""
    taken = {"row", *FIXED, OTHER}  # "row" counts them while the table is made
    titles = []
    for name in names:
        title = next(text for text in _ways(name) if text not in taken and f"{text} (from)" not in taken)
        taken |= {title, f"{title} (from)"}
        titles.append(title)
    return titles


def _ways(name: str) -> Iterable[str]:
    yield short_name(name)
    yield name
    number = 2
    while True:
        yield f"{name} ({number})"
        number += 1


def _own_name(name: str, pair: GraphPair) -> str:
    """The identifier of a target entity that is not linked. An IRI means the same thing everywhere, a key does not."""
    source, target = pair.source.entity_index, pair.target.entity_index
    is_shared = name in source and to_iri(name) != name
    while is_shared and (name in source or name in target):
        name += " (target)"
    return name
