"""Graphs with planted duplicates, and pairs whose targets are split: the answer is known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from rlea.graph import LITERAL_COLUMNS, GraphPair, Ids, KnowledgeGraph, Links

SIZES = (2, 3, 4, 5)  # of planted clusters
FIELDS_OF_A_CHANGE, MOST_CHANGES = 2, 3  # a copy is changed once to three times, at most once for every two fields ...
KINDS, CHANCES = ("typo", "missing", "swapped"), (0.6, 0.25, 0.15)  # ... of one field, or of two that are exchanged
KEPT_EDGES = 0.7  # share of the edges that a copy has
LETTERS = "abcdefghijklmnopqrstuvwxyz"

Row = tuple[str, str, str, str, str]  # entity, attribute, value, datatype, language


def plant_duplicates(graph: KnowledgeGraph, share: float, seed: int = 0) -> tuple[KnowledgeGraph, list[list[str]]]:
    """The graph with copies of a share of its entities, and the clusters of two to five that they make.

    A copy has one to three changes, fewer if it is short: a typo, a field that is missing, two fields exchanged. Its
    name is a field that is never missing. It has most edges of its original, to some entity of the neighbour's cluster.
    Its identifier says nothing.
    """
    random = np.random.default_rng([seed, round(1000 * share), graph.num_entities])
    chosen = random.permutation(graph.num_entities)[: round(share * graph.num_entities)]
    copies = {
        int(one): [f"copy/{number:06d}/{place}" for place in range(SIZES[number % len(SIZES)] - 1)]
        for number, one in enumerate(random.permutation(chosen).tolist())
    }
    literals, names = _rows_of(graph), dict(zip(graph.entities, graph.names, strict=True))
    by_entity: dict[str, list[Row]] = {}
    for row in literals:
        by_entity.setdefault(row[0], []).append(row)
    edges = [(graph.entities[h], graph.relations[r], graph.entities[t]) for h, r, t in graph.triples.tolist()]
    clusters = {graph.entities[one]: [graph.entities[one], *own] for one, own in copies.items()}
    for original, members in clusters.items():
        for copy in members[1:]:
            own, name = _corrupt(by_entity.get(original, []), names[original], random)
            literals += [(copy, *row[1:]) for row in own]
            names[copy] = name
    more = []
    for head, relation, tail in edges:
        for place, end in ((0, head), (2, tail)):
            for copy in clusters.get(end, [end])[1:]:
                if random.random() < KEPT_EDGES:
                    other = clusters.get(tail if place == 0 else head, [tail if place == 0 else head])
                    neighbour = other[int(random.integers(len(other)))]
                    more.append((copy, relation, neighbour) if place == 0 else (neighbour, relation, copy))
    return _build(edges + more, literals, names), list(clusters.values())


def make_view(graph: KnowledgeGraph, share: float, view: int) -> tuple[KnowledgeGraph, Ids]:
    """Another graph about a share of the same entities, and which entity each of its own is.

    Entities are changed as duplicates are, edges are lost, identifiers say nothing.
    """
    random = np.random.default_rng([view, round(1000 * share), graph.num_entities])
    chosen = random.permutation(graph.num_entities)[: round(share * graph.num_entities)]
    called = {graph.entities[one]: f"view{view}/{number:06d}" for number, one in enumerate(chosen.tolist())}
    by_entity: dict[str, list[Row]] = {}
    for row in _rows_of(graph):
        by_entity.setdefault(row[0], []).append(row)
    literals, names = list[Row](), dict[str, str]()
    for one in chosen.tolist():
        entity = graph.entities[one]
        own, names[called[entity]] = _corrupt(by_entity.get(entity, []), graph.names[one], random)
        literals += [(called[entity], *row[1:]) for row in own]
    edges = []
    for h, r, t in graph.triples.tolist():
        ends = called.get(graph.entities[h]), called.get(graph.entities[t])
        if ends[0] is not None and ends[1] is not None and random.random() < KEPT_EDGES:
            edges.append((ends[0], graph.relations[r], ends[1]))
    made = _build(edges, literals, names)
    index = dict(zip(called.values(), chosen.tolist(), strict=True))
    return made, np.array([index[identifier] for identifier in made.entities], np.int32)


def split_targets(pair: GraphPair, links: Links, share: float, seed: int = 0) -> tuple[GraphPair, Links]:
    """The pair with a share of its linked targets split in two, and the links: both halves are the source's.

    Every literal and edge goes to one half, or (half of them) to both. The second half has an identifier that says
    nothing, and the name. Seeds are left out, and so are links of entities that `links` does not have.
    """
    random = np.random.default_rng([seed, round(1000 * share), len(links)])
    graph = pair.target
    chosen = np.sort(random.permutation(len(links))[: round(share * len(links))])
    halves = {graph.entities[one]: f"half/{number:06d}" for number, one in enumerate(links.target_ids[chosen].tolist())}

    def ends(entity: str) -> list[str]:
        if entity not in halves:
            return [entity]
        both = [entity, halves[entity]]
        return both if random.random() < 0.5 else [both[int(random.integers(2))]]

    literals = [(end, *row[1:]) for row in _rows_of(graph) for end in ends(row[0])]
    edges = [
        (head, graph.relations[r], tail)
        for h, r, t in graph.triples.tolist()
        for head in ends(graph.entities[h])
        for tail in ends(graph.entities[t])
    ]
    names = dict(zip(graph.entities, graph.names, strict=True))
    names |= {half: names[entity] for entity, half in halves.items()}
    target = _build(edges, literals, names)
    known = [(s, graph.entities[t]) for s, t in zip(links.source_ids.tolist(), links.target_ids.tolist(), strict=True)]
    known += [(s, halves[t]) for s, t in known if t in halves]
    known.sort()
    gold = Links.of([s for s, _ in known], [target.entity_index[t] for _, t in known])
    return GraphPair(f"{pair.name} split", pair.source, target), gold


def _rows_of(graph: KnowledgeGraph) -> list[Row]:
    facts = graph.literals
    return [
        (graph.entities[entity], graph.attributes[attribute], value, datatype, language)
        for entity, attribute, value, datatype, language in zip(
            facts.entity_ids.tolist(),
            facts.attribute_ids.tolist(),
            facts.values,
            facts.datatypes,
            facts.languages,
            strict=True,
        )
    ]


def _build(edges: Sequence[tuple[str, str, str]], literals: Sequence[Row], names: dict[str, str]) -> KnowledgeGraph:
    triples = pl.DataFrame(edges, schema=dict.fromkeys(("head", "relation", "tail"), pl.String), orient="row")
    rows = pl.DataFrame(literals, schema=dict.fromkeys(LITERAL_COLUMNS, pl.String), orient="row")
    return KnowledgeGraph.build(triples, rows, names=names, entities=list(names))


def _corrupt(rows: Sequence[Row], name: str, random: np.random.Generator) -> tuple[list[Row], str]:
    """The literals and the name of a copy, changed. A literal that is the name changes with it."""
    fields = [("", "", name, "", ""), *(row for row in rows if row[2] != name)] if name else list(rows)
    most = min(max(1, len(fields) // FIELDS_OF_A_CHANGE), MOST_CHANGES)
    for _ in range(int(random.integers(1, most + 1))):
        if not fields:
            break
        kind, place = KINDS[int(random.choice(len(KINDS), p=CHANCES))], int(random.integers(len(fields)))
        if kind == "typo":
            fields[place] = (*fields[place][:2], _misspell(fields[place][2], random), *fields[place][3:])
        elif kind == "missing" and fields[place][1]:  # never the name: next to nothing would be left of a short record
            del fields[place]
        elif kind == "swapped":
            other = int(random.integers(len(fields)))
            one, two = fields[place], fields[other]
            fields[place], fields[other] = (*one[:2], *two[2:]), (*two[:2], *one[2:])
    called = next((row[2] for row in fields if not row[1]), "")
    labels = [(*row[:2], called, *row[3:]) for row in rows if row[2] == name and called]
    return [*(row for row in fields if row[1]), *labels], called


def _misspell(text: str, random: np.random.Generator) -> str:
    """A letter exchanged with the next, left out, added or replaced."""
    place, letter = int(random.integers(max(1, len(text)))), LETTERS[int(random.integers(len(LETTERS)))]
    kind = int(random.integers(4))
    if kind == 0:
        return text[:place] + text[place + 1 : place + 2] + text[place : place + 1] + text[place + 2 :]
    if kind == 1 and len(text) > 1:
        return text[:place] + text[place + 1 :]
    return text[:place] + letter + text[place + (kind == 3) :]
