"""Planted vectors and names to search."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rlea.graph import GraphPair
from rlea.io.synthetic import SyntheticSettings, generate
from rlea.search.embeddings import Embeddings


def vectors_of(num_entities: int, dim: int = 24, measure: str = "cosine", noise: float = 0.3) -> tuple[Embeddings, Any]:
    """Vectors in groups, and noisy copies of them in another order; entity `truth[i]` is the copy of i."""
    rng = np.random.default_rng(0)

    def draw(count: int) -> Any:
        return rng.standard_normal((count, dim), dtype=np.float32)

    groups = draw(max(num_entities // 40, 1))
    source = groups[rng.integers(0, len(groups), num_entities)] + np.float32(0.6) * draw(num_entities)
    order = rng.permutation(num_entities)
    target = (source + np.float32(noise) * draw(num_entities))[order]
    if measure == "inner":  # norms that differ
        source *= rng.uniform(0.5, 2, (num_entities, 1)).astype(np.float32)
        target *= rng.uniform(0.9, 1.1, (num_entities, 1)).astype(np.float32)
    return Embeddings(source, target, measure=measure), np.argsort(order)


def names_of(num_entities: int, **more: Any) -> GraphPair:
    """Two graphs with misspelt names."""
    return generate(SyntheticSettings(num_entities, triples_per_entity=1.0, values_per_entity=0.0, **more))


@pytest.fixture(scope="session")
def planted_vectors() -> Any:
    return vectors_of


@pytest.fixture(scope="session")
def planted_names() -> Any:
    return names_of
