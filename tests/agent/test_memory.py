"""Memory of links: which links count, both ways, and how far relations correspond, by hand and in plain Python."""

import numpy as np
import pytest

from planted import make_graph
from rlea.agent.memory import SMOOTHING, Graphs, Memory, opposite, supposed_correspondence
from rlea.graph import Links


def edges(around, entity):
    """(oriented relation, neighbour) of all edges of an entity."""
    part = slice(around.starts[entity], around.starts[entity + 1])
    return list(zip(around.relation_ids[part].tolist(), around.neighbour_ids[part].tolist(), strict=True))


def random_graphs(rng, num_source=12, num_target=14, num_edges=40, num_relations=3):
    """Two unrelated random graphs, with loops, parallel edges and entities without any."""
    made = []
    for prefix, size in (("s", num_source), ("t", num_target)):
        names = [f"{prefix}{i:02}" for i in range(size)]
        ends = rng.integers(0, size - 1, (num_edges, 2))  # the last has no edges
        kinds = rng.integers(0, num_relations, num_edges)
        rows = [(names[h], f"r{r}", names[t]) for (h, t), r in zip(ends, kinds, strict=True)]
        made.append(make_graph(sorted(set(rows)), entities=names))
    return Graphs.of(*made)


def random_memory(rng, graphs, num_seeds=3, num_matches=5):
    """Random one-to-one links of two graphs."""
    count = num_seeds + num_matches
    source, target = rng.permutation(graphs.num_source)[:count], rng.permutation(graphs.num_target)[:count]
    seeds = Links.of(source[:num_seeds], target[:num_seeds])
    weights = rng.random(num_matches).astype(np.float32)
    return Memory.of(graphs, seeds, source[num_seeds:], target[num_seeds:], weights)


def plain_correspondence(memory):
    """The definition with dictionaries: shared edges over the geometric mean of the edges that each graph has."""
    source, target = memory.graphs.source, memory.graphs.target
    links = dict(zip(memory.source_ids.tolist(), memory.target_ids.tolist(), strict=True))
    trust = dict(zip(memory.source_ids.tolist(), memory.weights.tolist(), strict=True))
    back = {t: s for s, t in links.items()}
    shape = (len(source.functionality), len(target.functionality))
    both, own, other = np.zeros(shape), np.zeros(shape[0]), np.zeros(shape[1])
    for s, t in links.items():
        for o, n in edges(source, s):
            if n in links:
                own[o] += trust[s] * trust[n]
                for p, m in edges(target, t):
                    both[o, p] += trust[s] * trust[n] * (m == links[n])
        for p, m in edges(target, t):
            if m in back:
                other[p] += trust[s] * trust[back[m]]
    return both / (np.sqrt(np.outer(own, other)) + SMOOTHING)


@pytest.fixture
def small():
    """a and b are seeds, c and d matches of weight 1/2 and 1/4."""
    source = make_graph([("a", "r", "b"), ("b", "r", "c"), ("a", "q", "c"), ("c", "r", "d"), ("d", "r", "e")])
    target = make_graph([("A", "R", "B"), ("B", "R", "C"), ("A", "Q", "D"), ("C", "Q", "D"), ("E", "R", "A")])
    graphs = Graphs.of(source, target)
    return Memory.of(graphs, Links.of([0, 1], [0, 1]), [2, 3], [2, 3], [0.5, 0.25])


def test_correspondence_by_hand(small):
    # Between linked entities: a r b 1, b r c 1/2, c r d 1/8, a q c 1/2 | A R B 1, B R C 1/2, A Q D 1/4, C Q D 1/8.
    q, r, half = 0, 1, 2  # the target's Q and R have the same numbers
    expected = np.zeros((4, 4))
    expected[r, r] = (1 + 0.5) / (np.sqrt(1.625 * 1.5) + 1)
    expected[r, q] = 0.125 / (np.sqrt(1.625 * 0.375) + 1)
    expected[half:, half:] = expected[:half, :half]  # seen from the other end
    np.testing.assert_allclose(small.correspondence, expected, rtol=1e-6)
    assert small.correspondence.dtype == np.float32


