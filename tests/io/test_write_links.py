from __future__ import annotations

import csv
import io
import json
import os
import re
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pyoxigraph
import pytest
import rdflib
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlea.errors import InputError
from rlea.graph.iri import from_iri
from rlea.io.readers.link_files import read_link_rows
from rlea.io.writers import LINK_FILES, LinkRows, MappingSet, justification_of, write_links, write_links_file
from rlea.io.writers.alignment_api import ALIGNMENT
from rlea.io.writers.iris import strict_iri
from rlea.io.writers.sameas import SAME_AS
from rlea.matching import Matching
from small_graphs import only_entities
from sssom_tool import parse_sssom, quiet

REAL = [
    "http://dbpedia.org/resource/Looney_Tunes_Super_Stars'_Bugs_Bunny:_Hare_Extraordinaire",
    "http://fr.dbpedia.org/resource/Powiat_de_Leszno",
    "http://fr.dbpedia.org/resource/Frölunda_HC",
    "http://fr.dbpedia.org/resource/Fr%C3%B6lunda_HC",
    "http://zh.dbpedia.org/resource/北京市",
    "http://dbpedia.org/resource/No_Way_Back/Cold_Day_in_the_Sun",
    "http://dbpedia.org/resource/100%",
    "http://dbpedia.org/resource/Who's_Next?",
    "http://www.wikidata.org/entity/Q42",
    "http://www.w3.org/2004/02/skos/core#Concept",
    "http://example.org/",
    "http://example.org//a",
    "http://example.org",
    "http://example.org/a#b/c",
    "http://例え.jp/ア",
    "http://[::1]/a",
    "mailto:someone@example.org",
    "urn:isbn:0451450523",
    "urn:rlea:Berlin",
    "Deh_Bonyad",
    "Category:Rivers",
    "a|b",
    'He said "no" & <left>',
    "#42",
    "  spaces  ",
]
identifiers = st.one_of(
    st.sampled_from(REAL),
    # Identifiers that are nothing but space cannot come from a reader, and no reader takes them back.
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1).filter(str.strip),
    st.text(min_size=1, alphabet="ab%/:#?&;é汉\U0001f600[]'\"<>|\\ ").map(lambda text: f"http://example.org/{text}"),
)
links = st.lists(st.tuples(identifiers, identifiers, st.floats(0, 1)), min_size=1, max_size=12)
many = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def rows_of(found) -> LinkRows:
    return LinkRows.sort([row[0] for row in found], [row[1] for row in found], [row[2] for row in found])


def real_rows() -> LinkRows:
    return LinkRows.sort(
        REAL,
        REAL[::-1],
        np.linspace(0, 1, len(REAL)),
        [f'the "{n}"\tname\n' for n in range(len(REAL))],
        ["汉字\u2028"] * len(REAL),
    )


# ---- rows -----------------------------------------------------------------------------------------------------------


def test_rows_of_a_matching_are_sorted_by_confidence_then_identifiers():
    source, target = only_entities("s0", "s1", "s2", "s3"), only_entities("t0", "t1", "t2", "t3")
    # The first two differ by less than what is printed, so their identifiers decide.
    matching = Matching.of([3, 1, 0, 2], [0, 1, 2, 3], [0.5 + 1e-9, 0.5, 0.25, 1.0])
    rows = LinkRows.of(matching, source, target)
    assert rows.sources == ("s2", "s1", "s3", "s0")
    assert rows.targets == ("t3", "t1", "t0", "t2")
    assert rows.printed_confidences() == ["1.000000", "0.500000", "0.500000", "0.250000"]
    assert rows.source_names[0] == "name of s2"
    assert rows.target_names[0] == "name of t3"


@given(links, st.randoms())
def test_order_of_rows_hangs_on_their_content_only(found, random):
    shuffled = found[:]
    random.shuffle(shuffled)
    once, again = rows_of(found), rows_of(shuffled)
    assert (once.sources, once.targets) == (again.sources, again.targets)
    assert once.printed_confidences() == again.printed_confidences()
    assert once.printed_confidences() == sorted(once.printed_confidences(), reverse=True)


