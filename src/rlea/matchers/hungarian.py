"""Maximum-weight one-to-one assignment (the Hungarian method): the greatest sum of similarities."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rlea.matchers.selection import Places, matching_of
from rlea.matching import Matching, Task
from rlea.search.candidates import Candidates

DENSE_CELLS = 4_000_000  # complete pools up to this size (2,000 x 2,000, 32 MB) go to the dense solver


def match(task: Task, dense_cells: int = DENSE_CELLS) -> Matching:
    """As many candidate pairs as can be matched one-to-one, and among such matchings one with the highest sum.

    Exact over the candidates. An entity whose candidates are all matched to others stays unmatched.
    """
    candidates = task.candidates
    if len(candidates.pairs) == 0:
        return matching_of(task, np.zeros(0, dtype=np.int64))
    cells = candidates.num_rows * candidates.num_columns
    # The solvers break ties by position; in a random order of rows and columns that favours no id.
    rng = np.random.default_rng(task.seed)
    row_order, column_order = rng.permutation(candidates.num_rows), rng.permutation(candidates.num_columns)
    solve = _assign_dense if candidates.is_complete and cells <= dense_cells else _assign_sparse
    return matching_of(task, solve(candidates, row_order, column_order))


def _assign_dense(candidates: Candidates, row_order: NDArray[np.int64], column_order: NDArray[np.int64]) -> Places:
    from scipy.optimize import linear_sum_assignment

    pairs = candidates.pairs
    scores = np.zeros((candidates.num_rows, candidates.num_columns))
    places = np.zeros(scores.shape, dtype=np.int64)
    rows, columns = row_order[pairs.rows], column_order[pairs.columns]
    scores[rows, columns] = pairs.scores
    places[rows, columns] = np.arange(len(pairs))
    return np.asarray(places[linear_sum_assignment(scores, maximize=True)])


def _assign_sparse(candidates: Candidates, row_order: NDArray[np.int64], column_order: NDArray[np.int64]) -> Places:
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    pairs = candidates.pairs
    rows, columns = row_order[pairs.rows], column_order[pairs.columns]
    num_rows, num_columns = candidates.num_rows, candidates.num_columns
    if num_rows > num_columns:  # rows are the smaller side, so that few of them, if any, stay unmatched
        rows, columns, num_rows, num_columns = columns, rows, num_columns, num_rows
    # Costs start at 1, since the solver reads a stored 0 as "no edge".
    costs = pairs.scores.max() - pairs.scores.astype(np.float64) + 1.0
    # Every row gets a column of its own that means "unmatched", so that a full matching exists. It costs more than all
    # real pairs of any matching together, so that no real match is given up for a better sum.
    unmatched = (num_rows + 1) * float(costs.max())
    own = np.arange(num_rows)
    graph = csr_array(
        (
            np.append(costs, np.full(num_rows, unmatched)),
            (np.append(rows, own), np.append(columns, num_columns + own)),
        ),
        shape=(num_rows, num_columns + num_rows),
    )
    found_rows, found_columns = min_weight_full_bipartite_matching(graph)
    real = found_columns < num_columns
    keys = rows.astype(np.int64) * num_columns + columns
    order = np.argsort(keys, kind="stable")
    wanted = found_rows[real].astype(np.int64) * num_columns + found_columns[real]
    return order[np.searchsorted(keys, wanted, sorter=order)]
