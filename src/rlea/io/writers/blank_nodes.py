"""Blank nodes by a path that finds them again, as their labels mean nothing outside the file or the run.

A path is in the notation of SPARQL: `<http://e/anna> <http://e/address>/<http://e/geo>` is the node that one comes to
from Anna by these two properties, and `SELECT ?x { <http://e/anna> <http://e/address>/<http://e/geo> ?x }` finds it. A
property that is followed backwards has a `^`. Where a path leads to several blank nodes, a statement about the one that
is meant follows in brackets: `[<http://e/city> "Wien"]`. Such a statement is also where a path begins if no IRI leads
to a node.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from rlea.graph import KnowledgeGraph
from rlea.graph.iri import is_blank

_RESOURCE = "http://www.w3.org/2000/01/rdf-schema#Resource"


Fact = tuple[str, str]  # property and value


def blank_paths(graph: KnowledgeGraph, ids: Iterable[int]) -> dict[int, str]:
    """Entity id -> path, for those of the entities that are blank nodes."""
    wanted = [number for number in ids if is_blank(graph.entities[number])]
    if not wanted:
        return {}
    blank = {number for number, name in enumerate(graph.entities) if is_blank(name)}
    steps: dict[int, set[tuple[int, str]]] = defaultdict(set)  # node -> where one comes from, and how
    beside: dict[int, set[int]] = defaultdict(set)  # node -> blank nodes that one comes to
    for head, relation, tail in graph.triples.tolist():
        name = f"<{graph.relations[relation]}>"
        for start, step, end in ((head, name, tail), (tail, f"^{name}", head)):
            if end in blank:
                steps[end].add((start, step))
                beside[start].add(end)
    said = _said(graph, blank)
    num_ends = Counter(step for options in steps.values() for step in options)
    num_saying = Counter(fact for facts in said.values() for fact in facts)
    facts = {node: min(said[node], key=lambda fact: (num_saying[fact], fact)) for node in said}

    # Breadth first, so that paths are short: from the IRIs, then from nodes that no IRI leads to.
    came_by: dict[int, tuple[int, str] | None] = {}
    next_nodes = {node for node in blank if any(start not in blank for start, _ in steps[node])}
    while len(came_by) < len(blank):
        found = {}
        for node in next_nodes:
            options = [(start, step) for start, step in steps[node] if start not in blank or start in came_by]
            # The fewest others at the end, and forwards rather than backwards; the rest is for the same path each time.
            found[node] = min(
                options, key=lambda one: (num_ends[one], one[1][0] == "^", one[1], graph.entities[one[0]])
            )
        if found:
            came_by |= found
        else:
            waiting = blank - came_by.keys()
            unique = {node for node in waiting if node in facts and num_saying[facts[node]] == 1}
            next_nodes = unique or waiting
            came_by |= dict.fromkeys(next_nodes)
        next_nodes = {end for node in next_nodes for end in beside[node]} - came_by.keys()

    def path_of(node: int) -> str:
        taken: list[str] = []
        place, is_shared = node, False
        while place in blank and (before := came_by[place]) is not None:
            place = before[0]
            taken.append(before[1])
            is_shared = is_shared or num_ends[before] > 1
        start = f"<{graph.entities[place]}>"
        if place in blank:
            start = "[{} {}]".format(*facts[place]) if place in facts else graph.entities[place]
        path = f"{start} {'/'.join(reversed(taken))}" if taken else start
        return path + (" [{} {}]".format(*facts[node]) if is_shared and node in facts else "")

    return {node: path_of(node) for node in wanted}


def _said(graph: KnowledgeGraph, blank: set[int]) -> dict[int, list[Fact]]:
    """The literals of blank nodes as (property, value), in the notation of SPARQL."""
    literals = graph.literals
    said: dict[int, list[Fact]] = defaultdict(list)
    for row, (entity, attribute) in enumerate(
        zip(literals.entity_ids.tolist(), literals.attribute_ids.tolist(), strict=True)
    ):
        if entity in blank:
            value, datatype, language = literals.values[row], literals.datatypes[row], literals.languages[row]
            text = value.replace("\\", "\\\\").replace('"', '\\"')
            kind = f"@{language}" if language else f"^^<{datatype}>" if datatype else ""
            term = f"<{value}>" if datatype == _RESOURCE else f'"{text}"{kind}'
            said[entity].append((f"<{graph.attributes[attribute]}>", term))
    return said
