"""The score of a pair of entities: agreeing values, weighted by rarity, minus contradicting ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import polars as pl
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
from rlea.evidence.attributes.values import ComparableValues, read_values
from rlea.graph import GraphPair, Ids, KnowledgeGraph, Links
from rlea.progress import Progress, silent, tick

Floats = NDArray[np.float32]

# None of these was tuned on links.
ROUNDS = 2  # of learning correspondences from the pairs found so far, after a first estimate
MAX_PAIRS = 100  # a value that more pairs of entities share proposes none: ten by ten is rare among thousands
MAX_JOINT_PAIRS = 20  # likewise for two values together
MAX_NEIGHBOURS = 10  # a number that is near those of more targets proposes none
LEAST_STRENGTH = 0.1  # of a correspondence for its values to count
JOINING_STRENGTH = 0.3  # of a correspondence for its values to propose pairs
ANCHOR_SCORE = 0.7  # from which pairs that are each other's best teach correspondences
DECAY = 0.5  # weight of each further agreement, rarest first: agreements are rarely independent
CHANCE = 0.05  # expected number of other entities with a value that none is known to share
MAX_CONFLICT = 1.0  # the most that one contradiction subtracts from the log-odds
MAX_CONFLICTS = 3.0  # the most that all contradictions subtract
CONTRADICTING_STRENGTH = 0.5  # of a correspondence for its values to contradict each other
CONTRADICTING_FUNCTIONALITY = 0.95  # entities / literals of both its attributes, likewise
FLOOR = 1e-4  # lowest score of the pairs returned
_MOST_AGREEMENTS = 128  # agreements of one pair that count; the first by attribute, should there be more


@dataclass(frozen=True, eq=False)
class AttributeEvidence:
    """Pairs of entities that share rare values, sorted by source then target.

    A score is the probability of a match by attributes alone, assuming that every entity has one counterpart: the
    logistic function of `support - conflict - log(entities of the larger graph)`.
    """

    source_ids: Ids  # (num_pairs,)
    target_ids: Ids  # (num_pairs,)
    scores: Floats  # (num_pairs,) from 0 to 1
    support: Floats  # (num_pairs,) what agreements add to the log-odds
    conflict: Floats  # (num_pairs,) what contradictions subtract
    correspondences: tuple[Correspondence, ...]  # strongest first
    num_compared: int  # pairs compared
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


def score_attributes(pair: GraphPair, *, progress: Progress = silent) -> AttributeEvidence:
    """Score the pairs of entities whose literals have rare values in common.

    Rare values propose the pairs; `AttributeEvidence.weigh` scores any others. Seeds (`pair.train`) teach which
    attributes correspond and are scored like any other pair. Validation and test links are not read. The same input
    gives the same bytes, whatever the order of the entities.
    """
    num_entities = pair.source.num_entities, pair.target.num_entities
    steps = ROUNDS + 2
    progress("attributes", 0, steps, "reading values")
    values = read_values(pair.source, pair.target)
    without_values = [
        name for name, side in (("source", values.source), ("target", values.target)) if len(side.attribute) == 0
    ]
    if without_values:
        progress("attributes", steps, steps)
        return _nothing(f"no attribute values to compare in the {' and the '.join(without_values)}")
    width = num_entities[1]
    shared = share_keys(values.keys, width, MAX_PAIRS)
    seeds = np.unique(_codes(pair.train.source_ids, pair.train.target_ids, width))
    first = overlap_table(values, MAX_PAIRS)
    table, compared = first, shared
    for number in range(ROUNDS + 1):
        progress("attributes", number + 1, steps, f"{len(compared):,} pairs")
        support, conflict = _weigh(values, table, compared, num_entities)
        odds = support - conflict - log_of(float(max(*num_entities, 2)))
        scores = np.asarray(1.0 / (1.0 + exp(-odds)), dtype=np.float32)
        if number < ROUNDS:
            tick("learning which attributes correspond")
            found = _anchors(compared, scores, pair.train, num_entities)
            table = learn_table(values, first, seeds, found, num_entities)
            partners = np.argwhere(table.strength >= JOINING_STRENGTH)
            near = share_numbers(values, partners, table.factor, width, MAX_NEIGHBOURS)
            tick("values in common")
            joint = share_jointly(values, partners, table.factor, width, MAX_JOINT_PAIRS)
            compared = np.unique(np.concatenate([shared, near, joint]))
    kept = (support > 0.0) & (scores >= FLOOR)

    def weigh(source_ids: Ids, target_ids: Ids) -> tuple[Floats, Floats]:
        weighed = _weigh(values, table, _codes(source_ids, target_ids, width), num_entities)
        return weighed[0].astype(np.float32), weighed[1].astype(np.float32)

    progress("attributes", steps, steps, f"{int(kept.sum()):,} pairs share rare values")
    return AttributeEvidence(
        (compared[kept] // width).astype(np.int32),
        (compared[kept] % width).astype(np.int32),
        scores[kept],
        support[kept].astype(np.float32),
        conflict[kept].astype(np.float32),
        describe(values, table, LEAST_STRENGTH),
        len(compared),
        weigh,
    )


def compare_values(one: Sequence[str], other: Sequence[str]) -> float:
    """How far two literals agree, from 0 (also: not comparable) to 1; each is (value[, datatype[, language]]).

    >>> compare_values(["1 mile"], ["1.609 km"]) > 0.98, compare_values(["1984"], ["1984-05-02"])
    (True, 1.0)
    """
    triples = pl.DataFrame(schema=dict.fromkeys(("head", "relation", "tail"), pl.String))
    graphs = []
    for literal in (one, other):
        value, datatype, language = (*literal, "", "")[:3]
        row = {"entity": "e", "attribute": "a", "value": value, "datatype": datatype, "language": language}
        graphs.append(KnowledgeGraph.build(triples, pl.DataFrame([row])))
    values = read_values(graphs[0], graphs[1])
    if not len(values.source.attribute) or not len(values.target.attribute):
        return 0.0
    return max(float(compare(values.source, values.target, values.texts, 0, 0, 1.0, 1.0)[0]), 0.0)


def _nothing(note: str) -> AttributeEvidence:
    def weigh(source_ids: Ids, target_ids: Ids) -> tuple[Floats, Floats]:
        return np.zeros(len(source_ids), np.float32), np.zeros(len(source_ids), np.float32)

    ids, none = np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.float32)
    return AttributeEvidence(ids, ids, none, none, none, (), 0, weigh, (note,))


def _codes(source_ids: NDArray[Any], target_ids: NDArray[Any], num_targets: int) -> Codes:
    return np.asarray(source_ids, dtype=np.int64) * num_targets + np.asarray(target_ids, dtype=np.int64)


def _anchors(codes: Codes, scores: Floats, seeds: Links, num_entities: tuple[int, int]) -> Codes:
    """Pairs of at least ANCHOR_SCORE that are the only best of both their entities; no entities of seeds."""
    rows, columns = codes // num_entities[1], codes % num_entities[1]
    chosen = scores >= ANCHOR_SCORE
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
    values: ComparableValues, table: Table, codes: Codes, num_entities: tuple[int, int]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    partners = mutual_partners(values, table, CONTRADICTING_STRENGTH, CONTRADICTING_FUNCTIONALITY)
    support, conflict = np.zeros(len(codes)), np.zeros(len(codes))
    _weigh_pairs(
        *(values.source, values.target, values.texts, codes // num_entities[1], codes % num_entities[1]),
        *(table.strength, table.factor, partners, float(max(num_entities)), support, conflict),
    )
    return support, conflict


@numba.njit(cache=True, parallel=True)
def _weigh_pairs(  # type: ignore[no-untyped-def]
    source, target, texts, source_ids, target_ids, strength, factor, partners, num_entities, support, conflict
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
                if likely < LEAST_STRENGTH:
                    continue
                agreement, count = compare(source, target, texts, p, q, factor[a, b], num_entities)
                if b == partners[a]:
                    has_partner = True
                    best = max(best, agreement)
                if agreement <= 0.0:
                    continue
                # Others that agree as much: those counted, less the right one, and those expected but not seen.
                others = count - 1.0 + max(CHANCE, min(1.0, max(source.repetition[a], target.repetition[b])))
                weight = agreement * log_of(likely * num_entities / others)
                if weight > 0.0 and size < _MOST_AGREEMENTS:
                    place = size
                    while place > 0 and weights[place - 1] < weight:
                        weights[place], own[place], other[place] = weights[place - 1], own[place - 1], other[place - 1]
                        place -= 1
                    weights[place], own[place], other[place] = weight, source.meaning[p], target.meaning[q]
                    size += 1
            is_last = p + 1 == source.starts[i + 1] or source.attribute[p + 1] != a
            if is_last and has_partner and 0.0 <= best < LEAST:
                against += min(MAX_CONFLICT, -log_of(1.0 - strength[a, partners[a]]))
        total, factor_now, taken = 0.0, 1.0, 0
        for place in range(size):
            if _is_new(own, other, taken, own[place], other[place]):
                total += factor_now * weights[place]
                factor_now *= DECAY
                own[taken], other[taken] = own[place], other[place]
                taken += 1
        support[k] = total
        conflict[k] = min(against, MAX_CONFLICTS)


@numba.njit(cache=True)
def _is_new(own, other, taken, p, q):  # type: ignore[no-untyped-def]
    """Whether neither literal repeats one that was taken: a value counts once, and so does a year."""
    place = 0
    while place < taken and own[place] != p and other[place] != q:
        place += 1
    return place == taken
