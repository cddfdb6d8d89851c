from __future__ import annotations

import bz2
import csv
import gzip
import lzma
from pathlib import Path
from typing import Any
from unittest.mock import patch

import polars as pl
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlea.errors import InputError
from rlea.io.readers import read_graph, text
from rlea.io.readers.columns import read_table
from rlea.io.readers.link_files import read_link_rows
from rlea.io.readers.literals import XSD_STRING
from rlea.io.readers.tables import TABLES, read_triples_table
from small_graphs import facts, literal_frame, relations, triple_frame

ROWS = [("b", "r", "a"), ("a", "q", "c,d"), ('"x"', "r", "a")]


def put(path: Path, rows: list[tuple[str, ...]], header: tuple[str, ...] = ()) -> Path:
    """Write a table by the extension of its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [header, *rows] if header else rows
    if path.suffix == ".parquet":
        pl.DataFrame(rows[1:], schema=list(header), orient="row").write_parquet(path)
    elif path.suffix == ".csv":
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(rows)
    else:
        path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8", newline="")
    return path


@pytest.mark.parametrize("header", [(), ("head", "relation", "tail"), ("Subject", "predicate", " object ")])
@pytest.mark.parametrize("suffix", [".tsv", ".csv", ".txt", ".parquet"])
def test_formats_and_headers(suffix: str, header: tuple[str, ...], tmp_path: Path) -> None:
    if suffix == ".parquet" and not header:
        header = ("head", "relation", "tail")
    graph = read_graph(put(tmp_path / f"x{suffix}", list(ROWS), header))
    assert relations(graph) == set(ROWS)
    assert '"x"' in graph.entities  # quotes are kept where they are no syntax, and survive where they are


def test_columns_are_found_by_name(tmp_path: Path) -> None:
    rows = [("1", tail, head, relation) for head, relation, tail in ROWS]
    path = put(tmp_path / "x.csv", rows, ("row", "tail", "head", "relation"))
    assert relations(read_graph(path)) == set(ROWS)


def test_a_known_word_alone_is_no_header(tmp_path: Path) -> None:
    path = put(tmp_path / "x.tsv", [("head", "partOf", "body"), ("hand", "partOf", "body")])
    assert ("head", "partOf", "body") in relations(read_graph(path))


@pytest.mark.parametrize("kind", ["tsv", "csv"])
@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, zstandard.compress])
def test_compressed_tables(kind: str, pack: Any, tmp_path: Path) -> None:
    plain = put(tmp_path / f"x.{kind}", list(ROWS))
    ending = {gzip.compress: "gz", bz2.compress: "bz2", lzma.compress: "xz"}.get(pack, "zst")
    packed = tmp_path / f"y.{kind}.{ending}"
    packed.write_bytes(pack(plain.read_bytes()))
    assert read_graph(packed).fingerprint == read_graph(plain).fingerprint
    links = tmp_path / f"links.{kind}.{ending}"
    links.write_bytes(pack("a\tb\n".replace("\t", "," if kind == "csv" else "\t").encode()))
    assert (read_link_rows(links).sources, read_link_rows(links).targets) == (("a",), ("b",))


def test_whole_numbers_in_parquet_are_identifiers(tmp_path: Path) -> None:
    frame = pl.DataFrame({"head": [1, 2], "relation": ["r", "r"], "tail": [3, 10]})
    frame.write_parquet(tmp_path / "x.parquet")
    assert relations(read_graph(tmp_path / "x.parquet")) == {("1", "r", "3"), ("2", "r", "10")}


def test_folder_of_tables(tmp_path: Path) -> None:
    put(tmp_path / "triples.tsv", list(ROWS))
    put(
        tmp_path / "literals.csv",
        [("a", "label", "one\ntwo", "http://www.w3.org/2001/XMLSchema#string", ""), ("b", "label", "", "", "EN")],
        ("entity", "attribute", "value", "datatype", "language"),
    )
    put(tmp_path / "names.parquet", [("a", "Anna"), ("alone", "Nobody"), ("b", "")], ("entity", "name"))
    graph = read_triples_table(tmp_path)
    assert relations(graph) == set(ROWS)
    assert graph.entities == ('"x"', "a", "alone", "b", "c,d")
    assert graph.names == ('"x"', "Anna", "Nobody", "b", "c,d")
    assert graph.literals.values == ("one\ntwo", "")
    assert graph.literals.datatypes == ("", "")
    assert graph.literals.languages == ("", "en")


def test_literals_without_types(tmp_path: Path) -> None:
    put(tmp_path / "triples.csv", list(ROWS))
    put(tmp_path / "literals.tsv", [("a", "label", 'stray " quote')])
    graph = read_graph(tmp_path)
    assert graph.literals.values == ('stray " quote',)
    assert graph.literals.languages == ("",)


def test_line_numbers_count_lines_within_quotes(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text('a,r,"b\nc"\n\na,r,d\na,r\n', encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_graph(tmp_path / "x.csv")
    assert caught.value.line == 5


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=8)


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(st.lists(st.tuples(texts, texts, texts), min_size=1, max_size=5))
def test_csv_holds_any_text_and_tsv_any_without_tabs_and_line_ends(
    tmp_path: Path, suffix: str, rows: list[tuple[str, ...]]
) -> None:
    broken = str.maketrans("\t\n\r", "---") if suffix == ".tsv" else {}
    rows = [tuple(text.translate(broken) for text in row) for row in rows]
    rows = [row for row in rows if all(text.strip() for text in row)] or [("a", "b", "c")]
    path = put(tmp_path / f"x{suffix}", list(rows), ("head", "relation", "tail"))
    assert read_table(path, TABLES["triples"]).frame.select("head", "relation", "tail").rows() == rows


@pytest.mark.parametrize("block", [1, 5, 4_000_000])
@given(st.text("ab\t\n\r ", max_size=30).filter(str.strip), st.booleans())
def test_pieces_of_a_text_do_not_show(block, content, keep_tabs):
    def outcome():
        try:
            return text._split(Path("x.tsv"), content, ["0", "1"], keep_tabs).rows()
        except InputError as error:
            return str(error)

    whole = outcome()
    with patch.object(text, "_BLOCK", block):
        assert outcome() == whole


@pytest.mark.parametrize("ending", ["tsv", "csv", "parquet"])
def test_categories_hold_what_strings_hold(tmp_path, ending):
    # Of a folder with several tables, identifiers are kept as categories, and literals are changed by these.
    tables = {
        "triples": triple_frame([("a", "r", "b"), ("b", "a", "é"), ("a", "r", "b")]),
        "literals": literal_frame(
            [
                ("a", "p", "1", XSD_STRING, ""),
                ("a", "p", "1", "", ""),
                ("b", "p", "x", "", "DE-at"),
                ("r", "q", "", "d", ""),
            ]
        ),
        "names": pl.DataFrame({"entity": ["z", "a"], "name": ["Zett", ""]}),
    }
    for stem, frame in tables.items():
        path = tmp_path / f"{stem}.{ending}"
        if ending == "parquet":
            frame.write_parquet(path)
        else:
            frame.write_csv(path, separator="\t" if ending == "tsv" else ",", quote_style="never")
    graph = read_graph(tmp_path)
    assert relations(graph) == {("a", "r", "b"), ("b", "a", "é")}
    assert facts(graph) == {("a", "p", "1", "", ""), ("b", "p", "x", "", "de-at"), ("r", "q", "", "d", "")}
    assert dict(zip(graph.entities, graph.names, strict=True)) == {"a": "a", "b": "b", "r": "r", "z": "Zett", "é": "é"}


def test_two_names_of_one_entity_are_refused_by_their_row(tmp_path):
    triple_frame([("a", "r", "b")]).write_parquet(tmp_path / "triples.parquet")
    rows = pl.DataFrame({"entity": ["a", "b", "a"], "name": ["A", "B", "Other"]})
    rows.write_parquet(tmp_path / "names.parquet")
    with pytest.raises(InputError, match=r"row 3: gives 'a' the name 'Other' after 'A'"):
        read_graph(tmp_path)
