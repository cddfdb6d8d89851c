"""The literals of both graphs as compiled code wants them: what each is, its value, and how many entities have it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rlea.evidence.attributes.texts import Texts, write_texts
from rlea.evidence.attributes.units import NO_UNIT, measure
from rlea.evidence.paris.facts import RDF_TYPE
from rlea.evidence.paris.literals import YEAR, literal_keys, rounded
from rlea.graph import Ids, KnowledgeGraph
from rlea.graph.names import local_name
from rlea.graph.transliterate import transliterate

if TYPE_CHECKING:
    import polars as pl

Doubles = NDArray[np.float64]
Starts = NDArray[np.int64]

NUMBER, DATE, PLACE, TEXT, CODE = range(5)
NUM_ORDERED = 3  # the first kinds have an order, and a neighbourhood

_YEAR_LIKE = 0.9  # share of the bare numbers of an attribute that could be years, from which on they are
_CODE_DIGITS = 0.5  # share of digits from which on a text of several words is a code ("0000 0001 2145 3310")
_LONGEST_CODE = 40
_CORE_DIGITS = 5  # least digits by which a code is known without its letters: fewer meet by chance
_MOST_WORDS = 40  # of a text: descriptions may be long, and what tells stands early
_LAST_YEAR = 3000  # later ones are one year
_LATITUDE = {"lat", "latitude"}
_LONGITUDE = {"long", "lon", "lng", "longitude"}
_DEGREES = r"^\(?\s*([+-]?\d{1,2}\.\d+)\s*[,;\s]\s*([+-]?\d{1,3}\.\d+)\s*\)?$"
_POINT = r"(?i)^(?:<[^>]*>\s*)?POINT\s*\(\s*([+-]?\d{1,3}(?:\.\d+)?)\s+([+-]?\d{1,2}(?:\.\d+)?)\s*\)$"
_DATE_KEY = r"^d:(-?\d+)-(\d{2})(?:-(\d{2}))?"


class Side(NamedTuple):
    """One graph. The literals of entity e are starts[e]:starts[e + 1], sorted by attribute.

    `low` and `high` are the first and the last day of a date, latitude and longitude of a place, and twice the number,
    in the first unit of its kind, of a number; 0 for all else. -1 stands for a `text`, `compact` or `core` that is not.
    The ordered values of attribute a and kind k are `sorted_low` (and `sorted_high`) between the marks
    ordered_starts[a * NUM_ORDERED + k] and the next.
    """

    starts: Starts  # (num_entities + 1,)
    attribute: Ids  # (num_literals,)
    kind: NDArray[np.int8]
    low: Doubles
    high: Doubles
    written: Doubles  # numbers as they stand in the file
    unit: NDArray[np.int16]
    text: Ids  # number of the text, whatever the order of its words
    compact: Ids  # number of the text without blanks
    core: Ids  # number of the digits of a code
    is_bare: NDArray[np.bool_]  # numbers, and codes of nothing but digits
    language: NDArray[np.int16]  # 0 where none is given
    meaning: Starts  # the same for literals of this graph of which one is no news after the other
    ordered_starts: Starts  # (num_attributes * NUM_ORDERED + 1,)
    sorted_low: Doubles
    sorted_high: Doubles
    text_count: Ids  # (num_texts,) entities of this graph that have the text
    compact_count: Ids  # (num_compacts,)
    core_count: Ids  # (num_cores,)
    repetition: Doubles  # (num_attributes,) share of values that are not the only ones of their kind


@dataclass(frozen=True, eq=False)
class Told:
    """Both graphs made comparable."""

    source: Side
    target: Side
    texts: Texts
    source_attributes: tuple[str, ...]
    target_attributes: tuple[str, ...]
    source_functionality: Doubles  # (num_attributes,) entities that have the attribute, over its literals
    target_functionality: Doubles
    source_rows: Ids  # (num_literals,) where the literals stand in the graph; of a place, its latitude
    target_rows: Ids
    keys: pl.DataFrame  # side (0, 1), entity, attribute (null for words and cells), key: what candidates may share


def tell(source: KnowledgeGraph, target: KnowledgeGraph, *, max_attributes: int = 2000) -> Told:
    """The literals of both graphs, read and numbered alike."""
    import polars as pl

    names: list[tuple[str, ...]] = []
    parts = []
    for number, graph in enumerate((source, target)):
        rows, kept = _rows(graph, max_attributes)
        names.append(kept)
        parts.append(rows.select(pl.lit(number, dtype=pl.Int8).alias("side"), pl.all()))
    frame = _numbered(_join_coordinates(_read(pl.concat(parts)), names))
    # Rows of one entity and attribute stand in an order that hangs on what they say.
    said = "kind", "low", "high", "written", "compact", "text", "language"
    frame = frame.sort("side", "entity", "attribute", *said, "row")
    num_entities = source.num_entities, target.num_entities
    textual = frame.filter(pl.col("text") >= 0)
    texts = textual.select("text", "sorted").unique().sort("text")["sorted"].to_list()
    words = write_texts(texts, textual.select("side", "entity", "text").unique(), sum(num_entities))
    sides = [_side(frame, number, num_entities[number], len(names[number])) for number in (0, 1)]
    return Told(
        sides[0],
        sides[1],
        words,
        names[0],
        names[1],
        _functionality(frame, 0, len(names[0])),
        _functionality(frame, 1, len(names[1])),
        frame.filter(side=0)["row"].to_numpy().astype(np.int32),
        frame.filter(side=1)["row"].to_numpy().astype(np.int32),
        _keys(frame),
    )


def _rows(graph: KnowledgeGraph, max_attributes: int) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Entity, attribute, value, datatype and language of the literals that may speak, and the attributes they have."""
    import polars as pl

    literals = graph.literals
    allowed = np.array([name != RDF_TYPE for name in graph.attributes], dtype=np.bool_)
    counts = np.bincount(literals.attribute_ids, minlength=len(allowed)) * allowed
    order = np.argsort(-counts, kind="stable")[:max_attributes]
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
    """What every literal is, and its value; those that say nothing are left out."""
    import polars as pl

    # Values recur, so each is read once.
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
    """Everything that distinct pairs of value and datatype could be; null where they could not."""
    import polars as pl

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
    is_year = datatype.str.ends_with("#gYear") | plain.str.contains(r"^\+?-?\d{4,6}-")
    digits, length = plain.str.count_matches(r"\d"), plain.str.len_chars()
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
        (pl.col("tells_year") & plain.str.contains(r"^\d{4}$") & (datatype == "")).alias("may_be_year"),
        is_code.alias("is_code"),
        key.str.strip_prefix("s:").str.replace_all(r"\s", " ").alias("words"),
    )


