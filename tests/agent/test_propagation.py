"""Propagated vectors: what makes them alike, what must not (a pair's own link), and what must not matter (ids)."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planted import make_graph
from rlea.agent import propagation as module
from rlea.agent.memory import Graphs, Memory
from rlea.agent.propagation import PropagationSettings, draw_numbers, group_relations, make_labels, propagate
from rlea.graph import Links

SMALL = PropagationSettings(dim=64, steps=3)


def twins(rng, size=30, num_edges=60, num_relations=4):
    """The same graph twice, the target under shuffled names; at most one edge between two entities. With the truth."""
    ends = {tuple(sorted(rng.choice(size, 2, replace=False).tolist())) for _ in range(num_edges)}
    kinds = rng.integers(0, num_relations, len(ends))
    other = rng.permutation(size)
    rows = [(h, r, t) if rng.random() < 0.5 else (t, r, h) for (h, t), r in zip(sorted(ends), kinds, strict=True)]
    names, others = [f"s{i:02}" for i in range(size)], [f"t{i:02}" for i in range(size)]
    source = make_graph([(names[h], f"r{r}", names[t]) for h, r, t in rows], entities=names)
    target = make_graph([(others[other[h]], f"q{r}", others[other[t]]) for h, r, t in rows], entities=others)
    return Graphs.of(source, target), other


@pytest.mark.parametrize("seed", range(5))
def test_the_same_links_around_in_the_same_relations_give_the_same_vector(seed):
    rng = np.random.default_rng(seed)
    graphs, other = twins(rng)
    linked = rng.permutation(30)[:20]
    seeds, matches = linked[:12], linked[12:]
    weights = rng.random(8).astype(np.float32)
    memory = Memory.of(graphs, Links.of(seeds, other[seeds]), matches, other[matches], weights)
    source, target = propagate(memory, SMALL)
    assert np.abs(source).sum() > 10
    np.testing.assert_allclose(source, target[other], atol=1e-4)


def test_relations_tell_apart_and_only_in_their_share_of_the_dimensions():
    """x and y are both next to the same seed, by different relations; without turns they are the same."""
    rows = [("a", "r", "b"), ("c", "r", "d"), ("a", "q", "c"), ("b", "q", "d"), ("a", "r", "x"), ("a", "q", "y")]
    graph = make_graph(rows)
    a, b, c, d, x, y = range(6)
    memory = Memory.of(Graphs.of(graph, graph), Links.of([a, b, c, d], [a, b, c, d]))
    source, target = propagate(memory, PropagationSettings(dim=256, steps=1))
    assert source[x] @ target[x] == pytest.approx(1, abs=1e-5)
    assert source[x] @ target[y] < 0.6  # a quarter alike, the rest turned at random
    plain_source, plain_target = propagate(memory, PropagationSettings(dim=256, steps=1, turned=0))
    assert plain_source[x] @ plain_target[y] == pytest.approx(1, abs=1e-5)


def test_one_step_by_hand():
    """x has the seed a by a relation that leads from a to x and y, and the match b by one that leads to x alone."""
    graph = make_graph([("a", "r", "x"), ("a", "r", "y"), ("b", "q", "x"), ("b", "p", "c")])
    a, b, c, x, y = range(5)
    memory = Memory.of(Graphs.of(graph, graph), Links.of([a], [a]), [b], [b], [0.5])
    source, _ = propagate(memory, PropagationSettings(dim=32, steps=1, turned=0))
    label_a, label_b = source[y], source[c]  # they have no other neighbour
    # Functionality of r from a: one entity, two edges; of q from b: 1. Both have two edges. b is half trusted.
    expected = 0.5 / np.sqrt(2) * label_a + 1 / np.sqrt(2) * 0.5 * label_b
    np.testing.assert_allclose(source[x], expected / np.linalg.norm(expected), atol=1e-5)


def test_seeds_keep_their_labels_and_matches_do_not():
    """x is joined to a, and a to b. As a seed, a stays what it is; as a match, it becomes what is around it."""
    graph = make_graph([("a", "r", "x"), ("b", "r", "a")])
    a, b, x = range(3)
    graphs = Graphs.of(graph, graph)
    settings = PropagationSettings(dim=32, steps=2, turned=0)
    seeds, _ = propagate(Memory.of(graphs, Links.of([a, b], [a, b])), settings)
    np.testing.assert_allclose(seeds[x, :32], seeds[x, 32:], atol=1e-6)
    matches, _ = propagate(Memory.of(graphs, Links.of([b], [b]), [a], [a], [0.9]), settings)
    label_b = matches[a, :32]
    np.testing.assert_allclose(np.abs(matches[x, :32] @ label_b), 0, atol=0.3)
    np.testing.assert_allclose(matches[x, 32:], label_b, atol=1e-6)


def test_entities_without_edges_or_far_from_all_links_are_zero():
    source = make_graph([("a", "r", "b"), ("c", "r", "d")], entities=["e"])
    target = make_graph([("A", "R", "B")])
    first, second = propagate(Memory.of(Graphs.of(source, target), Links.of([0], [0])), SMALL)
    assert first.shape == (5, 192)
    assert second.shape == (2, 192)
    assert not first[2:].any()
    assert first[1].any()


# ---- labels ---------------------------------------------------------------------------------------------------------


def test_labels_have_unit_length_and_little_in_common():
    rng = np.random.default_rng(0)
    ids = np.arange(400, dtype=np.int32), rng.permutation(400).astype(np.int32)
    for dim in (16, 250, 256):
        labels = make_labels(*ids, dim)
        assert labels.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(labels, axis=1), 1, rtol=1e-5)
        cosines = (labels @ labels.T)[np.triu_indices(400, 1)]
        assert abs(cosines.mean()) < 0.01
        assert cosines.std() == pytest.approx(1 / np.sqrt(dim), rel=0.1)


@settings(max_examples=40, deadline=None)
@given(st.sets(st.tuples(st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1)), min_size=1, max_size=8), st.randoms())
def test_a_link_has_the_same_label_whatever_others_there_are(links, random):
    alone = {link: make_labels(*np.array([link], np.int32).T, 64).tobytes() for link in links}
    order = random.sample(sorted(links), len(links))
    for ids_type in (np.int32, np.int64):
        labels = make_labels(*np.array(order, ids_type).T, 64)
        assert [row.tobytes() for row in labels] == [alone[link] for link in order]


def test_drawn_numbers_are_uniform_and_new_for_every_use():
    rng = np.random.default_rng(0)
    ids = rng.integers(0, 10**6, 5000), rng.integers(0, 10**6, 5000)
    one, other, more = (draw_numbers(*ids, count, what) for count, what in ((2, 1), (2, 2), (4, 1)))
    for drawn in (one, other):
        assert 0 <= drawn.min() < drawn.max() < 1
        counts = np.histogram(drawn, 10, (0, 1))[0]
        assert np.abs(counts - 1000).max() < 150
        assert abs(np.corrcoef(drawn.T)[0, 1]) < 0.05
    assert abs(np.corrcoef(one[:, 0], other[:, 0])[0, 1]) < 0.05
    np.testing.assert_array_equal(more[:, :2], one)
    assert draw_numbers(np.zeros(0, np.int32), np.zeros(0, np.int32), 3, 1).shape == (0, 3)


def two_parts():
    """Two components without an edge or a relation in common: a square of five links, and a chain of six."""
    rows = [("a", "r", "b"), ("b", "q", "c"), ("c", "r", "d"), ("d", "q", "a"), ("d", "r", "e")]
    chain = [(f"x{i}", "p" if i % 2 else "o", f"x{i + 1}") for i in range(5)]
    graph = make_graph([*rows, *chain])
    return Graphs.of(graph, graph), dict(graph.entity_index)


@pytest.mark.parametrize("as_seed", [True, False])
def test_a_link_more_far_away_changes_nothing_here(as_seed):
    graphs, number = two_parts()
    here, there = ([number[name] for name in number if name.startswith("x") == far] for far in (False, True))
    seeds = [*here[:3], *there[:2]]
    new = number["x4"]
    before = Memory.of(graphs, Links.of(seeds, seeds), [here[3]], [here[3]], [0.7])
    if as_seed:
        after = Memory.of(graphs, Links.of([new, *seeds], [new, *seeds]), [here[3]], [here[3]], [0.7])
    else:
        after = Memory.of(graphs, Links.of(seeds, seeds), [new, here[3]], [new, here[3]], [0.5, 0.7])
    for one, two in zip(propagate(before, SMALL), propagate(after, SMALL), strict=True):
        assert one[here].any()
        assert one[here].tobytes() == two[here].tobytes()
        assert one[there].tobytes() != two[there].tobytes()  # there it does


def test_the_order_of_links_does_not_count():
    graphs, number = two_parts()
    ids = [number[name] for name in ("a", "x1", "c", "x3", "b")]
    one, two = (propagate(Memory.of(graphs, Links.of(some, some)), SMALL) for some in (ids, ids[::-1]))
    for first, second in zip(one, two, strict=True):
        np.testing.assert_allclose(first, second, atol=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_permuting_ids_permutes_vectors(seed, monkeypatch):
    """The target's names, and with them its ids, are shuffled; labels depend on the source alone here."""
    monkeypatch.setattr(module, "make_labels", lambda source, target, dim, own=make_labels: own(source, source, dim))
    graphs, other = twins(np.random.default_rng(seed))
    again, elsewhere = twins(np.random.default_rng(seed))
    order = np.random.default_rng(seed + 50).permutation(30)
    names, old = [f"z{i:02}" for i in range(30)], again.target
    rows = []
    for entity in range(30):
        for i in range(old.starts[entity], old.starts[entity + 1]):
            relation = int(old.relation_ids[i])
            if relation < len(old.functionality) // 2:
                rows.append((names[order[entity]], f"q{relation}", names[order[old.neighbour_ids[i]]]))
    moved = Graphs(graphs.source, Graphs.of(make_graph(rows, entities=names), make_graph(rows, entities=names)).target)
    ids = np.arange(0, 30, 2)
    first = propagate(Memory.of(graphs, Links.of(ids, other[ids])), SMALL)
    second = propagate(Memory.of(moved, Links.of(ids, order[elsewhere[ids]])), SMALL)
    np.testing.assert_allclose(first[0], second[0], atol=1e-4)
    np.testing.assert_allclose(first[1], second[1][order], atol=1e-4)


