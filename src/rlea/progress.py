"""Progress reports: a callback that is passed down, and that only the command line turns into bars."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Called as work advances; `note` is short, such as a loss or a validation score."""

    def __call__(self, stage: str, done: float, total: float, note: str = "") -> None: ...


def silent(stage: str, done: float, total: float, note: str = "") -> None:
    """Report nothing; the default."""


def counted(number: int, noun: str) -> str:
    """A number with its noun in the singular or plural.

    >>> counted(1, "seed"), counted(1200, "seed"), counted(0, "entity")
    ('1 seed', '1,200 seeds', '0 entities')
    """
    many = f"{noun[:-1]}ies" if noun.endswith("ty") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else many}"
