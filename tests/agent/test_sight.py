"""What the agent sees of a pair, column by column, against a plain Python form of the definitions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlea.agent.features import COLUMNS, GROUPS, MAX_EDGES, NUM_COUNTED, look
from rlea.agent.memory import Board, Memory
from rlea.agent.propagation import SpreadSettings, spread
from rlea.graph import Links
from rlea.search.pairs import Pairs, discount_hubs, is_near, leads, mean_of_best

from .conftest import make_graph
from .test_memory import edges, plain_correspondence, random_board, random_memory

SPREAD = SpreadSettings(dim=16, steps=2)
ABOUT_LINKS = [COLUMNS.index(name) for group in ("evidence", "contradiction") for name in GROUPS[group]]


def column(sight, name):
    return sight.features[:, COLUMNS.index(name)]


def every_pair(board):
    source, target = np.meshgrid(np.arange(board.num_source), np.arange(board.num_target), indexing="ij")
    return Pairs.of(source.ravel(), target.ravel())


def look_at(memory, pairs=None):
    pairs = every_pair(memory.board) if pairs is None else pairs
    return look(pairs, memory, spread(memory, SPREAD), evidence_weight=3.0)


def plain_columns(memory, like, s, t):
    """The counted columns of a pair as the module's description has them, from lists and dictionaries."""
    links = dict(zip(memory.source_ids.tolist(), memory.target_ids.tolist(), strict=True))
    trust = dict(zip(memory.source_ids.tolist(), memory.weights.tolist(), strict=True))
    back = {b: a for a, b in links.items()}
    boards = memory.board.source, memory.board.target
    mine, theirs = edges(boards[0], s), edges(boards[1], t)
    degrees = len(mine), len(theirs)
    mine, theirs = mine[:MAX_EDGES], theirs[:MAX_EDGES]

    def turned(oriented, around):
        half = len(around.functionality) // 2
        return (oriented + half) % (2 * half)

    def telling(o, p):
        """How well the relations as seen from the matched neighbours lead to this pair."""
        away, towards = turned(o, boards[0]), turned(p, boards[1])
        return like[away, towards] * min(boards[0].functionality[away], boards[1].functionality[towards])

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
            elif decided[n] != (t if which == 0 else s):  # a neighbour matched with this very entity says nothing
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
    memory = random_memory(rng, random_board(rng, num_edges=60, num_relations=2))
    sight = look_at(memory)
    like = plain_correspondence(memory)
    pairs = every_pair(memory.board)
    expected = [
        plain_columns(memory, like, s, t)
        for s, t in zip(pairs.source_ids.tolist(), pairs.target_ids.tolist(), strict=True)
    ]
    assert len(expected[0]) == NUM_COUNTED
    for number, name in enumerate(COLUMNS[:NUM_COUNTED]):
        wanted = np.array(expected)[:, number]
        np.testing.assert_allclose(sight.features[:, number], wanted, rtol=1e-4, atol=1e-5, err_msg=name)
        assert wanted.std() > 0, name  # a column that is always the same would prove nothing


@pytest.mark.parametrize("seed", range(3))
def test_likeness_and_standing_against_numpy(seed):
    rng = np.random.default_rng(seed)
    memory = random_memory(rng, random_board(rng))
    vectors = spread(memory, SPREAD)
    pairs = every_pair(memory.board)
    kept = rng.random(len(pairs)) < 0.5
    pairs = Pairs(pairs.source_ids[kept], pairs.target_ids[kept])
    sight = look(pairs, memory, vectors, evidence_weight=2.0)
    cosine = (vectors[0].astype(np.float64) @ vectors[1].T.astype(np.float64))[pairs.source_ids, pairs.target_ids]
    csls = 2 * cosine
    for ids in (pairs.source_ids, pairs.target_ids):
        csls -= [np.sort(cosine[ids == i])[::-1][:10].mean() for i in ids]
    np.testing.assert_allclose(column(sight, "cosine"), cosine, atol=1e-5)
    np.testing.assert_allclose(column(sight, "csls"), csls, atol=1e-5)
    np.testing.assert_allclose(sight.keys, csls + 2.0 * column(sight, "evidence"), atol=1e-5)
    for name, ids in (("lead source", pairs.source_ids), ("lead target", pairs.target_ids)):
        rivals = [max([*sight.keys[(ids == i) & (np.arange(len(ids)) != k)], -np.inf]) for k, i in enumerate(ids)]
        np.testing.assert_allclose(column(sight, name), np.clip(sight.keys - rivals, -2, 2), atol=1e-5, err_msg=name)


