"""Which attributes of the source correspond to which of the target, learned from their values."""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

from rlea.arithmetic import log_of
from rlea.evidence.attributes.comparison import NUMBER_SCALE, compare
from rlea.evidence.attributes.index import Codes, count_overlap
from rlea.evidence.attributes.units import FACTORS, NO_UNIT
from rlea.evidence.attributes.values import NUMBER, ComparableValues, Doubles

MOST = 0.95  # strength of attributes that always agree: no data is without mistakes
DOUBT = 2.0  # pseudo-count of entities that do not agree
ENOUGH = 20  # seeds with both attributes from which on only seeds count
_LEAST_RATIOS = 5  # numbers that must agree by a factor before it is used
_UNIT = 1 << 20  # agreements are added as whole numbers: the sum does not depend on the order


@dataclass(frozen=True)
class Correspondence:
    """Two attributes, and how far their values agree for the same entity."""

    source: str
    target: str
    strength: float  # from 0 to 1
    factor: float  # numbers of the source times this are numbers of the target
    compared: int  # pairs of entities from which the strength was estimated; 0: from the overlap of values


@dataclass(frozen=True, eq=False)
class Table:
    """Strengths and factors of all pairs of attributes, (num_source_attributes, num_target_attributes)."""

    strength: Doubles
    factor: Doubles
    compared: NDArray[np.int64]


def overlap_table(values: ComparableValues, max_pairs: int) -> Table:
    """Estimated from nothing but the rare values that two attributes share.

    The share of the smaller attribute's values, times the ratio to the best overlap that either has with any attribute,
    so that dates of death do not correspond to dates of birth.
    """
    shared, sources, targets = count_overlap(values, max_pairs)
    share = shared / (np.minimum(sources[:, None], targets[None, :]) + DOUBT)
    if share.size:
        # The larger attribute counts too: 3 of 3 values are easily found among thousands.
        best = np.maximum(shared.max(axis=1, keepdims=True), shared.max(axis=0, keepdims=True))
        share *= np.divide(shared, best, out=np.zeros_like(share), where=best > 0)
    return Table(np.minimum(share, MOST), np.ones_like(share), np.zeros(share.shape, dtype=np.int64))


def learn_table(
    values: ComparableValues, prior: Table, seeds: Codes, found: Codes, num_entities: tuple[int, int]
) -> Table:
    """Estimated from pairs of entities that are known (`seeds`) or believed (`found`) to be the same.

    Where there are enough seeds, found pairs do not count: they were found because their values agree.
    """
    factor = _learn_factors(values, np.concatenate([seeds, found]), num_entities[1])
    sums, counts = [], []
    for codes in (seeds, found):
        shape = prior.strength.shape
        agreed, seen = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
        ids = codes // max(num_entities[1], 1), codes % max(num_entities[1], 1)
        sides = values.source, values.target, values.texts
        _count_agreement(*sides, *ids, factor, float(max(num_entities)), agreed, seen)
        sums.append(agreed / _UNIT)
        counts.append(seen)
    suffices = counts[0] >= ENOUGH
    agreed = np.where(suffices, sums[0], sums[0] + sums[1])
    seen = np.where(suffices, counts[0], counts[0] + counts[1])
    # Shared values are weaker evidence than agreeing entities, so the prior counts half.
    strength = (agreed + DOUBT * 0.5 * prior.strength) / (seen + DOUBT)
    return Table(np.minimum(strength, MOST), factor, seen)


def describe(values: ComparableValues, table: Table, least: float) -> tuple[Correspondence, ...]:
    """The pairs of at least the strength `least`, strongest first, then by name."""
    rows, columns = np.nonzero(table.strength >= least)
    found = [
        Correspondence(
            values.source_attributes[i],
            values.target_attributes[j],
            float(table.strength[i, j]),
            float(table.factor[i, j]),
            int(table.compared[i, j]),
        )
        for i, j in zip(rows.tolist(), columns.tolist(), strict=True)
    ]
    return tuple(sorted(found, key=lambda one: (-one.strength, -one.compared, one.source, one.target)))


def mutual_partners(
    values: ComparableValues, table: Table, least_strength: float, least_functionality: float
) -> NDArray[np.int32]:
    """For every source attribute the target attribute that it may contradict, -1 for none; (num_source_attributes,).

    Each is the other's strongest, and both have (nearly always) one value per entity.
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
        & (values.source_functionality >= least_functionality)
        & (values.target_functionality[best] >= least_functionality)
    )
    partners[good] = best[good]
    return partners


def _learn_factors(values: ComparableValues, codes: Codes, num_targets: int) -> Doubles:
    """The factor between the numbers of two attributes, such as metres and feet; 1 unless another is clear."""
    shape = len(values.source_attributes), len(values.target_attributes)
    factors = np.ones(shape)
    one, other, ratios = _ratios(
        values.source, values.target, codes // max(num_targets, 1), codes % max(num_targets, 1)
    )
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
    """Attributes, and logarithms of target over source, of the positive numbers without units of the pairs."""
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
def _end_of_run(values, start, stop):  # type: ignore[no-untyped-def]
    end = start
    while end < stop and values[end] == values[start]:
        end += 1
    return end


@numba.njit(cache=True)
def _count_agreement(source, target, texts, source_ids, target_ids, factor, num_entities, agreed, seen):  # type: ignore[no-untyped-def]
    """Add up the best agreement of any two values for every pair of attributes that a pair of entities has."""
    for k in range(len(source_ids)):
        i, j = source_ids[k], target_ids[k]
        p = source.starts[i]
        while p < source.starts[i + 1]:
            a, p_end = source.attribute[p], _end_of_run(source.attribute, p, source.starts[i + 1])
            q = target.starts[j]
            while q < target.starts[j + 1]:
                b, q_end = target.attribute[q], _end_of_run(target.attribute, q, target.starts[j + 1])
                best = -1.0
                for x in range(p, p_end):
                    for y in range(q, q_end):
                        agreement, _ = compare(source, target, texts, x, y, factor[a, b], num_entities)
                        best = max(best, agreement)
                seen[a, b] += 1
                agreed[a, b] += np.int64(round(max(best, 0.0) * _UNIT))
                q = q_end
            p = p_end
