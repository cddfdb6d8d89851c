"""Why a link was made, or was not: which matched neighbours speak for a pair and against it, and which rivals lost.

What counts is what the agent sees (`rlea.agent.sight`), by the same formulas, one row a neighbour in place of sums. It
is seen from the end of the run: all its links, and not only those before the decision, are known. How alike the vectors
are is no part of it; a run does not keep them.
"""

from __future__ import annotations

import difflib
import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlea import pipeline
from rlea.agent.memory import MAX_RELATIONS, Board, Memory, opposite
from rlea.agent.sight import MAX_EDGES
from rlea.agent.trace import RIVALS, Trace
from rlea.errors import InputError
from rlea.graph import GraphPair, Ids, KnowledgeGraph, choose_pool
from rlea.matchers import MATCHERS
from rlea.names import local_name
from rlea.neighbourhood import Neighbourhood, most_frequent
from rlea.readers.link_files import LinkFile, read_link_rows

FLAGS = ("--abstain", "--json", "--quiet", "-q")  # the options of `rlea align` that take no value
CLOSER_LOOK = 4 * RIVALS  # rivals by a first estimate that are weighed exactly
MOST_COMPARED = 20_000  # names that a mistyped one is compared with; of more, those with the same first letter


@dataclass(frozen=True)
class Entity:
    """One entity, for people and for machines."""

    identifier: str
    name: str


@dataclass(frozen=True)
class Relation:
    """A relation as seen from the entity in question: it leads to the neighbour, or comes from it."""

    identifier: str
    name: str
    is_outward: bool


@dataclass(frozen=True)
class Link:
    """A link of the run, or a seed. Steps count from 1; None where the run keeps no order."""

    source: Entity
    target: Entity
    confidence: float
    is_seed: bool
    step: int | None


@dataclass(frozen=True)
class Support:
    """A matched neighbour that the two entities have in common, through one relation on either side."""

    source: Entity  # the neighbour
    target: Entity  # its counterpart
    is_seed: bool
    source_relation: Relation
    target_relation: Relation
    correspondence: float  # how far the two relations say the same, in [0, 1]
    identifying: float  # how well the less identifying of the two picks one entity, in [0, 1]
    trust: float  # in the neighbour's link; 1 for seeds
    evidence: float  # the product of the three


@dataclass(frozen=True)
class Contradiction:
    """A neighbour matched elsewhere: its counterpart should be a neighbour of the other entity, and is not."""

    neighbour: Entity
    counterpart: Entity  # in the other graph
    is_seed: bool
    relation: Relation
    expected: float  # how far such an edge would be expected in the other graph, times the trust in the link
    seen: float  # how far there is one; above 0 where a less fitting relation leads there
    missing: float  # the difference


@dataclass(frozen=True)
class Case:
    """All that speaks for a pair and against it. `evidence` is the sum of the supports', `missing` of either side's."""

    evidence: float
    source_missing: float
    target_missing: float
    worth: float | None  # what the pair was worth to the agent, where the run keeps it
    supports: tuple[Support, ...]  # the strongest first
    source_contradictions: tuple[Contradiction, ...]  # the heaviest first
    target_contradictions: tuple[Contradiction, ...]


@dataclass(frozen=True)
class Rival:
    """Another target for the same source, and why it was not taken."""

    target: Entity
    case: Case
    taken: Link | None  # the link that its target got
    why: str


