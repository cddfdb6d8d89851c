"""Values in the tails of a table of triples are told from entities, and graphs of entities stay as they are."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlea.io.read import read
from rlea.io.readers import read_graph
from rlea.io.readers.values import tell_values
from small_graphs import facts, put, relations, triple_frame

PEOPLE = [
    ("person/1", "knows", "person/2"),
    ("person/2", "knows", "person/3"),
    ("person/1", "livesIn", "city/Basel"),
    ("person/1", "born", "1971-09-15"),
    ("person/2", "born", "1980-01-02"),
    ("person/2", "height", "120.5"),
    ("person/1", "nick", "Bea"),
    ("city/Basel", "name", "Basel"),
    ("city/Basel", "population", "178120"),
]
VALUES = {"born", "height", "nick", "name", "population"}


def text(rows: list[tuple[str, ...]], separator: str = "\t") -> str:
    return "".join(separator.join(row) + "\n" for row in rows)


@pytest.mark.parametrize("kind", ["tsv", "csv", "txt"])
@pytest.mark.parametrize("prefix", ["", "http://e/", "e:"])
def test_values_become_literals(kind: str, prefix: str, tmp_path: Path) -> None:
    rows = [(prefix + h, r, t if r in VALUES else prefix + t) for h, r, t in PEOPLE]
    path = put(tmp_path / f"people.{kind}", text(rows, "," if kind == "csv" else "\t"))
    graph = read_graph(path)
    assert relations(graph) == {row for row in rows if row[1] not in VALUES}
    assert facts(graph) == {(*row, "", "") for row in rows if row[1] in VALUES}
    (note,) = graph.notes
    assert note.startswith(f"people.{kind}: the tails of 5 relations (born, height, name, nick, population)")
    assert note in read(path, path).notes


def test_codes_have_words_as_values() -> None:
    rows = [(f"p{n}", "knows", f"p{n + 1}") for n in range(20)] + [("p1", "city", "Basel"), ("p2", "city", "Wien")]
    rows += [("p1", "boss", "Q42"), ("p2", "room", "12"), ("p3", "born", "1971-09-15"), ("p4", "says", "hello you")]
    triples, literals, _ = tell_values(triple_frame(rows))
    assert literals is not None
    assert {*literals["attribute"]} == {"city", "born", "says"}
    assert {*triples["relation"]} == {"knows", "boss", "room"}


def test_values_in_the_notation_of_ntriples() -> None:
    rows = [("e:1", "e:near", "e:2"), ("e:1", "e:label", '"Wien"@de'), ("e:2", "e:year", '"1990"^^<http://x#gYear>')]
    _, literals, _ = tell_values(triple_frame(rows))
    assert literals is not None
    assert set(literals.rows()) == {
        ("e:1", "e:label", "Wien", "", "de"),
        ("e:2", "e:year", "1990", "http://x#gYear", ""),
    }


def test_a_relation_with_a_tail_that_is_a_head_is_one_of_entities() -> None:
    rows = [("Bern", "near", "Wien"), ("Wien", "near", "Graz am See"), ("Wien", "has", "St Stephen")]
    triples, literals, _ = tell_values(triple_frame(rows))
    assert literals is not None
    assert {*triples["relation"]} == {"near"}
    assert {*literals["value"]} == {"St Stephen"}


def test_only_a_lone_text_file_is_looked_at(tmp_path: Path) -> None:
    names = ["head", "relation", "tail"]
    frame = pl.DataFrame(PEOPLE, schema=names, orient="row")
    frame.write_parquet(tmp_path / "x.parquet")
    put(tmp_path / "folder" / "triples.tsv", text(PEOPLE))
    put(tmp_path / "folder" / "names.tsv", "entity\tname\nperson/1\tAnna\n")
    for given_ in (tmp_path / "x.parquet", tmp_path / "folder", frame, PEOPLE):
        graph = read(given_, [("a", "r", "b")]).source
        assert relations(graph) == set(PEOPLE)
        assert graph.notes == ()


local = st.text(
    st.characters(codec="ascii", categories=["L", "N"], include_characters="_-.%()"), min_size=1, max_size=9
)
number = st.integers(0, 99_999)
IDENTIFIERS = {
    "iris": local.map("http://example.org/resource/{}".format),
    "bracketed iris": local.map("<http://example.org/{}>".format),
    "iris of several kinds": st.tuples(st.sampled_from(["http://a.org/", "urn:b:", "https://c.org/x#"]), local).map(
        "".join
    ),
    "curies": st.tuples(st.sampled_from(["wd", "dbr", "ex"]), local).map(":".join),
    "kinds": st.tuples(st.sampled_from(["city", "person"]), local).map("/".join),
    "freebase": local.map("/m/{}".format),
    "letters and numbers": number.map("p{}".format),
    "wikidata": number.map("Q{}".format),
    "numbers": number.map(str),
    "padded numbers": number.map("{:08}".format),
    "words": st.from_regex(r"[A-Z][a-z]{2,9}(_[A-Z][a-z]{2,9}){0,2}", fullmatch=True),
    "names": st.from_regex(r"[A-Z][a-z]{2,9}( [A-Z][a-z]{2,9}){1,2}", fullmatch=True),
}


@pytest.mark.parametrize("kind", IDENTIFIERS)
def test_graphs_of_entities_stay_as_they_are(kind: str) -> None:
    rows = st.lists(
        st.tuples(IDENTIFIERS[kind], st.sampled_from(["r", "q"]), IDENTIFIERS[kind]), min_size=1, max_size=30
    )

    @given(rows)
    def check(triples: list[tuple[str, str, str]]) -> None:
        kept, literals, note = tell_values(triple_frame(triples))
        assert (kept.rows(), literals, note) == (triples, None, "")

    check()


@given(st.lists(st.tuples(IDENTIFIERS["iris"], IDENTIFIERS["iris"], st.text(min_size=1)), min_size=1, max_size=20))
def test_no_triple_is_lost(triples: list[tuple[str, str, str]]) -> None:
    kept, literals, note = tell_values(triple_frame(triples))
    moved = 0 if literals is None else len(literals)
    assert len(kept) + moved == len(triples)
    assert bool(moved) == bool(note)


@given(
    st.lists(st.tuples(IDENTIFIERS["words"], st.just("r"), st.one_of(number.map(str), local.map("http://x/{}".format))))
)
def test_opaque_identifiers_and_iris_are_entities_beside_names(triples: list[tuple[str, str, str]]) -> None:
    assert tell_values(triple_frame(triples))[1] is None