def _days(frame: pl.DataFrame) -> tuple[Doubles, Doubles]:
    """First and last day of every date, counted from the first of March of the year 0; 0 for all else."""
    year, month, day = (frame[name].fill_null(0).to_numpy().astype(np.int64) for name in ("y", "m", "d"))
    has_month, has_day = month > 0, day > 0
    first = day_number(year, np.where(has_month, month, 1), np.where(has_day, day, 1))
    after_month = day_number(year + (month == 12), np.where(month == 12, 1, month + 1), np.ones_like(day))
    after_year = day_number(year + 1, np.ones_like(month), np.ones_like(day))
    last = np.where(has_day, first, np.where(has_month, after_month, after_year) - 1)
    is_date = frame["kind"].to_numpy().astype(np.int64) == DATE
    return np.where(is_date, first, 0).astype(np.float64), np.where(is_date, last, 0).astype(np.float64)


def day_number(year: Any, month: Any, day: Any) -> Any:
    """Days since the first of March of the year 0 (Gregorian, the proleptic one), for numbers or arrays of them."""
    early = month <= 2
    year = year - early
    # From March on the lengths of months repeat every five: 31, 30, 31, 30, 31.
    within = (153 * (month + 12 * early - 3) + 2) // 5 + day - 1
    return 365 * year + year // 4 - year // 100 + year // 400 + within


