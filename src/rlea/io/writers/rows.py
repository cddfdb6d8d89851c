"""Links as they are written: identifiers instead of numbers, in an order that depends on their content alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlea.graph import KnowledgeGraph
from rlea.matching import Matching

DECIMALS = 6  # of a confidence in every format


@dataclass(frozen=True, eq=False)
class LinkRows:
    """Row i says that `sources[i]` is `targets[i]`, with a confidence in [0, 1].

    The names are for people to read: one per row, or none at all where they are not known.
    """

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    confidences: NDArray[np.float64]  # (num_links,)
    source_names: tuple[str, ...] = ()
    target_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not len(self.sources) == len(self.targets) == len(self.confidences):
            raise ValueError("sources, targets and confidences must have the same length")
        if {len(self.source_names), len(self.target_names)} not in ({0}, {len(self)}):
            raise ValueError("there must be a name for every row on either side, or none")
        if len(self) and not (self.confidences.min() >= 0.0 and self.confidences.max() <= 1.0):
            raise ValueError("confidences must lie in [0, 1]")

    def __len__(self) -> int:
        return len(self.sources)

    @staticmethod
    def of(matching: Matching, source: KnowledgeGraph, target: KnowledgeGraph) -> LinkRows:
        """The rows of a matching between two graphs, sorted as by `sort`."""
        source_ids, target_ids = matching.source_ids.tolist(), matching.target_ids.tolist()
        return LinkRows.sort(
            [source.entities[number] for number in source_ids],
            [target.entities[number] for number in target_ids],
            matching.confidences,
            [source.names[number] for number in source_ids],
            [target.names[number] for number in target_ids],
        )

    @staticmethod
    def sort(
        sources: Sequence[str],
        targets: Sequence[str],
        confidences: Any,
        source_names: Sequence[str] = (),
        target_names: Sequence[str] = (),
    ) -> LinkRows:
        """Rows by descending confidence, then source identifier, then target identifier.

        Confidences count as they are printed: noise in the last bits, which differs between machines, must not change
        the order of lines.
        """
        values = np.array(confidences, dtype=np.float64)
        # Adding zero turns -0.0 into 0.0, which would print with its sign.
        printed = (np.round(values, DECIMALS) + 0.0).tolist()
        order = sorted(range(len(sources)), key=lambda row: (-printed[row], sources[row], targets[row]))
        values = values[order]
        values.flags.writeable = False
        return LinkRows(
            tuple(sources[row] for row in order),
            tuple(targets[row] for row in order),
            values,
            tuple(source_names[row] for row in order) if source_names else (),
            tuple(target_names[row] for row in order) if target_names else (),
        )

    def printed_confidences(self) -> list[str]:
        """The confidences as decimal numbers with six decimals."""
        return [f"{value:.{DECIMALS}f}" for value in (np.abs(self.confidences)).tolist()]
