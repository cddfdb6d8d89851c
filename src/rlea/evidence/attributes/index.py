"""Which pairs of entities are compared: those that share something rare, never all pairs."""

from __future__ import annotations

import numba
import numpy as np
import polars as pl
from numpy.typing import NDArray

from rlea.evidence.attributes.comparison import NUMBER_SCALE
from rlea.evidence.attributes.values import DATE, NUM_ORDERED, NUMBER, PLACE, ComparableValues, Doubles, Side, years_of
from rlea.evidence.paris.literals import rounded
from rlea.graph.size import is_large

_JOINED_VALUES = 12  # rarest values of an entity that are combined two by two ...
_JOINED_IN_LARGE = 5  # ... and in large graphs, where all pairs of values of a million entities would not fit

Codes = NDArray[np.int64]  # source id * number of targets + target id


def share_keys(keys: pl.DataFrame, num_targets: int, max_pairs: int) -> Codes:
    """Pairs of entities that share a key which at most `max_pairs` pairs share; sorted, each once."""
    rows = _rare(keys.select("side", "entity", "key").unique(), max_pairs)
    found = rows.filter(side=0).join(rows.filter(side=1), on="key")
    codes = found["entity"].to_numpy().astype(np.int64) * num_targets + found["entity_right"].to_numpy()
    return np.unique(codes)


def count_overlap(values: ComparableValues, max_pairs: int) -> tuple[Doubles, Doubles, Doubles]:
    """Rare keys that two attributes share, (num_source_attributes, num_target_attributes), and all keys of each."""
    keys = values.keys.filter(pl.col("attribute").is_not_null())
    num = len(values.source_attributes), len(values.target_attributes)
    distinct = keys.select("side", "attribute", "key").unique()
    counts = []
    for side in (0, 1):
        own = distinct.filter(side=side)["attribute"].to_numpy()
        counts.append(np.bincount(own, minlength=num[side]).astype(np.float64))
    rare = _rare(keys.select("side", "entity", "key").unique(), max_pairs).select("key").unique()
    told_by = distinct.join(rare, on="key", how="semi")
    both = told_by.filter(side=0).join(told_by.filter(side=1), on="key").group_by("attribute", "attribute_right").len()
    shared = np.zeros(num)
    shared[both["attribute"].to_numpy(), both["attribute_right"].to_numpy()] = both["len"].to_numpy()
    return shared, counts[0], counts[1]


def _rare(rows: pl.DataFrame, max_pairs: int) -> pl.DataFrame:
    """The rows of keys that both sides have and that at most `max_pairs` pairs share."""
    return rows.join(_count_pairs(rows).filter(pl.col("pairs").is_between(1, max_pairs)), on="key", how="semi")


def _count_pairs(rows: pl.DataFrame) -> pl.DataFrame:
    """How many pairs of entities share each key."""
    sources, targets = ((pl.col("side") == side).sum().cast(pl.Int64) for side in (0, 1))
    return rows.group_by("key").agg((sources * targets).alias("pairs"))


def share_numbers(
    values: ComparableValues, partners: NDArray[np.int64], factors: Doubles, num_targets: int, max_neighbours: int
) -> Codes:
    """Pairs with nearly the same number under corresponding attributes, where few targets are that near.

    `partners` has a row (source attribute, target attribute) for each correspondence.
    """
    parts = [np.zeros(0, dtype=np.int64)]
    (sources, own), (targets, theirs) = (_numbers(side) for side in (values.source, values.target))
    for one, other in partners.tolist():
        here, there = own[one], theirs[other]
        if len(here) and len(there):
            ids, numbers = sources[one], here * factors[one, other]
            parts.append(_near(ids, numbers, targets[other], there, num_targets, max_neighbours))
    return np.unique(np.concatenate(parts))


