"""What the agent sees of a pair: a row of numbers that say what the decisions so far speak for it and against it.

For every candidate pair (s, t), given who is matched with whom (`rlea.agent.memory`):

- evidence: matched neighbours that s and t have in common, by how far the relations that lead there correspond and how
  well they tell entities apart; the two strongest; the number of edges on either side that are borne out;
- contradiction: edges of s to matched neighbours whose counterpart is no neighbour of t, as far as such an edge would
  be expected in the other graph; the same for t;
- openness: edges to neighbours that nobody has decided yet, on either side;
- kind: how far the relations around s have corresponding relations around t, whoever they lead to, and back; degrees;
- likeness: the cosine and the CSLS of the re-estimated vectors (`rlea.agent.spread`);
- standing: by how much the pair's key leads (or trails) the best other pair of s, and of t.

Features of (s, t) come from its neighbours' links, not from its own, so a mistake does not vouch for itself; only in
how far relations correspond does its own link count, as one of all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

from rlea.agent.memory import Floats, Memory
from rlea.agent.spread import inner_products
from rlea.arithmetic import log1p_of, log_of
from rlea.graph import Ids

# Names of the columns, by the group that an ablation takes away.
GROUPS: dict[str, tuple[str, ...]] = {
    "evidence": ("evidence", "strongest", "second", "borne out source", "borne out target"),
    "contradiction": ("missing source", "missing target", "share source", "share target"),
    "openness": ("open source", "open target"),
    "kind": ("kind source", "kind target", "degree source", "degree target", "unequal", "larger"),
    "likeness": ("cosine", "csls"),
    "standing": ("lead source", "lead target"),
}
COLUMNS: tuple[str, ...] = tuple(name for names in GROUPS.values() for name in names)
NUM_COUNTED = 17  # the columns that compiled code fills: all before likeness

MAX_EDGES = 256  # of a hub that are looked at; the evidence of more is beyond doubt
MOST_LEAD = 2.0  # leads are cut here: a larger one says no more


@dataclass(frozen=True, eq=False)
class Pairs:
    """Candidate pairs of entity ids, each once, sorted by source and then target."""

    source_ids: Ids  # (num_pairs,)
    target_ids: Ids  # (num_pairs,)

    def __len__(self) -> int:
        return len(self.source_ids)

    @staticmethod
    def of(source_ids: NDArray[np.integer], target_ids: NDArray[np.integer]) -> Pairs:
        width = int(np.max(target_ids, initial=0)) + 1
        keys = np.sort(np.asarray(source_ids, np.int64) * width + np.asarray(target_ids, np.int64))
        if len(keys):  # `np.unique` takes ten times as long
            keys = keys[np.append(True, keys[1:] != keys[:-1])]
        source, target = np.divmod(keys, width)
        return Pairs(source.astype(np.int32), target.astype(np.int32))


@dataclass(frozen=True, eq=False)
class Sight:
    """Features of pairs under a memory, and the key of best-first that they begin from."""

    features: Floats  # (num_pairs, len(COLUMNS))
    keys: Floats  # (num_pairs,)


def look(pairs: Pairs, memory: Memory, vectors: tuple[Floats, Floats], *, evidence_weight: float) -> Sight:
    """Features of all pairs; `vectors` are those of `spread` under the same memory."""
    source, target = memory.board.source, memory.board.target
    like = memory.correspondence
    features = np.zeros((len(pairs), len(COLUMNS)), np.float32)
    _count(
        features,
        pairs.source_ids,
        pairs.target_ids,
        source.starts,
        source.relation_ids,
        source.neighbour_ids,
        source.functionality,
        target.starts,
        target.relation_ids,
        target.neighbour_ids,
        target.functionality,
        memory.counterparts,
        memory.counterparts_back,
        memory.trust,
        like,
        like.max(axis=1, initial=0),
        like.max(axis=0, initial=0),
    )
    cosine = inner_products(*vectors, pairs.source_ids, pairs.target_ids)
    csls = discount_hubs(pairs, cosine)
    keys = csls + np.float32(evidence_weight) * features[:, 0]
    features[:, NUM_COUNTED], features[:, NUM_COUNTED + 1] = cosine, csls
    features[:, NUM_COUNTED + 2] = leads(pairs.source_ids, keys)
    features[:, NUM_COUNTED + 3] = leads(pairs.target_ids, keys)
    return Sight(features, keys)


def discount_hubs(pairs: Pairs, scores: Floats, k: int = 10) -> Floats:
    """CSLS over the pairs at hand: twice the score, less the mean of the k best of either entity."""
    means = (mean_of_best(ids, scores, k)[ids] for ids in (pairs.source_ids, pairs.target_ids))
    return np.asarray(2 * scores - sum(means), np.float32)


def mean_of_best(ids: Ids, scores: Floats, k: int = 10) -> Floats:
    """The mean of the k best scores of every id (fewer where there are fewer; 0 without any)."""
    best = np.asarray(_best(ids, scores, int(ids.max(initial=-1)) + 1, k))
    counts = np.isfinite(best).sum(axis=1)
    return np.asarray(np.where(np.isfinite(best), best, 0).sum(axis=1) / np.maximum(counts, 1), np.float32)


def is_near(pairs: Pairs, values: Floats, k: int) -> NDArray[np.bool_]:
    """Which pairs are among the k best of their source, or of their target."""
    result = np.zeros(len(pairs), np.bool_)
    for ids in (pairs.source_ids, pairs.target_ids):
        best = np.asarray(_best(ids, values, int(ids.max(initial=-1)) + 1, k))
        result |= values >= best[ids, k - 1]
    return result


def leads(ids: Ids, keys: Floats, most: float = MOST_LEAD) -> Floats:
    """By how much each pair's key is above the best other one of the same id; `most` where there is no other."""
    if len(ids) == 0:
        return np.zeros(0, np.float32)
    best, second = _two_best(ids, keys, int(ids.max()) + 1)
    rivals = np.where(keys == best[ids], second[ids], best[ids])
    return np.asarray(np.clip(keys - rivals, -most, most), np.float32)


