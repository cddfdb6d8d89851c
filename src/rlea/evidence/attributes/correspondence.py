"""Which attribute of the source goes with which of the target, found from the values themselves."""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

from rlea.arithmetic import log_of
from rlea.evidence.attributes.comparison import NUMBER_SCALE, compare
from rlea.evidence.attributes.index import Codes, count_overlap
from rlea.evidence.attributes.units import FACTORS, NO_UNIT
from rlea.evidence.attributes.values import NUMBER, Doubles, Told

MOST = 0.95  # strength of attributes that always agree: no file is without mistakes
DOUBT = 2.0  # entities that were never seen to agree, added to those that were seen
ENOUGH = 20  # seeds with both attributes, from which on seeds alone say how far they agree
_LEAST_RATIOS = 5  # numbers that must agree by a factor before it is believed
_UNIT = 1 << 20  # agreements are added up as whole numbers: their sum hangs on no order


@dataclass(frozen=True)
class Correspondence:
    """Two attributes, and how far they agree where both speak of the same entity."""

    source: str
    target: str
    strength: float  # from 0 to 1
    factor: float  # numbers of the source times this are numbers of the target
    compared: int  # pairs of entities, known or found, on which the strength rests; 0: on the overlap of values


@dataclass(frozen=True, eq=False)
class Table:
    """Strengths and factors of all pairs of attributes, (num_source_attributes, num_target_attributes)."""

    strength: Doubles
    factor: Doubles
    compared: NDArray[np.int64]


def overlap_table(told: Told, max_pairs: int) -> Table:
    """From nothing but the rare values that two attributes share: mutual, so that dates of death are no dates of birth.

    The share of the smaller one's values, times how near this comes to the best share either has with any.
    """
    shared, sources, targets = count_overlap(told, max_pairs)
    share = shared / (np.minimum(sources[:, None], targets[None, :]) + DOUBT)
    if share.size:
        # By the larger a pair is judged as well: of 3 values 3 are soon found among thousands.
        best = np.maximum(shared.max(axis=1, keepdims=True), shared.max(axis=0, keepdims=True))
        share *= np.divide(shared, best, out=np.zeros_like(share), where=best > 0)
    return Table(np.minimum(share, MOST), np.ones_like(share), np.zeros(share.shape, dtype=np.int64))


def learn_table(told: Told, prior: Table, seeds: Codes, found: Codes, num_entities: tuple[int, int]) -> Table:
    """From pairs of entities that are known (`seeds`) or thought (`found`) to be the same.

    Where seeds suffice, found pairs say nothing: they were found by agreeing.
    """
    factor = _learn_factors(told, np.concatenate([seeds, found]), num_entities[1])
    sums, counts = [], []
    for codes in (seeds, found):
        shape = prior.strength.shape
        agreed, seen = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
        _count_agreement(
            told.source,
            told.target,
            told.texts,
            codes // max(num_entities[1], 1),
            codes % max(num_entities[1], 1),
            factor,
            float(max(num_entities)),
            agreed,
            seen,
        )
        sums.append(agreed / _UNIT)
        counts.append(seen)
    suffices = counts[0] >= ENOUGH
    agreed = np.where(suffices, sums[0], sums[0] + sums[1])
    seen = np.where(suffices, counts[0], counts[0] + counts[1])
    # That they share values says less than that entities do, so by itself it counts for half.
    strength = (agreed + DOUBT * 0.5 * prior.strength) / (seen + DOUBT)
    return Table(np.minimum(strength, MOST), factor, seen)


def describe(told: Told, table: Table, least: float) -> tuple[Correspondence, ...]:
    """The pairs of at least a strength, the strongest first, then by name."""
    rows, columns = np.nonzero(table.strength >= least)
    found = [
        Correspondence(
            told.source_attributes[i],
            told.target_attributes[j],
            float(table.strength[i, j]),
            float(table.factor[i, j]),
            int(table.compared[i, j]),
        )
        for i, j in zip(rows.tolist(), columns.tolist(), strict=True)
    ]
    return tuple(sorted(found, key=lambda one: (-one.strength, -one.compared, one.source, one.target)))


