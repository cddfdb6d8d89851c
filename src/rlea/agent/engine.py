"""Best-first matching in compiled code: a heap of pairs, whose priorities rise with the matches of their neighbours.

`rlea.matchers.best_first` explains the rules; a plain Python form of them is in its tests.
"""

from __future__ import annotations

from collections import namedtuple
from typing import TYPE_CHECKING, Any

import numba
import numpy as np

from rlea.agent.pair_heap import find, grow, is_earlier, make_table, push, sink
from rlea.arithmetic import exp_of
from rlea.search.candidates import prepare
from rlea.search.rows import lane_product

if TYPE_CHECKING:
    from rlea.search.candidates import Candidates

# What stays the same over all passes, for compiled code; a named tuple of arrays, as compiled classes cannot be cached.
Side = namedtuple("Side", "starts relations neighbours functionality means is_open")
Vectors = namedtuple("Vectors", "kind scale source target s_starts s_columns s_values t_starts t_columns t_values")
# A second set of vectors, compared by inner product, whose CSLS adds to the base by this share.
Extra = namedtuple("Extra", "share source target source_means target_means")
# `barred` are pairs that are never matched (`CannotLink`): none is among those given, and no match brings one in.
Game = namedtuple("Game", "source target vectors extra pair_source pair_target pair_base list_starts list_ends barred")
# With `anchored` the bases that come in are whole priorities: what is known before the first decision is in them, and
# only what changes later moves them. `start` is the base of a pair that a match brings in, before vectors add to it.
Rules = namedtuple("Rules", "weight creation floor smoothing kept_weight temperature no_match seed anchored start")


