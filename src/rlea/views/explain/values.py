"""Literals of two entities under attributes that correspond, side by side: what a run knew of attributes, in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rlea.evidence import ATTRIBUTES
from rlea.evidence.attributes.comparison import compare
from rlea.evidence.attributes.values import PLACE, ComparableValues, Side, read_values
from rlea.graph import GraphPair, Ids, KnowledgeGraph
from rlea.graph.names import local_name
from rlea.record import as_dict, as_list
from rlea.views.explain.answer import Attribute, Values
from rlea.views.explain.folder import read_heard
from rlea.views.report.learning import is_number

MOST = 100  # literals of an attribute that an entity is asked for; those that the other has, too, come first


@dataclass(frozen=True)
class Correspondence:
    """Two attributes that correspond, as the record of a run has them."""

    source: str
    target: str
    strength: float
    factor: float


def read_correspondences(record: dict[str, Any]) -> tuple[Correspondence, ...]:
    """What a run found out about attributes, the surest first; nothing where it did not listen to them."""
    rows = [
        as_dict(row)
        for channel in read_heard(record)
        if channel.get("channel") == ATTRIBUTES
        for row in as_list(channel.get("correspondences"))
    ]
    return tuple(
        Correspondence(str(row["source"]), str(row["target"]), float(row["strength"]), float(row["factor"]))
        for row in rows
        if {"source", "target"} <= row.keys() and all(is_number(row.get(name)) for name in ("strength", "factor"))
    )


class Comparison:
    """All literals that a run was shown, read as it read them."""

    def __init__(self, seen: GraphPair, correspondences: tuple[Correspondence, ...]) -> None:
        self.seen, self.correspondences = seen, correspondences
        self.told: ComparableValues = read_values(seen.source, seen.target)

    def of(self, source: int, target: int) -> tuple[Values, ...]:
        """For every literal of the source its most alike one of the target, the surest and most alike first.

        What cannot be compared, such as a date and a name, is left out.
        """
        told = self.told
        own = _literals(told.source, told.source_attributes, source)
        other = _literals(told.target, told.target_attributes, target)
        best: dict[int, Values] = {}
        for pair in self.correspondences:
            places, places_there = own.get(pair.source, []), other.get(pair.target, [])
            texts = {p: _shown(self.seen.source, told.source, told.source_rows, p) for p in places}
            texts_there = {q: _shown(self.seen.target, told.target, told.target_rows, q) for q in places_there}
            there_first = _first(texts_there, texts)
            for p in _first(texts, texts_there):
                for q in there_first:
                    alike = float(compare(told.source, told.target, told.texts, p, q, pair.factor, 1.0)[0])
                    if alike < 0:
                        continue
                    if p not in best or best[p].agreement * best[p].strength < alike * pair.strength:
                        here, there = (Attribute(name, local_name(name)) for name in (pair.source, pair.target))
                        best[p] = Values(here, there, texts[p], texts_there[q], alike, pair.strength)
        return tuple(sorted(best.values(), key=lambda found: (-found.agreement * found.strength, -found.strength)))


def _first(texts: dict[int, str], others: dict[int, str]) -> list[int]:
    """So many places that comparing them takes no time, those whose text the other side has before all else."""
    known = set(others.values())
    return sorted(texts, key=lambda place: texts[place] not in known)[:MOST]


def _literals(side: Side, attributes: tuple[str, ...], entity: int) -> dict[str, list[int]]:
    """Attribute -> the places of an entity's literals."""
    found: dict[str, list[int]] = {}
    for place in range(side.starts[entity], side.starts[entity + 1]):
        found.setdefault(attributes[side.attribute[place]], []).append(place)
    return found


def _shown(graph: KnowledgeGraph, side: Side, rows: Ids, place: int) -> str:
    """A literal as it stands in the graph; a place by both its coordinates, which may stand there apart."""
    if side.kind[place] == PLACE:
        return f"{side.low[place]:g}, {side.high[place]:g}"
    return graph.literals.values[int(rows[place])]
