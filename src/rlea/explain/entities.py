"""An entity by what people call it."""

from __future__ import annotations

import difflib

from rlea.agent.trace import RIVALS
from rlea.errors import InputError
from rlea.graph import GraphPair, KnowledgeGraph
from rlea.names import local_name

MOST_COMPARED = 20_000  # names that a mistyped one is compared with; of more, those with the same first letter


def find_entity(graph: KnowledgeGraph, text: str, side: str, other: KnowledgeGraph | None = None) -> int:
    """The id of an entity by its identifier, else by a name or local name that is its alone.

    `side` is "source" or "target", for the error; `other` is the other graph, where a swapped entity would stand.
    """
    found = _called(graph, text, other)
    if len(found) == 1:
        return found[0]
    if found:
        some = ", ".join(graph.entities[number] for number in found[:RIVALS])
        more = "" if len(found) <= RIVALS else f" and {len(found) - RIVALS} more"
        problem = f"{len(found)} entities of the {side} graph are called {text!r}"
        raise InputError(problem, remedy=f"give the identifier: {some}{more}")
    if other is not None and _called(other, text, graph):
        remedy = f"it stands in the {'target' if side == 'source' else 'source'} graph, and SOURCE comes before TARGET"
    else:
        remedy = _remedy(_close(graph, text), graph)
    raise InputError(f"the {side} graph has no entity {text!r}", remedy=remedy)


def find_in_either(pair: GraphPair, text: str) -> tuple[str, int]:
    """The side of an entity, and its id there. What both graphs have under one name is that of the source."""
    sides = {"source": (pair.source, pair.target), "target": (pair.target, pair.source)}
    for side, (graph, other) in sides.items():
        if _called(graph, text, other):
            return side, find_entity(graph, text, side, other)
    close = list(dict.fromkeys([*_close(pair.source, text), *_close(pair.target, text)]))
    raise InputError(f"neither graph has an entity {text!r}", remedy=_remedy(close, pair.source))


def _remedy(close: list[str], graph: KnowledgeGraph) -> str:
    if close:
        return f"did you mean {' or '.join(close)}"
    example = f", such as {graph.entities[0]}" if graph.entities else ""
    return f"give an identifier or a name of it{example}"


def _called(graph: KnowledgeGraph, text: str, other: KnowledgeGraph | None) -> list[int]:
    """All entities that a text may mean; nobody's name is an identifier of the other graph."""
    written = text, text.removeprefix("<").removesuffix(">")
    for identifier in written:
        if identifier in graph.entity_index:
            return [graph.entity_index[identifier]]
    if not text or (other is not None and any(identifier in other.entity_index for identifier in written)):
        return []
    wanted = {text} if "://" in text else {text, local_name(text)}
    return [
        number
        for number, (identifier, name) in enumerate(zip(graph.entities, graph.names, strict=True))
        if name in wanted or local_name(identifier) in wanted
    ]


def _close(graph: KnowledgeGraph, text: str) -> list[str]:
    """Names, or else identifiers, that are nearly the text."""
    for known in (graph.names, graph.entities):
        folded: dict[str, str] = {}
        for name in known:
            folded.setdefault(name.casefold(), name)
        wanted = text.casefold()
        names = list(folded)
        if len(names) > MOST_COMPARED:
            names = [name for name in names if name[:1] == wanted[:1]][:MOST_COMPARED]
        close = difflib.get_close_matches(wanted, names, n=3, cutoff=0.7)
        if close:
            return [folded[name] for name in close]
    return []
