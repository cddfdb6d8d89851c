"""Seconds and peak memory of what is measured, stage by stage."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numba

from rlea import peak_memory as memory
from rlea.deciders import Clock

MEMORY = (
    "peak resident memory of the one process, counted anew at each stage where the system allows it; "
    "graphs, vectors and candidates are part of it"
)


class Costs(Clock):
    """`with costs("deciding"): ...` notes what the block cost under that name."""

    def __init__(self) -> None:
        super().__init__()
        self.memory_mb: dict[str, float] = {}

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        memory.reset_peak()
        with super().__call__(stage):
            yield
        self.memory_mb[stage] = round(memory.peak_mb(), 1)

    def of(self, stage: str) -> dict[str, Any]:
        """What a record says of a stage."""
        measured = {"seconds": self.seconds[stage], "peak_memory_mb": self.memory_mb[stage]}
        return {**measured, "memory": MEMORY, "threads": numba.get_num_threads()}
