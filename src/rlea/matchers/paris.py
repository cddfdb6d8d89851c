"""PARIS (Suchanek, Abiteboul and Senellart, 2011): pairs by what the facts of both graphs make of them.

It looks at triples, literals and seeds, and neither at vectors nor at candidates; see `rlea.paris`.
"""

from __future__ import annotations

import numpy as np

from rlea.graph import GraphPair
from rlea.matchers.selection import descending, take_in_order
from rlea.matching import Matching, Task
from rlea.paris import ParisSettings, run_paris


def match(task: Task, settings: ParisSettings | None = None) -> Matching:
    """Pairs of the pools in descending probability, one-to-one; the probability is the confidence."""
    found = run_paris(GraphPair("", task.source, task.target, train=task.seeds), settings)
    pools = task.candidates
    kept = np.isin(found.source_ids, pools.source_ids) & np.isin(found.target_ids, pools.target_ids)
    rows, columns, doubts = found.source_ids[kept], found.target_ids[kept], found.doubts[kept]
    order = descending(-doubts, rows, columns, task.seed)
    taken = take_in_order(order, rows, columns, task.source.num_entities, task.target.num_entities)
    return Matching.of(rows[taken], columns[taken], 1.0 - doubts[taken])
