"""The pass of the agent in rounds that need no locks: pairs are divided among shards, which decide many at a time.

`rlea.agent.engine.play` matches one pair after another: the best of all, then the best of what is left once that match
has spoken for the pairs of its neighbours. Here a round accepts every pair that is the best of both its entities (so
the links are one-to-one without locks), and whose priority is within `WIDTH` of the highest one. Then all of them speak
for the pairs of their neighbours, and the next round begins. With a width of 0 a round accepts one pair, and this is
the sequential game.

A pair belongs to the shard of its source. A shard knows both graphs and is told which links were accepted; what these
say of its own pairs it finds out itself, so no messages about pairs travel. It answers with its pairs that could be
accepted next. What a shard holds follows from the accepted links of all rounds so far (the log): one that was lost is
made again from them.

The links do not depend on how the pairs are divided. Evidence is added up in whole numbers, multiples of 2^-32, which
give the same sum in any order; equal priorities go by the hash of the pair; and whatever happens in a round happens to
the state at its beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numba
import numpy as np
from numpy.typing import NDArray

from rlea.agent.engine import base_of, confidences_of, end_of_run, is_barred, key_of
from rlea.agent.pair_heap import find, grow, make_table
from rlea.graph import Ids
from rlea.search.pairs import Floats
from rlea.search.ties import tie_hash

SHARDS = 16  # of a pass, however many workers there are
# How far below the highest priority a pair may be to be accepted in the same round, in logits. Chosen on synthetic
# pairs and the demo pair (docs/scale.md): rounds that take in more are fewer, and differ more from one by one.
WIDTH = 4.0
UNIT = 2.0**32  # evidence is counted in multiples of 1 / UNIT
NO_LINKS = np.zeros((0, 2), np.int32)


@dataclass(frozen=True, eq=False)
class News:
    """What happened in a round, as shards are told it: links, and what they say for or against pairs around them."""

    accepted: Ids  # (num_accepted, 2) links whose entities leave, source and target
    told: Ids  # (num_told, 2) links that speak for the pairs of their neighbours, with full weight
    kept: Ids  # (num_kept, 2) links of the pass before, which speak with the weight of such
    withdrawn: Ids  # (num_withdrawn, 2) links of the pass before that no longer speak
    # Of the statistics of relations, in a first pass: (source relation, target relation, count) and totals by side.
    counts: tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]] | None = None


@dataclass(frozen=True, eq=False)
class Offers:
    """Pairs of a shard that could be accepted: the best of every source, the best of every target."""

    by_source: tuple[Ids, Ids, Floats]  # sources, targets, priorities
    by_target: tuple[Ids, Ids, Floats]


@dataclass(frozen=True, eq=False)
class Pass:
    """What a pass is played with: the same for all of its shards."""

    game: Any
    correspondence: Floats  # (source relations, target relations); in a first pass what is supposed, as in `play`
    frozen: bool
    rules: Any
    bounds: NDArray[np.int64]  # (num_shards + 1,) sources of each shard
    seeds: Ids  # (num_seeds, 2)
    width: np.float32  # how far below the highest priority a pair may be to be accepted


class Shards(Protocol):
    """The shards of a pass, wherever they are. Lists are in the order of the shards."""

    def count(self, accepted: Ids, round_: int) -> list[tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]]:
        """Enter links into the statistics; what each shard counted around the links of its own sources."""
        ...

    def hear(self, news: News, round_: int) -> list[Offers]:
        """Take note of a round; pairs that could be accepted, at or above the lowest threshold so far."""
        ...

    def highest(self, round_: int) -> list[float]:
        """The highest priority of all pairs that are open; minus infinity where there are none."""
        ...

    def offer(self, lowest: float, round_: int) -> list[Offers]:
        """Pairs that could be accepted, with a new lowest threshold."""
        ...

    def finish(self) -> list[tuple[Ids, Ids, Floats, int]]:
        """All pairs of each shard with their last priorities; how many of them were there from the beginning."""
        ...


class Shard:
    """The pairs of some sources."""

    def __init__(self, given: Pass, number: int) -> None:
        game = given.game
        self.given, self.low, self.high = given, int(given.bounds[number]), int(given.bounds[number + 1])
        first, last = np.searchsorted(game.pair_source, (self.low, self.high))
        self.num_given = self.num_pairs = num = int(last - first)
        room = num + num // 2 + 1024
        self.pair_source = grow(game.pair_source[first:last], room)
        self.pair_target = grow(game.pair_target[first:last], room)
        self.bases = grow(game.pair_base[first:last], room)
        self.evidence, self.supposed = np.zeros(room, np.int64), np.zeros(room, np.int64)
        self.keys = np.empty(room, np.float32)
        self.table = make_table(self.pair_source, self.pair_target, num)
        self.open_source, self.open_target = game.source.is_open.copy(), game.target.is_open.copy()
        self.live = np.arange(num)  # pairs whose entities were open when they were looked at last
        self.active = np.zeros(room, np.bool_)  # pairs at or above the lowest threshold so far
        self.offered = np.zeros(0, np.int64)  # the same as places
        self.lowest = np.inf
        self.has_begun = False
        if not given.frozen:
            self.there = np.full(len(self.open_source), -1, np.int32)
            self.back = np.full(len(self.open_target), -1, np.int32)
            self.is_new = np.zeros(len(self.there), np.bool_), np.zeros(len(self.back), np.bool_)
            self._link(given.seeds)
            self.statistics = begin_statistics(given.correspondence)
        else:
            self.there = self.back = np.zeros(0, np.int32)
            nothing = np.zeros(0, np.int64)
            self.statistics = (np.zeros((0, 0)), nothing, nothing)

    def count(self, accepted: Ids) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
        """Which relations lead from links of this shard's sources to linked neighbours: new ones among them."""
        game = self.given.game
        self._link(accepted)
        is_new, is_new_back = self.is_new
        is_new[accepted[:, 0]], is_new_back[accepted[:, 1]] = True, True
        own = accepted[(accepted[:, 0] >= self.low) & (accepted[:, 0] < self.high)]
        found = np.empty((1024, 2), np.int32)
        sides = game.source, game.target
        rows, totals, totals_back = _count_edges(*sides, own, self.there, self.back, is_new, is_new_back, found)
        is_new[accepted[:, 0]], is_new_back[accepted[:, 1]] = False, False
        if not len(rows):
            return np.zeros((0, 3), np.int32), totals, totals_back
        width = len(totals_back)
        keys, counts = np.unique(rows[:, 0].astype(np.int64) * width + rows[:, 1], return_counts=True)
        return np.column_stack([keys // width, keys % width, counts]).astype(np.int32), totals, totals_back

    def _link(self, accepted: Ids) -> None:
        self.there[accepted[:, 0]], self.back[accepted[:, 1]] = accepted[:, 1], accepted[:, 0]

    def hear(self, news: News) -> Offers:
        """Take note of a round."""
        given = self.given
        self.open_source[news.accepted[:, 0]], self.open_target[news.accepted[:, 1]] = False, False
        if news.counts is not None:
            self._link(news.accepted)  # one that was made again did not count them
            rows, totals, totals_back = news.counts
            self.statistics[0][rows[:, 0], rows[:, 1]] += rows[:, 2]
            self.statistics[1][:] += totals
            self.statistics[2][:] += totals_back
        touched = [np.zeros(0, np.int64)]
        for links, share, is_supposed in (
            (news.told, np.float32(1.0), False),
            (news.kept, given.rules.kept_weight, True),
            (news.withdrawn, -given.rules.kept_weight, True),
        ):
            if len(links):
                touched.append(self._send(links, share, is_supposed))
        places = np.unique(np.concatenate(touched))
        if not self.has_begun:
            self.has_begun = True
            if given.rules.anchored:  # what is known before the first decision is in the priorities that came in
                _anchor(self.bases, self.evidence, given.rules.weight, self.num_pairs)
            places = np.arange(self.num_pairs)
        _update_keys(self.keys, self.bases, self.evidence, places, given.rules.weight)
        raised = places[(self.keys[places] >= self.lowest) & ~self.active[places]]
        self.active[raised] = True
        self.offered = np.concatenate([self.offered, raised])
        return self.offer(self.lowest)

    @property
    def _open(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        return self.open_source, self.open_target

    def _send(self, links: Ids, share: Any, is_supposed: bool) -> NDArray[np.int64]:
        """Let links speak for the pairs of their neighbours; the places of these pairs."""
        given = self.given
        game, rules = given.game, given.rules
        what: Any = (game, given.correspondence, self.statistics, given.frozen, rules)
        if share > 0 and np.isfinite(rules.creation):
            known = self.pair_source, self.pair_target, self.table, self.num_pairs
            rest: Any = (links, share, self.low, self.high, *self._open, *known, np.empty((1024, 2), np.int32))
            self._add(_missing(*what, *rest))
        rest = (links, abs(share), self.low, self.high, *self._open, self.pair_source, self.pair_target, self.table)
        rest = (*rest, np.empty(1024, np.int64), np.empty(1024, np.int64))
        places, gains = _gains(*what, *rest)
        if share < 0:
            _withdraw(self.evidence, self.supposed, places, gains)
        else:
            _give(self.evidence, self.supposed, places, gains, is_supposed)
        return np.unique(places)

    def _add(self, new: Ids) -> None:
        """Pairs that links bring into the game."""
        if not len(new):
            return
        keys = np.unique(new[:, 0].astype(np.int64) << 32 | new[:, 1])
        source, target = (keys >> 32).astype(np.int32), (keys & 0xFFFFFFFF).astype(np.int32)
        before, after = self.num_pairs, self.num_pairs + len(keys)
        if after > len(self.pair_source):
            room = after + after // 2
            for name in ("pair_source", "pair_target", "bases", "keys"):
                setattr(self, name, grow(getattr(self, name), room))
            for name in ("evidence", "supposed", "active"):
                longer = np.zeros(room, getattr(self, name).dtype)
                longer[:before] = getattr(self, name)[:before]
                setattr(self, name, longer)
        self.pair_source[before:after], self.pair_target[before:after] = source, target
        _fill_bases(self.given.game, source, target, self.given.rules.start, self.bases[before:after])
        self.keys[before:after] = self.bases[before:after]
        self.live = np.concatenate([self.live, np.arange(before, after)])
        self.num_pairs = after
        self.table = _extend(self.table, self.pair_source, self.pair_target, before, after)

    def offer(self, lowest: float) -> Offers:
        """The best open pairs of every entity among those of priority `lowest` or higher."""
        ends = self.pair_source, self.pair_target
        if lowest < self.lowest:
            self.lowest = lowest
            self.live = _still_open(self.live, *ends, *self._open)
            self.offered = self.live[self.keys[self.live] >= np.float32(lowest)]
            self.active[:] = False
            self.active[self.offered] = True
        else:
            kept = _still_open(self.offered, *ends, *self._open)
            high = self.keys[kept] >= np.float32(self.lowest)
            self.active[kept[~high]] = False
            self.offered = kept[high]
        places, keys = self.offered, self.keys[self.offered]
        # Those too far below the best of this shard are too far below the best of all.
        near = keys >= keys.max(initial=-np.inf) - self.given.width
        places, keys = places[near], keys[near]
        source, target = self.pair_source[places], self.pair_target[places]
        hashes = tie_hash(source, target, int(self.given.rules.seed))
        return Offers(*(best_of_each(own, source, target, keys, hashes) for own in (source, target)))

    def highest(self) -> float:
        """The highest priority of all pairs that are open; minus infinity where there are none."""
        self.live = _still_open(self.live, self.pair_source, self.pair_target, *self._open)
        return float(self.keys[self.live].max(initial=-np.inf))

    def finish(self) -> tuple[Ids, Ids, Floats, int]:
        """All pairs with their last priorities; those that came in are sorted."""
        num, given = self.num_pairs, self.num_given
        order = np.lexsort((self.pair_target[given:num], self.pair_source[given:num]))
        places = np.concatenate([np.arange(given), given + order])
        return self.pair_source[places], self.pair_target[places], self.keys[places], given


def best_of_each(
    ids: Ids, source: Ids, target: Ids, keys: Floats, hashes: NDArray[np.uint64]
) -> tuple[Ids, Ids, Floats]:
    """Of every id the pair with the highest key, of equal ones that with the lowest hash; in the order of ids."""
    order = np.lexsort((hashes, -keys, ids))
    best = order[np.append(True, np.diff(ids[order]) != 0)[: len(order)]]
    return source[best], target[best], keys[best]


def play_in_supersteps(
    shards_of: Callable[[Pass], Shards],
    width: float,
    num_shards: int,
    game: Any,
    seed_source: Ids,
    seed_target: Ids,
    earlier_source: Ids,
    earlier_target: Ids,
    correspondence: Floats,
    frozen: bool,
    rules: Any,
) -> Any:
    """As `engine.play`: links, the correspondence of relations, and all pairs with their last priorities."""
    seeds, earlier = np.column_stack([seed_source, seed_target]), np.column_stack([earlier_source, earlier_target])
    bounds = divide(game.pair_source, len(game.source.is_open), num_shards)
    scale = np.float32(width if rules.anchored else width * rules.temperature)
    given = Pass(game, correspondence, frozen, rules, bounds, seeds, scale)
    shards = shards_of(given)
    own = _Statistics(given)
    supposed = np.full(len(game.source.is_open), -1, np.int32)
    supposed_back = np.full(len(game.target.is_open), -1, np.int32)
    supposed[earlier_source], supposed_back[earlier_target] = earlier_target, earlier_source
    counts = own.enter(shards.count(seeds, 0)) if not frozen else None
    offers = shards.hear(News(NO_LINKS, seeds, earlier, NO_LINKS, counts), 0)
    found: list[tuple[Ids, Floats]] = []
    lowest, round_ = np.inf, 0
    while True:
        accepted, keys = choose(offers, scale, int(rules.seed))
        if not len(accepted):
            highest = max(shards.highest(round_))
            if highest == -np.inf:
                break
            lowest = highest - float(scale)
            offers = shards.offer(lowest, round_)
            continue
        round_ += 1
        found.append((accepted, keys))
        repeated = supposed[accepted[:, 0]] == accepted[:, 1]
        news = accepted[~repeated] if rules.kept_weight == 1 else accepted  # else its evidence was counted already
        old = np.concatenate(
            [
                np.column_stack([news[:, 0], supposed[news[:, 0]]]),
                np.column_stack([supposed_back[news[:, 1]], news[:, 1]]),
            ]
        )
        old = np.unique(old[(old >= 0).all(axis=1)], axis=0).astype(np.int32)
        supposed[old[:, 0]], supposed_back[old[:, 1]] = -1, -1
        counts = own.enter(shards.count(accepted, round_)) if not frozen else None
        offers = shards.hear(News(accepted, news, NO_LINKS, old, counts), round_)
    parts = shards.finish()
    columns: Any = list(zip(*(part[:3] for part in parts), strict=True))
    counts_given = [part[3] for part in parts]
    source, target, last = (
        np.concatenate(
            [part[:num] for part, num in zip(column, counts_given, strict=True)]
            + [part[num:] for part, num in zip(column, counts_given, strict=True)]
        )
        for column in columns
    )
    links = np.concatenate([NO_LINKS, *(part for part, _ in found)])
    when = np.concatenate([np.zeros(0, np.float32), *(part for _, part in found)])
    ends = np.ascontiguousarray(links[:, 0]), np.ascontiguousarray(links[:, 1])
    nothing = np.zeros(len(last), np.float32)
    places = np.empty_like(supposed), np.empty_like(supposed_back)
    confidences = confidences_of(*ends, when, *places, source, target, last, nothing, rules)
    return (*ends, when, confidences), own.correspondence(), (source, target, last)


def choose(offers: Sequence[Offers], width: Any, seed: int) -> tuple[Ids, Floats]:
    """Pairs to accept, best first: the best of both of their entities, within `width` of the highest priority."""
    sides = [
        [np.concatenate([getattr(one, name)[k] for one in offers]) for k in range(3)]
        for name in ("by_source", "by_target")
    ]
    source, target, keys = sides[0]
    if not len(keys):
        return NO_LINKS, np.zeros(0, np.float32)
    offered, offered_to, offered_keys = sides[1]
    hashes = tie_hash(offered, offered_to, seed)
    best, best_to, _ = best_of_each(offered_to, offered, offered_to, offered_keys, hashes)
    partners = best[np.searchsorted(best_to, target)]  # what is best for a source was offered to its target, too
    chosen = np.flatnonzero((partners == source) & (keys >= keys.max() - width))
    order = np.lexsort((tie_hash(source[chosen], target[chosen], seed), -keys[chosen]))
    chosen = chosen[order][: None if width else 1]
    return np.column_stack([source[chosen], target[chosen]]).astype(np.int32), keys[chosen]


def divide(pair_source: Ids, num_source: int, num_shards: int) -> NDArray[np.int64]:
    """Sources of every shard, as bounds (num_shards + 1,), so that shards have about as many pairs."""
    starts = np.searchsorted(pair_source, np.arange(num_source + 1))
    wanted = np.arange(1, num_shards) * (len(pair_source) / num_shards)
    inner = np.searchsorted(starts, wanted)
    return np.concatenate([[0], np.minimum(inner, num_source), [num_source]]).astype(np.int64)


class LocalShards:
    """All shards in this process, one after another."""

    def __init__(self, given: Pass) -> None:
        self.shards = [Shard(given, number) for number in range(len(given.bounds) - 1)]

    def count(self, accepted: Ids, round_: int) -> list[Any]:
        return [shard.count(accepted) for shard in self.shards]

    def hear(self, news: News, round_: int) -> list[Offers]:
        return [shard.hear(news) for shard in self.shards]

    def highest(self, round_: int) -> list[float]:
        return [shard.highest() for shard in self.shards]

    def offer(self, lowest: float, round_: int) -> list[Offers]:
        return [shard.offer(lowest) for shard in self.shards]

    def finish(self) -> list[tuple[Ids, Ids, Floats, int]]:
        return [shard.finish() for shard in self.shards]


def begin_statistics(supposed: Floats) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Counts of edges by relations of both sides, and of either: what is supposed counts as one edge, as in `play`.

    Whole numbers are added to them later, which doubles do exactly.
    """
    seen = supposed > 0
    totals = (np.asarray(seen.any(axis=axis), np.int64) for axis in (1, 0))
    return supposed.astype(np.float64), next(totals), next(totals)


class _Statistics:
    """Which relations correspond, over all shards; in a first pass it grows with the links."""

    def __init__(self, given: Pass) -> None:
        self.given = given
        supposed = given.correspondence if not given.frozen else np.zeros((0, 0), np.float32)
        self.counts, *self.totals = begin_statistics(supposed)

    def enter(self, parts: Sequence[Any]) -> Any:
        """What all shards counted, together."""
        rows = np.concatenate([part[0] for part in parts])
        totals = sum(part[1] for part in parts), sum(part[2] for part in parts)
        np.add.at(self.counts, (rows[:, 0], rows[:, 1]), rows[:, 2])
        for own, more in zip(self.totals, totals, strict=True):
            own += more
        # Several shards may have counted the same two relations.
        if len(rows):
            width = len(self.totals[1])
            keys, inverse = np.unique(rows[:, 0].astype(np.int64) * width + rows[:, 1], return_inverse=True)
            summed = np.bincount(inverse, weights=rows[:, 2])
            rows = np.column_stack([keys // width, keys % width, summed]).astype(np.int32)
        return rows, *totals

    def correspondence(self) -> Floats:
        """As `play` returns it."""
        if self.given.frozen:
            return self.given.correspondence
        source_totals, target_totals = self.totals
        smoothing = self.given.rules.smoothing
        return np.asarray(_all_correspondences(self.counts, source_totals, target_totals, smoothing))


# ---- compiled --------------------------------------------------------------------------------------------------------


@numba.njit(cache=True)
def _still_open(places, pair_source, pair_target, open_source, open_target):  # type: ignore[no-untyped-def]
    """Those places whose pairs have two open entities."""
    kept = np.empty(len(places), np.int64)
    num = 0
    for place in places:
        if open_source[pair_source[place]] and open_target[pair_target[place]]:
            kept[num] = place
            num += 1
    return kept[:num].copy()


@numba.njit(cache=True)
def _fill_bases(game, source, target, start, bases):  # type: ignore[no-untyped-def]
    for k in range(len(source)):
        bases[k] = base_of(game, source[k], target[k], start)


@numba.njit(cache=True)
def _evidence_of(evidence):  # type: ignore[no-untyped-def]
    return np.float32(evidence / UNIT)


@numba.njit(cache=True)
def _anchor(bases, evidence, weight, num_pairs):  # type: ignore[no-untyped-def]
    for pair in range(num_pairs):
        bases[pair] -= key_of(np.float32(0.0), _evidence_of(evidence[pair]), weight)


@numba.njit(cache=True)
def _update_keys(keys, bases, evidence, places, weight):  # type: ignore[no-untyped-def]
    for pair in places:
        keys[pair] = key_of(bases[pair], _evidence_of(evidence[pair]), weight)


@numba.njit(cache=True)
def _give(evidence, supposed, places, gains, is_supposed):  # type: ignore[no-untyped-def]
    for k in range(len(places)):
        evidence[places[k]] += gains[k]
        if is_supposed:
            supposed[places[k]] += gains[k]


@numba.njit(cache=True)
def _withdraw(evidence, supposed, places, gains):  # type: ignore[no-untyped-def]
    """Take back no more than was supposed: pairs that came into the game since were never given it.

    What is taken back in a round is at most this in all, so the order does not matter.
    """
    for k in range(len(places)):
        lost = min(gains[k], supposed[places[k]])
        evidence[places[k]] -= lost
        supposed[places[k]] -= lost


@numba.njit(cache=True)
def _extend(table, pair_source, pair_target, before, after):  # type: ignore[no-untyped-def]
    """The table with pairs `before` to `after` as well."""
    if 2 * after > len(table):
        return make_table(pair_source, pair_target, after)
    for pair in range(before, after):
        table[find(table, pair_source, pair_target, pair_source[pair], pair_target[pair])] = pair
    return table


@numba.njit(cache=True)
def _like(statistics, o, p, smoothing):  # type: ignore[no-untyped-def]
    """How well relations correspond, as in `engine`."""
    counts, source_totals, target_totals = statistics
    both = counts[o, p]
    if both == 0:
        return np.float32(0.0)
    product = np.float64(source_totals[o]) * np.float64(target_totals[p])
    return np.float32(both / (np.sqrt(product) + smoothing))


@numba.njit(cache=True)
def _all_correspondences(counts, source_totals, target_totals, smoothing):  # type: ignore[no-untyped-def]
    result = np.zeros(counts.shape, np.float32)
    for o in range(counts.shape[0]):
        for p in range(counts.shape[1]):
            result[o, p] = _like((counts, source_totals, target_totals), o, p, smoothing)
    return result


@numba.njit(cache=True)
def _strength(game, correspondence, statistics, frozen, rules, o, p):  # type: ignore[no-untyped-def]
    """Evidence of a link for a pair of neighbours to which o leads on one side and p on the other."""
    like = correspondence[o, p] if frozen else _like(statistics, o, p, rules.smoothing)
    return like * min(game.source.functionality[o], game.target.functionality[p])


@numba.njit(cache=True)
def _missing(  # type: ignore[no-untyped-def]
    game,
    correspondence,
    statistics,
    frozen,
    rules,
    links,
    share,
    low,
    high,
    open_source,
    open_target,
    pair_source,
    pair_target,
    table,
    num_pairs,
    new,
):
    """Pairs that are not there and that one of the links alone gives enough evidence to bring in, some repeatedly."""
    source, target = game.source, game.target
    num = 0
    for k in range(len(links)):
        s, t = links[k, 0], links[k, 1]
        i, i_stop, j_stop = source.starts[s], source.starts[s + 1], target.starts[t + 1]
        while i < i_stop:
            i_end = end_of_run(source.relations, i, i_stop)
            a, last = _own_part(source.neighbours, i, i_end, low, high)
            if a < last:
                j = target.starts[t]
                while j < j_stop:
                    j_end = end_of_run(target.relations, j, j_stop)
                    step = _strength(
                        game, correspondence, statistics, frozen, rules, source.relations[i], target.relations[j]
                    )
                    if step >= rules.floor and share * step >= rules.creation:
                        for place in range(a, last):
                            n = source.neighbours[place]
                            if not open_source[n]:
                                continue
                            for b in range(j, j_end):
                                m = target.neighbours[b]
                                if not open_target[m] or is_barred(game.barred, n, m):
                                    continue
                                if table[find(table, pair_source, pair_target, n, m)] >= 0:
                                    continue
                                if num == len(new):
                                    longer = np.empty((2 * num, 2), np.int32)
                                    longer[:num] = new
                                    new = longer
                                new[num, 0], new[num, 1] = n, m
                                num += 1
                    j = j_end
            i = i_end
    return new[:num].copy()


@numba.njit(cache=True)
def _own_part(neighbours, start, stop, low, high):  # type: ignore[no-untyped-def]
    """The part of a run of neighbours, which are sorted, with ids from low to high."""
    first = start + np.searchsorted(neighbours[start:stop], low)
    return first, start + np.searchsorted(neighbours[start:stop], high)


@numba.njit(cache=True)
def _gains(  # type: ignore[no-untyped-def]
    game,
    correspondence,
    statistics,
    frozen,
    rules,
    links,
    share,
    low,
    high,
    open_source,
    open_target,
    pair_source,
    pair_target,
    table,
    places,
    gains,
):
    """What links say of pairs of their neighbours: places of these, some repeatedly, and evidence in units."""
    source, target = game.source, game.target
    num = 0
    for k in range(len(links)):
        s, t = links[k, 0], links[k, 1]
        i, i_stop, j_stop = source.starts[s], source.starts[s + 1], target.starts[t + 1]
        while i < i_stop:
            i_end = end_of_run(source.relations, i, i_stop)
            a, last = _own_part(source.neighbours, i, i_end, low, high)
            if a < last:
                j = target.starts[t]
                while j < j_stop:
                    j_end = end_of_run(target.relations, j, j_stop)
                    step = _strength(
                        game, correspondence, statistics, frozen, rules, source.relations[i], target.relations[j]
                    )
                    if step >= rules.floor:
                        gain = np.int64(np.floor(np.float64(share * step) * UNIT + 0.5))
                        for place in range(a, last):
                            n = source.neighbours[place]
                            if not open_source[n]:
                                continue
                            for b in range(j, j_end):
                                m = target.neighbours[b]
                                if not open_target[m]:
                                    continue
                                pair = table[find(table, pair_source, pair_target, n, m)]
                                if pair < 0:
                                    continue
                                if num == len(places):
                                    places, gains = grow(places, 2 * num), grow(gains, 2 * num)
                                places[num], gains[num] = pair, gain
                                num += 1
                    j = j_end
            i = i_end
    return places[:num].copy(), gains[:num].copy()


@numba.njit(cache=True)
def _count_edges(source, target, links, there, back, is_new, is_new_back, found):  # type: ignore[no-untyped-def]
    """Oriented relations of edges between linked entities that are in both graphs, and totals of either graph.

    An edge between two links of the same round counts at the one with the lower id.
    """
    totals, totals_back = np.zeros(len(source.functionality), np.int64), np.zeros(len(target.functionality), np.int64)
    half_s, half_t = len(totals) // 2, len(totals_back) // 2
    num = 0
    for k in range(len(links)):
        s, t = links[k, 0], links[k, 1]
        for j in range(target.starts[t], target.starts[t + 1]):
            m = target.neighbours[j]
            if back[m] >= 0 and not (is_new_back[m] and m < t):
                p = target.relations[j]
                totals_back[p] += 1
                totals_back[p - half_t if p >= half_t else p + half_t] += 1
        for i in range(source.starts[s], source.starts[s + 1]):
            n = source.neighbours[i]
            m = there[n]
            if m < 0 or (is_new[n] and n < s):
                continue
            o = source.relations[i]
            opposite = o - half_s if o >= half_s else o + half_s
            totals[o] += 1
            totals[opposite] += 1
            for j in range(target.starts[t], target.starts[t + 1]):
                if target.neighbours[j] == m:
                    p = target.relations[j]
                    if num + 2 > len(found):
                        longer = np.empty((2 * len(found), 2), np.int32)
                        longer[:num] = found[:num]
                        found = longer
                    found[num, 0], found[num, 1] = o, p
                    found[num + 1, 0] = opposite
                    found[num + 1, 1] = p - half_t if p >= half_t else p + half_t
                    num += 2
    return found[:num].copy(), totals, totals_back
