"""Literals as files have them: `"1990"^^<...#date>`, `"Wien"@de` or bare text."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import polars as pl

XSD_STRING = "http://www.w3.org/2001/XMLSchema#string"
LANG_STRING = "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString"

# In the published files some values lost their opening quote but kept the language, so the quote is optional there.
_TAGGED = (
    r'(?s)^"?(?P<value>.*)"(?:\^\^<?(?P<datatype>[^<>"\s]+)>?|@(?P<language>[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*))$'
)
# `"Foo" and "Bar"` is bare text with quotes in it, not the quoted value `Foo" and "Bar`.
_QUOTED = r'(?s)^"((?:[^"\\]|\\.)*)"$'
CODE_POINT = (  # the escapes of N-Triples for any character; see `code_point`
    r"\\u(?P<high>[dD][89abAB][0-9A-Fa-f]{2})\\u(?P<low>[dD][c-fC-F][0-9A-Fa-f]{2})"
    r"|\\u(?P<short>[0-9A-Fa-f]{4})|\\U(?P<long>[0-9A-Fa-f]{8})"
)
_ESCAPE = re.compile(CODE_POINT + r"|\\(?P<char>[\"\\])|\\\Z")


def normalised(literals: pl.DataFrame) -> pl.DataFrame:
    """Languages in lower case and no datatype on plain text, so that a literal is the same in every file format."""
    implied = dict.fromkeys((XSD_STRING, LANG_STRING), "")
    return literals.with_columns(
        _changed(literals["datatype"], lambda texts: texts.replace(implied)),
        _changed(literals["language"], lambda texts: texts.str.to_lowercase()),
    )


def _changed(column: pl.Series, change: Callable[[pl.Series], pl.Series]) -> pl.Series:
    """A column with every text changed; of categories each once."""
    if not isinstance(column.dtype, pl.Categorical):
        return change(column)
    distinct = column.unique()
    texts = distinct.cast(pl.String)
    changed = change(texts)
    if (changed == texts).all():
        return column
    codes = distinct.to_physical().to_numpy()
    place = np.zeros(int(codes.max()) + 1, np.int64)
    place[codes] = np.arange(len(codes))
    return changed.cast(column.dtype).gather(place[column.to_physical().to_numpy()]).rename(column.name)


def split_literals(values: pl.Series) -> pl.DataFrame:
    """Literals in the notation of N-Triples, or bare, as the columns value, datatype and language.

    A value in quotes loses them; escaped quotes, backslashes and code points (`\\u00E9`) are decoded in every value,
    because files made from N-Triples dumps keep them after the quotes are gone.
    """
    tagged = values.str.extract_groups(_TAGGED).struct.unnest()
    quoted = values.str.extract(_QUOTED, 1)
    value = pl.coalesce(pl.lit(tagged["value"]), pl.lit(quoted), pl.lit(values))
    frame = pl.select(
        value.alias("value"),
        pl.lit(tagged["datatype"]).fill_null("").alias("datatype"),
        pl.lit(tagged["language"]).fill_null("").alias("language"),
    )
    escaped = frame["value"].str.contains("\\", literal=True)
    if escaped.any():
        decoded = [
            unescape(text) if has_escape else text
            for text, has_escape in zip(frame["value"].to_list(), escaped.to_list(), strict=True)
        ]
        frame = frame.with_columns(pl.Series("value", decoded, dtype=pl.String))
    return normalised(frame)


def unescape(text: str) -> str:
    r"""Decode the escapes of N-Triples that name a character, a quote or a backslash; leave other backslashes alone.

    >>> unescape(r'\"Caf\u00E9\"')
    '"Café"'
    """
    return _ESCAPE.sub(_decode, text)


def _decode(match: re.Match[str]) -> str:
    if match["char"]:
        return match["char"]
    if match[0] == "\\":
        # A backslash at the very end is what stripping the quotes left of an escaped quote.
        return '"'
    character = code_point(match)
    # A zero byte could not be written to every file format.
    return match[0] if character is None or character == "\x00" else character


def code_point(match: re.Match[str]) -> str | None:
    """The character of a match of CODE_POINT, None where there is no such character."""
    if match["high"]:
        return bytes.fromhex(match["high"] + match["low"]).decode("utf-16-be")
    number = int(match["short"] or match["long"], 16)
    return None if 0xD800 <= number < 0xE000 or number > 0x10FFFF else chr(number)