@numba.njit(cache=True)
def play(game, seed_source, seed_target, earlier_source, earlier_target, correspondence, frozen, rules):  # type: ignore[no-untyped-def]
    """Propagate the known links; then match the pair with the highest priority and propagate it, until none is left.

    `correspondence` is that of the relations if it is `frozen`. Else it is what is supposed of it before any edge was
    seen, zero for nothing: it counts as much as one edge of each relation.
    """
    source, target = game.source, game.target
    open_source, open_target = source.is_open.copy(), target.is_open.copy()
    num_pairs = len(game.pair_source)
    room = 2 * num_pairs + 1024
    pair_source, pair_target = grow(game.pair_source, room), grow(game.pair_target, room)
    pair_base, pair_evidence = grow(game.pair_base, room), np.zeros(room, np.float32)
    pair_supposed = np.zeros(room, np.float32)  # the part of the evidence that an earlier pass supposed
    table = make_table(pair_source, pair_target, num_pairs)
    heap_keys, heap_pairs = np.empty(room, np.float32), np.empty(room, np.int32)
    heap_size = -1  # no heap yet: while the seeds are propagated, no priority is final
    # Of pairs without evidence only the best of every source waits in the heap; `front` is its place in the source's
    # list. Most pairs die with one of their entities and are never looked at.
    front = game.list_starts.copy()

    counterpart = np.full(len(open_source), -1, np.int32)
    counterpart_back = np.full(len(open_target), -1, np.int32)
    statistics = (
        correspondence if frozen else correspondence.copy(),
        np.zeros(len(source.functionality), np.float32),
        np.zeros(len(target.functionality), np.float32),
    )
    if not frozen:
        for o in range(correspondence.shape[0]):
            for p in range(correspondence.shape[1]):
                if correspondence[o, p] > 0:
                    statistics[1][o] = statistics[2][p] = 1.0
        for k in range(len(seed_source)):
            counterpart[seed_source[k]], counterpart_back[seed_target[k]] = seed_target[k], seed_source[k]
            _count(game, seed_source[k], seed_target[k], counterpart, counterpart_back, statistics)
    supposed = np.full(len(open_source), -1, np.int32)
    supposed_back = np.full(len(open_target), -1, np.int32)
    supposed[earlier_source], supposed_back[earlier_target] = earlier_target, earlier_source

    most = min(open_source.sum(), open_target.sum())
    found_source, found_target = np.empty(most, np.int32), np.empty(most, np.int32)
    found_keys = np.empty(most, np.float32)
    num_found = 0
    waiting = np.empty((3, 2), np.int32)  # matches to be propagated in this step, with their weights
    shares = np.empty(3, np.float32)
    cursor, num_known = 0, len(seed_source) + len(earlier_source)
    while True:
        num_waiting = 1
        if cursor < len(seed_source):
            waiting[0, 0], waiting[0, 1], shares[0] = seed_source[cursor], seed_target[cursor], 1.0
            is_supposed = False
            cursor += 1
        elif cursor < num_known:
            k = cursor - len(seed_source)
            waiting[0, 0], waiting[0, 1], shares[0] = earlier_source[k], earlier_target[k], rules.kept_weight
            is_supposed = True
            cursor += 1
        else:
            is_supposed = False
            if heap_size < 0:
                heap_size = 0
                if num_pairs > len(heap_keys):
                    heap_keys, heap_pairs = np.empty(2 * num_pairs, np.float32), np.empty(2 * num_pairs, np.int32)
                if rules.anchored:
                    for pair in range(num_pairs):
                        pair_base[pair] -= key_of(np.float32(0.0), pair_evidence[pair], rules.weight)
                for pair in range(num_pairs):
                    # Anchored keys may fall below those of pairs without evidence, so all of these must wait too.
                    if rules.anchored or pair_evidence[pair] > 0 or front[pair_source[pair]] == pair:
                        heap_keys[heap_size] = key_of(pair_base[pair], pair_evidence[pair], rules.weight)
                        heap_pairs[heap_size] = pair
                        heap_size += 1
                for place in range(heap_size // 2 - 1, -1, -1):
                    sink(heap_keys, heap_pairs, heap_size, place, pair_source, pair_target, rules.seed)
            if heap_size == 0 or num_found == most:
                break
            popped, pair = heap_keys[0], heap_pairs[0]
            heap_size -= 1
            heap_keys[0], heap_pairs[0] = heap_keys[heap_size], heap_pairs[heap_size]
            if heap_size > 0:
                sink(heap_keys, heap_pairs, heap_size, 0, pair_source, pair_target, rules.seed)
            s, t = pair_source[pair], pair_target[pair]
            if not open_source[s]:
                continue
            if not open_target[t]:
                # The next of the source's list whose target is open takes its place, where not all wait already.
                if front[s] == pair and not rules.anchored:
                    while front[s] < game.list_ends[s] and not open_target[pair_target[front[s]]]:
                        front[s] += 1
                    if front[s] < game.list_ends[s]:
                        pair = front[s]
                        key = key_of(pair_base[pair], pair_evidence[pair], rules.weight)
                        push(heap_keys, heap_pairs, heap_size, key, pair, pair_source, pair_target, rules.seed)
                        heap_size += 1
                continue
            key = key_of(pair_base[pair], pair_evidence[pair], rules.weight)
            if popped > key:  # evidence was withdrawn meanwhile: it queues again at its present key
                push(heap_keys, heap_pairs, heap_size, key, pair, pair_source, pair_target, rules.seed)
                heap_size += 1
                continue
            open_source[s], open_target[t] = False, False
            counterpart[s], counterpart_back[t] = t, s
            found_source[num_found], found_target[num_found], found_keys[num_found] = s, t, key
            num_found += 1
            if not frozen:
                _count(game, s, t, counterpart, counterpart_back, statistics)
            if supposed[s] == t and rules.kept_weight == 1:
                continue  # its evidence was counted already
            waiting[0, 0], waiting[0, 1], shares[0] = s, t, 1.0
            if supposed[s] >= 0:  # evidence of what an earlier pass supposed of either entity is withdrawn
                waiting[num_waiting, 0], waiting[num_waiting, 1] = s, supposed[s]
                shares[num_waiting] = -rules.kept_weight
                num_waiting += 1
                supposed_back[supposed[s]], supposed[s] = -1, -1
            if supposed_back[t] >= 0:
                waiting[num_waiting, 0], waiting[num_waiting, 1] = supposed_back[t], t
                shares[num_waiting] = -rules.kept_weight
                num_waiting += 1
                supposed[supposed_back[t]], supposed_back[t] = -1, -1

        for w in range(num_waiting):
            s, t, share = waiting[w, 0], waiting[w, 1], shares[w]
            i, i_stop, j_stop = source.starts[s], source.starts[s + 1], target.starts[t + 1]
            while i < i_stop:
                i_end = end_of_run(source.relations, i, i_stop)
                # Where a few entities are decided again, most links lead to none of them.
                while i < i_end and not open_source[source.neighbours[i]]:
                    i += 1
                j = target.starts[t] if i < i_end else j_stop
                while j < j_stop:
                    j_end = end_of_run(target.relations, j, j_stop)
                    step = _step(game, source.relations[i], target.relations[j], statistics, frozen, rules)
                    if step >= rules.floor:
                        # Each pair of open neighbours that these two relations lead to gains (or loses) the step.
                        for a in range(i, i_end):
                            n = source.neighbours[a]
                            if not open_source[n]:
                                continue
                            for b in range(j, j_end):
                                m = target.neighbours[b]
                                if not open_target[m]:
                                    continue
                                place = find(table, pair_source, pair_target, n, m)
                                pair = table[place]
                                if pair < 0:
                                    if share * step < rules.creation or is_barred(game.barred, n, m):
                                        continue
                                    if num_pairs == len(pair_source):
                                        pair_source = grow(pair_source, 2 * num_pairs)
                                        pair_target = grow(pair_target, 2 * num_pairs)
                                        pair_base = grow(pair_base, 2 * num_pairs)
                                        pair_evidence = grow(pair_evidence, 2 * num_pairs)
                                        pair_supposed = grow(pair_supposed, 2 * num_pairs)
                                    pair = num_pairs
                                    num_pairs += 1
                                    pair_source[pair], pair_target[pair] = n, m
                                    pair_base[pair] = base_of(game, n, m, rules.start)
                                    pair_evidence[pair], pair_supposed[pair] = 0.0, 0.0
                                    table[place] = pair
                                    if 2 * num_pairs > len(table):
                                        table = make_table(pair_source, pair_target, num_pairs)
                                gain = share * step
                                if share < 0:  # a pair that came into the game since was never given what is withdrawn
                                    gain = -min(-gain, pair_supposed[pair])
                                if is_supposed or share < 0:
                                    pair_supposed[pair] += gain
                                pair_evidence[pair] += gain
                                if heap_size >= 0 and share > 0:
                                    if heap_size == len(heap_keys):
                                        heap_keys = grow(heap_keys, 2 * heap_size)
                                        heap_pairs = grow(heap_pairs, 2 * heap_size)
                                    key = key_of(pair_base[pair], pair_evidence[pair], rules.weight)
                                    push(
                                        heap_keys,
                                        heap_pairs,
                                        heap_size,
                                        key,
                                        pair,
                                        pair_source,
                                        pair_target,
                                        rules.seed,
                                    )
                                    heap_size += 1
                    j = j_end
                i = i_end

    confidences = confidences_of(
        found_source[:num_found],
        found_target[:num_found],
        found_keys,
        counterpart,
        counterpart_back,
        pair_source[:num_pairs],
        pair_target,
        pair_base,
        pair_evidence,
        rules,
    )
    if not frozen:
        for o in range(correspondence.shape[0]):
            for p in range(correspondence.shape[1]):
                correspondence[o, p] = _correspondence(statistics, o, p, rules.smoothing)
    links = (found_source[:num_found], found_target[:num_found], found_keys[:num_found], confidences)
    keys = np.empty(num_pairs, np.float32)
    for pair in range(num_pairs):
        keys[pair] = key_of(pair_base[pair], pair_evidence[pair], rules.weight)
    return links, correspondence, (pair_source[:num_pairs], pair_target[:num_pairs], keys)


@numba.njit(cache=True)
def is_barred(barred, s, t):  # type: ignore[no-untyped-def]
    """Whether a pair is never matched (`CannotLink`)."""
    keys, source_bits, target_bits = barred
    if len(keys) > 0:
        key = np.int64(s) << 32 | np.int64(t)
        place = np.searchsorted(keys, key)
        if place < len(keys) and keys[place] == key:
            return True
    if len(source_bits) > 0:
        for word in range(source_bits.shape[1]):
            if source_bits[s, word] & target_bits[t, word] > 0:
                return True
    return False


@numba.njit(cache=True)
def sort_rows(row_starts, pair_source, pair_target, base, seed):  # type: ignore[no-untyped-def]
    """Sort the pairs of every source, best base first, equals in the order in which the heap would take them."""
    for row in range(len(row_starts) - 1):
        low, high = row_starts[row], row_starts[row + 1]
        order = np.argsort(-base[low:high], kind="mergesort")
        pair_target[low:high] = pair_target[low:high][order]
        base[low:high] = base[low:high][order]
        for i in range(low + 1, high):
            j = i
            while (
                j > low
                and base[j] == base[j - 1]
                and is_earlier(base[j], j, base[j], j - 1, pair_source, pair_target, seed)
            ):
                pair_target[j], pair_target[j - 1] = pair_target[j - 1], pair_target[j]
                j -= 1


def make_vectors(candidates: Candidates, scale: float) -> Any:
    """What compiled code needs to score any pair: a kind (0 inner, 1 manhattan, 2 sparse), matrices, sparse rows."""
    embeddings = candidates.embeddings
    source, target = prepare(embeddings.source, embeddings), prepare(embeddings.target, embeddings)
    no_matrix = np.zeros((0, 0), np.float32)
    no_rows: Any = [np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32)]
    if isinstance(source, np.ndarray):
        kind = 1 if embeddings.measure == "manhattan" else 0
        return Vectors(kind, np.float32(scale), source, target, *no_rows, *no_rows)
    parts = []
    for matrix in (source, target):
        rows = matrix.tocsr()
        rows.sort_indices()
        parts += [rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data.astype(np.float32)]
    sparse: Any = parts
    return Vectors(2, np.float32(scale), no_matrix, no_matrix, *sparse)


