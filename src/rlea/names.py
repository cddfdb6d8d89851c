"""One readable name per entity: its label, else the last part of its identifier."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import unquote

import numpy as np

if TYPE_CHECKING:
    from rlea.graph import Literals

_W3 = "http://www.w3.org/"
# Labels proper come before the local name; the second group only helps where the local name is a code such as Q42:
# in Wikipedia-derived graphs foaf:name holds native and former names, and "Cinco_(film)" tells more than "Cinco".
LABELS = (
    _W3 + "2000/01/rdf-schema#label",
    _W3 + "2004/02/skos/core#prefLabel",
    "http://schema.org/name",
    "https://schema.org/name",
)
SECOND_LABELS = (
    "http://xmlns.com/foaf/0.1/name",
    "http://purl.org/dc/terms/title",
    "http://purl.org/dc/elements/1.1/title",
    _W3 + "2004/02/skos/core#altLabel",
)
_LETTERS = re.compile(r"[^\W\d_]{2}")


def local_name(identifier: str) -> str:
    """The last part of an identifier in readable form.

    >>> local_name("http://dbpedia.org/resource/Guns_a_Poppin%21")
    'Guns a Poppin!'
    """
    stem = identifier.rstrip("/#")
    # DBpedia keeps slashes inside names ("/resource/AC/DC"), so its prefix goes first.
    if "/resource/" in stem:
        last = stem.split("/resource/", 1)[1]
    elif "://" in stem:
        last = stem[max(stem.rfind("/"), stem.rfind("#")) + 1 :]
    elif stem.startswith("urn:"):
        last = stem.rsplit(":", 1)[-1]
    else:
        last = stem
    return unquote(last or identifier).replace("_", " ").strip() or identifier


def is_readable(name: str) -> bool:
    """Two letters in a row: a word, not a code such as Q42 or 0013159."""
    return _LETTERS.search(name) is not None


def choose_names(
    entities: Sequence[str], attributes: Sequence[str], literals: Literals, given: Mapping[str, str]
) -> tuple[str, ...]:
    """The name of every entity: given, labelled, local, in this order of trust.

    Among several labels the first by predicate, then language (none, English, the rest by code), then value wins, so
    that the choice does not hang on the order of lines in a file.
    """
    rank = {name: number for number, name in enumerate((*LABELS, *SECOND_LABELS))}
    wanted = {number: rank[name] for number, name in enumerate(attributes) if name in rank}
    preferences: dict[str, int] = {}
    best: dict[int, tuple[int, int, str, str]] = {}
    # Most literals of a large graph are no labels, so numpy passes over them.
    rows = np.flatnonzero(np.isin(literals.attribute_ids, list(wanted)))
    attribute_ids = literals.attribute_ids[rows].tolist()
    entity_ids = literals.entity_ids[rows].tolist()
    for row, attribute, entity in zip(rows.tolist(), attribute_ids, entity_ids, strict=True):
        value = literals.values[row]
        if not value or value.isspace():
            continue
        language = literals.languages[row]
        preference = preferences.get(language)
        if preference is None:
            preference = preferences[language] = {"": 0, "en": 1}.get(language.lower(), 2)
        key = (wanted[attribute], preference, language, value)
        if entity not in best or key < best[entity]:
            best[entity] = key
    names = []
    for number, identifier in enumerate(entities):
        name = given.get(identifier)
        if name is None:
            label = best.get(number)
            # A label proper wins in any case, so the local name is looked for only where it counts.
            name = local_name(identifier) if label is None or label[0] >= len(LABELS) else ""
            if label is not None and not is_readable(name):
                name = label[3].strip()
        names.append(name)
    return tuple(names)
