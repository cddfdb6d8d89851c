"""The whole method: entities and relations align each other, turn by turn, until little changes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rlea.evidence.paris.equivalence import Equivalence, equate, fix, maximal
from rlea.evidence.paris.facts import NAME, Doubles, Facts, gather_facts
from rlea.evidence.paris.inclusion import Inclusion, include, include_classes, weigh
from rlea.graph import GraphPair, Ids
from rlea.graph.schema import Alignment, Schema, surest_first
from rlea.progress import Progress, silent


@dataclass(frozen=True)
class ParisSettings:
    """What can be chosen; nothing here was tuned on links."""

    theta: float = 0.1  # first probability of every inclusion, and the least one of a pair that speaks, as the paper
    max_iterations: int = 10  # of the 15K benchmarks EN_FR needs 5, and D_W is near rest after 10
    min_change: float = 0.01  # stop once fewer of the assigned entities than this share changed partners, as the paper
    use_names: bool = False  # names made from identifiers are no facts of a graph, and the published runs had none
    max_pairs: int = 1_000_000  # of entities that one value or one pair of neighbours may speak for
    max_predicates: int = 2000  # relations, attributes, classes of a graph: tables of all pairs of them are held
    floor: float = 0.1  # least probability of the pairs, relations and classes that are returned

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
    """What one turn found."""

    pairs: int  # of at least the probability theta
    assigned: int  # source entities in the maximal assignment
    changed: float  # share of the assigned whose partners are not those of the turn before


@dataclass(frozen=True, eq=False)
class Paris:
    """What was found: pairs of entities sorted by source then target, and what corresponds in the schemas."""

    source_ids: Ids  # (num_pairs,)
    target_ids: Ids  # (num_pairs,)
    probabilities: Doubles  # (num_pairs,) in [floor, 1]; seeds have 1
    doubts: Doubles  # (num_pairs,) 1 - probability, also where that is too small to show in the probability
    relations: tuple[Alignment, ...]  # all alignments: the surest first
    attributes: tuple[Alignment, ...]  # "birthDate (year)" are the years of the dates of birthDate
    classes: tuple[Alignment, ...]
    iterations: tuple[Iteration, ...]

    def __len__(self) -> int:
        return len(self.source_ids)

    @property
    def schema(self) -> Schema:
        """What corresponds in the schemas, as writers and the report take it."""
        return Schema(self.relations, self.attributes, self.classes)


def run_paris(pair: GraphPair, settings: ParisSettings | None = None, *, progress: Progress = silent) -> Paris:
    """Align a pair of graphs by their facts, from nothing or from the seeds (`pair.train`), which stay as they are.

    Links for validation and testing are not read. The same input gives the same bytes.
    """
    settings = settings or ParisSettings()
    theta = settings.theta
    source, target = gather_facts(
        pair.source, pair.target, use_names=settings.use_names, max_predicates=settings.max_predicates
    )
    seeds = Equivalence.of(pair.train)
    spoken = found = seeds
    iterations: list[Iteration] = []
    for number in range(settings.max_iterations):
        # In the first turn only seeds have counterparts; without them every inclusion has the probability theta.
        forward = include(source, target, spoken, theta)
        backward = include(target, source, spoken.reversed(), theta)
        weights = weigh(source, target, forward, backward)
        found = fix(
            equate(source, target, spoken, weights, floor=min(theta, settings.floor), max_pairs=settings.max_pairs),
            seeds,
        )
        before, spoken = spoken, maximal(_above(found, theta), source.num_entities, target.num_entities)
        iterations.append(_describe(found, spoken, before))
        note = f"{iterations[-1].assigned:,} assigned, {iterations[-1].changed:.1%} of them anew"
        progress("paris", number + 1, settings.max_iterations, note)
        if iterations[-1].changed < settings.min_change:
            break
    progress("paris", settings.max_iterations, settings.max_iterations)
    # Nothing is said of relations whose facts have no counterparts, hence the 0.
    forward, backward = include(source, target, spoken, 0.0), include(target, source, spoken.reversed(), 0.0)
    found = _above(found, settings.floor)
    return Paris(
        found.source_ids,
        found.target_ids,
        1.0 - found.doubts,
        found.doubts,
        _relation_alignments(source, target, forward, backward, settings.floor),
        _attribute_alignments(source, target, forward, backward, settings.floor),
        _class_alignments(source, target, spoken, settings.floor),
        tuple(iterations),
    )


def _above(found: Equivalence, floor: float) -> Equivalence:
    kept = found.doubts <= 1.0 - floor
    return Equivalence(found.source_ids[kept], found.target_ids[kept], found.doubts[kept])


def _describe(found: Equivalence, spoken: Equivalence, before: Equivalence) -> Iteration:
    width = 1 + max((int(ids.max()) for ids in (spoken.target_ids, before.target_ids) if len(ids)), default=0)
    now, then = (pairs.source_ids.astype(np.int64) * width + pairs.target_ids for pairs in (spoken, before))
    moved = np.setxor1d(now, then) // width
    assigned = len(np.unique(spoken.source_ids))
    return Iteration(len(found), assigned, min(1.0, len(np.unique(moved)) / max(assigned, 1)))


def _relation_alignments(
    source: Facts, target: Facts, forward: Inclusion, backward: Inclusion, floor: float
) -> tuple[Alignment, ...]:
    there, back = forward.relations, backward.relations
    num_source, num_target = len(there), len(back)
    # One relation is in the inverse of another as that one is in its inverse: each half has its own counterpart.
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
    # The names of entities, where they are facts, are of no attribute that a graph has.
    return surest_first([one for one in found if not any(side.startswith(NAME) for side in (one.source, one.target))])


def _class_alignments(source: Facts, target: Facts, spoken: Equivalence, floor: float) -> tuple[Alignment, ...]:
    there, back = include_classes(source, target, spoken), include_classes(target, source, spoken.reversed())
    return surest_first(_alignments(source.classes, target.classes, there, back.T, floor))


def _alignments(
    sources: tuple[str, ...],
    targets: tuple[str, ...],
    there: Doubles,
    back: Doubles,
    floor: float,
    is_inverse: bool = False,
) -> list[Alignment]:
    """Pairs of which either inclusion reaches the floor."""
    rows, columns = np.nonzero(np.maximum(there, back) >= floor)
    return [
        Alignment(sources[i], targets[j], is_inverse, float(there[i, j]), float(back[i, j]))
        for i, j in zip(rows.tolist(), columns.tolist(), strict=True)
    ]
