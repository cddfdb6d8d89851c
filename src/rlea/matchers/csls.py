"""CSLS (Conneau et al., 2018): similarity minus the local density around both entities, so that hubs attract less."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rlea.matchers.selection import best_of_rows, matching_of
from rlea.matching import Matching, Task


@dataclass(frozen=True)
class CslsSettings:
    """How the density around an entity is measured."""

    neighbours: int = 10  # the value of the method's authors; most alignment toolkits keep it

    def __post_init__(self) -> None:
        if self.neighbours < 1:
            raise ValueError("neighbours must be at least 1")


def match(task: Task, settings: CslsSettings | None = None) -> Matching:
    """Every source takes the candidate with the highest 2 S(u, v) - r(u) - r(v); a target may be taken many times.

    r is an entity's mean similarity to its nearest `neighbours` of the other side.
    """
    settings = settings or CslsSettings()
    candidates = task.candidates
    pairs = candidates.pairs
    row_means, column_means = candidates.csls_means(settings.neighbours)
    density = row_means.astype(np.float64)[pairs.rows] + column_means.astype(np.float64)[pairs.columns]
    return matching_of(task, best_of_rows(task, 2.0 * pairs.scores - density))
