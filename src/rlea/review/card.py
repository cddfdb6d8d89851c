"""All that is shown of a pair, as plain data for a page: text only, nothing of it is markup."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rlea.graph import KnowledgeGraph
from rlea.graph.names import local_name
from rlea.review.compare import aligned_values, marked, some_facts
from rlea.serve.facts import Facts
from rlea.views.explain import Explanation, Run
from rlea.views.explain.answer import Contradiction, Relation, Term

MOST_ROWS = 40  # values, and neighbours, that are shown of a pair


def make_card(run: Run, facts: tuple[Facts, Facts], source: int, target: int, *, is_blind: bool) -> dict[str, Any]:
    """A pair: both entities, values, neighbours, channels, rivals. A blind card has no score and no decision."""
    told = run.explain_ids(source, target)
    names = marked(run.pair.source.names[source], run.pair.target.names[target])
    values = [asdict(row) for row in aligned_values(run, facts, source, target)]
    neighbours = _neighbours(run, told, source, target)
    card: dict[str, Any] = {
        "source": _entity(facts[0], source, names[0]),
        "target": _entity(facts[1], target, names[1]),
        "values": values[:MOST_ROWS],
        "more_values": max(0, len(values) - MOST_ROWS),
        "neighbours": neighbours[:MOST_ROWS],
        "more_neighbours": max(0, len(neighbours) - MOST_ROWS),
        "rivals": _rivals(run, facts[1], told, is_blind),
        "blind": is_blind,
    }
    if not is_blind:
        card |= {"decision": _decision(told), "channels": _channels(told), "notes": list(told.notes)}
    return card


def _entity(facts: Facts, entity: int, name: Any) -> dict[str, Any]:
    graph = facts.graph
    return {
        "identifier": graph.entities[entity],
        "name": graph.names[entity],
        "pieces": name,
        "types": [local_name(one) for one in facts.types(entity)],
    }


def _decision(told: Explanation) -> str:
    """What the run decided about the pair, in a sentence."""
    if told.outcome == "seed":
        return "A seed: it was given, not decided."
    if told.outcome == "matched" and told.link is not None:
        return f"The run links them, with confidence {told.link.confidence:.2f}."
    dropped = told.dropped
    if dropped is not None and told.target is not None and dropped.target.identifier == told.target.identifier:
        return f"The run left this link out: its confidence is {dropped.confidence:.2f}."
    other = told.link or told.target_link
    if other is None:
        return "The run has no link for either."
    return f"The run links {other.source.name} with {other.target.name} ({other.confidence:.2f})."


def _channels(told: Explanation) -> list[dict[str, Any]]:
    """What every channel says of the pair, beside the best rival that it speaks of."""
    if told.evidence is None:
        return []
    rival = next((one for one in told.rivals if one.evidence.features), None)
    others = {} if rival is None else {row.meaning: row.value for row in rival.evidence.features}
    rows = [
        {"channel": row.channel, "meaning": row.meaning, "value": row.value, "rival": others.get(row.meaning)}
        for row in told.evidence.features
    ]
    around = None if rival is None else rival.evidence
    rows.append(
        {
            "channel": "structure",
            "meaning": "evidence of matched neighbours",
            "value": told.evidence.total,
            "rival": None if around is None else around.total,
        }
    )
    missing = told.evidence.source_missing + told.evidence.target_missing
    rows.append(
        {
            "channel": "structure",
            "meaning": "neighbours matched elsewhere",
            "value": missing,
            "rival": None if around is None else around.source_missing + around.target_missing,
        }
    )
    return rows


def _rivals(run: Run, facts: Facts, told: Explanation, is_blind: bool) -> list[dict[str, Any]]:
    """The best other targets; a blind card has them by name, without scores and reasons."""
    rows = []
    for rival in told.rivals:
        entity = run.pair.target.entity_index[rival.target.identifier]
        row: dict[str, Any] = {**asdict(rival.target), "facts": some_facts(facts, entity)}
        if not is_blind:
            row |= {"logit": rival.evidence.logit, "evidence": rival.evidence.total, "reason": rival.reason}
        rows.append(row)
    return sorted(rows, key=lambda row: (row["name"], row["identifier"])) if is_blind else rows


def _neighbours(run: Run, told: Explanation, source: int, target: int) -> list[dict[str, Any]]:
    """Neighbours of both: those linked with each other, those linked elsewhere, those without a link."""
    if told.evidence is None:
        return []
    evidence = told.evidence
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for row in evidence.supports:
        kind = "seed" if row.is_seed else "linked"
        ways = {"source_relation": _way(row.source_relation), "target_relation": _way(row.target_relation)}
        names = {"source": row.source.name, "target": row.target.name}
        rows.setdefault((row.source.identifier, row.target.identifier), {"kind": kind, **names, **ways})
    for own, is_source in ((evidence.source_contradictions, True), (evidence.target_contradictions, False)):
        for against in own:
            if not against.seen:
                ends = against.neighbour.identifier, against.counterpart.identifier
                rows.setdefault(ends if is_source else ends[::-1], _elsewhere(against, is_source))
    for graph, entity, is_source in ((run.pair.source, source, True), (run.pair.target, target, False)):
        for identifier, name, way in _unlinked(run, graph, entity, is_source):
            row_of = {"source": name if is_source else "", "target": "" if is_source else name}
            row_of |= {"source_relation": way if is_source else "", "target_relation": "" if is_source else way}
            rows.setdefault((identifier, "") if is_source else ("", identifier), {"kind": "no link", **row_of})
    return list(rows.values())


def _elsewhere(against: Contradiction, is_source: bool) -> dict[str, Any]:
    """A neighbour whose counterpart is no neighbour of the other entity."""
    way = _way(against.relation)
    ends: tuple[Term, Term] = (against.neighbour, against.counterpart)
    source, target = ends if is_source else ends[::-1]
    return {
        "kind": "only source" if is_source else "only target",
        "source": source.name,
        "target": target.name,
        "source_relation": way if is_source else "",
        "target_relation": "" if is_source else way,
    }


def _unlinked(run: Run, graph: KnowledgeGraph, entity: int, is_source: bool) -> list[tuple[str, str, str]]:
    """Neighbours of an entity that have no link, with the relation."""
    memory = run.memory
    linked = memory.counterparts if is_source else memory.counterparts_back
    found = []
    for relation, neighbour in run.edges(entity, is_source):
        if linked[neighbour] < 0:
            found.append((graph.entities[neighbour], graph.names[neighbour], _way(relation)))
    return found


def _way(relation: Relation) -> str:
    return f"{relation.name} →" if relation.is_outward else f"← {relation.name}"
