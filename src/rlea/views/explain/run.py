"""Explain the links of a finished run.

Evidence of matched neighbours is computed with the formulas of the agent's features (`rlea.agent.features`), one row
per neighbour instead of sums. It is seen from the end of the run, with all its links, not only those before a decision.
Features of channels are those that the run has kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlea.agent.features import MAX_EDGES
from rlea.agent.memory import MAX_RELATIONS, Graphs, Memory, opposite
from rlea.agent.trace import DECISIONS, RIVALS, Trace
from rlea.deciders import DECIDERS
from rlea.errors import InputError
from rlea.evidence import VECTORS
from rlea.graph import GraphPair, Ids, KnowledgeGraph, choose_pool
from rlea.graph.masking import hide
from rlea.graph.names import local_name
from rlea.graph.neighbourhood import Neighbourhood, most_frequent
from rlea.io.readers.link_files import read_link_rows
from rlea.record import DOUBTFUL, as_dict, as_list
from rlea.views.explain.answer import (
    Contradiction,
    Explanation,
    Feature,
    Link,
    PairEvidence,
    Relation,
    Rival,
    Support,
    Term,
    other_evidence,
)
from rlea.views.explain.entities import find_entity, find_in_either
from rlea.views.explain.folder import place_links, read_channels, read_inputs, read_record, read_trace
from rlea.views.explain.values import Comparison, read_correspondences

CLOSER_LOOK = 4 * RIVALS  # rivals by a first estimate whose evidence is computed exactly


def explain(run: str | Path, source: str, target: str | None = None, *, pair: GraphPair | None = None) -> Explanation:
    """Explain a link in the folder of a run, or why there is none.

    Entities are given by identifier, or by a name that is unique in their graph. The graphs are read again from where
    the run read them, unless the same `pair` is given.
    """
    return Run.open(run, pair=pair).explain(source, target)


@dataclass(frozen=True, eq=False)
class Run:
    """A finished run with its graphs."""

    pair: GraphPair
    matcher: str
    embedding: str
    pool: str
    source_ids: Ids  # (num_links,) the least confident first
    target_ids: Ids  # (num_links,)
    confidences: NDArray[np.float32]  # (num_links,)
    trace: Trace | None
    notes: tuple[str, ...] = ()
    record: dict[str, Any] = field(default_factory=dict)  # the contents of run.json
    # Source -> target and confidence of a link that was left out; the trace has these, too.
    doubtful: dict[int, tuple[int, float]] = field(default_factory=dict)

    @staticmethod
    def open(folder: str | Path, *, pair: GraphPair | None = None) -> Run:
        """Read the folder of a run, and its graphs unless `pair` is given; both must be unchanged."""
        folder = Path(folder)
        record = read_record(folder)
        if pair is None:
            pair = read_inputs(folder, record)
        if pair.fingerprint != record["fingerprint"]:
            raise InputError(
                "the graphs or their known links have changed since this run",
                path=folder,
                remedy="align them again, or bring the old files back",
            )
        links = place_links(read_link_rows(folder / "links.tsv"), pair)
        trace, notes = read_trace(folder / DECISIONS, pair, links)
        doubtful = {}
        if trace is None and (folder / DOUBTFUL).exists():
            left_out = place_links(read_link_rows(folder / DOUBTFUL), pair)
            doubtful = {
                s: (t, confidence) for s, t, confidence in zip(*(part.tolist() for part in left_out), strict=True)
            }
        result = record["result"]
        facts = result["matcher"], result["embedding"], result["pool"]
        return Run(pair, *facts, *links, trace, notes, record, doubtful)

    # ---- the question -----------------------------------------------------------------------------------------------

    def explain(self, source: str, target: str | None = None) -> Explanation:
        """Explain the link of a source, or a pair; see `explain`."""
        s, t, notes = self._find(source, target)
        return self.explain_ids(s, t, notes)

    def explain_ids(self, s: int, t: int | None, notes: tuple[str, ...] = ()) -> Explanation:
        """The same for a pair of ids, or for a source without a link."""
        pair = self.pair
        own = self._link_of(s)
        dropped = self._dropped(s) if own is None else None
        in_pool = bool(self._is_open[0][s])
        outcome, target_link = "no link", None
        if t is not None and self._target_of(s) == t:
            outcome = "seed" if s in self._seeds else "matched"
        elif t is not None:
            outcome, target_link = "not matched", self._link_back(t)
            in_pool = in_pool and bool(self._is_open[1][t])
        shown = t if t is not None or dropped is None else pair.target.entity_index[dropped.target.identifier]
        return Explanation(
            matcher=self.matcher,
            embedding=self.embedding,
            channels=self.channels,
            pool=self.pool,
            outcome=outcome,
            source=_entity(pair.source, s),
            target=None if t is None else _entity(pair.target, t),
            link=own,
            target_link=target_link,
            dropped=dropped,
            target_dropped=None if t is None else self._dropped_back(t),
            in_pool=in_pool,
            num_steps=None if self.trace is None else len(self.trace),
            evidence=None if shown is None else self.evidence_for(s, shown),
            values=() if shown is None or self.comparison is None else self.comparison.of(s, shown),
            rivals=self._rivals(s, shown),
            notes=(*self.notes, *notes),
            is_table=pair.source.is_table and pair.target.is_table,
            has_relations=pair.source.num_triples > 0 and pair.target.num_triples > 0,
        )

    def _find(self, source: str, target: str | None) -> tuple[int, int | None, tuple[str, ...]]:
        """The ids of the entities, and notes. A single entity may be of either graph."""
        pair = self.pair
        if target is not None:
            s = find_entity(pair.source, source, "source", pair.target)
            return s, find_entity(pair.target, target, "target", pair.source), ()
        side, found = find_in_either(pair, source)
        if side == "source":
            return found, self._target_of(found), ()
        name = pair.target.names[found] or pair.target.entities[found]
        back = int(self.memory.counterparts_back[found])
        if back >= 0:
            others = [int(s) for s in self.source_ids[self.target_ids == found] if s != back]
            names = ", ".join(pair.source.names[s] for s in others[::-1][:RIVALS])
            more = "" if len(others) <= RIVALS else f" and {len(others) - RIVALS} more"
            return back, found, (f"{name} has other links with lower confidence: {names}{more}",) if others else ()
        if (dropped := self._dropped_back(found)) is not None:
            return pair.source.entity_index[dropped.source.identifier], found, ()
        if self.trace is not None and (best := self.trace.best_source(found)) is not None:
            return best, found, (f"{name} has no link; this is the source with the highest score for it",)
        raise InputError(
            f"{name!r} of the target graph has no link",
            remedy="ask about a pair: an entity of the source graph, then this one",
        )

    @cached_property
    def channels(self) -> tuple[str, ...]:
        """The channels that the run used, by its record."""
        return tuple(dict.fromkeys(str(channel.get("channel")) for channel in read_channels(self.record)))

    @cached_property
    def comparison(self) -> Comparison | None:
        """The literals as the run saw them; None if it did not use attributes."""
        found = read_correspondences(self.record)
        hidden = as_list(as_dict(self.record.get("result")).get("hidden"))
        return Comparison(hide(self.pair, hidden), found) if found else None

    # ---- evidence ---------------------------------------------------------------------------------------------------

    @cached_property
    def memory(self) -> Memory:
        """The seeds, and the links of the run with their confidences."""
        graphs = Graphs.of(self.pair.source, self.pair.target)
        return Memory.of(graphs, self.pair.train, self.source_ids, self.target_ids, self.confidences)

    def evidence_for(self, source: int, target: int) -> PairEvidence:
        """The evidence for and against a pair of ids.

        The supports sum to the square of the feature "evidence" of `rlea.agent.features` under `memory`, the
        contradictions to "missing source" and "missing target".
        """
        memory = self.memory
        trust, like = memory.trust, memory.correspondence
        s_graph, t_graph = self.pair.source, self.pair.target
        s_side, t_side = memory.graphs.source, memory.graphs.target
        s_expected, t_expected = self._expected
        t_edges = _edges(t_side, target)
        leading: dict[int, list[int]] = {}  # neighbour of the target -> positions of its edges
        for place, (_, _, m) in enumerate(t_edges):
            leading.setdefault(m, []).append(place)
        t_seen = np.zeros(len(t_edges), np.float32)
        supports: list[Support] = []
        s_against: list[Contradiction] = []
        t_against: list[Contradiction] = []
        for o, away, n in _edges(s_side, source):
            m = int(memory.counterparts[n])
            if m < 0 or m == target:  # without a link, or linked with this very target
                continue
            neighbours = _entity(s_graph, n), _entity(t_graph, m), n in self._seeds
            relation = _relation(s_graph, o, self._relations[0])
            seen = 0.0
            for place in leading.get(m, ()):
                p, towards, _ = t_edges[place]
                if like[o, p] <= 0:
                    continue
                identifying = min(s_side.functionality[away], t_side.functionality[towards])
                met = like[o, p] * trust[n]
                seen, t_seen[place] = max(seen, float(met)), max(t_seen[place], met)
                factors = float(like[away, towards]), float(identifying), float(trust[n])
                t_relation = _relation(t_graph, p, self._relations[1])
                product = float(like[away, towards] * identifying * trust[n])
                supports.append(Support(*neighbours, relation, t_relation, *factors, product))
            wanted = float(s_expected[o] * trust[n])
            if seen < wanted:
                s_against.append(Contradiction(*neighbours, relation, wanted, seen, wanted - seen))
        for (p, _, m), met in zip(t_edges, t_seen.tolist(), strict=True):
            n = int(memory.counterparts_back[m])
            if n < 0 or n == source:
                continue
            wanted = float(t_expected[p] * trust[n])
            if met < wanted:
                neighbours = _entity(t_graph, m), _entity(s_graph, n), n in self._seeds
                relation = _relation(t_graph, p, self._relations[1])
                t_against.append(Contradiction(*neighbours, relation, wanted, met, wanted - met))
        return PairEvidence(
            total=sum(row.evidence for row in supports),
            source_missing=sum(row.missing for row in s_against),
            target_missing=sum(row.missing for row in t_against),
            logit=None if self.trace is None else self.trace.logit_of(source, target),
            features=self._features(source, target),
            supports=tuple(sorted(supports, key=lambda row: -row.evidence)),
            source_contradictions=tuple(sorted(s_against, key=lambda row: -row.missing)),
            target_contradictions=tuple(sorted(t_against, key=lambda row: -row.missing)),
        )

    def _features(self, source: int, target: int) -> tuple[Feature, ...]:
        row = None if self.trace is None else self.trace.features_of(source, target)
        if self.trace is None or row is None:
            return ()
        known = self.meanings
        return tuple(
            Feature(*known.get(column, (column, column)), value)
            for column, value in zip(self.trace.columns, row.tolist(), strict=True)
        )

    @cached_property
    def meanings(self) -> dict[str, tuple[str, str]]:
        """Feature column -> its channel (of vectors, which there may be several of, the column) and what it means."""
        return {
            str(column): (str(column if row.get("channel") == VECTORS else row.get("channel")), str(meaning))
            for row in read_channels(self.record)
            for columns in [as_list(row.get("columns"))]
            for column, meaning in zip(columns, as_list(row.get("meanings")) or columns, strict=False)
        }

    @cached_property
    def _expected(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """How strongly every relation corresponds to its best counterpart in the other graph."""
        like = self.memory.correspondence
        return like.max(axis=1, initial=0), like.max(axis=0, initial=0)

    @cached_property
    def _relations(self) -> tuple[Ids, Ids]:
        """The relations of either graph that the agent uses, by their number in the neighbourhoods."""
        return most_frequent(self.pair.source, MAX_RELATIONS), most_frequent(self.pair.target, MAX_RELATIONS)

    def edges(self, entity: int, is_source: bool) -> list[tuple[Relation, int]]:
        """The edges of an entity that the agent looks at: the relation, and the id of the neighbour."""
        graphs = self.memory.graphs
        graph, side = (self.pair.source, graphs.source) if is_source else (self.pair.target, graphs.target)
        kept = self._relations[0 if is_source else 1]
        return [(_relation(graph, o, kept), n) for o, _, n in _edges(side, entity)]

    # ---- rivals -----------------------------------------------------------------------------------------------------

    def _rivals(self, source: int, chosen: int | None) -> tuple[Rival, ...]:
        """The best other targets: by logit if the run keeps it, else by the evidence of matched neighbours."""
        targets = [] if self.trace is None else [int(t) for t in self.trace.pairs(source)[0] if t != chosen]
        found = [(t, self.evidence_for(source, t)) for t in targets]
        if not found:
            found = [(t, self.evidence_for(source, t)) for t in self._nearby(source) if t != chosen]
            found.sort(key=lambda one: -one[1].total)
        rivals = []
        for t, evidence in found[:RIVALS]:
            link = self._link_of(source) if t == self._target_of(source) else self._link_back(t)
            rivals.append(Rival(_entity(self.pair.target, t), evidence, link, self._reason(source, t, evidence)))
        return tuple(rivals)

    def _nearby(self, source: int) -> list[int]:
        """Targets to be matched that share matched neighbours with a source, those with the most evidence."""
        memory, side = self.memory, self.memory.graphs.target
        like, functionality = memory.correspondence, side.functionality
        evidence = np.zeros(memory.graphs.num_target, np.float32)
        for o, away, n in _edges(memory.graphs.source, source):
            m = memory.counterparts[n]
            if m < 0:
                continue
            edges = slice(side.starts[m], side.starts[m + 1])
            towards = side.relation_ids[edges]
            identifying = np.minimum(memory.graphs.source.functionality[away], functionality[towards])
            steps = like[away, towards] * identifying * memory.trust[n]
            steps[like[o, opposite(towards, len(functionality))] <= 0] = 0
            np.add.at(evidence, side.neighbour_ids[edges], steps)
        evidence[~self._is_open[1]] = 0
        best = np.argsort(-evidence, kind="stable")[: CLOSER_LOOK + 1]
        return [int(t) for t in best if evidence[t] > 0]

    def _reason(self, source: int, target: int, evidence: PairEvidence) -> str:
        """Why a source did not get a target, as far as the run tells."""
        if self._target_of(source) == target:
            return "it is the link of the source"
        own = self._link_of(source) or self._dropped(source)
        dropped = self._dropped_back(target)
        taken = (self._link_back(target) if DECIDERS[self.matcher].one_to_one else None) or dropped
        if taken is not None and taken.source.identifier != self.pair.source.entities[source]:
            if taken.is_seed:
                return f"taken by {taken.source.name} (a seed)"
            step = "" if taken.step is None else f"step {taken.step:,}, "
            text = f"taken by {taken.source.name} ({step}confidence {taken.confidence:.2f})"
            if taken.step and own and own.step and own.step < taken.step:
                text += f", after the source got its link (step {own.step:,})"
            return text + (", a link that was dropped" if taken is dropped else "")
        if own is None:
            return "not taken: too little evidence"
        mine = self.evidence_for(source, self.pair.target.entity_index[own.target.identifier])
        if evidence.logit is not None and mine.logit is not None and evidence.logit < mine.logit:
            return f"lower logit ({evidence.logit:.2f} against {mine.logit:.2f})"
        if evidence.total < mine.total:
            return f"less evidence ({evidence.total:.3f} against {mine.total:.3f})"
        wrong, mine_wrong = (each.source_missing + each.target_missing for each in (evidence, mine))
        if wrong > mine_wrong:
            return f"more contradiction ({wrong:.2f} against {mine_wrong:.2f})"
        other = other_evidence(self.matcher, self.embedding, self.channels)
        return f"as much evidence here{f'; {other} must have decided' if other else ''}"

    # ---- links ------------------------------------------------------------------------------------------------------

    @cached_property
    def _is_open(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which entities of either graph were to be matched."""
        _, *pools = choose_pool(self.pair, self.pool)
        sizes = self.pair.source.num_entities, self.pair.target.num_entities
        source, target = (np.isin(np.arange(size), ids) for size, ids in zip(sizes, pools, strict=True))
        return source, target

    @cached_property
    def _seeds(self) -> frozenset[int]:
        """The sources of the seeds."""
        return frozenset(self.pair.train.source_ids.tolist())

    def _target_of(self, source: int) -> int | None:
        target = int(self.memory.counterparts[source])
        return target if target >= 0 else None

    def _link_of(self, source: int) -> Link | None:
        target = self._target_of(source)
        if target is None:
            return None
        step = None if self.trace is None else self.trace.step(source)
        ends = _entity(self.pair.source, source), _entity(self.pair.target, target)
        return Link(*ends, float(self.memory.trust[source]), source in self._seeds, step)

    def _link_back(self, target: int) -> Link | None:
        source = int(self.memory.counterparts_back[target])
        return self._link_of(source) if source >= 0 else None

    def _dropped(self, source: int) -> Link | None:
        """The decision for a source that was not confident enough to become a link."""
        if self.trace is None:
            target, confidence = self.doubtful.get(source, (-1, 0.0))
            ends = _entity(self.pair.source, source), _entity(self.pair.target, target)
            return None if target < 0 else Link(*ends, confidence, False, None)
        step = self.trace.step(source)
        if step is None:
            return None
        ends = _entity(self.pair.source, source), _entity(self.pair.target, int(self.trace.target_ids[step - 1]))
        return Link(*ends, float(self.trace.confidences[step - 1]), False, step)

    def _dropped_back(self, target: int) -> Link | None:
        """Likewise, for a target."""
        if self._link_back(target) is not None:
            return None
        if self.trace is None:
            source = next((s for s, (t, _) in self.doubtful.items() if t == target), None)
        else:
            source = self.trace.source_of(target)
        return None if source is None else self._dropped(source)


def _entity(graph: KnowledgeGraph, number: int) -> Term:
    return Term(graph.entities[number], graph.names[number])


def _relation(graph: KnowledgeGraph, oriented: int, kept: Ids) -> Relation:
    identifier = graph.relations[kept[oriented % len(kept)]]
    return Relation(identifier, local_name(identifier), oriented < len(kept))


def _edges(side: Neighbourhood, entity: int) -> list[tuple[int, int, int]]:
    """The edges of an entity that the agent looks at: relation from here, relation from there, neighbour."""
    edges = slice(side.starts[entity], min(side.starts[entity + 1], side.starts[entity] + MAX_EDGES))
    relations = side.relation_ids[edges]
    away = opposite(relations, len(side.functionality))
    return list(zip(relations.tolist(), away.tolist(), side.neighbour_ids[edges].tolist(), strict=True))