@dataclass(frozen=True)
class Explanation:
    """The answer for a source, or for a pair.

    `outcome` is "matched", "seed", "not matched" (of a pair) or "no link" (of a source). `target` and `case` are None
    where a source without a link was asked for.
    """

    matcher: str
    embedding: str
    pool: str
    outcome: str
    source: Entity
    target: Entity | None
    link: Link | None  # that of the source, whoever it leads to
    taken: Link | None  # that of the target, where it is with another source
    left_out: Link | None  # decided, but not among the links that were kept
    in_pool: bool  # whether both were among the entities to be matched
    num_steps: int | None
    case: Case | None
    rivals: tuple[Rival, ...]  # without the pair in question
    notes: tuple[str, ...]


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
        record = _read_record(folder)
        result = record["result"]
        if pair is None:
            pair = _read_inputs(folder, record["command"])
        if pair.fingerprint != record["fingerprint"]:
            raise InputError(
                "the graphs or their known links are no longer those of this run",
                path=folder,
                remedy="align them again, or bring the old files back",
            )
        source_ids, target_ids, confidences = _place(read_link_rows(folder / "links.tsv"), pair)
        trace, notes = _read_trace(folder / pipeline.DECISIONS, pair, (source_ids, target_ids, confidences))
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
        s = find_entity(pair.source, source, "source", pair.target)
        own = self._link_of(s)
        t = find_entity(pair.target, target, "target", pair.source) if target is not None else self._target_of(s)
        in_pool = bool(self._is_open[0][s])
        taken: Link | None = None
        if t is None:
            outcome = "no link"
        elif self._target_of(s) == t:
            outcome = "seed" if self._is_seed(s) else "matched"
        else:
            outcome, taken = "not matched", self._link_back(t)
            in_pool = in_pool and bool(self._is_open[1][t])
        return Explanation(
            matcher=self.matcher,
            embedding=self.embedding,
            pool=self.pool,
            outcome=outcome,
            source=_entity(pair.source, s),
            target=None if t is None else _entity(pair.target, t),
            link=own,
            taken=taken,
            left_out=self._left_out(s) if own is None else None,
            in_pool=in_pool,
            num_steps=None if self.trace is None else len(self.trace),
            case=None if t is None else self.weigh(s, t),
            rivals=self._rivals(s, t),
            notes=self.notes,
        )

    # ---- evidence ---------------------------------------------------------------------------------------------------

    @cached_property
    def memory(self) -> Memory:
        """The seeds, and the links of the run as far as they are sure."""
        board = Board.of(self.pair.source, self.pair.target)
        return Memory.of(board, self.pair.train, self.source_ids, self.target_ids, self.confidences)

    def weigh(self, source: int, target: int) -> Case:
        """What speaks for a pair of ids and against it.

        The supports sum to the square of the feature "evidence" of `rlea.agent.sight.look` under `memory`, the
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
            supports=tuple(sorted(supports, key=lambda row: -row.evidence)),
            source_contradictions=tuple(sorted(against, key=lambda row: -row.missing)),
            target_contradictions=tuple(sorted(against_back, key=lambda row: -row.missing)),
        )

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
        own, taken = self._target_of(source), self._link_back(target)
        if own == target:
            return "the link that the source has"
        if taken is not None and MATCHERS[self.matcher].one_to_one:
            if taken.is_seed:
                return f"taken by {taken.source.name} (a seed)"
            step = "" if taken.step is None else f"step {taken.step}, "
            text = f"taken by {taken.source.name} ({step}confidence {taken.confidence:.2f})"
            earlier = self._link_of(source)
            if taken.step and earlier and earlier.step and earlier.step < taken.step:
                text += f", after this source had its link (step {earlier.step})"
            return text
        if own is None:
            return "taken by nobody: too little speaks for it"
        mine = self.weigh(source, own)
        if case.worth is not None and mine.worth is not None and case.worth < mine.worth:
            return f"worth less ({case.worth:.2f} against {mine.worth:.2f})"
        if case.evidence < mine.evidence:
            return f"less evidence ({case.evidence:.3f} against {mine.evidence:.3f})"
        wrong, mine_wrong = (each.source_missing + each.target_missing for each in (case, mine))
        if wrong > mine_wrong:
            return f"more contradiction ({wrong:.2f} against {mine_wrong:.2f})"
        decided = "the vectors" if MATCHERS[self.matcher].takes_vectors else "names, words or attributes"
        return f"no less speaks for it here: {decided} must have decided"

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

    def _worth(self, source: int, target: int) -> float | None:
        if self.trace is None:
            return None
        targets, worth = self.trace.pairs(source)
        place = np.flatnonzero(targets == target)
        return float(worth[place[0]]) if len(place) else None


# ---- entities -------------------------------------------------------------------------------------------------------


def find_entity(graph: KnowledgeGraph, text: str, side: str, other: KnowledgeGraph | None = None) -> int:
    """The id of an entity by its identifier, else by a name or local name that is its alone.

    `side` is "source" or "target", for the error; `other` is the other graph, where a swapped entity would stand.
    """
    found = _called(graph, text)
    if len(found) == 1:
        return found[0]
    if found:
        some = ", ".join(graph.entities[number] for number in found[:RIVALS])
        more = "" if len(found) <= RIVALS else f" and {len(found) - RIVALS} more"
        problem = f"{len(found)} entities of the {side} graph are called {text!r}"
        raise InputError(problem, remedy=f"give the identifier: {some}{more}")
    if other is not None and _called(other, text):
        remedy = f"it stands in the {'target' if side == 'source' else 'source'} graph, and SOURCE comes before TARGET"
    elif close := _close(graph, text):
        remedy = f"did you mean {' or '.join(close)}"
    else:
        example = f", such as {graph.entities[0]}" if graph.entities else ""
        remedy = f"give an identifier or a name of it{example}"
    raise InputError(f"the {side} graph has no entity {text!r}", remedy=remedy)


def _called(graph: KnowledgeGraph, text: str) -> list[int]:
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


# ---- files ----------------------------------------------------------------------------------------------------------


def _read_record(folder: Path) -> dict[str, Any]:
    path = folder / "run.json"
    remedy = "give the folder that `rlea align --output` wrote"
    if not folder.exists():
        raise InputError("there is no such folder", path=folder, remedy=_similar_folder(folder) or remedy)
    lost = [name for name in (path.name, "links.tsv") if not (folder / name).is_file()]
    if lost:
        is_inside = folder.is_file() and (folder.parent / path.name).is_file()
        remedy = f"give the folder that it lies in, {folder.parent}" if is_inside else remedy
        what = "a file," if folder.is_file() else f"without {' and '.join(lost)}, so it is"
        raise InputError(f"is {what} not the folder of a run", path=folder, remedy=remedy)
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as problem:
        raise InputError("cannot be read as the record of a run", path=path, remedy=remedy) from problem
    result = record.get("result") if isinstance(record, dict) else None
    texts = [record.get("command"), record.get("fingerprint")] if isinstance(result, dict) else []
    texts += [result.get(name) for name in ("matcher", "embedding", "pool")] if isinstance(result, dict) else [None]
    if not all(isinstance(text, str) for text in texts) or result is None or result["matcher"] not in MATCHERS:
        raise InputError("is not the record of an alignment", path=path, remedy=remedy)
    return dict(record)


def _similar_folder(folder: Path) -> str:
    """A question after the run that was meant, where a folder with nearly that name is one; empty where none is."""
    beside = folder.parent if folder.parent.is_dir() else Path()
    runs = [place.parent.name for place in beside.glob("*/run.json")]
    close = difflib.get_close_matches(folder.name, runs, n=1)
    return f"did you mean {beside / close[0]}" if close else ""


def _read_inputs(folder: Path, command: str) -> GraphPair:
    """The pair that a command read, from the same files."""
    words = shlex.split(command)
    if words[:2] == ["rlea", "demo"]:
        from rlea.demo import demo_folder

        return pipeline.read(demo_folder())
    if words[:2] != ["rlea", "align"]:
        raise InputError(
            f"the run was made by {command!r}, which does not tell where its graphs are",
            path=folder,
            remedy="in Python, give the pair to rlea.explain.explain or rlea.commands.write_report",
        )
    places, options = _parse(words[2:])
    links = {name: options[name] for name in ("seeds", "valid", "gold") if name in options}
    files = [*places, *links.values()]
    # Paths stand there as they were typed: they hold from here, or from where the output was written from.
    bases = [Path.cwd()]
    output = Path(options.get("output", "."))
    if not output.is_absolute() and folder.resolve().parts[-len(output.parts) :] == output.parts:
        bases.insert(0, folder.resolve().parents[len(output.parts) - 1])
    for base in bases:
        if all((base / file).exists() for file in files):
            source, *target = (base / place for place in places)
            return pipeline.read(
                source, *target[:1], fold=options.get("fold"), **{name: base / file for name, file in links.items()}
            )
    lost = next(file for file in files if not (bases[0] / file).exists())
    raise InputError(
        f"{lost} of this run is not there", path=folder, remedy=f"put it back, or go to where `{command}` was typed"
    )


def _parse(words: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Arguments and options (without their dashes) of an `rlea align` that was accepted once."""
    places: list[str] = []
    options: dict[str, str] = {}
    left = list(words)
    while left:
        word = left.pop(0)
        if word == "--":
            return places + left, options
        if word in FLAGS:
            continue
        if word.startswith("--"):
            name, has_value, value = word[2:].partition("=")
            options[name] = value if has_value or not left else left.pop(0)
        else:
            places.append(word)
    return places, options


