"""rlea: entity alignment as a sequence of decisions. Two knowledge graphs in, one-to-one links with a confidence out.

>>> import rlea
>>> pair = rlea.read("D_W_15K_V1")                                # doctest: +SKIP
>>> result = rlea.align(pair, rlea.AlignSettings("names"))        # doctest: +SKIP
>>> result.links.f1, len(result.matching)                         # doctest: +SKIP
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rlea.agent.context import ContextAgent
    from rlea.errors import InputError
    from rlea.graph import GraphPair, KnowledgeGraph, Links
    from rlea.matchers import MATCHERS
    from rlea.matching import Matching, Task
    from rlea.models.embed import embed_entities
    from rlea.paper.agent import Agent
    from rlea.pipeline import Result, align, bench, read, write
    from rlea.search.candidates import Candidates, find_candidates
    from rlea.search.embeddings import Embeddings
    from rlea.settings import AlignSettings

_HOME = {
    "Agent": "paper.agent",
    "AlignSettings": "settings",
    "Candidates": "search.candidates",
    "ContextAgent": "agent.context",
    "Embeddings": "search.embeddings",
    "GraphPair": "graph",
    "InputError": "errors",
    "KnowledgeGraph": "graph",
    "Links": "graph",
    "MATCHERS": "matchers",
    "Matching": "matching",
    "Result": "pipeline",
    "Task": "matching",
    "align": "pipeline",
    "bench": "pipeline",
    "embed_entities": "models.embed",
    "find_candidates": "search.candidates",
    "read": "pipeline",
    "write": "pipeline",
}

__all__ = [
    "MATCHERS",
    "Agent",
    "AlignSettings",
    "Candidates",
    "ContextAgent",
    "Embeddings",
    "GraphPair",
    "InputError",
    "KnowledgeGraph",
    "Links",
    "Matching",
    "Result",
    "Task",
    "align",
    "bench",
    "embed_entities",
    "find_candidates",
    "read",
    "write",
]


def __getattr__(name: str) -> Any:
    """Public names load their module on first use, so that `rlea --help` does not wait for numpy."""
    if name not in _HOME:
        raise AttributeError(f"module 'rlea' has no attribute {name!r}")
    return getattr(import_module(f"rlea.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
