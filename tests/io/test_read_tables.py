from __future__ import annotations

import bz2
import csv
import gzip
import lzma
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlea.errors import InputError
from rlea.io.readers import read_graph
from rlea.io.readers.columns import read_table
from rlea.io.readers.link_files import read_link_rows
from rlea.io.readers.tables import TABLES, read_triples_table
from small_graphs import relations

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
