"""One readable name per entity: its label, else the last part of its identifier, else an attribute that holds names.

Where identifiers are codes (`1113c-aa`), an attribute that is called a name goes before them.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rlea.graph.name_attribute import BONUS, name_likeness, says_name
from rlea.graph.texts import Texts

if TYPE_CHECKING:
    from rlea.graph import KnowledgeGraph, Literals

# An attribute that is called a name holds names if so many nameless entities have it; another one if most do, and
# nearly all of its values differ, unlike descriptions.
LEAST_NAMED, MOSTLY_NAMED, UNIQUE = 0.02, 0.6, 0.9
FEWEST = 5  # values that can look like names; fewer do so by chance
FEW_NAMESAKES, SHARED = 20, 0.02  # entities called alike, and their share, up to which a name may be one
NAMED = "names of entities are taken from"  # how notes on names begin
MOST_TOLD = 3  # attributes in a note
NEARLY_ALL = 0.9  # of the entities with a name attribute, that have codes for identifiers; of those called `kind/name`
_W3 = "http://www.w3.org/"
# Labels proper come before the local name; the second group only helps where the local name is a code such as Q42:
# in Wikipedia-derived graphs foaf:name holds native and former names, and "Cinco_(film)" says more than "Cinco".
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
_KIND = re.compile(r"^[A-Za-z][\w.\-]*/(?=[^/\s]+$)")  # of `city/Basel`
_ANY_LETTER = re.compile(r"[^\W\d_]")
_DIGITS = re.compile(r"(?=\S*\d)\S+")  # one word with a digit in it
_PREFIX = re.compile(r"^[A-Za-z][\w.\-]*:(?=\S+$)")  # of a CURIE
# Identifiers that have two letters in a row and yet are no words: tt0133093, UUIDs and other hexadecimal numbers.
_CODES = re.compile(r"(?i)[a-z]{1,3}\d{5,}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?=[a-z]*\d)[0-9a-f]{16,}")
_OTHERS = re.compile(r"[\W_]+")  # all but letters and digits
_LETTERS = re.compile(r"[^\W\d_]{2}")
# Of scripts whose signs are syllables or words, one sign may be a name: kana, ideographs, Korean syllables.
_SIGNS = re.compile("[\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\U00020000-\U0003ffff]")
_SELECTORS = re.compile("[\u180b-\u180d\ufe00-\ufe0f\U000e0100-\U000e01ef]")  # how a sign is drawn


def local_name(identifier: str) -> str:
    """The last part of an identifier in readable form.

    >>> local_name("http://dbpedia.org/resource/Guns_a_Poppin%21"), local_name("ex:Basel")
    ('Guns a Poppin!', 'Basel')
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
        last = _PREFIX.sub("", stem)
    text = last or identifier
    return (unquote(text) if "%" in text else text).replace("_", " ").strip() or identifier


def is_readable(name: str) -> bool:
    """Two letters in a row, whatever vowel signs and accents they bear: a word, not a code such as Q42 or tt0133093."""
    if name.isascii() and _CODES.fullmatch(name):
        return False
    if _LETTERS.search(name) or _SIGNS.search(name):
        return True
    # Marks belong to a letter before them: accents, or the vowel signs of Indic scripts.
    letters = (letter for letter in name if not unicodedata.category(letter).startswith("M"))
    return not name.isascii() and _LETTERS.search("".join(letters)) is not None


def is_name(name: str, identifier: str) -> bool:
    """Whether an entity is called so: a label may lack letters ("1984"), but the last part of an identifier that does
    is a code."""
    return is_readable(name) or (name != "" and name != local_name(identifier))


def named(graph: KnowledgeGraph) -> list[str]:
    """The name of every entity, "" where it is only the code that its identifier ends in."""
    return [
        name if is_name(name, identifier) else "" for name, identifier in zip(graph.names, graph.entities, strict=True)
    ]


