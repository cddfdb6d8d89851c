"""A run that goes on: what a person says of pairs counts at once, and what it touches is decided again.

An accepted pair is a seed from then on, a rejected one is never linked. Both change what is known of the entities
around: the same agent decides these again, in a game in which they alone are open and all other links stand. Where a
link changes, what is around it is decided again, too. An answer costs by what it touches, not by the graphs' size.

Answers also show how far confidences can be trusted, and those of all other links are corrected (`corrected`). Asked
pairs are no random sample: which are asked depends on their confidences. So what is corrected is how often pairs of a
confidence are right, never how many links are.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rlea.agent.agent import Aligner, State, near_best
from rlea.agent.calibration import correct
from rlea.agent.kept import Kept
from rlea.agent.passes import Problem
from rlea.arithmetic import exp, log
from rlea.errors import InputError
from rlea.evidence.collect import Evidence
from rlea.graph import GraphPair, Ids, Links, choose_pool
from rlea.graph.neighbourhood import Neighbourhood
from rlea.matching import Matching
from rlea.progress import Progress, silent
from rlea.search.embeddings import Embeddings

Doubles = NDArray[np.float64]

MOST_AROUND = 40  # neighbours of an entity that are decided again, those that identify best; a hub has more
MOST_RIVALS = 3  # partners that the channels propose for an entity which loses its link: it may take one of them
MOST_ROUNDS = 3  # of deciding again what is around links that changed
CHANGED = 0.05  # change of a confidence that is worth telling
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
        self.aligner, self._state = aligner, _best_of(state, aligner.settings.kept)
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

    def copy(self) -> LiveRun:
        """The same run, to try an answer on: what is answered about one changes nothing of the other."""
        other = copy.copy(self)
        for name in ("_target_of", "_source_of", "_confidence_of", "answers", "_asked", "_past"):
            setattr(other, name, getattr(self, name).copy())
        other.on_round = lambda changes: None
        return other

    @property
    def asked(self) -> list[tuple[tuple[int, int], float, bool]]:
        """Every pair with an answer, the confidence that it had before, and the answer."""
        return [(pair, self._asked[pair], is_right) for pair, is_right in self.answers.items()]

    @property
    def state(self) -> State:
        """What it takes to decide again: the problem, the channels, the best pairs that these propose."""
        return self._state

    def __repr__(self) -> str:
        return f"LiveRun({len(self.links)} links, {len(self.answers)} answers)"

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
        touched = {(source, int(self._target_of[source])) for source in source_ids.tolist()}
        touched |= {(int(self._source_of[target]), target) for target in target_ids.tolist()}
        known = self._known_by(self.answers)
        self._remove(touched)
        for _ in range(MOST_ROUNDS if touched else 0):
            ids = [_of(part, is_open) for part, is_open in zip(self._around(touched), known.is_open, strict=True)]
            if not len(ids[0]) or not len(ids[1]):
                break
            own = {int(source): int(self._target_of[source]) for source in ids[0]}
            self._remove([*own.items(), *((int(self._source_of[target]), int(target)) for target in ids[1])])
            self._put(self._play(known, (ids[0], ids[1]), self._all_links((self._target_of, self._confidence_of))))
            touched = self._moved(own)
            if not touched:
                break
        self._past.clear()
        self._remember()
        return self._changes_since(*before)

    def become(self, answers: Mapping[tuple[int, int], bool]) -> list[Change]:
        """Take these answers and no others: what is new among them counts, what is not there any more is taken back.

        Answers about entities that are not to be matched, such as those of seeds, are left out.
        """
        earlier = self.answers.copy()
        gone = [pair for pair, is_right in self.answers.items() if answers.get(pair) != is_right]
        for pair in gone:
            del self.answers[pair]
            if pair not in answers:
                del self._asked[pair]
        new = [(*pair, is_right) for pair, is_right in answers.items() if pair not in self.answers]
        touched = set(gone) | self._take([one for one in new if self.is_open(*one[:2])])
        return self._decide_again(touched, earlier)

    def is_open(self, source_id: int, target_id: int) -> bool:
        """Whether both entities are among those to be matched."""
        sides = zip((source_id, target_id), self._is_open, strict=True)
        return all(0 <= entity < len(part) and bool(part[entity]) for entity, part in sides)

    def answer_all(self, answers: Iterable[tuple[int, int, bool]]) -> list[Change]:
        """Several answers at once, which costs less than one by one. A later answer replaces an earlier one."""
        earlier = self.answers.copy()
        return self._decide_again(self._take(answers), earlier)

    def _take(self, answers: Iterable[tuple[int, int, bool]]) -> set[tuple[int, int]]:
        """Keep answers; the pairs that they touch."""
        touched = set[tuple[int, int]]()
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
        return touched

    def withdraw(self, source_id: int, target_id: int) -> list[Change]:
        """Take an answer back."""
        earlier = self.answers.copy()
        self.answers.pop((source_id, target_id), None)
        self._asked.pop((source_id, target_id), None)
        return self._decide_again({(source_id, target_id)}, earlier)

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

    def _decide_again(self, touched: set[tuple[int, int]], earlier: dict[tuple[int, int], bool]) -> list[Change]:
        """Decide what the pairs touch, then what is around links that changed; go back where links are known.

        A game of a few entities never ends quite as the whole one did. So it is played twice, with the `earlier`
        answers and with those of now, and what differs between the two is what the answers have changed.
        """
        if not touched:
            return []
        before = self._target_of.copy(), self._confidence_of.copy()
        known = self._past.get(frozenset(self.answers.items()))
        if known is not None:
            self._target_of, self._source_of = known[0].copy(), known[1].copy()
            self._confidence_of = known[2].copy()
        else:
            self._decide_around(touched, earlier, before)
            self._remember()
        return self._changes_since(*before)

    def _decide_around(
        self, touched: set[tuple[int, int]], earlier: dict[tuple[int, int], bool], before: tuple[Ids, Doubles]
    ) -> None:
        was, now = self._known_by(earlier), self._known_by(self.answers)
        gone, new = set(touched), [pair for pair, is_right in self.answers.items() if is_right]
        for source, target in new:
            gone |= {(source, int(self._target_of[source])), (int(self._source_of[target]), target)}
        self._remove(gone)
        self._put(Matching.of(*_columns(new), np.ones(len(new))))
        ends = [{end for end in column if end >= 0} for column in zip(*touched, strict=True)]
        freed, start = {source for source, target in gone if before[0][source] == target}, self._all_links(before)
        for _ in range(MOST_ROUNDS):
            around = self._around(touched)
            ids = [_of(part, is_open) for part, is_open in zip(around, now.is_open, strict=True)]
            old = [_of(part | end, is_open) for part, end, is_open in zip(around, ends, was.is_open, strict=True)]
            if not len(ids[0]) or not len(ids[1]):
                break
            without = self._play(was, (old[0], old[1]), start)
            found = self._play(now, (ids[0], ids[1]), self._all_links((self._target_of, self._confidence_of)))
            merged = changed_by(start.some(np.isin(start.source_ids, ids[0])), without, found, freed)
            own = {int(source): int(self._target_of[source]) for source in ids[0]}
            self._remove(list(own.items()))  # one whose partner is not decided again has it back
            free = merged.some((self._source_of[merged.target_ids] < 0) & (self._target_of[merged.source_ids] < 0))
            self._put(free)
            touched = self._moved(own)
            if not touched:
                break
            self.on_round(self._changes_since(*before))

    def _moved(self, own: Mapping[int, int]) -> set[tuple[int, int]]:
        """The links that sources had and have now, of those that have another one now."""
        moved = {(source, target) for source, target in own.items() if self._target_of[source] != target}
        moved |= {(source, int(self._target_of[source])) for source, _ in moved}
        return {pair for pair in moved if pair[1] >= 0}

    def _remember(self) -> None:
        links = self._target_of.copy(), self._source_of.copy(), self._confidence_of.copy()
        self._past[frozenset(self.answers.items())] = links
        while len(self._past) > MOST_REMEMBERED:
            del self._past[next(iter(self._past))]

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

    def _known_by(self, answers: dict[tuple[int, int], bool]) -> _Known:
        """What answers say of the problem."""
        accepted = [pair for pair, is_right in answers.items() if is_right]
        rejected = [pair for pair, is_right in answers.items() if not is_right]
        problem, is_open = self._state.problem, (self._is_open[0].copy(), self._is_open[1].copy())
        for part, ids in zip(is_open, _columns(accepted), strict=True):
            part[ids] = False
        graphs = replace(self._graphs, cannot_link=self._graphs.cannot_link.with_pairs(rejected))
        seeds = Links.union([problem.seeds, Links.of(*_columns(accepted))])
        return _Known(replace(problem, graphs=graphs, seeds=seeds), is_open)

    def _play(self, known: _Known, ids: tuple[Ids, Ids], links: Matching) -> Matching:
        """Decide these entities, all other links standing."""
        if not len(ids[0]) or not len(ids[1]):
            return Matching.of([], [], [])
        standing = known.standing(links, ids)
        problem = replace(known.problem, source_ids=ids[0], target_ids=ids[1])
        return self.aligner.decide_some(self._state, problem, standing).matching

    def _all_links(self, arrays: tuple[Ids, Doubles]) -> Matching:
        source_ids = np.flatnonzero(arrays[0] >= 0).astype(np.int32)
        return Matching.of(source_ids, arrays[0][source_ids], arrays[1][source_ids])

    def _around(self, pairs: Iterable[tuple[int, int]]) -> tuple[set[int], set[int]]:
        """The entities of pairs, their neighbours and rivals, and what all of these are linked to."""
        ends = list(pairs)
        sources, targets = ({end for end in column if end >= 0} for column in zip(*ends, strict=True))
        rivals = self._rivals(sources, targets)
        sources |= {near for source in sources for near in _neighbours(self._graphs.source, source)}
        targets |= {near for target in targets for near in _neighbours(self._graphs.target, target)}
        sources, targets = sources | rivals[0], targets | rivals[1]
        partners = {int(self._target_of[source]) for source in sources}
        sources |= {int(self._source_of[target]) for target in targets}
        targets |= partners
        return sources, targets

    def _rivals(self, sources: set[int], targets: set[int]) -> tuple[set[int], set[int]]:
        """The sources that the channels would rather link to some targets, and the other way round."""
        pairs, logits = self._state.proposals, self._state.described.logits
        found: list[set[int]] = []
        for own, other, ends in (
            (pairs.target_ids, pairs.source_ids, targets),
            (pairs.source_ids, pairs.target_ids, sources),
        ):
            places = np.flatnonzero(np.isin(own, list(ends)))
            places = places[np.lexsort((other[places], -logits[places], own[places]))]
            ranks = np.arange(len(places)) - np.searchsorted(own[places], own[places])
            found.append({int(one) for one in other[places[ranks < MOST_RIVALS]]})
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


def _best_of(state: State, kept: int) -> State:
    """A state with the proposals that the passes of the whole run looked at: the best of either entity."""
    if not state.channels:
        return state
    pairs, told = state.proposals, state.described
    near = near_best(pairs, told.logits, [part.csls for part in state.fitted if part.csls is not None], kept)
    told = replace(told, features=told.features[near], logits=told.logits[near])
    return replace(state, proposals=pairs.some(near), described=told)


@dataclass(frozen=True, eq=False)
class _Known:
    """A problem with what answers say of it, and which entities they leave open."""

    problem: Problem
    is_open: tuple[NDArray[np.bool_], NDArray[np.bool_]]

    def standing(self, links: Matching, ids: tuple[Ids, Ids]) -> Matching:
        """The links of other entities than these, seeds left out."""
        is_free = ~(np.isin(links.source_ids, ids[0]) | np.isin(links.target_ids, ids[1]))
        return links.some(is_free & self.is_open[0][links.source_ids] & self.is_open[1][links.target_ids])


def changed_by(links: Matching, without: Matching, found: Matching, freed: set[int]) -> Matching:
    """Links with what the second of two games has changed beside the first.

    A source that both give the same target keeps its link, or none; the log-odds of a link that it keeps change by as
    much as between the games. Else, and where a source was `freed` of its link, it has what the second game says. Where
    two links want one target, those of the second game come first.
    """
    own, first, second = (_by_source(part) for part in (links, without, found))
    none = (-1, 0.0)
    taken, kept = list[tuple[float, int, int]](), list[tuple[float, int, int]]()
    for source in sorted({*own, *second}):
        was, before, after = own.get(source, none), first.get(source, none), second.get(source, none)
        if before[0] != after[0] or source in freed:
            sure = max(was[1], after[1]) if was[0] == after[0] and source not in freed else after[1]
            taken.append((-sure, source, after[0]))
        elif was[0] >= 0:
            shift = _logits(np.array([after[1], before[1]]))
            logit = _logits(np.array([was[1]])) + shift[0] - shift[1]
            kept.append((-float((1 / (1 + exp(-logit)))[0]), source, was[0]))
    rows, is_taken = list[tuple[int, int, float]](), set[int]()
    for sure, source, target in [*sorted(taken), *sorted(kept)]:
        if target >= 0 and target not in is_taken:
            is_taken.add(target)
            rows.append((source, target, -sure))
    return Matching.of(*(zip(*rows, strict=True) if rows else ([], [], [])))


def _by_source(links: Matching) -> dict[int, tuple[int, float]]:
    rows = zip(links.source_ids.tolist(), links.target_ids.tolist(), links.confidences.tolist(), strict=True)
    return {source: (target, confidence) for source, target, confidence in rows}


def _of(ids: set[int], is_open: NDArray[np.bool_]) -> Ids:
    """Those that are open, in order."""
    own = np.array(sorted(ids - {-1}), np.int32)
    return own[is_open[own]]


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
