"""The literals of both graphs as arrays for compiled code: kind, value, and how many entities have the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rlea.evidence.attributes.texts import Texts, write_texts
from rlea.evidence.attributes.units import NO_UNIT, measure
from rlea.evidence.paris.facts import RDF_TYPE, group_starts
from rlea.evidence.paris.literals import YEAR, literal_keys, rounded
from rlea.graph import Ids, KnowledgeGraph
from rlea.graph.names import local_name
from rlea.graph.transliterate import transliterate
from rlea.progress import tick

Doubles = NDArray[np.float64]
Starts = NDArray[np.int64]

NUMBER, DATE, PLACE, TEXT, CODE = range(5)
NUM_ORDERED = 3  # the first three kinds have an order: values have neighbours

_MOST_ATTRIBUTES = 2000  # per graph, the most frequent: tables of all pairs of attributes are kept
_YEAR_LIKE = 0.9  # of an attribute's numbers without a unit; if so many could be years, all are read as years
_CODE_DIGITS = 0.5  # share of digits from which a text of several words is a code ("0000 0001 2145 3310")
_LONGEST_CODE = 40
_CORE_DIGITS = 5  # fewest digits that identify a code without its letters: fewer agree by chance
_MOST_WORDS = 40  # of a text: descriptions may be long, and the distinctive words come early
_LAST_YEAR = 3000  # later years count as one
_LATITUDE = {"lat", "latitude"}
_LONGITUDE = {"long", "lon", "lng", "longitude"}
_DEGREES = r"^\(?\s*([+-]?[0-9]{1,2}\.[0-9]+)\s*[,;\s]\s*([+-]?[0-9]{1,3}\.[0-9]+)\s*\)?$"
_POINT = r"(?i)^(?:<[^>]*>\s*)?POINT\s*\(\s*([+-]?[0-9]{1,3}(?:\.[0-9]+)?)\s+([+-]?[0-9]{1,2}(?:\.[0-9]+)?)\s*\)$"
_DATE_KEY = r"^d:(-?[0-9]+)-([0-9]{2})(?:-([0-9]{2}))?"


class Side(NamedTuple):
    """One graph. The literals of entity e are starts[e]:starts[e + 1], sorted by attribute.

    `low` and `high` are the first and the last day of a date, latitude and longitude of a place, and both the number in
    the standard unit of its kind for a number; 0 for all other kinds. `text`, `compact` and `core` are -1 for none. The
    values of attribute a and kind k, sorted, are `sorted_low` (and `sorted_high`) from
    ordered_starts[a * NUM_ORDERED + k] to the next start.
    """

    starts: Starts  # (num_entities + 1,)
    attribute: Ids  # (num_literals,)
    kind: NDArray[np.int8]
    low: Doubles
    high: Doubles
    written: Doubles  # numbers as written in the file
    unit: NDArray[np.int16]
    text: Ids  # id of the text, whatever the order of its words
    compact: Ids  # id of the text without blanks
    core: Ids  # id of the digits of a code
    is_bare: NDArray[np.bool_]  # numbers, and codes of digits only
    language: NDArray[np.int16]  # 0 where none is given
    meaning: Starts  # equal for literals of this graph that repeat each other
    ordered_starts: Starts  # (num_attributes * NUM_ORDERED + 1,)
    sorted_low: Doubles
    sorted_high: Doubles
    text_count: Ids  # (num_texts,) entities of this graph that have the text
    compact_count: Ids  # (num_compacts,)
    core_count: Ids  # (num_cores,)
    repetition: Doubles  # (num_attributes,) share of literals whose value occurs more than once


@dataclass(frozen=True, eq=False)
class ComparableValues:
    """The literals of both graphs, with common ids for equal texts."""

    source: Side
    target: Side
    texts: Texts
    source_attributes: tuple[str, ...]
    target_attributes: tuple[str, ...]
    source_functionality: Doubles  # (num_attributes,) entities that have the attribute / its literals
    target_functionality: Doubles
    source_rows: Ids  # (num_literals,) rows of the literals in the graph; for a place, the row of its latitude
    target_rows: Ids
    keys: pl.DataFrame  # side (0, 1), entity, attribute (null for words and map cells), key: what candidates may share


def read_values(source: KnowledgeGraph, target: KnowledgeGraph) -> ComparableValues:
    """Read the literals of both graphs, with common ids for equal texts."""
    names: list[tuple[str, ...]] = []
    parts = []
    for number, graph in enumerate((source, target)):
        rows, kept = _rows(graph)
        names.append(kept)
        parts.append(rows.select(pl.lit(number, dtype=pl.Int8).alias("side"), pl.all()))
    read = _join_coordinates(_read(pl.concat(parts)), names)
    tick("reading texts")
    frame = _numbered(read)
    tick("sorting values")
    # The order of the rows of one entity and attribute depends on their values only.
    order = "kind", "low", "high", "written", "compact", "text", "language"
    frame = frame.sort("side", "entity", "attribute", *order, "row")
    num_entities = source.num_entities, target.num_entities
    textual = frame.filter(pl.col("text") >= 0)
    tick("counting words")
    texts = textual.select("text", "sorted").unique().sort("text")["sorted"].to_list()
    words = write_texts(texts, textual.select("side", "entity", "text").unique(), sum(num_entities))
    sides = [_side(frame, number, num_entities[number], len(names[number])) for number in (0, 1)]
    own, other = (frame.filter(side=number) for number in (0, 1))
    functionality = pl.col("entity").n_unique() / pl.len()
    return ComparableValues(
        sides[0],
        sides[1],
        words,
        names[0],
        names[1],
        _by_attribute(own, functionality, len(names[0])),
        _by_attribute(other, functionality, len(names[1])),
        own["row"].to_numpy().astype(np.int32),
        other["row"].to_numpy().astype(np.int32),
        _keys(frame),
    )


def _rows(graph: KnowledgeGraph) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """The literals of the most frequent attributes as rows, and the names of these attributes."""
    literals = graph.literals
    allowed = np.array([name != RDF_TYPE for name in graph.attributes], dtype=np.bool_)
    counts = np.bincount(literals.attribute_ids, minlength=len(allowed)) * allowed
    order = np.argsort(-counts, kind="stable")[:_MOST_ATTRIBUTES]
    kept = np.sort(order[counts[order] > 0])
    number = np.full(len(allowed), -1, dtype=np.int32)
    number[kept] = np.arange(len(kept), dtype=np.int32)
    frame = pl.DataFrame(
        {
            "entity": literals.entity_ids,
            "attribute": number[literals.attribute_ids],
            "value": pl.Series(literals.values, dtype=pl.String),
            "datatype": pl.Series(literals.datatypes, dtype=pl.String),
            "language": pl.Series(literals.languages, dtype=pl.String),
            "row": np.arange(len(literals.values), dtype=np.int32),
        },
        schema_overrides={"entity": pl.Int32, "attribute": pl.Int32},
    )
    return frame.filter(pl.col("attribute") >= 0), tuple(graph.attributes[place] for place in kept.tolist())


def _read(frame: pl.DataFrame) -> pl.DataFrame:
    """The kind and value of every literal; empty ones are left out."""
    # Values repeat, so each is read once.
    distinct = _read_distinct(frame.select("value", "datatype").unique(maintain_order=True))
    frame = frame.join(distinct, on=["value", "datatype"], how="left", maintain_order="left")
    years = pl.col("may_be_year").sum().over("side", "attribute")
    numbers = (pl.col("written").is_not_null() & (pl.col("unit") == NO_UNIT)).sum().over("side", "attribute")
    is_year = pl.col("is_year") | pl.col("may_be_year") & (years >= _YEAR_LIKE * numbers)
    year = pl.when(is_year).then(pl.col("written").cast(pl.Int64, strict=False)).otherwise("y")
    kind = (
        pl.when(pl.col("latitude").is_not_null())
        .then(PLACE)
        .when(pl.col("y").is_not_null())
        .then(DATE)
        .when(pl.col("written").is_not_null())
        .then(NUMBER)
        .when(pl.col("words").is_null() | (pl.col("words") == ""))
        .then(-1)
        .when(pl.col("is_code"))
        .then(CODE)
        .otherwise(TEXT)
    )
    frame = frame.with_columns(year.alias("y")).with_columns(kind.cast(pl.Int8).alias("kind"))
    frame = frame.filter(pl.col("kind") >= 0)
    first, last = _days(frame)
    frame = frame.with_columns(pl.Series("first", first), pl.Series("last", last))
    is_number = pl.col("kind") == NUMBER
    low, high = (
        pl.when(pl.col("kind") == PLACE).then(place).when(is_number).then("measured").otherwise(day)
        for place, day in (("latitude", "first"), ("longitude", "last"))
    )
    return frame.select(
        "side",
        "entity",
        "attribute",
        "language",
        "kind",
        low.alias("low"),
        high.alias("high"),
        pl.when(is_number).then("written").otherwise(0.0).alias("written"),
        pl.when(is_number).then("unit").otherwise(NO_UNIT).cast(pl.Int16).alias("unit"),
        "words",
        "row",
    )


def _read_distinct(literals: pl.DataFrame) -> pl.DataFrame:
    """All readings of distinct (value, datatype) rows: number, date, place, code, words; null where impossible."""
    plain, key, datatype = pl.col("plain"), pl.col("key"), pl.col("datatype")
    keyed = pl.concat([literals, literal_keys(literals).select("key", "precision")], how="horizontal")
    read = keyed.with_columns(
        pl.col("value").str.strip_chars().alias("plain"),
        pl.when(key.str.starts_with("n:")).then(key.str.slice(2)).cast(pl.Float64).alias("number"),
        key.str.extract_groups(_DATE_KEY).alias("date"),
        (pl.col("precision") == YEAR).fill_null(False).alias("tells_year"),
    )
    degrees, point = (plain.str.extract_groups(pattern).struct.field for pattern in (_DEGREES, _POINT))
    latitude = pl.coalesce(degrees("1"), point("2")).cast(pl.Float64)
    longitude = pl.coalesce(degrees("2"), point("1")).cast(pl.Float64)
    is_place = latitude.abs().le(90) & longitude.abs().le(180)
    # A year by its datatype, or a date of which no more than the year is known ("1960-00-00").
    is_year = datatype.str.ends_with("#gYear") | plain.str.contains(r"^\+?-?[0-9]{4,6}-")
    digits, length = plain.str.count_matches(r"[0-9]"), plain.str.len_chars()
    is_dense = ~plain.str.contains(r"\s") | (digits >= _CODE_DIGITS * length)
    is_code = plain.str.contains(r"^https?://\S+$") | (digits > 0) & is_dense & (length <= _LONGEST_CODE)
    date = pl.col("date").struct.field
    return pl.concat([read, measure(read)], how="horizontal").select(
        "value",
        "datatype",
        "written",
        "measured",
        "unit",
        pl.when(is_place).then(latitude).alias("latitude"),
        pl.when(is_place).then(longitude).alias("longitude"),
        date("1").cast(pl.Int64).alias("y"),
        date("2").cast(pl.Int64).alias("m"),
        date("3").cast(pl.Int64).alias("d"),
        (pl.col("tells_year") & is_year).alias("is_year"),
        (pl.col("tells_year") & plain.str.contains(r"^[0-9]{4}$") & (datatype == "")).alias("may_be_year"),
        is_code.alias("is_code"),
        key.str.strip_prefix("s:").str.replace_all(r"\s", " ").alias("words"),
    )


def _days(frame: pl.DataFrame) -> tuple[Doubles, Doubles]:
    """First and last day of every date, counted from 1 March of year 0; 0 for all other kinds."""
    year, month, day = (frame[name].fill_null(0).to_numpy().astype(np.int64) for name in ("y", "m", "d"))
    has_month, has_day = month > 0, day > 0
    first = day_number(year, np.where(has_month, month, 1), np.where(has_day, day, 1))
    after_month = day_number(year + (month == 12), np.where(month == 12, 1, month + 1), np.ones_like(day))
    after_year = day_number(year + 1, np.ones_like(month), np.ones_like(day))
    last = np.where(has_day, first, np.where(has_month, after_month, after_year) - 1)
    is_date = frame["kind"].to_numpy().astype(np.int64) == DATE
    return np.where(is_date, first, 0).astype(np.float64), np.where(is_date, last, 0).astype(np.float64)


def day_number(year: Any, month: Any, day: Any) -> Any:
    """Days since 1 March of year 0 (proleptic Gregorian), for numbers or arrays."""
    early = month <= 2
    year = year - early
    # From March on the lengths of months repeat every five months: 31, 30, 31, 30, 31.
    within = (153 * (month + 12 * early - 3) + 2) // 5 + day - 1
    return 365 * year + year // 4 - year // 100 + year // 400 + within


def _join_coordinates(frame: pl.DataFrame, names: Sequence[tuple[str, ...]]) -> pl.DataFrame:
    """Join one latitude and one longitude of an entity to a place, under the attribute of the latitude."""
    parts = [frame]
    for side, attributes in enumerate(names):
        last = [local_name(name).lower() for name in attributes]
        chosen = [[number for number, name in enumerate(last) if name in wanted] for wanted in (_LATITUDE, _LONGITUDE)]
        if not all(chosen):
            continue
        here = frame.filter((pl.col("side") == side) & (pl.col("kind") == NUMBER))
        single = [
            here.filter(pl.col("attribute").is_in(numbers)).filter(pl.len().over("entity") == 1) for numbers in chosen
        ]
        both = single[0].join(single[1].select("entity", pl.col("written").alias("longitude")), on="entity")
        both = both.filter(pl.col("written").abs().le(90) & pl.col("longitude").abs().le(180))
        places = both.with_columns(
            pl.lit(PLACE, dtype=pl.Int8).alias("kind"),
            pl.col("written").alias("low"),
            pl.col("longitude").alias("high"),
            pl.lit(0.0).alias("written"),
            pl.lit(NO_UNIT, dtype=pl.Int16).alias("unit"),
        ).select(frame.columns)
        gone = (pl.col("side") == side) & pl.col("attribute").is_in(chosen[0] + chosen[1])
        gone &= pl.col("entity").is_in(both["entity"].to_list())
        parts = [part.filter(~gone) for part in parts]
        parts.append(places)
    return pl.concat(parts)


def _numbered(frame: pl.DataFrame) -> pl.DataFrame:
    """Give ids to texts, compact texts, cores and languages, in their alphabetical order."""
    textual = pl.col("kind") >= TEXT
    distinct = frame.filter(textual).select("words").unique().sort("words")["words"].to_list()
    latin = transliterate("\n".join(distinct)).split("\n") if distinct else []
    forms = pl.DataFrame({"words": distinct, "latin": latin}, schema={"words": pl.String, "latin": pl.String})
    # What has no Latin form stays as it is.
    spelt = pl.when(pl.col("latin").str.strip_chars() == "").then("words").otherwise("latin")
    parts = spelt.str.split(" ").list.eval(pl.element().filter(pl.element() != ""))
    forms = forms.select("words", parts.alias("list")).select(
        "words",
        pl.col("list").list.head(_MOST_WORDS).list.sort().list.join(" ").alias("sorted"),
        pl.col("list").list.join("").str.replace(r"^https?(?:www)?(.)", "$1").alias("joined"),
    )
    tick("numbering texts")
    frame = frame.join(forms, on="words", how="left", maintain_order="left")
    whole = (pl.col("written").abs() < 1e15) & (pl.col("written") == pl.col("written").floor())
    digits = (
        pl.when(pl.col("kind") == CODE)
        .then(pl.col("joined").str.extract(r"^[a-z]{0,4}0*([0-9]+)[a-z]{0,2}$", 1))
        .when((pl.col("kind") == NUMBER) & whole)
        .then(pl.col("written").abs().cast(pl.Int64, strict=False).cast(pl.String))
    )
    frame = frame.with_columns(
        pl.when(textual).then("sorted").alias("sorted"),
        pl.when(textual).then("joined").alias("joined"),
        pl.when(digits.str.len_chars() >= _CORE_DIGITS).then(digits).alias("digits"),
        ((pl.col("kind") == NUMBER) | pl.col("joined").str.contains(r"^[0-9]+$")).fill_null(False).alias("is_bare"),
        # "en-GB" and "en" are one language here.
        pl.col("language").str.split("-").list.first().alias("main_language"),
    )
    for name, text in (("text", "sorted"), ("compact", "joined"), ("core", "digits"), ("language", "main_language")):
        known = frame.select(pl.col(text).drop_nulls().unique().sort()).with_row_index("place")
        frame = (
            frame.drop(name, strict=False)
            .join(known, on=text, how="left", maintain_order="left")
            .with_columns(pl.col("place").cast(pl.Int32).fill_null(-1).alias(name))
            .drop("place")
        )
    # The empty language sorts first and has id 0; where every literal has a language, 0 must stay unused.
    if not (frame["main_language"] == "").any():
        frame = frame.with_columns(pl.col("language") + 1)
    return frame


def _side(frame: pl.DataFrame, number: int, num_entities: int, num_attributes: int) -> Side:
    rows = frame.filter(pl.col("side") == number)
    ordered = rows.filter(pl.col("kind") < NUM_ORDERED).with_columns(
        (pl.col("attribute") * NUM_ORDERED + pl.col("kind")).alias("group")
    )
    alone = (pl.len().over("attribute", "kind", "low", "high", "compact") == 1).alias("alone")

    def columns(dtype: Any, *names: str) -> dict[str, Any]:
        return {name: rows[name].to_numpy().astype(dtype) for name in names}

    return Side(
        **columns(np.int32, "attribute", "text", "compact", "core"),
        **columns(np.float64, "low", "high", "written"),
        **columns(np.int16, "unit", "language"),
        **columns(np.int8, "kind"),
        **columns(np.bool_, "is_bare"),
        starts=group_starts(rows["entity"].to_numpy(), num_entities),
        meaning=_meanings(rows),
        ordered_starts=group_starts(ordered["group"].to_numpy(), num_attributes * NUM_ORDERED),
        sorted_low=ordered.sort("group", "low")["low"].to_numpy().astype(np.float64),
        sorted_high=ordered.sort("group", "high")["high"].to_numpy().astype(np.float64),
        text_count=_entities_with(frame, number, "text"),
        compact_count=_entities_with(frame, number, "compact"),
        core_count=_entities_with(frame, number, "core"),
        repetition=_by_attribute(rows.with_columns(alone), 1.0 - pl.col("alone").mean(), num_attributes),
    )


def _meanings(rows: pl.DataFrame) -> Starts:
    """Ids that texts of the same words share, codes and numbers of the same digits, and dates of the same year."""
    # Copies: numpy's select crashed on the arrays that polars lends of no rows.
    kind, core, text, compact = (rows[name].to_numpy().astype(np.int64) for name in ("kind", "core", "text", "compact"))
    low = rows["low"].to_numpy().astype(np.float64)
    meaning = np.unique(low, return_inverse=True)[1].astype(np.int64)
    # In this order: a core, where there is one, overrides the rest.
    for chosen, numbers in (
        (kind == DATE, years_of(low)),
        (kind == TEXT, text),
        (kind == CODE, compact),
        (core >= 0, core),
    ):
        meaning[chosen] = numbers[chosen]
    return np.asarray(meaning * (CODE + 2) + np.where(core >= 0, CODE + 1, kind), dtype=np.int64)


def years_of(days: Doubles) -> NDArray[np.int64]:
    """An id for the year of every day; years before 0 share one."""
    ones = np.ones(_LAST_YEAR, dtype=np.int64)
    return np.searchsorted(day_number(np.arange(_LAST_YEAR), ones, ones), days, side="right").astype(np.int64)


def _entities_with(frame: pl.DataFrame, side: int, name: str) -> Ids:
    """How many entities of a side have each text, compact text or core; (number of ids,)."""
    known = frame.filter(pl.col(name) >= 0)
    pairs = known.filter(side=side).select("entity", name).unique()
    return np.bincount(pairs[name].to_numpy(), minlength=known[name].n_unique()).astype(np.int32)


def _by_attribute(rows: pl.DataFrame, value: pl.Expr, num_attributes: int) -> Doubles:
    """An aggregate over the rows of each attribute, 0 where it has none; (num_attributes,)."""
    found = rows.group_by("attribute").agg(value.alias("value"))
    result = np.zeros(num_attributes)
    result[found["attribute"].to_numpy()] = found["value"].to_numpy()
    return result


def _keys(frame: pl.DataFrame) -> pl.DataFrame:
    """What candidates may share: side, entity, attribute, key; words and map cells have no attribute."""
    exact = [
        ("c:", pl.col("compact") >= 0, pl.col("compact")),
        ("t:", (pl.col("kind") == TEXT) & pl.col("sorted").str.contains(" ", literal=True), pl.col("text")),
        ("k:", pl.col("core") >= 0, pl.col("core")),
        ("d:", (pl.col("kind") == DATE) & (pl.col("low") == pl.col("high")), pl.col("low").cast(pl.Int64)),
        # Not small whole numbers: thousands share them.
        (
            "n:",
            (pl.col("kind") == NUMBER) & ((pl.col("low").abs() >= 100) | (pl.col("low") != pl.col("low").floor())),
            rounded(pl.col("low"), 6),
        ),
        # Cells of half a degree: most neighbours share one, which is enough to find attributes of places.
        (
            "q:",
            pl.col("kind") == PLACE,
            pl.format("{} {}", (pl.col("low") * 2).floor().cast(pl.Int64), (pl.col("high") * 2).floor().cast(pl.Int64)),
        ),
    ]
    parts = [
        frame.filter(chosen).select("side", "entity", "attribute", pl.concat_str(pl.lit(mark), value).alias("key"))
        for mark, chosen, value in exact
    ]
    nameless = pl.lit(None, dtype=pl.Int32).alias("attribute")
    words = (
        frame.filter(pl.col("kind") == TEXT)
        .select("side", "entity", pl.col("sorted").str.split(" ").alias("word"))
        .explode("word")
        .filter(pl.col("word").str.len_chars() >= 3)
    )
    parts.append(words.select("side", "entity", nameless, pl.concat_str(pl.lit("w:"), "word").alias("key")))
    places = frame.filter(pl.col("kind") == PLACE).select(
        "side",
        "entity",
        (pl.col("low") * 10).floor().cast(pl.Int64).alias("y"),
        (pl.col("high") * 10).floor().cast(pl.Int64).alias("x"),
    )
    # A target counts for the cells around its own too, so that no border separates neighbours.
    for dy in (-1, 0, 1):
        for dx in (-1, 0, 1):
            cells = places.filter((pl.col("side") == 1) | ((dy == 0) & (dx == 0)))
            key = pl.format("p:{} {}", pl.col("y") + dy, (pl.col("x") + dx + 1800) % 3600)
            parts.append(cells.select("side", "entity", nameless, key.alias("key")))
    return pl.concat(parts).unique()
