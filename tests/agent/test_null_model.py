"""Games in which every link is wrong: halves of a graph, matches taken out, and graphs of some entities."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planted import make_graph, make_pairs
from rlea.agent.null_model import MOST_DRAWS, PARTS, halve, num_draws, split, take_out
from rlea.agent.passes import Decisions, Problem
from rlea.graph import Links
from small_graphs import facts, relations

from .test_memory import random_graphs

names = st.sampled_from([f"e{number}" for number in range(8)])
triples = st.lists(st.tuples(names, st.sampled_from("rs"), names), max_size=20)
literals = st.lists(
    st.tuples(names, st.sampled_from("pq"), st.sampled_from(["x", "y", "7"]), st.just(""), st.sampled_from(["", "en"])),
    max_size=12,
)


def plain(count):
    return make_graph(entities=[f"e{number:05}" for number in range(count)])


def decisions_of(rows):
    """Links in the order of the rows."""
    ends = [np.array([row[side] for row in rows], np.int32) for side in (0, 1)]
    ones = np.ones(len(rows), np.float32)
    return Decisions(*ends, ones, ones, make_pairs(rows), ones)


def problem_of(num_source, num_target, seeds=()):
    graphs = random_graphs(np.random.default_rng(0), num_source, num_target)
    known = Links.of([one for one, _ in seeds], [other for _, other in seeds])
    ids = [
        np.array([k for k in range(count) if k not in own], np.int32)
        for count, own in ((num_source, known.source_ids), (num_target, known.target_ids))
    ]
    return Problem(graphs, known, *(np.random.default_rng(1).permutation(part) for part in ids))


# ---- graphs of some entities ----------------------------------------------------------------------------------------


@given(triples, literals, st.sets(st.integers(0, 7)), st.randoms(use_true_random=False))
def test_some_entities_keep_what_is_theirs(edges, texts, chosen, random):
    """Against a look at every triple and every literal by its identifiers; whatever the order of ids, twice or once."""
    graph = make_graph(edges, texts, entities=[f"e{number}" for number in range(8)])
    ids = [*chosen, *list(chosen)[:2]]
    random.shuffle(ids)
    part = graph.some(np.array(ids, np.int32))
    kept = {f"e{number}" for number in chosen}
    assert part.entities == tuple(sorted(kept))
    assert relations(part) == {row for row in relations(graph) if row[0] in kept and row[2] in kept}
    assert facts(part) == {row for row in facts(graph) if row[0] in kept}
    assert len(part.literals) == sum(graph.entities[k] in kept for k in graph.literals.entity_ids)
    assert part.names == tuple(graph.names[graph.entity_index[name]] for name in part.entities)
    assert (part.relations, part.attributes) == (graph.relations, graph.attributes)
    assert part.triples.tolist() == sorted(part.triples.tolist())
    assert part.triples.shape == (len(part.triples), 3)
    for array in (part.triples, part.literals.entity_ids):
        assert (array.dtype, array.flags.writeable) == (np.int32, False)


def test_all_entities_are_the_graph():
    graph = make_graph([("a", "r", "b"), ("b", "s", "c")], [("a", "p", "one"), ("c", "q", "two")], entities=["d"])
    whole = graph.some(np.arange(4, dtype=np.int32))
    assert whole.entities == graph.entities
    assert (relations(whole), facts(whole), whole.names) == (relations(graph), facts(graph), graph.names)
    assert whole.entity_index == graph.entity_index
    assert graph.some(np.zeros(0, np.int32)).num_entities == 0


def test_what_a_graph_had_worked_out_is_not_that_of_its_part():
    graph = make_graph([("a", "r", "b"), ("b", "s", "c")])
    assert graph.entity_index == {"a": 0, "b": 1, "c": 2}  # kept with the graph
    before = graph.fingerprint
    part = graph.some(np.array([1, 2], np.int32))
    assert part.entity_index == {"b": 0, "c": 1}
    assert part.fingerprint != before


# ---- halves ---------------------------------------------------------------------------------------------------------


@given(st.integers(0, 60), st.integers(0, 6))
def test_halves_are_disjoint_and_cover(count, draw):
    graph = plain(count)
    one, other = split(graph, draw)
    assert sorted([*one, *other]) == list(range(count))
    assert abs(len(one) - len(other)) <= 1
    assert one.tolist() == sorted(one.tolist())
    assert other.tolist() == sorted(other.tolist())
    assert one.dtype == other.dtype == np.int32
    again = split(graph, draw)
    assert [part.tolist() for part in again] == [one.tolist(), other.tolist()]


@given(st.integers(2, 60), st.integers(1, 9))
def test_parts_may_be_as_unequal_as_two_graphs(count, tenths):
    graph = plain(count)
    one, other = split(graph, 0, tenths / 10)
    assert sorted([*one, *other]) == list(range(count))
    assert min(len(one), len(other)) >= 1
    assert abs(len(one) - tenths / 10 * count) < 1
    back = split(graph, 0, 1 - tenths / 10)
    assert tenths == 5 or (len(back[0]), len(back[1])) == (len(other), len(one))


def test_every_draw_halves_anew():
    graph = plain(100)
    firsts = {split(graph, draw)[0].tobytes() for draw in range(MOST_DRAWS)}
    assert len(firsts) == MOST_DRAWS


def test_halves_as_a_pair_share_no_entity():
    graph = make_graph(
        [(f"e{k}", "r", f"e{(k + 1) % 9}") for k in range(9)], [(f"e{k}", "p", "same") for k in range(9)]
    )
    ids = split(graph, 0)
    pair = halve(graph, ids)
    assert set(pair.source.entities).isdisjoint(pair.target.entities)
    assert {*pair.source.entities, *pair.target.entities} == set(graph.entities)
    for part, own in zip((pair.source, pair.target), ids, strict=True):
        assert part.entities == tuple(graph.entities[k] for k in own)
        assert relations(part) < relations(graph)
    assert len(pair.train) == len(pair.test) == 0


@pytest.mark.parametrize(
    ("links", "draws"),
    [(0, MOST_DRAWS), (1, MOST_DRAWS), (1000 // MOST_DRAWS, MOST_DRAWS), (200, 5), (500, 2), (501, 2), (999, 2),
     (1000, 1), (10**7, 1)],
)  # fmt: skip
def test_small_graphs_are_drawn_from_more_often(links, draws):
    assert num_draws(links, 1000) == draws


@given(st.integers(0, 10**6))
def test_enough_links_are_drawn_or_as_often_as_may_be(links):
    draws = num_draws(links, 1000)
    assert 1 <= draws <= MOST_DRAWS
    assert draws * links >= 1000 or draws == MOST_DRAWS
    assert draws == 1 or (draws - 1) * links < 1000


# ---- matches taken out ----------------------------------------------------------------------------------------------


@given(st.integers(0, 30), st.integers(0, 12))
def test_the_match_of_a_freed_entity_is_gone_and_it_is_not(count, draw):
    """Of a tenth of the links the target, of another the source; seeds and all others stay."""
    problem = problem_of(35, 40, seeds=[(30, 31), (2, 39)])
    sources, targets = np.sort(problem.source_ids), np.sort(problem.target_ids)
    rows = list(zip(sources[:count].tolist(), targets[::-1][:count].tolist(), strict=False))
    less = take_out(problem, decisions_of(rows), draw)
    targets_of, sources_of = dict(rows), {target: source for source, target in rows}
    no_target, no_source = set(less.source_ids.tolist()), set(less.target_ids.tolist())
    assert len(rows) // PARTS <= min(len(less.source_ids), len(less.target_ids))
    assert max(len(less.source_ids), len(less.target_ids)) <= -(-len(rows) // PARTS)
    assert (len(no_target), len(no_source)) == (len(less.source_ids), len(less.target_ids))
    assert no_target.isdisjoint(sources_of[target] for target in no_source)  # not both ends of a link
    left = set(less.problem.source_ids.tolist()), set(less.problem.target_ids.tolist())
    assert left[0] == set(sources.tolist()) - {sources_of[target] for target in no_source}
    assert left[1] == set(targets.tolist()) - {targets_of[source] for source in no_target}
    assert no_target <= left[0]
    assert no_source <= left[1]
    assert len(less.problem.source_ids) == len(left[0])
    assert less.problem.seeds is problem.seeds
    assert less.problem.graphs is problem.graphs


def test_in_ten_draws_every_link_loses_its_target_once_and_its_source_once():
    problem = problem_of(43, 43)
    decisions = decisions_of([(k, 42 - k) for k in range(43)])
    taken = [take_out(problem, decisions, draw) for draw in range(PARTS)]
    for side in ("source_ids", "target_ids"):
        ids = np.concatenate([getattr(one, side) for one in taken])
        assert np.sort(ids).tolist() == list(range(43))


@given(st.integers(0, 5), st.integers(0, 100))
def test_links_of_freed_entities_lead_back_to_the_match_they_had(draw, seed):
    """Links found afterwards, at random; by hand for every one of them."""
    problem = problem_of(25, 25)
    rng = np.random.default_rng(seed)
    before = decisions_of(list(zip(rng.permutation(25)[:20].tolist(), rng.permutation(25)[:20].tolist(), strict=True)))
    less = take_out(problem, before, draw)
    ends = [rng.permutation(part)[:15].tolist() for part in (less.problem.source_ids, less.problem.target_ids)]
    after = decisions_of(list(zip(*ends, strict=True)))
    freed, places = less.is_freed(after), less.matches_of(after, before)
    known = list(zip(before.source_ids.tolist(), before.target_ids.tolist(), strict=True))
    for (source, target), is_freed, place in zip(zip(*ends, strict=True), freed, places, strict=True):
        of_source, of_target = source in less.source_ids, target in less.target_ids
        assert is_freed == (of_source or of_target)
        assert 0 <= place < 20
        if of_source:
            assert known[place][0] == source
            assert known[place][1] not in less.problem.target_ids
        elif of_target:
            assert known[place][1] == target
            assert known[place][0] not in less.problem.source_ids
        if is_freed:
            assert known[place] != (source, target)  # the right one is not to be had


def test_without_links_there_is_nothing_to_take_out():
    problem, nothing = problem_of(5, 5), decisions_of([])
    less = take_out(problem, nothing, 0)
    assert len(less.source_ids) == len(less.target_ids) == 0
    assert sorted(less.problem.source_ids) == sorted(less.problem.target_ids) == list(range(5))
    assert len(less.is_freed(nothing)) == len(less.matches_of(nothing, nothing)) == 0
