"""Two values that are one, written in two ways: "12 High Rd." and "12 High Road", 1.234,50 and "$1,234.5".

`rlea merge` asks here before it calls two values a contradiction. Read as numbers, dates, telephone numbers and words,
as the attribute channel reads them, and in the notations whose meaning only a second value makes clear.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

import polars as pl

from rlea.evidence.attributes.units import NO_UNIT, measure
from rlea.evidence.paris.literals import literal_keys
from rlea.graph.names import plain
from rlea.graph.transliterate import transliterate

CONVERTED = 0.005  # relative difference of one length in two units, each of them rounded
FEWEST_DIGITS = 7  # of a telephone number without its country code
LEADING_ZEROS = 4  # fewest digits of a code that a spreadsheet took the leading zeros from
SHORTENED = 4  # letters that a short form such as "dept" leaves out at least; "Carl" is not short for "Carol"

_CURRENCY = r"[$€£¥]|(?:USD|EUR|GBP|CHF|JPY)\b"
_AMOUNT = re.compile(
    rf"^(?:(?P<before>{_CURRENCY})\s*)?(?P<sign>[+-]?)(?P<number>[0-9][0-9.,'\u2019\s]*)(?:\s*(?P<after>{_CURRENCY}))?$"
)
_CODES = {"$": "USD", "€": "EUR", "£": "GBP", "¥": "JPY"}
_GROUPED = {
    mark: re.compile(rf"^[1-9][0-9]{{0,2}}(?:{group}[0-9]{{3}})+(?:{point}[0-9]+)?$")
    for mark, group, point in ((",", ",", r"\."), (".", r"\.", ","), (" ", r"[\s'\u2019]", "[.,]"))
}
_DECIMAL = re.compile(r"^(?:0|[1-9][0-9]*)(?:[.,][0-9]+)?$")
_DAY = re.compile(r"^([0-9]{1,2})[/.\-]([0-9]{1,2})[/.\-]([0-9]{2}|[0-9]{4})$")
_KEY_OF_DAY = re.compile(r"^d:([0-9]{4})-([0-9]{2})-([0-9]{2})$")
_PHONE = re.compile(r"^\+?[0-9()\s./\-]+$")
_NOT_LETTERS = re.compile(r"[^a-z]")
_CONSONANTS = re.compile(r"^[a-z][b-df-hj-np-tv-z]+$")


class Keep(Enum):
    """Which of two values that are the same says more."""

    FIRST = 0
    SECOND = 1
    BOTH = 2


@dataclass(frozen=True)
class Reading:
    """All that a value may mean."""

    length: int
    words: tuple[str, ...]
    numbers: frozenset[float]
    currency: str
    days: frozenset[tuple[int, int, int]]  # year (without its century if two digits were written), month, day
    measured: float  # in the standard unit of its kind
    unit: int  # NO_UNIT if there is none
    digits: str  # of a code of digits, or of a telephone number without the zero of its area; else empty
    is_phone: bool
    is_abroad: bool  # a telephone number with its country code


def read_values(literals: pl.DataFrame) -> list[Reading]:
    """The readings of rows with `value` and `datatype`."""
    keys = literals.select("value", "datatype").hstack(literal_keys(literals).select("key"))
    number = pl.when(pl.col("key").str.starts_with("n:")).then(pl.col("key").str.slice(2)).cast(pl.Float64)
    units = measure(keys.with_columns(number.alias("number")))
    columns = keys["value"], keys["key"].fill_null(""), units["measured"].fill_null(0.0), units["unit"]
    return [_read(value.strip(), key, far, unit) for value, key, far, unit in zip(*columns, strict=True)]


def compare(one: Reading, other: Reading) -> Keep | None:
    """Which of two values to keep, BOTH where neither says more; None if they are not the same."""
    if one.currency and other.currency and one.currency != other.currency:
        return None
    if one.unit != NO_UNIT and one.unit == other.unit:
        largest = max(abs(one.measured), abs(other.measured))
        return Keep.FIRST if abs(one.measured - other.measured) <= CONVERTED * largest else None
    if one.days and other.days:
        return _compare_days(one, other)
    if one.numbers & other.numbers:
        return Keep.FIRST
    if one.digits and other.digits:
        return _compare_digits(one, other)
    if (one.numbers and other.numbers) or not (one.words and other.words):
        return None
    if "".join(one.words) == "".join(other.words):
        return Keep.SECOND if other.length > one.length else Keep.FIRST
    if sorted(one.words) == sorted(other.words):
        return Keep.FIRST
    return _compare_words(one.words, other.words)


def is_short_for(short: str, word: str) -> bool:
    """Whether one word is a short form of the other: its beginning, its consonants, or its beginning and last letter.

    >>> is_short_for("rd", "road"), is_short_for("j", "john"), is_short_for("dept", "department")
    (True, True, True)
    >>> is_short_for("carl", "carol"), is_short_for("main", "martin"), is_short_for("12", "123")
    (False, False, False)
    """
    if len(short) >= len(word) or len(word) < (3 if len(short) > 1 else 4) or _NOT_LETTERS.search(short + word):
        return False
    if word.startswith(short):
        return True
    if short[0] != word[0] or short[-1] != word[-1]:
        return False
    left = iter(word)
    if _CONSONANTS.match(short) and all(letter in left for letter in short):
        return True
    return len(short) >= 4 and word.startswith(short[:-1]) and len(word) - len(short) >= SHORTENED


def _read(value: str, key: str, measured: float, unit: int) -> Reading:
    numbers, currency = _numbers(value)
    if key.startswith("n:") and unit == NO_UNIT:
        numbers |= {float(key[2:])}
    is_phone = bool(_PHONE.match(value)) and not numbers and not _DAY.match(value)
    digits = re.sub(r"[^0-9]", "", value.replace("(0)", "")) if is_phone or value.isdecimal() else ""
    is_abroad = is_phone and (value.startswith(("+", "00")) and len(digits) > FEWEST_DIGITS)
    return Reading(
        len(value),
        tuple(plain(transliterate(value.replace("&", " and "))).split()),
        frozenset(numbers),
        currency,
        frozenset(_days(value, key)),
        measured,
        unit,
        digits.lstrip("0"),
        is_phone or value.isdecimal(),
        is_abroad,
    )


def _numbers(value: str) -> tuple[set[float], str]:
    """What a number may be, with its currency: 1.234 is a little more than one, or more than a thousand."""
    found = _AMOUNT.match(value)
    if not found:
        return set(), ""
    text, numbers = found["number"].strip(), set()
    for mark, pattern in _GROUPED.items():
        if pattern.match(text):
            point = "," if mark == "." else "."
            whole = text.replace(",", ".") if mark == " " else text.replace(mark, "").replace(point, ".")
            numbers.add(float(re.sub(r"[\s'\u2019]", "", whole)))
    if _DECIMAL.match(text):
        numbers.add(float(text.replace(",", ".")))
    currency = found["before"] or found["after"] or ""
    sign = -1.0 if found["sign"] == "-" else 1.0
    return {sign * number for number in numbers}, _CODES.get(currency, currency)


def _days(value: str, key: str) -> set[tuple[int, int, int]]:
    """The days that a date may be: 5/9/1971 is one of two."""
    known = _KEY_OF_DAY.match(key)
    if known:
        return {(int(known[1]), int(known[2]), int(known[3]))}
    found = _DAY.match(value)
    if not found:
        return set()
    first, second, year = (int(part) for part in found.groups())
    pairs = (second, first), (first, second)
    return {(year, month, day) for month, day in pairs if 1 <= month <= 12 and 1 <= day <= 31}


def _compare_days(one: Reading, other: Reading) -> Keep | None:
    def is_same(year: int, year_too: int) -> bool:
        return year == year_too or (min(year, year_too) < 100 and year % 100 == year_too % 100)

    for day in one.days:
        for day_too in other.days:
            if day[1:] == day_too[1:] and is_same(day[0], day_too[0]):
                # The clearer one: not one of two days, and with its century.
                clear = [(len(reading.days) == 1, max(year for year, _, _ in reading.days)) for reading in (one, other)]
                return Keep.SECOND if clear[1] > clear[0] else Keep.FIRST
    return None


def _compare_digits(one: Reading, other: Reading) -> Keep | None:
    if one.digits == other.digits:
        fewest = FEWEST_DIGITS if one.is_abroad or other.is_abroad else LEADING_ZEROS
        return (Keep.SECOND if other.length > one.length else Keep.FIRST) if len(one.digits) >= fewest else None
    for abroad, home, keep in ((one, other, Keep.FIRST), (other, one, Keep.SECOND)):
        country = len(abroad.digits) - len(home.digits)
        is_enough = home.is_phone and not home.is_abroad and len(home.digits) >= FEWEST_DIGITS
        if abroad.is_abroad and is_enough and 1 <= country <= 3 and abroad.digits.endswith(home.digits):
            return keep
    return None


def _compare_words(one: tuple[str, ...], other: tuple[str, ...]) -> Keep | None:
    """Word by word, where one may be short for the other; initials that only one of them has do not count."""
    if len(one) != len(other):
        one_kept, other_kept = (tuple(word for word in words if len(word) > 1) for words in (one, other))
        if len(one_kept) < 2 or one_kept != other_kept:
            return None
        return Keep.SECOND if len(other) > len(one) else Keep.FIRST
    shorter = [0, 0]
    for word, word_too in zip(one, other, strict=True):
        if word == word_too:
            continue
        if is_short_for(word, word_too):
            shorter[0] += 1
        elif is_short_for(word_too, word):
            shorter[1] += 1
        else:
            return None
    if all(shorter):
        return Keep.BOTH
    return Keep.SECOND if shorter[0] else Keep.FIRST
