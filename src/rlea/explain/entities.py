"""An entity by what people call it."""

from __future__ import annotations

import difflib

from rlea.agent.trace import RIVALS
from rlea.errors import InputError
from rlea.graph import KnowledgeGraph
from rlea.names import local_name

MOST_COMPARED = 20_000  # names that a mistyped one is compared with; of more, those with the same first letter


def find_entity(graph: KnowledgeGraph, text: str, side: str, other: KnowledgeGraph | None = None) -> int:
    """The id of an entity by its identifier, else by a name or local name that is its alone.

    `side` is "source" or "target", for the error; `other` is the other graph, where a swapped entity would stand.
    """
    found = called(graph, text)
    if len(found) == 1:
        return found[0]
    if found:
        some = ", ".join(graph.entities[number] for number in found[:RIVALS])
        more = "" if len(found) <= RIVALS else f" and {len(found) - RIVALS} more"
        problem = f"{len(found)} entities of the {side} graph are called {text!r}"
        raise InputError(problem, remedy=f"give the identifier: {some}{more}")
    if other is not None and called(other, text):
        remedy = f"it stands in the {'target' if side == 'source' else 'source'} graph, and SOURCE comes before TARGET"
    elif close := _close(graph, text):
        remedy = f"did you mean {' or '.join(close)}"
    else:
        example = f", such as {graph.entities[0]}" if graph.entities else ""
        remedy = f"give an identifier or a name of it{example}"
    raise InputError(f"the {side} graph has no entity {text!r}", remedy=remedy)


def called(graph: KnowledgeGraph, text: str) -> list[int]:
    """All entities that a text may mean."""
    for identifier in (text, text.removeprefix("<").removesuffix(">")):
        if identifier in graph.entity_index:
            return [graph.entity_index[identifier]]
    wanted = {text, local_name(text)} if text else set()
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