def _numbers(side: Side) -> tuple[list[NDArray[np.int64]], list[Doubles]]:
    """Entities and values of the numbers of each attribute, in ascending order of the values."""
    numbers = _values(side).filter(pl.col("kind") == NUMBER).sort("attribute", "low", "entity")
    num_attributes = (len(side.ordered_starts) - 1) // NUM_ORDERED
    marks = np.searchsorted(numbers["attribute"].to_numpy(), np.arange(1, num_attributes))
    entities, lows = numbers["entity"].to_numpy().astype(np.int64), numbers["low"].to_numpy()
    return np.split(entities, marks), np.split(lows, marks)


def share_jointly(
    values: ComparableValues, partners: NDArray[np.int64], factors: Doubles, num_targets: int, max_pairs: int
) -> Codes:
    """Pairs that share two values which are rare together, though neither need be rare: a year and a running time.

    Values are compared under corresponding attributes (`partners`, as above), dates as years and numbers to three
    digits.
    """
    table = pl.DataFrame(partners, schema={"attribute": pl.Int64, "as": pl.Int64}, orient="row").with_columns(
        pl.Series("factor", factors[partners[:, 0], partners[:, 1]], dtype=pl.Float64)
    )
    source = _values(values.source).join(table, on="attribute")
    target = _values(values.target).with_columns(pl.col("attribute").alias("as"), pl.lit(1.0).alias("factor"))
    number = rounded(pl.col("low") * pl.col("factor"), 3).cast(pl.String)
    value = pl.when(pl.col("kind") == NUMBER).then(number).otherwise(pl.col("whole").cast(pl.String))
    key = pl.concat_str("as", "kind", value, separator=" ").alias("key")
    rows = pl.concat(
        [
            part.select(pl.lit(side, dtype=pl.Int8).alias("side"), "entity", "as", key)
            for side, part in enumerate((source, target))
        ]
    ).unique()
    # Numbered from the rarest, then by key, so that no choice below depends on the order of entities.
    counts = _count_pairs(rows).filter(pl.col("pairs") > 0).sort("pairs", "key")
    rows = rows.join(counts.select("key").with_row_index("number"), on="key").sort("side", "entity", "number")
    large = is_large(len(values.source.starts) - 1, len(values.target.starts) - 1)
    most = _JOINED_IN_LARGE if large else _JOINED_VALUES
    rows = rows.filter(pl.int_range(pl.len()).over("side", "entity") < most)
    both = rows.join(rows, on=["side", "entity"]).filter(
        (pl.col("number") < pl.col("number_right")) & (pl.col("as") != pl.col("as_right"))
    )
    joint = (pl.col("number").cast(pl.Int64) * len(counts) + pl.col("number_right")).alias("key")
    return share_keys(both.select("side", "entity", joint), num_targets, max_pairs)


def _values(side: Side) -> pl.DataFrame:
    """Entity, attribute, kind, number (`low`) and, for dates and texts, a whole number that identifies them."""
    return pl.DataFrame(
        {
            "entity": np.repeat(np.arange(len(side.starts) - 1, dtype=np.int32), np.diff(side.starts)),
            "attribute": side.attribute.astype(np.int64),
            "kind": side.kind,
            "low": side.low,
            "whole": np.where(side.kind == DATE, years_of(side.low), side.compact),
        }
    ).filter(pl.col("kind") != PLACE)


@numba.njit(cache=True)
def _near(sources, values, targets, others, num_targets, max_neighbours):  # type: ignore[no-untyped-def]
    codes = np.empty(len(sources) * max_neighbours, dtype=np.int64)
    size = 0
    for i in range(len(sources)):
        reach = abs(values[i]) * NUMBER_SCALE
        low = np.searchsorted(others, values[i] - reach, side="left")
        high = np.searchsorted(others, values[i] + reach, side="right")
        if high - low <= max_neighbours:
            for j in range(low, high):
                codes[size] = sources[i] * num_targets + targets[j]
                size += 1
    return codes[:size]
