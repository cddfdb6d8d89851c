"""Features of pairs, column by column, against a plain Python form of the definitions."""

import numpy as np
import pytest

from planted import make_graph
from rlea.agent.features import COLUMNS, GROUPS, MAX_EDGES, NUM_COUNTED, compute_features
from rlea.agent.memory import Graphs, Memory
from rlea.agent.propagation import PropagationSettings, propagate
from rlea.graph import Links
from rlea.search.pairs import Pairs

from .test_memory import edges, plain_correspondence, random_graphs, random_memory

PROPAGATION = PropagationSettings(dim=16, steps=2)
ABOUT_LINKS = [COLUMNS.index(name) for group in ("evidence", "contradiction") for name in GROUPS[group]]


def column(features, name):
    return features.columns[:, COLUMNS.index(name)]


def every_pair(graphs):
    source, target = np.meshgrid(np.arange(graphs.num_source), np.arange(graphs.num_target), indexing="ij")
    return Pairs.of(source.ravel(), target.ravel())


def features_of(memory, pairs=None):
    pairs = every_pair(memory.graphs) if pairs is None else pairs
    return compute_features(pairs, memory, propagate(memory, PROPAGATION), evidence_weight=3.0)


def plain_columns(memory, like, s, t):
    """The counted columns of a pair as the module's description has them, from lists and dictionaries."""
    links = dict(zip(memory.source_ids.tolist(), memory.target_ids.tolist(), strict=True))
    trust = dict(zip(memory.source_ids.tolist(), memory.weights.tolist(), strict=True))
    back = {b: a for a, b in links.items()}
    sides = memory.graphs.source, memory.graphs.target
    mine, theirs = edges(sides[0], s), edges(sides[1], t)
    degrees = len(mine), len(theirs)
    mine, theirs = mine[:MAX_EDGES], theirs[:MAX_EDGES]

    def turned(oriented, around):
        half = len(around.functionality) // 2
        return (oriented + half) % (2 * half)

    def telling(o, p):
        """How well the relations as seen from the matched neighbours lead to this pair."""
        away, towards = turned(o, sides[0]), turned(p, sides[1])
        return like[away, towards] * min(sides[0].functionality[away], sides[1].functionality[towards])

    expected = like.max(axis=1), like.max(axis=0)
    common = [  # edge, edge, both to linked neighbours
        (i, j)
        for i, (o, n) in enumerate(mine)
        for j, (p, m) in enumerate(theirs)
        if like[o, p] > 0 and links.get(n) == m and m != t and n != s
    ]
    steps = [
        max([telling(o, theirs[j][0]) * trust[n] for a, j in common if a == i] or [0]) for i, (o, n) in enumerate(mine)
    ]
    evidence = sum(telling(mine[i][0], theirs[j][0]) * trust[mine[i][1]] for i, j in common)
    ranked = [*sorted(steps, reverse=True), 0, 0]
    sides = []
    for which, own, others, decided in ((0, mine, theirs, links), (1, theirs, mine, back)):
        borne = wanted = matched = kinds = met = 0.0
        unknown = 0
        for i, (o, n) in enumerate(own):
            alike = [like[o, p] if which == 0 else like[p, o] for p, _ in others]
            kinds += expected[which][o]
            met += max([0, *alike])
            if n not in decided:
                unknown += 1
            elif decided[n] != (t if which == 0 else s):  # a neighbour matched with this very entity is no evidence
                certain = trust[n] if which == 0 else trust[back[n]]
                pairs = [pair for pair in common if pair[which] == i]
                seen = max([0, *(like[mine[a][0], theirs[b][0]] * certain for a, b in pairs)])
                wanted += expected[which][o] * certain
                matched += seen
                borne += seen
        sides.append((borne, wanted, matched, unknown, met, kinds))
    (s_borne, s_wanted, s_matched, s_open, s_met, s_kinds), (t_borne, t_wanted, t_matched, t_open, t_met, t_kinds) = (
        sides
    )
    ratio = np.log((degrees[0] + 1) / (degrees[1] + 1))
    return [
        *np.sqrt([evidence, ranked[0], ranked[1]]),
        np.log1p(s_borne),
        np.log1p(t_borne),
        s_wanted - s_matched,
        t_wanted - t_matched,
        s_matched / (s_wanted + 0.2),
        t_matched / (t_wanted + 0.2),
        np.log1p(s_open),
        np.log1p(t_open),
        s_met / (s_kinds + 0.2),
        t_met / (t_kinds + 0.2),
        np.log1p(degrees[0]),
        np.log1p(degrees[1]),
        abs(ratio),
        ratio,
    ]


@pytest.mark.parametrize("seed", range(6))
def test_every_counted_column_equals_the_plain_form(seed):
    rng = np.random.default_rng(seed)
    memory = random_memory(rng, random_graphs(rng, num_edges=60, num_relations=2))
    features = features_of(memory)
    like = plain_correspondence(memory)
    pairs = every_pair(memory.graphs)
    expected = [
        plain_columns(memory, like, s, t)
        for s, t in zip(pairs.source_ids.tolist(), pairs.target_ids.tolist(), strict=True)
    ]
    assert len(expected[0]) == NUM_COUNTED
    for number, name in enumerate(COLUMNS[:NUM_COUNTED]):
        wanted = np.array(expected)[:, number]
        np.testing.assert_allclose(features.columns[:, number], wanted, rtol=1e-4, atol=1e-5, err_msg=name)
        assert wanted.std() > 0, name  # a column that is always the same would prove nothing


