"""The attribute part of JAPE on examples small enough to check by eye."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlea.graph import LITERAL_COLUMNS, GraphPair, KnowledgeGraph, Links
from rlea.models.attributes import (
    DATETIME,
    DOUBLE,
    INTEGER,
    STRING,
    Occurrences,
    Similar,
    collect_occurrences,
    draw_pairs,
    entity_vectors,
    frequent_attributes,
    learn_vectors,
    merge_rows,
    similar_entities,
    type_of_value,
    types_of_attributes,
    why_unused,
)
from rlea.models.jape import JAPESettings

XSD = "http://www.w3.org/2001/XMLSchema#"


def graph(*facts: tuple[str, str, str], entities: tuple[str, ...] = ()) -> KnowledgeGraph:
    schema = dict.fromkeys(LITERAL_COLUMNS, pl.String)
    literals = pl.DataFrame([(*fact, "", "") for fact in facts], schema=schema, orient="row")
    triples = pl.DataFrame(schema=dict.fromkeys(("head", "relation", "tail"), pl.String))
    return KnowledgeGraph.build(triples, literals, entities=entities)


def learn(occurrences: Occurrences, seed: int = 0) -> np.ndarray:
    settings = JAPESettings(
        dim=8, attribute_epochs=60, max_attribute_pairs=2000, attribute_negatives=3, attribute_learning_rate=0.1
    )
    return learn_vectors(occurrences, settings, seed)


def alike(units: np.ndarray, cut: int, rows: np.ndarray, least: float, most: int, seed: int = 0) -> Similar:
    return similar_entities(units, cut, rows, JAPESettings(min_similarity=least, max_matches=most), seed)


@pytest.mark.parametrize(
    ("value", "datatype", "expected"),
    [
        ("1990", "", INTEGER),
        ("-12", "", INTEGER),
        ("265.0", "", DOUBLE),
        ("1.5E8", "http://dbpedia.org/datatype/usDollar", DOUBLE),
        ("1e3", "", DOUBLE),
        ("2000-05-21", "", DATETIME),
        ("2000-05-21T10:00:00Z", "", DATETIME),
        ("1990", XSD + "gYear", DATETIME),
        ("7", XSD + "double", DOUBLE),
        ("7", XSD + "string", STRING),
        ("0013159a", "", STRING),
        ("2000-5", "", STRING),
        ("", "", STRING),
    ],
)
def test_types_of_values(value: str, datatype: str, expected: int):
    assert type_of_value(value, datatype) == expected


def test_an_attribute_has_the_type_of_most_of_its_values():
    told = graph(("e", "age", "3"), ("f", "age", "unknown"), ("g", "age", "5"), ("e", "note", "7.5"), ("e", "on", "x"))
    assert told.attributes == ("age", "note", "on")
    assert types_of_attributes(told.literals, 3).tolist() == [INTEGER, DOUBLE, STRING]


def test_the_most_frequent_attributes_are_kept():
    told = graph(*((f"e{i}", attribute, "x") for attribute, n in (("a", 1), ("b", 3), ("c", 2)) for i in range(n)))
    assert frequent_attributes(told.literals, 3, 0.67).tolist() == [False, True, True]
    assert frequent_attributes(told.literals, 3, 1.0).all()
    assert frequent_attributes(told.literals, 3, 0.01).tolist() == [False, True, False]  # one is always left


def test_seeds_bring_the_attributes_of_two_graphs_together():
    source = graph(("s0", "born", "1990"), ("s0", "born", "1991"), ("s0", "height", "1.8"), ("s1", "born", "1980"))
    target = graph(("t0", "naissance", "1990"), ("t1", "taille", "1.8"))
    pair = GraphPair("pair", source, target, Links.of([0], [1]))
    each = collect_occurrences(pair, 1.0)
    assert np.split(each.attribute_ids, each.begins[1:-1])[0].tolist() == [0, 1]
    assert each.counts.tolist() == [2, 1, 1, 1]  # twice born counts once
    assert each.attribute_ids.tolist() == [0, 1, 0, 2, 3]
    together = merge_rows(each, np.array([0, 1, 2, 0], dtype=np.int32))
    assert together.counts.tolist() == [3, 1, 1, 0]
    assert together.attribute_ids.tolist() == [0, 1, 3, 0, 2]


def occurrences_of(sets: list[list[int]], types: list[int], num_source: int) -> Occurrences:
    ids = np.array([a for row in sets for a in sorted(row)], dtype=np.int32)
    begins = np.cumsum([0, *map(len, sets)]).astype(np.int64)
    return Occurrences(begins, ids, np.array(types, dtype=np.int8), num_source)


def test_pairs_of_one_type_are_drawn_twice_as_often():
    told = occurrences_of([[0, 1, 2], [3]], [INTEGER, INTEGER, STRING, STRING], 4)
    first, second = draw_pairs(told, 30_000, np.random.default_rng(0))
    drawn = np.zeros((4, 4))
    np.add.at(drawn, (first, second), 1)
    assert drawn.diagonal().sum() == 0
    assert drawn[3].sum() == drawn[:, 3].sum() == 0  # occurs alone
    assert drawn[0, 1] / drawn[0, 2] == pytest.approx(2, rel=0.1)
    assert drawn[0, 1] == pytest.approx(drawn[1, 0], rel=0.1)


def test_nothing_is_drawn_where_attributes_occur_alone():
    told = occurrences_of([[0], [], [1]], [STRING, STRING], 1)
    assert len(draw_pairs(told, 10, np.random.default_rng(0))[0]) == 0
    assert learn(told).shape == (2, 8)


@given(st.lists(st.sets(st.integers(0, 6)), max_size=8), st.integers(0, 100))
def test_drawn_pairs_do_occur_together(sets: list[set[int]], seed: int):
    told = occurrences_of([sorted(row) for row in sets], [0, 1, 2, 3, 0, 1, 2], 3)
    drawn = set(zip(*(x.tolist() for x in draw_pairs(told, 50, np.random.default_rng(seed))), strict=True))
    assert all(any({a, c} <= row for row in sets) and a != c for a, c in drawn)


# Attributes 0 1 2 of the source are 6 7 8 of the target, those of persons; 3 4 5 are 9 10 11, those of films.
KINDS = [[0, 1, 2], [3, 4, 5]] * 20 + [[6, 7, 8], [9, 10, 11]] * 20 + [[0, 1, 2, 6, 7, 8], [3, 4, 5, 9, 10, 11]] * 10


def test_entities_of_a_kind_are_near_across_graphs():
    told = occurrences_of(KINDS, [STRING] * 12, 6)
    units = entity_vectors(told, learn(told))
    person, film, personne, oeuvre = units[[0, 1, 40, 41]]
    assert person @ personne > 0.8
    assert film @ oeuvre > 0.8
    assert max(person @ film, person @ oeuvre, film @ personne) < 0.3


def test_the_same_seed_gives_the_same_vectors():
    told = occurrences_of(KINDS, [STRING] * 12, 6)
    assert learn(told, 1).tobytes() == learn(told, 1).tobytes()
    assert learn(told, 1).tobytes() != learn(told, 2).tobytes()


def test_an_entity_is_the_mean_of_its_attributes():
    told = occurrences_of([[0, 1], [], [1]], [STRING, STRING], 1)
    units = entity_vectors(told, np.array([[3, 0], [0, 3]], dtype=np.float32))
    assert units == pytest.approx(np.array([[0.5**0.5, 0.5**0.5], [0, 0], [0, 1]]), abs=1e-6)


def test_similar_entities_by_hand():
    # Source: 0 to the east, 1 to the north, 2 without attributes. Target: 3 to the east, 4 a little north of it.
    units = np.array([[1, 0], [0, 1], [0, 0], [1, 0], [0.8, 0.6]], dtype=np.float32)
    rows = np.array([0, 1, 2, 0, 4], dtype=np.int32)  # 0 and 3 are a seed
    similar = alike(units, 3, rows, 0.7, 2)
    assert similar.num_pairs == 4
    found = {
        int(row): {int(m): float(w) for m, w in zip(matches, weights, strict=True) if w > 0}
        for row, matches, weights in list(zip(similar.rows, similar.matches, similar.weights, strict=True))[:1]
    }
    assert found == {0: {0: pytest.approx(1 / 1.8), 4: pytest.approx(0.8 / 1.8)}}
    assert similar.rows.tolist() == [0, 0, 4]  # the source entity 0, then the target entities 3 and 4
    assert similar.weights[1:].tolist() == [[1, 0], [1, 0]]
    assert similar.matches[1:].tolist() == [[0, 0], [0, 0]]


@given(st.integers(0, 10_000), st.floats(0.001, 0.95))
def test_the_most_similar_are_kept(seed: int, least: float):
    random = np.random.default_rng(seed)
    units = random.standard_normal((30, 3)).astype(np.float32)
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    similar = alike(units, 12, np.arange(30, dtype=np.int32), least, 4, seed)
    full = units @ units.T
    expected = 0
    for entity in range(30):
        others = full[entity, 12:] if entity < 12 else full[entity, :12]
        enough = np.sort(others[others >= np.float32(least)])[::-1][:4]
        expected += len(enough)
        place = np.flatnonzero(similar.rows == entity)
        assert len(place) == (len(enough) > 0)
        if len(place):
            kept = full[entity, similar.matches[place[0]][similar.weights[place[0]] > 0]]
            # Similarities that differ by less than chance is given room for may change places.
            np.testing.assert_allclose(np.sort(kept)[::-1], enough, atol=2e-4)
            assert similar.weights[place[0]].sum() == pytest.approx(1, abs=1e-5)
    assert similar.num_pairs == expected


def test_of_many_equal_matches_everybody_gets_others():
    units = np.tile(np.array([[1, 0]], dtype=np.float32), (80, 1))
    similar = alike(units, 40, np.arange(80, dtype=np.int32), 0.95, 4)
    chosen = np.bincount(similar.matches.ravel(), minlength=80)
    assert similar.num_pairs == 80 * 4
    assert chosen.max() < 16  # four each on average


def test_it_is_said_why_attributes_cannot_be_used():
    told, other, silent = graph(("a", "x", "1"), entities=("b",)), graph(("c", "y", "1")), graph(entities=("d",))
    assert why_unused(GraphPair("pair", told, other, Links.of([0], [0]))) is None
    assert why_unused(GraphPair("pair", told, silent, Links.of([0], [0]))) == "the target graph has none"
    assert why_unused(GraphPair("pair", silent, told, Links.of([0], [0]))) == "the source graph has none"
    assert why_unused(GraphPair("pair", told, other, Links.of([1], [0]))) == "no seed has any in both graphs"
