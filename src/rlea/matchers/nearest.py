"""Nearest neighbour: the best target of every source."""

from __future__ import annotations

from rlea.matchers.selection import best_of_rows, matching_of
from rlea.matching import Matching, Task


def match(task: Task) -> Matching:
    """The best target of every source; a target may be taken many times. Ties are broken by the tie key."""
    return matching_of(task, best_of_rows(task, task.candidates.pairs.scores))
