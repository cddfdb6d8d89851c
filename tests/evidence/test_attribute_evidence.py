"""Attribute evidence: values compared by hand, planted rarities and correspondences, and what must change nothing."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planted import gold_of, make_graph
from planted import make_pair as pair_of
from rlea.evidence.attributes import compare_values, score_attributes
from rlea.graph import GraphPair, Links
from rlea.io.synthetic import SyntheticSettings, generate

XSD = "http://www.w3.org/2001/XMLSchema#"


def graph(literals, entities=()):
    return make_graph((), literals, entities)


def scores(pair):
    found = score_attributes(pair)
    names = pair.source.entities, pair.target.entities
    rows = zip(found.source_ids.tolist(), found.target_ids.tolist(), found.scores.tolist(), strict=True)
    return {(names[0][i], names[1][j]): score for i, j, score in rows}


def weighed(pair, source, target):
    """The score of any two entities, proposed or not: support and conflict, put together as the class does."""
    ids = np.array([pair.source.entity_index[source]]), np.array([pair.target.entity_index[target]])
    support, conflict = score_attributes(pair).weigh(*ids)
    larger = max(pair.source.num_entities, pair.target.num_entities)
    return float(1.0 / (1.0 + np.exp(np.log(larger) + conflict[0] - support[0])))


def background(count=200, more=()):
    """Entities s0.. and t0.. that agree on a code of their own, with a name and a colour that many share.

    `more` are (entity, attribute, value) rows that both graphs have besides.
    """
    rows = [(number, "code", f"AB{number * 7919 + 10007}") for number in range(count)]
    rows += [(number, "name", f"Name {number % 20}") for number in range(count)]
    rows += [(number, f"common{k}", f"common {number % 3}") for number in range(count) for k in range(10)]
    return tuple([(f"{side}{one}", f"{side}:{name}", value) for one, name, value in (*rows, *more)] for side in "st")


# ---- two values -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (["1 mile"], ["1.609 km"]),
        (["5 ft 11 in"], ["180.3 cm"]),
        (["100 kg"], ["220.46 lb"]),
        (["1.5 h"], ["90 min"]),
        (["2 km²"], ["200 ha"]),
        (["50 °F"], ["10 °C"]),
        (["12", "http://dbpedia.org/datatype/kilometre"], ["12000 m"]),
        (["120 km"], ["120"]),
        (["1,500"], ["1500.0", XSD + "double"]),
        (["1984"], ["1984-05-02"]),
        (["1984", XSD + "gYear"], ["1984-05", XSD + "gYearMonth"]),
        (["1984-05"], ["1984-05-31"]),
        (["1984-05-02T00:00:00Z"], ["1984-05-02"]),
        (["1984", XSD + "integer"], ["1984-12-31"]),
        (["48.8566 2.3522"], ["Point(2.3530 48.8570)"]),
        (["0.01, 179.999"], ["0.01 -179.999"]),
        (["ISBN 978-3-16-148410-0"], ["ISBN 9783161484100"]),
        (["https://www.example.org/a/"], ["http://example.org/a"]),
        (["Kirk Wilson"], ["Wilson, Kirk"]),
        (["Besançon"], ["BESANCON"]),
        (["Москва", "", "ru"], ["Moskva", "", "en"]),
        (["Αθήνα", "", "el"], ["Athina"]),
    ],
)
def test_values_that_agree(one, other):
    assert compare_values(one, other) > 0.95
    assert compare_values(other, one) == pytest.approx(compare_values(one, other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (["1 mile"], ["1 km"]),
        (["10 kg"], ["10 m"]),
        (["100"], ["130"]),
        (["1984"], ["1990-05-02"]),
        (["1984-05-02"], ["1984-09-02"]),
        (["48.8566 2.3522"], ["52.52 13.405"]),
        (["tt0050928"], ["tt0050929"]),
        (["tt0050928"], ["nm0050928"]),
        (["London"], ["1984"]),
        (["Motorway", "", "en"], ["Autobahn", "", "de"]),
        (["3D"], ["3 days"]),
        ([""], ["a"]),
        ([" "], [" "]),
    ],
)
def test_values_that_do_not(one, other):
    assert compare_values(one, other) == 0.0
    assert compare_values(other, one) == 0.0


def test_nearness_is_graded():
    for chain in (
        [["10000"], ["10050"], ["10200"], ["12000"]],
        [["1984-05-02"], ["1984-05-03"], ["1984-05-09"]],
        [["1984"], ["1985"], ["1990"]],
        [["48.85 2.35"], ["48.87 2.37"], ["48.9 2.4"], ["49.5 2.35"]],
        [["Guns and Roses tour"], ["Guns and Roses"], ["War of the Roses"]],
    ):
        graded = [compare_values(chain[0], other) for other in chain]
        assert graded[0] == 1.0
        assert graded == sorted(graded, reverse=True)
        assert len(set(graded)) == len(graded)
    assert compare_values(["1984"], ["1985"]) < 0.3
    assert compare_values(["tt0050928"], ["0050928"]) == 0.8


def test_words_of_two_languages_are_compared_from_end_to_end():
    """Sharing one rare word of three is evidence within a language and none across two."""
    one, other = "Chromatic Zanzibar", "Zanzibar Philharmonia"
    within = compare_values([one, "", "en"], [other, "", "en-GB"])
    across = compare_values([one, "", "en"], [other, "", "fr"])
    assert across <= within
    assert compare_values(["Paris", "", "en"], ["Paris", "", "fr"]) == 1.0


@settings(max_examples=15, deadline=None)
@given(st.text(max_size=12), st.text(max_size=12))
def test_any_two_texts_compare_both_ways(one, other):
    agreement = compare_values([one], [other])
    assert 0.0 <= agreement <= 1.0
    assert compare_values([other], [one]) == pytest.approx(agreement)
    if one.strip():
        assert compare_values([one], [one]) == 1.0


# ---- rarity ---------------------------------------------------------------------------------------------------------


def test_a_rare_shared_code_beats_ten_common_values():
    source, target = background()
    source += [("s:x", "s:code", "ZZ999999"), *(("s:x", f"s:common{k}", "common 1") for k in range(10))]
    target += [("t:rare", "t:code", "ZZ999999"), *(("t:usual", f"t:common{k}", "common 1") for k in range(10))]
    pair = pair_of(graph(source), graph(target))
    assert weighed(pair, "s:x", "t:rare") > 0.8
    assert weighed(pair, "s:x", "t:usual") < 0.1


def test_a_value_that_all_have_is_no_evidence():
    rows = [[(f"{side}{number}", f"{side}:kind", "thing") for number in range(50)] for side in "st"]
    pair = pair_of(graph(rows[0]), graph(rows[1]))
    found = score_attributes(pair)
    assert len(found) == 0
    everyone = np.divmod(np.arange(50 * 50), 50)
    assert not np.any(found.weigh(*everyone))


def test_more_rare_values_in_common_score_higher():
    rows = [(f":x{shared}", f"number{k}", f"Q{shared}{k}55501") for shared in range(1, 5) for k in range(shared)]
    rows += [(number, f"number{k}", f"N{number}{k}777") for number in range(100, 140) for k in range(4)]
    source, target = background(more=rows)
    # All of them have as many values; those that are not shared are missing on the other side.
    source += [(f"s:x{shared}", f"s:only{k}", f"R{shared}{k}") for shared in range(1, 5) for k in range(4 - shared)]
    found = scores(pair_of(graph(source), graph(target)))
    steps = [found[f"s:x{shared}", f"t:x{shared}"] for shared in range(1, 5)]
    assert steps == sorted(steps)
    assert len(set(steps)) == 4
    assert steps[0] > 0.5


def test_numbers_are_as_rare_as_their_neighbourhood():
    """Two entities are off by the same share; around one of them are a hundred others, around the other none."""
    source, target = background(more=[(number, "size", str(10000 + 3 * number)) for number in range(100)])
    source += [("s:alone", "s:size", "70000"), ("s:amid", "s:size", "10150")]
    target += [("t:alone", "t:size", "70035"), ("t:amid", "t:size", "10155")]
    pair = pair_of(graph(source), graph(target))
    assert weighed(pair, "s:alone", "t:alone") > 0.3
    assert weighed(pair, "s:amid", "t:amid") < 0.2


def test_a_contradiction_counts_a_little_and_a_missing_value_does_not():
    born = [(number, "born", f"19{20 + number}-03-{1 + number % 28:02d}") for number in range(60)]
    source, target = background(more=born)
    source += [("s:x", "s:code", "ZZ999999"), ("s:x", "s:born", "1801-01-05")]
    target += [("t:unknown", "t:code", "ZZ999999")]
    target += [("t:other", "t:code", "ZZ999999"), ("t:other", "t:born", "1850-07-09")]
    target += [("t:same", "t:code", "ZZ999999"), ("t:same", "t:born", "1801")]
    found = scores(pair_of(graph(source), graph(target)))
    assert found["s:x", "t:same"] > found["s:x", "t:unknown"] > found["s:x", "t:other"] > 0.0


def test_a_value_under_two_attributes_counts_once():
    codes = (":x", "code", "ZZ999999"), (":y", "code", "YY888888"), (":y", "code2", "YY888888")
    source, target = background(more=codes)
    found = scores(pair_of(graph(source), graph(target)))
    assert found["s:y", "t:y"] == pytest.approx(found["s:x", "t:x"], abs=0.02)


# ---- places, units and candidates -----------------------------------------------------------------------------------


@pytest.mark.parametrize("num_seeds", [0, 10])
def test_latitude_and_longitude_are_one_place(num_seeds):
    geo = "http://www.w3.org/2003/01/geo/wgs84_pos#"
    rng = np.random.default_rng(0)
    source, target = [], []
    for number, (latitude, longitude) in enumerate(rng.uniform((-60, -180), (60, 180), (80, 2)).tolist()):
        source += [(f"s{number}", geo + "lat", f"{latitude:.4f}"), (f"s{number}", geo + "long", f"{longitude:.4f}")]
        target.append((f"t{number}", "t:point", f"Point({longitude + 0.004:.4f} {latitude - 0.003:.4f})"))
    seeds = [(f"s{number}", f"t{number}") for number in range(num_seeds)]
    found = scores(pair_of(graph(source), graph(target), seeds))
    best = {one: max((score, t) for (s, t), score in found.items() if s == one)[1] for one, _ in found}
    assert len(best) == 80
    assert all(one[1:] == other[1:] for one, other in best.items())


def test_another_unit_is_found_from_the_data():
    source, target = background(100)
    rng = np.random.default_rng(1)
    for number, minutes in enumerate(rng.choice(np.arange(200, 5000), 100, replace=False).tolist()):
        source.append((f"s{number}", "s:minutes", f"{minutes}"))
        target.append((f"t{number}", "t:seconds", f"{minutes * 60}"))
    source.append(("s:x", "s:minutes", "7001"))
    target.append(("t:x", "t:seconds", "420060"))
    pair = pair_of(graph(source), graph(target))
    found = score_attributes(pair)
    (one,) = (pair for pair in found.correspondences if pair.source == "s:minutes" and pair.strength > 0.5)
    assert (one.target, one.factor) == ("t:seconds", 60.0)
    assert scores(pair)["s:x", "t:x"] > 0.5


def test_two_common_values_are_rare_together():
    rng = np.random.default_rng(2)
    years, sizes = rng.integers(1950, 1990, 300), rng.integers(10, 60, 300)
    rows = [(number, "year", str(year)) for number, year in enumerate(years)]
    rows += [(number, "size", str(size)) for number, size in enumerate(sizes)]
    rows += [(number, "size", "77") for number in range(15)]
    source, target = background(300, rows)
    source += [("s:x", "s:year", "1977"), ("s:x", "s:size", "77")]
    target += [("t:x", "t:year", "1977-04-05"), ("t:x", "t:size", "77")]
    pair = pair_of(graph(source), graph(target))
    assert ("s:x", "t:x") in scores(pair)


def test_any_pair_is_weighed_as_the_proposed_ones_are():
    source, target = background()
    pair = pair_of(graph(source), graph(target))
    found = score_attributes(pair)
    support, conflict = found.weigh(found.source_ids, found.target_ids)
    assert support.tolist() == found.support.tolist()
    assert conflict.tolist() == found.conflict.tolist()
    assert weighed(pair, "s3", "t3") == pytest.approx(scores(pair)["s3", "t3"], rel=1e-4)


# ---- correspondences ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("with_seeds", [True, False])
def test_planted_correspondences_are_found(with_seeds):
    pair = generate(SyntheticSettings(num_entities=800, num_attributes=8, values_per_entity=4.0, name_noise=0.02))
    truth = planted_attributes(pair)
    assert len(truth) == 9
    found = score_attributes(pair if with_seeds else replace(pair, train=Links.empty()))
    best = {}
    for one in found.correspondences:
        best.setdefault(one.source, one.target)
    assert all(0.0 < one.strength <= 1.0 for one in found.correspondences)
    assert {one: best.get(one) for one in truth} == truth
    partners = {}
    for i, j, score in zip(found.source_ids.tolist(), found.target_ids.tolist(), found.scores.tolist(), strict=True):
        partners[i] = max(partners.get(i, (0.0, -1)), (score, j))
    right = [partners.get(i, (0, -1))[1] == j for i, j in zip(pair.test.source_ids, pair.test.target_ids, strict=True)]
    assert np.mean(right) > 0.9


def planted_attributes(pair):
    """For every source attribute the target attribute that most often has the same value for the same entity."""
    links = gold_of(pair)
    frames = []
    for side, ids in ((pair.source, links.source_ids), (pair.target, links.target_ids)):
        numbers = pl.DataFrame({"entity": ids, "link": np.arange(len(links))})
        attribute = pl.Series("attribute", side.attributes).gather(side.literals.attribute_ids)
        rows = pl.DataFrame({"entity": side.literals.entity_ids, "attribute": attribute, "value": side.literals.values})
        frames.append(rows.join(numbers, on="entity"))
    counts = frames[0].join(frames[1], on=["link", "value"]).group_by("attribute", "attribute_right").len()
    best = counts.sort("len", descending=True).group_by("attribute", maintain_order=True).first()
    return dict(zip(best["attribute"], best["attribute_right"], strict=True))


# ---- what must change nothing ---------------------------------------------------------------------------------------


def renamed(side, order, mark):
    """The same graph under other identifiers, so that entity i becomes number order[i]; it has literals only."""
    old = side.literals
    new = [f"{mark}{place:06d}" for place in order]
    columns = old.values, old.datatypes, old.languages
    attributes = [side.attributes[i] for i in old.attribute_ids]
    return graph(zip([new[i] for i in old.entity_ids], attributes, *columns, strict=True), new)


def test_neither_the_order_of_entities_nor_gold_links_matter():
    pair = generate(SyntheticSettings(num_entities=400, num_attributes=6, values_per_entity=3.0))
    rng = np.random.default_rng(3)
    orders = rng.permutation(pair.source.num_entities), rng.permutation(pair.target.num_entities)
    train = Links.of(orders[0][pair.train.source_ids], orders[1][pair.train.target_ids])
    other = GraphPair("", renamed(pair.source, orders[0], "a"), renamed(pair.target, orders[1], "b"), train=train)
    one, two = score_attributes(pair), score_attributes(other)  # the second has no links but for seeds
    first = orders[0][one.source_ids].tolist(), orders[1][one.target_ids].tolist(), one.scores.tolist()
    second = two.source_ids.tolist(), two.target_ids.tolist(), two.scores.tolist()
    assert sorted(zip(*first, strict=True)) == list(zip(*second, strict=True))
    assert len(one) > 300
    assert one.correspondences == two.correspondences


def test_sides_may_be_swapped():
    source, target = background(60)
    one = scores(pair_of(graph(source), graph(target)))
    two = scores(pair_of(graph(target), graph(source)))
    assert {(t, s): score for (s, t), score in two.items()} == pytest.approx(one)


# ---- no values ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", [[], [("s", "a", "x")]])
@pytest.mark.parametrize("target", [[], [("t", "b", " ")]])
def test_without_values_there_is_a_note_and_no_pair(source, target):
    found = score_attributes(pair_of(graph(source, ["s"]), graph(target, ["t"])))
    assert len(found) == 0
    assert found.scores.dtype == np.float32
    assert "target" in found.notes[0]
    assert ("source" in found.notes[0]) == (not source)


def test_record_and_progress():
    source, target = background(60)
    reported = []

    def note_down(stage, done, total, note=""):
        reported.append((stage, done, total))

    found = score_attributes(pair_of(graph(source), graph(target)), progress=note_down)
    assert reported[0][0] == "attributes"
    assert reported[-1][1] == reported[-1][2]
    record = found.as_dict()
    assert record["pairs"] == len(found) > 0
    assert {"source": "s:code", "target": "t:code"}.items() <= record["correspondences"][0].items()


@pytest.mark.slow
@pytest.mark.skipif("RLEA_DATA" not in os.environ, reason="RLEA_DATA does not name the folder of the benchmarks")
@pytest.mark.parametrize(("name", "least"), [("EN_FR_15K_V1", 0.80), ("D_W_15K_V1", 0.65)])
def test_real_attributes_find_real_links(name, least):
    from rlea.io.readers.openea import read_openea

    pair = read_openea(Path(os.environ["RLEA_DATA"]) / "openea-15k-v1" / name, "1")
    found = score_attributes(pair)
    pool = np.isin(found.source_ids, pair.test.source_ids) & np.isin(found.target_ids, pair.test.target_ids)
    rows = pl.DataFrame({"s": found.source_ids, "t": found.target_ids, "score": found.scores}).filter(pl.Series(pool))
    best = rows.filter(pl.col("score") == pl.col("score").max().over("s")).filter(pl.len().over("s") == 1)
    gold = pl.DataFrame({"s": pair.test.source_ids, "t": pair.test.target_ids})
    assert len(best.join(gold, on=["s", "t"])) / len(gold) > least