@pytest.mark.parametrize("seed", range(3))
def test_likeness_and_leads_against_numpy(seed):
    rng = np.random.default_rng(seed)
    memory = random_memory(rng, random_graphs(rng))
    vectors = propagate(memory, PROPAGATION)
    pairs = every_pair(memory.graphs)
    kept = rng.random(len(pairs)) < 0.5
    pairs = Pairs(pairs.source_ids[kept], pairs.target_ids[kept])
    features = compute_features(pairs, memory, vectors, evidence_weight=2.0)
    cosine = (vectors[0].astype(np.float64) @ vectors[1].T.astype(np.float64))[pairs.source_ids, pairs.target_ids]
    csls = 2 * cosine
    for ids in (pairs.source_ids, pairs.target_ids):
        csls -= [np.sort(cosine[ids == i])[::-1][:10].mean() for i in ids]
    np.testing.assert_allclose(column(features, "cosine"), cosine, atol=1e-5)
    np.testing.assert_allclose(column(features, "csls"), csls, atol=1e-5)
    np.testing.assert_allclose(features.priorities, csls + 2.0 * column(features, "evidence"), atol=1e-5)
    for name, ids in (("lead source", pairs.source_ids), ("lead target", pairs.target_ids)):
        others = [(ids == i) & (np.arange(len(ids)) != k) for k, i in enumerate(ids)]
        lead = features.priorities - [max([*features.priorities[some], -np.inf]) for some in others]
        np.testing.assert_allclose(column(features, name), np.clip(lead, -2, 2), atol=1e-5, err_msg=name)


def with_and_without(seed):
    """A memory, the same without one of its matches, and that pair; it has many linked neighbours."""
    rng = np.random.default_rng(seed)
    graphs = random_graphs(rng, 10, 10, 60, 2)
    known = random_memory(rng, graphs, 4, 4)
    seeds = Links.of(known.source_ids[:4], known.target_ids[:4])
    rest = (known.source_ids[4:7], known.target_ids[4:7], known.weights[4:7])
    pair = Pairs(known.source_ids[7:], known.target_ids[7:])
    return known, Memory.of(graphs, seeds, *rest), pair


@pytest.mark.parametrize("seed", range(6))
def test_its_own_link_counts_neither_for_nor_against_a_pair(seed):
    """With the same correspondence of relations."""
    known, unknown, pair = with_and_without(seed)
    unknown.__dict__["correspondence"] = known.correspondence
    mine, other = (features_of(memory, pair).columns[0, ABOUT_LINKS] for memory in (known, unknown))
    np.testing.assert_array_equal(mine, other)
    assert mine.any()
    elsewhere = [features_of(memory).columns[:, :9] for memory in (known, unknown)]  # but other pairs do see it
    assert not np.array_equal(*elsewhere)


def test_a_neighbour_matched_with_the_very_target_is_no_evidence():
    """n is a neighbour of s and matched with t: for (s, t) that is no missing edge and no open one."""
    graph = make_graph([("a", "r", "b"), ("n", "r", "s")])  # a b n s
    other = make_graph([("A", "R", "B"), ("t", "R", "x")])  # A B t x
    memory = Memory.of(Graphs.of(graph, other), Links.of([0, 1], [0, 1]), [2], [2], [1.0])
    features = features_of(memory, Pairs(np.array([3], np.int32), np.array([2], np.int32)))
    assert column(features, "missing source")[0] == 0
    assert column(features, "open source")[0] == 0
    assert column(features, "open target")[0] == pytest.approx(np.log(2))


@pytest.mark.parametrize("is_reversed", [False, True])
def test_of_a_hub_only_so_many_edges_are_looked_at(is_reversed):
    """Three hundred matched neighbours in common; in reverse, only the middle of both lists is seen on both sides."""
    size = 300
    rows = [("hub", "r", f"x{i:03}") for i in range(size)]
    graph = make_graph(rows)
    leaves = np.arange(1, size + 1)
    memory = Memory.of(Graphs.of(graph, graph), Links.of(leaves, leaves[::-1] if is_reversed else leaves))
    memory.__dict__["correspondence"] = np.diag([0.5, 0.5]).astype(np.float32)
    features = features_of(memory, Pairs(np.zeros(1, np.int32), np.zeros(1, np.int32)))
    common = 2 * MAX_EDGES - size if is_reversed else MAX_EDGES
    # From a leaf, the opposite of r leads to one hub: functionality 1.
    assert column(features, "evidence")[0] == pytest.approx(np.sqrt(0.5 * common), rel=1e-5)
    assert column(features, "borne out source")[0] == pytest.approx(np.log1p(0.5 * common), rel=1e-5)
    assert column(features, "borne out target")[0] == pytest.approx(np.log1p(0.5 * common), rel=1e-5)
    assert column(features, "missing target")[0] == pytest.approx(0.5 * (MAX_EDGES - common), abs=1e-3)
    assert column(features, "degree source")[0] == pytest.approx(np.log1p(size))
    assert column(features, "unequal")[0] == 0


def test_no_pairs_are_no_rows():
    rng = np.random.default_rng(0)
    nobody = np.zeros(0, np.int32)
    features = features_of(random_memory(rng, random_graphs(rng)), Pairs(nobody, nobody))
    assert features.columns.shape == (0, len(COLUMNS))
    assert features.priorities.shape == (0,)


def test_columns_are_named_once():
    assert len(set(COLUMNS)) == len(COLUMNS)
    assert COLUMNS[NUM_COUNTED:] == GROUPS["likeness"] + GROUPS["lead"]
