"""Both ways of reading N-Triples, by columns and by statements, give the same graph or the same error."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlea.errors import InputError
from rlea.graph import KnowledgeGraph
from rlea.graph.iri import to_iri
from rlea.io.readers import ntriples, rdf
from rlea.io.readers.ntriples import RDF_TYPE, RDFS_RESOURCE
from rlea.io.readers.rdf import read_rdf
from small_graphs import literal_frame, put, triple_frame

XSD = "http://www.w3.org/2001/XMLSchema#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
quick = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None, max_examples=60
)


def by_columns(path: Path) -> KnowledgeGraph | None:
    found = rdf._read_by_columns(path)
    return None if found is None else rdf.graph_of(found, path)


def by_statements(path: Path) -> KnowledgeGraph:
    return rdf.graph_of(rdf._read_by_quads(rdf.parse_rdf(path), rdf._BlankLabels(path)), path)


def outcome(read: Callable[[Path], KnowledgeGraph | None], path: Path) -> tuple[str, ...]:
    """What reading gives: the content of the graph, or the error; nothing where the reader declines."""
    try:
        graph = read(path)
    except InputError as error:
        return (str(error),)
    if graph is None:
        return ()
    return (graph.fingerprint, *graph.entities, *graph.relations, *graph.literals.values)


# ---- files of the usual forms ---------------------------------------------------------------------------------------

# A line break in a literal is written as an escape, other odd characters as they are or as an escape.
SHORT = {"\t": "\\t", "\b": "\\b", "\n": "\\n", "\r": "\\r", "\f": "\\f", '"': '\\"', "'": "\\'", "\\": "\\\\"}
letters = st.characters(exclude_categories=["Cs"])


def code_point(character: str, form: int) -> str:
    number = ord(character)
    if form == 0 and number < 0x10000:
        return f"\\u{number:04x}"
    if form == 1 and number >= 0x10000:
        pair = character.encode("utf-16-be").hex()
        return f"\\u{pair[:4]}\\u{pair[4:]}"
    return f"\\U{number:08X}"


@st.composite
def written_values(draw: st.DrawFn) -> str:
    text = ""
    for character in draw(st.text(letters, max_size=8)):
        form = draw(st.integers(0, 5))
        if character in SHORT and (form > 2 or character == "'"):
            text += SHORT[character] if form < 5 or character in '\n\r"\\' else character
        elif character in '\n\r"\\' or form < 3:
            text += code_point(character, form)
        else:
            text += character
    return f'"{text}"'


@st.composite
def written_iris(draw: st.DrawFn) -> str:
    kind = draw(st.integers(0, 4))
    if kind == 0:  # few enough for them to meet
        return f"<http://e/{draw(st.sampled_from('abc'))}>"
    if kind == 1:
        return f"<{to_iri(draw(st.text(letters, min_size=1, max_size=4)))}>"
    if kind == 2:
        return draw(st.sampled_from([f"<{RDF_TYPE}>", f"<{RDFS_RESOURCE}>", "<>", "<urn:rlea:>", "<urn:rlea:%ff>"]))
    text = draw(st.text(letters, max_size=6))
    return "<" + "".join(code_point(c, 0) if c in "<>\\\r\n" or ord(c) % 5 == 0 else c for c in text) + ">"


labels = st.from_regex(r"_:[A-Za-z0-9_][A-Za-z0-9_-]{0,3}", fullmatch=True)
languages = st.from_regex(r"@[A-Za-z]{1,9}(-[A-Za-z0-9]{1,9}){0,2}", fullmatch=True)
datatypes = st.one_of(
    written_iris(), st.sampled_from([f"<{XSD}string>", f"<{XSD}int>", f"<{RDF}langString>", f"<{to_iri('own type')}>"])
).map("^^".__add__)
values = st.tuples(written_values(), st.one_of(st.just(""), languages, datatypes)).map("".join)
nodes = st.one_of(written_iris(), labels)
gaps = st.sampled_from([" ", "", "\t", "  "])
comments = st.one_of(
    st.just(""), st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n")).map("# ".__add__)
)
predicates = st.one_of(written_iris(), st.just(f"<{RDF_TYPE}>"))
statements = st.tuples(
    gaps, nodes, gaps, predicates, gaps, st.one_of(nodes, values), gaps, st.just("."), gaps, comments
).map("".join)
lines = st.one_of(statements, statements, statements, comments, gaps)
graph_names = st.one_of(st.just(""), labels.map(" ".__add__), st.just(" <http://g>"), st.just("\t<http://g h> "))
quads = st.tuples(nodes, predicates, st.one_of(nodes, values), graph_names).map(lambda parts: f"{' '.join(parts)} .")
quad_lines = st.one_of(quads, quads, comments, gaps)


@pytest.mark.parametrize("name", ["x.nt", "x.nq"])
@quick
@given(st.data(), st.sampled_from(["\n", "\r\n"]), st.booleans(), st.sampled_from(["plain", "gzip", "byte order mark"]))
def test_usual_lines_are_read_by_columns_alike(
    tmp_path: Path, name: str, data: st.DataObject, line_end: str, ends: bool, packing: str
) -> None:
    written = data.draw(st.lists(quad_lines if name == "x.nq" else lines, max_size=12))
    content = (line_end.join(written) + (line_end if ends else "")).encode()
    if packing == "gzip":
        content = gzip.compress(content, mtime=0)
    elif packing == "byte order mark":
        content = b"\xef\xbb\xbf" + content
    path = put(tmp_path / name, content)
    found = outcome(by_columns, path)
    assert found
    assert found == outcome(by_statements, path)


# ---- files of any form ----------------------------------------------------------------------------------------------

PIECES = [
    *("<http://a>", "<http://p>", "<", ">", "<<", "<<(", ")>>", "<a b>", "<a<b>", "<é>", "<>", "a", "é", "1", "true"),
    *("_:", "_:a", "_:b.c", "_:é", "_:a.", "_:-a", ":", '"', '"x"', '"é"', "'x'", '"""', '""', "^^", "^", "@", "@en"),
    *("@en-", "-", "@en--ltr", "@é", "@1", "\\", "\\u", "\\u00e9", "\\ud83d", "\\ude00", "\\U0001F600", "\\U00110000"),
    *("\\t", "\\n", '\\"', "\\'", "\\\\", "\\a", "\\u0000", ".", " .", "..", "#", "# c", " ", "\t", "\n", "\r", "\r\n"),
    *("\x00", "\x0b", "\x0c", "\x1c", "\x85", "\xa0", "\u2028", "\ufeff", "\ufffe", "{", "|", "@prefix a: <b> ."),
]
soups = st.lists(st.sampled_from(PIECES), max_size=5).map("".join)
near_statements = st.tuples(
    *(soups, nodes, soups, predicates, soups, st.one_of(nodes, values), soups, st.just("."), soups)
).map(lambda parts: "".join(part for number, part in enumerate(parts) if number % 2 or len(part) < 4))


