"""What no model may look at: names, attributes or both are taken out of the graphs before anything is learnt.

Entities keep their ids, and links theirs: what a model finds in the graphs with something hidden holds for the graphs
as they are, whose identifiers are written. What is hidden is gone, not marked, so that no channel can reach it by
accident: the fingerprints of the graphs change, and with them what a checkpoint may be carried on by.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlea.errors import InputError
from rlea.graph import GraphPair, Ids, KnowledgeGraph, Links, Literals
from rlea.graph.names import LABELS, SECOND_LABELS, choose_names, is_readable, local_name
from rlea.graph.plain_names import plain

NAMES, ATTRIBUTES = "names", "attributes"
HIDEABLE = (NAMES, ATTRIBUTES)
# An attribute of which one value in five says what its entity is called would give away the other four: they are
# often the same name in another language or spelling. Fewer values than LEAST_VALUES tell nothing about an attribute.
NAMING_SHARE, LEAST_VALUES = 0.2, 5
# How attributes for names are called, also at the end of longer words (birthName, altLabel); the benchmarks' languages.
_NAMING = re.compile(r"(?:name|label|title|aliase?|nick|synonym|nom|nome|nombre|titre|titel|bezeichnung)s?$")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
_CODE = "urn:hidden:"


def hide(pair: GraphPair, what: str | Sequence[str]) -> GraphPair:
    """The pair as models may see it where `what` (names, attributes) is hidden; the ids of entities stay.

    Hidden names: identifiers become numbers, names are empty, and so that names are not found elsewhere these literals
    go: those of labels and of attributes called name, title and so on; of every attribute that often says names, by
    what its entities and their counterparts among the seeds are called; and whatever else has its entity's name in it
    or is a part of it. Hidden attributes: all literals go. A name that was a label's is then the last part of the
    identifier; one that was given beside the triples stays. Relations and links are kept. Only `pair.train` is read.
    """
    hidden = parse_hidden(what)
    source, target = pair.source, pair.target
    if ATTRIBUTES in hidden:
        source, target = _without_literals(source), _without_literals(target)
    if NAMES in hidden:
        total = source.num_entities + target.num_entities
        # No number is used twice: the first of both graphs must not look like a pair.
        codes = _codes(0, source.num_entities, total), _codes(source.num_entities, total, total)
        if (source.entities, target.entities) != codes:  # what is hidden already has no names to look for
            there, back = _known_names(source), _known_names(target)
            turned = Links(pair.train.target_ids, pair.train.source_ids)
            source, target = (
                _without_names(source, codes[0], there, _counterparts(back, pair.train)),
                _without_names(target, codes[1], back, _counterparts(there, turned)),
            )
    return replace(pair, source=source, target=target) if hidden else pair


def parse_hidden(what: str | Sequence[str]) -> tuple[str, ...]:
    """What is to be hidden, each once and in one order; text has commas between the words."""
    words = [word.strip() for word in what.split(",") if word.strip()] if isinstance(what, str) else list(what)
    for word in words:
        if word not in HIDEABLE:
            raise InputError(f"{word!r} cannot be hidden", remedy=f"use {' or '.join(HIDEABLE)}, or both with a comma")
    return tuple(word for word in HIDEABLE if word in words)


def describe_hidden(hidden: Sequence[str], info: Mapping[str, Any]) -> str:
    """What is hidden, in words; `info` is that of the vectors, which may come from where nobody knows."""
    return " and ".join(hidden) + (f" ({info['hidden_note']})" if info.get("hidden_note") else "")


def _codes(first: int, stop: int, total: int) -> tuple[str, ...]:
    """Identifiers that tell nothing, in the order of the numbers; their last part is no word."""
    return tuple(f"{_CODE}{number:0{len(str(total))}d}" for number in range(first, stop))


# ---- attributes -----------------------------------------------------------------------------------------------------


def _without_literals(graph: KnowledgeGraph) -> KnowledgeGraph:
    nothing = np.zeros(0, dtype=np.int32)
    gone = Literals(nothing, nothing, (), (), ())
    labelled = choose_names(graph.entities, graph.attributes, graph.literals, {})
    local = choose_names(graph.entities, (), gone, {})
    names = tuple(
        last if name == label else name for name, label, last in zip(graph.names, labelled, local, strict=True)
    )
    return replace(graph, attributes=(), literals=gone, names=names)


# ---- names ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Text:
    """A name or a value in the forms that are compared."""

    plain: str  # without case, marks and punctuation; as it is where nothing would be left
    compact: str  # without blanks
    words: frozenset[str]  # those that can be read: a number in common is no name

    @staticmethod
    def of(text: str) -> _Text:
        found = plain(text) or text.strip().casefold()
        return _Text(found, found.replace(" ", ""), frozenset(filter(is_readable, found.split())))


def _known_names(graph: KnowledgeGraph) -> list[tuple[_Text, ...]]:
    """All that is known to be a name of each entity: the chosen one, the last part of the identifier, labels."""
    known = [{name, local_name(identifier)} for name, identifier in zip(graph.names, graph.entities, strict=True)]
    for row in np.flatnonzero(_is_naming(graph)[graph.literals.attribute_ids]).tolist():
        known[graph.literals.entity_ids[row]].add(graph.literals.values[row])
    return [tuple(_Text.of(name) for name in sorted(names) if name.strip()) for names in known]


def _is_naming(graph: KnowledgeGraph) -> NDArray[np.bool_]:
    """Which attributes are called as attributes for names are; (num_attributes,)."""
    told = [
        name in LABELS
        or name in SECOND_LABELS
        or any(map(_NAMING.search, plain(_HUMP.sub(" ", local_name(name))).split()))
        for name in graph.attributes
    ]
    return np.array(told, dtype=np.bool_)


def _counterparts(names: list[tuple[_Text, ...]], seeds: Links) -> dict[int, tuple[_Text, ...]]:
    """For the entities of seeds, what their counterparts are called as far as it can be read; `names` are these."""
    return {
        entity: tuple(name for name in names[partner] if name.words)
        for entity, partner in zip(seeds.source_ids.tolist(), seeds.target_ids.tolist(), strict=True)
    }


def _without_names(
    graph: KnowledgeGraph,
    codes: tuple[str, ...],
    names: list[tuple[_Text, ...]],
    counterparts: Mapping[int, tuple[_Text, ...]],
) -> KnowledgeGraph:
    literals = graph.literals
    naming = _is_naming(graph)
    texts: dict[str, _Text] = {}  # values recur
    says = np.zeros(len(literals), dtype=np.bool_)
    can_tell = np.zeros(len(literals), dtype=np.bool_)  # an entity that is called Q42 everywhere tells nothing
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
        says[row] = any(_is_told(name, text) for name in known)
    number = len(graph.attributes)
    hits = np.bincount(literals.attribute_ids, weights=says & can_tell, minlength=number)
    trials = np.bincount(literals.attribute_ids, weights=can_tell, minlength=number)
    naming |= (trials >= LEAST_VALUES) & (hits >= NAMING_SHARE * trials)
    kept = np.flatnonzero(~says & ~naming[literals.attribute_ids])
    attributes, left = _renumbered(graph.attributes, literals, kept)
    return replace(graph, entities=codes, names=("",) * len(codes), attributes=attributes, literals=left)


def _is_told(name: _Text, value: _Text) -> bool:
    """Whether a value has a name in it, is a part of it (a surname), or has half of the words in common with it."""
    if not name.words:  # "Q42", "1984", "!!!": a piece of a longer number would be no name
        return f" {name.plain} " in f" {value.plain} "
    if name.compact in value.compact:
        return True
    if not value.words:
        return False
    if f" {value.plain} " in f" {name.plain} " or (not value.plain.isascii() and value.compact in name.compact):
        return True
    return 2 * len(name.words & value.words) >= len(name.words | value.words)


def _renumbered(
    attributes: tuple[str, ...], literals: Literals, kept: NDArray[np.intp]
) -> tuple[tuple[str, ...], Literals]:
    """The rows that are kept, and the attributes that these still have."""
    used, numbers = np.unique(literals.attribute_ids[kept], return_inverse=True)
    rows = kept.tolist()
    return tuple(attributes[number] for number in used.tolist()), Literals(
        _frozen(literals.entity_ids[kept]),
        _frozen(numbers),
        *(
            tuple(map(strings.__getitem__, rows))
            for strings in (literals.values, literals.datatypes, literals.languages)
        ),
    )


def _frozen(array: NDArray[Any]) -> Ids:
    """As in every graph: nobody can write to it."""
    result = array.astype(np.int32).reshape(-1)
    result.flags.writeable = False
    return result