def no_vectors() -> Vectors:
    """No vectors by which pairs are compared that a match brings in."""
    nothing = np.zeros((0, 0), np.float32)
    no_rows = (np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32))
    return Vectors(0, np.float32(0.0), nothing, nothing, *no_rows, *no_rows)


def no_extra() -> Extra:
    """No second set of vectors."""
    nothing, means = np.zeros((0, 0), np.float32), np.zeros(0, np.float32)
    return Extra(np.float32(0.0), nothing, nothing, means, means)


@numba.njit(cache=True)
def key_of(base, evidence, weight):  # type: ignore[no-untyped-def]
    """The priority of a pair."""
    # Withdrawn evidence may leave a rounding error below zero.
    return base + weight * np.sqrt(max(evidence, np.float32(0.0)))


@numba.njit(cache=True)
def base_of(game, s, t, start):  # type: ignore[no-untyped-def]
    """The part of the priority that no match changes, for a pair that is not among the candidates."""
    source, target = game.source, game.target
    base = start
    if game.vectors.scale > 0:
        base += game.vectors.scale * (2 * _similarity(game.vectors, s, t) - source.means[s] - target.means[t])
    if game.extra.share > 0:
        extra = game.extra
        likeness = lane_product(extra.source[s], extra.target[t])
        base += extra.share * (2 * likeness - extra.source_means[s] - extra.target_means[t])
    return base