@settings(quick, max_examples=120)
@given(st.lists(st.one_of(soups, near_statements, statements), max_size=4), st.sampled_from(["x.nt", "x.nq"]))
def test_odd_lines_give_the_same_graph_or_the_same_error(tmp_path: Path, written: list[str], name: str) -> None:
    path = put(tmp_path / name, "\n".join(written))
    expected = outcome(by_statements, path)
    assert outcome(by_columns, path) in ((), expected)
    assert outcome(read_rdf, path) == expected


A, P = "<http://a>", "<http://p>"
BAD = [
    f'{A} {P} "x"',
    f'{A} {P} "x" . {A} {P} "y" .',
    f'{A} {P} "x',
    f'{A} {P} "\\a" .',
    f'{A} {P} "\\u12G4" .',
    f'{A} {P} "\\ud83d" .',
    f'{A} {P} "\\ude00\\ud83d" .',
    f'{A} {P} "\\U0000D800" .',
    f'{A} {P} "\\U00110000" .',
    f'{A} {P} "x"@en_US .',
    f'{A} {P} "x"@en- .',
    f'{A} {P} "x"^^xsd:int .',
    f"{A} {P} 'x' .",
    f"{A} _:p {A} .",
    f'"x" {P} {A} .',
    f"{A} {P} {A} {A} .",
    f"{A} {P} <<( {A} {P} {A} )>> .",
    f"{A} {P} <<(> .",
    f"_:a..b {P} _:c.. .",
    f"_:-a {P} {A} .",
    f"<a\\tb> {P} {A} .",
    f"<a\\> {P} {A} .",
    f"{A}\xa0{P} {A} .",
    f"\ufeff{A} {P} {A} .",
    f"{A}\r{P} {A} .",
    "head\trelation\ttail",
    f"{A} {P} {A} ...",
    b'<http://a> <http://p> "\xff" .',
    b'<http://a> <http://p> "\xed\xa0\x80" .',
]
RARE = [
    f'{A} {P} "x" .\r{A} {P} "y" .',
    f'{A} {P} "x"@en--ltr .',
    f'{A} {P} "x" @en .',
    f'{A} {P} "x"^^ <http://d> .',
    f"<http://a<b> {P} {A} .",
    f"_:a.b {P} _:é .",
]
SEVERAL = [f'{A} {P} "two\nlines" .', b'# \xff\n<http://a> <http://p> "x" .']  # of which the first is nothing by itself


