"""Literals of two entities side by side, for attributes that correspond according to the run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rlea.evidence import ATTRIBUTES
from rlea.evidence.attributes.comparison import compare
from rlea.evidence.attributes.values import PLACE, Side, read_values
from rlea.graph import GraphPair, Ids, KnowledgeGraph
from rlea.graph.names import local_name
from rlea.record import as_rows, is_number
from rlea.views.explain.answer import Term, Values
from rlea.views.explain.folder import read_channels

MOST = 100  # literals per attribute and entity that are compared; values that both sides have come first


@dataclass(frozen=True)
class Correspondence:
    """Two corresponding attributes, as recorded by a run."""

    source: str
    target: str
    strength: float
    factor: float  # between numbers in different units


def read_correspondences(record: dict[str, Any]) -> tuple[Correspondence, ...]:
    """The corresponding attributes in a record, the strongest first; none if the run did not use attributes."""
    return tuple(
        Correspondence(str(row["source"]), str(row["target"]), float(row["strength"]), float(row["factor"]))
        for channel in read_channels(record)
        if channel.get("channel") == ATTRIBUTES
        for row in as_rows(channel.get("correspondences"))
        if {"source", "target"} <= row.keys() and all(is_number(row.get(name)) for name in ("strength", "factor"))
    )


class Comparison:
    """All literals that a run saw, parsed as the run parsed them."""

    def __init__(self, seen: GraphPair, correspondences: tuple[Correspondence, ...]) -> None:
        self.seen, self.correspondences = seen, correspondences
        self.parsed = read_values(seen.source, seen.target)

    def of(self, source: int, target: int) -> tuple[Values, ...]:
        """Every literal of the source with the most similar one of the target, strongest agreement first.

        Values that cannot be compared, such as a date and a name, are left out.
        """
        parsed = self.parsed
        own = _texts(self.seen.source, parsed.source, parsed.source_attributes, parsed.source_rows, source)
        other = _texts(self.seen.target, parsed.target, parsed.target_attributes, parsed.target_rows, target)
        best: dict[int, Values] = {}
        for pair in self.correspondences:
            texts, others = own.get(pair.source, {}), other.get(pair.target, {})
            chosen = _first(others, texts)
            for p in _first(texts, others):
                for q in chosen:
                    alike = float(compare(parsed.source, parsed.target, parsed.texts, p, q, pair.factor, 1.0)[0])
                    if alike < 0:
                        continue
                    if p not in best or best[p].agreement * best[p].strength < alike * pair.strength:
                        here, there = (Term(name, local_name(name)) for name in (pair.source, pair.target))
                        best[p] = Values(here, there, texts[p], others[q], alike, pair.strength)
        return tuple(sorted(best.values(), key=lambda found: (-found.agreement * found.strength, -found.strength)))


def _first(texts: dict[int, str], others: dict[int, str]) -> list[int]:
    """At most `MOST` places, those whose text the other side has first."""
    known = set(others.values())
    return sorted(texts, key=lambda place: texts[place] not in known)[:MOST]


def _texts(
    graph: KnowledgeGraph, side: Side, attributes: tuple[str, ...], rows: Ids, entity: int
) -> dict[str, dict[int, str]]:
    """Attribute -> {place of a literal of the entity: its text}; a geographic place as both its coordinates."""
    found: dict[str, dict[int, str]] = {}
    for place in range(side.starts[entity], side.starts[entity + 1]):
        is_place = side.kind[place] == PLACE
        text = f"{side.low[place]:g}, {side.high[place]:g}" if is_place else graph.literals.values[int(rows[place])]
        found.setdefault(attributes[side.attribute[place]], {})[place] = text
    return found