@numba.njit(cache=True)
def _similarity(v, s, t):  # type: ignore[no-untyped-def]
    total = np.float32(0.0)
    if v.kind == 0:
        for d in range(v.source.shape[1]):
            total += v.source[s, d] * v.target[t, d]
    elif v.kind == 1:
        for d in range(v.source.shape[1]):
            total -= abs(v.source[s, d] - v.target[t, d])
    else:
        i, j = v.s_starts[s], v.t_starts[t]
        while i < v.s_starts[s + 1] and j < v.t_starts[t + 1]:
            if v.s_columns[i] == v.t_columns[j]:
                total += v.s_values[i] * v.t_values[j]
                i += 1
                j += 1
            elif v.s_columns[i] < v.t_columns[j]:
                i += 1
            else:
                j += 1
    return total


@numba.njit(cache=True)
def end_of_run(relations, start, stop):  # type: ignore[no-untyped-def]
    """Where the run of equal relations that begins at start ends."""
    end = start + 1
    while end < stop and relations[end] == relations[start]:
        end += 1
    return end


@numba.njit(cache=True)
def _step(game, o, p, statistics, frozen, rules):  # type: ignore[no-untyped-def]
    """Evidence of a match for a pair of neighbours to which o leads on one side and p on the other."""
    like = statistics[0][o, p]
    if not frozen:
        if like == 0:
            return np.float32(0.0)
        like = _correspondence(statistics, o, p, rules.smoothing)
    return like * min(game.source.functionality[o], game.target.functionality[p])


