"""Seeds that are like the rest, and seeds that are the popular entities."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlea.agent.representative import are_like_the_rest, distance
from rlea.graph import Links
from rlea.io.synthetic import SyntheticSettings, generate


@pytest.fixture(scope="module")
def pair():
    return generate(SyntheticSettings(600, seeds=0.0, valid=0.0))


@pytest.mark.parametrize("count", [20, 100, 300])
def test_random_seeds_are_like_the_rest(pair, count):
    for draw in range(5):
        chosen = np.random.default_rng(draw).permutation(len(pair.test))[:count]
        assert are_like_the_rest(pair, Links.of(pair.test.source_ids[chosen], pair.test.target_ids[chosen]))


@pytest.mark.parametrize("count", [20, 60])
def test_popular_seeds_are_not(pair, count):
    degrees = np.bincount(pair.source.triples[:, [0, 2]].ravel(), minlength=pair.source.num_entities)
    chosen = np.argsort(-degrees[pair.test.source_ids], kind="stable")[:count]
    assert not are_like_the_rest(pair, Links.of(pair.test.source_ids[chosen], pair.test.target_ids[chosen]))


def test_no_seeds_and_nothing_but_seeds(pair):
    assert are_like_the_rest(pair, Links.empty())
    assert are_like_the_rest(pair, pair.test)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=20), st.data())
def test_the_distance_is_a_share_and_the_same_for_the_others(counts, data):
    values = np.array(counts, np.int64)
    ids = np.array(sorted(data.draw(st.sets(st.integers(0, len(counts) - 1)))), np.int32)
    others = np.setdiff1d(np.arange(len(counts)), ids).astype(np.int32)
    found = distance(values, ids)
    assert 0 <= found <= 1
    assert found == pytest.approx(distance(values, others))


def test_the_distance_by_hand():
    assert distance(np.array([1, 1, 9, 9]), np.array([2, 3])) == 1
    assert distance(np.array([1, 9, 1, 9]), np.array([2, 3])) == 0
    assert distance(np.array([1, 2, 3, 9]), np.array([2, 3])) == 1
    assert distance(np.array([1, 5, 3, 9]), np.array([2, 3])) == 0.5
