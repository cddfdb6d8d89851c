"""What holds of every matcher, whatever the scores."""

from __future__ import annotations

from collections.abc import Iterator

import numba
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from rlea.graph import KnowledgeGraph, Links, Literals
from rlea.matchers import MATCHERS, hungarian
from rlea.matching import Matching, Task
from rlea.search.candidates import find_candidates
from rlea.search.embeddings import Embeddings

# best-first, PARIS and the agents look at the graphs and have tests of their own.
NAMES = sorted(name for name, matcher in MATCHERS.items() if not matcher.uses_structure)
every_matcher = pytest.mark.parametrize("name", NAMES)


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Waking a second thread costs more than all of these small tasks."""
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    yield
    numba.set_num_threads(before)


def graph_of(count: int) -> KnowledgeGraph:
    names = tuple(f"e{number:05d}" for number in range(count))
    nothing = np.zeros(0, dtype=np.int32)
    return KnowledgeGraph(
        names, (), (), np.zeros((0, 3), dtype=np.int32), Literals(nothing, nothing, (), (), ()), names
    )


def task_of(embeddings: Embeddings, source_ids, target_ids, k: int, seed: int = 0) -> Task:
    candidates = find_candidates(embeddings, np.asarray(source_ids), np.asarray(target_ids), k)
    source, target = graph_of(embeddings.source.shape[0]), graph_of(embeddings.target.shape[0])
    return Task(source, target, Links.empty(), candidates, seed)


def planted(scores: np.ndarray) -> Embeddings:
    """Vectors whose inner products are the given scores."""
    matrix = np.asarray(scores, dtype=np.float32)
    return Embeddings(matrix, np.eye(matrix.shape[1], dtype=np.float32), measure="inner")


def links_of(matching: Matching) -> set[tuple[int, int]]:
    return set(zip(matching.source_ids.tolist(), matching.target_ids.tolist(), strict=True))


@st.composite
def cases(draw):
    """Scores (with or without ties), pools that are parts of the graphs, k, seed."""
    num_source, num_target = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    scores = rng.normal(size=(num_source, num_target))
    if draw(st.booleans()):
        scores = scores.round(0)
    embeddings = planted(scores)
    if draw(st.booleans()):
        embeddings = Embeddings(csr_matrix(embeddings.source), csr_matrix(embeddings.target), measure="inner")
    source_ids = rng.permutation(num_source)[: draw(st.integers(0, num_source))]
    target_ids = rng.permutation(num_target)[: draw(st.integers(0, num_target))]
    return task_of(embeddings, source_ids, target_ids, draw(st.integers(1, 12)), draw(st.integers(0, 5)))


@every_matcher
@given(task=cases())
@settings(max_examples=60, deadline=None)
def test_links_are_of_the_pools_and_as_claimed(name, task):
    matching = MATCHERS[name](task)
    candidates = task.candidates
    pairs = candidates.pairs
    offered = set(
        zip(candidates.source_ids[pairs.rows].tolist(), candidates.target_ids[pairs.columns].tolist(), strict=True)
    )
    assert links_of(matching) <= offered
    assert len(np.unique(matching.source_ids)) == len(matching)
    if MATCHERS[name].one_to_one:
        assert matching.is_one_to_one
    assert ((matching.confidences >= 0) & (matching.confidences <= 1)).all()
    again = MATCHERS[name](task)
    for one, other in zip(
        (matching.source_ids, matching.target_ids, matching.confidences),
        (again.source_ids, again.target_ids, again.confidences),
        strict=True,
    ):
        assert one.tobytes() == other.tobytes()
    if name in ("nearest", "csls", "rinf", "sinkhorn"):
        assert set(matching.source_ids.tolist()) == {source for source, _ in offered}


@every_matcher
@given(
    num_source=st.integers(1, 8), num_target=st.integers(1, 8), k=st.integers(1, 8), number=st.integers(0, 2**32 - 1)
)
@example(num_source=4, num_target=4, k=1, number=3)  # one source is the only candidate of two targets
@settings(max_examples=60, deadline=None)
def test_renamed_entities_give_the_renamed_matching(name, num_source, num_target, k, number):
    rng = np.random.default_rng(number)
    scores = rng.random((num_source, num_target))  # without ties
    new_source, new_target = rng.permutation(num_source), rng.permutation(num_target)  # old id -> new id
    renamed = np.empty_like(scores)
    renamed[np.ix_(new_source, new_target)] = scores
    first = MATCHERS[name](task_of(planted(scores), np.arange(num_source), np.arange(num_target), k))
    # Ids are new, and the pools come in another order too.
    second = MATCHERS[name](task_of(planted(renamed), rng.permutation(num_source), rng.permutation(num_target), k))
    assert {(new_source[source], new_target[target]) for source, target in links_of(first)} == links_of(second)
    np.testing.assert_allclose(np.sort(first.confidences), np.sort(second.confidences), rtol=1e-6)


@every_matcher
@pytest.mark.parametrize("k", [60, 10])
def test_equal_scores_tell_nothing(name, k):
    """If all pairs look the same, right answers are luck, however the ids are arranged: one in 60 here."""
    count, num_seeds = 60, 25
    ones = np.ones((count, 1), dtype=np.float32)
    task = task_of(Embeddings(ones, ones, measure="inner"), np.arange(count), np.arange(count), k)
    diagonal = reverse = 0
    results = set()
    for seed in range(num_seeds):
        matching = MATCHERS[name](Task(task.source, task.target, task.seeds, task.candidates, seed))
        diagonal += int((matching.source_ids == matching.target_ids).sum())
        reverse += int((matching.source_ids == count - 1 - matching.target_ids).sum())
        results.add(matching.target_ids.tobytes())
    # One hit per seed is expected, so 25 +- 5 in all; 50 is five deviations off.
    assert diagonal <= 2 * num_seeds
    assert reverse <= 2 * num_seeds
    assert len(results) == num_seeds  # another seed, another toss


def test_equal_scores_tell_the_sparse_assignment_nothing_either():
    ones = np.ones((60, 1), dtype=np.float32)
    task = task_of(Embeddings(ones, ones, measure="inner"), np.arange(60), np.arange(60), 60)
    hits = 0
    for seed in range(25):
        matching = hungarian.match(
            Task(task.source, task.target, task.seeds, task.candidates, seed),
            hungarian.HungarianSettings(dense_cells=0),
        )
        assert len(matching) == 60
        hits += int((matching.source_ids == matching.target_ids).sum())
    assert hits <= 50


@every_matcher
@pytest.mark.parametrize("shape", [(0, 0), (0, 4), (4, 0), (1, 1), (1, 6), (6, 1)])
def test_pools_of_nothing_and_of_one(name, shape):
    rng = np.random.default_rng(0)
    task = task_of(planted(0.8 + 0.2 * rng.random((7, 7))), np.arange(shape[0]), np.arange(shape[1]), 50)
    matching = MATCHERS[name](task)
    if 0 in shape:
        assert len(matching) == 0
    elif MATCHERS[name].one_to_one:
        assert len(matching) == 1
    else:
        assert len(matching) == shape[0]


@every_matcher
def test_entities_without_candidates_stay_unmatched(name):
    scores = np.zeros((6, 6), dtype=np.float32)
    scores[[1, 3, 5], [2, 0, 4]] = 0.9
    embeddings = Embeddings(csr_matrix(scores), csr_matrix(np.eye(6, dtype=np.float32)), measure="inner")
    task = task_of(embeddings, np.arange(6), np.arange(6), 3)
    assert (task.candidates.forward_columns < 0).any()
    assert links_of(MATCHERS[name](task)) == {(1, 2), (3, 0), (5, 4)}