def is_opaque(name: str, identifier: str) -> bool:
    """Whether a name is nothing but the number that the identifier ends in, which means nothing in another graph."""
    return not _ANY_LETTER.search(name) and not is_name(name, identifier)


def _are_readable(names: Sequence[str]) -> NDArray[np.bool_]:
    """`is_readable` of every name, (num_names,)."""
    column = pl.Series(names, dtype=pl.String)
    # Of plain letters with a blank between: words, and no code.
    found = (
        column.str.contains("^[ -~]*$") & column.str.contains("[A-Za-z]{2}") & column.str.contains(" ", literal=True)
    )
    result = found.to_numpy().copy()
    for place in np.flatnonzero(~result).tolist():
        result[place] = is_readable(names[place])
    return result


def is_vowel_sign(character: str) -> bool:
    """Whether it is a mark that distinguishes words as letters do, unlike accents and selectors of glyphs."""
    is_spoken = unicodedata.category(character) in ("Mc", "Mn") and not unicodedata.combining(character)
    return is_spoken and not _SELECTORS.match(character)


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


@dataclass(frozen=True)
class Names:
    """The name of every entity, and what a user should know about where they are from."""

    names: Texts
    notes: tuple[str, ...] = ()


def choose_names(
    entities: Sequence[str], attributes: Sequence[str], literals: Literals, given: Sequence[str | None] = ()
) -> Names:
    """The name of every entity: given, labelled, local, in this order of trust.

    `given` is empty, or has a name or None for every entity. Among several labels the first by predicate, then language
    (none, English, the rest by code), then value wins, so that the choice does not hang on the order of lines in a
    file.
    """
    rank = {name: number for number, name in enumerate((*LABELS, *SECOND_LABELS))}
    wanted = {number: rank[name] for number, name in enumerate(attributes) if name in rank}
    preferences = {language: {"": 0, "en": 1}.get(language.lower(), 2) for language in literals.languages.levels}
    values, languages = literals.values, literals.languages

    def key(row: int) -> tuple[int, int, str, str]:
        return wanted[int(literals.attribute_ids[row])], preferences[languages[row]], languages[row], values[row]

    # Most literals of a large graph are no labels, so numpy passes over them; and most entities have one label, so
    # keys are made only where labels compete.
    rows = np.flatnonzero(np.isin(literals.attribute_ids, list(wanted)))
    best: dict[int, int] = {}  # entity id -> row of its best label
    for row, entity in zip(rows.tolist(), literals.entity_ids[rows].tolist(), strict=True):
        value = values[row]
        if not value or value.isspace():
            continue
        other = best.setdefault(entity, row)
        if other != row and key(row) < key(other):
            best[entity] = row
    names = _local_names(entities)
    for entity, row in best.items():
        # A label proper wins in any case.
        if wanted[int(literals.attribute_ids[row])] < len(LABELS) or not is_readable(names[entity]):
            names[entity] = values[row].strip()
    is_given = np.zeros(len(names), np.bool_)
    for entity, name in enumerate(given):
        if name is not None:
            names[entity], is_given[entity] = name, True
    return _named_by_looking(names, is_given, attributes, literals)


def names_by_attribute(graph: KnowledgeGraph, attribute: str) -> dict[str, str]:
    """Identifier -> name by an attribute that a user names, whole or by its last part; the first value of each entity.

    Empty if the graph has no such attribute.
    """
    wanted = {
        number
        for number, name in enumerate(graph.attributes)
        if name == attribute or local_name(name).lower() == attribute.lower()
    }
    exact = {number for number in wanted if graph.attributes[number] == attribute}
    own: dict[str, str] = {}
    for row in np.flatnonzero(np.isin(graph.literals.attribute_ids, sorted(exact or wanted))).tolist():
        value = graph.literals.values[row].strip()
        if value:
            entity = graph.entities[graph.literals.entity_ids[row]]
            own[entity] = min(value, own.get(entity, value))
    return own