def test_rows_refuse_what_does_not_fit_together():
    one = np.ones(1)
    for arguments in [
        (("a",), (), one),
        (("a",), ("b",), np.ones(2)),
        (("a",), ("b",), one, ("A",), ()),
        (("a", "b"), ("c", "d"), np.ones(2), ("A",), ("B",)),
        (("a",), ("b",), np.array([1.5])),
        (("a",), ("b",), np.array([np.nan])),
    ]:
        with pytest.raises(ValueError):
            LinkRows(*arguments)


# ---- TSV ------------------------------------------------------------------------------------------------------------


def test_tsv_is_plain_and_refuses_what_would_break_a_row(tmp_path):
    path = tmp_path / "l.tsv"
    write_links_file(path, LinkRows.sort(["b", 'a"'], ["y", "x"], [0.25, -0.0]))
    before = b'source\ttarget\tconfidence\nb\ty\t0.250000\na"\tx\t0.000000\n'
    assert path.read_bytes() == before
    for character in "\t\n\r":
        with pytest.raises(InputError, match=r"l\.tsv.*another format"):
            write_links_file(path, LinkRows.sort(["a", f"b{character}c"], ["x", "y"], [1, 0]))
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["l.tsv"]


# ---- all formats ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["l.tsv", "l.sssom.tsv", "l.nt", "l.rdf", "l.csv", "l.parquet", "l.jsonl"])
@many
@given(found=links)
def test_reading_back_gives_the_same_links(tmp_path, name, found):
    if name == "l.tsv":
        found = [(*(re.sub("[\t\n\r]", "_", text) for text in row[:2]), row[2]) for row in found]
    rows = rows_of(found)
    write_links_file(tmp_path / name, rows)
    back = read_link_rows(tmp_path / name)
    assert back.sources == rows.sources
    assert back.targets == rows.targets
    if name == "l.nt":
        assert np.isnan(back.confidences).all()
    else:
        np.testing.assert_allclose(back.confidences, rows.confidences, atol=5e-7)


def test_same_links_same_bytes_whatever_their_order(tmp_path):
    rows, about = real_rows(), MappingSet(mapping_date="2026-01-31")
    other = LinkRows.sort(*(values[::-1] for values in vars(rows).values()))
    every = {"formats": tuple(LINK_FILES), "about": about}
    assert write_links(tmp_path / "a", rows, **every) == [tmp_path / "a" / name for name in LINK_FILES.values()]
    write_links(tmp_path / "b", other, **every)
    for name in LINK_FILES.values():
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes() != b""


def test_links_come_together_with_further_files_or_not_at_all(tmp_path):
    rows = LinkRows.sort(["a\tb"], ["x"], [1.0])
    with pytest.raises(InputError):
        write_links(tmp_path / "out", rows, extra={"run.json": "{}\n"})
    assert os.listdir(tmp_path) == []
    paths = write_links(tmp_path / "out", rows, formats=["sameas", "sssom"], extra={"run.json": "{}\n"})
    assert sorted(os.listdir(tmp_path / "out")) == ["links.nt", "links.sssom.tsv", "run.json"]
    assert sorted(path.name for path in paths) == sorted(os.listdir(tmp_path / "out"))
    assert (tmp_path / "out" / "run.json").read_text() == "{}\n"


@pytest.mark.parametrize("name", ["l.tsv", "l.sssom.tsv", "l.csv", "l.parquet", "l.jsonl"])
def test_labels_are_read_back_where_a_format_has_a_place_for_them(tmp_path, name):
    rows = LinkRows.sort(["a", "b"], ["x", "y"], [0.5, 0.75], ["An a, or A", "B"], ["X", ""])
    write_links_file(tmp_path / name, rows)
    back = read_link_rows(tmp_path / name)
    assert (back.source_labels, back.target_labels) == (("B", "An a, or A"), ("", "X"))
    write_links_file(tmp_path / name, LinkRows.sort(["a"], ["x"], [0.5]))
    assert read_link_rows(tmp_path / name).source_labels == ()


