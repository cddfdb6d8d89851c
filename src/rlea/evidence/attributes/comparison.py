"""Comparing two literals: how far they agree, from 0 to 1, and how many entities would agree as much."""

from __future__ import annotations

import math

import numba
import numpy as np

from rlea.arithmetic import cos_of, exp_of
from rlea.evidence.attributes.values import CODE, DATE, NUM_ORDERED, NUMBER, PLACE, TEXT, day_number
from rlea.search.rows import next_shared

NUMBER_SCALE = 0.02  # relative error at which numbers agree by 1/e: figures of other years or sources
DATE_SCALE = 0.6  # likewise for dates, in units of the coarser: the next year, or the next day, agrees by 0.19
PLACE_SCALE = 0.05  # likewise for places, in degrees (5.6 km): sources put a town's point that far apart
PLACE_GRAIN = 0.01  # degrees; no two maps agree more closely
CORE_AGREEMENT = 0.8  # of codes that differ by letters that one lacks ("0050928" and "tt0050928")
DEGREE = math.pi / 180  # in radians
LEAST = 0.1  # less agreement counts as none
UNLIKE = -1.0  # not comparable
TEXT_NOTHING = 0.5  # share in common at which texts agree by 0: they are unrelated more often than not
TEXT_NEIGHBOURS = 10.0  # texts assumed to lie between equal and wholly different ones


# Passing the many arrays of a side costs time, so what is called most often (for texts) is inlined.
@numba.njit(cache=True, inline="always")
def compare(source, target, texts, p, q, factor, num_entities):  # type: ignore[no-untyped-def]
    """Agreement of literal p of the source with literal q of the target, and the entities that share as much.

    The agreement is in [0, 1], or UNLIKE where the two cannot be compared. Numbers of the source are multiplied by
    `factor`. The second result is the larger of the counts in both graphs, at least 1; `num_entities` is the size of
    the larger graph.
    """
    one, other = source.kind[p], target.kind[q]
    if one >= TEXT and other >= TEXT:
        return _compare_texts(source, target, texts, p, q, num_entities)
    if one == NUMBER and other == NUMBER:
        return _compare_numbers(source, target, p, q, factor)
    if one == PLACE and other == PLACE:
        return _compare_places(source, target, p, q)
    if one in (NUMBER, DATE) and other in (NUMBER, DATE):
        return _compare_dates(source, target, p, q)
    if _shares_core(source, target, p, q):
        return CORE_AGREEMENT, _most(source.core_count[source.core[p]], target.core_count[target.core[q]])
    return UNLIKE, 1.0


@numba.njit(cache=True, inline="always")
def _shares_core(source, target, p, q):  # type: ignore[no-untyped-def]
    """The same digits, where one of them has no letters at all: tt0050928 and nm0050928 are a film and a person."""
    return source.core[p] >= 0 and source.core[p] == target.core[q] and (source.is_bare[p] or target.is_bare[q])


@numba.njit(cache=True)
def _most(one, other):  # type: ignore[no-untyped-def]
    return float(max(one, other, 1))


@numba.njit(cache=True)
def _between(side, values, attribute, kind, low, high):  # type: ignore[no-untyped-def]
    """How many ordered values of an attribute lie from low to high."""
    group = attribute * NUM_ORDERED + kind
    own = values[side.ordered_starts[group] : side.ordered_starts[group + 1]]
    return np.searchsorted(own, high, side="right") - np.searchsorted(own, low, side="left")


@numba.njit(cache=True)
def _error(x, y):  # type: ignore[no-untyped-def]
    larger = max(abs(x), abs(y))
    return 0.0 if larger == 0.0 else abs(x - y) / larger


@numba.njit(cache=True)
def _compare_numbers(source, target, p, q, factor):  # type: ignore[no-untyped-def]
    one, other = source.unit[p], target.unit[q]
    if one and other:
        if one != other:
            return UNLIKE, 1.0
        error = _error(source.low[p], target.low[q])
    elif one or other:
        # "120 km" and "120", or "120000" where all else is in metres.
        error = min(_error(source.written[p], target.written[q]), _error(source.low[p] * factor, target.low[q]))
    else:
        error = _error(source.low[p] * factor, target.low[q])
    agreement = exp_of(-error / NUMBER_SCALE)
    if agreement < LEAST:
        return 0.0, 1.0
    count = 1
    width = max(error, 1e-9)
    for side, place in ((source, p), (target, q)):
        value = side.low[place]
        reach = abs(value) * width
        count = max(count, _between(side, side.sorted_low, side.attribute[place], NUMBER, value - reach, value + reach))
    return agreement, float(count)


@numba.njit(cache=True)
def _as_days(side, place):  # type: ignore[no-untyped-def]
    """First and last day of a date or of a number that is a year; last before first for any other number."""
    if side.kind[place] == DATE:
        return side.low[place], side.high[place]
    year = side.written[place]
    if side.unit[place] or year != math.floor(year) or year < 1000 or year > 2999:
        return 1.0, 0.0
    whole = int(year)
    return float(_day(whole, 1, 1)), float(_day(whole + 1, 1, 1) - 1)


_day = numba.njit(cache=True)(day_number)