def _place(rows: LinkFile, pair: GraphPair) -> tuple[Ids, Ids, NDArray[np.float32]]:
    """The links of a run by id, the least sure first: where two speak of one entity, the surer counts."""
    index, other = pair.source.entity_index, pair.target.entity_index
    for number, source, target in zip(rows.numbers, rows.sources, rows.targets, strict=True):
        if source not in index or target not in other:
            lost = source if source not in index else target
            raise InputError(
                f"the graphs have no entity {lost!r}", path=rows.path, line=number, remedy="align them again"
            )
    order = np.argsort(rows.confidences, kind="stable")
    source_ids = np.array([index[name] for name in rows.sources], np.int32)[order]
    target_ids = np.array([other[name] for name in rows.targets], np.int32)[order]
    return source_ids, target_ids, rows.confidences[order].astype(np.float32)


def _read_trace(
    path: Path, pair: GraphPair, links: tuple[Ids, Ids, NDArray[np.float32]]
) -> tuple[Trace | None, tuple[str, ...]]:
    """The order of the decisions, where the run has kept it; one that other links came from is left out with a note."""
    if not path.exists():
        return None, ()
    trace = Trace.load(path)
    decided = {
        (source, target): confidence
        for source, target, confidence in zip(
            trace.source_ids.tolist(), trace.target_ids.tolist(), trace.confidences.tolist(), strict=True
        )
    }
    is_same = all(
        abs(decided.get((source, target), -1.0) - confidence) < 1e-5
        for source, target, confidence in zip(*(array.tolist() for array in links), strict=True)
    )
    limits = (pair.source.num_entities, pair.target.num_entities) * 2
    every = (trace.source_ids, trace.target_ids, trace.pair_source_ids, trace.pair_target_ids)
    is_inside = all(((ids >= 0) & (ids < limit)).all() for ids, limit in zip(every, limits, strict=True))
    if not is_same or not is_inside:
        return None, (f"{path.name} is of other links than links.tsv, so the steps are not known",)
    return trace, ()
