"""What the matchers share: sorting candidate pairs, the best pair of an entity, and making a matching."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from rlea.matchers.confidence import rate_pairs
from rlea.matching import Matching, Task
from rlea.search.ties import hash_pair, tie_hash

Places = NDArray[np.int64]  # places in the arrays of `candidates.pairs`


def matching_of(task: Task, places: Places) -> Matching:
    """The chosen candidate pairs as a matching of entity ids, each with its confidence."""
    candidates = task.candidates
    pairs = candidates.pairs
    rows, columns = pairs.rows[places], pairs.columns[places]
    return Matching.of(
        candidates.source_ids[rows],
        candidates.target_ids[columns],
        rate_pairs(candidates, rows, columns, pairs.scores[places]),
    )


def best_of_rows(task: Task, values: NDArray[Any], among: Places | None = None) -> Places:
    """The place of every row's pair with the highest value; `values` has one number per candidate pair.

    Ties are broken by the tie key. Rows without candidates are left out. `among` limits the choice to some pairs.
    """
    return _best_of(task, task.candidates.pairs.rows, task.candidates.num_rows, values, among)


def best_of_columns(task: Task, values: NDArray[Any]) -> Places:
    """The place of every column's pair with the highest value; see `best_of_rows`."""
    return _best_of(task, task.candidates.pairs.columns, task.candidates.num_columns, values)


def descending(scores: NDArray[Any], rows: NDArray[Any], columns: NDArray[Any], seed: int) -> Places:
    """The places of pairs from the highest score to the lowest, equal scores by the tie key."""
    return np.lexsort((tie_hash(rows, columns, seed), -scores)).astype(np.int64, copy=False)


@numba.njit(cache=True)
def take_in_order(order, rows, columns, num_rows, num_columns):  # type: ignore[no-untyped-def]
    """Go through `order` and take every pair of which neither entity is taken yet; returns the places taken."""
    row_taken = np.zeros(num_rows, dtype=np.bool_)
    column_taken = np.zeros(num_columns, dtype=np.bool_)
    taken = np.empty(min(num_rows, num_columns), dtype=np.int64)
    count = 0
    for place in order:
        row, column = rows[place], columns[place]
        if not row_taken[row] and not column_taken[column]:
            row_taken[row] = True
            column_taken[column] = True
            taken[count] = place
            count += 1
    return taken[:count]


def _best_of(
    task: Task, groups: NDArray[np.int32], num_groups: int, values: NDArray[Any], among: Places | None = None
) -> Places:
    pairs = task.candidates.pairs
    if among is None:
        among = np.arange(len(pairs), dtype=np.int64)
    best: Places = _best_in_groups(
        groups, num_groups, np.asarray(values), among, pairs.rows, pairs.columns, np.uint64(task.seed)
    )
    return best[best >= 0]


@numba.njit(cache=True)
def _best_in_groups(groups, num_groups, values, among, rows, columns, seed):  # type: ignore[no-untyped-def]
    best = np.full(num_groups, -1, dtype=np.int64)
    for place in among:
        group = groups[place]
        rival = best[group]
        better = rival < 0 or values[place] > values[rival]
        if not better and values[place] == values[rival]:
            better = hash_pair(rows[place], columns[place], seed) < hash_pair(rows[rival], columns[rival], seed)
        if better:
            best[group] = place
    return best
