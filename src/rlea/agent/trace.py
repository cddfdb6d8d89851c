"""The decisions of a pass, kept for explanations: the order of its links, and the best pairs of every source."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rlea.errors import InputError
from rlea.graph import Ids, Links
from rlea.io.array_files import load_arrays, put_arrays
from rlea.record import as_list

if TYPE_CHECKING:
    from rlea.agent.passes import Decisions
    from rlea.search.pairs import Pairs

DECISIONS = "decisions.safetensors"  # the file in the folder of a run
FORMAT = "rlea decisions 3"
RIVALS = 5  # best pairs of every source that are kept

Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Trace:
    """Links in the order of decision, and the best pairs of every source by logit.

    Pairs are sorted by source, then by descending logit. The link of a source is one of its pairs, if it was scored.
    """

    source_ids: Ids  # (num_links,)
    target_ids: Ids  # (num_links,)
    priorities: Floats  # (num_links,) at the moment of decision
    confidences: Floats  # (num_links,)
    pair_source_ids: Ids  # (num_pairs,) ascending
    pair_target_ids: Ids  # (num_pairs,)
    logits: Floats  # (num_pairs,) before the first decision; after the last in a pass without a learned scorer
    features: Floats  # (num_pairs, num_columns) of all channels; no columns if no channel is used
    columns: tuple[str, ...] = ()  # their names

    def __len__(self) -> int:
        return len(self.source_ids)

    @staticmethod
    def of(decisions: Decisions, tell: Callable[[Pairs], Floats] | None = None, columns: Sequence[str] = ()) -> Trace:
        """The trace of a pass; `tell` gives the features of pairs, (num_pairs, len(columns))."""
        from rlea.search.pairs import Pairs, numbers

        source, target, logits = decisions.pairs.source_ids, decisions.pairs.target_ids, decisions.logits
        # Pairs are sorted by source and target and the sort is stable, so ties are in the order of targets.
        order = np.lexsort((-logits, source))
        starts = np.searchsorted(source, source[order])
        is_best = np.arange(len(order)) - starts < RIVALS
        links = np.isin(numbers(decisions.pairs), numbers(Pairs(decisions.source_ids, decisions.target_ids)))
        kept = order[is_best | links[order]]
        pairs = Pairs(np.asarray(source[kept], np.int32), np.asarray(target[kept], np.int32))
        return Trace(
            np.asarray(decisions.source_ids, np.int32),
            np.asarray(decisions.target_ids, np.int32),
            np.asarray(decisions.priorities, np.float32),
            np.asarray(decisions.confidences, np.float32),
            pairs.source_ids,
            pairs.target_ids,
            np.asarray(logits[kept], np.float32),
            np.zeros((len(kept), 0), np.float32) if tell is None else np.asarray(tell(pairs), np.float32),
            tuple(columns),
        )

    @property
    def scored_pairs(self) -> Links:
        """All pairs that are known to have been scored: the best of every source, and the links."""
        best = Links.of(self.pair_source_ids, self.pair_target_ids)
        return Links.union([best, Links.of(self.source_ids, self.target_ids)])

    @cached_property
    def _steps(self) -> dict[int, int]:
        return {source: place + 1 for place, source in enumerate(self.source_ids.tolist())}

    def step(self, source: int) -> int | None:
        """The step in which a source got its link, from 1; None if it got none."""
        return self._steps.get(source)

    def pairs(self, source: int) -> tuple[Ids, Floats]:
        """The targets of a source's best pairs and their logits, best first."""
        low, high = self._range(source)
        return self.pair_target_ids[low:high], self.logits[low:high]

    def source_of(self, target: int) -> int | None:
        """The source that was linked with a target; None if there is none."""
        places = np.flatnonzero(self.target_ids == target)
        return int(self.source_ids[places[0]]) if len(places) else None

    def best_source(self, target: int) -> int | None:
        """The source with the highest logit for a target; None if no pair of the target is kept."""
        places = np.flatnonzero(self.pair_target_ids == target)
        return int(self.pair_source_ids[places[np.argmax(self.logits[places])]]) if len(places) else None

    def features_of(self, source: int, target: int) -> Floats | None:
        """The features of a pair, (num_columns,); None if the pair is not kept."""
        place = self._place(source, target)
        return None if place is None else self.features[place]

    def logit_of(self, source: int, target: int) -> float | None:
        """The logit of a pair; None if the pair is not kept."""
        place = self._place(source, target)
        return None if place is None else float(self.logits[place])

    def _place(self, source: int, target: int) -> int | None:
        low, high = self._range(source)
        found = np.flatnonzero(self.pair_target_ids[low:high] == target)
        return int(low + found[0]) if len(found) else None

    def _range(self, source: int) -> tuple[int, int]:
        """Where the pairs of a source begin and end."""
        # Of the same type: else all ids would be converted for every search.
        wanted = np.array((source, source + 1), self.pair_source_ids.dtype)
        low, high = np.searchsorted(self.pair_source_ids, wanted)
        return int(low), int(high)

    def save(self, path: str | Path) -> None:
        """Write as safetensors (no pickle), atomically."""
        from rlea.io.writers.atomic import atomic

        with atomic(path) as temporary:
            self.put(temporary)

    def put(self, path: Path) -> None:
        """Write as safetensors; the caller makes the write atomic."""
        put_arrays(path, {name: getattr(self, name) for name in _TYPES}, FORMAT, columns=self.columns)

    @staticmethod
    def load(path: str | Path) -> Trace:
        """Read what `save` wrote."""
        remedy = "align again, or remove it: the rest of the run can be explained without it"
        arrays, about = load_arrays(
            path,
            _TYPES,
            FORMAT,
            unreadable="cannot be read as the decisions of a run",
            other="does not hold decisions in the format of this version",
            remedy=remedy,
        )
        trace = Trace(**arrays, columns=tuple(map(str, as_list(about.get("columns")))))
        links, pairs = trace.source_ids.shape, trace.pair_source_ids.shape
        of_links = {trace.target_ids.shape, trace.priorities.shape, trace.confidences.shape}
        of_pairs = {trace.pair_target_ids.shape, trace.logits.shape, trace.features.shape[:1]}
        is_flat = len(links) == 1 and len(pairs) == 1 and trace.features.shape[1:] == (len(trace.columns),)
        is_sorted = is_flat and np.all(trace.pair_source_ids[1:] >= trace.pair_source_ids[:-1])
        if of_links != {links} or of_pairs != {pairs} or not is_sorted:
            raise InputError("holds decisions that do not fit together", path=path, remedy=remedy)
        return trace


_TYPES: dict[str, Any] = dict.fromkeys(("source_ids", "target_ids", "pair_source_ids", "pair_target_ids"), np.int32)
_TYPES |= dict.fromkeys(("priorities", "confidences", "logits", "features"), np.float32)
