"""The course of a training, from what it says as it advances: for learning curves, not for going on.

It is heard and not returned because a training needs no memory of its course; one that is taken up again from a
checkpoint says only what comes after it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from rlea.progress import Progress

_FIGURES = {"loss": re.compile(r"\bloss (\S+)"), "valid_hits_at_1": re.compile(r"\bvalid Hits@1 (\S+)")}


class History:
    """A progress callback that passes on what it is told and keeps the figures of every epoch."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.epochs: dict[int, dict[str, float]] = {}

    def __call__(self, stage: str, done: float, total: float, note: str = "") -> None:
        self.progress(stage, done, total, note)
        figures = {name: _number(pattern.search(note)) for name, pattern in _FIGURES.items()}
        if figures["loss"] is not None:
            self.epochs[int(done)] = {name: value for name, value in figures.items() if value is not None}

    def rows(self, settings: Mapping[str, Any]) -> list[dict[str, float]]:
        """Loss and validation Hits@1 (to three decimals, as they were told) at the epochs of validation.

        Between them the last score is only said again. `settings` are those of the model: where validation starts and
        how often it comes. Without validation links the same epochs stand there with their loss alone.
        """
        start, every = settings["valid_from"], settings["valid_every"]
        return [
            {"epoch": epoch, **figures}
            for epoch, figures in self.epochs.items()
            if epoch >= start and (epoch - start) % every == 0
        ]


def _number(found: re.Match[str] | None) -> float | None:
    try:
        value = float(found[1]) if found else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) else None
