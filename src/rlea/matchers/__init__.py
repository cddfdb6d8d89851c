"""The matchers by name. Each is one file with one function `match(task) -> Matching`; none sees a gold link."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlea.matching import Matching, Task


@dataclass(frozen=True)
class Matcher:
    """A matcher: whether its links are one-to-one, and what it does in a few words."""

    name: str
    one_to_one: bool
    summary: str
    uses_structure: bool = False  # looks at the graphs and not only at similarity
    takes_vectors: bool = True  # False: looks at the graphs themselves and would not use an embedding

    def __call__(self, task: Task) -> Matching:
        return _functions()[self.name](task)


def _functions() -> dict[str, Callable[[Task], Matching]]:
    """The functions by name, imported on use: compiled code and scipy need not load to print the help."""
    from rlea.matchers import best_first, csls, greedy, hungarian, mutual, nearest, paris, rinf, seq, sinkhorn, stable

    modules = nearest, mutual, greedy, csls, rinf, sinkhorn, hungarian, stable, seq, best_first, paris
    return {name: module.match for name, module in zip(MATCHERS, modules, strict=True)}


MATCHERS: dict[str, Matcher] = {
    matcher.name: matcher
    for matcher in (
        Matcher("nearest", False, "the best target of every source"),
        Matcher("mutual", True, "pairs that are each other's best"),
        Matcher("greedy", True, "pairs in descending similarity"),
        Matcher("csls", False, "nearest after discounting hubs"),
        Matcher("rinf", False, "nearest by the preferences of both sides"),
        Matcher("sinkhorn", False, "entropic optimal transport"),
        Matcher("hungarian", True, "assignment with the greatest total similarity"),
        Matcher("stable", True, "stable marriage (Gale-Shapley)"),
        Matcher("seq", True, "the paper's sequential baseline, after BootEA"),
        Matcher("best-first", True, "surest pair first; every match is evidence for its neighbours", True),
        Matcher("paris", True, "PARIS: triples and literals of both graphs, no vectors", True, takes_vectors=False),
    )
}
