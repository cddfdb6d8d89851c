"""The error types of gold links, named and counted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlea.evaluation.gold_ranks import CORRECT, NO_LINK, NOT_A_CANDIDATE, WRONG_LINK

# In the order of the page: the name, and what it means.
ERROR_TYPES = {
    CORRECT: ("correct", ""),
    WRONG_LINK: ("wrong link", "the source or the target has another link"),
    NO_LINK: ("no link", "neither has a link"),
    NOT_A_CANDIDATE: ("not a candidate", "neither was a candidate of the other"),
}


@dataclass(frozen=True)
class ErrorCount:
    """Number of gold links with this error type."""

    name: str
    meaning: str
    count: int
    share: float


def count_errors(types: NDArray[np.int8], *, with_candidates: bool) -> list[ErrorCount]:
    """The counts by error type, which add up to all gold links; empty without gold links."""
    kinds = [kind for kind in ERROR_TYPES if with_candidates or kind != NOT_A_CANDIDATE] if len(types) else []
    counts = [int((types == kind).sum()) for kind in kinds]
    return [ErrorCount(*ERROR_TYPES[kind], n, n / len(types)) for kind, n in zip(kinds, counts, strict=True)]
