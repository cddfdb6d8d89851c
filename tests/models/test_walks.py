from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rlea.graph import Ids, Links
from rlea.models.rsn import RSNSettings
from rlea.models.triples import JointTriples
from rlea.models.walks import JointGraph, draw_walks


def joint(
    source: list[tuple[int, int, int]], target: list[tuple[int, int, int]], sizes: tuple[int, int], relations: int
):
    return JointTriples(
        np.array(source, dtype=np.int32).reshape(-1, 3),
        np.array(target, dtype=np.int32).reshape(-1, 3),
        *sizes,
        num_relations=relations,
    )


def draw(
    graph: JointGraph, length: int, per_triple: int = 1, depth: float = 0.5, cross: float = 0.5, seed: int = 0
) -> Ids:
    chosen = RSNSettings(walk_length=length, walks_per_triple=per_triple, depth_bias=depth, cross_bias=cross)
    return draw_walks(graph, chosen, seed)


def test_triples_are_read_both_ways_and_seeds_swapped_in_every_way():
    # Source: 0 -r0-> 1; target: 2 -r1-> 3; both ends are linked, 0 to 2 and 1 to 3.
    both = JointGraph.of(joint([(0, 0, 1)], [(2, 1, 3)], (2, 2), 2), Links.of([0, 1], [0, 1]))
    forward = {(h, r, t) for h in (0, 2) for r in (0, 1) for t in (1, 3)}
    assert set(map(tuple, both.triples.tolist())) == forward | {(t, r + 2, h) for h, r, t in forward}
    # One link, 1 to 2: the counterpart stands in for it where it is a tail and, in the reverse, where it is a head.
    one = JointGraph.of(joint([(0, 0, 1)], [(2, 1, 3)], (2, 2), 2), Links.of([1], [0]))
    forward = {(0, 0, 1), (0, 0, 2), (2, 1, 3), (1, 1, 3)}
    assert set(map(tuple, one.triples.tolist())) == forward | {(t, r + 2, h) for h, r, t in forward}
    assert one.begins.tolist() == [0, 2, 4, 6, 8]
    assert (one.neighbours.tolist(), one.neighbour_begins.tolist()) == ([1, 2, 0, 3, 0, 3, 1, 2], [0, 2, 4, 6, 8])


def test_a_walk_begins_with_each_triple():
    graph = JointGraph.of(joint([(0, 0, 1), (1, 0, 2)], [(3, 1, 4)], (3, 2), 2), Links.empty())
    walks = draw(graph, 5, per_triple=3)
    assert walks.shape == (3 * 6, 5)
    assert Counter(map(tuple, walks[:, :3].tolist())) == Counter({tuple(t): 3 for t in graph.triples.tolist()})


def test_from_an_end_of_the_graph_a_walk_returns():
    graph = JointGraph.of(joint([(0, 0, 1)], [(2, 1, 3)], (2, 2), 2), Links.empty())
    walks = {tuple(walk) for walk in draw(graph, 7, per_triple=4, depth=0.99).tolist()}
    assert walks == {(0, 0, 1, 2, 0, 0, 1), (1, 2, 0, 0, 1, 2, 0), (2, 1, 3, 3, 2, 1, 3), (3, 3, 2, 1, 3, 3, 2)}


def test_depth_bias_leads_away():
    # From 0 to 1; there one triple leads back to 0, one to 2, a neighbour of 0 as well, and one to 3, which is none.
    graph = JointGraph.of(joint([(0, 0, 1), (1, 0, 2), (0, 0, 2), (1, 0, 3)], [(4, 1, 5)], (4, 2), 2), Links.empty())
    walks = draw(graph, 5, per_triple=8000, depth=0.7)
    here = walks[(walks[:, 0] == 0) & (walks[:, 2] == 1)]
    shares = np.bincount(here[:, 4], minlength=4) / len(here)
    assert len(here) == 8000
    np.testing.assert_allclose(shares[[0, 2, 3]], np.array([0.3, 0.3, 0.7]) / 1.3, atol=0.02)


def test_cross_bias_leads_into_the_other_graph():
    # From 0 to 1, which is linked to 3 of the target: from 1 one comes to 0 and 2, from 3 to 4; 0 is near.
    graph = JointGraph.of(joint([(0, 0, 1), (1, 0, 2)], [(3, 1, 4)], (3, 2), 2), Links.of([1], [0]))
    walks = draw(graph, 5, per_triple=8000, depth=0.6, cross=0.7)
    here = walks[(walks[:, 0] == 0) & (walks[:, 2] == 1)]
    shares = np.bincount(here[:, 4], minlength=5) / len(here)
    expected = np.array([0.4 * 0.3, 0.6 * 0.3, 0.6 * 0.7])
    np.testing.assert_allclose(shares[[0, 2, 4]], expected / expected.sum(), atol=0.02)
    # And from the target, the source is the other graph.
    there = walks[(walks[:, 0] == 4) & (walks[:, 2] == 3)]
    shares = np.bincount(there[:, 4], minlength=5) / len(there)
    expected = np.array([0.6 * 0.7, 0.6 * 0.7, 0.4 * 0.3])
    np.testing.assert_allclose(shares[[0, 2, 4]], expected / expected.sum(), atol=0.02)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 1), st.integers(0, 4)), min_size=1, max_size=12),
    st.lists(st.tuples(st.integers(5, 8), st.integers(2, 3), st.integers(5, 8)), min_size=1, max_size=12),
    st.integers(0, 4),
)
def test_every_step_of_a_walk_is_a_triple(source, target, num_seeds):
    seeds = Links.of(np.arange(num_seeds), np.arange(num_seeds))
    graph = JointGraph.of(joint(source, target, (5, 4), 4), seeds)
    triples = set(map(tuple, graph.triples.tolist()))
    for walk in draw(graph, 9, depth=0.7, cross=0.7).tolist():
        assert {tuple(walk[i : i + 3]) for i in range(0, 7, 2)} <= triples


def test_walks_follow_from_the_seed_and_the_second_of_a_triple_is_another():
    random = np.random.default_rng(0)
    source = np.stack([random.integers(0, 50, 300), random.integers(0, 3, 300), random.integers(0, 50, 300)], axis=1)
    graph = JointGraph.of(
        joint(source.tolist(), (source + np.array([50, 3, 50])).tolist(), (50, 50), 6), Links.of(range(9), range(9))
    )
    one, again, other = (draw(graph, 15, per_triple=2, depth=0.7, cross=0.7, seed=seed) for seed in (1, 1, 2))
    assert (one == again).all()
    assert (one != other).any()
    half = len(one) // 2
    assert (one[:half] != one[half:]).any(axis=1).mean() > 0.9
