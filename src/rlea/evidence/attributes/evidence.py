"""The score of a pair of entities: what speaks for it, weighed by rarity, less what speaks against it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from rlea.arithmetic import exp, log_of
from rlea.evidence.attributes.comparison import LEAST, compare
from rlea.evidence.attributes.correspondence import (
    Correspondence,
    Table,
    describe,
    learn_table,
    mutual_partners,
    overlap_table,
)
from rlea.evidence.attributes.index import Codes, share_jointly, share_keys, share_numbers
from rlea.evidence.attributes.values import Told, tell
from rlea.graph import GraphPair, Ids, KnowledgeGraph, Links
from rlea.progress import Progress, silent

Floats = NDArray[np.float32]

_MOST_AGREEMENTS = 128  # of one pair that are weighed; the first by attribute, should there be more


@dataclass(frozen=True)
class AttributeSettings:
    """What can be chosen; nothing here was tuned on links."""

    rounds: int = 2  # of learning which attributes correspond from the pairs found so far, after a first guess
    max_pairs: int = 100  # of entities that one value may make candidates of: ten by ten is rare among thousands
    max_joint_pairs: int = 20  # likewise for two values together
    max_neighbours: int = 10  # targets whose numbers are near one of the source, for them to be candidates
    least_strength: float = 0.1  # of a correspondence, for its values to speak
    joining_strength: float = 0.3  # likewise, for its values to make candidates
    anchor_score: float = 0.7  # from which on pairs that are each other's best teach which attributes correspond
    decay: float = 0.5  # weight of each further agreement, the rarest first: what agrees with one source seldom is news
    chance: float = 0.05  # expected strangers with a value that nobody shares
    max_conflict: float = 1.0  # what one contradiction takes off the log-odds at the most
    max_conflicts: float = 3.0  # and all of them together
    contradicting_strength: float = 0.5  # of a correspondence, for its values to contradict each other
    contradicting_functionality: float = 0.95  # entities over literals, of both its attributes, likewise
    floor: float = 1e-4  # least score of the pairs returned
    max_attributes: int = 2000  # of a graph, the most frequent: tables of all pairs of them are held

    def __post_init__(self) -> None:
        for name in ("max_pairs", "max_joint_pairs", "max_neighbours", "max_attributes"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1")
        for name in ("least_strength", "joining_strength", "anchor_score", "chance"):
            if not 0.0 < getattr(self, name) <= 1.0:
                raise ValueError(f"{name} must lie above 0 and be at most 1")
        for name in ("decay", "floor", "contradicting_strength", "contradicting_functionality"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ValueError(f"{name} must lie between 0 and 1")
        for name in ("rounds", "max_conflict", "max_conflicts"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative")


@dataclass(frozen=True, eq=False)
class AttributeEvidence:
    """Pairs of entities that share something telling, sorted by source then target.

    A score is the probability that the two are the same, as far as attributes tell and if every entity had one
    counterpart: the logistic function of `support - conflict - log(entities of the larger graph)`.
    """

    source_ids: Ids  # (num_pairs,)
    target_ids: Ids  # (num_pairs,)
    scores: Floats  # (num_pairs,) from 0 to 1
    support: Floats  # (num_pairs,) what agreements add to the log-odds
    conflict: Floats  # (num_pairs,) what contradictions take off
    correspondences: tuple[Correspondence, ...]  # the strongest first
    num_compared: int  # pairs looked at
    # Support and conflict of any pairs of entity ids, (num_pairs,) each, by the same correspondences.
    weigh: Callable[[Ids, Ids], tuple[Floats, Floats]]
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.source_ids)

    def as_dict(self) -> dict[str, Any]:
        """What the record of a run says."""
        return {
            "kind": "attributes",
            "pairs": len(self),
            "compared": self.num_compared,
            "correspondences": [
                {"source": one.source, "target": one.target, "strength": round(one.strength, 4), "factor": one.factor}
                for one in self.correspondences
            ],
            "notes": list(self.notes),
        }


def score_attributes(
    pair: GraphPair,
    settings: AttributeSettings | None = None,
    *,
    progress: Progress = silent,
) -> AttributeEvidence:
    """Score the pairs of entities whose literals have something telling in common.

    Which pairs are looked at follows from rare values; `AttributeEvidence.weigh` looks at any others. Seeds
    (`pair.train`) teach which attributes correspond, and pairs of seeds are scored like any other. Links for validation
    and testing are not read. The same input gives the same bytes, whatever the order of the entities.
    """
    settings = settings or AttributeSettings()
    num_entities = pair.source.num_entities, pair.target.num_entities
    steps = settings.rounds + 2
    progress("attributes", 0, steps, "reading values")
    told = tell(pair.source, pair.target, max_attributes=settings.max_attributes)
    silent_sides = [
        name for name, side in (("source", told.source), ("target", told.target)) if len(side.attribute) == 0
    ]
    if silent_sides:
        progress("attributes", steps, steps)
        return _nothing(f"no attribute values to compare in the {' and the '.join(silent_sides)}")
    width = num_entities[1]
    shared = share_keys(told.keys, width, settings.max_pairs)
    seeds = np.unique(_codes(pair.train.source_ids, pair.train.target_ids, width))
    first = overlap_table(told, settings.max_pairs)
    table, looked_at = first, shared
    for number in range(settings.rounds):
        progress("attributes", number + 1, steps, f"{len(looked_at):,} pairs")
        support, conflict = _weigh(told, table, looked_at, num_entities, settings)
        scores = _scores(support, conflict, num_entities)
        found = _anchors(looked_at, scores, pair.train, num_entities, settings.anchor_score)
        table = learn_table(told, first, seeds, found, num_entities)
        partners = np.argwhere(table.strength >= settings.joining_strength)
        near = share_numbers(told, partners, table.factor, width, settings.max_neighbours)
        joint = share_jointly(told, partners, table.factor, width, settings.max_joint_pairs)
        looked_at = np.unique(np.concatenate([shared, near, joint]))
    progress("attributes", steps - 1, steps, f"{len(looked_at):,} pairs")
    support, conflict = _weigh(told, table, looked_at, num_entities, settings)
    scores = _scores(support, conflict, num_entities)
    kept = (support > 0.0) & (scores >= settings.floor)

    def weigh(source_ids: Ids, target_ids: Ids) -> tuple[Floats, Floats]:
        weighed = _weigh(told, table, _codes(source_ids, target_ids, width), num_entities, settings)
        return weighed[0].astype(np.float32), weighed[1].astype(np.float32)

    progress("attributes", steps, steps, f"{int(kept.sum()):,} pairs share something telling")
    return AttributeEvidence(
        (looked_at[kept] // width).astype(np.int32),
        (looked_at[kept] % width).astype(np.int32),
        scores[kept],
        support[kept].astype(np.float32),
        conflict[kept].astype(np.float32),
        describe(told, table, settings.least_strength),
        len(looked_at),
        weigh,
    )


def compare_values(one: Sequence[str], other: Sequence[str]) -> float:
    """How far two literals agree, from 0 to 1; each is (value[, datatype[, language]]). 0 where they do not compare.

    >>> compare_values(["1 mile"], ["1.609 km"]) > 0.98, compare_values(["1984"], ["1984-05-02"])
    (True, 1.0)
    """
    import polars as pl

    triples = pl.DataFrame(schema=dict.fromkeys(("head", "relation", "tail"), pl.String))
    graphs = []
    for literal in (one, other):
        value, datatype, language = (*literal, "", "")[:3]
        row = {"entity": "e", "attribute": "a", "value": value, "datatype": datatype, "language": language}
        graphs.append(KnowledgeGraph.build(triples, pl.DataFrame([row])))
    told = tell(graphs[0], graphs[1])
    if not len(told.source.attribute) or not len(told.target.attribute):
        return 0.0
    return max(float(compare(told.source, told.target, told.texts, 0, 0, 1.0, 1.0)[0]), 0.0)


def _nothing(note: str) -> AttributeEvidence:
    def weigh(source_ids: Ids, target_ids: Ids) -> tuple[Floats, Floats]:
        return np.zeros(len(source_ids), np.float32), np.zeros(len(source_ids), np.float32)

    ids, none = np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.float32)
    return AttributeEvidence(ids, ids, none, none, none, (), 0, weigh, (note,))


def _codes(source_ids: NDArray[Any], target_ids: NDArray[Any], num_targets: int) -> Codes:
    return np.asarray(source_ids, dtype=np.int64) * num_targets + np.asarray(target_ids, dtype=np.int64)


def _scores(support: NDArray[np.float64], conflict: NDArray[np.float64], num_entities: tuple[int, int]) -> Floats:
    odds = support - conflict - log_of(float(max(*num_entities, 2)))
    return np.asarray(1.0 / (1.0 + exp(-odds)), dtype=np.float32)


def _anchors(codes: Codes, scores: Floats, seeds: Links, num_entities: tuple[int, int], least: float) -> Codes:
    """Pairs of at least a score that are the only best ones of both their entities, with no entity of the seeds."""
    rows, columns = codes // num_entities[1], codes % num_entities[1]
    chosen = scores >= least
    for ids, known in ((rows, seeds.source_ids), (columns, seeds.target_ids)):
        is_known = np.zeros(max(num_entities), dtype=np.bool_)
        is_known[known] = True
        chosen &= ~is_known[ids]
        best = np.zeros(max(num_entities), dtype=np.float32)
        np.maximum.at(best, ids, scores)
        is_best = scores == best[ids]
        chosen &= is_best & (np.bincount(ids[is_best], minlength=len(best))[ids] == 1)
    return codes[chosen]


def _weigh(
    told: Told, table: Table, codes: Codes, num_entities: tuple[int, int], settings: AttributeSettings
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    partners = mutual_partners(
        told,
        table,
        least_strength=settings.contradicting_strength,
        least_functionality=settings.contradicting_functionality,
    )
    support, conflict = np.zeros(len(codes)), np.zeros(len(codes))
    _weigh_pairs(
        told.source,
        told.target,
        told.texts,
        codes // num_entities[1],
        codes % num_entities[1],
        table.strength,
        table.factor,
        partners,
        float(max(num_entities)),
        settings.least_strength,
        settings.decay,
        settings.chance,
        settings.max_conflict,
        settings.max_conflicts,
        support,
        conflict,
    )
    return support, conflict


@numba.njit(cache=True, parallel=True)
def _weigh_pairs(  # type: ignore[no-untyped-def]
    source,
    target,
    texts,
    source_ids,
    target_ids,
    strength,
    factor,
    partners,
    num_entities,
    least_strength,
    decay,
    chance,
    max_conflict,
    max_conflicts,
    support,
    conflict,
):
    for k in numba.prange(len(source_ids)):
        weights = np.empty(_MOST_AGREEMENTS, dtype=np.float64)
        own = np.empty(_MOST_AGREEMENTS, dtype=np.int64)
        other = np.empty(_MOST_AGREEMENTS, dtype=np.int64)
        i, j = source_ids[k], target_ids[k]
        size = 0
        against = 0.0
        best, has_partner = -1.0, False
        for p in range(source.starts[i], source.starts[i + 1]):
            a = source.attribute[p]
            if p == source.starts[i] or source.attribute[p - 1] != a:
                best, has_partner = -1.0, False
            for q in range(target.starts[j], target.starts[j + 1]):
                b = target.attribute[q]
                likely = strength[a, b]
                if likely < least_strength:
                    continue
                agreement, count = compare(source, target, texts, p, q, factor[a, b], num_entities)
                if b == partners[a]:
                    has_partner = True
                    best = max(best, agreement)
                if agreement <= 0.0:
                    continue
                # The share of strangers that agree as well: those who do but for the right one, and those yet unseen.
                strangers = count - 1.0 + max(chance, min(1.0, max(source.repetition[a], target.repetition[b])))
                weight = agreement * log_of(likely * num_entities / strangers)
                if weight > 0.0 and size < _MOST_AGREEMENTS:
                    place = size
                    while place > 0 and weights[place - 1] < weight:
                        weights[place], own[place], other[place] = weights[place - 1], own[place - 1], other[place - 1]
                        place -= 1
                    weights[place], own[place], other[place] = weight, source.meaning[p], target.meaning[q]
                    size += 1
            is_last = p + 1 == source.starts[i + 1] or source.attribute[p + 1] != a
            if is_last and has_partner and 0.0 <= best < LEAST:
                against += min(max_conflict, -log_of(1.0 - strength[a, partners[a]]))
        total, factor_now, taken = 0.0, 1.0, 0
        for place in range(size):
            if _is_news(own, other, taken, own[place], other[place]):
                total += factor_now * weights[place]
                factor_now *= decay
                own[taken], other[taken] = own[place], other[place]
                taken += 1
        support[k] = total
        conflict[k] = min(against, max_conflicts)


@numba.njit(cache=True)
def _is_news(own, other, taken, p, q):  # type: ignore[no-untyped-def]
    """Whether two literals say more than those that were taken: a value counts once, and so does a year."""
    place = 0
    while place < taken and own[place] != p and other[place] != q:
        place += 1
    return place == taken
