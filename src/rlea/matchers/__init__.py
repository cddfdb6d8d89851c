"""The matchers by name. Each is one file with one function `match(task) -> Matching`; none sees a gold link."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from rlea.matching import Matching, Task


@dataclass(frozen=True)
class Matcher:
    """A matcher: where it lives, whether its links are one-to-one, and what it does in a few words."""

    module: str
    one_to_one: bool
    summary: str
    uses_structure: bool = False  # looks at the graphs and not only at similarity
    trained: bool = False  # learns from the seeds first, which takes a while
    takes_vectors: bool = True  # False: looks at the graphs themselves, and an embedding would not be used

    def __call__(self, task: Task) -> Matching:
        # Imported on use: compiled code and scipy need not load to print the help.
        return cast("Matching", import_module(f"rlea.{self.module}").match(task))


MATCHERS: dict[str, Matcher] = {
    "nearest": Matcher("matchers.nearest", False, "the best target of every source"),
    "mutual": Matcher("matchers.mutual", True, "pairs that are each other's best"),
    "greedy": Matcher("matchers.greedy", True, "pairs in descending similarity"),
    "csls": Matcher("matchers.csls", False, "nearest after discounting hubs"),
    "rinf": Matcher("matchers.rinf", False, "nearest by the preferences of both sides"),
    "sinkhorn": Matcher("matchers.sinkhorn", False, "entropic optimal transport"),
    "hungarian": Matcher("matchers.hungarian", True, "assignment with the greatest total similarity"),
    "stable": Matcher("matchers.stable", True, "stable marriage (Gale-Shapley)"),
    "seq": Matcher("matchers.seq", True, "the paper's sequential baseline, after BootEA"),
    "best-first": Matcher("matchers.best_first", True, "surest pair first, matches speak for their neighbours", True),
    "paris": Matcher(
        "matchers.paris", True, "PARIS: triples and literals of both graphs, no vectors", True, takes_vectors=False
    ),
    "rlea": Matcher(
        "paper.matcher", True, "the agent: remembers what it matched, learns from held-out seeds", True, trained=True
    ),
    "fused": Matcher(
        "agent.fused_matcher",
        True,
        "the agent with all evidence: structure, names, words, attributes, PARIS; with or without seeds",
        True,
        trained=True,
        takes_vectors=False,
    ),
}
