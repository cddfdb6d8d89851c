"""From a name, types and properties to candidates with the probability that each is the entity meant."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rlea.graph import KnowledgeGraph
from rlea.graph.names import plain
from rlea.progress import Progress, silent
from rlea.serve.agreement import agreement, contradicts, left_over, overlap, read_value
from rlea.serve.confidence import MOST_SIMULATED, Confidence, Evidence, rows_of
from rlea.serve.facts import Fact, Facts
from rlea.serve.name_search import LONGEST, NameSearch, words_of
from rlea.serve.simulated import change_name, draw_properties

COMPARED = 30  # candidates by name that are compared in full: namesakes are told apart by properties
SURE = 0.9  # confidence from which on a candidate is called a match ...
NEAR = 0.05  # ... unless another one has as much as this
SHORT = 3  # words of a short name


@dataclass(frozen=True)
class Wanted:
    """A value that a property should have: a text, or an entity of the graph."""

    text: str
    entity: int = -1


@dataclass(frozen=True)
class Query:
    """What is known of the entity that is meant."""

    text: str
    properties: tuple[tuple[str, tuple[Wanted, ...]], ...] = ()  # (property, values), any of which is right
    types: tuple[str, ...] = ()
    all_types: bool = False  # an entity must have all of the types, not just one


@dataclass(frozen=True)
class Candidate:
    """An entity that may be meant."""

    entity: int
    confidence: float  # the probability that it is meant, 0 to 1
    evidence: Evidence
    is_match: bool = False


class Reconciler:
    """The index of a graph's names and facts, and the weights of evidence that the graph itself taught.

    >>> import rlea
    >>> graph = rlea.read_demo().source
    >>> best = Reconciler(graph).candidates(Query("North Dakotta"))[0]
    >>> graph.names[best.entity]
    'North Dakota'
    """

    def __init__(self, graph: KnowledgeGraph, *, seed: int = 0, progress: Progress = silent) -> None:
        self.graph = graph
        self.facts = Facts(graph)
        progress("index", 0, 1)
        self.names = NameSearch.build(graph)
        progress("index", 1, 1)
        self.confidence = self._learn(seed, progress)

    def candidates(self, query: Query, limit: int = 10) -> list[Candidate]:
        """The most likely entities, the most likely first."""
        ids, evidence = self._compare(query, max(limit, COMPARED))
        shares = self.confidence.of(evidence, _num_letters(query.text))
        order = sorted(range(len(ids)), key=lambda k: (-shares[k], -evidence[k].similarity, ids[k]))
        found = [Candidate(ids[k], shares[k], evidence[k]) for k in order[:limit]]
        if found and _is_sure(found[0], query.text) and all(shares[k] < NEAR for k in order[1:]):
            found[0] = replace(found[0], is_match=True)
        return found

    def _compare(self, query: Query, number: int) -> tuple[list[int], list[Evidence]]:
        """Entities with similar names, the most similar first, and what speaks for and against each."""
        allowed = self.facts.having(query.types, query.all_types) if query.types else None
        if query.text.strip():
            ids, scores = self.names.find(query.text, number, allowed)
            similar = dict(zip(ids.tolist(), scores.tolist(), strict=True))
        else:
            similar = dict.fromkeys(self._having_values(query, allowed)[:number], 0.0)
        called = self.graph.entity_index.get(query.text.strip())  # an identifier in place of a name
        if called is not None and (allowed is None or allowed[called]):
            similar = {called: 1.0, **{entity: score for entity, score in similar.items() if entity != called}}
        asked = read_value(query.text)
        asked_words = words_of(query.text)
        evidence = []
        for entity, similarity in similar.items():
            texts = (self.graph.names[entity], *self.names.others.get(entity, ()))
            names = [read_value(name) for name in texts]
            is_equal = entity == called or any(name.plain == asked.plain for name in names)
            shared = 1.0 if entity == called else max(overlap(asked, name) for name in names)
            rest = 0.0 if is_equal else min(left_over(asked, name) for name in names)
            rarity = max(self.names.rarity(asked_words, words_of(text)) for text in texts)
            evidence.append(Evidence(similarity, shared, rest, is_equal, rarity, *self._judge(entity, query)))
        return list(similar), evidence

    def _having_values(self, query: Query, allowed: NDArray[np.bool_] | None) -> list[int]:
        """Entities with the most of the values, for a query without a name."""
        counts = Counter(
            entity
            for name, wanted in query.properties
            for entity in {entity for one in wanted for entity in self.facts.find(name, one.text)}
            if allowed is None or allowed[entity]
        )
        return sorted(counts, key=lambda entity: (-counts[entity], entity))

    def _judge(self, entity: int, query: Query) -> tuple[float, float]:
        """Support and conflict by properties; one that the entity lacks says nothing."""
        support = conflict = 0.0
        for name, wanted in query.properties:
            values = self.facts.values(entity, name)
            if values and wanted:
                best = max(_agree(one, value) for one in wanted for value in values)
                support += best * self.facts.weights[name]
                if any(contradicts(one.text, value.text) for one in wanted for value in values):
                    conflict += 1 - best
        return support, conflict

    def _learn(self, seed: int, progress: Progress) -> Confidence:
        """Weights by queries that are made from the graph's own names."""
        rng = np.random.default_rng([seed, 7])
        named = np.unique(self.names.owners)
        chosen = rng.permutation(named)[:MOST_SIMULATED].tolist()
        texts = [self.graph.names[entity] for entity in chosen]
        queries, answers = [], []
        for number, entity in enumerate(chosen):
            properties = draw_properties(self.facts, entity, chosen, rng)
            wanted = tuple((name, (Wanted(text),)) for name, text in properties)
            query = Query(change_name(self.graph.names[entity], texts, rng), wanted)
            ids, evidence = self._compare(query, COMPARED + 1)
            length = _num_letters(query.text)
            queries.append(rows_of(evidence, length))
            answers.append(ids.index(entity) + 1 if entity in ids else 0)
            queries.append(rows_of([one for one, other in zip(evidence, ids, strict=True) if other != entity], length))
            answers.append(0)
            progress("calibrate", number + 1, len(chosen))
        return Confidence.fit(queries, answers)


def _is_sure(best: Candidate, text: str) -> bool:
    """In a short name a word too many or too few ("Oslo", "Oslo Time") may mean another entity, unless values agree."""
    evidence = best.evidence
    is_short = len(read_value(text).words) <= SHORT
    return best.confidence >= SURE and not (
        is_short and evidence.left_over > 0 and evidence.support <= evidence.conflict
    )


def _agree(wanted: Wanted, value: Fact) -> float:
    if wanted.entity >= 0 and value.entity >= 0:
        return float(wanted.entity == value.entity)
    return agreement(wanted.text, value.text)


def _num_letters(text: str) -> int:
    return len("".join(plain(text[:LONGEST]).split()))
