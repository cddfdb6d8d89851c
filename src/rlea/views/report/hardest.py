"""The error types of gold links, and the hardest pairs of a run with the neighbourhoods of both entities drawn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rlea.evaluation.gold_ranks import CORRECT, NO_LINK, NOT_A_CANDIDATE, WRONG_LINK, distinct
from rlea.graph import GraphPair, Ids, KnowledgeGraph
from rlea.graph.names import local_name
from rlea.views.report.plots import Neighbour, pair_plot

if TYPE_CHECKING:
    from rlea.agent.trace import Trace
    from rlea.evaluation.gold_ranks import GoldRanks
    from rlea.matching import Matching

PICTURES = 6  # per group
ROWS = 6  # neighbours drawn on either side
MOST_COMPARED = 5000  # missed gold links of the worst ranks whose neighbours are compared

# In the order of the page: the name, and what it means.
ERROR_TYPES = {
    CORRECT: ("correct", ""),
    WRONG_LINK: ("wrong link", "the source or the target has another link"),
    NO_LINK: ("no link", "neither has a link"),
    NOT_A_CANDIDATE: ("not a candidate", "neither was a candidate of the other"),
}


class ErrorCount(NamedTuple):
    """Number of gold links with this error type."""

    name: str
    meaning: str
    num_links: int
    share: float


def count_errors(types: NDArray[np.int8], *, with_candidates: bool) -> list[ErrorCount]:
    """The counts by error type, which add up to all gold links; empty without gold links."""
    kinds = [kind for kind in ERROR_TYPES if with_candidates or kind != NOT_A_CANDIDATE] if len(types) else []
    counts = [int((types == kind).sum()) for kind in kinds]
    return [ErrorCount(*ERROR_TYPES[kind], n, n / len(types)) for kind, n in zip(kinds, counts, strict=True)]


class HardPair(NamedTuple):
    """A pair for the page."""

    title: str
    source: str
    target: str
    source_id: str
    target_id: str
    lines: list[str]
    svg: str


@dataclass(frozen=True, eq=False)
class HardestPairs:
    """Chooses the hardest pairs of a run, and describes and draws them."""

    pair: GraphPair
    matching: Matching
    wrong: NDArray[np.bool_]  # (num_links,)
    ranks: GoldRanks | None = None
    trace: Trace | None = None

    def wrong_links(self) -> list[HardPair]:
        """Wrong links, the most confident first."""
        order = np.argsort(-self.matching.confidences, kind="stable")
        return [self._wrong_link(int(place)) for place in order[self.wrong[order]][:PICTURES]]

    def doubtful_links(self) -> list[HardPair]:
        """The least confident links, for runs without gold links."""
        found = []
        for place in np.argsort(self.matching.confidences, kind="stable")[:PICTURES].tolist():
            source, target, confidence = self._link(place)
            found.append(self._draw(f"Confidence {confidence:.3f}", source, target, self._step(source, target)))
        return found

    def missed_links(self, types: NDArray[np.int8], shown: Iterable[str] = ()) -> list[HardPair]:
        """Gold links that were not found, worst rank first; sources in `shown` are left out.

        Not being a candidate is the worst rank. Ties: fewest linked neighbours in common, then most neighbours.
        """
        gold = distinct(self.pair.test)
        taken = [self.pair.source.entity_index[name] for name in shown]
        missed = np.flatnonzero((types != CORRECT) & ~np.isin(gold.source_ids, taken))
        ranks = np.zeros(len(missed), dtype=np.int64)
        if self.ranks is not None:
            ranks = self.ranks.best_ranks[missed].astype(np.int64)
            # A pair that was scored later, though not a candidate, ranks above those that were never scored.
            ranks[ranks == 0] = np.iinfo(np.int32).max
            ranks[types[missed] == NOT_A_CANDIDATE] += 1
        order = np.argsort(-ranks, kind="stable")[:MOST_COMPARED]
        missed, ranks = missed[order], ranks[order]
        sources, targets = gold.source_ids[missed], gold.target_ids[missed]
        edges = neighbours(self.pair.source, sources.tolist())
        edges_back = neighbours(self.pair.target, targets.tolist())
        ranked = []
        for number, (source, target) in enumerate(zip(sources.tolist(), targets.tolist(), strict=True)):
            near, near_back = edges.get(source, {}), edges_back.get(target, {})
            common = sum(int(self._counterparts[one]) in near_back for one in near)
            num_near = len(near) + len(near_back)
            ranked.append((-int(ranks[number]), common, -num_near, source, target, int(missed[number])))
        return [
            self._missed_link(source, target, int(types[at])) for *_, source, target, at in sorted(ranked)[:PICTURES]
        ]

    # ---- descriptions -----------------------------------------------------------------------------------------------

    def _link(self, place: int) -> tuple[int, int, float]:
        matching = self.matching
        return int(matching.source_ids[place]), int(matching.target_ids[place]), float(matching.confidences[place])

    def _wrong_link(self, place: int) -> HardPair:
        source, target, confidence = self._link(place)
        gold = distinct(self.pair.test)
        lines = [
            f"Correct: {self.pair.target.names[right]}{self._rank(source, right)}."
            for right in gold.target_ids[gold.source_ids == source].tolist()
        ]
        lines += [
            f"The target belongs to {self.pair.source.names[owner]}."
            for owner in gold.source_ids[gold.target_ids == target].tolist()
        ]
        return self._draw(f"Wrong, confidence {confidence:.3f}", source, target, lines[:3] + self._step(source, target))

    def _missed_link(self, source: int, target: int, error_type: int) -> HardPair:
        matching, names, others = self.matching, self.pair.source.names, self.pair.target.names
        lines = []
        if self.ranks is not None and error_type != NOT_A_CANDIDATE:
            is_late = not any(self._ranks_of(source, target))
            late = "The pair became a candidate only through its neighbours."
            lines.append(late if is_late else f"The pair was a candidate{self._rank(source, target)}.")
        for place in np.flatnonzero(matching.source_ids == source)[:2].tolist():
            _, other, confidence = self._link(place)
            lines.append(f"The source was linked with {others[other]} ({confidence:.3f}).")
        for place in np.flatnonzero(matching.target_ids == target)[:2].tolist():
            other, _, confidence = self._link(place)
            lines.append(f"The target was linked with {names[other]} ({confidence:.3f}).")
        step = None if self.trace is None else self.trace.step(source)
        if self.trace is not None and step is not None and not (matching.source_ids == source).any():
            decided = int(self.trace.target_ids[step - 1])
            chosen = "this very pair" if decided == target else others[decided]
            confidence = float(self.trace.confidences[step - 1])
            lines.append(f"The agent chose {chosen} ({confidence:.3f}), but the link was dropped.")
        if not lines:
            lines.append("Neither of the two has a link.")
        return self._draw(ERROR_TYPES[error_type][0].capitalize(), source, target, lines)

    def _ranks_of(self, source: int, target: int) -> tuple[int, int]:
        """The ranks of a gold link among the candidates of its source and of its target; 0 if not a candidate."""
        assert self.ranks is not None
        (at,) = np.flatnonzero((self.ranks.source_ids == source) & (self.ranks.target_ids == target))
        return int(self.ranks.source_ranks[at]), int(self.ranks.target_ranks[at])

    def _rank(self, source: int, target: int) -> str:
        """The rank of a gold link, in brackets; empty if the run does not keep ranks."""
        if self.ranks is None:
            return ""
        rank, rank_back = self._ranks_of(source, target)
        if rank:
            return f" (ranked {ordinal(rank)})"
        return f" (ranked {ordinal(rank_back)}, from the target's side only)" if rank_back else " (not a candidate)"

    def _step(self, source: int, target: int) -> list[str]:
        step = None if self.trace is None else self.trace.step(source)
        if self.trace is None or step is None or self.trace.target_ids[step - 1] != target:
            return []
        return [f"Decided in step {step:,} of {len(self.trace):,}."]

    # ---- pictures ---------------------------------------------------------------------------------------------------

    @cached_property
    def _counterparts(self) -> Ids:
        """The target of every source entity, by its seed or its most confident link; -1 without one."""
        result = np.full(self.pair.source.num_entities, -1, dtype=np.int32)
        order = np.argsort(self.matching.confidences, kind="stable")
        result[self.matching.source_ids[order]] = self.matching.target_ids[order]
        result[self.pair.train.source_ids] = self.pair.train.target_ids
        return result

    @cached_property
    def _known(self) -> tuple[set[int], set[int], set[tuple[int, int]]]:
        """Targets with a link or seed, sources with a seed, and wrong pairs."""
        matching, seeds = self.matching, self.pair.train
        wrong = matching.source_ids[self.wrong].tolist(), matching.target_ids[self.wrong].tolist()
        linked = {*matching.target_ids.tolist(), *seeds.target_ids.tolist()}
        return linked, set(seeds.source_ids.tolist()), set(zip(*wrong, strict=True))

    def _draw(self, title: str, source: int, target: int, lines: Sequence[str]) -> HardPair:
        first, second = self.pair.source, self.pair.target
        there, (linked, seeds, wrong) = self._counterparts, self._known
        near = neighbours(first, [source]).get(source, {})
        near_back = neighbours(second, [target]).get(target, {})
        joined = {one: int(there[one]) for one in near if int(there[one]) in near_back}
        # Joined neighbours are drawn opposite each other, then those that are linked elsewhere, then the others.
        rows = sorted(near, key=lambda one: (one not in joined, there[one] < 0, one))
        met = list(dict.fromkeys(joined[one] for one in rows if one in joined))
        rows_back = [*met, *sorted(set(near_back) - set(met), key=lambda one: (one not in linked, one))]
        shown, shown_back = rows[:ROWS], rows_back[:ROWS]
        joins = []
        for row, one in enumerate(shown):
            if one in joined and joined[one] in shown_back:
                kind = "seed" if one in seeds else "bad" if (one, joined[one]) in wrong else "found"
                joins.append((row, shown_back.index(joined[one]), kind))
        left = [Neighbour(first.names[one], ", ".join(near[one]), bool(there[one] >= 0)) for one in shown]
        right = [Neighbour(second.names[one], ", ".join(near_back[one]), one in linked) for one in shown_back]
        names = first.names[source], second.names[target]
        svg = pair_plot(names, (left, right), joins, (len(rows) - len(shown), len(rows_back) - len(shown_back)))
        return HardPair(title, *names, first.entities[source], second.entities[target], list(lines), svg)


def neighbours(graph: KnowledgeGraph, entities: Iterable[int]) -> dict[int, dict[int, list[str]]]:
    """{entity: {neighbour: relations}} for some entities; "r →" leads to the neighbour, "← r" comes from it."""
    wanted = np.zeros(graph.num_entities, dtype=np.bool_)
    wanted[np.asarray(list(entities), dtype=np.int64)] = True
    triples = graph.triples[(wanted[graph.triples[:, 0]] | wanted[graph.triples[:, 2]])]
    found: dict[int, dict[int, list[str]]] = {}
    for head, relation, tail in triples.tolist():
        if head == tail:
            continue
        name = local_name(graph.relations[relation])
        if wanted[head]:
            found.setdefault(head, {}).setdefault(tail, []).append(f"{name} →")
        if wanted[tail]:
            found.setdefault(tail, {}).setdefault(head, []).append(f"← {name}")
    return found


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 4th, ..., 11th, ..., 21st."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number:,}{ending}"
