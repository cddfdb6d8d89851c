"""Values that are one thing in two notations, and those that only look so."""

from __future__ import annotations

import polars as pl
import pytest

from rlea.same_values import Keep, compare, is_short_for, read_values


def judged(one, other):
    return compare(*read_values(pl.DataFrame({"value": [one, other], "datatype": ["", ""]})))


@pytest.mark.parametrize(
    ("one", "other", "kept"),
    [
        ("12 High Rd.", "12 High Road", 1),
        ("Station Road", "STATION RD", 0),
        ("J. Smith", "John Smith", 1),
        ("John A. Smith", "John Smith", 0),
        ("Smith, John", "John Smith", 0),
        ("Acme Ltd", "Acme Limited", 1),
        ("Marks & Spencer", "marks and spencer", 1),
        ("O'Brien", "OBrien", 0),
        ("SW1A1AA", "SW1A 1AA", 1),
        ("M", "Male", 1),
        ("Dept of Health", "Department of Health", 1),
        ("Sunset Blvd", "Sunset Boulevard", 1),
        ("399.00", "399", 0),
        ("$1,234.50", "1234.5", 0),
        ("1.234,50 €", "1234.50", 0),
        ("1.234", "1,234", 0),
        ("1 234 567", "1234567", 0),
        ("1'234.5", "1234.5", 0),
        ("-5", "-5.0", 0),
        ("5/9/1971", "1971-09-05", 1),
        ("1971-09-05", "09/05/1971", 0),
        ("05/09/71", "1971-09-05", 1),
        ("15 Sep 1971", "15.9.1971", 0),
        ("180 cm", "1.8 m", 0),
        ("5 ft 11 in", "180 cm", 0),
        ("0113 496 0001", "(0113) 4960001", 1),
        ("0113 496 0001", "+44 113 496 0001", 1),
        ("+44 (0)113 496 0001", "01134960001", 0),
        ("0044 113 4960001", "0113 496 0001", 0),
        ("01234", "1234", 0),
    ],
)
def test_one_value_in_two_notations(one, other, kept):
    assert judged(one, other) is Keep(kept)
    mirrored = judged(other, one)
    assert mirrored is not None
    if len(one) != len(other):  # which one is kept may hang on the order only where neither says more
        assert mirrored in (Keep.FIRST, Keep(1 - kept))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("12 High Road", "14 High Rd"),
        ("Main St", "Martin St"),
        ("Carl", "Carol"),
        ("A", "AB"),
        ("Leeds", "York"),
        ("$5", "5 €"),
        ("399", "398"),
        ("12", "123"),
        ("1971-09-05", "1971-09-06"),
        ("5/9/1971", "1971-10-05"),
        ("05/09/72", "1971-09-05"),
        ("180 cm", "1.9 m"),
        ("5 kg", "5 m"),
        ("0113 496 0001", "0113 496 0002"),
        ("+44 113 496 0001", "+49 113 496 0001"),
        ("-5", "5"),
        ("", "x"),
    ],
)
def test_different_values(one, other):
    assert judged(one, other) is None
    assert judged(other, one) is None


def test_both_are_kept_where_each_is_shorter_somewhere():
    assert judged("John S.", "J. Smith") is Keep.BOTH


@pytest.mark.parametrize(
    ("short", "word", "expected"), [("st", "street", True), ("jon", "john", False), ("road", "rd", False)]
)
def test_short_forms(short, word, expected):
    assert is_short_for(short, word) is expected
