"""Identifiers as IRIs and back: RDF files can only hold IRIs, but keys such as `Deh_Bonyad` are identifiers too."""

from __future__ import annotations

import re
from urllib.parse import quote, unquote_to_bytes

PREFIX = "urn:rlea:"
# What N-Triples allows between angle brackets without escapes, and a scheme before it.
_ABSOLUTE_IRI = re.compile(r'[A-Za-z][A-Za-z0-9+.\-]*:[^\s\x00-\x20\x7f-\x9f<>"{}|^`\\\ud800-\udfff]*')


def to_iri(identifier: str) -> str:
    """The IRI that stands for an identifier: itself where it is one, else `urn:rlea:` and its percent-encoded text.

    >>> to_iri("http://dbpedia.org/resource/Berlin")
    'http://dbpedia.org/resource/Berlin'
    >>> to_iri("Deh_Bonyad (Iran)")
    'urn:rlea:Deh_Bonyad%20%28Iran%29'
    """
    # An identifier that already begins with our prefix is encoded once more, or it would be decoded on the way back.
    if _ABSOLUTE_IRI.fullmatch(identifier) and not identifier.startswith(PREFIX):
        return identifier
    return PREFIX + quote(identifier, safe="", errors="surrogatepass")


def is_blank(identifier: str) -> bool:
    """Whether an identifier is the label of a blank node, which names nothing outside its file.

    >>> is_blank("_:b0"), is_blank("http://example.org/_:b0")
    (True, False)
    """
    return identifier.startswith("_:")


def from_iri(iri: str) -> str:
    """The identifier an IRI stands for: `from_iri(to_iri(text)) == text` for every text that is not empty.

    >>> from_iri("urn:rlea:Deh_Bonyad%20%28Iran%29")
    'Deh_Bonyad (Iran)'
    """
    if not iri.startswith(PREFIX) or len(iri) == len(PREFIX):
        return iri
    try:
        return unquote_to_bytes(iri[len(PREFIX) :]).decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:  # not of our making
        return iri
