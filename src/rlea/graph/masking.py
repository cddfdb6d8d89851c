"""Graphs without names, attributes or both, for models that must not look at them.

Entities keep their ids, and links theirs: links found in the masked graphs hold for the graphs as they are, whose
identifiers are written. What is hidden is removed, not marked, so that no channel can reach it by accident: the
fingerprints of the graphs change, and a checkpoint of the full graphs does not fit the masked ones.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlea.errors import InputError
from rlea.graph.knowledge_graph import GraphPair, KnowledgeGraph, Links, Literals
from rlea.graph.names import LABELS, SECOND_LABELS, choose_names, is_readable, local_name, plain
from rlea.graph.texts import Texts

NAMES, ATTRIBUTES = HIDEABLE = ("names", "attributes")
# An attribute of which one value in five says what its entity is called would give away the other four: they are
# often the same name in another language or spelling. Fewer values than LEAST_VALUES say nothing about an attribute.
NAMING_SHARE, LEAST_VALUES = 0.2, 5
# Names of attributes that hold names, also at the end of longer words (birthName, altLabel); the benchmarks' languages.
_NAMING = re.compile(r"(?:name|label|title|aliase?|nick|synonym|nom|nome|nombre|titre|titel|bezeichnung)s?$")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
_CODE = "urn:hidden:"


def hide(pair: GraphPair, what: str | Sequence[str]) -> GraphPair:
    """The pair as models may see it if `what` (names, attributes) is hidden; entities keep their ids.

    Hidden names: identifiers become numbers and names are empty. So that names are not found elsewhere, literals go
    that are labels or belong to attributes called name, title and so on; those of every attribute that often holds
    names, judged by the names of its entities and of their counterparts among the seeds; and any other that contains
    its entity's name or is a part of it. Hidden attributes: all literals go. A name that was a label is then the last
    part of the identifier; one that was given beside the triples stays. Relations and links are kept. Of the links
    only `pair.train` is read.
    """
    hidden = parse_hidden(what)
    source, target = pair.source, pair.target
    if ATTRIBUTES in hidden:
        source, target = _without_literals(source), _without_literals(target)
    if NAMES in hidden:
        total = source.num_entities + target.num_entities
        # No number is used twice: the first of both graphs must not look like a pair.
        codes = _codes(0, source.num_entities, total), _codes(source.num_entities, total, total)
        if (source.entities, target.entities) != codes:  # else the names are hidden already
            source_names, target_names = _known_names(source), _known_names(target)
            swapped = Links(pair.train.target_ids, pair.train.source_ids)
            source = _without_names(source, codes[0], source_names, _counterparts(target_names, pair.train))
            target = _without_names(target, codes[1], target_names, _counterparts(source_names, swapped))
    return replace(pair, source=source, target=target) if hidden else pair


def parse_hidden(what: str | Sequence[str]) -> tuple[str, ...]:
    """What is to be hidden, each once and in one order; text has commas between the words."""
    words = [word.strip() for word in what.split(",") if word.strip()] if isinstance(what, str) else list(what)
    for word in words:
        if word not in HIDEABLE:
            raise InputError(f"{word!r} cannot be hidden", remedy=f"use {' or '.join(HIDEABLE)}, or both with a comma")
    return tuple(word for word in HIDEABLE if word in words)


def describe_hidden(hidden: Sequence[str], info: Mapping[str, Any]) -> str:
    """What is hidden, in words, with the note that `check_vectors` left in the `info` of the vectors."""
    return " and ".join(hidden) + (f" ({info['hidden_note']})" if info.get("hidden_note") else "")


def _codes(first: int, stop: int, total: int) -> Texts:
    """Identifiers without meaning, sorted as their numbers are."""
    return Texts.of(f"{_CODE}{number:0{len(str(total))}d}" for number in range(first, stop))


def _without_literals(graph: KnowledgeGraph) -> KnowledgeGraph:
    none = graph.literals.take(np.zeros(0, dtype=np.intp))
    labels = choose_names(graph.entities, graph.attributes, graph.literals).names
    locals_ = choose_names(graph.entities, (), none).names
    names = (last if name == label else name for name, label, last in zip(graph.names, labels, locals_, strict=True))
    return replace(graph, attributes=(), literals=none, names=Texts.of(names))


@dataclass(frozen=True)
class _Text:
    """A name or a value in the forms that are compared."""

    plain: str  # without case, accents and punctuation; as it is where nothing would be left
    compact: str  # without blanks
    words: frozenset[str]  # those that can be read: a number in common is no name

    @staticmethod
    def of(text: str) -> _Text:
        found = plain(text) or text.strip().casefold()
        return _Text(found, found.replace(" ", ""), frozenset(filter(is_readable, found.split())))


def _known_names(graph: KnowledgeGraph) -> list[tuple[_Text, ...]]:
    """All known names of each entity: the chosen one, the last part of the identifier, labels."""
    known = [{name, local_name(identifier)} for name, identifier in zip(graph.names, graph.entities, strict=True)]
    for row in np.flatnonzero(_is_naming(graph)[graph.literals.attribute_ids]).tolist():
        known[graph.literals.entity_ids[row]].add(graph.literals.values[row])
    return [tuple(_Text.of(name) for name in sorted(names) if name.strip()) for names in known]


def _is_naming(graph: KnowledgeGraph) -> NDArray[np.bool_]:
    """Which attributes are called as attributes for names are; (num_attributes,)."""
    labels = {*LABELS, *SECOND_LABELS}
    found = [
        name in labels or any(map(_NAMING.search, plain(_HUMP.sub(" ", local_name(name))).split()))
        for name in graph.attributes
    ]
    return np.array(found, dtype=np.bool_)


def _counterparts(names: list[tuple[_Text, ...]], seeds: Links) -> dict[int, tuple[_Text, ...]]:
    """For the source entities of seeds, the readable names of their counterparts; `names` are those of the targets."""
    return {
        entity: tuple(name for name in names[partner] if name.words)
        for entity, partner in zip(seeds.source_ids.tolist(), seeds.target_ids.tolist(), strict=True)
    }


def _without_names(
    graph: KnowledgeGraph,
    codes: Texts,
    names: list[tuple[_Text, ...]],
    counterparts: Mapping[int, tuple[_Text, ...]],
) -> KnowledgeGraph:
    literals = graph.literals
    naming = _is_naming(graph)
    texts: dict[str, _Text] = {}  # values recur
    is_name = np.zeros(len(literals), dtype=np.bool_)
    can_tell = np.zeros(len(literals), dtype=np.bool_)  # an entity that is called Q42 everywhere says nothing
    for row, (entity, attribute, value) in enumerate(
        zip(literals.entity_ids.tolist(), literals.attribute_ids.tolist(), literals.values, strict=True)
    ):
        if naming[attribute]:
            continue
        text = texts.get(value)
        if text is None:
            text = texts[value] = _Text.of(value)
        known = (*names[entity], *counterparts.get(entity, ()))
        can_tell[row] = any(name.words for name in known)
        is_name[row] = any(_gives_away(name, text) for name in known)
    number = len(graph.attributes)
    hits = np.bincount(literals.attribute_ids, weights=is_name & can_tell, minlength=number)
    trials = np.bincount(literals.attribute_ids, weights=can_tell, minlength=number)
    naming |= (trials >= LEAST_VALUES) & (hits >= NAMING_SHARE * trials)
    kept = literals.take(np.flatnonzero(~is_name & ~naming[literals.attribute_ids]))
    used, attribute_ids = np.unique(kept.attribute_ids, return_inverse=True)
    return replace(
        graph,
        entities=codes,
        names=Texts.of([""] * len(codes)),
        attributes=tuple(graph.attributes[attribute] for attribute in used.tolist()),
        literals=Literals.of(kept.entity_ids, attribute_ids, kept.values, kept.datatypes, kept.languages),
    )


def _gives_away(name: _Text, value: _Text) -> bool:
    """Whether a value contains a name, is a part of it (a surname), or shares half of the words with it."""
    if not name.words:  # "Q42", "1984", "!!!": a piece of a longer number would be no name
        return f" {name.plain} " in f" {value.plain} "
    if name.compact in value.compact:
        return True
    if not value.words:
        return False
    if f" {value.plain} " in f" {name.plain} " or (not value.plain.isascii() and value.compact in name.compact):
        return True
    return 2 * len(name.words & value.words) >= len(name.words | value.words)
