"""What a matcher is given, and what it returns. Neither has a place for gold links."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rlea.graph import Ids, KnowledgeGraph, Links
from rlea.search.candidates import Candidates

if TYPE_CHECKING:
    from rlea.search.embeddings import Embeddings


@dataclass(frozen=True, eq=False)
class Task:
    """All that a matcher may see: two graphs, the seeds, and scored candidate pairs of the entities to be matched."""

    source: KnowledgeGraph
    target: KnowledgeGraph
    seeds: Links
    candidates: Candidates
    seed: int = 0  # of the random numbers, for the matchers that draw and for breaking ties


@dataclass(frozen=True, eq=False)
class Matching:
    """Links found: entity ids of either graph (not positions in a pool) and a confidence in [0, 1] each."""

    source_ids: Ids
    target_ids: Ids
    confidences: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.source_ids)

    @staticmethod
    def of(source_ids: Any, target_ids: Any, confidences: Any) -> Matching:
        """A matching sorted by source id then target id; confidences are clipped to [0, 1]."""
        source = np.asarray(source_ids, dtype=np.int32)
        target = np.asarray(target_ids, dtype=np.int32)
        confidence = np.clip(np.asarray(confidences, dtype=np.float64), 0.0, 1.0)
        if not (source.shape == target.shape == confidence.shape and source.ndim == 1):
            raise ValueError("a matching needs three vectors of the same length")
        order = np.lexsort((target, source))
        arrays = (source[order], target[order], confidence[order])
        for array in arrays:
            array.flags.writeable = False
        return Matching(*arrays)

    @property
    def is_one_to_one(self) -> bool:
        """No entity of either side stands in two links."""
        return len(np.unique(self.source_ids)) == len(self) == len(np.unique(self.target_ids))


def threshold_for(confidences: NDArray[np.float64], precision: float) -> float:
    """The lowest confidence such that links with it or more are right in that share, if confidences are right."""
    ordered = np.sort(np.asarray(confidences, np.float64))[::-1]
    means = np.cumsum(ordered) / np.arange(1, len(ordered) + 1)
    is_last = np.append(ordered[1:] != ordered[:-1], True)[: len(ordered)]  # equals are kept together or not at all
    enough = np.flatnonzero((means >= precision) & is_last)
    return float(ordered[enough[-1]]) if len(enough) else float("inf")


def keep_sure(matching: Matching, precision: float) -> Matching:
    """The surest links, as many as can be kept for their mean confidence to be the precision asked for."""
    kept = matching.confidences >= threshold_for(matching.confidences, precision)
    return Matching.of(matching.source_ids[kept], matching.target_ids[kept], matching.confidences[kept])


def keep_worthwhile(matching: Matching, most: int) -> Matching:
    """The surest n links, n such that F1 is greatest if confidences are chances and `most` links could be right."""
    ordered = np.sort(matching.confidences)[::-1]
    if not len(ordered):
        return matching
    expected = 2 * np.cumsum(ordered) / (np.arange(1, len(ordered) + 1) + most)
    kept = matching.confidences >= ordered[np.argmax(expected)]
    return Matching.of(matching.source_ids[kept], matching.target_ids[kept], matching.confidences[kept])


def toy_task(like: Embeddings) -> Task:
    """A tiny task with vectors of the same kind as `like`, on which a matcher's compiled code can be loaded."""
    import polars as pl

    from rlea.search.candidates import find_candidates
    from rlea.search.embeddings import Embeddings

    edges = pl.DataFrame({"head": ["a", "b", "c"], "relation": ["r", "r", "q"], "tail": ["b", "c", "d"]})
    graph = KnowledgeGraph.build(edges)
    vectors: Any = np.eye(4, dtype=np.float32)
    if like.is_sparse:
        from scipy.sparse import csr_matrix

        vectors = csr_matrix(vectors)
    embeddings = Embeddings(vectors, vectors, measure=like.measure)
    pool = np.arange(1, 4, dtype=np.int32)
    return Task(graph, graph, Links.of([0], [0]), find_candidates(embeddings, pool, pool, 2))
