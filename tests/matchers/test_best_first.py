"""Best-first matching: evidence by hand, planted truths that similarity cannot see, and blindness to ids."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planted import bytes_of, links_of, make_graph, make_pair, rows_of
from rlea.graph.neighbourhood import Neighbourhood
from rlea.matchers.best_first import BestFirstSettings, match
from rlea.matching import Task
from rlea.search.candidates import find_candidates
from rlea.search.embeddings import Embeddings


def graph(rows, entities=()):
    return make_graph(rows, entities=entities)


def task_of(source, target, vectors, seeds=(), k=50, seed=0, measure="cosine"):
    """A task over all entities without a seed; `seeds` are pairs of identifiers."""
    links = make_pair(source, target, seeds).train
    source_ids = np.setdiff1d(np.arange(source.num_entities), links.source_ids)
    target_ids = np.setdiff1d(np.arange(target.num_entities), links.target_ids)
    embeddings = Embeddings(*vectors, measure=measure)
    return Task(source, target, links, find_candidates(embeddings, source_ids, target_ids, k), seed)


def pairs_of(matching, source, target):
    return {(source.entities[s], target.entities[t]) for s, t in rows_of(matching)}


def chain(length, prefix, relation):
    """A path of entities: nothing but the order along it tells them apart."""
    return [(f"{prefix}{i:03}", relation, f"{prefix}{i + 1:03}") for i in range(length)]


def edges_of(around, entity):
    part = slice(around.starts[entity], around.starts[entity + 1])
    return list(zip(around.relation_ids[part].tolist(), around.neighbour_ids[part].tolist(), strict=True))


def test_neighbourhood_and_functionality_by_hand():
    small = graph([("a", "r", "x"), ("a", "r", "y"), ("b", "r", "x"), ("a", "q", "a")])
    around = Neighbourhood.of(small)
    entity = small.entity_index
    r, q = small.relations.index("r"), small.relations.index("q")
    assert edges_of(around, entity["a"]) == [(r, entity["x"]), (r, entity["y"])]  # the loop is left out
    assert edges_of(around, entity["x"]) == [(r + 2, entity["a"]), (r + 2, entity["b"])]
    assert around.functionality[r] == pytest.approx(2 / 3)  # a and b lead to three
    assert around.functionality[r + 2] == pytest.approx(2 / 3)  # x and y lead to three
    assert around.functionality[q] == 0
    only = Neighbourhood.of(small, max_relations=1)
    assert len(only.functionality) == 2
    assert len(only.relation_ids) == 6


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("passes", [1, 2, 3])
def test_a_chain_unrolls_from_one_end(passes, turned):
    """All vectors are alike; from a few seeds at one end of a chain every further pair follows from the one before.

    `turned`: the relation of the target leads the other way, and the correspondence is learned from the seeds.
    """
    length = 40
    rows = chain(length, "t", "suivant")
    source, target = graph(chain(length, "s", "next")), graph([(t, r, h) for h, r, t in rows] if turned else rows)
    ones = np.ones((length + 1, 2), np.float32)
    truth = [(f"s{i:03}", f"t{i:03}") for i in range(length + 1)]
    # One candidate each: what is matched beyond must have been created by matches.
    task = task_of(source, target, (ones, ones), truth[:4], k=1)
    assert pairs_of(match(task, BestFirstSettings(passes=passes)), source, target) == set(truth[4:])
    without = match(task, BestFirstSettings(passes=1, creation=10.0))
    assert len(pairs_of(without, source, target) & set(truth[4:])) < length / 2


def test_key_by_hand():
    """One seed, one edge: evidence against similarity, with the numbers worked out.

    Matched at the start: (a, A) and (b, B), joined by r / R, so count(r, R) = totals = 1 and with smoothing s the
    correspondence is 1 / (1 + 1 + s - 1 + ...) as in the formula. The seed (a, A) also leads by r to x and by R to X.
    """
    source = graph([("a", "r", "b"), ("a", "r", "x"), ("c", "p", "y")])
    target = graph([("A", "R", "B"), ("A", "R", "X"), ("C", "P", "Y")])
    angle = {"x": 0.0, "y": 1.2, "c": 2.4, "X": 0.35, "Y": 0.0, "C": 2.4, "a": 4, "b": 4, "A": 4, "B": 4}

    def vectors(g):
        return np.array([[np.cos(angle[e]), np.sin(angle[e])] for e in g.entities], np.float32)

    seeds = [("a", "A"), ("b", "B")]
    task = task_of(source, target, (vectors(source), vectors(target)), seeds)
    # By similarity x goes to Y (cosine 1 against .94); the seed speaks for (x, X).
    similar = match(task, BestFirstSettings(evidence_weight=0.0, passes=1))
    assert ("x", "Y") in pairs_of(similar, source, target)
    assert ("x", "X") in pairs_of(match(task, BestFirstSettings(passes=1)), source, target)
    # CSLS(x, Y) - CSLS(x, X) = 2 (1 - cos .35) - (mean of Y - mean of X), means over the three open partners.
    cosine = vectors(source) @ vectors(target).T
    rows, columns = task.candidates.source_ids, task.candidates.target_ids
    means = cosine[np.ix_(rows, columns)].mean(0)
    place = {target.entities[t]: i for i, t in enumerate(columns)}
    gap = 2 * (1 - np.cos(0.35)) - (means[place["Y"]] - means[place["X"]])
    # r and R lead from a to b and x: functionality 1/2 (one entity, two edges); they share their one matched edge.
    settings = BestFirstSettings(passes=1, creation=0.0, floor=0.0)
    evidence = 0.5 * 1 / (1 + settings.smoothing)
    turning = gap / np.sqrt(evidence)
    for weight, expected in ((turning * 0.98, ("x", "Y")), (turning * 1.02, ("x", "X"))):
        chosen = BestFirstSettings(evidence_weight=float(weight), passes=1, creation=0.0, floor=0.0)
        assert expected in pairs_of(match(task, chosen), source, target)


def planted(rng, size, noise, dim=8):
    """Two isomorphic random graphs under different identifiers, noisy vectors, and the truth."""
    names = [f"s{i:04}" for i in range(size)]
    others = [f"t{i:04}" for i in rng.permutation(size)]
    ends = (rng.integers(0, largest, 3 * size).tolist() for largest in (size, 5, size))
    edges = set(zip(*ends, strict=True))
    source = graph([(names[a], f"r{r}", names[b]) for a, r, b in edges], names)
    target = graph([(others[a], f"q{r}", others[b]) for a, r, b in edges], others)
    base = rng.standard_normal((size, dim))
    first, second = np.empty((2, size, dim), np.float32)
    for i in range(size):
        first[source.entity_index[names[i]]] = base[i]
        second[target.entity_index[others[i]]] = base[i] + noise * rng.standard_normal(dim)
    return source, target, (first, second), list(zip(names, others, strict=True))


def test_neighbours_find_what_similarity_misses():
    rng = np.random.default_rng(0)
    source, target, vectors, truth = planted(rng, 300, noise=1.5)
    task = task_of(source, target, vectors, truth[:30], k=20)
    near = task.candidates.target_ids[task.candidates.forward_columns[:, 0]]
    gold = {source.entity_index[s]: target.entity_index[t] for s, t in truth[30:]}
    nearest = np.mean([gold[s] == t for s, t in zip(task.candidates.source_ids.tolist(), near.tolist(), strict=True)])
    found = match(task)
    right = np.mean([gold[s] == t for s, t in rows_of(found)])
    assert nearest < 0.5
    assert right > 0.97
    # The surer half is better than the other, or the confidence is worth nothing.
    assert found.confidences.min() >= 0
    assert found.confidences.max() <= 1


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1000), st.integers(1, 3))
def test_relabelled_graphs_give_the_same_links(seed, passes):
    """Renaming entities so that ids are permuted changes nothing but the names."""
    rng = np.random.default_rng(seed)
    source, target, vectors, truth = planted(rng, 40, noise=0.8)
    chosen = BestFirstSettings(passes=passes)
    found = pairs_of(match(task_of(source, target, vectors, truth[:6], k=8), chosen), source, target)
    rename = {t: f"z{i:04}" for t, i in zip(target.entities, rng.permutation(40), strict=True)}
    decoded = target.triples.tolist()
    renamed = graph(
        [(rename[target.entities[h]], target.relations[r], rename[target.entities[t]]) for h, r, t in decoded],
        list(rename.values()),
    )
    moved = np.empty_like(vectors[1])
    for old, new in rename.items():
        moved[renamed.entity_index[new]] = vectors[1][target.entity_index[old]]
    seeds = [(s, rename[t]) for s, t in truth[:6]]
    again = pairs_of(match(task_of(source, renamed, (vectors[0], moved), seeds, k=8), chosen), source, renamed)
    assert again == {(s, rename[t]) for s, t in found}


def test_ties_do_not_follow_ids():
    """No structure, all vectors alike, gold on the diagonal: chance is one in two hundred."""
    names = [f"e{i:03}" for i in range(200)]
    both = graph([], names)
    ones = np.ones((200, 2), np.float32)
    found = match(task_of(both, both, (ones, ones), k=200))
    assert len(found) == 200
    assert (found.source_ids == found.target_ids).sum() < 8


@pytest.mark.parametrize("measure", ["cosine", "inner", "manhattan"])
def test_one_to_one_and_reproducible_for_every_measure(measure):
    rng = np.random.default_rng(4)
    source, target, vectors, truth = planted(rng, 120, noise=0.3)
    one, two = (match(task_of(source, target, vectors, truth[:20], k=10, measure=measure, seed=3)) for _ in range(2))
    assert one.is_one_to_one
    assert len(one) == 100
    assert bytes_of(one) == bytes_of(two)
    gold = {source.entity_index[s]: target.entity_index[t] for s, t in truth}
    assert np.mean([gold[s] == t for s, t in rows_of(one)]) > 0.9


def test_a_link_without_rivals_is_not_sure():
    source, target = graph([], ["a"]), graph([], ["x"])
    strangers = np.array([[1.0, 0.0]], np.float32), np.array([[0.05, 1.0]], np.float32)
    assert match(task_of(source, target, strangers)).confidences[0] < 0.2
    neighbours = (
        graph([("a", "r", "b"), ("b", "r", "c"), ("c", "r", "d")]),
        graph([("x", "q", "y"), ("y", "q", "z"), ("z", "q", "w")]),
    )
    ones = np.ones((4, 2), np.float32)
    found = match(task_of(*neighbours, (ones, ones), [("a", "x"), ("b", "y"), ("c", "z")]))
    assert found.confidences[0] > 0.9  # what neighbours say counts


def test_unequal_pools_no_seeds_no_edges():
    source = graph([], ["a", "b", "c"])
    target = graph([], ["x"])
    vectors = np.eye(3, dtype=np.float32), np.array([[0, 1, 0]], np.float32)
    found = match(task_of(source, target, vectors))
    assert pairs_of(found, source, target) == {("b", "x")}
    empty = match(task_of(graph([]), target, (np.zeros((0, 3), np.float32), vectors[1])))
    assert len(empty) == 0


def played_by_hand(task, settings):
    """The game of the module's description in plain Python: every pair in one list, searched anew for each decision."""
    from rlea.search.candidates import tie_hash

    source, target = Neighbourhood.of(task.source), Neighbourhood.of(task.target)
    found = task.candidates
    row_means, column_means = found.csls_means()
    row = {s: i for i, s in enumerate(found.source_ids.tolist())}
    column = {t: j for j, t in enumerate(found.target_ids.tolist())}

    def base(s, t):
        i, j = row[s], column[t]
        return 2 * found.score_pairs(np.array([i]), np.array([j]))[0] - row_means[i] - column_means[j]

    def correspondence(matches, o, p):
        both = source_total = target_total = 0
        back = {t: s for s, t in matches.items()}
        for s, t in matches.items():
            theirs = edges_of(target, t)
            target_total += sum(q == p and m in back for q, m in theirs)
            for q, n in edges_of(source, s):
                if q == o and n in matches:
                    source_total += 1
                    both += (p, matches[n]) in theirs
        return both / (np.sqrt(source_total * target_total) + settings.smoothing) if both else 0.0

    def step(matches, o, p, table):
        like = correspondence(matches, o, p) if table is None else table.get((o, p), 0.0)
        weight = like * min(source.functionality[o], target.functionality[p])
        return weight if weight >= settings.floor else 0.0

    def one_pass(earlier, table):
        open_source, open_target = set(row), set(column)
        evidence = {
            (int(found.source_ids[i]), int(found.target_ids[j])): 0.0
            for i, j in zip(found.pairs.rows, found.pairs.columns, strict=True)
        }
        matches = dict(rows_of(task.seeds))
        supposed = dict(earlier)
        given = {}  # what earlier matches gave, by pair and match

        def spread(s, t, share):
            for o, n in edges_of(source, s):
                for p, m in edges_of(target, t):
                    if n in open_source and m in open_target:
                        weight = step(matches, o, p, table)
                        if (n, m) not in evidence and not (weight > 0 and share * weight >= settings.creation):
                            continue
                        if share == settings.kept_weight:
                            given[n, m] = given.get((n, m), 0.0) + share * weight
                        if share < 0:
                            taken = min(-share * weight, given.get((n, m), 0.0))
                            given[n, m] = given.get((n, m), 0.0) - taken
                            evidence[n, m] -= taken
                        else:
                            evidence[n, m] = evidence.get((n, m), 0.0) + share * weight

        for s, t in list(matches.items()):
            spread(s, t, 1.0)
        for s, t in earlier:
            spread(s, t, settings.kept_weight)
        order = []
        while True:
            live = [(s, t) for s, t in evidence if s in open_source and t in open_target]
            if not live:
                return order, matches
            key = {pair: base(*pair) + settings.evidence_weight * np.sqrt(max(evidence[pair], 0.0)) for pair in live}
            best = max(key.values())
            ties = [pair for pair in live if key[pair] > best - 1e-6]
            s, t = min(ties, key=lambda pair: tie_hash(np.array([pair[0]]), np.array([pair[1]]), task.seed)[0])
            open_source.discard(s)
            open_target.discard(t)
            matches[s] = t
            order.append((s, t))
            spread(s, t, 1.0)
            for a, b in list(supposed.items()):
                if a == s or b == t:
                    del supposed[a]
                    spread(a, b, -settings.kept_weight)

    order, matches = one_pass([], None)
    for _ in range(1, settings.passes):
        relations = [(o, p) for o in range(len(source.functionality)) for p in range(len(target.functionality))]
        table = {(o, p): correspondence(matches, o, p) for o, p in relations}
        order, matches = one_pass(order, table)
    return set(order)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("passes", [1, 2])
def test_compiled_game_equals_the_plain_one(seed, passes):
    rng = np.random.default_rng(seed)
    source, target, vectors, truth = planted(rng, 25, noise=1.2, dim=6)
    task = task_of(source, target, vectors, truth[:5], k=4, seed=seed)
    chosen = BestFirstSettings(passes=passes)
    assert links_of(match(task, chosen)) == played_by_hand(task, chosen)
