"""Links as they are written: identifiers instead of numbers, in an order that depends on their content alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlea.graph import KnowledgeGraph
from rlea.graph.iri import is_blank
from rlea.io.writers.blank_nodes import blank_paths
from rlea.matching import Matching

DECIMALS = 6  # of a confidence in every format


@dataclass(frozen=True, eq=False)
class LinkRows:
    """Row i says that `sources[i]` is `targets[i]`, with a confidence in [0, 1].

    The names are for people to read: one per row, or none at all where they are not known. So are the paths of blank
    nodes (see `blank_nodes`), which are "" for other entities.
    """

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    confidences: NDArray[np.float64]  # (num_links,)
    source_names: tuple[str, ...] = ()
    target_names: tuple[str, ...] = ()
    source_paths: tuple[str, ...] = ()
    target_paths: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not len(self.sources) == len(self.targets) == len(self.confidences):
            raise ValueError("sources, targets and confidences must have the same length")
        if {len(self.source_names), len(self.target_names)} not in ({0}, {len(self)}):
            raise ValueError("there must be a name for every row on either side, or none")
        if {len(self.source_paths), len(self.target_paths)} not in ({0}, {len(self)}):
            raise ValueError("there must be a path for every row on either side, or none")
        if len(self) and not (self.confidences.min() >= 0.0 and self.confidences.max() <= 1.0):
            raise ValueError("confidences must lie in [0, 1]")

    def __len__(self) -> int:
        return len(self.sources)

    @staticmethod
    def of(matching: Matching, source: KnowledgeGraph, target: KnowledgeGraph) -> LinkRows:
        """The rows of a matching between two graphs, sorted as by `sort`."""
        source_ids, target_ids = matching.source_ids.tolist(), matching.target_ids.tolist()
        sides = ((source, source_ids), (target, target_ids))
        known = [blank_paths(graph, ids) for graph, ids in sides]
        found = [[paths.get(number, "") for number in ids] for paths, (_, ids) in zip(known, sides, strict=True)]
        return LinkRows.sort(
            [source.entities[number] for number in source_ids],
            [target.entities[number] for number in target_ids],
            matching.confidences,
            [source.names[number] for number in source_ids],
            [target.names[number] for number in target_ids],
            *(found if any(known) else ()),
        )

    @staticmethod
    def sort(
        sources: Sequence[str],
        targets: Sequence[str],
        confidences: Any,
        source_names: Sequence[str] = (),
        target_names: Sequence[str] = (),
        source_paths: Sequence[str] = (),
        target_paths: Sequence[str] = (),
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
            *(
                tuple(texts[row] for row in order) if texts else ()
                for texts in (source_names, target_names, source_paths, target_paths)
            ),
        )

    @property
    def num_blank(self) -> int:
        """The number of rows with a blank node on either side."""
        return sum(map(_has_blank, self.sources, self.targets))

    def without_blank(self) -> LinkRows:
        """The rows that have no blank node: in RDF and SSSOM an IRI would stand for it that no graph has."""
        kept = [row for row, ends in enumerate(zip(self.sources, self.targets, strict=True)) if not _has_blank(*ends)]
        if len(kept) == len(self):
            return self
        texts = (self.source_names, self.target_names)
        return LinkRows(
            tuple(self.sources[row] for row in kept),
            tuple(self.targets[row] for row in kept),
            self.confidences[kept],
            *(tuple(names[row] for row in kept) if names else () for names in texts),
        )

    def printed_confidences(self) -> list[str]:
        """The confidences as decimal numbers with six decimals."""
        return [f"{value:.{DECIMALS}f}" for value in (np.abs(self.confidences)).tolist()]


def _has_blank(source: str, target: str) -> bool:
    return is_blank(source) or is_blank(target)


def blank_note(number: int) -> str:
    """What to tell people about links with blank nodes."""
    links = "1 link has" if number == 1 else f"{number:,} links have"
    return (
        f"{links} a blank node at one end, which has no identifier outside its file: links.tsv has a path to it, and "
        "the other formats leave it out"
    )