def with_and_without(seed):
    """A memory, the same without one of its matches, and that pair; it has many linked neighbours."""
    rng = np.random.default_rng(seed)
    board = random_board(rng, 10, 10, 60, 2)
    known = random_memory(rng, board, 4, 4)
    seeds = Links.of(known.source_ids[:4], known.target_ids[:4])
    rest = (known.source_ids[4:7], known.target_ids[4:7], known.weights[4:7])
    pair = Pairs(known.source_ids[7:], known.target_ids[7:])
    return known, Memory.of(board, seeds, *rest), pair


@pytest.mark.parametrize("seed", range(6))
def test_the_own_link_speaks_neither_for_nor_against_its_pair(seed):
    """With the same correspondence of relations."""
    known, unknown, pair = with_and_without(seed)
    unknown.__dict__["correspondence"] = known.correspondence
    mine, other = (look_at(memory, pair).features[0, ABOUT_LINKS] for memory in (known, unknown))
    np.testing.assert_array_equal(mine, other)
    assert mine.any()
    elsewhere = every_pair(known.board)  # but other pairs do see it
    assert not np.array_equal(look_at(known, elsewhere).features[:, :9], look_at(unknown, elsewhere).features[:, :9])


def test_a_neighbour_matched_with_the_very_target_says_nothing():
    """n is a neighbour of s and matched with t: for (s, t) that is no missing edge and no open one."""
    graph = make_graph([("a", "r", "b"), ("n", "r", "s")], [])  # a b n s
    other = make_graph([("A", "R", "B"), ("t", "R", "x")], [])  # A B t x
    memory = Memory.of(Board.of(graph, other), Links.of([0, 1], [0, 1]), [2], [2], [1.0])
    sight = look_at(memory, Pairs(np.array([3], np.int32), np.array([2], np.int32)))
    assert column(sight, "missing source")[0] == 0
    assert column(sight, "open source")[0] == 0
    assert column(sight, "open target")[0] == pytest.approx(np.log(2))


@pytest.mark.parametrize("is_turned", [False, True])
def test_of_a_hub_only_so_many_edges_are_looked_at(is_turned):
    """Three hundred matched neighbours in common; turned round, only the middle of both lists is seen on both sides."""
    size = 300
    rows = [("hub", "r", f"x{i:03}") for i in range(size)]
    graph = make_graph(rows, [])
    leaves = np.arange(1, size + 1)
    memory = Memory.of(Board.of(graph, graph), Links.of(leaves, leaves[::-1] if is_turned else leaves))
    memory.__dict__["correspondence"] = np.diag([0.5, 0.5]).astype(np.float32)
    sight = look_at(memory, Pairs(np.zeros(1, np.int32), np.zeros(1, np.int32)))
    common = 2 * MAX_EDGES - size if is_turned else MAX_EDGES
    # From a leaf, the opposite of r leads to one hub: functionality 1.
    assert column(sight, "evidence")[0] == pytest.approx(np.sqrt(0.5 * common), rel=1e-5)
    assert column(sight, "borne out source")[0] == pytest.approx(np.log1p(0.5 * common), rel=1e-5)
    assert column(sight, "borne out target")[0] == pytest.approx(np.log1p(0.5 * common), rel=1e-5)
    assert column(sight, "missing target")[0] == pytest.approx(0.5 * (MAX_EDGES - common), abs=1e-3)
    assert column(sight, "degree source")[0] == pytest.approx(np.log1p(size))
    assert column(sight, "unequal")[0] == 0


