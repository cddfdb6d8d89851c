"""An entity by what people call it."""

from __future__ import annotations

import difflib

from rlea.agent.trace import RIVALS
from rlea.errors import InputError
from rlea.graph import GraphPair, KnowledgeGraph
from rlea.graph.names import local_name

MOST_COMPARED = 20_000  # names that a mistyped one is compared with; of more, those with the same first letter


def find_entity(graph: KnowledgeGraph, text: str, side: str, other: KnowledgeGraph | None = None) -> int:
    """The id of an entity by its identifier, else by a name or local name that is its alone.

    `side` is "source" or "target", for the error; `other` is the other graph, where a swapped entity would stand.
    """
    for called in WAYS:
        if found := called(graph, text):
            return _the_one(graph, found, text, side)
    if other is not None and any(called(other, text) for called in WAYS):
        remedy = f"it stands in the {'target' if side == 'source' else 'source'} graph, and SOURCE comes before TARGET"
    else:
        remedy = _remedy(_close(graph, text), graph)
    raise InputError(f"the {side} graph has no entity {text!r}", remedy=remedy)


def find_in_either(pair: GraphPair, text: str) -> tuple[str, int]:
    """The side of an entity, and its id there. What both graphs call by one name is that of the source."""
    for called in WAYS:  # an identifier of one graph comes before a name in the other
        for side, graph in (("source", pair.source), ("target", pair.target)):
            if found := called(graph, text):
                return side, _the_one(graph, found, text, side)
    close = list(dict.fromkeys([*_close(pair.source, text), *_close(pair.target, text)]))
    raise InputError(f"neither graph has an entity {text!r}", remedy=_remedy(close, pair.source))


def _the_one(graph: KnowledgeGraph, found: list[int], text: str, side: str) -> int:
    if len(found) == 1:
        return found[0]
    some = ", ".join(graph.entities[number] for number in found[:RIVALS])
    more = "" if len(found) <= RIVALS else f" and {len(found) - RIVALS} more"
    problem = f"{len(found)} entities of the {side} graph are called {text!r}"
    raise InputError(problem, remedy=f"give the identifier: {some}{more}")


def _by_identifier(graph: KnowledgeGraph, text: str) -> list[int]:
    found = (graph.entity_index.get(form) for form in (text, text.removeprefix("<").removesuffix(">")))
    return [number for number in found if number is not None][:1]


def _by_name(graph: KnowledgeGraph, text: str) -> list[int]:
    """By name, and by local name: whoever types what stands in a file may mean either."""
    return [
        number
        for number, (identifier, name) in enumerate(zip(graph.entities, graph.names, strict=True))
        if text and text in (name, local_name(identifier))
    ]


def _by_spelling(graph: KnowledgeGraph, text: str) -> list[int]:
    """By a name as identifiers spell it (New_York%21); an address is no name."""
    return [] if "://" in text else _by_name(graph, local_name(text))


WAYS = (_by_identifier, _by_name, _by_spelling)  # the next where nobody is found


def _remedy(close: list[str], graph: KnowledgeGraph) -> str:
    if close:
        return f"did you mean {' or '.join(close)}"
    example = f", such as {graph.entities[0]}" if graph.entities else ""
    return f"give an identifier or a name of it{example}"


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
