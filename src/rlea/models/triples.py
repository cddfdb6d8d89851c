"""The positives of a translational model: triples of both graphs over one table of vectors, swapped copies, batches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlea.graph import GraphPair, Ids, Links


@dataclass(frozen=True, eq=False)
class JointTriples:
    """Triples of both graphs with joint ids: source entities come first, then target entities; relations likewise.

    A triple belongs to the graph it came from even where a seed entity has been swapped for its counterpart.
    """

    source: Ids  # (num_source_triples, 3)
    target: Ids  # (num_target_triples, 3)
    num_source_entities: int
    num_target_entities: int
    num_relations: int  # of both graphs together

    @property
    def num_entities(self) -> int:
        return self.num_source_entities + self.num_target_entities

    def __len__(self) -> int:
        return len(self.source) + len(self.target)

    def as_rows(self, triples: Ids) -> Ids:
        """Triples (n, 3) as rows of one table, in which relations follow the entities."""
        return triples + np.array([0, self.num_entities, 0], dtype=np.int32)


def join_triples(pair: GraphPair, *, swap: bool) -> JointTriples:
    """The relation triples of a pair under joint ids; with `swap`, enlarged by the copies the seeds allow."""
    shift = np.array([pair.source.num_entities, pair.source.num_relations, pair.source.num_entities], dtype=np.int32)
    source, target = pair.source.triples, pair.target.triples + shift
    if swap:
        seeds = Links.of(pair.train.source_ids, pair.train.target_ids + pair.source.num_entities)
        source = np.concatenate([source, swapped_copies(source, seeds.source_ids, seeds.target_ids)])
        target = np.concatenate([target, swapped_copies(target, seeds.target_ids, seeds.source_ids)])
    return JointTriples(
        source=np.unique(source.reshape(-1, 3), axis=0).astype(np.int32),
        target=np.unique(target.reshape(-1, 3), axis=0).astype(np.int32),
        num_source_entities=pair.source.num_entities,
        num_target_entities=pair.target.num_entities,
        num_relations=pair.source.num_relations + pair.target.num_relations,
    )


def swapped_copies(triples: Ids, from_ids: Ids, to_ids: Ids) -> Ids:
    """Parameter swapping: a copy of each triple of `from_ids[i]` with `to_ids[i]` in its place.

    One end is replaced at a time, so a triple whose head and tail are both seeds yields two copies.
    """
    copies = []
    for column in (0, 2):
        ordered = triples[np.argsort(triples[:, column], kind="stable")]
        first = np.searchsorted(ordered[:, column], from_ids, side="left")
        count = np.searchsorted(ordered[:, column], from_ids, side="right") - first
        # Row numbers first[i], first[i] + 1, ... for every seed i, one after the other.
        rows = np.repeat(first - (np.cumsum(count) - count), count) + np.arange(count.sum())
        copy = ordered[rows]
        copy[:, column] = np.repeat(to_ids, count)
        copies.append(copy)
    return np.concatenate(copies)


def shuffled(triples: JointTriples, batch_size: int, *, seed: int, epoch: int) -> tuple[Ids, list[int]]:
    """The triples of one epoch in a new order, and the cuts between batches, each with its share of either graph.

    Batch i is `result[cuts[i] : cuts[i + 1]]`. The order follows from `seed` and `epoch` alone, so a run can be taken
    up again at any epoch.
    """
    random = np.random.default_rng([seed, epoch])
    source = triples.source[random.permutation(len(triples.source))]
    target = triples.target[random.permutation(len(triples.target))]
    num_batches = max(1, -(-len(triples) // batch_size))
    source_cuts = np.arange(num_batches + 1) * len(source) // num_batches
    target_cuts = np.arange(num_batches + 1) * len(target) // num_batches
    parts = []
    for i in range(num_batches):
        parts.append(source[source_cuts[i] : source_cuts[i + 1]])
        parts.append(target[target_cuts[i] : target_cuts[i + 1]])
    return np.concatenate(parts), (source_cuts + target_cuts).tolist()


def initial_vectors(num_rows: int, dim: int, *, seed: int) -> NDArray[np.float32]:
    """Normal numbers of standard deviation 1/sqrt(dim), drawn again beyond two deviations. Shape (num_rows, dim)."""
    random = np.random.default_rng([seed, 0])
    values = random.standard_normal((num_rows, dim), dtype=np.float32)
    while (far := np.abs(values) > 2).any():
        values[far] = random.standard_normal(int(far.sum()), dtype=np.float32)
    return values / np.float32(np.sqrt(dim))
