"""Tasks from planted scores."""

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


def task_of(scores: Any, *, k: int | None = None, seed: int = 0) -> Task:
    """A task whose score of source i and target j is `scores[i, j]`: rows against unit vectors, by inner product."""
    matrix = np.asarray(scores, dtype=np.float32)
    num_rows, num_columns = matrix.shape
    embeddings = Embeddings(matrix, np.eye(num_columns, dtype=np.float32), measure="inner")
    limit = max(num_rows, num_columns, 1) if k is None else k
    candidates = find_candidates(embeddings, np.arange(num_rows), np.arange(num_columns), limit)
    return Task(graph_of(num_rows, "s"), graph_of(num_columns, "t"), Links.empty(), candidates, seed)


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