def beside(weights=(0.8,)):
    """Two graphs where s is matched with t, both have a pendant neighbour, and seeds further on.

    Source: p - s - u - a; target: P - t - U - A; (a, A) is a seed. With the link (s, t) last, or without it.
    """
    source = make_graph([("s", "r", "p"), ("s", "r", "u"), ("u", "q", "a")])  # a p s u
    target = make_graph([("t", "R", "P"), ("t", "R", "U"), ("U", "Q", "A")])  # A P U t
    graphs, seeds = Graphs.of(source, target), Links.of([0], [0])
    return Memory.of(graphs, seeds, [2], [3], weights), Memory.of(graphs, seeds)


def test_the_own_label_does_not_come_back():
    """What s is made of after one and two steps has nothing of its own label."""
    settings = PropagationSettings(dim=64, steps=2, turned=0)
    known, unknown = beside()
    with_link, without = propagate(known, settings)[0], propagate(unknown, settings)[0]
    p, s = 1, 2
    label = with_link[p, :64] * np.sqrt(2)  # the pendant neighbour has nothing but the label of s
    assert np.linalg.norm(label) == pytest.approx(1, abs=1e-5)
    assert not without[p, :64].any()
    np.testing.assert_array_equal(with_link[s, :64], without[s, :64])
    assert abs(with_link[s, 64:] @ label) < 1e-5
    assert without[s, 64:].any()  # the seed reaches it in two steps


