"""The matchers by name. Each is one file with one function `match(task) -> Matching`; none sees a gold link.

The functions here import theirs when called: compiled code and scipy need not load to print the help.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlea.matching import Matching, Task


@dataclass(frozen=True)
class Matcher:
    """A matcher: its function, whether its links are one-to-one, and what it does in a few words."""

    match: Callable[[Task], Matching]
    one_to_one: bool
    summary: str
    uses_structure: bool = False  # looks at the graphs and not only at similarity
    takes_vectors: bool = True  # False: looks at the graphs themselves and would not use an embedding

    def __call__(self, task: Task) -> Matching:
        return self.match(task)


def _nearest(task: Task) -> Matching:
    from rlea.matchers.nearest import match

    return match(task)


def _mutual(task: Task) -> Matching:
    from rlea.matchers.mutual import match

    return match(task)


def _greedy(task: Task) -> Matching:
    from rlea.matchers.greedy import match

    return match(task)


def _csls(task: Task) -> Matching:
    from rlea.matchers.csls import match

    return match(task)


def _rinf(task: Task) -> Matching:
    from rlea.matchers.rinf import match

    return match(task)


def _sinkhorn(task: Task) -> Matching:
    from rlea.matchers.sinkhorn import match

    return match(task)


def _hungarian(task: Task) -> Matching:
    from rlea.matchers.hungarian import match

    return match(task)


def _stable(task: Task) -> Matching:
    from rlea.matchers.stable import match

    return match(task)


def _seq(task: Task) -> Matching:
    from rlea.matchers.seq import match

    return match(task)


def _best_first(task: Task) -> Matching:
    from rlea.matchers.best_first import match

    return match(task)


def _paris(task: Task) -> Matching:
    from rlea.matchers.paris import match

    return match(task)


MATCHERS: dict[str, Matcher] = {
    "nearest": Matcher(_nearest, False, "the best target of every source"),
    "mutual": Matcher(_mutual, True, "pairs that are each other's best"),
    "greedy": Matcher(_greedy, True, "pairs in descending similarity"),
    "csls": Matcher(_csls, False, "nearest after discounting hubs"),
    "rinf": Matcher(_rinf, False, "nearest by the preferences of both sides"),
    "sinkhorn": Matcher(_sinkhorn, False, "entropic optimal transport"),
    "hungarian": Matcher(_hungarian, True, "assignment with the greatest total similarity"),
    "stable": Matcher(_stable, True, "stable marriage (Gale-Shapley)"),
    "seq": Matcher(_seq, True, "the paper's sequential baseline, after BootEA"),
    "best-first": Matcher(_best_first, True, "surest pair first; every match is evidence for its neighbours", True),
    "paris": Matcher(_paris, True, "PARIS: triples and literals of both graphs, no vectors", True, takes_vectors=False),
}
