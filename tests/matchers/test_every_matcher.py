"""What holds of every matcher by similarity, whatever the scores."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from planted import bytes_of, links_of
from rlea.matchers import MATCHERS, hungarian
from rlea.search.embeddings import Embeddings
from rlea.search.pairs import Pairs

# best-first, PARIS and the agents look at the graphs and have tests of their own.
NAMES = sorted(name for name, matcher in MATCHERS.items() if not matcher.uses_structure)
every_matcher = pytest.mark.parametrize("name", NAMES)


@st.composite
def cases(draw):
    """What a task is made of: scores (with or without ties), pools that are parts of the graphs, k, seed."""
    num_source, num_target = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    scores = rng.normal(size=(num_source, num_target)).astype(np.float32)
    given = scores.round(0) if draw(st.booleans()) else scores
    if draw(st.booleans()):
        unit = csr_matrix(np.eye(num_target, dtype=np.float32))
        given = Embeddings(csr_matrix(given), unit, measure="inner")
    pools = [rng.permutation(count)[: draw(st.integers(0, count))] for count in (num_source, num_target)]
    return given, {"pools": pools, "k": draw(st.integers(1, 12)), "seed": draw(st.integers(0, 5))}


@every_matcher
@given(case=cases())
@settings(max_examples=60, deadline=None)
def test_links_are_of_the_pools_and_as_claimed(name, case, make_task):
    task = make_task(case[0], **case[1])
    matching, again = MATCHERS[name](task), MATCHERS[name](task)
    offered = links_of(Pairs.of_candidates(task.candidates))
    assert links_of(matching) <= offered
    assert len(np.unique(matching.source_ids)) == len(matching)
    assert matching.is_one_to_one or not MATCHERS[name].one_to_one
    assert ((matching.confidences >= 0) & (matching.confidences <= 1)).all()
    assert bytes_of(matching) == bytes_of(again)
    if name in ("nearest", "csls", "rinf", "sinkhorn"):
        assert set(matching.source_ids.tolist()) == {source for source, _ in offered}


@every_matcher
@given(
    num_source=st.integers(1, 8), num_target=st.integers(1, 8), k=st.integers(1, 8), number=st.integers(0, 2**32 - 1)
)
@example(num_source=4, num_target=4, k=1, number=3)  # one source is the only candidate of two targets
@settings(max_examples=60, deadline=None)
def test_renamed_entities_give_the_renamed_matching(name, num_source, num_target, k, number, make_task):
    rng = np.random.default_rng(number)
    scores = rng.random((num_source, num_target))  # without ties
    new_source, new_target = rng.permutation(num_source), rng.permutation(num_target)  # old id -> new id
    renamed = np.empty_like(scores)
    renamed[np.ix_(new_source, new_target)] = scores
    first = MATCHERS[name](make_task(scores, k=k))
    # Ids are new, and the pools come in another order too.
    pools = rng.permutation(num_source), rng.permutation(num_target)
    second = MATCHERS[name](make_task(renamed, pools=pools, k=k))
    assert {(new_source[source], new_target[target]) for source, target in links_of(first)} == links_of(second)
    np.testing.assert_allclose(np.sort(first.confidences), np.sort(second.confidences), rtol=1e-6)


@pytest.mark.parametrize("k", [60, 10])
@pytest.mark.parametrize("name", [*NAMES, "sparse hungarian"])
def test_equal_scores_tell_nothing(name, k, make_task):
    """If all pairs look the same, right answers are luck, however the ids are arranged: one in 60 here."""
    count, num_seeds = 60, 25
    task = make_task(Embeddings(*[np.ones((count, 1), dtype=np.float32)] * 2, measure="inner"), k=k)
    match = MATCHERS.get(name, lambda task: hungarian.match(task, dense_cells=0))
    diagonal = reverse = 0
    results = set()
    for seed in range(num_seeds):
        matching = match(replace(task, seed=seed))
        diagonal += int((matching.source_ids == matching.target_ids).sum())
        reverse += int((matching.source_ids == count - 1 - matching.target_ids).sum())
        results.add(matching.target_ids.tobytes())
    # One hit per seed is expected, so 25 +- 5 in all; 50 is five deviations off.
    assert max(diagonal, reverse) <= 2 * num_seeds
    assert len(results) == num_seeds  # another seed, another toss


@every_matcher
@pytest.mark.parametrize("shape", [(0, 0), (0, 4), (4, 0), (1, 1), (1, 6), (6, 1)])
def test_pools_of_nothing_and_of_one(name, shape, make_task):
    scores = 0.8 + 0.2 * np.random.default_rng(0).random((7, 7))
    matching = MATCHERS[name](make_task(scores, pools=(np.arange(shape[0]), np.arange(shape[1]))))
    assert len(matching) == min(shape if MATCHERS[name].one_to_one or 0 in shape else (shape[0],))


@every_matcher
def test_entities_without_candidates_stay_unmatched(name, make_task):
    scores = np.zeros((6, 6), dtype=np.float32)
    scores[[1, 3, 5], [2, 0, 4]] = 0.9
    task = make_task(Embeddings(csr_matrix(scores), csr_matrix(np.eye(6, dtype=np.float32)), measure="inner"), k=3)
    assert (task.candidates.forward_columns < 0).any()
    assert links_of(MATCHERS[name](task)) == {(1, 2), (3, 0), (5, 4)}
