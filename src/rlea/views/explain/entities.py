"""Find an entity by its identifier or name."""

from __future__ import annotations

import difflib

from rlea.agent.trace import RIVALS
from rlea.errors import InputError
from rlea.graph import GraphPair, KnowledgeGraph
from rlea.graph.names import local_name

MOST_COMPARED = 20_000  # names that a misspelt one is compared with; of more, only those with the same first letter


def find_entity(graph: KnowledgeGraph, text: str, side: str, other: KnowledgeGraph | None = None) -> int:
    """The id of an entity by its identifier, else by a name or local name that is unique in the graph.

    `side` ("source" or "target") and `other`, the other graph, are for the error message: the two may be swapped.
    """
    for lookup in LOOKUPS:
        if found := lookup(graph, text):
            return _only_one(graph, found, text, side)
    if other is not None and any(lookup(other, text) for lookup in LOOKUPS):
        remedy = f"it is in the {'target' if side == 'source' else 'source'} graph, and SOURCE comes before TARGET"
    else:
        remedy = _remedy(_close_names(graph, text), graph)
    raise InputError(f"the {side} graph has no entity {text!r}", remedy=remedy)


def find_in_either(pair: GraphPair, text: str) -> tuple[str, int]:
    """The side of an entity and its id there. A name that both graphs have means the source's entity."""
    for lookup in LOOKUPS:  # an identifier in one graph comes before a name in the other
        for side, graph in (("source", pair.source), ("target", pair.target)):
            if found := lookup(graph, text):
                return side, _only_one(graph, found, text, side)
    close = list(dict.fromkeys([*_close_names(pair.source, text), *_close_names(pair.target, text)]))
    is_table = pair.source.is_table and pair.target.is_table
    problem = f"neither table has a row {text!r}" if is_table else f"neither graph has an entity {text!r}"
    raise InputError(problem, remedy=_remedy(close, pair.source))


def _only_one(graph: KnowledgeGraph, found: list[int], text: str, side: str) -> int:
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
    """By name or local name: what is copied from a file may be either."""
    return [
        number
        for number, (identifier, name) in enumerate(zip(graph.entities, graph.names, strict=True))
        if text and text in (name, local_name(identifier))
    ]


def _by_spelling(graph: KnowledgeGraph, text: str) -> list[int]:
    """By a name as identifiers spell it (New_York%21); an unknown URL is not a name."""
    return [] if "://" in text else _by_name(graph, local_name(text))


LOOKUPS = (_by_identifier, _by_name, _by_spelling)  # tried in this order


def _remedy(close: list[str], graph: KnowledgeGraph) -> str:
    if close:
        return f"did you mean {' or '.join(close)}"
    example = f", such as {graph.entities[0]}" if graph.entities else ""
    return f"give an identifier or a name{example}"


def _close_names(graph: KnowledgeGraph, text: str) -> list[str]:
    """Names, or else identifiers, that are similar to the text."""
    wanted = text.casefold()
    for known in (graph.names, graph.entities):
        folded: dict[str, str] = {}
        for name in known:
            folded.setdefault(name.casefold(), name)
        names = list(folded)
        if len(names) > MOST_COMPARED:
            names = [name for name in names if name[:1] == wanted[:1]][:MOST_COMPARED]
        if close := difflib.get_close_matches(wanted, names, n=3, cutoff=0.7):
            return [folded[name] for name in close]
    return []