@pytest.mark.parametrize("line", [*BAD, *RARE, *SEVERAL], ids=repr)
def test_bad_and_rare_forms_are_left_to_the_parser(line: str | bytes, tmp_path: Path) -> None:
    lines = [f"<http://e/{number}> {P} <http://e/{number * 7 % 50}> .".encode() for number in range(50)]
    lines[30] = line.encode() if isinstance(line, str) else line
    path = put(tmp_path / "x.nt", b"\n".join([*lines, b""]))
    assert (by_columns(path) is not None) == (line in RARE)
    assert outcome(read_rdf, path) == outcome(by_statements, path)
    if line in (*RARE, *SEVERAL):
        assert read_rdf(path).num_entities > 50
        return
    with pytest.raises(InputError) as raised:
        read_rdf(path)
    assert "<<( " in str(line) or raised.value.line in (31, 32)  # where the parser sees it


# ---- blocks ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("block_bytes", [1, 7, 64, 300, 1000])
@pytest.mark.parametrize("packing", ["plain", "gzip"])
def test_blocks_do_not_show(block_bytes: int, packing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "\r\n".join(
        f'<http://e/{number % 20}> <http://é/{number % 3}> "{"ä" * (number % 9)}\\n"@de .\r\n'
        f"<http://e/{number}> <{RDF_TYPE}> <http://e/{number % 4}> . # ü"
        for number in range(60)
    ).encode()
    path = put(tmp_path / "x.nt", gzip.compress(text) if packing == "gzip" else text)
    expected = outcome(by_columns, path)
    assert expected == outcome(by_statements, path)
    monkeypatch.setattr(ntriples, "_BLOCK_BYTES", block_bytes)
    # Below the length of a line the file is left to the parser, or read if the pieces happen to suffice.
    assert outcome(by_columns, path) in ([expected] if block_bytes > 200 else [expected, ()])
    assert outcome(read_rdf, path) == expected


def test_a_line_without_end_is_not_collected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ntriples, "_BLOCK_BYTES", 100)
    path = put(tmp_path / "x.nt", f'{A} {P} "{"x" * 1000}" .')
    assert by_columns(path) is None
    assert [len(value) for value in read_rdf(path).literals.values] == [1000]


# ---- what it stands on ----------------------------------------------------------------------------------------------

words = st.text(letters, max_size=3)


@quick
@given(st.lists(st.tuples(words, words, words)), st.lists(st.tuples(words, words, words, words, words)), st.booleans())
def test_categories_and_strings_build_the_same_graph(
    triples: list[tuple[str, ...]], literals: list[tuple[str, ...]], shared: bool
) -> None:
    heads, facts = triple_frame(triples), literal_frame(literals)
    kinds = [pl.Categorical(pl.Categories.random()) for _ in range(2)]
    coded_heads = heads.with_columns(pl.col("head", "relation").cast(kinds[0]), pl.col("tail").cast(kinds[shared]))
    coded_facts = facts.with_columns(pl.exclude("value", "language").cast(kinds[0]))
    plain = KnowledgeGraph.build(heads, facts, entities=["alone"])
    coded = KnowledgeGraph.build(coded_heads, coded_facts, entities=["alone"])
    assert plain.fingerprint == coded.fingerprint
    assert set(plain.entities) == {"alone"} | {row[0] for row in (*triples, *literals)} | {row[2] for row in triples}
    assert {tuple(plain.entities[n] for n in (h, t)) for h, _, t in plain.triples} == {(h, t) for h, _, t in triples}
    assert len(plain.literals) == len(set(literals))
    assert plain.entities == tuple(sorted(plain.entities))
