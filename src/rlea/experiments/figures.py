"""Means over folds, and how they are written."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

Result = dict[str, Any]  # the entry `result` of a record
Results = dict[str, list[Result]]  # by the name of the store: results["deciders"] are those of results/deciders.json
Key = tuple[Any, ...]


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


def grouped(results: Iterable[Result], names: Sequence[str], pool: str = "test") -> dict[Key, list[Result]]:
    """The results of one pool by their `names` (such as model, pair, decider); a list has one result per fold."""
    groups: dict[Key, list[Result]] = {}
    for result in results:
        if result.get("pool", pool) == pool:
            groups.setdefault(tuple(result[name] for name in names), []).append(result)
    return groups


def figures_of(results: Iterable[Result], names: Sequence[str], measure: str = "hits@1") -> dict[Key, Figure]:
    """The figure of every combination of `names` in results of the whole test pool."""
    groups = grouped(results, names)
    return {key: Figure.of([float(one[measure]) for one in own]) for key, own in groups.items()}


def share(value: float) -> str:
    """A share of 1 to three digits: .307, and 1.000."""
    return f"{value:.3f}".removeprefix("0") if value >= 0 else "-" + share(-value)


def title(pair: str) -> str:
    """A data set as the paper writes it."""
    return pair.replace("_", "-")


def points(pair: str, difference: float) -> str:
    """How far two shares of 1 are apart on a data set, in points: D-W +1.5."""
    return f"{title(pair)} {100 * difference:+.1f}"


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table as Markdown."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])
