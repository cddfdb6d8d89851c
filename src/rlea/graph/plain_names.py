"""Names in the form in which they are compared: without case, accents and punctuation."""

from __future__ import annotations

import re
import unicodedata

from rlea.graph.names import is_vowel_sign

_OTHERS = re.compile(r"[\W_]+")  # all but letters and digits


def plain(name: str) -> str:
    """A name without case, accents and punctuation, so that "Île-de-France" meets "ile de france".

    Vowel signs of Indic and like scripts stay: without them many words would be the same.
    """
    if name.isascii():
        return _OTHERS.sub(" ", name.lower()).strip()
    decomposed = unicodedata.normalize("NFKD", name).casefold()
    return " ".join(decomposed.translate(spelling(decomposed)).split())


def spelling(text: str) -> dict[int, str | None]:
    """What becomes of the characters of a decomposed text, for `str.translate`: accents go, punctuation is a blank."""
    characters = set(text)
    others = (one for one in characters if _OTHERS.match(one) and not is_vowel_sign(one))
    return {ord(one): None if unicodedata.combining(one) else " " for one in others}