def test_an_inverse_relation_corresponds():
    source = make_graph([("a", "child", "b"), ("b", "child", "c")])
    target = make_graph([("B", "parent", "A"), ("C", "parent", "B")])
    memory = Memory.of(Graphs.of(source, target), Links.of([0, 1, 2], [0, 1, 2]))
    np.testing.assert_allclose(memory.correspondence, [[0, 2 / 3], [2 / 3, 0]], rtol=1e-6)


@pytest.mark.parametrize("seed", range(8))
def test_correspondence_equals_the_plain_form(seed):
    rng = np.random.default_rng(seed)
    memory = random_memory(rng, random_graphs(rng))
    assert memory.correspondence.max() > 0
    assert memory.correspondence.max() <= 1
    np.testing.assert_allclose(memory.correspondence, plain_correspondence(memory), rtol=1e-5)


def test_counterparts_both_ways(small):
    assert small.counterparts.tolist() == [0, 1, 2, 3, -1]
    crossed = Memory.of(small.graphs, Links.of([4], [0]), [0, 2], [3, 1], [0.5, 0.75])
    assert crossed.counterparts.tolist() == [3, -1, 1, -1, 0]
    assert crossed.counterparts_back.tolist() == [4, 2, -1, 0, -1]
    assert crossed.trust.tolist() == [0.5, 0, 0.75, 0, 1]
    assert crossed.num_seeds == 1


def test_a_match_of_a_seeds_entity_is_left_out(small):
    """One conflicts with a seed's source, one with a seed's target, one repeats a seed, one is new."""
    memory = Memory.of(small.graphs, Links.of([0, 1], [0, 1]), [0, 2, 1, 3], [2, 1, 1, 3], [0.9, 0.8, 0.7, 0.4])
    assert memory.source_ids.tolist() == [0, 1, 3]
    assert memory.target_ids.tolist() == [0, 1, 3]
    np.testing.assert_array_equal(memory.weights, np.array([1, 1, 0.4], np.float32))
    assert memory.num_seeds == 2


def test_nothing_known_and_nothing_there():
    empty = Graphs.of(make_graph(), make_graph())
    assert Memory.of(empty, Links.empty()).correspondence.shape == (0, 0)
    graphs = Graphs.of(make_graph([("a", "r", "b")]), make_graph([("A", "R", "B")]))
    assert not Memory.of(graphs, Links.empty()).correspondence.any()
    assert (graphs.num_source, graphs.num_target) == (2, 2)


def test_opposite_is_the_other_orientation():
    assert opposite(np.array([0, 1, 2, 3, 4, 5], np.int32), 6).tolist() == [3, 4, 5, 0, 1, 2]


@pytest.mark.parametrize("seed", range(3))
def test_relations_seem_to_correspond_where_linked_entities_have_both(seed):
    rng = np.random.default_rng(seed)
    graphs = random_graphs(rng)
    links = Links.of(rng.permutation(12)[:6], rng.permutation(14)[:6])
    found = supposed_correspondence(graphs, links)
    own = [{o for o, _ in edges(graphs.source, s)} for s in links.source_ids.tolist()]
    other = [{p for p, _ in edges(graphs.target, t)} for t in links.target_ids.tolist()]
    for o in range(found.shape[0]):
        for p in range(found.shape[1]):
            here, there = sum(o in one for one in own), sum(p in one for one in other)
            both = sum(o in one and p in another for one, another in zip(own, other, strict=True))
            expected = max(0.0, both - here * there / len(links)) / (np.sqrt(here * there) + SMOOTHING)
            assert found[o, p] == pytest.approx(expected, abs=1e-6)


def test_of_no_links_no_relations_seem_to_correspond():
    assert not supposed_correspondence(random_graphs(np.random.default_rng(0)), Links.empty()).any()
