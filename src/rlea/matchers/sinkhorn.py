"""Sinkhorn: entropic optimal transport on the candidate pairs, then the best target of every source."""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from rlea.arithmetic import exp_of, log_of
from rlea.matchers.confidence import similarities
from rlea.matchers.selection import best_of_rows, matching_of
from rlea.matching import Matching, Task
from rlea.search.candidates import Candidates

TEMPERATURE = 0.02  # of cosine-like similarities; usual for alignment: near the hard assignment
ITERATIONS = 100  # 500 change less than 1 % of the choices (EN_FR and D_W, name vectors)


def match(task: Task, temperature: float = TEMPERATURE, iterations: int = ITERATIONS) -> Matching:
    """Every source takes the target that the plan sends most of its mass to; a target may be taken many times."""
    pairs = task.candidates.pairs
    plan = log_transport_plan(task.candidates, temperature, iterations)
    highest = np.full(task.candidates.num_rows, -np.inf)
    np.maximum.at(highest, pairs.rows, plan)
    # Targets that only this source asks for get the same mass up to rounding, so similarity decides.
    finalists = np.flatnonzero(plan >= highest[pairs.rows] - 1e-9)
    return matching_of(task, best_of_rows(task, pairs.scores, among=finalists))


def log_transport_plan(
    candidates: Candidates, temperature: float = TEMPERATURE, iterations: int = ITERATIONS
) -> NDArray[np.float64]:
    """The logarithm of the mass on every candidate pair; shape (num_pairs,).

    Every entity has mass 1. Those of the smaller pool give all of it, those of the larger pool take at most theirs;
    pools of the same size exchange everything, which is the published form. (Serving all of a larger pool would spread
    each source over targets that it does not resemble.) Column sums hold exactly, row sums up to convergence; where the
    candidates admit no such plan they do not converge, but the choice of every row is still defined.
    """
    pairs = candidates.pairs
    num_rows, num_columns = candidates.num_rows, candidates.num_columns
    weights = similarities(candidates, pairs.scores) / temperature
    by_column = np.argsort(pairs.columns, kind="stable")
    column_starts = np.zeros(num_columns + 1, dtype=np.int64)
    np.cumsum(np.bincount(pairs.columns, minlength=num_columns), out=column_starts[1:])
    rows_by_column, weights_by_column = pairs.rows[by_column], weights[by_column]
    row_potentials, column_potentials = np.zeros(num_rows), np.zeros(num_columns)
    for _ in range(iterations):
        _normalise(pairs.row_starts, pairs.columns, weights, column_potentials, row_potentials, num_rows > num_columns)
        _normalise(
            column_starts, rows_by_column, weights_by_column, row_potentials, column_potentials, num_columns > num_rows
        )
    return np.asarray(weights + row_potentials[pairs.rows] + column_potentials[pairs.columns])


@numba.njit(cache=True)
def _normalise(starts, others, weights, other_potentials, potentials, at_most):  # type: ignore[no-untyped-def]
    """Set `potentials` so that the pairs of every group carry the mass 1 (`at_most`: 1 or less).

    All in logarithms, so that nothing overflows.
    """
    for group in range(len(starts) - 1):
        first, last = starts[group], starts[group + 1]
        if first == last:
            continue
        highest = -np.inf
        for place in range(first, last):
            highest = max(highest, weights[place] + other_potentials[others[place]])
        total = 0.0
        for place in range(first, last):
            total += exp_of(weights[place] + other_potentials[others[place]] - highest)
        potential = -highest - log_of(total)
        potentials[group] = min(potential, 0.0) if at_most else potential