@numba.njit(cache=True)
def _best(ids, values, count, k):  # type: ignore[no-untyped-def]
    """The k best values of every id, best first, -inf where there are fewer."""
    best = np.full((count, k), -np.inf, np.float32)
    for place in range(len(ids)):
        row, value = best[ids[place]], values[place]
        if value > row[k - 1]:
            j = k - 1
            while j > 0 and row[j - 1] < value:
                row[j] = row[j - 1]
                j -= 1
            row[j] = value
    return best


@numba.njit(cache=True)
def _two_best(ids, keys, count):  # type: ignore[no-untyped-def]
    best, second = np.full(count, -np.inf, np.float32), np.full(count, -np.inf, np.float32)
    for k in range(len(ids)):
        i = ids[k]
        if keys[k] > best[i]:
            second[i], best[i] = best[i], keys[k]
        elif keys[k] > second[i]:
            second[i] = keys[k]
    return best, second


@numba.njit(cache=True)
def _back(oriented, half):  # type: ignore[no-untyped-def]
    return oriented - half if oriented >= half else oriented + half


@numba.njit(cache=True, parallel=True)
def _count(  # type: ignore[no-untyped-def]
    features,
    pair_source,
    pair_target,
    s_starts,
    s_relations,
    s_neighbours,
    s_functionality,
    t_starts,
    t_relations,
    t_neighbours,
    t_functionality,
    there,
    back,
    trust,
    like,
    s_expected,
    t_expected,
):
    s_half, t_half = len(s_functionality) // 2, len(t_functionality) // 2
    for k in numba.prange(len(pair_source)):
        s, t = pair_source[k], pair_target[k]
        s_low, t_low = s_starts[s], t_starts[t]
        s_degree, t_degree = s_starts[s + 1] - s_low, t_starts[t + 1] - t_low
        s_high, t_high = s_low + min(s_degree, MAX_EDGES), t_low + min(t_degree, MAX_EDGES)
        borne = np.zeros(MAX_EDGES, np.float32)  # how far each edge of t is borne out
        met = np.zeros(MAX_EDGES, np.float32)  # how far each edge of t meets its kind around s
        evidence, strongest, second = 0.0, 0.0, 0.0
        s_borne, s_wanted, s_open, s_met, s_kinds = 0.0, 0.0, 0, 0.0, 0.0
        s_matched = 0.0
        for i in range(s_low, s_high):
            o, n = s_relations[i], s_neighbours[i]
            away = _back(o, s_half)  # as seen from the neighbour, which speaks for this pair
            m = there[n]
            if m == t:  # the neighbour is matched with this very target: it cannot be a neighbour's counterpart too
                m = -1
            best, kind, seen = 0.0, 0.0, 0.0
            for j in range(t_low, t_high):
                p = t_relations[j]
                likeness = like[o, p]
                if likeness <= 0:
                    continue
                if likeness > kind:
                    kind = likeness
                if likeness > met[j - t_low]:
                    met[j - t_low] = likeness
                if m >= 0 and t_neighbours[j] == m:
                    towards = _back(p, t_half)
                    step = like[away, towards] * min(s_functionality[away], t_functionality[towards]) * trust[n]
                    evidence += step
                    best = max(best, step)
                    seen = max(seen, likeness * trust[n])
                    borne[j - t_low] = max(borne[j - t_low], np.float32(likeness * trust[n]))
            s_kinds += s_expected[o]
            s_met += min(kind, s_expected[o])
            if m >= 0:
                s_wanted += s_expected[o] * trust[n]
                s_matched += min(seen, s_expected[o] * trust[n])
                s_borne += seen
            elif there[n] < 0:
                s_open += 1
            if best > strongest:
                strongest, second = best, strongest
            elif best > second:
                second = best
        t_borne, t_wanted, t_open, t_met, t_kinds, t_matched = 0.0, 0.0, 0, 0.0, 0.0, 0.0
        for j in range(t_low, t_high):
            p, n = t_relations[j], back[t_neighbours[j]]
            t_kinds += t_expected[p]
            t_met += min(met[j - t_low], t_expected[p])
            if n >= 0 and n != s:
                wanted = t_expected[p] * trust[n]
                t_wanted += wanted
                t_matched += min(borne[j - t_low], wanted)
                t_borne += borne[j - t_low]
            elif n < 0:
                t_open += 1
        ratio = log_of((s_degree + 1) / (t_degree + 1))
        row = features[k]
        row[0], row[1], row[2] = np.sqrt(evidence), np.sqrt(strongest), np.sqrt(second)
        row[3], row[4] = log1p_of(s_borne), log1p_of(t_borne)
        row[5], row[6] = s_wanted - s_matched, t_wanted - t_matched
        row[7], row[8] = s_matched / (s_wanted + 0.2), t_matched / (t_wanted + 0.2)
        row[9], row[10] = log1p_of(s_open), log1p_of(t_open)
        row[11], row[12] = s_met / (s_kinds + 0.2), t_met / (t_kinds + 0.2)
        row[13], row[14] = log1p_of(s_degree), log1p_of(t_degree)
        row[15], row[16] = abs(ratio), ratio
