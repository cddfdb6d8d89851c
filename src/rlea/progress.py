"""Progress reports: a callback that is passed down, and that only the command line turns into bars."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol


class Progress(Protocol):
    """Called as work advances; `note` is short, such as a loss or a validation score."""

    def __call__(self, stage: str, done: float, total: float, note: str = "") -> None: ...


def silent(stage: str, done: float, total: float, note: str = "") -> None:
    """Report nothing; the default."""


# What is deep inside a stage does not know the stage, and has no number of steps to count: it ticks.
_tick: ContextVar[Callable[[str], None]] = ContextVar("tick", default=lambda note: None)


def tick(note: str = "") -> None:
    """Say that the stage that was reported last goes on: between steps that take a second or more on large graphs."""
    _tick.get()(note)


@contextmanager
def ticking(progress: Progress) -> Iterator[Progress]:
    """Within the block, `tick` repeats the last report that went through the progress given here."""
    last: tuple[str, float, float] | None = None

    def report(stage: str, done: float, total: float, note: str = "") -> None:
        nonlocal last
        last = stage, done, total
        progress(stage, done, total, note)

    def repeat(note: str) -> None:
        if last is not None:
            progress(*last, note)

    token = _tick.set(repeat)
    try:
        yield report
    finally:
        _tick.reset(token)


class Overall:
    """All stages of a run as one: how much is done, and how long the rest may take.

    `plan` has the stages in their order with the seconds that each should take. A report of a stage says that all
    before it are done; one of an earlier stage, or of one that is not in the plan, changes nothing.

    >>> overall = Overall({"read": 1.0, "match": 3.0}, now=0.0)
    >>> overall.report("match", 1, 3)
    >>> overall.share, round(overall.left(now=4.0))
    (0.5, 3)
    """

    # Share of the plan that counts as done in the time it should take: the first reports say little of the speed.
    TRUST = 0.25

    def __init__(self, plan: Mapping[str, float], now: float) -> None:
        self.plan, self.start, self.done = dict(plan), now, 0.0
        self.total = sum(self.plan.values())

    def report(self, stage: str, done: float, total: float) -> None:
        """A stage has come so far."""
        if stage in self.plan:
            names = list(self.plan)
            before = sum(self.plan[name] for name in names[: names.index(stage)])
            self.done = max(self.done, before + self.plan[stage] * min(1.0, done / max(total, 1e-9)))

    @property
    def share(self) -> float:
        """How much is done, from 0 to 1."""
        return self.done / self.total if self.total else 0.0

    def left(self, now: float) -> float:
        """Seconds that the rest may take, at the speed of this run so far."""
        trusted = self.TRUST * self.total
        return (self.total - self.done) * (now - self.start + trusted) / (self.done + trusted) if self.total else 0.0


def tell_left(seconds: float) -> str:
    """A time as rough as the estimate is.

    >>> [tell_left(seconds) for seconds in (3, 42, 95, 400, 9000)]
    ['a few s left', 'about 40 s left', 'about 2 min left', 'about 7 min left', 'about 2.5 h left']
    """
    if seconds < 10:
        return "a few s left"
    if seconds < 90:
        return f"about {round(seconds, -1):.0f} s left"
    if seconds < 5400:
        return f"about {seconds / 60:.0f} min left"
    return f"about {seconds / 3600:.1f} h left"


class StageLog:
    """What stages took: a line for each, told to `say` when the next one begins, or at the end."""

    def __init__(self, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self.say, self.clock = say, clock
        self.start = self.since = clock()
        self.stage, self.note, self.done = "", "", -1.0

    def report(self, stage: str, done: float, note: str) -> None:
        """A stage goes on, or another begins."""
        if stage != self.stage:
            self._finish()
            self.stage, self.since, self.note, self.done = stage, self.clock(), "", -1.0
        if done != self.done:  # a tick has the number of the report before, and its note is of the moment
            self.note, self.done = note or self.note, done

    def end(self, how: str = "done") -> None:
        """The last stage is over, and so is the run."""
        self._finish()
        self.say(f"{how} after {self.clock() - self.start:.1f} s")

    def _finish(self) -> None:
        if self.stage:
            self.say(f"{self.stage}: {self.clock() - self.since:.1f} s" + (f" ({self.note})" if self.note else ""))
        self.stage = ""


def counted(number: int, noun: str) -> str:
    """A number with its noun in the singular or plural.

    >>> counted(1, "seed"), counted(1200, "seed"), counted(0, "entity")
    ('1 seed', '1,200 seeds', '0 entities')
    """
    many = f"{noun[:-1]}ies" if noun.endswith("ty") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else many}"
