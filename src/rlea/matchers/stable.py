"""Stable matching by deferred acceptance (Gale and Shapley, 1962): no two entities prefer each other to their partners.

Both sides rank by the same similarity, as in CEA (Zeng et al., 2020). The stable matching is then unique and equals the
greedy one; `stable` reaches it in another way and is kept because it is published under this name.
"""

from __future__ import annotations

import numba
import numpy as np

from rlea.matchers.selection import descending, matching_of
from rlea.matching import Matching, Task


def match(task: Task) -> Matching:
    """The stable matching over the candidates: one-to-one, sources propose, equal scores go by the tie key."""
    candidates = task.candidates
    pairs = candidates.pairs
    order = descending(pairs.scores, pairs.rows, pairs.columns, task.seed)
    rank = np.empty(len(order), dtype=np.int64)  # of a pair: lower is preferred, by its source and its target
    rank[order] = np.arange(len(order))
    proposals = order[np.argsort(pairs.rows[order], kind="stable")]  # row after row, each row's favourite first
    return matching_of(task, _propose(pairs.row_starts, proposals, pairs.columns, rank, candidates.num_columns))


@numba.njit(cache=True)
def _propose(row_starts, proposals, columns, rank, num_columns):  # type: ignore[no-untyped-def]
    held = np.full(num_columns, -1, dtype=np.int64)  # the pair that a column holds
    upcoming = row_starts[:-1].copy()
    row_of = np.empty(num_columns, dtype=np.int64)
    for first in range(len(row_starts) - 1):
        row = first
        while row >= 0 and upcoming[row] < row_starts[row + 1]:
            place = proposals[upcoming[row]]
            upcoming[row] += 1
            column = columns[place]
            if held[column] < 0:
                held[column] = place
                row_of[column] = row
                row = -1
            elif rank[place] < rank[held[column]]:
                # The rejected row proposes next.
                held[column] = place
                row, row_of[column] = row_of[column], row
    return held[held >= 0]
