"""What a pass decided, kept for those who ask why: the links in their order, and the best pairs of every source."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rlea.errors import InputError
from rlea.graph import Ids
from rlea.io.array_files import load_arrays, put_arrays
from rlea.record import as_list

if TYPE_CHECKING:
    from rlea.agent.passes import Decisions
    from rlea.search.pairs import Pairs

FORMAT = "rlea decisions 2"
RIVALS = 5  # best pairs of every source that are kept

Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Trace:
    """Links in the order in which they were decided, and the best pairs of every source by worth.

    The pairs stand by source, the best first. The link of a source is one of its pairs, if it was weighed at all.
    """

    source_ids: Ids  # (num_links,)
    target_ids: Ids  # (num_links,)
    keys: Floats  # (num_links,) when they were decided
    confidences: Floats  # (num_links,)
    pair_source_ids: Ids  # (num_pairs,) ascending
    pair_target_ids: Ids  # (num_pairs,)
    worth: Floats  # (num_pairs,) before the first decision; after the last where nothing is learned
    says: Floats  # (num_pairs, num_columns) what whoever is heard says of a pair; no columns where nobody is
    columns: tuple[str, ...] = ()  # who that is

    def __len__(self) -> int:
        return len(self.source_ids)

    @staticmethod
    def of(decisions: Decisions, tell: Callable[[Pairs], Floats] | None = None, columns: Sequence[str] = ()) -> Trace:
        """What is to be kept of a pass; `tell` gives a row of what is said of every pair, a number a column."""
        from rlea.search.pairs import Pairs, numbers

        source, target, worth = decisions.pairs.source_ids, decisions.pairs.target_ids, decisions.logits
        if worth is None:
            kept, worth = np.zeros(0, np.int64), np.zeros(0, np.float32)
        else:
            # Pairs are sorted by source and target and the sort is stable, so equals stand in the order of targets.
            order = np.lexsort((-worth, source))
            starts = np.searchsorted(source, source[order])
            is_kept = np.arange(len(order)) - starts < RIVALS
            links = np.isin(numbers(decisions.pairs), numbers(Pairs(decisions.source_ids, decisions.target_ids)))
            kept = order[is_kept | links[order]]
        pairs = Pairs(np.asarray(source[kept], np.int32), np.asarray(target[kept], np.int32))
        return Trace(
            np.asarray(decisions.source_ids, np.int32),
            np.asarray(decisions.target_ids, np.int32),
            np.asarray(decisions.priorities, np.float32),
            np.asarray(decisions.confidences, np.float32),
            pairs.source_ids,
            pairs.target_ids,
            np.asarray(worth[kept], np.float32),
            np.zeros((len(kept), 0), np.float32) if tell is None else np.asarray(tell(pairs), np.float32),
            tuple(columns),
        )

    @cached_property
    def _steps(self) -> dict[int, int]:
        return {source: place + 1 for place, source in enumerate(self.source_ids.tolist())}

    def step(self, source: int) -> int | None:
        """The place of a source's link in the order, from 1; None where it was given none."""
        return self._steps.get(source)

    def pairs(self, source: int) -> tuple[Ids, Floats]:
        """The targets of a source's best pairs and their worth, the best first."""
        low, high = np.searchsorted(self.pair_source_ids, [source, source + 1])
        return self.pair_target_ids[low:high], self.worth[low:high]

    def given_to(self, target: int) -> int | None:
        """The source that a target was given; None where there is none."""
        places = np.flatnonzero(self.target_ids == target)
        return int(self.source_ids[places[0]]) if len(places) else None

    def best_source(self, target: int) -> int | None:
        """The source that comes nearest to a target by worth; None where no pair of it is kept."""
        places = np.flatnonzero(self.pair_target_ids == target)
        return int(self.pair_source_ids[places[np.argmax(self.worth[places])]]) if len(places) else None

    def said(self, source: int, target: int) -> Floats | None:
        """What is said of a pair, (num_columns,); None where the pair is not among the best of its source."""
        place = self._place(source, target)
        return None if place is None else self.says[place]

    def worth_of(self, source: int, target: int) -> float | None:
        """The worth of a pair; None likewise."""
        place = self._place(source, target)
        return None if place is None else float(self.worth[place])

    def _place(self, source: int, target: int) -> int | None:
        low, high = np.searchsorted(self.pair_source_ids, [source, source + 1])
        found = np.flatnonzero(self.pair_target_ids[low:high] == target)
        return int(low + found[0]) if len(found) else None

    def save(self, path: str | Path) -> None:
        """Keep it as safetensors (no pickle), whole or not at all."""
        from rlea.io.writers.atomic import atomic

        with atomic(path) as temporary:
            self.put(temporary)

    def put(self, path: Path) -> None:
        """Write it as it is, for a caller who sees to the whole."""
        put_arrays(path, {name: getattr(self, name) for name in _TYPES}, FORMAT, columns=self.columns)

    @staticmethod
    def load(path: str | Path) -> Trace:
        """A trace as it was saved."""
        remedy = "align again, or remove it: the rest of the run can be explained without it"
        arrays, about = load_arrays(
            path,
            _TYPES,
            FORMAT,
            unreadable="cannot be read as decisions of a run",
            other="does not hold decisions of this version",
            remedy=remedy,
        )
        trace = Trace(**arrays, columns=tuple(map(str, as_list(about.get("columns")))))
        links, pairs = trace.source_ids.shape, trace.pair_source_ids.shape
        lengths = [trace.target_ids.shape, trace.keys.shape, trace.confidences.shape]
        others = [trace.pair_target_ids.shape, trace.worth.shape, trace.says.shape[:1]]
        fits = {*lengths} == {links} and {*others} == {pairs}
        is_flat = len(links) == 1 and len(pairs) == 1 and trace.says.shape[1:] == (len(trace.columns),)
        if not (fits and is_flat and np.all(trace.pair_source_ids[1:] >= trace.pair_source_ids[:-1])):
            raise InputError("holds decisions that do not fit together", path=path, remedy=remedy)
        return trace


_TYPES: dict[str, Any] = {
    "source_ids": np.int32,
    "target_ids": np.int32,
    "keys": np.float32,
    "confidences": np.float32,
    "pair_source_ids": np.int32,
    "pair_target_ids": np.int32,
    "worth": np.float32,
    "says": np.float32,
}
