"""Nearest neighbour: every source takes its best target, whoever else takes it too."""

from __future__ import annotations

from rlea.matchers.selection import best_of_rows, matching_of
from rlea.matching import Matching, Task


def match(task: Task) -> Matching:
    """The best target of every source; a target may be taken many times. Equal scores are settled by the tie key."""
    return matching_of(task, best_of_rows(task, task.candidates.pairs.scores))
