"""Entities of one graph that are the same thing: which pairs to look at, and how likely each is.

The channels compare the graph with itself and propose pairs. A pair of an entity with itself is left out, every other
pair stands once. Its log-odds come from its fields (`evidence/fields.py`): what agrees by chance is known from how many
entities have a value. That of n entities one given pair is the same thing has odds of 1 to n beforehand, which are a
duplicate for every second entity; how many there are then is learned from the pairs (`share_of`).

Edges are fields, too. Where neighbours turn out to be duplicates, their edges lead to the same entity: so pairs are
judged again with the clusters that were found.

Entities that are equal in all fields are one record from the beginning, if enough is known of them: a value is common
if many records have it, and not if one record stands there many times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rlea.arithmetic import exp, log
from rlea.clusters import Cluster, cluster_pairs
from rlea.evidence import ATTRIBUTES, NAMES, WORDS
from rlea.evidence.collect import Evidence
from rlea.evidence.fields import Fields, compare_fields, find_equal, read_fields
from rlea.graph import GraphPair, Ids, KnowledgeGraph, Links
from rlea.graph.cannot_link import bits_of
from rlea.progress import Progress, silent
from rlea.search.bags import count_terms, having, weigh_terms
from rlea.search.candidates import find_candidates
from rlea.search.embeddings import Embeddings
from rlea.search.pairs import Pairs

ROUNDS = 2  # of judging pairs where there are edges; a third changes nothing
PROPOSALS = 10  # nearest by shared neighbours
MOST_ODDS = 14.0  # log-odds beyond which more says nothing new
DIGITS = 6  # of a confidence: what differs between machines is beyond
PSEUDO_PAIRS = 5.0  # as if so many had been seen where every second entity is a duplicate; the data outvote them
STEPS, CLOSE = 100, 1e-4  # of learning how many there are, and the change of its logarithm at which it ends


@dataclass(frozen=True)
class Known:
    """What is known of the entities of a graph before any are compared."""

    together: Sequence[Sequence[int]] = ()  # entities that are one thing
    forbidden: Sequence[tuple[int, int]] = ()  # pairs that are two things
    labels: Mapping[int, int] = field(default_factory=dict)  # entities with different ones are two things
    disjoint: Sequence[tuple[str, str]] = ()  # classes without a common entity


NOTHING_KNOWN = Known()


@dataclass(frozen=True, eq=False)
class OwnPairs:
    """Pairs of entities of one graph, each once with the smaller id first, how likely each is, and the clusters."""

    pairs: Pairs  # that were compared; of equal entities the first stands for all
    confidences: NDArray[np.float64]  # (num_pairs,)
    clusters: list[Cluster]
    fields: Fields  # of records
    share: float  # logarithm of the number of duplicates to one for every second entity
    record_ids: Ids  # (num_entities,) the record of every entity

    def rate(self, pairs: Pairs) -> NDArray[np.float64]:
        """Confidences of any pairs, (num_pairs,)."""
        records = Pairs(self.record_ids[pairs.source_ids], self.record_ids[pairs.target_ids])
        return to_confidences(log_odds(records, self.fields) + self.share)


def find_duplicates(
    graph: KnowledgeGraph, *, threshold: float = 0.5, known: Known = NOTHING_KNOWN, progress: Progress = silent
) -> OwnPairs:
    """Pairs that some channel proposes, how likely each is to be the same thing, and clusters of them.

    `threshold` is the least mean confidence of the pairs between two parts of a cluster.
    """
    barred = known.forbidden
    first = join_known(join_equal(graph, known, threshold), known)
    kept, record_ids = np.unique(first, return_inverse=True)
    members = np.split(np.argsort(record_ids, kind="stable"), np.cumsum(np.bincount(record_ids))[:-1])
    records = graph if len(kept) == graph.num_entities else graph.joined(first)
    barred = [(int(record_ids[one]), int(record_ids[other])) for one, other in barred]
    labels = {int(record_ids[one]): label for one, label in known.labels.items()}
    bits = bits_of(records, known.disjoint) if known.disjoint else None
    certain = {int(record_ids[one]) for group in known.together for one in group}
    several = np.array([record for record, own in enumerate(members) if len(own) > 1], np.int32)
    pairs = propose_pairs(records, progress)
    same: list[int] | None = None
    rounds = ROUNDS if graph.num_triples else 1
    for number in range(rounds):
        progress("duplicates", number, rounds, f"{len(pairs):,} pairs")
        fields = read_fields(records, same)
        odds, odds_of_equal = log_odds(pairs, fields), log_odds(Pairs(several, several), fields)
        share = share_of(np.concatenate([odds, odds_of_equal]), records.num_entities)
        confidences = to_confidences(odds + share)
        keys = zip(pairs.source_ids.tolist(), pairs.target_ids.tolist(), strict=True)
        equal = to_confidences(odds_of_equal + share).tolist()
        copies = {
            one: (len(members[one]), 1.0 if one in certain else sure)
            for one, sure in zip(several.tolist(), equal, strict=True)
        }
        rated = dict(zip(keys, confidences.tolist(), strict=True))
        found = cluster_pairs(rated, least=threshold, forbidden=barred, opposed=bits, labels=labels, copies=copies)
        same = list(range(records.num_entities))
        for cluster in found:
            for record in cluster.members:
                same[record] = cluster.members[0]
    progress("duplicates", rounds, rounds)
    clusters = [
        Cluster(tuple(sorted(int(one) for record in cluster.members for one in members[record])), cluster.confidence)
        for cluster in found
    ]
    compared = Pairs(kept[pairs.source_ids], kept[pairs.target_ids])
    return OwnPairs(compared, confidences, clusters, fields, share, record_ids.astype(np.int32))


def join_known(first: Ids, known: Known) -> Ids:
    """The same where entities that are known to be one are joined, too."""
    for group in known.together:
        joined = np.isin(first, first[list(group)])
        first[joined] = first[joined].min(initial=len(first))
    return first


def join_equal(graph: KnowledgeGraph, known: Known, threshold: float) -> Ids:
    """The first of the entities that are equal in all fields, for every entity, (num_entities,); mostly itself.

    Equal ones that must not be in one cluster, or are less sure than `threshold`, each stand for themselves.
    """
    first = np.arange(graph.num_entities, dtype=np.int32)
    for equals in find_equal(graph):
        first[equals] = equals[0]
    apart = {end for one, other in known.forbidden if first[one] == first[other] for end in (one, other)}
    of_group: dict[int, set[int]] = {}
    for one, label in known.labels.items():
        of_group.setdefault(int(first[one]), set()).add(label)
    apart |= {one for one in known.labels if len(of_group[int(first[one])]) > 1}
    # The first may be among them, which must not stand for the others then.
    for group in {int(first[one]) for one in apart}:
        own = np.flatnonzero(first == group)
        others = [one for one in own.tolist() if one not in apart]
        first[own] = own
        first[others] = others[:1] * len(others)
    is_joined = np.bincount(first, minlength=len(first))[first] > 1
    if is_joined.any():
        kept, records = np.unique(first, return_inverse=True)
        several = np.unique(records[is_joined]).astype(np.int32)
        equal = to_confidences(log_odds(Pairs(several, several), read_fields(graph.joined(first))))
        unsure = np.isin(first, kept[several[equal < threshold]])
        first[unsure] = np.flatnonzero(unsure)
    return first


def propose_pairs(graph: KnowledgeGraph, progress: Progress = silent) -> Pairs:
    """Pairs with similar names, words, values or neighbours, each once, none of an entity with itself."""
    pair = GraphPair("itself", graph, graph)
    ids = pair.entity_ids[0]
    # That every entity is itself says which attributes correspond, and which hold names.
    same = Links.of(ids, ids)
    channels = Evidence(pair, progress=progress).collect(Links.empty(), same, (NAMES, WORDS, ATTRIBUTES))
    every = Pairs.union([*(channel.proposals for channel in channels), propose_by_neighbours(graph)])
    kept = every.some(every.source_ids != every.target_ids)
    return Pairs.of(np.minimum(kept.source_ids, kept.target_ids), np.maximum(kept.source_ids, kept.target_ids))


def propose_by_neighbours(graph: KnowledgeGraph) -> Pairs:
    """Entities with many neighbours in common, by the same relations, rare ones first."""
    if not graph.num_triples:
        return Pairs.empty()
    bags: list[list[str]] = [[] for _ in graph.entities]
    for head, relation, tail in graph.triples.tolist():
        bags[head].append(f"{relation}>{tail}")
        bags[tail].append(f"{relation}<{head}")
    counts = count_terms(bags, least=2)
    rows = weigh_terms(counts, having(counts))
    ids = np.arange(graph.num_entities, dtype=np.int32)
    return Pairs.of_candidates(find_candidates(Embeddings(rows, rows, measure="inner"), ids, ids, PROPOSALS))


def log_odds(pairs: Pairs, fields: Fields) -> NDArray[np.float64]:
    """Log-odds that pairs are the same thing, (num_pairs,), if every second entity is a duplicate."""
    num_entities = max(2, len(fields.starts) - 1)
    support, conflict = compare_fields(pairs.source_ids, pairs.target_ids, *fields)
    return np.asarray(support - conflict - float(log(float(num_entities))))


def share_of(odds: NDArray[np.float64], num_entities: int) -> float:
    """Logarithm of the number of duplicates, as a share of one for every second entity, from the log-odds of all pairs.

    Expectation maximisation: as many as the pairs together say, which are the less sure the fewer there are. Where
    there are none, namesakes remain, which many duplicates would have made likely.
    """
    share, half = 0.0, num_entities / 2
    for _ in range(STEPS):
        count = float(to_confidences(odds + share).sum())
        now = min(0.0, float(log((count + PSEUDO_PAIRS) / (half + PSEUDO_PAIRS))))
        if abs(now - share) < CLOSE:
            break
        share = now
    return round(share, DIGITS)


def to_confidences(odds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probabilities of log-odds."""
    return np.asarray(np.round(1 / (1 + exp(-np.clip(odds, -MOST_ODDS, MOST_ODDS))), DIGITS))