@numba.njit(cache=True)
def _correspondence(statistics, o, p, smoothing):  # type: ignore[no-untyped-def]
    """How well relations o and p correspond: edges between matched entities that both have, over those each has."""
    counts, source_totals, target_totals = statistics
    both = counts[o, p]
    if both == 0:
        return np.float32(0.0)
    return both / (np.sqrt(source_totals[o] * target_totals[p]) + smoothing)


@numba.njit(cache=True)
def _count(game, s, t, counterpart, counterpart_back, statistics):  # type: ignore[no-untyped-def]
    """Enter a new match into the statistics: which relations lead from it to matched neighbours, on both sides."""
    source, target = game.source, game.target
    counts, source_totals, target_totals = statistics
    half_s, half_t = len(source_totals) // 2, len(target_totals) // 2
    for j in range(target.starts[t], target.starts[t + 1]):
        if counterpart_back[target.neighbours[j]] >= 0:
            p = target.relations[j]
            target_totals[p] += 1
            target_totals[p - half_t if p >= half_t else p + half_t] += 1
    for i in range(source.starts[s], source.starts[s + 1]):
        m = counterpart[source.neighbours[i]]
        if m < 0:
            continue
        o = source.relations[i]
        back = o - half_s if o >= half_s else o + half_s
        source_totals[o] += 1
        source_totals[back] += 1
        for j in range(target.starts[t], target.starts[t + 1]):
            if target.neighbours[j] == m:
                p = target.relations[j]
                counts[o, p] += 1
                counts[back, p - half_t if p >= half_t else p + half_t] += 1


@numba.njit(cache=True)
def confidences_of(  # type: ignore[no-untyped-def]
    found_source, found_target, found_keys, place, place_back, pair_source, pair_target, pair_base, pair_evidence, rules
):
    """The share of every accepted pair among the pairs of its source and of its target, at their last keys.

    A softmax each way; the geometric mean of the two. The priority of a link counts as it was when it was matched. No
    match is a rival too, with a priority of its own: an entity may have no counterpart.
    """
    sums, sums_back = np.zeros(len(found_source)), np.zeros(len(found_source))
    for k in range(len(found_source)):
        sums[k] = sums_back[k] = exp_of(min((rules.no_match - found_keys[k]) / rules.temperature, 30.0))
    place[:], place_back[:] = -1, -1
    for k in range(len(found_source)):
        place[found_source[k]], place_back[found_target[k]] = k, k
    for pair in range(len(pair_source)):
        key = key_of(pair_base[pair], pair_evidence[pair], rules.weight)
        k, back = place[pair_source[pair]], place_back[pair_target[pair]]
        if k >= 0:
            sums[k] += exp_of(min((key - found_keys[k]) / rules.temperature, 30.0))
        if back >= 0:
            sums_back[back] += exp_of(min((key - found_keys[back]) / rules.temperature, 30.0))
    return (1.0 / np.sqrt(np.maximum(sums, 1.0) * np.maximum(sums_back, 1.0))).astype(np.float32)
