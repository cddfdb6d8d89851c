"""The pairs of a run that a person can be asked about, and in which order.

How to add an order: a function of `Questions` that gives every pair a priority, and its name in `ORDERS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rlea.agent.questions import reach
from rlea.agent.trace import Trace
from rlea.graph import Ids
from rlea.matching import Matching
from rlea.search.ties import tie_hash
from rlea.views.explain import Run

Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Questions:
    """Pairs that the run has decided on, whether they became links or were left out; seeds are not among them."""

    source_ids: Ids  # (num_pairs,)
    target_ids: Ids  # (num_pairs,)
    confidences: Floats  # (num_pairs,) in [0, 1]
    is_link: NDArray[np.bool_]  # (num_pairs,) False for those that were left out
    margins: Floats  # (num_pairs,) the logit less the best other logit of the source; NaN if the run has kept none
    channels: tuple[str, ...]
    # (num_pairs, num_channels) 1 if the channel prefers this target of those that the run has kept for the source, -1
    # if it prefers another one, 0 if it says nothing
    says: NDArray[np.int8]
    reach: Floats  # (num_pairs,) how much is undecided around the pair, before any answer
    gains: Floats  # (num_pairs,) what an answer is expected to bring; NaN where that is not known

    def __len__(self) -> int:
        return len(self.source_ids)

    @staticmethod
    def of(run: Run) -> Questions:
        """All pairs of a run, its links first."""
        links = run.source_ids, run.target_ids, run.confidences
        if run.trace is not None:
            decided = run.trace.source_ids, run.trace.target_ids, run.trace.confidences
        else:
            rows = [(source, *found) for source, found in run.doubtful.items()]
            kinds = (np.int32, np.int32, np.float32)
            decided = tuple(np.array([row[k] for row in rows], kind) for k, kind in enumerate(kinds))  # type: ignore[assignment]
        size = max(run.pair.target.num_entities, 1)
        is_other = ~np.isin(_keys(*decided[:2], size), _keys(*links[:2], size))
        source, target, confidences = (
            np.concatenate([own, other[is_other]]) for own, other in zip(links, decided, strict=True)
        )
        is_link = np.arange(len(source)) < len(links[0])
        channels, says, margins = _opinions(run, source, target)
        around, gains = _reach(run, source, target), np.full(len(source), np.nan, np.float32)
        return Questions(
            source, target, confidences.astype(np.float32), is_link, margins, channels, says, around, gains
        )

    def joined(self, run: Run, source: Ids, target: Ids) -> Questions:
        """The same with pairs at the end that the run has not decided on."""
        _, says, margins = _opinions(run, source, target)
        return replace(
            self,
            source_ids=np.concatenate([self.source_ids, source]),
            target_ids=np.concatenate([self.target_ids, target]),
            confidences=np.concatenate([self.confidences, np.zeros(len(source), np.float32)]),
            is_link=np.concatenate([self.is_link, np.zeros(len(source), np.bool_)]),
            margins=np.concatenate([self.margins, margins]),
            says=np.concatenate([self.says, says]),
            reach=np.concatenate([self.reach, _reach(run, source, target)]),
            gains=np.concatenate([self.gains, np.full(len(source), np.nan, np.float32)]),
        )

    @cached_property
    def disagree(self) -> NDArray[np.bool_]:
        """Where one channel prefers this target and another one does not; (num_pairs,)."""
        return np.asarray((self.says > 0).any(axis=1) & (self.says < 0).any(axis=1))


def _keys(source: Ids, target: Ids, size: int) -> NDArray[np.int64]:
    return source.astype(np.int64) * size + target


def _reach(run: Run, source: Ids, target: Ids) -> Floats:
    """How much is undecided around pairs, by the links that the run ended with; (num_pairs,)."""
    memory = run.memory
    known = Matching.of(memory.source_ids, memory.target_ids, memory.weights)
    return reach(memory.graphs, known, source, target).astype(np.float32)


def _opinions(run: Run, source: Ids, target: Ids) -> tuple[tuple[str, ...], NDArray[np.int8], Floats]:
    """What every channel says of pairs, by its first column, and the margins of their logits."""
    trace = run.trace
    margins = np.full(len(source), np.nan, np.float32)
    columns: dict[str, int] = {}
    for place, column in enumerate(() if trace is None else trace.columns):
        columns.setdefault(run.meanings.get(column, (column, ""))[0], place)
    says = np.zeros((len(source), len(columns)), np.int8)
    if trace is None or not len(trace.pair_source_ids):
        return tuple(columns), says, margins
    size = max(run.pair.target.num_entities, 1)
    keys = _keys(trace.pair_source_ids, trace.pair_target_ids, size)
    order = np.argsort(keys)
    wanted = _keys(source, target, size)
    places = order[np.minimum(np.searchsorted(keys[order], wanted), len(order) - 1)]
    is_kept = keys[places] == wanted
    lead = _lead(trace, trace.logits)
    margins[is_kept] = lead[places[is_kept]]
    for number, place in enumerate(columns.values()):
        scores = trace.features[:, place]
        ahead = _lead(trace, scores)
        said = np.where(ahead < 0, -1, np.where((ahead > 0) & (scores > 0), 1, 0))
        says[is_kept, number] = said[places[is_kept]]
    return tuple(columns), says, margins


def _lead(trace: Trace, scores: Floats) -> Floats:
    """By how much every kept pair is above the best other pair of its source; infinite without another."""
    starts = np.flatnonzero(np.diff(trace.pair_source_ids, prepend=-1))
    group = np.cumsum(np.diff(trace.pair_source_ids, prepend=-1) != 0) - 1
    best = np.maximum.reduceat(scores, starts)[group]
    is_best = scores == best
    num_best = np.add.reduceat(is_best.astype(np.int32), starts)[group]
    second = np.maximum.reduceat(np.where(is_best, -np.inf, scores), starts)[group]
    others = np.where(is_best, np.where(num_best > 1, best, second), best)
    return np.asarray(scores - others, np.float32)


# ---- orders ---------------------------------------------------------------------------------------------------------


def least_confident(questions: Questions) -> Floats:
    """Pairs first that are as likely to be right as to be wrong."""
    return np.asarray(-np.abs(questions.confidences - 0.5), np.float32)


def least_margin(questions: Questions) -> Floats:
    """Pairs first whose best rival is as good; where the run has kept no logits, the least confident."""
    if np.isnan(questions.margins).all():
        return least_confident(questions)
    return np.asarray(-np.nan_to_num(np.abs(questions.margins), nan=np.inf, posinf=1e30), np.float32)


def doubt_by_reach(questions: Questions) -> Floats:
    """Pairs first that are in doubt and around which much is undecided: their answers say something about others."""
    doubt = 4 * questions.confidences * (1 - questions.confidences)
    return np.asarray(doubt * (1 + questions.reach), np.float32)


def most_gain(questions: Questions) -> Floats:
    """Pairs first whose answer is expected to bring most; the least confident until the live part has told."""
    if np.isnan(questions.gains).all():
        return least_confident(questions)
    return np.asarray(np.nan_to_num(questions.gains, nan=-np.inf, neginf=-1e30), np.float32)


def at_random(questions: Questions) -> Floats:
    """No pair before another: ties are broken by a hash of the pair."""
    return np.zeros(len(questions), np.float32)


LEARNED = "learned"  # needs a live part
ORDERS: dict[str, Callable[[Questions], Floats]] = {
    "least confident": least_confident,
    "least margin": least_margin,
    "doubt x reach": doubt_by_reach,
    LEARNED: most_gain,
    "random": at_random,
}
DEFAULT_ORDER = "least confident"
BY_STRUCTURE = "doubt x reach"  # for runs by structure alone, where nearly all that an answer brings is about others


def in_order(questions: Questions, name: str) -> NDArray[np.int64]:
    """The places of all questions, the first to be asked first."""
    priorities = ORDERS[name](questions)
    ties = tie_hash(questions.source_ids, questions.target_ids)
    return np.lexsort((ties, -priorities)).astype(np.int64, copy=False)
