"""The contract of a channel: the pairs that it proposes, and its scores of any pair."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rlea.progress import tick
from rlea.search.pairs import Floats, Pairs, leads, numbers
from rlea.tasks import begin, blocks, is_divided, shared

if TYPE_CHECKING:
    from rlea.evidence.vectors import Csls
    from rlea.graph.cannot_link import CannotLink


FEWEST_APART, MOST_PARTS = 20_000, 32  # pairs that are scored elsewhere together; parts of a channel's pairs


@dataclass(frozen=True, eq=False)
class Channel:
    """One kind of evidence.

    `score` gives a row of numbers for each pair, one for each of `columns`. The first is the channel's main score, by
    which rivals are compared: higher is better, 0 is no evidence. It is about 0 to 3 (names 0 to 1, PARIS 0 to 2.4): a
    lead over a rival is cut at 2, so hundreds would all look alike. A pair has the same row whichever other pairs are
    asked for with it.

    >>> import numpy as np, rlea
    >>> from rlea.search.pairs import Pairs
    >>> proposals = Pairs(np.array([0, 1], np.int32), np.array([0, 1], np.int32))
    >>> same_id = rlea.Channel("names", ("same id",), proposals, lambda pairs: np.ones((len(pairs), 1), np.float32))
    >>> same_id.is_best().tolist()
    [True, True]
    """

    name: str  # one of CHANNELS, VECTORS, or a name of one's own
    columns: tuple[str, ...]
    proposals: Pairs
    score: Callable[[Pairs], Floats]  # pairs -> (num_pairs, len(columns))
    info: dict[str, Any] = field(default_factory=dict)  # for the record
    shown: Callable[[Pairs], Floats] | None = None  # as `score`, in units that people know, for explanations
    meanings: tuple[str, ...] = ()  # what each of the columns means there; the columns' names if none are given
    # Made with the seeds, so its scores give held-out seeds away: it takes no part in what is learned from these.
    is_fitted: bool = False
    csls: Csls | None = None  # of vectors: for scoring pairs in compiled code
    against: tuple[str, ...] = ()  # columns in which higher is worse

    def is_best(self) -> NDArray[np.bool_]:
        """Which proposals are mutual best: above 0 and above every other proposal of either entity."""
        scores = self.score(self.proposals)[:, 0]
        best = scores > 0
        for ids in (self.proposals.source_ids, self.proposals.target_ids):
            best &= leads(ids, scores, np.inf) > 0
        return best

    @property
    def width(self) -> int:
        """Number of features that `describe_pairs` makes of it."""
        return len(self.columns) + 2

    @property
    def signs(self) -> list[int]:
        """Of each of these features: 1 if it speaks for a pair, -1 if against it."""
        return [*(-1 if column in self.against else 1 for column in self.columns), 1, 1]


def allowed(channels: list[Channel], barred: CannotLink) -> list[Channel]:
    """The same channels, of which none proposes what is never linked: it gets no votes, and is nobody's rival."""
    if barred.is_empty:
        return channels
    return [replace(channel, proposals=channel.proposals.allowed(barred)) for channel in channels]


def silent_channel(name: str, columns: tuple[str, ...]) -> Channel:
    """A channel without evidence. It keeps the layout of features where a channel found nothing, all of them zero."""
    return Channel(name, columns, Pairs.empty(), lambda pairs: np.zeros((len(pairs), len(columns)), np.float32))


def describe_pairs(channels: Sequence[Channel], pairs: Pairs) -> Floats:
    """Features of pairs, (num_pairs, sum of widths): the scores of each channel, and by how much its main score leads.

    A lead is over the best other pair of the same source, and of the same target.
    """
    nothing = np.zeros((len(pairs), 0), np.float32)
    return np.ascontiguousarray(np.concatenate([nothing, *describe_by_channel(channels, pairs)], axis=1), np.float32)


def describe_by_channel(channels: Sequence[Channel], pairs: Pairs) -> Iterator[Floats]:
    """The same, one channel after the other: (num_pairs, width) each."""
    for channel, finish in [(channel, begin_scores(channel, pairs)) for channel in channels]:
        tick(f"pairs by {channel.columns[0]}")
        rows = finish()
        sides = (leads(ids, rows[:, 0]) for ids in (pairs.source_ids, pairs.target_ids))
        yield np.column_stack([rows, *sides]).astype(np.float32, copy=False)


def begin_scores(channel: Channel, pairs: Pairs) -> Callable[[], Floats]:
    """Have the pairs scored; the function that waits for the rows, (num_pairs, len(columns))."""
    if not is_divided() or len(pairs) < FEWEST_APART:
        return lambda: channel.score(pairs)
    score = shared(channel.score)
    parts = [
        Pairs(pairs.source_ids[rows], pairs.target_ids[rows]) for rows in blocks(len(pairs), FEWEST_APART, MOST_PARTS)
    ]
    begun = [begin("describe pairs", score_part, score, part) for part in parts]
    return lambda: np.concatenate([end() for end in begun])


def score_part(score: Callable[[Pairs], Floats], pairs: Pairs) -> Floats:
    """The rows of some of the pairs."""
    return score(pairs)


def join_proposals(channels: Sequence[Channel], is_source: NDArray[np.bool_], is_target: NDArray[np.bool_]) -> Pairs:
    """All pairs that some channel proposes, of entities that are to be matched (marked by id)."""
    every = Pairs.union([channel.proposals for channel in channels])
    return every.some(is_source[every.source_ids] & is_target[every.target_ids])


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """Scores of some pairs, which are sorted; all others have a default score."""

    pairs: Pairs
    scores: Floats  # (num_pairs,)
    default: float = 0.0

    def __post_init__(self) -> None:
        if len(self.pairs) != len(self.scores):
            raise ValueError(
                f"{len(self.pairs)} pairs have {len(self.scores)} scores: give each pair once, with a score"
            )

    def __call__(self, wanted: Pairs) -> Floats:
        """(num_wanted,)"""
        result = np.full(len(wanted), self.default, np.float32)
        if len(self.pairs):
            own, asked = numbers(self.pairs), numbers(wanted)
            places = np.minimum(np.searchsorted(own, asked), len(own) - 1)
            known = own[places] == asked
            result[known] = self.scores[places[known]]
        return result
