"""When two literals are equal: numbers by value, dates by day, text without case, accents, punctuation, extra blanks.

Every literal gets a key, and literals are equal if their keys are: with probability 1 or 0, whatever is learned about
entities, as in the paper.
"""

from __future__ import annotations

import polars as pl

# Precisions of a date, coarse to fine. The key of a year is that of a number, since many files lose the type gYear.
YEAR, MONTH, DAY, INSTANT = range(4)
PRECISION_NAMES = ("year", "month", "day", "instant")

_ZONE = r"(?:Z|[+-][0-9]{2}:[0-9]{2})?"
_MOMENT = r"^\+?(-?[0-9]{4,6})-([0-9]{2})-([0-9]{2})(?:T([0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?))?" + _ZONE + "$"
_MONTH = r"^\+?(-?[0-9]{4,6})-([0-9]{2})" + _ZONE + "$"
_YEAR = r"^\+?(-?[0-9]{4,6})" + _ZONE + "$"
# Days as people write them, in ASCII digits.
_DOTTED = r"^([0-9]{1,2})\.\s?([0-9]{1,2})\.\s?([0-9]{4})$"
_REVERSE = r"^([0-9]{4})[/.]([0-9]{1,2})[/.]([0-9]{1,2})$"
_SLASHED = r"^([0-9]{1,2})[/\-]([0-9]{1,2})[/\-]([0-9]{4})$"
_NAMED = (
    r"(?i:(jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\.?)"
)
_WORDED = rf"^([0-9]{{1,2}})(?:st|nd|rd|th|\.)?[ \-]{_NAMED}[ ,\-]{{1,2}}([0-9]{{4}})$"
_AMERICAN = rf"^{_NAMED} ([0-9]{{1,2}})(?:st|nd|rd|th)?,? ([0-9]{{4}})$"
_MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTHS = {name: f"{number:02}" for number, name in enumerate(_MONTH_NAMES, start=1)}
_MIDNIGHT = r"^00:00(:00(\.0+)?)?$"
# A code such as 0013159 is text: as a number it would be equal to 13159.
_PLAIN_NUMBER = r"^[+-]?(?:0|[1-9][0-9]*|[1-9][0-9]{0,2}(?:,[0-9]{3})+)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?$"
_TYPED_NUMBER = r"^[+-]?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]{1,3})?$|^[+-]?\.[0-9]+(?:[eE][+-]?[0-9]{1,3})?$"
_NUMERIC_TYPE = (
    r"XMLSchema#(?:decimal|double|float|integer|int|long|short|byte"
    r"|unsigned(?:Long|Int|Short|Byte)|(?:non)?(?:Positive|Negative)Integer|(?:positive|negative)Integer)$"
    r"|^http://dbpedia\.org/datatype/"
)
# Units that may follow a number; none that could begin a word or a code.
_UNIT = r"^([+-]?[0-9.,]*[0-9])\s*(?:km²|km2|m²|m2|km|cm|mm|kg|ft|lb|min|°C|°F|°|%|€|\$|£|m|g|s|h)$"
_EXACT = 1e15  # smaller whole numbers are exact as floating-point numbers


def literal_keys(literals: pl.DataFrame) -> pl.DataFrame:
    """The columns `key`, `precision` and `coarser` for literals with the string columns `value` and `datatype`.

    `key` is null where a literal is empty. `precision` is that of a date, or YEAR for a number that may be a year, else
    null. `coarser` is the list of the keys of a date at coarser precisions, finest last, else null.
    """
    value = pl.col("value").str.strip_chars()
    frame = literals.select(value.alias("value"), "datatype").with_columns(
        pl.coalesce(_iso_date(pl.col("value")), "value").str.extract_groups(_MOMENT).alias("moment"),
        pl.col("value").str.extract_groups(_MONTH).alias("month"),
        pl.when(pl.col("datatype").str.ends_with("#gYear")).then(pl.col("value").str.extract(_YEAR, 1)).alias("year"),
    )
    day, month = pl.col("moment").struct.field, pl.col("month").struct.field
    frame = frame.select(
        "value",
        "datatype",
        pl.coalesce(day("1"), month("1"), pl.col("year")).alias("y"),
        _valid(pl.coalesce(day("2"), month("2")), 12).alias("m"),
        _valid(day("3"), 31).alias("d"),
        pl.when(~day("4").str.contains(_MIDNIGHT)).then(day("4")).alias("t"),
        # "1960-13-40" looks like a date but is not; 00 is how some files mark an unknown month or day.
        (
            pl.coalesce(day("2"), month("2"), pl.lit("00")).cast(pl.Int32).gt(12)
            | pl.coalesce(day("3"), pl.lit("00")).cast(pl.Int32).gt(31)
        ).alias("wrong"),
    )
    frame = frame.with_columns(pl.when(~pl.col("wrong")).then(pl.col("y")).cast(pl.Int64).alias("y"))
    known = pl.col("y").is_not_null()
    year_key = pl.format("n:{}", "y")
    month_key = pl.format("d:{}-{}", "y", "m")
    day_key = pl.format("d:{}-{}-{}", "y", "m", "d")
    instant_key = pl.format("d:{}-{}-{}T{}", "y", "m", "d", "t")
    number = _number_key()
    whole_year = number.str.contains(r"^n:[12][0-9]{3}$")
    text = pl.col("value").pipe(_text_key)
    precision = (
        pl.when(known & instant_key.is_not_null())
        .then(INSTANT)
        .when(known & day_key.is_not_null())
        .then(DAY)
        .when(known & month_key.is_not_null())
        .then(MONTH)
        .when(known | whole_year)
        .then(YEAR)
    )
    return frame.select(
        pl.coalesce(pl.when(known).then(pl.coalesce(instant_key, day_key, month_key, year_key)), number, text).alias(
            "key"
        ),
        precision.cast(pl.Int8).alias("precision"),
        pl.when(known).then(pl.concat_list(year_key, month_key, day_key)).alias("coarser"),
    )


