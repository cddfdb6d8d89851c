"""PARIS (Suchanek, Abiteboul and Senellart, 2011) as a matcher; see `rlea.evidence.paris`.

It uses triples, literals and seeds, and no vectors; of the candidates only the pools.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rlea.evidence.paris import Paris, ParisSettings, run_paris
from rlea.graph import GraphPair, KnowledgeGraph
from rlea.matchers.selection import descending, take_in_order
from rlea.matching import Matching, Task


def match(task: Task, settings: ParisSettings | None = None) -> Matching:
    """Pairs of the pools in descending probability, one-to-one; the probability is the confidence."""
    found = run_paris(GraphPair("", task.source, task.target, train=task.seeds, cannot_link=task.cannot_link), settings)
    pools = task.candidates
    kept = np.isin(found.source_ids, pools.source_ids) & np.isin(found.target_ids, pools.target_ids)
    return take_pairs(found, task.source, task.target, task.seed, kept)


def take_pairs(
    found: Paris, source: KnowledgeGraph, target: KnowledgeGraph, seed: int, kept: NDArray[np.bool_] | None = None
) -> Matching:
    """One-to-one links from the pairs that PARIS found, the surest pair first.

    `kept`, of shape (num_pairs,), says which pairs may be taken; by default all.
    """
    places = slice(None) if kept is None else kept
    rows, columns, doubts = found.source_ids[places], found.target_ids[places], found.doubts[places]
    order = descending(-doubts, rows, columns, seed)
    taken = take_in_order(order, rows, columns, source.num_entities, target.num_entities)
    return Matching.of(rows[taken], columns[taken], 1.0 - doubts[taken])