@numba.njit(cache=True)
def _compare_dates(source, target, p, q):  # type: ignore[no-untyped-def]
    low, high = _as_days(source, p)
    other_low, other_high = _as_days(target, q)
    if low > high or other_low > other_high:
        return UNLIKE, 1.0
    first, last = min(low, other_low), max(high, other_high)
    agreement = 1.0
    # They agree fully if the days of one lie within those of the other.
    if not (low <= other_low and other_high <= high) and not (other_low <= low and high <= other_high):
        width = max(high - low, other_high - other_low) + 1.0
        apart = abs((low + high) - (other_low + other_high)) / 2
        agreement = exp_of(-apart / (DATE_SCALE * width))
        if agreement < LEAST:
            return 0.0, 1.0
    count = 1
    for side, place in ((source, p), (target, q)):
        attribute = side.attribute[place]
        number = _between(side, side.sorted_low, attribute, DATE, first, last)
        if side.kind[place] == NUMBER:
            number = _between(side, side.sorted_low, attribute, NUMBER, side.low[place], side.low[place])
        count = max(count, number)
    return agreement, float(count)


@numba.njit(cache=True)
def _compare_places(source, target, p, q):  # type: ignore[no-untyped-def]
    up = source.low[p] - target.low[q]
    along = abs(source.high[p] - target.high[q])
    along = min(along, 360.0 - along) * cos_of((source.low[p] + target.low[q]) / 2 * DEGREE)
    apart = math.sqrt(up * up + along * along)
    agreement = exp_of(-max(apart - PLACE_GRAIN, 0.0) / PLACE_SCALE)
    if agreement < LEAST:
        return 0.0, 1.0
    reach = max(apart, PLACE_GRAIN)
    count = 1.0
    for side, place in ((source, p), (target, q)):
        attribute = side.attribute[place]
        group = attribute * NUM_ORDERED + PLACE
        everywhere = side.ordered_starts[group + 1] - side.ordered_starts[group]
        wide = reach / max(cos_of(side.low[place] * DEGREE), 0.01)
        beside = _between(side, side.sorted_low, attribute, PLACE, side.low[place] - reach, side.low[place] + reach)
        above = _between(side, side.sorted_high, attribute, PLACE, side.high[place] - wide, side.high[place] + wide)
        # How many lie in the square if latitude and longitude were independent.
        count = max(count, beside * above / max(everywhere, 1))
    return agreement, count


@numba.njit(cache=True, inline="always")
def _compare_texts(source, target, texts, p, q, num_entities):  # type: ignore[no-untyped-def]
    if source.compact[p] == target.compact[q]:
        number = source.compact[p]
        return 1.0, _most(source.compact_count[number], target.compact_count[number])
    if source.kind[p] == CODE and target.kind[q] == CODE:
        if _shares_core(source, target, p, q):
            return CORE_AGREEMENT, _most(source.core_count[source.core[p]], target.core_count[target.core[q]])
        return 0.0, 1.0
    one, other = source.text[p], target.text[q]
    if one == other:
        return 1.0, _most(source.text_count[one], target.text_count[one])
    # Counted only where their lengths allow more than half in common.
    few = texts.gram_starts[one + 1] - texts.gram_starts[one]
    many = texts.gram_starts[other + 1] - texts.gram_starts[other]
    likeness = 0.0
    if 2.0 * min(few, many) > TEXT_NOTHING * (few + many):
        shared = _count_shared(texts.grams, texts.gram_starts, one, other)
        likeness = 2.0 * shared / (few + many)
    shared_weight, total = _weigh_shared(texts.words, texts.word_starts, texts.word_weight, one, other)
    # Across languages only whole texts are compared: names are spelt alike, single words mean different things.
    if not (source.language[p] and target.language[q] and source.language[p] != target.language[q]) and total > 0.0:
        likeness = max(likeness, 2.0 * shared_weight / total)
    agreement = (likeness - TEXT_NOTHING) / (1.0 - TEXT_NOTHING)
    if agreement < LEAST:
        return 0.0, 1.0
    count = _most(
        max(source.text_count[one], target.text_count[one]), max(source.text_count[other], target.text_count[other])
    )
    count = max(count, 1.0 + TEXT_NEIGHBOURS * (1.0 - agreement))
    if shared_weight > 0.0:
        count = max(count, num_entities * exp_of(-shared_weight))
    return agreement, count


@numba.njit(cache=True)
def _count_shared(grams, starts, one, other):  # type: ignore[no-untyped-def]
    stop, other_stop, shared = starts[one + 1], starts[other + 1], 0
    i, j = next_shared(grams, starts[one], stop, grams, starts[other], other_stop)
    while i < stop:
        shared += 1
        i, j = next_shared(grams, i + 1, stop, grams, j + 1, other_stop)
    return shared


@numba.njit(cache=True)
def _weigh_shared(words, starts, weight, one, other):  # type: ignore[no-untyped-def]
    """The weights of the words that both texts have, and of all words of both."""
    shared_weight, total = 0.0, 0.0
    for text in (one, other):
        for place in range(starts[text], starts[text + 1]):
            total += weight[words[place]]
    stop, other_stop = starts[one + 1], starts[other + 1]
    i, j = next_shared(words, starts[one], stop, words, starts[other], other_stop)
    while i < stop:
        shared_weight += weight[words[i]]
        i, j = next_shared(words, i + 1, stop, words, j + 1, other_stop)
    return shared_weight, total
