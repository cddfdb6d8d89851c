"""Features of a candidate pair: what the decisions so far say for it and against it.

For every candidate pair (s, t), given the links so far (`rlea.agent.memory`):

- evidence: matched neighbours that s and t share, weighted by how well the relations that lead there correspond and
  how identifying they are; the two strongest; the number of edges on either side that are confirmed;
- contradiction: edges of s to matched neighbours whose counterpart is no neighbour of t, weighted by how far such an
  edge is to be expected in the other graph; the same for t;
- openness: edges to neighbours that are not decided yet, on either side;
- kind: how far the relations around s have corresponding relations around t, wherever they lead, and back; degrees;
- similarity: the cosine and the CSLS of the propagated vectors (`rlea.agent.propagation`);
- lead: by how much the pair's priority leads (or trails) the best other pair of s, and of t.

Features of (s, t) come from its neighbours' links and not from its own, so a mistake does not confirm itself. Its own
link only counts, as one of many, in how far relations correspond.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np

from rlea.agent.memory import Memory
from rlea.arithmetic import log1p_of, log_of
from rlea.search.pairs import Floats, Pairs, discount_hubs, leads
from rlea.search.rows import inner_products

# Names of the columns, by the group that an ablation takes away.
GROUPS: dict[str, tuple[str, ...]] = {
    "evidence": ("evidence", "strongest", "second", "confirmed source", "confirmed target"),
    "contradiction": ("missing source", "missing target", "share source", "share target"),
    "openness": ("open source", "open target"),
    "kind": ("kind source", "kind target", "degree source", "degree target", "unequal", "larger"),
    "similarity": ("cosine", "csls"),
    "lead": ("lead source", "lead target"),
}
COLUMNS: tuple[str, ...] = tuple(name for names in GROUPS.values() for name in names)
# What speaks for a pair, and what against it; openness and degrees do neither.
_AGAINST, _NEITHER = (
    ("missing source", "missing target", "unequal"),
    (*GROUPS["openness"], *GROUPS["kind"][2:4], "larger"),
)
SIGNS: tuple[int, ...] = tuple(-1 if name in _AGAINST else 0 if name in _NEITHER else 1 for name in COLUMNS)
NUM_COUNTED = 17  # columns that compiled code fills: all before similarity

MAX_EDGES = 256  # of a hub that are used; more would not change a decision


@dataclass(frozen=True, eq=False)
class Features:
    """Features of pairs, and the fixed priority that they begin from."""

    columns: Floats  # (num_pairs, num_features)
    priorities: Floats  # (num_pairs,)


def compute_features(
    pairs: Pairs, memory: Memory, vectors: tuple[Floats, Floats], *, evidence_weight: float
) -> Features:
    """Features of all pairs; `vectors` are those of `propagate` under the same memory."""
    source, target = memory.graphs.source, memory.graphs.target
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
    priorities = csls + np.float32(evidence_weight) * features[:, 0]
    features[:, NUM_COUNTED], features[:, NUM_COUNTED + 1] = cosine, csls
    features[:, NUM_COUNTED + 2] = leads(pairs.source_ids, priorities)
    features[:, NUM_COUNTED + 3] = leads(pairs.target_ids, priorities)
    return Features(features, priorities)


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
        confirmed = np.zeros(MAX_EDGES, np.float32)  # how far each edge of t is confirmed
        met = np.zeros(MAX_EDGES, np.float32)  # how far each edge of t has a corresponding relation around s
        evidence, strongest, second = 0.0, 0.0, 0.0
        s_confirmed, s_wanted, s_open, s_met, s_kinds = 0.0, 0.0, 0, 0.0, 0.0
        s_matched = 0.0
        for i in range(s_low, s_high):
            o, n = s_relations[i], s_neighbours[i]
            away = _back(o, s_half)  # as seen from the neighbour, which supports this pair
            m = there[n]
            if m == t:  # the neighbour is matched with this very target: it cannot be a neighbour's counterpart too
                m = -1
            best, kind, seen = 0.0, 0.0, 0.0
            for j in range(t_low, t_high):
                p = t_relations[j]
                similarity = like[o, p]
                if similarity <= 0:
                    continue
                if similarity > kind:
                    kind = similarity
                if similarity > met[j - t_low]:
                    met[j - t_low] = similarity
                if m >= 0 and t_neighbours[j] == m:
                    towards = _back(p, t_half)
                    step = like[away, towards] * min(s_functionality[away], t_functionality[towards]) * trust[n]
                    evidence += step
                    best = max(best, step)
                    seen = max(seen, similarity * trust[n])
                    confirmed[j - t_low] = max(confirmed[j - t_low], np.float32(similarity * trust[n]))
            s_kinds += s_expected[o]
            s_met += min(kind, s_expected[o])
            if m >= 0:
                s_wanted += s_expected[o] * trust[n]
                s_matched += min(seen, s_expected[o] * trust[n])
                s_confirmed += seen
            elif there[n] < 0:
                s_open += 1
            if best > strongest:
                strongest, second = best, strongest
            elif best > second:
                second = best
        t_confirmed, t_wanted, t_open, t_met, t_kinds, t_matched = 0.0, 0.0, 0, 0.0, 0.0, 0.0
        for j in range(t_low, t_high):
            p, n = t_relations[j], back[t_neighbours[j]]
            t_kinds += t_expected[p]
            t_met += min(met[j - t_low], t_expected[p])
            if n >= 0 and n != s:
                wanted = t_expected[p] * trust[n]
                t_wanted += wanted
                t_matched += min(confirmed[j - t_low], wanted)
                t_confirmed += confirmed[j - t_low]
            elif n < 0:
                t_open += 1
        ratio = log_of((s_degree + 1) / (t_degree + 1))
        row = features[k]
        row[0], row[1], row[2] = np.sqrt(evidence), np.sqrt(strongest), np.sqrt(second)
        row[3], row[4] = log1p_of(s_confirmed), log1p_of(t_confirmed)
        row[5], row[6] = s_wanted - s_matched, t_wanted - t_matched
        row[7], row[8] = s_matched / (s_wanted + 0.2), t_matched / (t_wanted + 0.2)
        row[9], row[10] = log1p_of(s_open), log1p_of(t_open)
        row[11], row[12] = s_met / (s_kinds + 0.2), t_met / (t_kinds + 0.2)
        row[13], row[14] = log1p_of(s_degree), log1p_of(t_degree)
        row[15], row[16] = abs(ratio), ratio
