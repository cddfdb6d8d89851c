"""Passes: always one-to-one, the learned game against plain Python, pairs that come into the game, and thresholds."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlea.agent.engine import Extra, Game, Rules, Side, Vectors, play
from rlea.agent.memory import Board, Memory
from rlea.agent.passes import Decisions, PassSettings, Scene, given_csls, memory_of, play_fixed, play_learned
from rlea.agent.propagation import SpreadSettings
from rlea.graph import Links
from rlea.search.candidates import find_candidates, tie_hash
from rlea.search.embeddings import Embeddings
from rlea.search.pairs import Pairs, find_pairs, is_near

from .conftest import make_graph
from .test_memory import edges, plain_correspondence, random_board

SMALL = PassSettings(candidates=4, spread=SpreadSettings(dim=16, steps=2), rivals=100)


def random_scene(seed, num_seeds=4, vectors=None, size=14, pools=None):
    """Two random graphs with some seeds; all other entities are to be matched, in random order."""
    rng = np.random.default_rng(seed)
    board = random_board(rng, size, size + 2, 4 * size, 2)
    source, target = rng.permutation(board.num_source), rng.permutation(board.num_target)
    seeds = Links.of(source[:num_seeds], target[:num_seeds])
    free = source[num_seeds:].astype(np.int32), target[num_seeds:].astype(np.int32)
    found = None
    if vectors is not None:
        rows = (rng.standard_normal((count, 6), np.float32) for count in (board.num_source, board.num_target))
        found = find_candidates(Embeddings(*rows, measure=vectors), *free, 3)
    return Scene(board, seeds, *free, found, seed)


def links_of(decisions):
    return list(zip(decisions.source_ids.tolist(), decisions.target_ids.tolist(), strict=True))


def certain(sight, pairs, worth):
    return np.ones(len(pairs), np.float32)


def learned(scene, before, worth, settings=SMALL, least=-np.inf):
    return play_learned(scene, settings, before, lambda sight, pairs: worth, certain, least)


def is_one_to_one(decisions, scene):
    source, target = decisions.source_ids.tolist(), decisions.target_ids.tolist()
    return (
        len(set(source)) == len(source) == len(set(target)) == len(target)
        and set(source) <= set(scene.source_ids.tolist())
        and set(target) <= set(scene.target_ids.tolist())
    )


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([None, "cosine", "inner", "manhattan"]), st.integers(0, 8))
def test_always_one_to_one(seed, vectors, num_seeds):
    scene = random_scene(seed, num_seeds, vectors)
    first = play_fixed(scene, SMALL)
    assert is_one_to_one(first, scene)
    assert len(first.source_ids) > 0
    assert np.all((first.confidences >= 0) & (first.confidences <= 1))
    pairs = set(zip(first.pairs.source_ids.tolist(), first.pairs.target_ids.tolist(), strict=True))
    assert set(links_of(first)) <= pairs
    rng = np.random.default_rng(seed)
    worth = rng.standard_normal(len(first.pairs)).astype(np.float32)
    second = learned(scene, first, worth)
    assert is_one_to_one(second, scene)
    assert set(links_of(second)) <= pairs
    # Nothing that could still be matched is left out.
    taken = set(second.source_ids.tolist()), set(second.target_ids.tolist())
    assert all(s in taken[0] or t in taken[1] for s, t in pairs)


def test_passes_are_the_same_every_time():
    for vectors in (None, "cosine"):
        one, two = (play_fixed(random_scene(3, vectors=vectors), SMALL) for _ in range(2))
        assert links_of(one) == links_of(two)
        assert one.confidences.tobytes() == two.confidences.tobytes()


@settings(max_examples=60, deadline=None)
@given(st.sets(st.tuples(st.integers(0, 9), st.integers(0, 10**6)), min_size=1, max_size=30), st.randoms())
def test_find_pairs(rows, random):
    pairs = Pairs.of(*np.array(sorted(rows)).T)
    asked = random.sample(sorted(rows), random.randint(0, len(rows)))
    source, target = (np.array([row[i] for row in asked], np.int32) for i in range(2))
    places = find_pairs(pairs, source, target)
    found = list(zip(pairs.source_ids[places].tolist(), pairs.target_ids[places].tolist(), strict=True))
    assert found == asked


def plain_greedy(pairs, worth, seed, least=-np.inf):
    """Best worth first, equals by the hash that is blind to ids."""
    rows = list(zip(pairs.source_ids.tolist(), pairs.target_ids.tolist(), worth.tolist(), strict=True))
    order = np.lexsort((tie_hash(pairs.source_ids, pairs.target_ids, seed), -worth))
    sources, targets, result = set(), set(), []
    for k in order:
        s, t, value = rows[k]
        if s not in sources and t not in targets and value >= least:
            sources.add(s)
            targets.add(t)
            result.append((s, t))
    return result


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("has_ties", [False, True])
def test_without_moves_a_learned_pass_is_greedy(seed, has_ties):
    scene = random_scene(seed)
    before = play_fixed(scene, SMALL)
    worth = np.random.default_rng(seed).standard_normal(len(before.pairs)).astype(np.float32)
    if has_ties:
        worth = np.round(worth).astype(np.float32)
    decisions = learned(scene, before, worth, replace(SMALL, moves=0.0))
    assert links_of(decisions) == plain_greedy(before.pairs, worth, scene.seed)
    np.testing.assert_array_equal(
        decisions.keys, worth[find_pairs(before.pairs, decisions.source_ids, decisions.target_ids)]
    )
    assert decisions.worth is worth


@pytest.mark.parametrize("seed", range(5))
def test_least_cuts_off_and_changes_nothing_above(seed):
    scene = random_scene(seed)
    before = play_fixed(scene, SMALL)
    still = replace(SMALL, moves=0.0)
    worth = np.random.default_rng(seed).standard_normal(len(before.pairs)).astype(np.float32)
    every = learned(scene, before, worth, still)
    least = float(np.sort(every.keys)[len(every.keys) // 2])
    some = learned(scene, before, worth, still, least)
    above = [link for link, key in zip(links_of(every), every.keys, strict=True) if key >= least]
    assert 0 < len(above) < len(links_of(every))
    assert links_of(some) == above
    assert some.keys.min() == np.float32(least)  # the threshold itself is enough
    assert links_of(learned(scene, before, worth, still, 100.0)) == []


def test_only_the_best_of_an_entity_play():
    scene = random_scene(1)
    before = play_fixed(scene, SMALL)
    worth = np.random.default_rng(1).standard_normal(len(before.pairs)).astype(np.float32)
    few = replace(SMALL, moves=0.0, rivals=1)
    near = is_near(before.pairs, worth, 1)
    expected = plain_greedy(Pairs(before.pairs.source_ids[near], before.pairs.target_ids[near]), worth[near], 1)
    decisions = learned(scene, before, worth, few)
    assert links_of(decisions) == expected
    assert decisions.pairs is before.pairs


def test_confidences_are_those_of_their_pairs():
    scene = random_scene(2)
    before = play_fixed(scene, SMALL)
    rng = np.random.default_rng(2)
    worth, sure = (rng.random(len(before.pairs)).astype(np.float32) for _ in range(2))

    def rate(sight, pairs, given_worth):
        assert given_worth is worth
        assert sight.features.shape[0] == len(pairs) == len(sure)
        return sure

    decisions = play_learned(scene, SMALL, before, lambda sight, pairs: worth, rate)
    table = dict(
        zip(zip(before.pairs.source_ids.tolist(), before.pairs.target_ids.tolist(), strict=True), sure, strict=True)
    )
    assert [table[link] for link in links_of(decisions)] == decisions.confidences.tolist()


def plain_anchored(scene, before, worth, moves, floor, least=-np.inf):
    """Keys are worths, moved by how the root of evidence differs from what it was before the first decision.

    Seeds and the links of the pass before speak in full; what the latter said of an entity is withdrawn when it is
    decided anew. All pairs are searched for each decision.
    """
    source, target = scene.board.source, scene.board.target
    like = plain_correspondence(memory_of(scene, before))
    start = dict(
        zip(zip(before.pairs.source_ids.tolist(), before.pairs.target_ids.tolist(), strict=True), worth, strict=True)
    )
    evidence, supposed = dict.fromkeys(start, 0.0), dict.fromkeys(start, 0.0)
    free = set(scene.source_ids.tolist()), set(scene.target_ids.tolist())

    def speak(s, t, share, is_supposed):
        for o, n in edges(source, s):
            for p, m in edges(target, t):
                step = like[o, p] * min(source.functionality[o], target.functionality[p])
                if step < floor or n not in free[0] or m not in free[1] or (n, m) not in evidence:
                    continue
                gain = share * step
                if share < 0:
                    gain = -min(step, supposed[n, m])
                if is_supposed:
                    supposed[n, m] += gain
                evidence[n, m] += gain

    for s, t in zip(scene.seeds.source_ids.tolist(), scene.seeds.target_ids.tolist(), strict=True):
        speak(s, t, 1.0, False)
    earlier = set(links_of(before))
    for s, t in links_of(before):
        speak(s, t, 1.0, True)
    anchor = dict(evidence)
    result = []
    while True:
        keys = {
            pair: start[pair] + moves * (np.sqrt(max(evidence[pair], 0)) - np.sqrt(anchor[pair]))
            for pair in start
            if pair[0] in free[0] and pair[1] in free[1]
        }
        if not keys or max(keys.values()) < least:
            return result, anchor
        s, t = max(keys, key=keys.get)
        result.append((s, t))
        free[0].discard(s)
        free[1].discard(t)
        speak(s, t, 1.0, False)
        for a, b in sorted(earlier):
            if a == s or b == t:
                earlier.discard((a, b))
                speak(a, b, -1.0, True)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("moves", [2.0, 24.0])
def test_the_anchored_game_equals_the_plain_one(seed, moves):
    scene = random_scene(seed, num_seeds=5)
    chosen = replace(SMALL, moves=moves)
    before = play_fixed(scene, chosen)
    worth = np.random.default_rng(seed).standard_normal(len(before.pairs)).astype(np.float32)
    decisions = learned(scene, before, worth, chosen)
    expected, anchor = plain_anchored(scene, before, worth.tolist(), moves, chosen.floor)
    assert max(anchor.values()) > 0
    assert links_of(decisions) == expected
    if moves > 20:
        assert expected != plain_greedy(before.pairs, worth, seed)  # evidence did move them
    some = learned(scene, before, worth, chosen, least=0.0)
    assert links_of(some) == plain_anchored(scene, before, worth.tolist(), moves, chosen.floor, 0.0)[0]


def test_learned_passes_look_at_the_best_pairs_and_at_all_matches():
    """After the fixed passes only the best of every entity stay, and what was matched stays whatever its place."""
    scene = random_scene(3, num_seeds=5)
    every = play_fixed(scene, replace(SMALL, kept=1000))
    few = play_fixed(scene, replace(SMALL, kept=1))
    assert links_of(few) == links_of(every)
    pairs = set(zip(few.pairs.source_ids.tolist(), few.pairs.target_ids.tolist(), strict=True))
    assert set(links_of(few)) <= pairs
    assert pairs < set(zip(every.pairs.source_ids.tolist(), every.pairs.target_ids.tolist(), strict=True))
    keys = few.pairs.source_ids.astype(np.int64) * 10**6 + few.pairs.target_ids
    assert (np.diff(keys) > 0).all()  # sorted, each once


def test_nobody_is_searched_for_entities_with_a_sure_match(monkeypatch):
    """The search of a later pass is for those whose match could be wrong; what is found comes into the game."""
    from rlea.agent import passes

    scene = random_scene(5, num_seeds=4)
    pools = []
    search = passes.find_candidates
    monkeypatch.setattr(
        passes,
        "find_candidates",
        lambda vectors, *ids_and_k, **more: pools.append(ids_and_k[:2]) or search(vectors, *ids_and_k, **more),
    )
    before = play_fixed(scene, replace(SMALL, fixed=1))
    lines = np.sort(before.confidences)
    sure = float(lines[len(lines) // 2])
    play_fixed(scene, replace(SMALL, fixed=2, sure=sure))
    everyone, again, rest = pools
    assert sorted(everyone[0]) == sorted(again[0]) == sorted(scene.source_ids)
    done = before.confidences >= sure
    assert 0 < done.sum() < len(done)
    assert sorted(rest[0]) == sorted(set(scene.source_ids.tolist()) - set(before.source_ids[done].tolist()))
    assert sorted(rest[1]) == sorted(set(scene.target_ids.tolist()) - set(before.target_ids[done].tolist()))


def test_a_decision_against_the_pass_before_takes_its_evidence_away():
    """(b, B) was matched and spoke for (c, C); now b goes elsewhere, and the key of (c, C) sinks by what it had."""
    source = make_graph([(a, "r", b) for a, b in pairwise("abcd")], [])
    target = make_graph([(a, "R", b) for a, b in pairwise("ABCD")], ["X"])
    scene = Scene(
        Board.of(source, target), Links.of([0, 3], [0, 3]), np.array([1, 2], np.int32), np.array([1, 2, 4], np.int32)
    )
    pairs = Pairs(np.array([1, 1, 2], np.int32), np.array([1, 4, 2], np.int32))  # (b, B) (b, X) (c, C)
    one = np.ones(1, np.float32)
    before = Decisions(np.array([1], np.int32), np.array([1], np.int32), one, one, pairs)
    like = Memory.of(scene.board, scene.seeds, [1], [1], [1.0]).correspondence[0, 0]
    worth = np.array([0.0, 3.0, 2.0], np.float32)
    decisions = learned(scene, before, worth, replace(SMALL, moves=1.0))
    assert links_of(decisions) == [(1, 4), (2, 2)]
    # The seed (d, D) speaks for (c, C) all along, by the opposite of r.
    lost = np.sqrt(2 * like) - np.sqrt(like)
    np.testing.assert_allclose(decisions.keys, [3.0, 2.0 - lost], rtol=1e-5)


def test_a_pair_that_a_match_creates_has_the_key_of_the_extra_vectors():
    """No candidates at all: a seed brings in (b, B), whose base is the CSLS of the second vectors, by their share."""
    source, target = make_graph([("a", "r", "b")], ["c"]), make_graph([("A", "R", "B")], [])
    board = Board.of(source, target)
    rng = np.random.default_rng(0)
    extra = rng.standard_normal((3, 5), np.float32), rng.standard_normal((2, 5), np.float32)
    none = np.zeros((3, 0), np.float32), np.zeros((2, 0), np.float32)
    no_rows = (np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32))
    sides = [
        Side(
            around.starts,
            around.relation_ids,
            around.neighbour_ids,
            around.functionality,
            np.zeros(size, np.float32),
            np.arange(size) > 0,
        )
        for around, size in ((board.source, 3), (board.target, 2))
    ]
    nobody, starts = np.zeros(0, np.int32), np.zeros(3, np.int64)
    vectors = Vectors(0, np.float32(1), *none, *no_rows, *no_rows)
    means = np.array([0, 0.3, 0], np.float32), np.array([0, 0.1], np.float32)
    second = Extra(np.float32(0.6), *extra, *means)
    game = Game(*sides, vectors, second, nobody, nobody, np.zeros(0, np.float32), starts, starts)
    like = np.diag([0.4, 0.4]).astype(np.float32)
    seeds = Links.of([0], [0])
    known = (seeds.source_ids, seeds.target_ids, nobody, nobody)

    def rules(creation):
        numbers = (np.float32(x) for x in (3.0, creation, 0.005, 1.0, 0.5, 0.12, 0.3))
        return Rules(*numbers, np.uint64(0), False, np.float32(-np.inf))

    links, _, grown = play(game, *known, like.copy(), True, rules(0.1))
    assert (links[0].tolist(), links[1].tolist()) == ([1], [1])
    assert links[2][0] == pytest.approx(0.6 * (2 * extra[0][1] @ extra[1][1] - 0.4) + 3 * np.sqrt(0.4), rel=1e-5)
    assert (grown[0].tolist(), grown[1].tolist()) == ([1], [1])
    for creation in (0.5, np.inf):
        links, _, grown = play(game, *known, like.copy(), True, rules(creation))
        assert len(links[0]) == len(grown[0]) == 0


@pytest.mark.parametrize("vectors", [None, "cosine", "inner", "manhattan"])
def test_a_pair_that_comes_later_has_the_base_that_it_would_have_had(vectors):
    """The base that compiled code works out for a pair equals the one of pairs that are there from the start."""
    from rlea.agent.engine import _base
    from rlea.agent.passes import _game
    from rlea.agent.propagation import spread
    from rlea.search.pairs import discount_hubs, mean_of_best
    from rlea.search.rows import inner_products

    scene = random_scene(6, vectors=vectors)
    rows = spread(memory_of(scene, None), SMALL.spread)
    source, target = np.meshgrid(scene.source_ids, scene.target_ids, indexing="ij")
    pairs = Pairs.of(source.ravel(), target.ravel())
    likeness = inner_products(*rows, pairs.source_ids, pairs.target_ids)
    share = 1.0 if vectors is None else 0.67
    bases = share * discount_hubs(pairs, likeness) + (1 - share) * given_csls(scene, pairs)
    assert bases.std() > 0.05
    means = []
    for ids, part in zip((pairs.source_ids, pairs.target_ids), rows, strict=True):
        best = mean_of_best(ids, likeness)
        means.append(np.concatenate([best, np.zeros(len(part) - len(best), np.float32)]))
    extra = Extra(np.float32(share), *rows, *means)
    game = _game(scene, pairs, bases.astype(np.float32), extra, 1 - share)
    found = [_base(game, s, t) for s, t in zip(pairs.source_ids, pairs.target_ids, strict=True)]
    np.testing.assert_allclose(found, bases, atol=1e-4)


@pytest.mark.parametrize("measure", ["cosine", "inner", "manhattan"])
def test_given_csls_of_candidates_and_of_others(measure):
    scene = random_scene(4, vectors=measure)
    found = scene.given
    source, target = np.meshgrid(scene.source_ids, scene.target_ids, indexing="ij")
    pairs = Pairs.of(source.ravel(), target.ravel())
    a = np.asarray(found.embeddings.source, np.float64)[pairs.source_ids]
    b = np.asarray(found.embeddings.target, np.float64)[pairs.target_ids]
    if measure == "cosine":
        a, b = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (a, b))
    scores = -np.abs(a - b).sum(axis=1) if measure == "manhattan" else (a * b).sum(axis=1)
    rows, columns = found.forward_scores.mean(axis=1), found.backward_scores.mean(axis=1)  # fewer than ten are kept
    row, column = ({e: i for i, e in enumerate(ids.tolist())} for ids in (found.source_ids, found.target_ids))
    csls = 2 * scores - [rows[row[s]] for s in pairs.source_ids] - [columns[column[t]] for t in pairs.target_ids]
    if measure != "cosine":  # brought to the spread that cosines have, over the candidates
        own = found.pairs
        csls *= 0.1 / np.std(2 * own.scores - rows[own.rows] - columns[own.columns])
    np.testing.assert_allclose(given_csls(scene, pairs), csls, rtol=1e-3, atol=1e-5)
    assert not given_csls(replace(scene, given=None), pairs).any()


def test_memory_of_a_pass_trusts_as_far_as_it_is_sure():
    scene = random_scene(0)
    before = play_fixed(scene, SMALL)
    memory = memory_of(scene, before)
    assert memory.num_seeds == len(scene.seeds)
    assert memory.weights[memory.num_seeds :].tolist() == before.confidences.tolist()
    assert len(memory_of(scene, None).source_ids) == len(scene.seeds)


def test_above_the_limit_no_search_is_made():
    """Without given candidates and without a search only what seeds create is in the game."""
    scene = random_scene(5)
    dark = play_fixed(scene, replace(SMALL, most_searched=0, creation=10.0))
    assert len(dark.pairs) == 0
    assert links_of(dark) == []
    grown = play_fixed(scene, replace(SMALL, most_searched=0, creation=0.001))
    assert 0 < len(grown.pairs) < len(play_fixed(scene, SMALL).pairs)