@pytest.mark.parametrize("turned", [0.0, 0.75])
def test_a_match_alone_is_no_evidence_for_itself(turned):
    """Nothing is known but the match: two steps away s has seen its own label only, so it has seen nothing."""
    graphs = beside()[0].graphs
    memory = Memory.of(graphs, Links.empty(), [2], [3], [0.8])
    source, _ = propagate(memory, PropagationSettings(dim=64, steps=2, turned=turned))
    assert np.linalg.norm(source[2]) < 1e-3


@pytest.mark.parametrize("turned", [0.0, 0.75])
def test_a_wrong_match_does_not_make_its_entities_alike(turned):
    """s and t have nothing in common but their relations; a link between them must not change their cosine."""
    size = 16
    rows, others = [], []
    for i in range(size):  # seeds, joined so that r and R, q and Q correspond
        rows += [(f"a{i:02}", "r", f"b{i:02}"), (f"b{i:02}", "q", f"a{(i + 1) % size:02}")]
        others += [(f"A{i:02}", "R", f"B{i:02}"), (f"B{i:02}", "Q", f"A{(i + 1) % size:02}")]
    for i in range(4):  # undecided neighbours of s and t; behind them other seeds on either side
        rows += [("s", "r", f"u{i}"), (f"u{i}", "q", f"a{i:02}")]
        others += [("t", "R", f"U{i}"), (f"U{i}", "Q", f"A{i + 8:02}")]
    source, target = make_graph(rows), make_graph(others)
    seeds = Links.of(
        [source.entity_index[f"{c}{i:02}"] for c in "ab" for i in range(size)],
        [target.entity_index[f"{c}{i:02}"] for c in "AB" for i in range(size)],
    )
    s, t = source.entity_index["s"], target.entity_index["t"]
    graphs = Graphs.of(source, target)
    seen = []
    for links in (([], [], []), ([s], [t], [0.9])):
        vectors = propagate(Memory.of(graphs, seeds, *links), PropagationSettings(dim=256, steps=2, turned=turned))
        seen.append(float(vectors[0][s] @ vectors[1][t]))
    assert abs(seen[0]) < 0.15
    assert seen[1] < seen[0] + 0.15