def _iso_date(value: pl.Expr) -> pl.Expr:
    """A day as people write it (15.09.1971, 1971/9/15, 15 Sep 1971, Sep 15, 1971) in the form 1971-09-15; else null.

    Of 9/15/1971 and 15/9/1971 it is clear which number is the day; 5/9/1971 is left as it is.
    """
    dotted, reverse, slashed = (
        value.str.extract_groups(pattern).struct.field for pattern in (_DOTTED, _REVERSE, _SLASHED)
    )
    worded, american = (value.str.extract_groups(pattern).struct.field for pattern in (_WORDED, _AMERICAN))

    def month(name: pl.Expr) -> pl.Expr:
        return name.str.to_lowercase().str.slice(0, 3).replace_strict(_MONTHS, default=None, return_dtype=pl.String)

    def day(year: pl.Expr, number: pl.Expr, last: pl.Expr) -> pl.Expr:
        return pl.format("{}-{}-{}", year, number.str.zfill(2), last.str.zfill(2))

    first, second = slashed("1"), slashed("2")
    is_day = [part.cast(pl.Int32).is_between(13, 31) for part in (first, second)]
    return pl.coalesce(
        day(dotted("3"), dotted("2"), dotted("1")),
        day(reverse("1"), reverse("2"), reverse("3")),
        pl.when(is_day[0]).then(day(slashed("3"), second, first)),
        pl.when(is_day[1]).then(day(slashed("3"), first, second)),
        day(worded("3"), month(worded("2")), worded("1")),
        day(american("3"), month(american("1")), american("2")),
    )


def _valid(part: pl.Expr, largest: int) -> pl.Expr:
    """A month or a day as two digits, null where it is unknown (00)."""
    return pl.when(part.cast(pl.Int32).is_between(1, largest)).then(part)


def _number_key() -> pl.Expr:
    """The number that a value is, in one spelling; null where it is none."""
    value = pl.col("value")
    bare = pl.coalesce(
        pl.when(value.str.contains(_PLAIN_NUMBER)).then(value),
        pl.when(pl.col("datatype").str.contains(_NUMERIC_TYPE) & value.str.contains(_TYPED_NUMBER)).then(value),
        pl.when(value.str.extract(_UNIT, 1).str.contains(_PLAIN_NUMBER)).then(value.str.extract(_UNIT, 1)),
    ).str.replace_all(",", "", literal=True)
    number = bare.cast(pl.Float64, strict=False)
    whole = (number == number.floor()) & (number.abs() < _EXACT)
    return (
        pl.when(whole)
        .then(pl.format("n:{}", pl.when(whole).then(number).cast(pl.Int64)))
        # Larger whole numbers are compared by their digits, or neighbours would become equal.
        .when(bare.str.contains(r"^[+-]?[0-9]+$"))
        .then(pl.format("n:{}", bare.str.strip_prefix("+")))
        .when(number.is_finite())
        .then(pl.format("n:{}", rounded(number, 12)))
    )


def rounded(number: pl.Expr, digits: int) -> pl.Expr:
    """Numbers rounded to significant digits. (polars would use the logarithm of the machine.)"""
    from rlea.arithmetic import round_to_digits

    def of(column: pl.Series) -> pl.Series:
        result = pl.Series(round_to_digits(column.fill_null(0.0).to_numpy(), digits))
        return result.zip_with(column.is_not_null(), pl.Series([None], dtype=pl.Float64))

    return number.map_batches(of, return_dtype=pl.Float64)


def _text_key(value: pl.Expr) -> pl.Expr:
    """Text without case, accents, punctuation and extra blanks; unchanged where nothing would be left."""
    # Only the accents of European scripts: the vowel signs of other scripts are marks too and distinguish words.
    plain = value.str.normalize("NFKD").str.replace_all(r"[\x{0300}-\x{036F}]", "").str.to_lowercase()
    words = plain.str.replace_all(r"[^\p{L}\p{N}\p{M}]+", " ").str.strip_chars()
    return pl.when(words != "").then(pl.format("s:{}", words)).when(value != "").then(pl.format("s:{}", value))
