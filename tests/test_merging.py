"""Two graphs as one table and one graph: who is joined, which columns, what is a contradiction."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import polars as pl
import pyoxigraph
import pytest

import rlea
from rlea.commands import merge_run
from rlea.errors import InputError
from rlea.graph import GraphPair, Links
from rlea.graph.schema import Alignment, Schema
from rlea.io.synthetic import SyntheticSettings, write_synthetic
from rlea.matching import Matching
from rlea.merging import FIXED, merge, merged_graph
from rlea.shared_columns import corresponding, join_once
from small_graphs import build, facts, only_entities, relations

XSD = "http://www.w3.org/2001/XMLSchema#"
RESOURCE = "http://www.w3.org/2000/01/rdf-schema#Resource"


def one_entity(source, target, schema=None):
    """The row of an entity that both graphs have, with these literals (attribute, value, datatype, language)."""
    graphs = [build(literals=[(name, *row) for row in rows]) for name, rows in (("a", source), ("x", target))]
    merged = merge(GraphPair("p", *graphs), Matching.of([0], [0], [0.75]), schema)
    (row,) = merged.frame.to_dicts()
    return row


def test_a_row_for_every_entity_of_the_world():
    source, target = only_entities("a", "b", "c"), only_entities("x", "y", "z")
    pair = GraphPair("p", source, target, train=Links.of([0], [2]))
    # x has two links: the surest joins it. z has a seed, which comes before everything.
    matching = Matching.of([1, 2, 2], [0, 0, 2], [0.5, 0.25, 0.9])
    frame = merge(pair, matching).frame
    assert tuple(frame.columns) == FIXED
    assert frame.rows() == [
        ("a", "z", 1.0, "name of a", "name of z", 0),
        ("b", "x", 0.5, "name of b", "name of x", 0),
        ("c", None, None, "name of c", None, 0),
        (None, "y", None, None, "name of y", 0),
    ]


@pytest.mark.parametrize(
    ("source", "target", "text", "origin"),
    [
        ([("5",)], [("5.0", XSD + "double")], "5", "both"),
        ([("Île-de-France",)], [("ile de france",)], "Île-de-France", "both"),
        ([("1815-12-10",)], [("1815", XSD + "gYear")], "1815-12-10", "both"),
        ([("1815-12-10",)], [("1815-12-10",)], "1815-12-10", "both"),
        ([("1815-12-10",)], [("10.12.1815",)], "1815-12-10", "both"),
        ([("1815-12-10",)], [("1815-12",)], "1815-12-10", "both"),
        ([("1815", XSD + "gYear")], [("1815", XSD + "gYear")], "1815", "both"),
        ([("1815-12-10",)], [("1815-12-11",)], "1815-12-10 ≠ 1815-12-11", "conflict"),
        ([("0118523",)], [("tt0118523",)], "0118523 | tt0118523", "both"),
        ([("red",), ("blue",)], [("blue",), ("green",)], "blue | red | green", "both"),
        ([("red",), ("blue",)], [("green",), ("black",)], "blue | red ≠ black | green", "conflict"),
        ([("Germany", "", "en")], [("Allemagne", "", "fr")], "Germany | Allemagne", "both"),
        ([("Germany", "", "en")], [("Bavaria", "", "en")], "Germany ≠ Bavaria", "conflict"),
        ([("Germany", "", "en")], [("Bavaria",)], "Germany ≠ Bavaria", "conflict"),
        ([("http://a.org/Person", RESOURCE)], [("http://b.org/Q5", RESOURCE)], None, "both"),
        ([("Rd",), ("12 High Rd.",)], [("12 High Road",)], "Rd | 12 High Road", "both"),
        ([("1815",)], [("1815-12-10",)], "1815-12-10", "both"),
        ([("12 High Road",)], [("14 High Rd",)], "12 High Road ≠ 14 High Rd", "conflict"),
        ([("only here",)], [], "only here", "source"),
        ([], [("only there",)], "only there", "target"),
    ],
)
def test_values_come_with_where_they_are_from_and_contradictions_with_both_sides(source, target, text, origin):
    rows = [[("value", *row) for row in side] or [("unlike", "1")] for side in (source, target)]
    row = one_entity(*rows)
    assert row["value (from)"] == origin
    assert row["value"] == (text or "http://a.org/Person | http://b.org/Q5")
    assert row["conflicts"] == (origin == "conflict")


def test_corresponding_attributes_are_one_column():
    a, b = "http://a.org/", "http://b.org/"
    schema = Schema(
        attributes=(
            Alignment(a + "born", b + "birth", False, 0.9, 0.4),
            Alignment(a + "born (year)", b + "year", False, 1.0, 1.0),
            Alignment(a + "died", b + "birth", False, 0.9, 0.3),  # birth is taken
            Alignment(a + "seldom", b + "often", False, 1.0, 0.01),
        )
    )
    source = [a + name for name in ("Colour", "born", "died", "seldom")] + ["same"]
    target = [b + name for name in ("birth", "colour", "often")] + ["same"]
    found = corresponding(source, target, schema)
    assert join_once(source, target, found) == [(0, 1), (1, 0), (2, None), (3, None), (4, 3), (None, 2)]
    row = one_entity([(a + "born", "1815")], [(b + "birth", "1816"), (b + "often", "x")], schema)
    assert row["born"] == "1815 ≠ 1816"
    assert row["often"] == "x"


FIRST = ("Ada", "Jürgen", "Grace", "Zoë", "Barbara", "Donald", "Frances", "John", "Radia", "Tim")
LAST = ("Lovelace", "Groß", "Hopper", "Dijkstra", "Liskov", "Knuth", "Allen", "Backus", "Perlman", "Berners")


def two_lists(folder, count=40):
    """Customers in two tables that have no header in common, and the links between them."""
    ours = ["id,name,phone,born,active,Post Code,note"]
    theirs = ["Nr;Kunde;Telefon;Geburtstag;Newsletter;post_code;Bemerkung"]
    for k in range(count):
        name = f"{FIRST[k % 10]} {LAST[(k // 10 + k) % 10]}"
        year, month, day = 1940 + k, k % 12 + 1, k % 28 + 1
        active, letter = ("yes", "no")[k % 2], ("yes", "no")[k // 2 % 2]
        ours.append(f"{k},{name},0113 49{k:02d} 001,{year}-{month:02d}-{day:02d},{active},{10000 + 37 * k},ours {k}")
        theirs.append(
            f"N{k};{name};+44 11349{k:02d}001;{day:02d}.{month:02d}.{year};{letter};{20000 + 41 * k};theirs {k}"
        )
    for name, lines in (("ours.csv", ours), ("theirs.csv", theirs)):
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    pair = rlea.read(folder / "ours.csv", folder / "theirs.csv")
    own, other = pair.source.entity_index, pair.target.entity_index
    ends = [own[str(k)] for k in range(count)], [other[f"N{k}"] for k in range(count)]
    return pair, Matching.of(*ends, [0.9] * count)


def test_columns_with_other_headers_are_joined_by_the_names_and_by_their_values(tmp_path):
    merged = merge(*two_lists(tmp_path))
    joined = {names for names in merged.columns.values() if len(names) == 2}
    assert joined == {("name", "Kunde"), ("phone", "Telefon"), ("born", "Geburtstag"), ("Post Code", "post_code")}
    frame = merged.frame
    assert set(frame["name (from)"]) == set(frame["phone (from)"]) == set(frame["born (from)"]) == {"both"}
    # Equal headers are one column even where values contradict each other.
    assert set(frame["Post Code (from)"]) == {"conflict"}
    assert frame["phone"][0] == "+44 1134900001"


def test_a_yes_and_a_no_that_agree_by_chance_are_no_column(tmp_path):
    # "active" and "Newsletter" agree in half of the rows, as they would if the rows were other ones.
    merged = merge(*two_lists(tmp_path, 200))
    assert {"active", "Newsletter"} <= set(merged.columns)


def test_names_are_joined_whatever_the_links_and_others_by_five_links_at_least(tmp_path):
    merged = merge(*two_lists(tmp_path, 4))
    assert {names for names in merged.columns.values() if len(names) == 2} == {
        ("name", "Kunde"),
        ("Post Code", "post_code"),
    }


def test_of_two_columns_that_agree_the_one_that_agrees_more_is_joined():
    rows = range(30)
    source = [(f"a{k}", "size", str(k)) for k in rows]
    target = [(f"b{k}", "length", str(k if k % 3 else k + 100)) for k in rows]
    target += [(f"b{k}", "extent", f"{k}.0") for k in rows]
    pair = GraphPair("p", build(literals=source), build(literals=target))
    ends = [
        [graph.entity_index[f"{letter}{k}"] for k in rows] for letter, graph in (("a", pair.source), ("b", pair.target))
    ]
    merged = merge(pair, Matching.of(*ends, [1.0] * 30))
    assert merged.columns == {"length": ("length",), "size": ("size", "extent")}


def test_names_of_graphs_are_joined_unless_both_have_the_same_property():
    label, other, own = "http://www.w3.org/2000/01/rdf-schema#label", "http://b.org/title", "http://a.org/called"
    rows = [(f"http://e.org/{k}", f"Name {LAST[k]}") for k in range(8)]
    graphs = {
        attribute: build(literals=[(entity, attribute, name) for entity, name in rows]) for attribute in (label, own)
    }
    target = build(literals=[(entity, other, name) for entity, name in rows])
    nothing = Matching.of([], [], [])
    assert list(merge(GraphPair("p", graphs[label], target), nothing).columns.values()) == [(label, other)]
    # In the target, too, a label is a label, whatever else says the same.
    both = build(literals=[(entity, name, text) for entity, text in rows for name in (label, other)])
    columns = merge(GraphPair("p", graphs[label], both), nothing).columns.values()
    assert set(columns) == {(label, label), (other,)}


def test_rare_attributes_share_a_column_and_names_are_never_taken_twice():
    literals = [("a", "http://a.org/size", "1"), ("b", "http://a.org/size", "2"), ("a", "http://b.org/size", "3")]
    literals += [("a", "source", "s"), ("b", "source", "t"), ("b", "rare", "r"), ("b", "rarer", "q")]
    pair = GraphPair("p", build(literals=literals), build(literals=[("x", "rare", "p")]))
    merged = merge(pair, Matching.of([1], [0], [1.0]), most=3)
    assert list(merged.columns) == ["size", "source (2)", "http://b.org/size"]
    assert merged.others == ("rare", "rare", "rarer")
    assert merged.frame["other"].to_list() == [None, "rare: r ≠ p; rarer: q"]
    assert merged.frame["conflicts"].to_list() == [0, 1]


def test_graphs_without_literals_or_links():
    pair = rlea.read([("a", "near", "b")], [("x", "near", "y")])
    frame = merge(pair, Matching.of([], [], [])).frame
    assert frame["source"].to_list() == ["a", "b", None, None]
    assert frame["target"].to_list() == [None, None, "x", "y"]


def test_the_graph_has_the_triples_of_both_under_the_identifiers_of_the_source():
    source = build([("a", "near", "b")], [("a", "size", "1")])
    target = build(
        [("x", "close", "y"), ("x", "near", "b"), ("b", "is", "y")], [("x", "size", "1"), ("y", "size", "2")]
    )
    pair = GraphPair("p", source, target, train=Links.of([0], [1]))
    graph = merged_graph(pair, Matching.of([], [], []))
    # The key b is not linked, so it is another thing in the target graph.
    other = "b (target)"
    expected = {("a", "near", "b"), ("a", "close", "y"), ("a", "near", other), (other, "is", "y")}
    assert relations(graph) == expected
    assert facts(graph) == {("a", "size", "1", "", ""), ("y", "size", "2", "", "")}


def test_an_iri_that_is_not_linked_stays_as_it_is():
    iri = "http://e.org/b"
    pair = GraphPair("p", build([("a", "near", iri)]), build([("x", "near", iri)]))
    assert iri in merged_graph(pair, Matching.of([], [], [])).entities
    assert f"{iri} (target)" not in merged_graph(pair, Matching.of([], [], [])).entities


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("merged")
    write_synthetic(folder / "pair", SyntheticSettings(60, seeds=0.3, seed=4))
    pair = rlea.read(folder / "pair")
    result = rlea.align(pair, matcher="mutual", pool="all")
    rlea.write(folder / "out", result)
    return folder / "out", result


def test_a_run_is_merged_from_its_folder(run, run_cli):
    folder, result = run
    done = run_cli("merge", folder, "--json")
    assert done.code == 0, done.err
    told = json.loads(done.out)
    table = pl.read_csv(folder / "merged.csv", infer_schema=False)
    frame = result.merged()
    assert table.columns == frame.columns
    assert table["source"].to_list() == frame["source"].to_list()
    joined = len(result.pair.train) + len(result.matching)
    assert told["entities"] == len(table) == 120 - joined
    assert told["joined"] == joined == int(frame["confidence"].is_not_null().sum())
    assert told["conflicts"] == frame["conflicts"].sum()
    triples = list(pyoxigraph.parse(path=folder / "merged.nt"))
    linked = {result.pair.target.entities[k] for k in result.matching.target_ids}
    assert not linked & {triple.subject.value for triple in triples}
    assert len(triples) > result.pair.source.num_triples
    assert "joined" in run_cli("merge", folder).out


def test_columns_of_tables_stand_in_their_order(tmp_path):
    pair, _ = two_lists(tmp_path)
    merged = merge(pair, Matching.of([], [], []))
    assert [title for title in merged.frame.columns if title not in FIXED and "(from)" not in title] == [
        *("name", "phone", "born", "active", "Post Code", "note"),
        *("Nr", "Telefon", "Geburtstag", "Newsletter", "Bemerkung"),
    ]


def test_the_command_says_which_columns_with_other_headers_are_one(tmp_path, run_cli):
    pair, matching = two_lists(tmp_path)
    result = rlea.align(pair, matcher="mutual", embedding="names")
    rlea.write(tmp_path / "out", dataclasses.replace(result, matching=matching))
    done = run_cli("merge", tmp_path / "out")
    assert done.code == 0, done.err
    told = " ".join(done.out.split())
    assert "Columns that are one: Post Code = post_code, born = Geburtstag, name = Kunde, phone = Telefon" in told


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.jsonl"])
def test_one_file_in_the_format_of_its_name(run, tmp_path, name):
    folder, result = run
    assert merge_run(folder, tmp_path / name)["written"] == [str(tmp_path / name)]
    readers = {".csv": pl.read_csv, ".parquet": pl.read_parquet, ".jsonl": pl.read_ndjson}
    frame = readers[(tmp_path / name).suffix](tmp_path / name)
    assert frame["target"].to_list() == result.merged()["target"].to_list()
    np.testing.assert_allclose(frame["confidence"].drop_nulls(), result.merged()["confidence"].drop_nulls())


def test_what_cannot_be_merged_is_refused(run, tmp_path, run_cli):
    with pytest.raises(InputError, match=r"t\.xlsx.*\.parquet"):
        merge_run(run[0], tmp_path / "t.xlsx")
    done = run_cli("merge", tmp_path / "nowhere")
    assert (done.code, list(tmp_path.iterdir())) == (2, [])
    assert "no such folder" in done.err


def test_a_new_run_takes_the_old_merged_files_away(run, tmp_path):
    _, result = run
    rlea.write(tmp_path, result, formats=["csv"])
    merge_run(tmp_path)
    assert {"links.csv", "merged.csv", "merged.nt"} <= {path.name for path in tmp_path.iterdir()}
    rlea.write(tmp_path, result)
    assert not {"links.csv", "merged.csv", "merged.nt"} & {path.name for path in tmp_path.iterdir()}
