"""Cells in which two graphs say the same, and cells in which they contradict each other.

A cell is a `row` (an entity of the world) and a `column` (attributes that correspond). Its literals have a `side`: 0 is
the source, 1 the target.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from rlea.evidence.paris.literals import literal_keys
from rlea.graph import Ids, KnowledgeGraph
from rlea.same_values import Keep, compare, read_values

CELL = ["row", "column"]
FEWEST_LETTERS = 4  # of a text that agrees with a longer one that contains it
RESOURCE = "http://www.w3.org/2000/01/rdf-schema#Resource"  # datatype of classes


@dataclass(frozen=True, eq=False)
class Compared:
    """What came of comparing cells that have values of both sides."""

    comparable: pl.DataFrame  # cells with values in one language, or in none on either side
    differing: pl.DataFrame  # those of them in which no value agrees with one of the other side
    spare: pl.DataFrame  # cell, side, key: spellings that say less than one of the other side


def literals_of(graph: KnowledgeGraph, rows: Ids, columns: Ids, side: int) -> pl.DataFrame:
    """All literals of a graph, given the row of every entity and the column of every attribute."""
    literals = graph.literals
    texts = {"value": literals.values, "datatype": literals.datatypes, "language": literals.languages}
    return pl.DataFrame(
        {
            "row": rows[literals.entity_ids],
            "column": columns[literals.attribute_ids],
            "side": np.full(len(literals), side, np.int8),
            **{name: pl.Series(values, dtype=pl.String) for name, values in texts.items()},
        }
    )


def with_keys(literals: pl.DataFrame) -> pl.DataFrame:
    """The same with `key`, equal for equal values, and `coarser`, the month and the year of a date."""
    return literals.hstack(literal_keys(literals).select(pl.col("key").fill_null(""), "coarser"))


def compare_cells(both: pl.DataFrame) -> Compared:
    """Compare cells that have values of both sides, with their keys."""
    own, other = pl.col("side") == 0, pl.col("side") == 1
    exact = both.select(*CELL, "key", "side", pl.lit(True).alias("exact"))
    # A date agrees with its own year or month in the other graph; two dates of one year do not agree.
    coarse = both.filter(pl.col("coarser").is_not_null()).explode("coarser")
    coarse = coarse.filter(pl.col("coarser") != pl.col("key"))  # it ends with the date itself; null where unknown
    coarse = coarse.select(*CELL, pl.col("coarser").alias("key"), "side", pl.lit(False).alias("exact"))
    agreeing = (
        pl.concat([exact, coarse])
        .group_by(*CELL, "key")
        .agg(own.any().alias("one"), other.any().alias("two"), pl.col("exact").any())
        .filter(pl.col("one") & pl.col("two") & pl.col("exact"))
        .select(CELL)
        .unique()
    )
    comparable = _comparable(both)
    differing = comparable.join(agreeing, on=CELL, how="anti")
    same, spare = _same(both.join(differing, on=CELL))
    # A year says nothing beside a day of it.
    spare = pl.concat([spare, coarse.select(*CELL, (1 - pl.col("side")).cast(pl.Int8).alias("side"), "key")])
    return Compared(comparable, differing.join(same, on=CELL, how="anti"), spare)


def containing(both: pl.DataFrame) -> pl.DataFrame:
    """The cells in which a text of one graph contains one of the other."""
    texts = both.filter(pl.col("key").str.starts_with("s:")).select(*CELL, "side", pl.col("key").str.slice(2))
    one, two = (texts.filter(side=side).drop("side") for side in (0, 1))
    long, other = pl.col("key"), pl.col("key_right")
    within = [
        (short.str.len_chars() >= FEWEST_LETTERS) & longer.str.contains(short, literal=True)
        for longer, short in ((long, other), (other, long))
    ]
    return one.join(two, on=CELL).filter(within[0] | within[1]).select(CELL).unique()


def _comparable(both: pl.DataFrame) -> pl.DataFrame:
    """The cells with values of both graphs in one language, or in none on either side; classes do not count."""
    texts = both.filter((pl.col("datatype") != RESOURCE) & (pl.col("key") != ""))
    by_language = texts.group_by(*CELL, "language").agg(
        (pl.col("side") == 0).any().alias("one"), (pl.col("side") == 1).any().alias("two")
    )
    plain = pl.col("language") == ""
    one, two = pl.col("one"), pl.col("two")
    is_comparable = (one & two).any() | ((one & plain).any() & two.any()) | ((two & plain).any() & one.any())
    return by_language.group_by(CELL).agg(is_comparable.alias("yes")).filter("yes").select(CELL)


def _same(both: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The cells in which both graphs write one value in two ways; and the spellings to leave out: cell, side, key."""
    texts = both.filter((pl.col("datatype") != RESOURCE) & (pl.col("key") != ""))
    distinct = texts.select("value", "datatype").unique(maintain_order=True).with_row_index("reading")
    readings = read_values(distinct)
    texts = texts.join(distinct, on=["value", "datatype"]).select(*CELL, "side", "key", "reading")
    one, two = (texts.filter(side=side).drop("side") for side in (0, 1))
    pairs = one.join(two, on=CELL)
    # Values repeat, so each pair is compared once.
    compared = pairs.select("reading", "reading_right").unique()
    kept = [compare(readings[first], readings[second]) for first, second in compared.iter_rows()]
    numbers = pl.Series("keep", [None if keep is None else keep.value for keep in kept], dtype=pl.Int8)
    pairs = pairs.join(compared.with_columns(numbers).drop_nulls("keep"), on=["reading", "reading_right"])
    sides = pl.lit(1, dtype=pl.Int8).alias("side"), pl.lit(0, dtype=pl.Int8).alias("side")
    spare = [
        pairs.filter(keep=Keep.FIRST.value).select(*CELL, sides[0], pl.col("key_right").alias("key")),
        pairs.filter(keep=Keep.SECOND.value).select(*CELL, sides[1], "key"),
    ]
    return pairs.select(CELL).unique(), pl.concat(spare)
