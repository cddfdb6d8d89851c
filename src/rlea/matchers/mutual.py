"""Mutual nearest neighbours: the pairs that are each other's best."""

from __future__ import annotations

import numpy as np

from rlea.matchers.selection import best_of_columns, best_of_rows, matching_of
from rlea.matching import Matching, Task


def match(task: Task) -> Matching:
    """The pairs that are the best of their source and of their target: one-to-one, few, mostly right."""
    scores = task.candidates.pairs.scores
    both = np.intersect1d(best_of_rows(task, scores), best_of_columns(task, scores), assume_unique=True)
    return matching_of(task, both)