def test_tables_of_links_are_as_other_programs_expect_them(tmp_path):
    rows = LinkRows.sort(["a", "b, c"], ["x", "y"], [0.5, 0.75], ["A", "B"], ["X", "Y"])
    write_links(tmp_path, rows, formats=("csv", "jsonl", "parquet"))
    header = "source,target,confidence,source_label,target_label\n"
    assert (tmp_path / "links.csv").read_text() == header + '"b, c",y,0.750000,B,Y\na,x,0.500000,A,X\n'
    first = (tmp_path / "links.jsonl").read_text().split("\n")[0]
    assert json.loads(first) == dict(zip(header.strip().split(","), ("b, c", "y", 0.75, "B", "Y"), strict=True))
    assert pl.read_parquet(tmp_path / "links.parquet").rows() == [
        ("b, c", "y", 0.75, "B", "Y"),
        ("a", "x", 0.5, "A", "X"),
    ]


def test_unknown_formats_are_refused(tmp_path):
    rows = LinkRows.sort(["a"], ["x"], [1.0])
    with pytest.raises(InputError, match=r"l\.docx.*\.sssom\.tsv"):
        write_links_file(tmp_path / "l.docx", rows)
    with pytest.raises(InputError, match=r"'word'.*sssom"):
        write_links(tmp_path / "out", rows, formats=["tsv", "word"])
    assert os.listdir(tmp_path) == []


def test_no_links_are_a_valid_result(tmp_path):
    write_links(tmp_path, LinkRows.sort([], [], []), formats=tuple(LINK_FILES))
    for name in ("links.csv", "links.parquet", "links.jsonl"):
        assert len(read_link_rows(tmp_path / name)) == 0
    assert (tmp_path / "links.tsv").read_text() == "source\ttarget\tconfidence\tsource_label\ttarget_label\n"
    assert (tmp_path / "links.nt").read_text() == ""
    assert ElementTree.parse(tmp_path / "links.rdf").getroot().tag.endswith("RDF")
    assert "subject_id\t" in (tmp_path / "links.sssom.tsv").read_text()


# ---- RDF ------------------------------------------------------------------------------------------------------------


@given(identifiers)
def test_strict_iris_are_iris_and_lead_back(identifier):
    iri = strict_iri(identifier)
    assert pyoxigraph.NamedNode(iri).value == iri  # raises on what is no IRI
    assert from_iri(iri) == identifier


def test_strict_iris_leave_iris_alone():
    kept = [text for text in REAL if strict_iri(text) == text]
    assert len(kept) == 17
    assert {text for text in REAL if re.match("https?://|urn:isbn|mailto:|Category:", text)} - set(kept) == {
        "http://dbpedia.org/resource/100%",
        "http://[::1]/a",
    }


def test_sameas_in_two_parsers(tmp_path):
    rows = real_rows()
    write_links_file(tmp_path / "l.nt", rows)
    wanted = {(strict_iri(s), SAME_AS, strict_iri(t)) for s, t in zip(rows.sources, rows.targets, strict=True)}
    quads = pyoxigraph.parse(path=tmp_path / "l.nt")
    assert {(q.subject.value, q.predicate.value, q.object.value) for q in quads} == wanted
    triples = rdflib.Graph().parse(tmp_path / "l.nt", format="nt")
    assert {tuple(map(str, triple)) for triple in triples} == wanted


def test_alignment_in_two_parsers(tmp_path):
    rows = real_rows()
    write_links_file(tmp_path / "l.rdf", rows)
    quads = list(pyoxigraph.parse(path=tmp_path / "l.rdf"))
    by_subject: dict[object, dict[str, str]] = {}
    for quad in quads:
        by_subject.setdefault(quad.subject, {})[quad.predicate.value.removeprefix(ALIGNMENT)] = quad.object.value
    cells = {
        (cell["entity1"], cell["entity2"], cell["relation"], cell["measure"])
        for cell in by_subject.values()
        if "entity1" in cell
    }
    assert cells == {
        (strict_iri(s), strict_iri(t), "=", c)
        for s, t, c in zip(rows.sources, rows.targets, rows.printed_confidences(), strict=True)
    }
    assert len(rdflib.Graph().parse(tmp_path / "l.rdf", format="xml")) == len(quads)


