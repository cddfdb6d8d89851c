"""CSLS (Conneau et al., 2018): similarity minus the local density around both entities, so that hubs attract less."""

from __future__ import annotations

import numpy as np

from rlea.matchers.selection import best_of_rows, matching_of
from rlea.matching import Matching, Task

NEIGHBOURS = 10  # the value of the method's authors; most alignment toolkits keep it


def match(task: Task, neighbours: int = NEIGHBOURS) -> Matching:
    """Every source takes the candidate with the highest 2 S(u, v) - r(u) - r(v); a target may be taken many times.

    r is an entity's mean similarity to its nearest `neighbours` of the other side.
    """
    pairs = task.candidates.pairs
    row_means, column_means = task.candidates.csls_means(neighbours)
    density = row_means.astype(np.float64)[pairs.rows] + column_means.astype(np.float64)[pairs.columns]
    return matching_of(task, best_of_rows(task, 2.0 * pairs.scores - density))
