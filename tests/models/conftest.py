"""Small pairs, and tables and batches to try a training step on."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from rlea.graph import GraphPair
from rlea.io.synthetic import SyntheticSettings, generate
from rlea.search.embeddings import Embeddings

ROWS, ENTITIES, DIM = 60, 50, 24  # of a table: relations come after the entities


@pytest.fixture(scope="session")
def pair() -> GraphPair:
    return generate(SyntheticSettings(num_entities=120, num_relations=8, values_per_entity=3.0))


@pytest.fixture
def one_torch_thread() -> Iterator[None]:
    """Products this small are not worth threads, and a busy machine would make them wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def started(model: type[Any], pair: GraphPair, settings: Any) -> Any:
    """A model before its first epoch."""
    training = model(pair, settings, 0, "cpu")
    training.start(0, {})
    return training


def bytes_of(embeddings: Embeddings) -> bytes:
    return np.asarray(embeddings.source).tobytes() + np.asarray(embeddings.target).tobytes()


def random_raw(seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    return random.standard_normal((ROWS, DIM)).astype(np.float32) * random.uniform(0.3, 3, (ROWS, 1)).astype(np.float32)


def random_batch(
    seed: int, size: int = 200, num_negatives: int = 10, num_entities: int = ENTITIES
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Triples by row, negatives (-1: none found), and whether these are tails."""
    random = np.random.default_rng(seed)
    ends, relations = random.integers(0, num_entities, (size, 2)), random.integers(ENTITIES, ROWS, size)
    positives = np.stack([ends[:, 0], relations, ends[:, 1]], axis=1).astype(np.int32)
    negatives = random.integers(-1, num_entities, (size, num_negatives)).astype(np.int32)
    return positives, negatives, random.random(size) < 0.5
