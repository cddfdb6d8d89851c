"""A finished run, opened for questions: who speaks for a pair and against it, and who else there was.

Of matched neighbours counts what the agent sees (`rlea.agent.features`), by the same formulas, one row a neighbour in
place of sums. It is seen from the end of the run: all its links, and not only those before the decision, are known.
What channels said is what the run has kept; how alike vectors were it does not keep.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlea import pipeline
from rlea.agent.features import MAX_EDGES
from rlea.agent.memory import MAX_RELATIONS, Board, Memory, opposite
from rlea.agent.trace import RIVALS, Trace
from rlea.errors import InputError
from rlea.evidence.telling import SAYINGS
from rlea.graph import GraphPair, Ids, KnowledgeGraph, choose_pool
from rlea.graph.names import local_name
from rlea.graph.neighbourhood import Neighbourhood, most_frequent
from rlea.io.readers.link_files import read_link_rows
from rlea.masking import hide
from rlea.matchers import MATCHERS
from rlea.record import as_dict, as_list
from rlea.views.explain.answer import (
    Case,
    Contradiction,
    Entity,
    Explanation,
    Link,
    Relation,
    Rival,
    Saying,
    Support,
    name_others,
)
from rlea.views.explain.entities import find_entity, find_in_either
from rlea.views.explain.folder import place_links, read_heard, read_inputs, read_record, read_trace
from rlea.views.explain.values import Comparison, read_correspondences

CLOSER_LOOK = 4 * RIVALS  # rivals by a first estimate that are weighed exactly


def explain(run: str | Path, source: str, target: str | None = None, *, pair: GraphPair | None = None) -> Explanation:
    """Explain a link of a run folder, or why there is none.

    Entities are given by identifier or by a name that no other entity of the graph has. The graphs are read again from
    where the run read them, unless the same `pair` is given.
    """
    return Run.open(run, pair=pair).explain(source, target)


@dataclass(frozen=True, eq=False)
class Run:
    """A finished run with its graphs, opened for questions."""

    pair: GraphPair
    matcher: str
    embedding: str
    pool: str
    source_ids: Ids  # (num_links,) the least sure first
    target_ids: Ids  # (num_links,)
    confidences: NDArray[np.float32]  # (num_links,)
    trace: Trace | None
    notes: tuple[str, ...] = ()
    record: dict[str, Any] = field(default_factory=dict)  # what run.json holds

    @staticmethod
    def open(folder: str | Path, *, pair: GraphPair | None = None) -> Run:
        """Read a run folder, and its graphs where no `pair` is given; both must be as they were."""
        folder = Path(folder)
        record = read_record(folder)
        result = record["result"]
        if pair is None:
            pair = read_inputs(folder, record["command"])
        if pair.fingerprint != record["fingerprint"]:
            raise InputError(
                "the graphs or their known links are no longer those of this run",
                path=folder,
                remedy="align them again, or bring the old files back",
            )
        source_ids, target_ids, confidences = place_links(read_link_rows(folder / "links.tsv"), pair)
        trace, notes = read_trace(folder / pipeline.DECISIONS, pair, (source_ids, target_ids, confidences))
        return Run(
            pair,
            result["matcher"],
            result["embedding"],
            result["pool"],
            source_ids,
            target_ids,
            confidences,
            trace,
            notes,
            record,
        )

    # ---- the question -----------------------------------------------------------------------------------------------

    def explain(self, source: str, target: str | None = None) -> Explanation:
        """Explain the link of a source, or a pair; see `explain`."""
        pair = self.pair
        s, t, notes = self._asked_for(source, target)
        own = self._link_of(s)
        left_out = self._left_out(s) if own is None else None
        in_pool = bool(self._is_open[0][s])
        taken: Link | None = None
        if t is None:
            outcome = "no link"
        elif self._target_of(s) == t:
            outcome = "seed" if self._is_seed(s) else "matched"
        else:
            outcome, taken = "not matched", self._link_back(t)
            in_pool = in_pool and bool(self._is_open[1][t])
        weighed = t if t is not None or left_out is None else pair.target.entity_index[left_out.target.identifier]
        return Explanation(
            matcher=self.matcher,
            embedding=self.embedding,
            heard=self.heard,
            pool=self.pool,
            outcome=outcome,
            source=_entity(pair.source, s),
            target=None if t is None else _entity(pair.target, t),
            link=own,
            taken=taken,
            left_out=left_out,
            left_out_back=None if t is None else self._left_out_back(t),
            in_pool=in_pool,
            num_steps=None if self.trace is None else len(self.trace),
            case=None if weighed is None else self.weigh(s, weighed),
            values=() if weighed is None or self._comparison is None else self._comparison.of(s, weighed),
            rivals=self._rivals(s, weighed),
            notes=(*self.notes, *notes),
        )

    def _asked_for(self, source: str, target: str | None) -> tuple[int, int | None, tuple[str, ...]]:
        """The ids that are meant, and what is to be said about that. One entity alone may be of either graph."""
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
            return back, found, (f"{name} has other links, less sure: {names}{more}",) if others else ()
        given = None if self.trace is None else self.trace.given_to(found)
        if given is not None:
            return given, found, ()
        nearest = None if self.trace is None else self.trace.best_source(found)
        if nearest is None:
            raise InputError(
                f"no link was found for {name!r} of the target graph",
                remedy="ask about a pair: an entity of the source graph, and then this one",
            )
        return nearest, found, (f"no link was found for {name}; this is the source that came nearest to it",)

    @cached_property
    def heard(self) -> tuple[str, ...]:
        """The channels that had their say, by the record."""
        names = (channel.get("channel") for channel in read_heard(self.record))
        return tuple(dict.fromkeys(name for name in names if isinstance(name, str)))

    @cached_property
    def _comparison(self) -> Comparison | None:
        """The literals of the graphs, as they were shown to the run; None where it did not listen to attributes."""
        found = read_correspondences(self.record)
        hidden = as_list(as_dict(self.record.get("result")).get("hidden"))
        return Comparison(hide(self.pair, hidden), found) if found else None

    # ---- evidence ---------------------------------------------------------------------------------------------------

    @cached_property
    def memory(self) -> Memory:
        """The seeds, and the links of the run as far as they are sure."""
        board = Board.of(self.pair.source, self.pair.target)
        return Memory.of(board, self.pair.train, self.source_ids, self.target_ids, self.confidences)

    def weigh(self, source: int, target: int) -> Case:
        """What speaks for a pair of ids and against it.

        The supports sum to the square of the feature "evidence" of `rlea.agent.features.look` under `memory`, the
        contradictions to "missing source" and "missing target".
        """
        memory = self.memory
        there, back, trust, like = memory.counterparts, memory.counterparts_back, memory.trust, memory.correspondence
        s_graph, t_graph = self.pair.source, self.pair.target
        s_side, t_side = memory.board.source, memory.board.target
        s_expected, t_expected = self._expected
        t_edges = _edges(t_side, target)
        leading: dict[int, list[int]] = {}  # neighbour of the target -> places among its edges
        for place, (_, _, m) in enumerate(t_edges):
            leading.setdefault(m, []).append(place)
        borne = np.zeros(len(t_edges), np.float32)
        supports, against, against_back = [], [], []
        for o, away, n in _edges(s_side, source):
            m = int(there[n])
            if m < 0 or m == target:  # undecided, or matched with this very target
                continue
            seen = 0.0
            for place in leading.get(m, ()):
                p, towards, _ = t_edges[place]
                if like[o, p] <= 0:
                    continue
                identifying = min(s_side.functionality[away], t_side.functionality[towards])
                met = like[o, p] * trust[n]
                seen, borne[place] = max(seen, float(met)), max(borne[place], met)
                supports.append(
                    Support(
                        source=_entity(s_graph, n),
                        target=_entity(t_graph, m),
                        is_seed=self._is_seed(n),
                        source_relation=_relation(s_graph, o, self._relations[0]),
                        target_relation=_relation(t_graph, p, self._relations[1]),
                        correspondence=float(like[away, towards]),
                        identifying=float(identifying),
                        trust=float(trust[n]),
                        evidence=float(like[away, towards] * identifying * trust[n]),
                    )
                )
            wanted = float(s_expected[o] * trust[n])
            if seen < wanted:
                relation = _relation(s_graph, o, self._relations[0])
                ends = _entity(s_graph, n), _entity(t_graph, m)
                against.append(Contradiction(*ends, self._is_seed(n), relation, wanted, seen, wanted - seen))
        for place, (p, _, m) in enumerate(t_edges):
            n = int(back[m])
            if n < 0 or n == source:
                continue
            wanted, seen = float(t_expected[p] * trust[n]), float(borne[place])
            if seen < wanted:
                relation = _relation(t_graph, p, self._relations[1])
                ends = _entity(t_graph, m), _entity(s_graph, n)
                against_back.append(Contradiction(*ends, self._is_seed(n), relation, wanted, seen, wanted - seen))
        return Case(
            evidence=sum(row.evidence for row in supports),
            source_missing=sum(row.missing for row in against),
            target_missing=sum(row.missing for row in against_back),
            worth=self._worth(source, target),
            says=self._says(source, target),
            supports=tuple(sorted(supports, key=lambda row: -row.evidence)),
            source_contradictions=tuple(sorted(against, key=lambda row: -row.missing)),
            target_contradictions=tuple(sorted(against_back, key=lambda row: -row.missing)),
        )

    def _says(self, source: int, target: int) -> tuple[Saying, ...]:
        """What channels say of a pair, where the run has kept it."""
        row = None if self.trace is None else self.trace.said(source, target)
        if self.trace is None or row is None:
            return ()
        about = [SAYINGS.get(column, (column, "")) for column in self.trace.columns]
        return tuple(Saying(*words, value) for words, value in zip(about, row.tolist(), strict=True))

    @cached_property
    def _expected(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """How far every relation corresponds to its best on the other side."""
        like = self.memory.correspondence
        return like.max(axis=1, initial=0), like.max(axis=0, initial=0)

    @cached_property
    def _relations(self) -> tuple[Ids, Ids]:
        """The relations of either graph that count, by their number in the neighbourhoods."""
        return most_frequent(self.pair.source, MAX_RELATIONS), most_frequent(self.pair.target, MAX_RELATIONS)

    # ---- rivals -----------------------------------------------------------------------------------------------------

    def _rivals(self, source: int, chosen: int | None) -> tuple[Rival, ...]:
        """The best other targets: by worth where the run keeps it, else by the evidence of matched neighbours."""
        targets = [] if self.trace is None else [int(t) for t in self.trace.pairs(source)[0] if t != chosen]
        cases = [(t, self.weigh(source, t)) for t in targets]
        if not cases:
            cases = [(t, self.weigh(source, t)) for t in self._nearby(source) if t != chosen]
            cases.sort(key=lambda found: -found[1].evidence)
        own = self._target_of(source)
        return tuple(
            Rival(
                _entity(self.pair.target, t),
                case,
                self._link_back(t) if t != own else self._link_of(source),
                self._why(source, t, case),
            )
            for t, case in cases[:RIVALS]
        )

    def _nearby(self, source: int) -> list[int]:
        """Open targets that share matched neighbours with a source, those with the most evidence."""
        memory, side = self.memory, self.memory.board.target
        like, functionality = memory.correspondence, side.functionality
        evidence = np.zeros(memory.board.num_target, np.float32)
        for o, away, n in _edges(memory.board.source, source):
            m = memory.counterparts[n]
            if m < 0:
                continue
            edges = slice(side.starts[m], side.starts[m + 1])
            towards = side.relation_ids[edges]
            identifying = np.minimum(memory.board.source.functionality[away], functionality[towards])
            steps = like[away, towards] * identifying * memory.trust[n]
            steps[like[o, opposite(towards, len(functionality))] <= 0] = 0
            np.add.at(evidence, side.neighbour_ids[edges], steps)
        evidence[~self._is_open[1]] = 0
        best = np.argsort(-evidence, kind="stable")[: CLOSER_LOOK + 1]
        return [int(t) for t in best if evidence[t] > 0]

    def _why(self, source: int, target: int, case: Case) -> str:
        """Why a source did not get a target, as far as the run tells."""
        if self._target_of(source) == target:
            return "the link that the source has"
        own = self._link_of(source) or self._left_out(source)
        kept, lost = self._link_back(target), self._left_out_back(target)
        taken = (kept if MATCHERS[self.matcher].one_to_one else None) or lost
        if taken is not None and taken.source.identifier != self.pair.source.entities[source]:
            if taken.is_seed:
                return f"taken by {taken.source.name} (a seed)"
            step = "" if taken.step is None else f"step {taken.step}, "
            text = f"taken by {taken.source.name} ({step}confidence {taken.confidence:.2f})"
            if taken.step and own and own.step and own.step < taken.step:
                text += f", after this source had its link (step {own.step})"
            return text + (", a link that was not kept" if taken is lost else "")
        if own is None:
            return "taken by nobody: too little speaks for it"
        mine = self.weigh(source, self.pair.target.entity_index[own.target.identifier])
        if case.worth is not None and mine.worth is not None and case.worth < mine.worth:
            return f"worth less ({case.worth:.2f} against {mine.worth:.2f})"
        if case.evidence < mine.evidence:
            return f"less evidence ({case.evidence:.3f} against {mine.evidence:.3f})"
        wrong, mine_wrong = (each.source_missing + each.target_missing for each in (case, mine))
        if wrong > mine_wrong:
            return f"more contradiction ({wrong:.2f} against {mine_wrong:.2f})"
        decided = name_others(self.matcher, self.embedding, self.heard)
        return f"no less speaks for it here{f': {decided} must have decided' if decided else ''}"

    # ---- links ------------------------------------------------------------------------------------------------------

    @cached_property
    def _is_open(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which entities of either graph were to be matched."""
        _, *pools = choose_pool(self.pair, self.pool)
        sides = np.zeros(self.pair.source.num_entities, np.bool_), np.zeros(self.pair.target.num_entities, np.bool_)
        for side, ids in zip(sides, pools, strict=True):
            side[ids] = True
        return sides

    @cached_property
    def _seeds(self) -> frozenset[int]:
        return frozenset(self.pair.train.source_ids.tolist())

    def _is_seed(self, source: int) -> bool:
        return source in self._seeds

    def _target_of(self, source: int) -> int | None:
        target = int(self.memory.counterparts[source])
        return target if target >= 0 else None

    def _link_of(self, source: int) -> Link | None:
        target = self._target_of(source)
        if target is None:
            return None
        return Link(
            _entity(self.pair.source, source),
            _entity(self.pair.target, target),
            float(self.memory.trust[source]),
            self._is_seed(source),
            None if self.trace is None else self.trace.step(source),
        )

    def _link_back(self, target: int) -> Link | None:
        source = int(self.memory.counterparts_back[target])
        return self._link_of(source) if source >= 0 else None

    def _left_out(self, source: int) -> Link | None:
        """What was decided for a source that has no link in the end: not sure enough to be kept."""
        step = None if self.trace is None else self.trace.step(source)
        if self.trace is None or step is None:
            return None
        target = int(self.trace.target_ids[step - 1])
        ends = _entity(self.pair.source, source), _entity(self.pair.target, target)
        return Link(*ends, float(self.trace.confidences[step - 1]), False, step)

    def _left_out_back(self, target: int) -> Link | None:
        """What was decided for a target that has no link in the end."""
        source = None if self.trace is None or self._link_back(target) is not None else self.trace.given_to(target)
        return None if source is None else self._left_out(source)

    def _worth(self, source: int, target: int) -> float | None:
        return None if self.trace is None else self.trace.worth_of(source, target)


def _entity(graph: KnowledgeGraph, number: int) -> Entity:
    return Entity(graph.entities[number], graph.names[number])


def _relation(graph: KnowledgeGraph, oriented: int, kept: Ids) -> Relation:
    identifier = graph.relations[kept[oriented % len(kept)]]
    return Relation(identifier, local_name(identifier), oriented < len(kept))


def _edges(side: Neighbourhood, entity: int) -> list[tuple[int, int, int]]:
    """The edges of an entity, as many as the agent looks at: relation from here, relation from there, neighbour."""
    edges = slice(side.starts[entity], min(side.starts[entity + 1], side.starts[entity] + MAX_EDGES))
    relations = side.relation_ids[edges]
    away = opposite(relations, len(side.functionality))
    return list(zip(relations.tolist(), away.tolist(), side.neighbour_ids[edges].tolist(), strict=True))