def _local_names(entities: Sequence[str]) -> list[str]:
    """Local names; where many entities share one (`.../42#artist`), that of what stands before it.

    Where nearly all are called `kind/name`, the kind goes.
    """
    names = [local_name(identifier) for identifier in entities]
    if sum(1 for name in names if "/" in name and _KIND.match(name)) >= NEARLY_ALL * len(names):
        names = [_KIND.sub("", name) for name in names]
    counts = Counter(names)
    most = max(FEW_NAMESAKES, SHARED * len(names))
    return [
        local_name(identifier.rpartition("#")[0]) if "#" in identifier and counts[name] > most else name
        for identifier, name in zip(entities, names, strict=True)
    ]


def _named_by_looking(
    names: list[str], is_given: NDArray[np.bool_], attributes: Sequence[str], literals: Literals
) -> Names:
    """Names for entities that have none in words: by the attribute whose values look most like names, then the next.

    What many entities are called alike is the name of a kind and of none of them.
    """
    counts = Counter(names)
    most = max(FEW_NAMESAKES, SHARED * len(names))
    shared = {name for name, count in counts.items() if count > most}
    nameless = ~_are_readable(names)
    if shared:
        nameless |= np.array([name in shared for name in names], np.bool_)
    nameless |= _called_by_codes(names, nameless, attributes, literals)
    nameless &= ~is_given
    total = int(nameless.sum())
    rows = np.flatnonzero(nameless[literals.entity_ids]) if total else np.zeros(0, np.intp)
    by_attribute: dict[int, dict[int, str]] = {}  # attribute -> entity -> its first value
    for row in rows.tolist():
        value = literals.values[row].strip()
        if value:
            own = by_attribute.setdefault(int(literals.attribute_ids[row]), {})
            entity = int(literals.entity_ids[row])
            own[entity] = min(value, own.get(entity, value))
    scores = {}
    for attribute, own in by_attribute.items():
        share, likeness = len(own) / total, name_likeness(list(own.values()))
        is_named = says_name(attributes[attribute])
        if (
            (likeness > 0 and share >= LEAST_NAMED)
            if is_named
            else (likeness >= UNIQUE and share >= MOSTLY_NAMED and len(own) >= FEWEST)
        ):
            scores[attribute] = likeness * share + BONUS * is_named
    used: Counter[str] = Counter()
    for attribute in sorted(scores, key=lambda one: (-scores[one], one)):
        for entity, value in by_attribute[attribute].items():
            if nameless[entity]:
                names[entity], nameless[entity] = value, False
                used[attributes[attribute]] += 1
    told = ", ".join(f"{shorter(name)} ({number:,})" for name, number in used.most_common(MOST_TOLD))
    more = f" and {len(used) - MOST_TOLD} more" if len(used) > MOST_TOLD else ""
    note = f"{NAMED} {told}{more} (--name overrules this)"
    is_telling = used.total() >= max(FEWEST, LEAST_NAMED * len(names))
    return Names(Texts.of(names), (note,) if is_telling else ())


def shorter(attribute: str) -> str:
    """The last part of an identifier of an attribute, as it stands there."""
    return re.split(r"[/#]", attribute.rstrip("/#"))[-1] or attribute


def _called_by_codes(
    names: Sequence[str], nameless: NDArray[np.bool_], attributes: Sequence[str], literals: Literals
) -> NDArray[np.bool_]:
    """Entities with an attribute that is called a name, if nearly all of them have a code instead of a local name."""
    found = np.zeros(len(names), np.bool_)
    for attribute in (number for number, name in enumerate(attributes) if says_name(name)):
        own = np.unique(literals.entity_ids[literals.attribute_ids == attribute])
        codes = 0
        for entity, is_nameless in zip(own.tolist(), nameless[own].tolist(), strict=True):
            if is_nameless or (" " not in names[entity] and _DIGITS.fullmatch(names[entity])):
                codes += 1
        if codes >= NEARLY_ALL * len(own):
            found[own] = True  # a code may happen to be letters alone
    return found