# ---- SSSOM ----------------------------------------------------------------------------------------------------------


@quiet
def test_sssom_passes_the_reference_validator_and_loses_no_row(tmp_path):
    rows = real_rows()
    about = MappingSet(mapping_tool_version="0.1", mapping_date="2026-01-31")
    path = tmp_path / "l.sssom.tsv"
    write_links_file(path, rows, about=about)
    mappings = parse_sssom(path)
    found = {
        (mappings.converter.expand(row.subject_id), mappings.converter.expand(row.object_id), float(row.confidence))
        for row in mappings.df.itertuples()
    }
    assert len(mappings.df) == len(found) == len(rows)
    # As URIs, for the tool knows no others; ASCII is told to the letter.
    plain = {(s, t, c) for s, t, c in found if s in REAL and t in REAL}
    wanted = set(zip(rows.sources, rows.targets, map(float, rows.printed_confidences()), strict=True))
    assert plain <= wanted
    assert len(plain) >= 6
    assert set(mappings.df["predicate_id"]) == {"skos:exactMatch"}
    assert set(mappings.df["mapping_date"]) == {"2026-01-31"}
    assert set(mappings.df["mapping_tool"]) == {"rlea"}
    assert set(mappings.df["mapping_tool_version"]) == {"0.1"}
    assert mappings.df["subject_label"].str.fullmatch('the "[0-9]+" name').all()


@pytest.mark.parametrize(
    ("uses", "with_structure", "expected"),
    [
        ("names", False, "LexicalMatching"),
        ("names", True, "CompositeMatching"),
        ("structure", True, "StructuralMatching"),
        ("", True, "UnspecifiedMatching"),
    ],
)
def test_sssom_says_what_the_links_rest_on(tmp_path, uses, with_structure, expected):
    about = MappingSet(justification=justification_of(uses, with_structure))
    write_links(tmp_path, LinkRows.sort(["http://e.org/a"], ["http://f.org/b"], [0.5]), about=about)
    assert f"\tsemapv:{expected}\t" in (tmp_path / LINK_FILES["sssom"]).read_text()


@quiet
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(found=links)
def test_sssom_of_odd_identifiers_passes_the_reference_validator(tmp_path, found):
    rows = rows_of({row[:2]: row for row in found}.values())
    write_links_file(tmp_path / "l.sssom.tsv", rows)
    assert len(parse_sssom(tmp_path / "l.sssom.tsv").df) == len(rows)


def test_sssom_keeps_identifiers_to_the_letter_beside_their_uris(tmp_path):
    path = tmp_path / "l.sssom.tsv"
    rows = LinkRows.sort(["http://e.org/é", "http://e.org/%C3%A9"], ["b", "http://e.org/c"], [1.0, 0.5])
    write_links_file(path, rows)
    body = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    table = list(csv.DictReader(io.StringIO("\n".join(body)), delimiter="\t"))
    assert [row["subject_id"] for row in table] == ["ns1:%C3%A9", "ns1:%C3%A9"]
    assert [row["source_identifier"] for row in table] == ["http://e.org/é", ""]
    assert read_link_rows(path).sources == rows.sources
    write_links_file(path, LinkRows.sort(["http://e.org/e"], ["b"], [1.0]))
    assert "identifier" not in path.read_text()


def test_sssom_needs_few_prefixes(tmp_path):
    # Every entity in a folder of its own, and names with slashes in them.
    sources = [f"http://e.org/person/{n}/profile" for n in range(500)]
    targets = [
        f"http://dbpedia.org/resource/A{n}/B" if n % 7 == 0 else f"http://dbpedia.org/resource/A{n}" for n in range(500)
    ]
    write_links_file(tmp_path / "l.sssom.tsv", LinkRows.sort(sources, targets, np.ones(500)))
    prefixes = re.findall(r"^#  (\w+): (\S+)$", (tmp_path / "l.sssom.tsv").read_text(), re.MULTILINE)
    assert dict(prefixes).keys() == {"dbr", "ns1", "owl", "semapv", "skos"}
    assert read_link_rows(tmp_path / "l.sssom.tsv").targets[:2] == (targets[0], targets[1])
