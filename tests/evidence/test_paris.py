"""PARIS: equations worked by hand on tiny graphs, planted alignments, and what must not change anything."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planted import gold_of, unlinked
from planted import make_graph as graph
from planted import make_pair as pair_of
from rlea.evaluation.metrics import link_metrics
from rlea.evidence.paris import Alignment, ParisSettings, run_paris
from rlea.evidence.paris.facts import RDF_TYPE, gather_facts
from rlea.evidence.paris.literals import literal_keys
from rlea.graph import GraphPair, Links, Literals
from rlea.io.synthetic import SyntheticSettings, generate
from rlea.matchers.paris import match
from rlea.matching import Task
from rlea.search.candidates import Candidates
from rlea.search.embeddings import Embeddings

XSD = "http://www.w3.org/2001/XMLSchema#"
ONCE = ParisSettings(max_iterations=1, floor=0.001, theta=0.1)


def probabilities(pair, found):
    names = pair.source.entities, pair.target.entities
    rows = zip(found.source_ids.tolist(), found.target_ids.tolist(), found.probabilities.tolist(), strict=True)
    return {(names[0][i], names[1][j]): probability for i, j, probability in rows}


def one_to_one(pair, pool=None, settings=None):
    """The links of the matcher, which needs the pools of a task and not its candidates."""
    vectors = Embeddings(np.ones((pair.source.num_entities, 2)), np.ones((pair.target.num_entities, 2)))
    rows, columns = pool or (np.arange(pair.source.num_entities), np.arange(pair.target.num_entities))
    none = [array for ids in (rows, columns) for array in (np.zeros((len(ids), 0), np.int32), np.zeros((len(ids), 0)))]
    return match(Task(pair.source, pair.target, pair.train, Candidates(rows, columns, *none, vectors)), settings)


# ---- literals -------------------------------------------------------------------------------------------------------


def key(value, datatype=""):
    return literal_keys(pl.DataFrame({"value": [value], "datatype": [datatype]}))["key"][0]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("1",), ("1.0",)),
        (("1",), ("01", XSD + "integer")),
        (("1.5E8", "http://dbpedia.org/datatype/usDollar"), ("150000000", XSD + "integer")),
        (("1,500",), ("1500.0", XSD + "double")),
        (("-4",), ("-4.00",)),
        (("0.30000000000000004",), ("0.3",)),
        (("120 km",), ("120",)),
        (("85 %",), ("85",)),
        (("1960", XSD + "gYear"), ("1960",)),
        (("1960-03-05",), ("1960-03-05", XSD + "date")),
        (("1960-03-05T00:00:00Z", XSD + "dateTime"), ("1960-03-05",)),
        (("15.09.1971",), ("1971-09-15",)),
        (("5. 9. 1971",), ("1971-09-05",)),
        (("1971/9/15",), ("1971-09-15", XSD + "date")),
        (("9/15/1971",), ("15/9/1971",)),
        (("15 Sep 1971",), ("September 15, 1971",)),
        (("1st May 2001",), ("2001-05-01",)),
        (("1960-00-00",), ("1960",)),
        (("1960-03-00",), ("1960-03", XSD + "gYearMonth")),
        (("  Guns'n  Roses ",), ("GUNS N ROSES",)),
        (("Besançon",), ("Besanc\u0327on",)),
        (("Ｔｏｋｙｏ",), ("tokyo",)),
    ],
)
def test_spellings_of_the_same_literal(one, other):
    assert key(*one) == key(*other) is not None


@pytest.mark.parametrize(
    "value",
    [
        "5/9/1971",
        "15.13.1971",
        "3.5.2",
        "32.01.1971",
        "Mar 2020",
        "May 15",
        "1.2.3.4",
        "Mary 12, 2001",
        "12 Marathon 2001",
        "१९७१-०९-१५",
    ],
)
def test_what_may_be_another_day_or_none_is_no_date(value):
    assert key(value).startswith("s:")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("0013159",), ("13159",)),  # a code
        (("1960-03-05",), ("1960",)),  # compared as years, by an attribute of its own
        (("1960-03-05T10:00:00",), ("1960-03-05",)),
        (("1960-13-05",), ("1960",)),
        (("9007199254740993",), ("9007199254740992",)),
        (("12 monkeys",), ("12",)),
        (("कि",), ("का",)),
        (("!!!",), ("???",)),
        (("1",), ("one",)),
    ],
)
def test_different_literals(one, other):
    assert key(*one) != key(*other)


@given(st.integers(-(10**14), 10**14), st.sampled_from(["{}", "{}.0", "{}.00", "{:e}"]))
@settings(max_examples=30, deadline=None)
def test_a_whole_number_has_one_key(number, form):
    spelt = form.format(number) if form != "{:e}" else f"{number:.15e}"
    assert key(spelt) == f"n:{number}"


@given(st.lists(st.text(), max_size=20))
@settings(max_examples=15, deadline=None)
def test_any_text_has_a_key_of_its_kind(texts):
    frame = pl.DataFrame({"value": texts, "datatype": [""] * len(texts)}, schema_overrides={"value": pl.String})
    frame = frame.cast(pl.String)
    for found, bare in zip(literal_keys(frame)["key"], frame["value"].str.strip_chars(), strict=True):
        assert (found is None) == (bare == "")
        assert found is None or found[:2] in ("n:", "d:", "s:")


def test_a_date_and_a_year_meet_as_years():
    source = graph(literals=[("a", "born", "1960-03-05"), ("b", "born", "1960-07-01"), ("c", "born", "1961-01-02")])
    target = graph(literals=[("A", "year", "1960", XSD + "gYear"), ("C", "year", "1961", XSD + "gYear")])
    first, second = gather_facts(source, target)
    assert first.values.attributes == ("born", "born (year)")
    assert first.values.inverse_functionality.tolist() == [1.0, pytest.approx(2 / 3)]
    assert second.values.attributes == ("year",)
    found = run_paris(pair_of(source, target), ONCE)
    expected = 1 - (1 - 0.1 * 2 / 3) * (1 - 0.1 * 1)
    assert probabilities(pair_of(source, target), found) == pytest.approx(
        {("a", "A"): expected, ("b", "A"): expected, ("c", "C"): expected}
    )


# ---- the equations, by hand -----------------------------------------------------------------------------------------


def test_functionality_is_the_harmonic_mean():
    # bornIn: 3 facts, 3 heads, 2 tails; knows: 3 facts, 2 heads, 3 tails.
    edges = [("a", "bornIn", "c"), ("b", "bornIn", "c"), ("d", "bornIn", "e")]
    edges += [("a", "knows", "b"), ("a", "knows", "d"), ("b", "knows", "a")]
    # nick: 3 facts, 2 entities, 3 values, of which the other graph has one.
    values = [("a", "nick", "x"), ("a", "nick", "y"), ("b", "nick", "z")]
    facts, _ = gather_facts(graph(edges, values), graph(literals=[("A", "nick", "x")]))
    assert facts.relations == ("bornIn", "knows")
    assert facts.edges.functionality.tolist() == pytest.approx([1, 2 / 3, 2 / 3, 1])
    assert facts.values.inverse_functionality.tolist() == [1.0]
    assert len(facts.values.value_ids) == 1


def test_one_turn_of_equation_13():
    # Inverse functionality: name 1 and 1; colour 1/2 and 1.
    source = graph(
        literals=[("a", "name", "Ann"), ("b", "name", "Bob"), ("a", "colour", "red"), ("b", "colour", "red")]
    )
    target = graph(literals=[("A", "label", "ann"), ("B", "label", "Bert"), ("A", "paint", "RED")])
    name, colour = (1 - 0.1) ** 2, (1 - 0.1 * 0.5) * (1 - 0.1)
    pair = pair_of(source, target)
    assert probabilities(pair, run_paris(pair, ONCE)) == pytest.approx(
        {("a", "A"): 1 - name * colour, ("b", "A"): 1 - colour}
    )


def test_two_turns():
    """In the second turn the name is known to be the label, and a matched child is evidence for its parent."""
    source = graph([("p", "child", "a")], [("a", "name", "Ann"), ("b", "name", "Bob")])
    target = graph([("A", "parent", "P"), ("B", "parent", "Q")], [("A", "label", "Ann"), ("B", "label", "Eve")])
    pair = pair_of(source, target)
    found = run_paris(pair, replace(ONCE, max_iterations=2))
    a = 1 - (1 - 0.1) ** 2
    # Of the names, that of a alone has a counterpart, and it is a label: certain both ways.
    # No fact of child has two counterparts, so it keeps theta; all inverse functionalities are 1.
    assert probabilities(pair, found) == pytest.approx({("a", "A"): 1.0, ("p", "P"): 1 - (1 - 0.1 * a) ** 2})
    # The pair of the parents is below theta: it is reported, but is no evidence.
    assert [turn.assigned for turn in found.iterations] == [1, 1]
    assert [turn.changed for turn in found.iterations] == [1.0, 0.0]


def test_inclusion_both_ways_and_inverse():
    letters = "abcd"
    source = graph([("a", "parent", "b"), ("b", "parent", "c"), ("d", "likes", "a")])
    # child holds both parents inverted and one fact more; friend holds the one of likes.
    target = graph([("B", "child", "A"), ("C", "child", "B"), ("A", "child", "D"), ("D", "friend", "A")])
    found = run_paris(pair_of(source, target, [(one, one.upper()) for one in letters]), ONCE)
    assert list(found.relations) == [
        Alignment("likes", "friend", False, 1.0, 1.0),
        Alignment("parent", "child", True, 1.0, pytest.approx(2 / 3)),
        Alignment("likes", "child", True, 1.0, pytest.approx(1 / 3)),
    ]


def test_inclusion_of_attributes_counts_shared_values_only():
    source = graph(literals=[("a", "p", "1"), ("b", "p", "2"), ("c", "p", "unheard of")])
    target = graph(literals=[("A", "q", "1"), ("B", "r", "2"), ("C", "q", "3"), ("A", "r", "7")])
    found = run_paris(pair_of(source, target, [("a", "A"), ("b", "B"), ("c", "C")]), ONCE)
    assert set(found.attributes) == {Alignment("p", "q", False, 0.5, 1.0), Alignment("p", "r", False, 0.5, 1.0)}


@pytest.mark.parametrize("as_literals", [True, False])
def test_classes(as_literals):
    """Two of three Dogs are Animals and all known Animals but one are Dogs, however a file states classes."""

    def typed(rows):
        statements = [(one, RDF_TYPE, kind) for one, kind in rows]
        return graph(literals=statements) if as_literals else graph(statements)

    source = typed([("a", "Dog"), ("b", "Dog"), ("c", "Dog"), ("d", "Cat")])
    target = typed([("A", "Animal"), ("B", "Animal"), ("D", "Animal"), ("C", "Plant"), ("E", "Animal")])
    seeds = [("a", "A"), ("b", "B"), ("c", "C"), ("d", "D")]
    found = run_paris(pair_of(source, target, seeds), ONCE)
    assert {(one.source, one.target): (one.source_in_target, one.target_in_source) for one in found.classes} == {
        ("Dog", "Animal"): (pytest.approx(2 / 3), pytest.approx(2 / 4)),
        ("Cat", "Animal"): (1.0, pytest.approx(1 / 4)),
        ("Dog", "Plant"): (pytest.approx(1 / 3), 1.0),
    }
    assert not found.relations
    assert not found.attributes
    assert len(found) == len(seeds)  # a common class is no evidence


def test_seeds_stay_and_stand_alone():
    source, target = (graph(literals=[(one, "name", "Ann"), (other, "name", "Bob")]) for one, other in ("ab", "AB"))
    pair = pair_of(source, target, [("a", "B")])
    assert probabilities(pair, run_paris(pair, ParisSettings())) == {("a", "B"): 1.0}


def test_a_value_that_all_have_is_no_evidence():
    source = graph(literals=[(f"s{i}", "kind", "thing") for i in range(5)])
    target = graph(literals=[(f"t{i}", "kind", "thing") for i in range(5)])
    pair = pair_of(source, target)
    assert len(run_paris(pair, replace(ONCE, max_pairs=25))) == 25
    assert len(run_paris(pair, replace(ONCE, max_pairs=24))) == 0


def test_only_the_most_frequent_predicates_count():
    source = graph(literals=[("a", "name", "Ann"), ("b", "name", "Bob"), ("c", "rare", "x")])
    target = graph(literals=[("A", "name", "Ann"), ("B", "name", "Bob"), ("C", "rare", "x")])
    pair = pair_of(source, target)
    assert set(probabilities(pair, run_paris(pair, replace(ONCE, max_predicates=1)))) == {("a", "A"), ("b", "B")}
    edges = [("a", "often", "b"), ("b", "often", "c"), ("c", "rare", "a")]
    facts, _ = gather_facts(graph(edges), graph(edges), max_predicates=1)
    assert facts.relations == ("often",)
    assert len(facts.edges.relation_ids) == 4
    source = graph([(one, RDF_TYPE, kind) for one, kind in zip("abcd", ("Dog", "Dog", "Cat", "Cow"), strict=True)])
    target = graph([(one, RDF_TYPE, kind) for one, kind in zip("ABCD", ("Hund", "Hund", "Katze", "Kuh"), strict=True)])
    pair = pair_of(source, target, list(zip("abcd", "ABCD", strict=True)))
    few = {(one.source, one.target) for one in run_paris(pair, replace(ONCE, max_predicates=2)).classes}
    assert few == {("Dog", "Hund"), ("Cat", "Katze")}  # of equals the first by name


@pytest.mark.parametrize(
    "wrong", [{"theta": 0.0}, {"floor": 1.0}, {"max_iterations": 0}, {"max_pairs": 0}, {"min_change": 1.5}]
)
def test_settings_are_checked(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        ParisSettings(**wrong)


# ---- planted alignments ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def planted():
    return generate(SyntheticSettings(num_entities=400, name_noise=0.0, seeds=0.0, valid=0.0))


def test_a_planted_alignment_is_recovered_without_seeds(planted):
    assert not len(planted.train)
    matching = one_to_one(planted)
    assert matching.is_one_to_one
    scores = link_metrics(matching, planted.test, pool="all")
    assert scores.precision > 0.99
    assert scores.recall > 0.97


def test_renamed_relations_are_found(planted):
    """Labels keep their name, and every relation of the source has a sure counterpart."""
    found = run_paris(planted)
    labels = [one for one in found.attributes if one.source.endswith("#label")]
    assert labels[0].source == labels[0].target
    assert labels[0].source_in_target > 0.99
    frequent = np.bincount(planted.source.triples[:, 1]) >= 10
    best = {}
    for one in found.relations:
        best[one.source] = max(best.get(one.source, 0.0), one.source_in_target)
    known = [name for name, often in zip(planted.source.relations, frequent, strict=True) if often]
    # A tenth of the facts is missing in the target, a few are spurious, and some relations are split in two.
    assert np.median([best.get(name, 0.0) for name in known]) > 0.75


def test_structure_and_seeds_without_literals():
    """Bare triples and three links of ten: the rest follows from relations alone."""
    pair = generate(SyntheticSettings(num_entities=400, drop=0.05, triples_per_entity=8.0, seeds=0.3))
    nothing = {"literals": Literals(np.zeros(0, np.int32), np.zeros(0, np.int32), (), (), ()), "attributes": ()}
    bare = replace(pair, source=replace(pair.source, **nothing), target=replace(pair.target, **nothing))
    pool = np.unique(bare.test.source_ids), np.unique(bare.test.target_ids)
    scores = link_metrics(one_to_one(bare, pool), bare.test)
    assert scores.precision > 0.9
    assert scores.recall > 0.85


def test_names_are_facts_only_if_asked_for_and_no_attribute():
    source = graph(literals=[("http://x/Ann_Lee", "born", "1984"), ("http://x/Bob", "born", "1985")])
    target = graph(literals=[("http://y/Ann_Lee", "died", "1994"), ("http://y/Bob", "died", "1995")])
    pair = pair_of(source, target)
    assert len(run_paris(pair)) == 0
    found = run_paris(pair, ParisSettings(use_names=True))
    assert len(found) == 2
    assert found.attributes == ()


# ---- what must not matter -------------------------------------------------------------------------------------------


def bytes_of(found):
    arrays = found.source_ids, found.target_ids, found.probabilities, found.doubts
    return b"".join(array.tobytes() for array in arrays), found.relations, found.attributes, found.iterations


def test_gold_links_are_not_read(planted):
    shuffled = Links.of(planted.test.source_ids, np.random.default_rng(0).permutation(planted.test.target_ids))
    assert bytes_of(run_paris(planted)) == bytes_of(run_paris(replace(planted, test=shuffled, valid=planted.test)))


def renamed(one, rng):
    """The same graph under other identifiers, in another order; and the old number of every entity."""
    number = rng.permutation(one.num_entities).astype(np.int32)  # old id -> new id
    triples = one.triples.copy()
    triples[:, 0], triples[:, 2] = number[triples[:, 0]], number[triples[:, 2]]
    old = one.literals
    order = rng.permutation(len(old))
    literals = Literals(
        number[old.entity_ids][order],
        old.attribute_ids[order],
        *(tuple(np.array(texts, dtype=object)[order]) for texts in (old.values, old.datatypes, old.languages)),
    )
    entities = tuple(f"e{place:05}" for place in range(one.num_entities))
    changed = replace(
        one, entities=entities, names=entities, triples=triples[rng.permutation(len(triples))], literals=literals
    )
    return changed, np.argsort(number).astype(np.int32)


@pytest.mark.parametrize("seed", [1, 2])
def test_names_and_numbers_of_entities_do_not_matter(seed):
    pair = generate(SyntheticSettings(num_entities=150, name_noise=0.05, seeds=0.0, dangling=0.1, seed=seed))
    rng = np.random.default_rng(seed)
    (source, old_source), (target, old_target) = renamed(pair.source, rng), renamed(pair.target, rng)
    found = run_paris(pair)
    other = run_paris(GraphPair("", source, target))
    order = np.lexsort((old_target[other.target_ids], old_source[other.source_ids]))
    assert found.source_ids.tolist() == old_source[other.source_ids][order].tolist()
    assert found.target_ids.tolist() == old_target[other.target_ids][order].tolist()
    np.testing.assert_allclose(found.doubts, other.doubts[order], rtol=1e-7)
    assert found.iterations == other.iterations
    assert len(found) > 100


def test_exchanged_sides_give_the_same_pairs(planted):
    found = run_paris(planted)
    other = run_paris(GraphPair("", planted.target, planted.source))
    order = np.lexsort((other.source_ids, other.target_ids))
    assert found.source_ids.tolist() == other.target_ids[order].tolist()
    assert found.target_ids.tolist() == other.source_ids[order].tolist()
    np.testing.assert_allclose(found.doubts, other.doubts[order], rtol=1e-7)


facts = st.tuples(st.sampled_from("abcde"), st.sampled_from("rq"), st.sampled_from("abcde"))
values = st.tuples(st.sampled_from("abcde"), st.sampled_from("nm"), st.sampled_from(["1", "2", "x", "1990-01-01"]))
side = st.builds(graph, st.lists(facts, max_size=8), st.lists(values, max_size=8), st.just("abcde"))


@given(side, side, st.lists(st.integers(0, 4), max_size=2, unique=True))
@settings(max_examples=15, deadline=None)
def test_probabilities_are_probabilities(source, target, seeded):
    pair = GraphPair("", source, target, train=Links.of(seeded, seeded[::-1]))
    found = run_paris(pair, ParisSettings(floor=0.05))
    assert bytes_of(found) == bytes_of(run_paris(pair, ParisSettings(floor=0.05)))
    assert ((found.probabilities >= 0.05) & (found.probabilities <= 1.0)).all()
    keys = found.source_ids.astype(np.int64) * 5 + found.target_ids
    assert (np.diff(keys) > 0).all()
    certain = {(int(i), int(j)) for i, j in zip(found.source_ids, found.target_ids, strict=True) if i in seeded}
    assert certain == set(zip(seeded, seeded[::-1], strict=True))
    for one in (*found.relations, *found.attributes):
        assert min(one.source_in_target, one.target_in_source) >= 0.0
        assert 0.05 <= max(one.source_in_target, one.target_in_source) <= 1.0


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (graph(), graph()),
        (graph(), graph([("a", "r", "b")], [("a", "n", "x")])),
        (graph([("a", "r", "b")]), graph([("a", "r", "b")])),
        (graph([("a", "r", "b")], [("a", "n", "")]), graph([("a", "r", "b")], [("a", "n", "")])),
    ],
    ids=["empty", "one empty", "no literals", "empty literals"],
)
def test_from_nothing_nothing_follows(source, target):
    found = run_paris(GraphPair("", source, target))
    assert len(found) == 0
    assert found.relations == found.attributes == found.classes == ()
    assert [turn.assigned for turn in found.iterations] == [0]


# ---- the matcher ----------------------------------------------------------------------------------------------------


def test_the_matcher_keeps_to_the_pools(planted):
    rng = np.random.default_rng(3)
    pools = rng.permutation(400)[:150], rng.permutation(400)[:200]
    matching = one_to_one(planted, pools)
    assert len(matching) > 30
    assert set(matching.source_ids) <= set(pools[0])
    assert set(matching.target_ids) <= set(pools[1])
    assert matching.is_one_to_one
    found = run_paris(planted)
    expected = probabilities(planted, found)
    names = planted.source.entities, planted.target.entities
    for i, j, confidence in zip(matching.source_ids, matching.target_ids, matching.confidences, strict=True):
        assert expected[names[0][i], names[1][j]] == confidence


@pytest.mark.parametrize(("name", "least"), [("EN_FR", 0.95), ("D_W", 0.83)])
def test_benchmarks_without_seeds(data_folder, name, least):
    from rlea.io.readers import read_pair

    pair = read_pair(data_folder / "openea-15k-v1" / f"{name}_15K_V1")
    matching = one_to_one(unlinked(pair))
    assert link_metrics(matching, gold_of(pair), pool="all").f1 > least
