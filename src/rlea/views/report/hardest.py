"""The pairs that a run found hardest, with both neighbourhoods drawn: where to look when something went wrong."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rlea.evaluation.gold_ranks import RIGHT, UNREACHED, distinct
from rlea.graph import GraphPair, Ids, KnowledgeGraph
from rlea.graph.names import local_name
from rlea.views.report.fates import FATES
from rlea.views.report.plots import Neighbour, pair_plot

if TYPE_CHECKING:
    from rlea.agent.trace import Trace
    from rlea.evaluation.gold_ranks import Standing
    from rlea.matching import Matching

PICTURES = 6  # of either kind
ROWS = 6  # neighbours drawn on either side
NO_CANDIDATE = "was not among the candidates"
LOOKED_AT = 5000  # gold links of the worst places whose neighbours are compared


class Hard(NamedTuple):
    """A pair for the page: a heading, the two entities, a few sentences and the picture."""

    title: str
    source: str
    target: str
    source_id: str
    target_id: str
    lines: list[str]
    svg: str


@dataclass(frozen=True, eq=False)
class Drawing:
    """The links of a run and its seeds, as far as pictures need them."""

    pair: GraphPair
    matching: Matching
    wrong: NDArray[np.bool_]  # (num_links,)
    standing: Standing | None = None
    trace: Trace | None = None

    # ---- which pairs ------------------------------------------------------------------------------------------------

    def wrong_links(self) -> list[Hard]:
        """Wrong links, the surest first."""
        sure = np.argsort(-self.matching.confidences, kind="stable")
        return [self._wrong_link(int(place)) for place in sure[self.wrong[sure]][:PICTURES]]

    def doubtful_links(self) -> list[Hard]:
        """The least sure links, for runs that nobody can judge."""
        places = np.argsort(self.matching.confidences, kind="stable")[:PICTURES]
        found = []
        for place in places.tolist():
            source, target = int(self.matching.source_ids[place]), int(self.matching.target_ids[place])
            title = f"Confidence {self.matching.confidences[place]:.3f}"
            found.append(self._draw(title, source, target, self._step(source, target)))
        return found

    def missed_links(self, fates: NDArray[np.int8], shown: Iterable[str] = ()) -> list[Hard]:
        """Gold links that were not found, those first that stood worst; not those of sources `shown` already.

        No candidate at all is the worst place. Among equals, those with the fewest linked neighbours in common come
        first, and of these the ones with the most neighbours.
        """
        gold = distinct(self.pair.test)
        taken = [self.pair.source.entity_index[name] for name in shown]
        missed = np.flatnonzero((fates != RIGHT) & ~np.isin(gold.source_ids, taken))
        places = np.zeros(len(missed), dtype=np.int64)
        if self.standing is not None:
            places = self.standing.best_places[missed].astype(np.int64)
            # No candidate, but weighed later, stands before those that nobody ever looked at.
            places[places == 0] = np.iinfo(np.int32).max
            places[fates[missed] == UNREACHED] += 1
        order = np.argsort(-places, kind="stable")[:LOOKED_AT]
        missed, places = missed[order], places[order]
        sources, targets = gold.source_ids[missed], gold.target_ids[missed]
        edges = neighbours(self.pair.source, sources.tolist())
        edges_back = neighbours(self.pair.target, targets.tolist())
        ranked = []
        for number, (source, target) in enumerate(zip(sources.tolist(), targets.tolist(), strict=True)):
            near, near_back = edges.get(source, {}), edges_back.get(target, {})
            common = sum(int(self._there[one]) in near_back for one in near)
            num_near = len(near) + len(near_back)
            ranked.append((-int(places[number]), common, -num_near, source, target, int(missed[number])))
        return [
            self._missed_link(source, target, int(fates[at])) for *_, source, target, at in sorted(ranked)[:PICTURES]
        ]

    # ---- what is said of them ---------------------------------------------------------------------------------------

    def _wrong_link(self, place: int) -> Hard:
        source, target = int(self.matching.source_ids[place]), int(self.matching.target_ids[place])
        gold = distinct(self.pair.test)
        lines = []
        for right in gold.target_ids[gold.source_ids == source].tolist():
            stood = self._stood(source, right)
            lines.append(f"Right would be {self.pair.target.names[right]}{', which ' if stood else ''}{stood}.")
        lines += [
            f"The target belongs to {self.pair.source.names[owner]}."
            for owner in gold.source_ids[gold.target_ids == target].tolist()
        ]
        title = f"Wrong, confidence {self.matching.confidences[place]:.3f}"
        return self._draw(title, source, target, lines[:3] + self._step(source, target))

    def _missed_link(self, source: int, target: int, fate: int) -> Hard:
        lines = []
        matching, names, others = self.matching, self.pair.source.names, self.pair.target.names
        if self.standing is not None and fate != UNREACHED:
            stood = self._stood(source, target)
            late = "The pair was no candidate at first; its neighbours brought it in."
            lines.append(late if stood == NO_CANDIDATE else f"The target {stood}.")
        for place in np.flatnonzero(matching.source_ids == source)[:2].tolist():
            sure = matching.confidences[place]
            lines.append(f"The source was linked with {others[matching.target_ids[place]]} ({sure:.3f}).")
        for place in np.flatnonzero(matching.target_ids == target)[:2].tolist():
            sure = matching.confidences[place]
            lines.append(f"The target was linked with {names[matching.source_ids[place]]} ({sure:.3f}).")
        step = None if self.trace is None else self.trace.step(source)
        if self.trace is not None and step is not None and not (matching.source_ids == source).any():
            sure = self.trace.confidences[step - 1]
            decided = int(self.trace.target_ids[step - 1])
            chosen = "this very pair" if decided == target else others[decided]
            lines.append(f"The agent chose {chosen} ({sure:.3f}), and the link was not kept.")
        if not lines:
            lines.append("Neither of the two has a link.")
        return self._draw(FATES[fate][0].capitalize(), source, target, lines)

    def _stood(self, source: int, target: int) -> str:
        """Where the target of a gold pair stood, as the end of a sentence; empty where the run does not tell."""
        if self.standing is None:
            return ""
        (at,) = np.flatnonzero((self.standing.source_ids == source) & (self.standing.target_ids == target))
        place, back = int(self.standing.source_places[at]), int(self.standing.target_places[at])
        if place:
            return f"stood in place {place} among the candidates"
        if back:
            return f"was a candidate only from its own side (place {back})"
        return NO_CANDIDATE

    def _step(self, source: int, target: int) -> list[str]:
        step = None if self.trace is None else self.trace.step(source)
        if self.trace is None or step is None or self.trace.target_ids[step - 1] != target:
            return []
        return [f"Decided in step {step:,} of {len(self.trace):,}."]

    # ---- pictures ---------------------------------------------------------------------------------------------------

    @cached_property
    def _there(self) -> Ids:
        """The target of every source entity, a seed's or the surest link's; -1 without one."""
        result = np.full(self.pair.source.num_entities, -1, dtype=np.int32)
        order = np.argsort(self.matching.confidences, kind="stable")
        result[self.matching.source_ids[order]] = self.matching.target_ids[order]
        result[self.pair.train.source_ids] = self.pair.train.target_ids
        return result

    @cached_property
    def _linked_targets(self) -> NDArray[np.bool_]:
        result = np.zeros(self.pair.target.num_entities, dtype=np.bool_)
        result[self.matching.target_ids] = True
        result[self.pair.train.target_ids] = True
        return result

    @cached_property
    def _seeds(self) -> frozenset[int]:
        return frozenset(self.pair.train.source_ids.tolist())

    @cached_property
    def _wrong_pairs(self) -> frozenset[tuple[int, int]]:
        ids = self.matching.source_ids[self.wrong].tolist(), self.matching.target_ids[self.wrong].tolist()
        return frozenset(zip(*ids, strict=True))

    def _draw(self, title: str, source: int, target: int, lines: Sequence[str]) -> Hard:
        first, second = self.pair.source, self.pair.target
        near = neighbours(first, [source]).get(source, {})
        near_back = neighbours(second, [target]).get(target, {})
        joined = {one: int(self._there[one]) for one in near if int(self._there[one]) in near_back}
        # Joined neighbours stand opposite each other, then those that are linked elsewhere, then the others.
        rows = sorted(near, key=lambda one: (one not in joined, self._there[one] < 0, one))
        met = list(dict.fromkeys(joined[one] for one in rows if one in joined))
        others = sorted(set(near_back) - set(met), key=lambda one: (not self._linked_targets[one], one))
        rows_back = [*met, *others]
        shown, shown_back = rows[:ROWS], rows_back[:ROWS]
        joins = []
        for row, one in enumerate(shown):
            if one in joined and joined[one] in shown_back:
                kind = "seed" if one in self._seeds else "bad" if (one, joined[one]) in self._wrong_pairs else "found"
                joins.append((row, shown_back.index(joined[one]), kind))
        svg = pair_plot(
            (first.names[source], second.names[target]),
            (
                [Neighbour(first.names[one], ", ".join(near[one]), bool(self._there[one] >= 0)) for one in shown],
                [
                    Neighbour(second.names[one], ", ".join(near_back[one]), bool(self._linked_targets[one]))
                    for one in shown_back
                ],
            ),
            joins,
            (len(rows) - len(shown), len(rows_back) - len(shown_back)),
        )
        ends = first.names[source], second.names[target], first.entities[source], second.entities[target]
        return Hard(title, *ends, list(lines), svg)


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
