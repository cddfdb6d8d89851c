"""What a run on large graphs gives up to stay within a budget of memory (`--memory`)."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rlea.errors import InputError
from rlea.graph.size import is_large

if TYPE_CHECKING:
    from rlea.agent.agent import AgentSettings
    from rlea.graph import GraphPair

_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(TB|GB|MB|T|G|M|)\s*", re.IGNORECASE)
_UNITS = {"t": 1e12, "g": 1e9, "m": 1e6, "": 1e9}


@dataclass(frozen=True)
class Frugality:
    """How much is proposed, kept and propagated, and the memory that goes with it."""

    names: int  # nearest names that are proposed for every entity, both ways
    words: int  # the same of each kind of words
    kept: int  # best pairs of every entity that the passes begin with, and that learned ones look at
    dim: int  # of a step of propagated vectors
    # For a thousand entities of both graphs together, at the peak: of the first level from benchmarks/million.py (5.5
    # at 100,000 a side, 5.3 at a million), of the others an estimate, from what they propose and keep.
    megabytes: float


# From nothing given up to as much as is worth a run.
LEVELS = (Frugality(10, 5, 10, 64, 5.5), Frugality(6, 3, 6, 32, 4.3), Frugality(4, 2, 4, 16, 3.6))
BASE = 400.0  # megabytes of the program itself
ROOM = 1.15  # graphs with more triples and longer texts than those that were measured take more


def parse_memory(text: str) -> float:
    """Bytes of a text such as 8GB or 500MB; 0 for none. Without a unit they are gigabytes."""
    found = _SIZE.fullmatch(text)
    if text and (found is None or not float(found[1])):
        raise InputError(f"--memory is {text!r}", remedy="give a size such as 8GB or 500MB")
    return float(found[1]) * _UNITS[found[2].lower()[:1]] if text and found else 0.0


def choose_frugality(pair: GraphPair, memory: str) -> tuple[Frugality | None, str]:
    """The first level that fits the budget, and what is to be said; None where nothing is given up.

    Graphs that are not large are computed in full, whatever the budget.
    """
    budget, sizes = parse_memory(memory) / 1e6, (pair.source.num_entities, pair.target.num_entities)
    if not budget or not is_large(*sizes):
        return None, ""
    for number, level in enumerate(LEVELS):
        needed = ROOM * (BASE + level.megabytes * sum(sizes) / 1000)
        if needed <= budget and not number:
            return None, ""
        if needed <= budget:
            full = LEVELS[0]
            told = f"{level.names} names in place of {full.names}, {level.words} by words in place of {full.words}"
            kept = f"{level.kept} pairs in place of {full.kept} are kept"
            return level, f"to stay within {memory}, {told} are proposed for an entity, and {kept}"
    raise InputError(
        f"graphs of this size need about {needed / 1000:.1f} GB at least, and --memory is {memory}",
        remedy="give more, or use --matcher best-first without --memory, which looks at names alone",
    )


def frugal_settings(settings: AgentSettings, level: Frugality) -> AgentSettings:
    """Settings of the agent that keep as little as the level says."""
    vectors = replace(settings.passes.vectors, dim=level.dim)
    kept = min(settings.kept, level.kept)
    passes = replace(settings.passes, kept=min(settings.passes.kept, level.kept), vectors=vectors)
    return replace(settings, kept=kept, passes=passes)
