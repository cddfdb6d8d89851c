"""What a matcher is given, what it returns, and which links to keep. Nothing here has a place for gold links."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rlea.graph import Ids, KnowledgeGraph, Links
from rlea.graph.cannot_link import NO_PAIRS, CannotLink
from rlea.search.candidates import Candidates

if TYPE_CHECKING:
    from rlea.search.embeddings import Embeddings


Doubles = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Task:
    """All that a matcher may see: two graphs, the seeds, and scored candidate pairs of the entities to match.

    >>> import rlea
    >>> from rlea.matchers import MATCHERS
    >>> pair = rlea.read_demo()
    >>> pools = pair.entity_ids
    >>> candidates = rlea.find_candidates(rlea.embed_entities(pair, "names"), *pools, k=5)
    >>> len(MATCHERS["mutual"](rlea.Task(pair.source, pair.target, pair.train, candidates))) > 500
    True
    """

    source: KnowledgeGraph
    target: KnowledgeGraph
    seeds: Links
    candidates: Candidates
    seed: int = 0  # random seed, also for breaking ties
    cannot_link: CannotLink = NO_PAIRS  # pairs that are never linked, and not among the candidates


@dataclass(frozen=True, eq=False)
class Matching:
    """The links found: entity ids (not positions in a pool), each with a confidence in [0, 1].

    >>> import rlea
    >>> rlea.Matching.of([0, 1], [4, 3], [0.9, 0.5]).is_one_to_one
    True
    """

    source_ids: Ids  # (num_links,)
    target_ids: Ids  # (num_links,)
    confidences: Doubles  # (num_links,)

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
        """No entity of either side has two links."""
        return len(np.unique(self.source_ids)) == len(self) == len(np.unique(self.target_ids))

    def at_least(self, threshold: float) -> Matching:
        """The links with at least this confidence."""
        return self.some(self.confidences >= threshold)

    def without(self, others: Matching) -> Matching:
        """The links of sources that the others have no link of."""
        return self.some(~np.isin(self.source_ids, others.source_ids))

    def joined(self, others: Matching) -> Matching:
        """The links of both."""
        names = ("source_ids", "target_ids", "confidences")
        return Matching.of(*(np.concatenate([getattr(self, name), getattr(others, name)]) for name in names))

    def some(self, chosen: NDArray[np.bool_]) -> Matching:
        """The chosen links."""
        return Matching.of(self.source_ids[chosen], self.target_ids[chosen], self.confidences[chosen])


def threshold_for(confidences: Doubles, precision: float) -> float:
    """The lowest threshold at which the mean confidence of the links kept is at least `precision`; inf if none is.

    If confidences are calibrated, that is the precision of the links kept. `confidences` has shape (num_links,).
    """
    ordered = np.sort(np.asarray(confidences, np.float64))[::-1]
    means = np.cumsum(ordered) / np.arange(1, len(ordered) + 1)
    is_last = np.append(ordered[1:] != ordered[:-1], True)[: len(ordered)]  # equals are kept together or not at all
    enough = np.flatnonzero((means >= precision) & is_last)
    return float(ordered[enough[-1]]) if len(enough) else float("inf")


def keep_sure(matching: Matching, precision: float) -> Matching:
    """As many of the surest links as have a mean confidence of at least `precision`."""
    return matching.at_least(threshold_for(matching.confidences, precision))


def keep_worthwhile(matching: Matching, most: float, least: float = 0.0) -> Matching:
    """The surest links, as many as make the expected F1 greatest if confidences are calibrated.

    `most` is the number of links that could be right; `least` the lowest confidence of a link that is kept.
    """
    ordered = np.sort(matching.confidences)[::-1]
    if not len(ordered):
        return matching
    expected = 2 * np.cumsum(ordered) / (np.arange(1, len(ordered) + 1) + most)
    return matching.at_least(max(float(ordered[np.argmax(expected)]), least))


def toy_task(like: Embeddings) -> Task:
    """A tiny task with vectors of the same kind as `like`: running a matcher on it loads its compiled code."""
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