def _join_coordinates(frame: pl.DataFrame, names: Sequence[tuple[str, ...]]) -> pl.DataFrame:
    """One place for an entity with one latitude and one longitude, under the attribute of the latitude."""
    import polars as pl

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
    """Texts, compact texts, cores and languages as numbers, in the order of what they stand for."""
    import polars as pl

    textual = pl.col("kind") >= TEXT
    distinct = frame.filter(textual).select("words").unique().sort("words")["words"].to_list()
    latin = transliterate("\n".join(distinct)).split("\n") if distinct else []
    forms = pl.DataFrame({"words": distinct, "latin": latin}, schema={"words": pl.String, "latin": pl.String})
    # What is nothing in Latin letters stays as it is.
    spelt = pl.when(pl.col("latin").str.strip_chars() == "").then("words").otherwise("latin")
    parts = spelt.str.split(" ").list.eval(pl.element().filter(pl.element() != ""))
    forms = forms.select("words", parts.alias("list")).select(
        "words",
        pl.col("list").list.head(_MOST_WORDS).list.sort().list.join(" ").alias("sorted"),
        pl.col("list").list.join("").str.replace(r"^https?(?:www)?(.)", "$1").alias("joined"),
    )
    frame = frame.join(forms, on="words", how="left", maintain_order="left")
    whole = (pl.col("written").abs() < 1e15) & (pl.col("written") == pl.col("written").floor())
    digits = (
        pl.when(pl.col("kind") == CODE)
        .then(pl.col("joined").str.extract(r"^[a-z]{0,4}0*(\d+)[a-z]{0,2}$", 1))
        .when((pl.col("kind") == NUMBER) & whole)
        .then(pl.col("written").abs().cast(pl.Int64, strict=False).cast(pl.String))
    )
    frame = frame.with_columns(
        pl.when(textual).then("sorted").alias("sorted"),
        pl.when(textual).then("joined").alias("joined"),
        pl.when(digits.str.len_chars() >= _CORE_DIGITS).then(digits).alias("digits"),
        ((pl.col("kind") == NUMBER) | pl.col("joined").str.contains(r"^\d+$")).fill_null(False).alias("is_bare"),
        # "en-GB" and "en" are one language here.
        pl.col("language").str.split("-").list.first().alias("tongue"),
    )
    for name, text in (("text", "sorted"), ("compact", "joined"), ("core", "digits"), ("language", "tongue")):
        known = frame.select(pl.col(text).drop_nulls().unique().sort()).with_row_index("place")
        frame = (
            frame.drop(name, strict=False)
            .join(known, on=text, how="left", maintain_order="left")
            .with_columns(pl.col("place").cast(pl.Int32).fill_null(-1).alias(name))
            .drop("place")
        )
    # The empty language sorts first; where every literal has one, none may be taken for it.
    if not (frame["tongue"] == "").any():
        frame = frame.with_columns(pl.col("language") + 1)
    return frame


def _side(frame: pl.DataFrame, number: int, num_entities: int, num_attributes: int) -> Side:
    import polars as pl

    rows = frame.filter(pl.col("side") == number)
    ordered = rows.filter(pl.col("kind") < NUM_ORDERED).with_columns(
        (pl.col("attribute") * NUM_ORDERED + pl.col("kind")).alias("group")
    )

    def column(name: str, dtype: Any) -> NDArray[Any]:
        return rows[name].to_numpy().astype(dtype)

    return Side(
        starts=_starts(rows["entity"].to_numpy(), num_entities),
        attribute=column("attribute", np.int32),
        kind=column("kind", np.int8),
        low=column("low", np.float64),
        high=column("high", np.float64),
        written=column("written", np.float64),
        unit=column("unit", np.int16),
        text=column("text", np.int32),
        compact=column("compact", np.int32),
        core=column("core", np.int32),
        is_bare=column("is_bare", np.bool_),
        language=column("language", np.int16),
        meaning=_meanings(rows),
        ordered_starts=_starts(ordered["group"].to_numpy(), num_attributes * NUM_ORDERED),
        sorted_low=ordered.sort("group", "low")["low"].to_numpy().astype(np.float64),
        sorted_high=ordered.sort("group", "high")["high"].to_numpy().astype(np.float64),
        text_count=_entities_with(frame, number, "text"),
        compact_count=_entities_with(frame, number, "compact"),
        core_count=_entities_with(frame, number, "core"),
        repetition=_repetition(rows, num_attributes),
    )