def mutual_partners(
    told: Told, table: Table, *, least_strength: float, least_functionality: float
) -> NDArray[np.int32]:
    """For every source attribute the one of the target that it may contradict, -1 where there is none.

    Each is the other's strongest, and neither says two things of one entity.
    """
    strength = table.strength
    partners = np.full(len(strength), -1, dtype=np.int32)
    if strength.size == 0:
        return partners
    best, back = strength.argmax(axis=1), strength.argmax(axis=0)
    own = np.arange(len(strength))
    good = (
        (back[best] == own)
        & (strength[own, best] >= least_strength)
        & (told.source_functionality >= least_functionality)
        & (told.target_functionality[best] >= least_functionality)
    )
    partners[good] = best[good]
    return partners


def _learn_factors(told: Told, codes: Codes, num_targets: int) -> Doubles:
    """By what the numbers of two attributes differ where one says metres and the other feet; 1 unless this is clear."""
    shape = len(told.source_attributes), len(told.target_attributes)
    factors = np.ones(shape)
    one, other, ratios = _ratios(told.source, told.target, codes // max(num_targets, 1), codes % max(num_targets, 1))
    if len(ratios) == 0:
        return factors
    pairs, place = np.unique(one.astype(np.int64) * shape[1] + other, return_inverse=True)
    plain = np.bincount(place[np.abs(ratios) <= NUMBER_SCALE], minlength=len(pairs))
    total = np.bincount(place, minlength=len(pairs))
    best = plain.copy()
    for factor in FACTORS.tolist():
        near = np.bincount(place[np.abs(ratios - log_of(factor)) <= NUMBER_SCALE], minlength=len(pairs))
        better = (near > best) & (near >= _LEAST_RATIOS) & (2 * near > total)
        factors.ravel()[pairs[better]] = factor
        best = np.where(better, near, best)
    return factors


@numba.njit(cache=True)
def _ratios(source, target, source_ids, target_ids):  # type: ignore[no-untyped-def]
    """Attributes, and logarithms of target over source, of the bare positive numbers of the pairs."""
    size = 0
    for stage in range(2):
        if stage == 1:
            one, other, ratios = np.empty(size, np.int32), np.empty(size, np.int32), np.empty(size, np.float64)
        size = 0
        for k in range(len(source_ids)):
            i, j = source_ids[k], target_ids[k]
            for p in range(source.starts[i], source.starts[i + 1]):
                if source.kind[p] != NUMBER or source.low[p] <= 0.0:
                    continue
                for q in range(target.starts[j], target.starts[j + 1]):
                    if target.kind[q] != NUMBER or target.low[q] <= 0.0:
                        continue
                    if source.unit[p] != NO_UNIT and target.unit[q] != NO_UNIT:
                        continue
                    if stage == 1:
                        one[size], other[size] = source.attribute[p], target.attribute[q]
                        ratios[size] = log_of(target.low[q] / source.low[p])
                    size += 1
    return one, other, ratios


@numba.njit(cache=True)
def _count_agreement(source, target, texts, source_ids, target_ids, factor, num_entities, agreed, seen):  # type: ignore[no-untyped-def]
    """Add the best agreement of any two values, for every pair of attributes that a pair of entities has."""
    for k in range(len(source_ids)):
        i, j = source_ids[k], target_ids[k]
        p = source.starts[i]
        while p < source.starts[i + 1]:
            a = source.attribute[p]
            p_end = p
            while p_end < source.starts[i + 1] and source.attribute[p_end] == a:
                p_end += 1
            q = target.starts[j]
            while q < target.starts[j + 1]:
                b = target.attribute[q]
                q_end = q
                while q_end < target.starts[j + 1] and target.attribute[q_end] == b:
                    q_end += 1
                best = -1.0
                for x in range(p, p_end):
                    for y in range(q, q_end):
                        agreement, _ = compare(source, target, texts, x, y, factor[a, b], num_entities)
                        best = max(best, agreement)
                seen[a, b] += 1
                agreed[a, b] += np.int64(round(max(best, 0.0) * _UNIT))
                q = q_end
            p = p_end
