"""Means over folds, and how they are written."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rlea.experiments.store import Record


@dataclass(frozen=True)
class Figure:
    """The mean over folds, the standard deviation between them (None of one fold), and how many they are."""

    mean: float
    deviation: float | None
    folds: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Figure:
        return cls(statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else None, len(values))

    def __str__(self) -> str:
        return share(self.mean) + ("" if self.deviation is None else f" ± {share(self.deviation)}")


Key = tuple[str, ...]


def figures_of(
    records: Iterable[Record], names: Sequence[str], value: Callable[[dict[str, Any]], float] | str = "hits@1"
) -> dict[Key, Figure]:
    """The figure of every combination of `names` (such as model, pair, decider) in records of the whole test pool."""
    take = value if callable(value) else lambda result: float(result[value])
    found: dict[Key, dict[str, float]] = {}
    for record in records:
        result = record["result"]
        if result.get("pool", "test") == "test":
            found.setdefault(tuple(str(result[name]) for name in names), {})[result["fold"]] = take(result)
    return {key: Figure.of(list(values.values())) for key, values in found.items()}


def share(value: float) -> str:
    """A share of 1 to three digits: .307, and 1.000."""
    return f"{value:.3f}".removeprefix("0") if value >= 0 else "-" + share(-value)


def title(pair: str) -> str:
    """A data set as the paper writes it."""
    return pair.replace("_", "-")


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table as Markdown."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])
