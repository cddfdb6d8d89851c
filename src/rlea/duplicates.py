"""Duplicates within one graph or table: clusters with a confidence, as data and as files."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rlea.clusters import Cluster
from rlea.deciders import Clock
from rlea.errors import InputError
from rlea.io.apart import read_apart
from rlea.io.read import read_one, row_inputs, row_options
from rlea.io.writers.tsv import refuse_unwritable
from rlea.progress import Progress, silent

if TYPE_CHECKING:
    import polars as pl

    from rlea.graph import KnowledgeGraph

THRESHOLD = 0.5
# Members of a cluster up to which all pairs are listed; ten thousand equal rows would be fifty million pairs.
MOST_PAIRED = 50


@dataclass(frozen=True, eq=False, repr=False)
class Duplicates:
    """Clusters of entities that are the same thing.

    >>> import rlea
    >>> names = [("a", "Ada Lovelace"), ("b", "Ada Lovelcae"), ("c", "Alan Turing"), ("d", "Grace Hopper")]
    >>> found = rlea.dedupe({"triples": [], "names": names})
    >>> [[entity for _, entity, *_ in found.cluster_rows()]]
    [['a', 'b']]
    """

    graph: KnowledgeGraph
    clusters: list[Cluster]
    # Of pairs within clusters, the smaller id first: all, or of more than MOST_PAIRED members those with the first.
    confidences: dict[tuple[int, int], float]
    num_pairs: int  # that were compared
    threshold: float = THRESHOLD
    seconds: dict[str, float] = field(default_factory=dict)
    inputs: dict[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.clusters)

    def __repr__(self) -> str:
        return f"Duplicates({self.graph.num_entities:,} entities: {len(self.clusters):,} clusters)"

    def cluster_rows(self) -> list[tuple[int, str, str, float]]:
        """Cluster (numbered from 1), entity, label, and the mean confidence of its pairs in `confidences`."""
        sums, counts = defaultdict[int, float](float), Counter[int]()
        for ends, confidence in self.confidences.items():
            for end in ends:
                sums[end] += confidence
                counts[end] += 1
        return [
            (number, self.graph.entities[member], self.graph.names[member], sums[member] / counts[member])
            for number, cluster in enumerate(self.clusters, start=1)
            for member in cluster.members
        ]

    def pair_rows(self) -> list[tuple[str, str, float, str, str]]:
        """The pairs of `confidences`, the surest first: both identifiers, confidence, both labels."""
        graph = self.graph
        rows = [
            (graph.entities[one], graph.entities[other], confidence, graph.names[one], graph.names[other])
            for (one, other), confidence in self.confidences.items()
        ]
        return sorted(rows, key=lambda row: (-row[2], row[0], row[1]))

    def to_polars(self) -> pl.DataFrame:
        """The clusters as a frame: cluster, entity, label, confidence."""
        import polars as pl

        return pl.DataFrame(self.cluster_rows(), schema=["cluster", "entity", "label", "confidence"], orient="row")

    def summary(self) -> dict[str, Any]:
        """One flat object for machines."""
        sizes = [len(cluster.members) for cluster in self.clusters]
        return {
            "entities": self.graph.num_entities,
            "compared": self.num_pairs,
            "clusters": len(self.clusters),
            "duplicates": sum(sizes) - len(sizes),  # entities that could go
            "pairs": len(self.confidences),
            "expected_right": round(sum(self.confidences.values()), 1),
            "threshold": self.threshold,
            "seconds": {stage: round(value, 3) for stage, value in self.seconds.items()},
        }

    def write(self, folder: str | Path) -> list[Path]:
        """clusters.tsv, pairs.tsv, run.toml and run.json: all of them or none."""
        from rlea.config import dedupe_text, input_paths
        from rlea.io.writers.clusters import write_clusters

        members = ("cluster", "entity", "label", "confidence"), self.cluster_rows()
        pairs = ("one", "other", "confidence", "one_label", "other_label"), self.pair_rows()
        facts = {"result": self.summary(), "inputs": dict(self.inputs), "fingerprint": self.graph.fingerprint}
        config = dedupe_text(self.threshold, self.inputs)
        return write_clusters(folder, members, pairs, facts, config, input_paths(self.inputs))


def dedupe(
    graph: Any,
    *,
    id_column: str = "",
    name_column: str = "",
    columns: str | Sequence[str] = (),
    threshold: float = THRESHOLD,
    different: Any = None,
    disjoint: Any = None,
    for_files: bool = False,
    progress: Progress = silent,
) -> Duplicates:
    """Entities of one graph or table that are the same thing, as clusters with a confidence.

    `graph` is a path, a frame, triples or whatever `rlea.read` takes as one graph, or a `KnowledgeGraph`; the
    columns are as in `rlea.read`. `threshold` is the least mean confidence of the pairs by which a cluster is joined.
    `different` are pairs of entities that are known to be two things (a file of links, a frame, tuples), `disjoint`
    pairs of classes that have no entity in common, given in the same ways: they are never in one cluster. With
    `for_files`, identifiers that `Duplicates.write` could not write are refused before the work.

    >>> import rlea
    >>> len(rlea.dedupe([("a", "near", "b"), ("c", "near", "d")]))
    0
    """
    from rlea.agent.duplicates import Known, find_duplicates
    from rlea.search.pairs import Pairs

    if not 0 < threshold <= 1:
        raise InputError(f"--threshold is {threshold}", remedy="give a number above 0, at most 1, such as 0.5")
    clock = Clock()
    with clock("read"):
        (rows,) = row_options(id_column, name_column, columns, 1)
        own, inputs = read_one(graph, rows, progress)
        apart = read_apart(different, disjoint, [own])
    if not own.num_entities:
        raise InputError("the graph has no entities", remedy="give a graph with something in it")
    if for_files:
        refuse_unwritable(own.entities, "the graph")
    with clock("match"):
        barred = [(one, other) for (_, one), (_, other) in apart.pairs]
        known = Known(forbidden=barred, disjoint=apart.classes)
        found = find_duplicates(own, threshold=threshold, known=known, progress=progress)
        inner = [
            (one, other)
            for cluster in found.clusters
            for place, other in enumerate(cluster.members)
            for one in cluster.members[: place if len(cluster.members) <= MOST_PAIRED else min(place, 1)]
        ]
        pairs = Pairs.of(np.array([one for one, _ in inner], int), np.array([other for _, other in inner], int))
        rated = found.rate(pairs).tolist()
    keys = zip(pairs.source_ids.tolist(), pairs.target_ids.tolist(), strict=True)
    confidences = dict(zip(keys, rated, strict=True))
    # The surest cluster first, then by the first member.
    order = sorted(found.clusters, key=lambda cluster: (-cluster.confidence, cluster.members))
    inputs |= dict(apart.inputs) | row_inputs(id_column, name_column, columns)
    return Duplicates(own, order, confidences, len(found.pairs), threshold, clock.seconds, inputs)
