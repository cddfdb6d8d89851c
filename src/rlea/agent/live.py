"""A run that goes on: what a person says of pairs counts at once, and what it touches is decided again.

An accepted pair is a seed from then on, a rejected one is never linked. Both change what is known of the entities
around: the same agent decides these again, in a game in which they alone are open and all other links stand. Where a
link changes, what is around it is decided again, too. An answer costs by what it touches, not by the graphs' size.

Answers also show how far confidences can be trusted, and those of all other links are corrected (`corrected`). Asked
pairs are no random sample: which are asked depends on their confidences. So what is corrected is how often pairs of a
confidence are right, never how many links are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rlea.agent.agent import Aligner, State
from rlea.agent.calibration import correct
from rlea.agent.kept import Kept
from rlea.arithmetic import log
from rlea.errors import InputError
from rlea.evidence.collect import Evidence
from rlea.graph import GraphPair, Ids, Links, choose_pool
from rlea.graph.neighbourhood import Neighbourhood
from rlea.matching import Matching
from rlea.progress import Progress, silent
from rlea.search.embeddings import Embeddings
from rlea.search.pairs import is_near

Doubles = NDArray[np.float64]

MOST_AROUND = 40  # neighbours of an entity that are decided again, those that identify best; a hub has more
MOST_ROUNDS = 3  # of deciding again what is around links that changed
CHANGED = 0.05  # change of a confidence that is worth telling
MOST_RIVALS = 3  # best candidates of a new entity that are decided again with it
MOST_REMEMBERED = 20  # answers that can be taken back one after the other without deciding again
SLACK = 1e-4  # confidences are kept this far from 0 and 1 where their logits are taken


@dataclass(frozen=True)
class Change:
    """A source whose link is another one now, or has another confidence. Target -1 is no link."""

    source_id: int
    target_before: int
    target_id: int
    confidence_before: float
    confidence: float


class LiveRun:
    """The links of a run, and the answers of people about pairs.

    >>> import rlea
    >>> from rlea.agent.live import LiveRun
    >>> run = LiveRun.start(rlea.Aligner(channels=("names", "structure")), rlea.read_demo())
    >>> pair = int(run.links.source_ids[0]), int(run.links.target_ids[0])
    >>> changes = run.answer(*pair, is_right=False)
    >>> pair in {(change.source_id, change.target_before) for change in changes}
    True
    """

    def __init__(self, aligner: Aligner, state: State, links: Matching) -> None:
        self.aligner, self._state = aligner, state
        graphs = state.problem.graphs
        self._graphs = graphs
        self._target_of, self._source_of = (
            np.full(size, -1, np.int32) for size in (graphs.num_source, graphs.num_target)
        )
        self._confidence_of = np.zeros(graphs.num_source)
        self._put(links)
        # Which entities can be decided again: neither seeds nor outside the pool.
        self._is_open = tuple(np.zeros(size, np.bool_) for size in (graphs.num_source, graphs.num_target))
        for part, ids in zip(self._is_open, (state.problem.source_ids, state.problem.target_ids), strict=True):
            part[ids] = True
        self.answers: dict[tuple[int, int], bool] = {}
        self._asked: dict[tuple[int, int], float] = {}  # confidence of each pair when its answer came
        # Called with the changes so far after a round: the first decides neighbours, later ones what these touch.
        self.on_round: Callable[[list[Change]], None] = lambda changes: None
        # The links after the last few answers, by all answers then: to take one back is to go back.
        self._past: dict[frozenset[tuple[tuple[int, int], bool]], tuple[Ids, Ids, Doubles]] = {}
        self._remember()

    @staticmethod
    def start(
        aligner: Aligner,
        pair: GraphPair,
        vectors: Sequence[Embeddings] = (),
        *,
        evidence: Evidence | None = None,
        pool: str = "all",
        progress: Progress = silent,
    ) -> LiveRun:
        """Decide a pair (and learn, if the aligner has not) and keep what deciding again takes."""
        if not aligner.is_fitted:
            aligner.fit(pair, vectors, evidence=evidence, progress=progress)
        _, source_ids, target_ids = choose_pool(pair, pool)
        outcome = aligner.decide(pair, source_ids, target_ids, vectors, evidence=evidence, progress=progress)
        if outcome.state is None:
            raise InputError("there is nothing to decide", remedy="give entities without a seed on both sides")
        return LiveRun(aligner, outcome.state(), outcome.last.matching)

    @staticmethod
    def resume(
        kept: Kept,
        pair: GraphPair,
        links: Matching,
        vectors: Sequence[Embeddings] = (),
        *,
        pool: str = "all",
        progress: Progress = silent,
    ) -> LiveRun:
        """Go on with a run by what it kept, with all links that it had found: nothing is learned or decided anew."""
        aligner = kept.aligner()
        _, source_ids, target_ids = choose_pool(pair, pool)
        state = aligner.resume(pair, source_ids, target_ids, kept.rating, vectors, progress=progress)
        return LiveRun(aligner, state, links)

    def __repr__(self) -> str:
        return f"LiveRun({len(self.links)} links, {len(self.answers)} answers)"

    @property
    def state(self) -> State:
        """What deciding again takes."""
        return self._state

    @property
    def links(self) -> Matching:
        """All links as they stand: those of the agent with corrected confidences, accepted ones with 1."""
        source_ids = np.flatnonzero(self._target_of >= 0).astype(np.int32)
        is_accepted = np.isin(source_ids, [source for (source, _), right in self.answers.items() if right])
        confidences = np.where(is_accepted, 1.0, self.corrected(self._confidence_of[source_ids]))
        return Matching.of(source_ids, self._target_of[source_ids], confidences)

    # ---- answers ----------------------------------------------------------------------------------------------------

    def answer(self, source_id: int, target_id: int, *, is_right: bool) -> list[Change]:
        """Take what is known of a pair now, and decide again what it touches."""
        return self.answer_all([(source_id, target_id, is_right)])

    def decide_about(self, source_ids: Ids, target_ids: Ids) -> list[Change]:
        """Decide about entities that are new, or of which more is known now, and again about what they touch.

        That are their neighbours, their best candidates, and what all of these are linked to.
        """
        before = self._target_of.copy(), self._confidence_of.copy()
        state, graphs = self._state, self._graphs
        ends = np.zeros(graphs.num_source, np.bool_), np.zeros(graphs.num_target, np.bool_)
        for part, ids in zip(ends, (source_ids, target_ids), strict=True):
            part[ids] = True
        own = state.some(*ends)
        pairs = state.proposals.some(own)
        pairs = pairs.some(is_near(pairs, state.described.logits[own], MOST_RIVALS))
        touched = {(source, int(self._target_of[source])) for source in source_ids.tolist()}
        touched |= {(int(self._source_of[target]), target) for target in target_ids.tolist()}
        touched |= {(source, -1) for source in pairs.source_ids.tolist()}
        touched |= {(-1, target) for target in pairs.target_ids.tolist()}
        if touched:
            self._decide_around(touched)
        self._past.clear()
        self._remember()
        return self._changes_since(*before)

    def become(self, answers: Mapping[tuple[int, int], bool]) -> list[Change]:
        """Take these answers and no others: what is new among them counts, what is not there any more is taken back.

        Answers about entities that are not to be matched, such as those of seeds, are left out.
        """
        gone = [pair for pair, is_right in self.answers.items() if answers.get(pair) != is_right]
        for pair in gone:
            del self.answers[pair]
            if pair not in answers:
                del self._asked[pair]
        new = [(*pair, is_right) for pair, is_right in answers.items() if pair not in self.answers]
        return self.answer_all([one for one in new if self.is_open(*one[:2])], gone)

    def is_open(self, source_id: int, target_id: int) -> bool:
        """Whether both entities are among those to be matched."""
        sides = zip((source_id, target_id), self._is_open, strict=True)
        return all(0 <= entity < len(part) and bool(part[entity]) for entity, part in sides)

    def answer_all(
        self, answers: Iterable[tuple[int, int, bool]], touched_too: Iterable[tuple[int, int]] = ()
    ) -> list[Change]:
        """Several answers at once, which costs less than one by one. A later answer replaces an earlier one."""
        touched: set[tuple[int, int]] = set(touched_too)
        for source_id, target_id, is_right in answers:
            self._check(source_id, target_id, is_right)
            pair = source_id, target_id
            touched.add(pair)
            if is_right and self._target_of[source_id] >= 0:  # the present partners are touched as well
                touched.add((source_id, int(self._target_of[source_id])))
            if is_right and self._source_of[target_id] >= 0:
                touched.add((int(self._source_of[target_id]), target_id))
            self._asked.setdefault(pair, self.confidence(*pair))
            self.answers[pair] = is_right
        return self._decide_again(touched)

    def withdraw(self, source_id: int, target_id: int) -> list[Change]:
        """Take an answer back."""
        self.answers.pop((source_id, target_id), None)
        self._asked.pop((source_id, target_id), None)
        return self._decide_again({(source_id, target_id)})

    def confidence(self, source_id: int, target_id: int) -> float:
        """Of a pair, as the agent has it, not corrected; 0 if it is no link."""
        return float(self._confidence_of[source_id]) if self._target_of[source_id] == target_id else 0.0

    def _check(self, source_id: int, target_id: int, is_right: bool) -> None:
        sides = ("source", source_id, self._is_open[0]), ("target", target_id, self._is_open[1])
        for side, entity, is_open in sides:
            if not 0 <= entity < len(is_open) or not is_open[entity]:
                raise InputError(
                    f"{side} entity {entity} is not among those to be matched", remedy="answer about others"
                )
        others = [
            other
            for other, right in self.answers.items()
            if right and (other[0] == source_id) != (other[1] == target_id)
        ]
        if is_right and others:
            raise InputError(
                f"pair {source_id}, {target_id} cannot be right: {others[0][0]}, {others[0][1]} was accepted",
                remedy="withdraw that answer first",
            )

    # ---- deciding again ---------------------------------------------------------------------------------------------

    def _decide_again(self, touched: set[tuple[int, int]]) -> list[Change]:
        """Decide what the pairs touch, then what is around links that changed; go back where links are known."""
        if not touched:
            return []
        before = self._target_of.copy(), self._confidence_of.copy()
        known = self._past.get(frozenset(self.answers.items()))
        if known is not None:
            self._target_of, self._source_of = known[0].copy(), known[1].copy()
            self._confidence_of = known[2].copy()
        else:
            self._decide_around(touched, lambda: self.on_round(self._changes_since(*before)))
            self._remember()
        return self._changes_since(*before)

    def _remember(self) -> None:
        links = self._target_of.copy(), self._source_of.copy(), self._confidence_of.copy()
        self._past[frozenset(self.answers.items())] = links
        while len(self._past) > MOST_REMEMBERED:
            del self._past[next(iter(self._past))]

    def _decide_around(self, touched: set[tuple[int, int]], tell: Callable[[], None] = lambda: None) -> None:
        accepted = [pair for pair, is_right in self.answers.items() if is_right]
        seeds = Links.union([self._state.problem.seeds, Links.of(*_columns(accepted))])
        rejected = [pair for pair, is_right in self.answers.items() if not is_right]
        barred = self._graphs.cannot_link.with_pairs(rejected)
        is_open = self._is_open[0].copy(), self._is_open[1].copy()
        for part, ids in zip(is_open, _columns(accepted), strict=True):
            part[ids] = False
        self._remove([(source, target) for source, target in touched])
        for source, target in accepted:
            self._remove([(source, int(self._target_of[source])), (int(self._source_of[target]), target)])
        self._put(Matching.of(*_columns(accepted), np.ones(len(accepted))))
        problem = replace(self._state.problem, graphs=replace(self._graphs, cannot_link=barred), seeds=seeds)
        for _ in range(MOST_ROUNDS):
            source_ids, target_ids = self._around(touched, is_open)
            if not len(source_ids) or not len(target_ids):
                break
            was = {int(source): int(self._target_of[source]) for source in source_ids}
            self._remove(list(was.items()))
            self._remove([(int(self._source_of[target]), int(target)) for target in target_ids])
            standing = self._standing(accepted)
            again = replace(problem, source_ids=source_ids, target_ids=target_ids)
            found = self.aligner.decide_some(self._state, again, standing)
            self._put(found.matching)
            now = {source: int(self._target_of[source]) for source in was}
            moved = {(source, target) for source, target in was.items() if now[source] != target}
            touched = {pair for pair in moved | {(source, now[source]) for source, _ in moved} if pair[1] >= 0}
            if not touched:
                break
            tell()

    def _changes_since(self, target_of: Ids, confidence_of: Doubles) -> list[Change]:
        """How links differ from what they were."""
        is_other = (target_of != self._target_of) | (np.abs(confidence_of - self._confidence_of) >= CHANGED)
        return [
            Change(
                source,
                int(target_of[source]),
                int(self._target_of[source]),
                float(confidence_of[source]),
                float(self._confidence_of[source]),
            )
            for source in np.flatnonzero(is_other).tolist()
        ]

    def _standing(self, accepted: Sequence[tuple[int, int]]) -> Matching:
        """Links that are not decided again; accepted ones are seeds."""
        source_ids = np.flatnonzero(self._target_of >= 0).astype(np.int32)
        source_ids = source_ids[~np.isin(source_ids, [source for source, _ in accepted])]
        return Matching.of(source_ids, self._target_of[source_ids], self._confidence_of[source_ids])

    def _around(
        self, pairs: Iterable[tuple[int, int]], is_open: tuple[NDArray[np.bool_], NDArray[np.bool_]]
    ) -> tuple[Ids, Ids]:
        """The entities of pairs, their neighbours, and what all of these are linked to, as far as they are open."""
        ends = list(pairs)
        sources, targets = ({end for end in column if end >= 0} for column in zip(*ends, strict=True))
        sources |= {near for source in sources for near in _neighbours(self._graphs.source, source)}
        targets |= {near for target in targets for near in _neighbours(self._graphs.target, target)}
        partners = {int(self._target_of[source]) for source in sources}
        sources |= {int(self._source_of[target]) for target in targets}
        targets |= partners
        found = []
        for part, ids in zip(is_open, (sources, targets), strict=True):
            own = np.array(sorted(ids - {-1}), np.int32)
            found.append(own[part[own]])
        return found[0], found[1]

    def _put(self, links: Matching) -> None:
        self._target_of[links.source_ids] = links.target_ids
        self._source_of[links.target_ids] = links.source_ids
        self._confidence_of[links.source_ids] = links.confidences

    def _remove(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Take links away; pairs that are none, or stand for no link, are left alone."""
        for source, target in pairs:
            if source >= 0 and target >= 0 and self._target_of[source] == target:
                self._target_of[source], self._source_of[target], self._confidence_of[source] = -1, -1, 0.0

    # ---- confidences ------------------------------------------------------------------------------------------------

    def corrected(self, confidences: Doubles) -> Doubles:
        """Confidences as the answers show them to be; those unlike all that were asked about stay."""
        asked = [(confidence, self.answers[pair]) for pair, confidence in self._asked.items() if confidence > 0]
        if not asked or not len(confidences):
            return confidences
        known, right = np.array([one for one, _ in asked]), np.array([answer for _, answer in asked], np.float64)
        return correct(_logits(confidences), _logits(known), right)


def _logits(confidences: Doubles) -> Doubles:
    kept = np.clip(confidences, SLACK, 1 - SLACK)
    return np.asarray(log(kept / (1 - kept)))


def _columns(pairs: Sequence[tuple[int, int]]) -> tuple[Ids, Ids]:
    both = np.array(pairs, np.int32).reshape(-1, 2)
    return both[:, 0], both[:, 1]


def _neighbours(graph: Neighbourhood, entity: int) -> list[int]:
    """The neighbours of an entity that identify it best, at most `MOST_AROUND`."""
    low, high = graph.starts[entity], graph.starts[entity + 1]
    order = np.argsort(-graph.functionality[graph.relation_ids[low:high]], kind="stable")[:MOST_AROUND]
    return [int(one) for one in graph.neighbour_ids[low:high][order]]
