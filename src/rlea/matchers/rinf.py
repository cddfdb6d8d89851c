"""Reciprocal inference (RInf; Zeng et al., 2021): the ranks that both sides give each other, averaged."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlea.matchers.selection import best_of_rows, matching_of
from rlea.matching import Matching, Task


def match(task: Task) -> Matching:
    """Every source takes the candidate with the best average of two ranks; a target may be taken many times.

    Source u prefers target v by p(u, v) = S(u, v) - max over u' of S(u', v) + 1: a target with a better source
    elsewhere counts less. Targets prefer sources in the same way. Ranks are taken within the candidates of each entity
    (both directions together). Equal preferences share the mean of their ranks; equal averages, which are frequent, go
    to the higher similarity.
    """
    candidates = task.candidates
    pairs = candidates.pairs
    scores = pairs.scores.astype(np.float64)
    row_best = np.full(candidates.num_rows, -np.inf)
    column_best = np.full(candidates.num_columns, -np.inf)
    np.maximum.at(row_best, pairs.rows, scores)
    np.maximum.at(column_best, pairs.columns, scores)
    source_ranks = rank_within(pairs.rows, scores - column_best[pairs.columns] + 1.0)
    target_ranks = rank_within(pairs.columns, scores - row_best[pairs.rows] + 1.0)
    average = (source_ranks + target_ranks) / 2.0
    lowest = np.full(candidates.num_rows, np.inf)
    np.minimum.at(lowest, pairs.rows, average)
    finalists = np.flatnonzero(average == lowest[pairs.rows])
    return matching_of(task, best_of_rows(task, scores, among=finalists))


def rank_within(groups: NDArray[Any], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The rank of every value within its group, 1 for the highest; equal values share their mean rank."""
    count = len(values)
    if count == 0:
        return np.zeros(0)
    order = np.lexsort((-values, groups))
    group, value = groups[order], values[order]
    new_group = np.append(True, group[1:] != group[:-1])
    new_value = new_group | np.append(True, value[1:] != value[:-1])
    places = np.arange(count)
    within = places - np.maximum.accumulate(np.where(new_group, places, 0))  # from 0
    first = np.flatnonzero(new_value)
    last = np.append(first[1:], count) - 1
    mean = (within[first] + within[last]) / 2.0 + 1.0
    ranks = np.empty(count)
    ranks[order] = np.repeat(mean, last - first + 1)
    return ranks