def _meanings(rows: pl.DataFrame) -> Starts:
    """Numbers that texts of the same words share, codes and numbers of the same digits, and dates of the same year."""
    # Copies: numpy's select crashed on the arrays that polars lends of no rows.
    kind, core, text, compact = (rows[name].to_numpy().astype(np.int64) for name in ("kind", "core", "text", "compact"))
    low = rows["low"].to_numpy().astype(np.float64)
    meaning = np.unique(low, return_inverse=True)[1].astype(np.int64)
    # In this order: what has a core is known by it, whatever else it is.
    for chosen, numbers in (
        (kind == DATE, years_of(low)),
        (kind == TEXT, text),
        (kind == CODE, compact),
        (core >= 0, core),
    ):
        meaning[chosen] = numbers[chosen]
    return np.asarray(meaning * (CODE + 2) + np.where(core >= 0, CODE + 1, kind), dtype=np.int64)


def years_of(days: Doubles) -> NDArray[np.int64]:
    """The years of days, so numbered that they can be told apart; those before the year 0 are one."""
    ones = np.ones(_LAST_YEAR, dtype=np.int64)
    return np.searchsorted(day_number(np.arange(_LAST_YEAR), ones, ones), days, side="right").astype(np.int64)


def _entities_with(frame: pl.DataFrame, side: int, name: str) -> Ids:
    """How many entities of a side have each text, compact text or core; (number of them in both graphs,)."""
    import polars as pl

    known = frame.filter(pl.col(name) >= 0)
    pairs = known.filter(side=side).select("entity", name).unique()
    return np.bincount(pairs[name].to_numpy(), minlength=known[name].n_unique()).astype(np.int32)


def _repetition(rows: pl.DataFrame, num_attributes: int) -> Doubles:
    import polars as pl

    alone = (pl.len().over("attribute", "kind", "low", "high", "compact") == 1).alias("alone")
    shares = rows.select("attribute", alone).group_by("attribute").agg((1.0 - pl.col("alone").mean()).alias("share"))
    result = np.zeros(num_attributes)
    result[shares["attribute"].to_numpy()] = shares["share"].to_numpy()
    return result


def _functionality(frame: pl.DataFrame, side: int, num_attributes: int) -> Doubles:
    import polars as pl

    rows = frame.filter(pl.col("side") == side).group_by("attribute").agg(pl.col("entity").n_unique() / pl.len())
    result = np.zeros(num_attributes)
    result[rows["attribute"].to_numpy()] = rows["entity"].to_numpy()
    return result


def _keys(frame: pl.DataFrame) -> pl.DataFrame:
    """What candidates may share: side, entity, attribute, key; words and cells of the map go without an attribute."""
    import polars as pl

    exact = [
        ("c:", pl.col("compact") >= 0, pl.col("compact")),
        ("t:", (pl.col("kind") == TEXT) & pl.col("sorted").str.contains(" ", literal=True), pl.col("text")),
        ("k:", pl.col("core") >= 0, pl.col("core")),
        ("d:", (pl.col("kind") == DATE) & (pl.col("low") == pl.col("high")), pl.col("low").cast(pl.Int64)),
        # Small whole numbers are counts that thousands share.
        (
            "n:",
            (pl.col("kind") == NUMBER) & ((pl.col("low").abs() >= 100) | (pl.col("low") != pl.col("low").floor())),
            rounded(pl.col("low"), 6),
        ),
        # Half a degree: most that lie together lie in one such field, which is enough to tell attributes of places.
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
    # The target's place counts for the cells around its own as well, so that no border parts neighbours.
    for dy in (-1, 0, 1):
        for dx in (-1, 0, 1):
            cells = places.filter((pl.col("side") == 1) | ((dy == 0) & (dx == 0)))
            key = pl.format("p:{} {}", pl.col("y") + dy, (pl.col("x") + dx + 1800) % 3600)
            parts.append(cells.select("side", "entity", nameless, key.alias("key")))
    return pl.concat(parts).unique()


def _starts(groups: NDArray[Any], num_groups: int) -> Starts:
    starts = np.zeros(num_groups + 1, dtype=np.int64)
    if len(groups):
        np.cumsum(np.bincount(groups, minlength=num_groups), out=starts[1:])
    return starts
