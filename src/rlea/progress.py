"""How long work reports itself: a callback that is passed down and that only the command line turns into bars."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Called as work advances; `note` is a few words such as a loss or a validation score."""

    def __call__(self, stage: str, done: float, total: float, note: str = "") -> None: ...


def silent(stage: str, done: float, total: float, note: str = "") -> None:
    """The default: say nothing."""