def test_no_pairs_are_no_rows():
    rng = np.random.default_rng(0)
    nobody = np.zeros(0, np.int32)
    sight = look_at(random_memory(rng, random_board(rng)), Pairs(nobody, nobody))
    assert sight.features.shape == (0, len(COLUMNS))
    assert sight.keys.shape == (0,)


def test_leads_by_hand():
    ids = np.array([0, 0, 0, 2, 3, 3, 5, 5], np.int32)
    keys = np.array([0.5, 0.3, -0.4, 0.7, 0.2, 0.2, 9.0, 1.0], np.float32)
    # Best against second, others against the best; alone: as much as can be; level: nothing; far apart: cut.
    np.testing.assert_allclose(leads(ids, keys), [0.2, -0.2, -0.9, 2, 0, 0, 2, -2], atol=1e-6)
    np.testing.assert_allclose(leads(ids, keys, most=0.5), [0.2, -0.2, -0.5, 0.5, 0, 0, 0.5, -0.5], atol=1e-6)
    assert leads(ids[:0], keys[:0]).shape == (0,)


scored = st.lists(
    st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(-8, 8)), max_size=40, unique_by=lambda row: row[:2]
)


def as_pairs(rows):
    rows = sorted(rows)
    source, target, values = (np.array([row[i] for row in rows]) for i in range(3))
    return Pairs(source.astype(np.int32), target.astype(np.int32)), (values / 4).astype(np.float32)


@settings(max_examples=60, deadline=None)
@given(scored, st.integers(1, 5))
def test_mean_of_best_is_near_and_csls_against_numpy(rows, k):
    pairs, values = as_pairs(rows)
    near = np.zeros(len(pairs), bool)
    means = []
    for ids in (pairs.source_ids, pairs.target_ids):
        best = {i: np.sort(values[ids == i])[::-1][:k] for i in ids.tolist()}
        expected = [best[i].mean() if i in best else 0 for i in range(ids.max(initial=-1) + 1)]
        np.testing.assert_allclose(mean_of_best(ids, values, k), expected, atol=1e-6)
        means.append(np.array([best[i].mean() for i in ids.tolist()], np.float32))
        near |= np.array([v >= best[i].min() for i, v in zip(ids.tolist(), values, strict=True)], bool)
    np.testing.assert_array_equal(is_near(pairs, values, k), near)
    np.testing.assert_allclose(discount_hubs(pairs, values, k), 2 * values - means[0] - means[1], atol=1e-5)


@settings(max_examples=60, deadline=None)
@given(scored)
def test_leads_against_numpy(rows):
    pairs, values = as_pairs(rows)
    rivals = np.array(
        [
            max([v for k, v in enumerate(values) if k != own and pairs.source_ids[k] == i], default=-np.inf)
            for own, i in enumerate(pairs.source_ids)
        ]
    )
    np.testing.assert_allclose(leads(pairs.source_ids, values), np.clip(values - rivals, -2, 2), atol=1e-6)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1))
        | st.tuples(st.integers(0, 3), st.integers(0, 3))
    )
)
def test_pairs_are_unique_and_sorted(rows):
    source, target = (np.array([row[i] for row in rows], np.int64) for i in range(2))
    pairs = Pairs.of(source, target)
    assert list(zip(pairs.source_ids.tolist(), pairs.target_ids.tolist(), strict=True)) == sorted(set(rows))
    assert pairs.source_ids.dtype == pairs.target_ids.dtype == np.int32
    assert len(pairs) == len(set(rows))


def test_columns_are_named_once():
    assert len(set(COLUMNS)) == len(COLUMNS)
    assert COLUMNS[NUM_COUNTED:] == GROUPS["likeness"] + GROUPS["standing"]
