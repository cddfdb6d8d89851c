"""Which attribute holds what people call an entity, found by looking at its values.

A name is nearly unique, in words, and short. A label such as `title` or `fullName` speaks for an attribute, and decides
between two that look alike; where it is missing or in a foreign language, the values decide.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

# Words in the name of an attribute or column that say that it holds names; then those that say whose.
NAME_WORDS = {
    *("name", "names", "title", "label", "caption", "headline", "fn", "fullname", "preflabel", "displayname"),
    *("bezeichnung", "titel", "nom", "nombre", "titulo", "titre", "nome", "navn", "namn", "naam", "nazwa", "nimi"),
}
OF_OTHERS = {
    *("user", "file", "host", "domain", "brand", "maker", "manufacturer", "vendor", "venue", "author", "authors"),
    *("street", "city", "country", "state", "county", "nick", "first", "last", "middle", "given", "family", "sur"),
    *("surname", "forename", "vorname", "nachname", "job", "short", "alternate", "former"),
}
SHORTEST, LONGEST = 2.0, 100.0  # mean number of characters of a name
LEAST_WORDED, LEAST_DISTINCT = 0.8, 0.5  # shares of the values that are in words, and that differ
BONUS = 0.5  # of an attribute that is called a name
_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_WORDED = re.compile(r"[^\W\d_]{2}")
_LETTER = re.compile(r"[^\W\d_]")
_CODE = re.compile(r"(?=\S*\d)\S+")  # KXTS108W: one word with a digit in it


def says_name(attribute: str) -> bool:
    """Whether an attribute is called a name or the like, and not that of something else.

    >>> [says_name(text) for text in ("fullName", "product_title", "vcard:fn", "userName", "price")]
    [True, True, True, False, False]
    """
    last = re.split(r"[/#:]", attribute)[-1]
    words = {part.lower() for part in _PARTS.findall(last)} | {last.lower()}
    return bool(words & NAME_WORDS) and not words & OF_OTHERS


def name_likeness(values: Sequence[str]) -> float:
    """How far values look like names, from 0 to 1: in words, different from each other, neither letters nor essays."""
    if not values:
        return 0.0
    worded = sum(1 for value in values if _is_worded(value)) / len(values)
    distinct = len(set(values)) / len(values)
    length = sum(map(len, values)) / len(values)
    if worded < LEAST_WORDED or distinct < LEAST_DISTINCT or not SHORTEST <= length <= LONGEST:
        return 0.0
    return worded * distinct


def _is_worded(value: str) -> bool:
    """Two letters in a row, and at least as many letters as digits and signs: no e-mail, phone number or code."""
    if not _WORDED.search(value) or "@" in value or "://" in value or _CODE.fullmatch(value.strip()):
        return False
    letters = len(_LETTER.findall(value))
    return 2 * letters >= len(value.replace(" ", ""))
