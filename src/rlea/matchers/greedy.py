"""Greedy matching: take the most similar pair, remove both its entities, and repeat."""

from __future__ import annotations

from rlea.matchers.selection import descending, matching_of, take_in_order
from rlea.matching import Matching, Task


def match(task: Task) -> Matching:
    """Pairs in descending similarity, one-to-one; a source whose candidates are all taken stays unmatched."""
    candidates = task.candidates
    pairs = candidates.pairs
    order = descending(pairs.scores, pairs.rows, pairs.columns, task.seed)
    places = take_in_order(order, pairs.rows, pairs.columns, candidates.num_rows, candidates.num_columns)
    return matching_of(task, places)
