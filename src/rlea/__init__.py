"""rlea: link two knowledge graphs. Two graphs in, one-to-one links with a confidence out.

>>> import rlea
>>> result = rlea.align(rlea.read_demo(), channels=("names", "attributes"))
>>> result.links.f1 > 0.5
True
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rlea.compiled_code import find_cache_folder

if TYPE_CHECKING:
    from rlea.agent.agent import AgentSettings, Aligner
    from rlea.duplicates import Duplicates, dedupe
    from rlea.errors import InputError
    from rlea.evidence.channel import Channel
    from rlea.graph import GraphPair, KnowledgeGraph, Links
    from rlea.io.read import read, read_demo
    from rlea.matching import Matching, Task
    from rlea.models.embed import embed_entities
    from rlea.pipeline import align, compare
    from rlea.result import Result, write
    from rlea.search.candidates import Candidates, find_candidates
    from rlea.search.embeddings import Embeddings
    from rlea.settings import AlignSettings
    from rlea.several import SeveralResult, align_several

__version__: str

find_cache_folder()  # before anything imports numba

_HOME = {
    "AgentSettings": "agent.agent",
    "AlignSettings": "settings",
    "Aligner": "agent.agent",
    "Candidates": "search.candidates",
    "Channel": "evidence.channel",
    "Duplicates": "duplicates",
    "Embeddings": "search.embeddings",
    "GraphPair": "graph",
    "InputError": "errors",
    "KnowledgeGraph": "graph",
    "Links": "graph",
    "Matching": "matching",
    "Result": "result",
    "SeveralResult": "several",
    "Task": "matching",
    "align": "pipeline",
    "align_several": "several",
    "compare": "pipeline",
    "dedupe": "duplicates",
    "embed_entities": "models.embed",
    "find_candidates": "search.candidates",
    "read": "io.read",
    "read_demo": "io.read",
    "write": "result",
}

__all__ = [
    "AgentSettings",
    "AlignSettings",
    "Aligner",
    "Candidates",
    "Channel",
    "Duplicates",
    "Embeddings",
    "GraphPair",
    "InputError",
    "KnowledgeGraph",
    "Links",
    "Matching",
    "Result",
    "SeveralResult",
    "Task",
    "align",
    "align_several",
    "compare",
    "dedupe",
    "embed_entities",
    "find_candidates",
    "read",
    "read_demo",
    "write",
]


def __getattr__(name: str) -> Any:
    """Public names load their module on first use, so that `rlea --help` does not wait for numpy."""
    if name == "__version__":
        return _find_version()
    if name not in _HOME:
        raise AttributeError(f"module 'rlea' has no attribute {name!r}")
    return getattr(import_module(f"rlea.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])


def _find_version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("rlea")
    except PackageNotFoundError:  # run from a folder that was never installed
        return "unknown"
