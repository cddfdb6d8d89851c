"""Tasks with planted scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numba
import numpy as np
import pytest

from rlea.graph import KnowledgeGraph, Links, Literals
from rlea.matching import Task
from rlea.search.candidates import find_candidates
from rlea.search.embeddings import Embeddings


def graph_of(count: int, prefix: str) -> KnowledgeGraph:
    names = tuple(f"{prefix}{number:04d}" for number in range(count))
    nothing = np.zeros(0, dtype=np.int32)
    return KnowledgeGraph(
        names, (), (), np.zeros((0, 3), dtype=np.int32), Literals(nothing, nothing, (), (), ()), names
    )


def task_of(given: Any, *, pools: Any = None, k: int | None = None, seed: int = 0) -> Task:
    """A task over vectors, or over a matrix of the scores of source i and target j; all pairs unless `k` is given."""
    if isinstance(given, Embeddings):
        embeddings = given
    else:  # rows against unit vectors, by inner product
        matrix = np.asarray(given, dtype=np.float32)
        embeddings = Embeddings(matrix, np.eye(matrix.shape[1], dtype=np.float32), measure="inner")
    num_source, num_target = embeddings.source.shape[0], embeddings.target.shape[0]
    source_ids, target_ids = pools or (np.arange(num_source), np.arange(num_target))
    candidates = find_candidates(embeddings, source_ids, target_ids, k or max(num_source, num_target, 1))
    return Task(graph_of(num_source, "s"), graph_of(num_target, "t"), Links.empty(), candidates, seed)


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Waking a second thread costs more than all of these small tasks."""
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    yield
    numba.set_num_threads(before)


@pytest.fixture(scope="session")
def make_task() -> Callable[..., Task]:
    return task_of
