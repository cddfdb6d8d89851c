"""Tasks with planted scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from planted import make_graph
from rlea.graph import Links
from rlea.matching import Task
from rlea.search.candidates import find_candidates
from rlea.search.embeddings import Embeddings


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
    source, target = (make_graph(entities=[f"e{i:04d}" for i in range(count)]) for count in (num_source, num_target))
    return Task(source, target, Links.empty(), candidates, seed)


@pytest.fixture(scope="module", autouse=True)
def _small_tasks(one_thread: None) -> None:
    pass


@pytest.fixture(scope="session")
def make_task() -> Callable[..., Task]:
    return task_of
