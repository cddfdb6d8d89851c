"""Literals of two entities under attributes that correspond, side by side: what a run knew of attributes, in words."""

from __future__ import annotations

from typing import Any

import numpy as np

from rlea.explain.answer import Values
from rlea.fusion import ATTRIBUTES
from rlea.graph import GraphPair, KnowledgeGraph
from rlea.names import local_name

MOST_COMPARED = 200  # pairs of literals; whoever has more of them shows those of the surest attributes


def values_of(seen: GraphPair, record: dict[str, Any], source: int, target: int) -> tuple[Values, ...]:
    """For every literal of the source its most alike one of the target, the surest attributes and most alike first.

    `seen` is what the run was shown, and `record` its record; without attributes in it there is nothing to tell.
    """
    from rlea.attributes import compare_values

    own, other = _literals(seen.source, source), _literals(seen.target, target)
    best: dict[tuple[str, str], Values] = {}  # attribute and value of the source
    left = MOST_COMPARED
    for row in _correspondences(record):
        for value, *kind in own.get(row["source"], ()):
            for value_there, *kind_there in other.get(row["target"], ()):
                if left == 0:
                    break
                left -= 1
                alike = compare_values((value, *kind), (value_there, *kind_there), float(row["factor"]))
                key = row["source"], value
                if key not in best or best[key].agreement * best[key].strength < alike * row["strength"]:
                    names = local_name(row["source"]), local_name(row["target"])
                    best[key] = Values(*names, value, value_there, alike, float(row["strength"]))
    return tuple(sorted(best.values(), key=lambda found: (-found.agreement * found.strength, -found.strength)))


def _correspondences(record: dict[str, Any]) -> list[dict[str, Any]]:
    """The attributes that correspond, the surest first, as the record of a run with that channel has them."""
    heard = record.get("embedding_info", {}).get("heard", [])
    return [row for channel in heard if channel["channel"] == ATTRIBUTES for row in channel.get("correspondences", [])]


def _literals(graph: KnowledgeGraph, entity: int) -> dict[str, list[tuple[str, str, str]]]:
    """Attribute -> values with their datatypes and languages."""
    facts = graph.literals
    found: dict[str, list[tuple[str, str, str]]] = {}
    for row in np.flatnonzero(facts.entity_ids == entity).tolist():
        rows = found.setdefault(graph.attributes[facts.attribute_ids[row]], [])
        rows.append((facts.values[row], facts.datatypes[row], facts.languages[row]))
    return found
