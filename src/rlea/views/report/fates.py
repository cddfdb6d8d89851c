"""Where errors come from: what became of the gold links, in words and numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlea.evaluation.gold_ranks import LEFT_OUT, LOST, RIGHT, UNREACHED

# In the order of the page: the name, and what it means.
FATES = {
    RIGHT: ("right", ""),
    LOST: ("lost to a rival", "the source or the target has another link"),
    LEFT_OUT: ("left out", "neither has a link"),
    UNREACHED: ("not among the candidates", "neither end was one of the other's"),
}


@dataclass(frozen=True)
class Part:
    """So many gold links of one fate."""

    name: str
    why: str
    count: int
    share: float


def count_fates(fates: NDArray[np.int8], *, with_candidates: bool) -> list[Part]:
    """How many gold links had which fate; the counts add up to the gold links. None without gold links."""
    if not len(fates):
        return []
    counts = {fate: int((fates == fate).sum()) for fate in FATES if with_candidates or fate != UNREACHED}
    return [Part(*FATES[fate], count, count / len(fates)) for fate, count in counts.items()]
