"""One kind of evidence: the pairs that it brings into the game, and what it says of any pair."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlea.agent.memory import Floats
from rlea.search.pairs import Pairs, leads, numbers

MOST_LEAD = 2.0  # scores are at most about that; a larger lead says no more


@dataclass(frozen=True, eq=False)
class Channel:
    """What one kind of evidence says.

    `score` gives a row of numbers a pair, one for each of `columns`, about 0 to 3. The first is the channel's opinion:
    higher is better, 0 is nothing. The same pair has the same row in whatever company it is asked for.
    """

    name: str  # one of CHANNELS
    columns: tuple[str, ...]
    proposals: Pairs
    score: Callable[[Pairs], Floats]  # (num_pairs,) -> (num_pairs, len(columns))
    info: dict[str, Any] = field(default_factory=dict)  # for the record
    told: Callable[[Pairs], Floats] | None = None  # likewise, in numbers that people know; the scores if there is none

    def best(self) -> NDArray[np.bool_]:
        """Which proposals are the only best ones of both their entities."""
        return stand_out(self.proposals, self.score(self.proposals)[:, 0])


def stand_out(pairs: Pairs, scores: Floats) -> NDArray[np.bool_]:
    """Which pairs have a score above 0 and above that of every other pair of their source, and of their target."""
    better = scores > 0
    for ids in (pairs.source_ids, pairs.target_ids):
        better &= leads(ids, scores, np.inf) > 0
    return better


def describe_pairs(channels: Sequence[Channel], pairs: Pairs) -> Floats:
    """What all channels say of pairs: their rows, and by how much each opinion leads among those of either entity."""
    columns = []
    for channel in channels:
        rows = channel.score(pairs)
        sides = (leads(ids, rows[:, 0], MOST_LEAD) for ids in (pairs.source_ids, pairs.target_ids))
        columns.append(np.column_stack([rows, *sides]))
    nothing = np.zeros((len(pairs), 0), np.float32)
    return np.ascontiguousarray(np.concatenate([nothing, *columns], axis=1), np.float32)


def join_proposals(channels: Sequence[Channel], is_source: NDArray[np.bool_], is_target: NDArray[np.bool_]) -> Pairs:
    """All pairs that some channel proposes, of entities that are to be matched (marked by id)."""
    nothing = np.zeros(0, np.int32)
    source = np.concatenate([nothing, *(channel.proposals.source_ids for channel in channels)])
    target = np.concatenate([nothing, *(channel.proposals.target_ids for channel in channels)])
    kept = is_source[source] & is_target[target]
    return Pairs.of(source[kept], target[kept])


@dataclass(frozen=True, eq=False)
class Table:
    """Scores of some pairs; of all others the score is a given one."""

    pairs: Pairs
    scores: Floats  # (num_pairs,)
    otherwise: float = 0.0

    def __call__(self, wanted: Pairs) -> Floats:
        """(num_wanted,)"""
        result = np.full(len(wanted), self.otherwise, np.float32)
        if len(self.pairs):
            own, asked = numbers(self.pairs), numbers(wanted)
            places = np.minimum(np.searchsorted(own, asked), len(own) - 1)
            known = own[places] == asked
            result[known] = self.scores[places[known]]
        return result
