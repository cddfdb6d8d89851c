"""The whole method: entities and relations are aligned in turn, each from the other, until little changes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rlea.evidence.paris.equivalence import Equivalence, equate, fix, maximal
from rlea.evidence.paris.facts import NAME, Doubles, Facts, gather_facts
from rlea.evidence.paris.inclusion import Inclusion, include, include_classes, weigh
from rlea.graph import GraphPair, Ids
from rlea.graph.schema import Alignment, Schema, surest_first
from rlea.progress import Progress, silent, tick


@dataclass(frozen=True)
class ParisSettings:
    """The defaults are not tuned on links."""

    theta: float = 0.1  # first probability of every inclusion, and lowest of pairs used as evidence, as in the paper
    max_iterations: int = 10  # of the 15K benchmarks EN_FR needs 5, and D_W has nearly converged after 10
    min_change: float = 0.01  # stop when a smaller share of the assigned entities changes partners, as in the paper
    use_names: bool = False  # names made from identifiers are no facts of a graph; the published runs had none
    max_pairs: int = 1_000_000  # a value or a pair of neighbours that is evidence for more pairs is ignored
    max_predicates: int = 2000  # relations, attributes, classes per graph: tables of all pairs of them are kept
    floor: float = 0.1  # lowest probability of the pairs, relations and classes returned

    def __post_init__(self) -> None:
        for name in ("theta", "floor"):
            if not 0.0 < getattr(self, name) < 1.0:
                raise ValueError(f"{name} must lie between 0 and 1")
        for name in ("max_iterations", "max_pairs", "max_predicates"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1")
        if not 0.0 <= self.min_change <= 1.0:
            raise ValueError("min_change must be a share from 0 to 1")


@dataclass(frozen=True)
class Iteration:
    """The result of one iteration."""

    pairs: int  # of at least the probability theta
    assigned: int  # source entities in the maximal assignment
    changed: float  # share of them whose partners differ from those of the iteration before


@dataclass(frozen=True, eq=False)
class Paris:
    """Pairs of entities sorted by source then target, and the correspondences of both schemas."""

    source_ids: Ids  # (num_pairs,)
    target_ids: Ids  # (num_pairs,)
    probabilities: Doubles  # (num_pairs,) in [floor, 1]; seeds have 1
    doubts: Doubles  # (num_pairs,) 1 - probability, exact also where the probability rounds to 1
    relations: tuple[Alignment, ...]  # all alignments are sorted, surest first
    attributes: tuple[Alignment, ...]  # "birthDate (year)" stands for the years of the dates of birthDate
    classes: tuple[Alignment, ...]
    iterations: tuple[Iteration, ...]

    def __len__(self) -> int:
        return len(self.source_ids)

    @property
    def schema(self) -> Schema:
        """The correspondences of both schemas."""
        return Schema(self.relations, self.attributes, self.classes)


def run_paris(pair: GraphPair, settings: ParisSettings | None = None, *, progress: Progress = silent) -> Paris:
    """Align two graphs by their facts, starting from the seeds (`pair.train`), if any, which stay as they are.

    Validation and test links are not read. The same input gives the same bytes.
    """
    settings = settings or ParisSettings()
    theta = settings.theta
    source, target = gather_facts(
        pair.source, pair.target, use_names=settings.use_names, max_predicates=settings.max_predicates
    )
    seeds = Equivalence.of(pair.train)
    assigned = found = seeds
    iterations: list[Iteration] = []
    for number in range(settings.max_iterations):
        tick("comparing facts")
        # At first only seeds have counterparts; without seeds every inclusion has the probability theta.
        forward = include(source, target, assigned, theta)
        backward = include(target, source, assigned.reversed(), theta)
        weights = weigh(source, target, forward, backward)
        found = fix(
            equate(source, target, assigned, weights, floor=min(theta, settings.floor), max_pairs=settings.max_pairs),
            seeds,
        )
        if not pair.cannot_link.is_empty:
            found = found.some(pair.cannot_link.allows(found.source_ids, found.target_ids))
        likely = found.some(found.doubts <= 1.0 - theta)
        before, assigned = assigned, maximal(likely, source.num_entities, target.num_entities)
        iterations.append(_describe(found, assigned, before))
        note = f"{iterations[-1].assigned:,} assigned, {iterations[-1].changed:.1%} of them anew"
        progress("paris", number + 1, settings.max_iterations, note)
        if iterations[-1].changed < settings.min_change:
            break
    progress("paris", settings.max_iterations, settings.max_iterations)
    # 0: relations whose facts have no counterparts are not reported.
    forward, backward = include(source, target, assigned, 0.0), include(target, source, assigned.reversed(), 0.0)
    found = found.some(found.doubts <= 1.0 - settings.floor)
    return Paris(
        found.source_ids,
        found.target_ids,
        1.0 - found.doubts,
        found.doubts,
        _relation_alignments(source, target, forward, backward, settings.floor),
        _attribute_alignments(source, target, forward, backward, settings.floor),
        _class_alignments(source, target, assigned, settings.floor),
        tuple(iterations),
    )


def _describe(found: Equivalence, assigned: Equivalence, before: Equivalence) -> Iteration:
    now, then = (pairs.source_ids.astype(np.int64) << 32 | pairs.target_ids for pairs in (assigned, before))
    moved = np.setxor1d(now, then) >> 32
    num_assigned = len(np.unique(assigned.source_ids))
    return Iteration(len(found), num_assigned, min(1.0, len(np.unique(moved)) / max(num_assigned, 1)))


def _relation_alignments(
    source: Facts, target: Facts, forward: Inclusion, backward: Inclusion, floor: float
) -> tuple[Alignment, ...]:
    there, back = forward.relations, backward.relations
    num_source, num_target = len(there), len(back)
    # r is included in the inverse of q as the inverse of r is in q: each half of one table faces a half of the other.
    straight = _alignments(source.relations, target.relations, there[:, :num_target], back[:, :num_source].T, floor)
    inverse = _alignments(
        source.relations, target.relations, there[:, num_target:], back[:, num_source:].T, floor, is_inverse=True
    )
    return surest_first([*straight, *inverse])


def _attribute_alignments(
    source: Facts, target: Facts, forward: Inclusion, backward: Inclusion, floor: float
) -> tuple[Alignment, ...]:
    names = source.values.attributes, target.values.attributes
    found = _alignments(*names, forward.attributes, backward.attributes.T, floor)
    # Names used as facts are no attribute of a graph.
    return surest_first([one for one in found if not any(side.startswith(NAME) for side in (one.source, one.target))])


def _class_alignments(source: Facts, target: Facts, assigned: Equivalence, floor: float) -> tuple[Alignment, ...]:
    there, back = include_classes(source, target, assigned), include_classes(target, source, assigned.reversed())
    return surest_first(_alignments(source.classes, target.classes, there, back.T, floor))


def _alignments(
    sources: tuple[str, ...],
    targets: tuple[str, ...],
    there: Doubles,
    back: Doubles,
    floor: float,
    is_inverse: bool = False,
) -> list[Alignment]:
    """The pairs of which either inclusion reaches the floor."""
    rows, columns = np.nonzero(np.maximum(there, back) >= floor)
    return [
        Alignment(sources[i], targets[j], is_inverse, float(there[i, j]), float(back[i, j]))
        for i, j in zip(rows.tolist(), columns.tolist(), strict=True)
    ]
