"""Seeds that are like the rest, and seeds that are the popular entities."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planted import make_graph
from rlea.agent.representative import are_like_the_rest, distance, share_found
from rlea.graph import GraphPair, Links
from rlea.io.synthetic import SyntheticSettings, generate
from rlea.matching import Matching


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


def poor_and_rich(confidence_of_poor, confidence_of_rich, size=400):
    """Two graphs of which one entity in four has ten literals and the others none, all of them linked."""
    names = [f"e{k:04}" for k in range(size)]
    rows = [(name, f"p{n}", f"{name}{n}") for k, name in enumerate(names) if k % 4 == 0 for n in range(10)]
    graphs = [make_graph(literals=rows, entities=names) for _ in range(2)]
    is_rich = np.arange(size) % 4 == 0
    confidences = np.where(is_rich, confidence_of_rich, confidence_of_poor)
    pair = GraphPair("", *graphs)
    return pair, pair.entity_ids, Matching.of(np.arange(size), np.arange(size), confidences)


def test_links_that_poor_entities_cannot_show_are_counted():
    """Rich ones say 80 %, poor ones 20 %: if the same share of both is shared, 35 % of 80 % were found."""
    assert share_found(*poor_and_rich(0.2, 0.8)) == pytest.approx(0.35 / 0.8, abs=0.03)


@pytest.mark.parametrize(("poor", "rich"), [(0.5, 0.5), (0.8, 0.2), (0.0, 0.0), (1.0, 1.0)])
def test_where_poor_entities_are_linked_as_well_nothing_is_missing(poor, rich):
    assert share_found(*poor_and_rich(poor, rich)) == 1.0


def test_chance_in_a_small_graph_says_little():
    assert share_found(*poor_and_rich(0.5, 0.75, size=8)) == 1.0


@pytest.mark.parametrize("shared", [slice(0, 100), slice(300, 400)])
def test_entities_of_which_as_much_is_known_are_all_rich(shared):
    """Rows of a table: that the shared ones come first or last says nothing."""
    names = [f"e{k:04}" for k in range(400)]
    graphs = [make_graph(literals=[(name, "p", name) for name in names]) for _ in range(2)]
    ids = np.arange(400)[shared]
    pair = GraphPair("", *graphs)
    assert share_found(pair, pair.entity_ids, Matching.of(ids, ids, np.full(100, 0.9))) > 0.85


def test_entities_that_were_not_to_be_linked_do_not_count():
    """Seeds have no link among those found."""
    pair, _, matching = poor_and_rich(0.9, 0.9)
    pool = np.arange(400)[np.arange(400) % 4 != 1]
    assert share_found(pair, (pool, pool), matching.some(np.isin(matching.source_ids, pool))) == 1.0