def test_group_relations_by_hand():
    """Oriented relations: the second half of either side are the inverses of the first, and correspond likewise."""
    straight = np.array(
        [
            [0.9, 0.5, 0.0, 0.0, 0.0],  # with column 0; column 1 joins it, being free
            [0.8, 0.0, 0.0, 0.0, 0.0],  # column 0 is taken: it joins that group
            [0.0, 0.0, 0.3, 0.0, 0.0],  # a group of its own
            [0.0, 0.4, 0.2, 0.0, 0.0],  # joins by column 1; that 0.2 links two groups is of no consequence
            [0.0, 0.0, 0.0, 0.05, 0.0],  # too little
            [0.0, 0.0, 0.0, 0.0, 0.0],
        ],
        np.float32,
    )
    crossed = np.zeros_like(straight)
    crossed[5, 4] = 0.7  # corresponds to the inverse
    like = np.block([[straight, crossed], [crossed, straight]])
    (source, target), founders = group_relations(like, 0.1)
    assert source.tolist() == [1, 1, 3, 1, 0, 2, -1, -1, -3, -1, 0, -2]
    assert target.tolist() == [1, 1, 3, 0, -2, -1, -1, -3, 0, 2]
    assert founders.tolist() == [[0, 0], [5, 9], [2, 2]]  # who made the groups 1, 2 and 3
    none, founders = group_relations(np.zeros((2, 0), np.float32), 0.1)
    assert [part.tolist() for part in none] == [[0, 0], []]
    assert founders.shape == (0, 2)


def test_no_relations_at_all():
    graphs = Graphs.of(make_graph(entities=["a", "b"]), make_graph(entities=["x"]))
    first, second = propagate(Memory.of(graphs, Links.of([0], [0])), replace(SMALL, steps=1))
    assert first.shape == (2, 64)
    assert not first.any()
    assert not second.any()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("count", [1, 5])
def test_vectors_of_some_entities_are_those_of_all(seed, count):
    rng = np.random.default_rng(seed)
    graphs, other = twins(rng)
    linked = rng.permutation(30)[:20]
    memory = Memory.of(graphs, Links.of(linked[:10], other[linked[:10]]), linked[10:], other[linked[10:]], np.ones(10))
    wanted = tuple(np.sort(rng.permutation(30)[:count]).astype(np.int32) for _ in range(2))
    for every, some, ids in zip(propagate(memory, SMALL), propagate(memory, SMALL, wanted), wanted, strict=True):
        np.testing.assert_array_equal(some[ids], every[ids])
