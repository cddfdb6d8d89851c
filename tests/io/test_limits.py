"""A few bytes that stand for gigabytes are refused before the memory is taken, and every limit can be set."""

import gzip
import io
import os
import zipfile
from pathlib import Path

import polars as pl
import pytest
import zstandard

import rlea
from rlea.errors import InputError
from rlea.io import limits
from rlea.io.readers import read_graph
from rlea.io.readers.link_files import read_link_rows
from rlea.io.readers.rdf import NestedJson
from rlea.io.readers.text import read_bytes

HEAD = '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/">'
FACT = '<rdf:Description rdf:about="http://a"><e:r rdf:resource="http://b"/></rdf:Description></rdf:RDF>'
LINE = b"<http://a> <http://b> <http://c> .\n"


def bomb(levels):
    """A chain of declared entities, each ten times the one before, and no use of them."""
    chain = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, levels))
    return f'<?xml version="1.0"?>\n<!DOCTYPE r [<!ENTITY a0 "{"a" * 10}">{chain}]>\n{HEAD}{FACT}'


@pytest.mark.parametrize("read", [read_graph, read_link_rows])
def test_entities_that_nobody_uses_are_not_expanded(read, tmp_path):
    path = tmp_path / "x.rdf"
    path.write_text(bomb(7))  # ten million characters: enough to see, not enough to hurt
    with pytest.raises(InputError, match=r"x\.rdf, line 2: declares entities .* RLEA_MAX_ENTITY_CHARACTERS"):
        read(path)


def test_entities_within_the_limit_are_read(monkeypatch, tmp_path):
    path = tmp_path / "x.rdf"
    path.write_text(bomb(3))
    assert read_graph(path).num_triples == 1
    monkeypatch.setenv("RLEA_MAX_ENTITY_CHARACTERS", "1000")
    with pytest.raises(InputError, match="1,000 characters"):
        read_graph(path)


def test_deep_nesting_is_refused(tmp_path):
    path, depth = tmp_path / "x.rdf", limits.NESTING.value
    inner = "<rdf:Description><e:r>" * depth + "</e:r></rdf:Description>" * depth
    path.write_text(HEAD + inner + "</rdf:RDF>")
    with pytest.raises(InputError, match="more than 500 elements within each other"):
        read_graph(path)


def nested(depth):
    """JSON-LD of nodes in nodes, with brackets in strings, behind quotes and backslashes, which count for nothing."""
    text = r'"http://q": "[[{{ \" [ \\"'
    return f'{{"@id": "http://a", {text}, "http://p": ' + '{"http://p": ' * depth + "1" + "}" * (depth + 1)


def test_deep_json_is_refused(tmp_path):
    path, depth = tmp_path / "x.jsonld", limits.NESTING.value
    path.write_text(nested(depth - 1))
    assert read_graph(path).num_triples == depth - 1
    path.write_text(nested(100 * depth))
    with pytest.raises(
        InputError, match=r"x\.jsonld: has more than 500 brackets within each other; .* RLEA_MAX_NESTING"
    ):
        read_graph(path)


@pytest.mark.parametrize("size", [1, 2, 3, 50])
def test_json_may_end_a_piece_anywhere(size, monkeypatch):
    monkeypatch.setenv("RLEA_MAX_NESTING", "9")
    for depth, is_deep in ((8, False), (9, True)):
        stream = NestedJson(io.BytesIO(nested(depth).encode()), Path("x.jsonld"))
        pieces = iter(lambda stream=stream: stream.read(size), b"")
        if is_deep:
            with pytest.raises(InputError, match="more than 9 brackets"):
                list(pieces)
        else:
            assert b"".join(pieces) == nested(depth).encode()


