"""Sessions with a simulated person: what a strategy of asking reaches, and what answers bring, to learn from.

The person knows the right links and, if told to, errs in a share of the answers. A question is worth the gain in right
links after the live run has decided again, less its price. To learn what a question is worth before it is asked, pairs
are drawn in states that sessions reach, the true answer to each is played out on a copy of the run, and the gain is
noted beside the features that the pair had before: for right pairs that is what a *yes* brings, for wrong ones a *no*.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rlea.agent.calibration import solve
from rlea.agent.live import LiveRun
from rlea.agent.questions import FEATURES, Asker, Situation, Values, scaled
from rlea.graph import Links
from rlea.matching import Matching, keep_worthwhile
from rlea.search.ties import tie_hash

Doubles = NDArray[np.float64]

RIDGE = 10.0  # on the squares of the slopes, of features in units of their spread
MOST_GAIN = 15.0  # a larger one says that the graph is small, and little of other graphs
PERSON = 23  # use of random numbers
MOST_HASH = float(np.iinfo(np.uint64).max)


@dataclass(frozen=True, eq=False)
class Person:
    """Answers from the right links, and errs in a share of the answers: the same answer whenever a pair is asked."""

    gold: Links
    errs: float = 0.0
    seed: int = 0

    def says(self, source_id: int, target_id: int) -> bool:
        """Whether the person takes the two for the same."""
        return self.knows(source_id, target_id) != self._errs(source_id, target_id)

    def knows(self, source_id: int, target_id: int) -> bool:
        """Whether the two are the same."""
        return (source_id, target_id) in self._known

    @cached_property
    def _known(self) -> set[tuple[int, int]]:
        return set(zip(self.gold.source_ids.tolist(), self.gold.target_ids.tolist(), strict=True))

    def _errs(self, source_id: int, target_id: int) -> bool:
        (number,) = tie_hash(np.array([source_id]), np.array([target_id]), PERSON + self.seed)
        return float(number) < self.errs * MOST_HASH


@dataclass(frozen=True)
class Written:
    """How many links a run would write by default: what the run began with, and what could be right."""

    shared: float  # entities that seemed to have a counterpart when the run began
    expected: float  # right links that it expected then
    most: int  # links that there could be
    least: float = 0.0  # lowest confidence of a link that is written
    is_all: bool = False  # all links are written

    def links(self, run: LiveRun) -> Matching:
        """The links of a run as it is now that are written."""
        links = run.links
        if self.is_all:
            return links
        # Answers change how many links are expected to be right, and so how many entities seem to be shared.
        now = float(links.confidences.sum())
        shared = min(max(self.shared + now - self.expected, now), self.most)
        return keep_worthwhile(links, shared, self.least)


@dataclass(frozen=True, eq=False)
class Stage:
    """A session after some questions."""

    questions: int
    run: LiveRun
    answers: list[tuple[int, int, bool]]  # all so far


def session(
    run: LiveRun, person: Person, strategy: str, *, questions: int, batch: int = 1, seed: int = 0
) -> Iterator[Stage]:
    """Ask by a strategy, `batch` pairs before the run decides again. The first stage is before any question."""
    run, random = run.copy(), np.random.default_rng(seed)
    asker, answers = Asker(run), list[tuple[int, int, bool]]()
    yield Stage(0, run, answers)
    while len(answers) < questions:
        pairs = asker.choose(strategy, min(batch, questions - len(answers)), random)
        if not pairs:
            return
        given = [(source, target, person.says(source, target)) for source, target in pairs]
        run.answer_all(given)
        answers = answers + given
        yield Stage(len(answers), run, answers)


def answers_alone(links: Matching, answers: Sequence[tuple[int, int, bool]]) -> Matching:
    """Links as the answers alone change them, had nothing been decided again."""
    accepted = {(source, target) for source, target, is_right in answers if is_right}
    rejected = {(source, target) for source, target, is_right in answers if not is_right}
    done: tuple[set[int], set[int]] = {source for source, _ in accepted}, {target for _, target in accepted}
    kept = [
        (source, target, confidence)
        for source, target, confidence in zip(
            links.source_ids.tolist(), links.target_ids.tolist(), links.confidences.tolist(), strict=True
        )
        if source not in done[0] and target not in done[1] and (source, target) not in rejected
    ]
    rows = [*kept, *((source, target, 1.0) for source, target in accepted)]
    return Matching.of(*(zip(*rows, strict=True) if rows else ([], [], [])))


# ---- what a question is worth ---------------------------------------------------------------------------------------


def reward(before: float, after: float, price: float) -> float:
    """The gain of a question less its price."""
    return after - before - price


def worth(links: Matching, person: Person) -> float:
    """Right links less wrong ones, halved, each as far as it is believed.

    A right link more raises F1 about as much as a wrong one fewer; both at once, as when one replaces the other, count
    one. Where an answer changes a confidence a little, it brings a little: the next one may bring the rest.
    """
    pairs = zip(links.source_ids.tolist(), links.target_ids.tolist(), strict=True)
    right = np.array([person.knows(source, target) for source, target in pairs], np.float64)
    return float((links.confidences * (right - 0.5)).sum())


def as_decided(run: LiveRun) -> Matching:
    """The links of a run with confidences as the agent has them.

    A single answer moves those of all links that are as sure, too (`LiveRun.corrected`): up after *yes*, down after
    *no*. Over many answers that is calibration; of one it is the luck of the draw, and larger than what it decides.
    """
    links = run.links
    pairs = zip(links.source_ids.tolist(), links.target_ids.tolist(), strict=True)
    return Matching.of(links.source_ids, links.target_ids, [run.confidence(*pair) for pair in pairs])


@dataclass(frozen=True, eq=False)
class Played:
    """Questions whose true answer was played out."""

    features: Doubles  # (num_questions, num_features) before the answer
    is_right: NDArray[np.bool_]  # (num_questions,)
    gains: Doubles  # (num_questions,)

    @staticmethod
    def join(parts: Sequence[Played]) -> Played:
        """All of them."""
        names = ("features", "is_right", "gains")
        return Played(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def play_out(
    run: LiveRun, person: Person, *, questions: int, stages: Sequence[int] = (0, 20, 60), seed: int = 0
) -> Played:
    """Questions in states with so many answers, which random and doubtful pairs alternately have been given.

    A third of the questions are drawn at random, the others as doubt and what hangs on a link make them likely.
    """
    random, run, rows = np.random.default_rng(seed), run.copy(), list[tuple[Doubles, bool, float]]()
    asker, given = Asker(run), 0
    for stage in stages:
        while given < stage:
            number = min(10, stage - given)
            pairs = asker.choose("random" if given % 20 else "least confident", number, random)
            run.answer_all((source, target, person.says(source, target)) for source, target in pairs)
            given += number
        situation = asker.situation()
        if not len(situation):
            break
        before = worth(as_decided(run), person)
        for place in _draw(situation, questions // len(stages), random):
            pair = int(situation.source_ids[place]), int(situation.target_ids[place])
            tried = run.copy()
            tried.answer(*pair, is_right=person.knows(*pair))
            gain = reward(before, worth(as_decided(tried), person), 0.0)
            rows.append((situation.features[place], person.knows(*pair), gain))
    features = np.array([row for row, _, _ in rows]).reshape(len(rows), len(FEATURES))
    is_right, gains = np.array([right for _, right, _ in rows], np.bool_), np.array([gain for _, _, gain in rows])
    return Played(features, is_right, gains)


def _draw(situation: Situation, number: int, random: np.random.Generator) -> NDArray[np.int64]:
    weights = 0.02 + situation.column("doubt") * (1 + situation.column("hanging") + situation.column("undecided"))
    even = np.full(len(weights), 1 / len(weights))
    chances = even / 3 + 2 / 3 * weights / weights.sum()
    return random.choice(len(weights), min(number, len(weights)), replace=False, p=chances / chances.sum())


def learn_values(played: Played, price: float = 0.0) -> Values:
    """Two ridge regressions of gains on features: of right pairs, and of wrong ones."""
    means, scales = played.features.mean(axis=0), np.maximum(played.features.std(axis=0), 0.05)
    rows, gains = scaled(played.features, means, scales), np.clip(played.gains, -MOST_GAIN, MOST_GAIN)
    slopes = []
    for some in (played.is_right, ~played.is_right):
        own, penalty = rows[some], RIDGE * np.eye(rows.shape[1])
        penalty[-1, -1] = 1e-6  # the intercept is free
        squares = np.array([(own * column[:, None]).sum(axis=0) for column in own.T])
        slopes.append(np.asarray(solve(squares + penalty, (own * gains[some][:, None]).sum(axis=0))))
    return Values(means, scales, slopes[0], slopes[1], price)
