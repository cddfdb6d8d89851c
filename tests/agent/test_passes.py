"""Passes: always one-to-one, learned passes against plain Python, pairs that matches bring in, and thresholds."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planted import links_of, make_graph, make_pairs, make_table, rows_of
from rlea.agent import passes
from rlea.agent.engine import Extra, base_of
from rlea.agent.memory import Graphs, Memory
from rlea.agent.passes import (
    Decisions,
    PassSettings,
    Prior,
    Problem,
    memory_of,
    play_fixed,
    play_learned,
    replay_fixed,
)
from rlea.agent.propagation import PropagationSettings, propagate
from rlea.evidence.vectors import vector_channel
from rlea.graph import Links
from rlea.search.candidates import tie_hash
from rlea.search.embeddings import Embeddings
from rlea.search.pairs import Pairs, discount_hubs, is_near, mean_of_best
from rlea.search.rows import inner_products

from .test_memory import edges, plain_correspondence, random_graphs

SMALL = PassSettings(candidates=4, vectors=PropagationSettings(dim=16, steps=2), rivals=100)
ALONE = Prior(Pairs.empty())


def random_problem(seed, num_seeds=4, size=14):
    """Two random graphs with some seeds; all other entities are to be matched, in random order."""
    rng = np.random.default_rng(seed)
    graphs = random_graphs(rng, size, size + 2, 4 * size, 2)
    source, target = rng.permutation(graphs.num_source), rng.permutation(graphs.num_target)
    seeds = Links.of(source[:num_seeds], target[:num_seeds])
    return Problem(graphs, seeds, source[num_seeds:].astype(np.int32), target[num_seeds:].astype(np.int32))


def random_prior(problem, kind):
    """Nothing known, random vectors, or random logits."""
    rng = np.random.default_rng(len(problem.source_ids))
    if kind == "nothing":
        return ALONE
    sizes = problem.graphs.num_source, problem.graphs.num_target
    if kind == "logits":
        table = make_table({(s, t): rng.normal() for s, t in rng.integers(0, min(sizes), (40, 2)).tolist()})
        inside = np.isin(table.pairs.source_ids, problem.source_ids) & np.isin(
            table.pairs.target_ids, problem.target_ids
        )
        return Prior(table.pairs.some(inside), table, lowest=-2.0)
    vectors = Embeddings(*(rng.standard_normal((size, 6), np.float32) for size in sizes), measure=kind)
    channel = vector_channel(vectors, problem.source_ids, problem.target_ids, nearest=3)
    return Prior(channel.proposals, csls=[channel.csls])


def random_logits(decisions, seed=0):
    return np.random.default_rng(seed).standard_normal(len(decisions.pairs)).astype(np.float32)


def learned(problem, before, logits, settings=SMALL):
    certain = np.ones(len(logits), np.float32)
    return play_learned(problem, settings, before, lambda *_: logits, lambda *_: certain, 1)[-1]


def is_one_to_one(decisions, problem):
    source, target = decisions.source_ids.tolist(), decisions.target_ids.tolist()
    return (
        len(set(source)) == len(source) == len(set(target)) == len(target)
        and set(source) <= set(problem.source_ids.tolist())
        and set(target) <= set(problem.target_ids.tolist())
    )


# ---- all passes -----------------------------------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from(["nothing", "logits", "cosine", "inner", "manhattan"]),
    st.integers(0, 8),
    st.sampled_from([None, 0.0, 0.67]),
)
def test_always_one_to_one(seed, kind, num_seeds, weight):
    problem = random_problem(seed, num_seeds)
    first = play_fixed(problem, SMALL, replace(random_prior(problem, kind), propagation=weight))
    assert is_one_to_one(first, problem)
    assert len(first.source_ids) > 0 or (kind == "nothing" and num_seeds < 2)
    assert np.all((first.confidences >= 0) & (first.confidences <= 1))
    pairs = links_of(first.pairs)
    assert links_of(first) <= pairs
    second = learned(problem, first, random_logits(first, seed))
    assert is_one_to_one(second, problem)
    assert links_of(second) <= pairs
    # No pair is left of two entities that could still be matched.
    matched = set(second.source_ids.tolist()), set(second.target_ids.tolist())
    assert all(s in matched[0] or t in matched[1] for s, t in pairs)


@pytest.mark.parametrize("kind", ["nothing", "logits", "cosine"])
def test_passes_are_the_same_every_time(kind):
    problem = random_problem(3)
    one, two = (play_fixed(problem, SMALL, random_prior(problem, kind)) for _ in range(2))
    assert rows_of(one) == rows_of(two)
    assert one.confidences.tobytes() == two.confidences.tobytes()


@pytest.mark.parametrize("kind", ["nothing", "logits", "cosine"])
def test_the_last_pass_again_without_any_entity_gone_is_the_last_pass(kind):
    problem = random_problem(3)
    prior = random_prior(problem, kind)
    once = play_fixed(problem, SMALL, prior)
    again = replay_fixed(problem, SMALL, prior, once)
    assert rows_of(again) == rows_of(once)
    assert again.confidences.tobytes() == once.confidences.tobytes()
    assert again.logits.tobytes() == once.logits.tobytes()


@pytest.mark.parametrize("seed", range(4))
def test_in_the_last_pass_again_entities_that_are_gone_are_not_matched_and_their_links_stand(seed):
    problem = random_problem(seed)
    once = play_fixed(problem, SMALL, ALONE)
    source, target = int(once.source_ids[0]), int(once.target_ids[0])
    less = replace(problem, target_ids=problem.target_ids[problem.target_ids != target])
    again = replay_fixed(less, SMALL, ALONE, once)
    assert is_one_to_one(again, less)
    assert target not in again.target_ids
    assert len(again.source_ids) >= len(once.source_ids) - 1
    # The source is to be matched anew; for neighbours it is still matched as before.
    assert source in less.source_ids
    assert once.before is not None
    assert again.before is not None
    assert links_of(again.before) == links_of(once.before)


@pytest.mark.parametrize("values", [{"fixed": 0}, {"candidates": 0}, {"kept": 0}, {"rivals": 0}, {"learned": -1}])
def test_settings_that_make_no_sense_are_refused(values):
    with pytest.raises(ValueError, match="needs a fixed pass"):
        PassSettings(**values)


def test_memory_of_a_pass_trusts_as_far_as_it_is_sure():
    problem = random_problem(0)
    before = play_fixed(problem, SMALL, ALONE)
    memory = memory_of(problem, before)
    assert memory.num_seeds == len(problem.seeds)
    assert memory.weights[memory.num_seeds :].tolist() == before.confidences.tolist()
    assert len(memory_of(problem, None).source_ids) == len(problem.seeds)


# ---- fixed passes ---------------------------------------------------------------------------------------------------


def chain(letter, size=12):
    """Entities in a row, each joined to the next by one of three relations in turn."""
    return make_graph([(f"{letter}{i:02}", f"{letter}r{i % 3}", f"{letter}{i + 1:02}") for i in range(size - 1)])


def play_chains(scores, *, seeds=(), structure=True, pool=None, lowest=-2.0):
    """Two chains of twelve that correspond in order; `scores` are the logits of the proposals."""
    links = Links.of([s for s, _ in seeds], [t for _, t in seeds])
    pool = pool or [np.setdiff1d(np.arange(12), taken) for taken in (links.source_ids, links.target_ids)]
    ids = [np.array(part, np.int32) for part in pool]
    table = make_table(scores, lowest)
    prior = Prior(table.pairs, table, lowest, structure=structure)
    return play_fixed(Problem(Graphs.of(chain("a"), chain("b")), links, *ids), PassSettings(), prior)


def test_logits_and_priorities_are_two_scales_of_one_thing():
    logits = np.linspace(-8, 8, 33, dtype=np.float32)
    priorities = passes.from_logits(logits, SMALL)
    np.testing.assert_allclose(passes.to_logits(priorities, SMALL), logits, atol=1e-4)
    assert (np.diff(priorities) > 0).all()
    np.testing.assert_allclose(passes.to_logits(np.array([SMALL.no_match], np.float32), SMALL), 0, atol=1e-6)


def test_without_structure_the_higher_logit_wins_and_no_pair_is_brought_in():
    scores = {(0, 0): 1.0, (0, 1): 3.0, (1, 1): 2.0, (1, 0): -1.0, (5, 7): 4.0}
    decisions = play_chains(scores, structure=False)
    assert dict(rows_of(decisions)) == {0: 1, 1: 0, 5: 7}
    assert links_of(decisions.pairs) == set(scores)
    np.testing.assert_allclose(decisions.logits, [scores[pair] for pair in sorted(scores)], atol=1e-5)


def test_matches_bring_in_the_pairs_of_their_neighbours():
    """The middle of the chain is known, and no channel proposes any of the rest."""
    links = dict(rows_of(play_chains({(5, 5): 6.0, (6, 6): 6.0}, seeds=[(4, 4), (7, 7)])))
    assert links[5] == 5
    assert links[6] == 6
    assert sum(links.get(i) == i for i in range(12) if i not in (4, 7)) >= 8
    assert len(set(links.values())) == len(links)


def test_seeds_and_entities_outside_the_pool_are_not_matched():
    links = dict(rows_of(play_chains({(i, i): 3.0 for i in range(12)}, seeds=[(4, 4)], pool=([1, 2, 3], [2, 3, 5]))))
    assert set(links) <= {1, 2, 3}
    assert set(links.values()) <= {2, 3, 5}
    assert (links[2], links[3]) == (2, 3)


@pytest.mark.parametrize("pool", [([], []), ([1, 2], []), ([], [1, 2])])
def test_an_empty_pool_gives_no_links(pool):
    assert len(play_chains({}, pool=pool).matching) == len(passes.no_decisions().matching) == 0


def test_propagated_vectors_count_by_their_weight_and_where_enough_is_linked():
    problem = random_problem(7, num_seeds=5)
    prior = random_prior(problem, "cosine")
    found = {
        weight: play_fixed(problem, SMALL, replace(prior, propagation=weight)).logits.tobytes()
        for weight in (None, 0.67, 0.0)
    }
    assert found[None] == found[0.67] != found[0.0]
    sparse = replace(SMALL, least_linked=2.0)  # more than there are
    assert play_fixed(problem, sparse, prior).logits.tobytes() == found[0.0]


def test_learned_passes_look_at_the_best_pairs_and_at_all_matches():
    """After the fixed passes only the best of every entity stay, and a match stays whatever its rank."""
    problem = random_problem(3, num_seeds=5)
    every = play_fixed(problem, replace(SMALL, kept_by_structure=1000), ALONE)
    few = play_fixed(problem, replace(SMALL, kept_by_structure=1), ALONE)
    assert rows_of(few) == rows_of(every)
    assert links_of(few) <= links_of(few.pairs) < links_of(every.pairs)
    assert rows_of(few.pairs) == sorted(links_of(few.pairs))
    prior = random_prior(problem, "logits")
    counts = [len(play_fixed(problem, replace(SMALL, kept=kept), prior).pairs) for kept in (1, 1000)]
    assert counts[0] < counts[1]


def test_entities_with_a_sure_match_are_not_searched_again():
    problem = random_problem(5, num_seeds=4)
    before = play_fixed(problem, replace(SMALL, fixed=1), ALONE)
    sure = float(np.sort(before.confidences)[len(before.confidences) // 2])
    done = before.confidences >= sure
    assert 0 < done.sum() < len(done)
    for sides in zip(passes.unsure(problem, before, sure), (problem.source_ids, problem.target_ids),
                     (before.source_ids, before.target_ids), strict=True):  # fmt: skip
        assert sides[0].tolist() == [entity for entity in sides[1].tolist() if entity not in sides[2][done]]
    assert passes.unsure(problem, None, sure)[0] is problem.source_ids


def test_above_the_limit_no_search_is_made():
    """Then only what seeds bring in can be matched."""
    problem = random_problem(5)
    none = play_fixed(problem, replace(SMALL, most_searched=0, creation=10.0), ALONE)
    assert len(none.pairs) == len(none.source_ids) == 0
    grown = play_fixed(problem, replace(SMALL, most_searched=0, creation=0.001), ALONE)
    assert 0 < len(grown.pairs) < len(play_fixed(problem, SMALL, ALONE).pairs)


# ---- learned passes -------------------------------------------------------------------------------------------------


def plain_greedy(pairs, logits):
    """Highest logit first, ties by a hash that is blind to ids."""
    rows = rows_of(pairs)
    sources, targets, result = set(), set(), []
    for k in np.lexsort((tie_hash(pairs.source_ids, pairs.target_ids, 0), -logits)):
        s, t = rows[k]
        if s not in sources and t not in targets:
            sources.add(s)
            targets.add(t)
            result.append((s, t))
    return result


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("has_ties", [False, True])
def test_where_evidence_moves_nothing_a_learned_pass_is_greedy(seed, has_ties):
    problem = random_problem(seed)
    before = play_fixed(problem, SMALL, ALONE)
    logits = random_logits(before, seed)
    if has_ties:
        logits = np.round(logits).astype(np.float32)
    decisions = learned(problem, before, logits, replace(SMALL, moves=0.0))
    assert rows_of(decisions) == plain_greedy(before.pairs, logits)
    np.testing.assert_array_equal(decisions.priorities, logits[decisions.places])
    assert decisions.logits is logits


def test_only_the_best_pairs_of_an_entity_are_rivals():
    problem = random_problem(1)
    before = play_fixed(problem, SMALL, ALONE)
    logits = random_logits(before)
    near = is_near(before.pairs, logits, 1)
    decisions = learned(problem, before, logits, replace(SMALL, moves=0.0, rivals=1))
    assert rows_of(decisions) == plain_greedy(before.pairs.some(near), logits[near])
    assert decisions.pairs is before.pairs


def test_confidences_are_those_of_their_pairs():
    problem = random_problem(2)
    before = play_fixed(problem, SMALL, ALONE)
    logits, sure = random_logits(before), np.random.default_rng(2).random(len(before.pairs)).astype(np.float32)

    def rate(pairs, given_logits):
        assert given_logits is logits
        assert pairs is before.pairs
        return sure

    def score(features, pairs):
        assert len(features.columns) == len(pairs)
        return logits

    first, decisions = play_learned(problem, SMALL, before, score, rate, 1)
    assert first is before
    table = dict(zip(rows_of(before.pairs), sure.tolist(), strict=True))
    assert [table[link] for link in rows_of(decisions)] == decisions.confidences.tolist()


def plain_anchored(problem, before, logits, moves, floor):
    """Priorities are logits, moved by how the root of evidence differs from what it was before the first decision.

    Seeds and the links of the pass before count in full; what the latter gave is withdrawn when one of their entities
    is decided anew. All pairs are searched for each decision.
    """
    source, target = problem.graphs.source, problem.graphs.target
    like = plain_correspondence(memory_of(problem, before))
    start = dict(zip(rows_of(before.pairs), logits, strict=True))
    evidence, supposed = dict.fromkeys(start, 0.0), dict.fromkeys(start, 0.0)
    free = set(problem.source_ids.tolist()), set(problem.target_ids.tolist())

    def spread(s, t, share, is_supposed):
        for o, n in edges(source, s):
            for p, m in edges(target, t):
                step = like[o, p] * min(source.functionality[o], target.functionality[p])
                if step < floor or n not in free[0] or m not in free[1] or (n, m) not in evidence:
                    continue
                gain = share * step if share > 0 else -min(step, supposed[n, m])
                if is_supposed:
                    supposed[n, m] += gain
                evidence[n, m] += gain

    for s, t in rows_of(problem.seeds):
        spread(s, t, 1.0, False)
    earlier = links_of(before)
    for s, t in rows_of(before):
        spread(s, t, 1.0, True)
    anchor = dict(evidence)
    result = []
    while True:
        priorities = {
            pair: start[pair] + moves * (np.sqrt(max(evidence[pair], 0)) - np.sqrt(anchor[pair]))
            for pair in start
            if pair[0] in free[0] and pair[1] in free[1]
        }
        if not priorities:
            return result, anchor
        s, t = max(priorities, key=priorities.get)
        result.append((s, t))
        free[0].discard(s)
        free[1].discard(t)
        spread(s, t, 1.0, False)
        for a, b in sorted(earlier):
            if a == s or b == t:
                earlier.discard((a, b))
                spread(a, b, -1.0, True)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("moves", [2.0, 24.0])
def test_a_learned_pass_equals_the_plain_one(seed, moves):
    problem = random_problem(seed, num_seeds=5)
    chosen = replace(SMALL, moves=moves)
    before = play_fixed(problem, chosen, ALONE)
    logits = random_logits(before, seed)
    expected, anchor = plain_anchored(problem, before, logits.tolist(), moves, chosen.floor)
    assert max(anchor.values()) > 0
    assert rows_of(learned(problem, before, logits, chosen)) == expected
    if moves > 20:
        assert expected != plain_greedy(before.pairs, logits)  # evidence did move them


def test_a_decision_against_the_pass_before_takes_its_evidence_away():
    """(b, B) was matched, which was evidence for (c, C); now b is matched with X, and (c, C) loses it."""
    source = make_graph([(a, "r", b) for a, b in pairwise("abcd")])
    target = make_graph([(a, "R", b) for a, b in pairwise("ABCD")], entities=["X"])
    ids = np.array([1, 2], np.int32), np.array([1, 2, 4], np.int32)
    problem = Problem(Graphs.of(source, target), Links.of([0, 3], [0, 3]), *ids)
    one, link = np.ones(1, np.float32), np.array([1], np.int32)
    before = Decisions(link, link, one, one, make_pairs([(1, 1), (1, 4), (2, 2)]), one)
    like = Memory.of(problem.graphs, problem.seeds, [1], [1], [1.0]).correspondence[0, 0]
    decisions = learned(problem, before, np.array([0.0, 3.0, 2.0], np.float32), replace(SMALL, moves=1.0))
    assert rows_of(decisions) == [(1, 4), (2, 2)]
    # The seed (d, D) is evidence for (c, C) all along, by the inverse of r.
    lost = np.sqrt(2 * like) - np.sqrt(like)
    np.testing.assert_allclose(decisions.priorities, [3.0, 2.0 - lost], rtol=1e-5)


# ---- pairs that matches bring in ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["nothing", "cosine", "inner", "manhattan"])
def test_a_pair_that_is_brought_in_has_the_priority_that_it_would_have_had(kind):
    """What compiled code works out for a pair equals the priority of pairs that are there from the start."""
    problem = random_problem(6)
    prior = random_prior(problem, kind)
    weight = 0.67 if prior.csls else 1.0
    vectors = propagate(memory_of(problem, None), SMALL.vectors)
    source, target = np.meshgrid(problem.source_ids, problem.target_ids, indexing="ij")
    pairs = Pairs.of(source.ravel(), target.ravel())
    similarity = inner_products(*vectors, pairs.source_ids, pairs.target_ids)
    expected = weight * discount_hubs(pairs, similarity) + sum((1 - weight) * csls(pairs) for csls in prior.csls)
    assert expected.std() > 0.05
    means = []
    for ids, part in zip((pairs.source_ids, pairs.target_ids), vectors, strict=True):
        best = mean_of_best(ids, similarity)
        means.append(np.concatenate([best, np.zeros(len(part) - len(best), np.float32)]))
    extra = Extra(np.float32(weight), *vectors, *means)
    compiled = (prior.csls[0], 1 - weight) if prior.csls else None
    game = passes._game(problem, pairs, expected.astype(np.float32), extra, compiled)
    found = [base_of(game, s, t, np.float32(0.5)) for s, t in rows_of(pairs)]
    np.testing.assert_allclose(found, 0.5 + expected, atol=1e-4)