@pytest.mark.parametrize("name", ["x.csv", "x.tsv", "x.parquet"])
def test_tables_of_too_many_columns_are_refused(name, monkeypatch, tmp_path):
    path = tmp_path / name
    frame = pl.DataFrame({f"c{n}": [f"x{n}", f"y{n}"] for n in range(30)})
    frame.write_parquet(path) if name == "x.parquet" else frame.write_csv(
        path, separator="\t" if name == "x.tsv" else ","
    )
    assert len(read_graph(path).attributes) == 30
    monkeypatch.setenv("RLEA_MAX_COLUMNS", "29")
    with pytest.raises(InputError, match=r"has more than 29 columns; .* RLEA_MAX_COLUMNS"):
        read_graph(path)


@pytest.mark.parametrize("name", ["x.nt", "x.ttl", "x.tsv"])
@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_an_archive_unpacks_to_so_many_times_its_size(name, pack, monkeypatch, tmp_path):
    monkeypatch.setattr("rlea.io.readers.compression.UNPACKED_FREE", 10_000)
    path = tmp_path / f"{name}.gz"
    path.write_bytes(pack((b"a\tb\tc\n" if name == "x.tsv" else LINE) * 50_000))
    with pytest.raises(InputError, match=r"unpacks to more than 100 times its size; .* RLEA_MAX_UNPACKED_RATIO"):
        read_graph(path)
    monkeypatch.setenv("RLEA_MAX_UNPACKED_RATIO", "100000")
    assert read_graph(path).num_triples == 1


def test_what_is_unpacked_below_the_limit_is_the_same(tmp_path):
    content = os.urandom(200_000) + bytes(300_000)
    (tmp_path / "x.gz").write_bytes(gzip.compress(content))
    assert read_bytes(tmp_path / "x.gz") == content


def test_a_workbook_that_unpacks_to_too_much_is_refused(monkeypatch, tmp_path):
    pytest.importorskip("fastexcel")
    monkeypatch.setattr(limits, "UNPACKED_FREE", 10_000)
    with zipfile.ZipFile(tmp_path / "x.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", bytes(1_000_000))
    with pytest.raises(InputError, match="times its size"):
        read_graph(tmp_path / "x.xlsx")


def test_parquet_of_one_value_is_refused_by_its_rows(monkeypatch, tmp_path):
    monkeypatch.setattr("rlea.io.readers.columns.UNPACKED_FREE", 10_000)
    pl.DataFrame({name: ["x"] * 500_000 for name in ("head", "relation", "tail")}).write_parquet(tmp_path / "x.parquet")
    with pytest.raises(InputError, match="times its size"):
        read_graph(tmp_path / "x.parquet")


@pytest.mark.parametrize(
    ("variable", "graph"),
    [
        ("RLEA_MAX_IDENTIFIER", [("a" * 101, "r", "b")]),
        ("RLEA_MAX_IDENTIFIER", [("a", "r" * 101, "b")]),
        ("RLEA_MAX_LITERAL", {"triples": [("a", "r", "b")], "literals": [("a", "text", "x" * 101)]}),
    ],
)
def test_lengths(variable, graph, monkeypatch):
    other = [("c", "r", "d")]
    assert rlea.read(graph, other).source.num_triples == 1
    monkeypatch.setenv(variable, "100")
    for pair, side in (((graph, other), "source"), ((other, graph), "target")):
        with pytest.raises(InputError, match=rf"the {side} graph has .* more than 100 characters; .* {variable}"):
            rlea.read(*pair)


def test_a_limit_that_is_no_number_is_refused(monkeypatch):
    monkeypatch.setenv("RLEA_MAX_LITERAL", "many")
    with pytest.raises(InputError, match="RLEA_MAX_LITERAL is 'many'; give a whole number"):
        rlea.read([("a", "r", "b")], [("c", "r", "d")])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
@pytest.mark.parametrize("name", ["x.nt", "x.csv", "x.rdf"])
def test_a_pipe_is_not_waited_for(name, tmp_path):
    os.mkfifo(tmp_path / name)
    with pytest.raises(InputError, match="is a pipe or a device"):
        read_graph(tmp_path / name)
