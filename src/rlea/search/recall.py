"""What the approximate searches by vectors and by names share: the recall that is wanted, and the one measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rlea.errors import InputError
from rlea.search.candidates import Candidates

RECALL = 0.95  # wanted share of the exact candidates
SAMPLE = 500  # entities per side whose exact candidates are computed: the recall is then known to about a point
EXACT_SHARE = 0.5  # of the work of an exact search: beyond it an approximate search gains little


@dataclass(frozen=True, eq=False, kw_only=True)
class MeasuredSearch:
    """Candidates, and how many of the exact ones are among them.

    The recalls are shares of the exact k best, measured on `sampled` entities per side that were not used to tune the
    search (pools of fewer than 1,000 entities are used whole for both). Where an approximate search would not have
    paid, the search was exact: the recalls are then 1, without a sample.
    """

    candidates: Candidates
    forward_recall: float = 1.0  # of the targets of a source
    backward_recall: float = 1.0  # of the sources of a target
    sampled: int = 0
    share: float  # of the work of an exact search that was done

    @property
    def recall(self) -> float:
        """The lower of both directions."""
        return min(self.forward_recall, self.backward_recall)

    def recalls(self) -> dict[str, Any]:
        """The part of the record of a run that both searches share."""
        return {
            "recall": round(self.recall, 4),
            "forward_recall": round(self.forward_recall, 4),
            "backward_recall": round(self.backward_recall, 4),
            "sampled": self.sampled,
        }


def check_search(recall: float, **counts: int | None) -> None:
    """Refuse a wanted recall outside (0, 1] and counts below 1."""
    if not 0 < recall <= 1:
        raise InputError(f"the wanted recall is {recall}", remedy="give a number above 0, up to 1")
    for name, value in counts.items():
        if value is not None and value < 1:
            raise InputError(f"{name} is {value}", remedy="give a number of at least 1")
