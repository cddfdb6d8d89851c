from __future__ import annotations

import bz2
import gzip
import json
import lzma
import time
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlea.graph.iri import to_iri
from rlea.io.readers import read_graph
from rlea.io.readers.rdf import RDF_TYPE, RDFS_RESOURCE, read_rdf
from small_graphs import facts, put, relations

PACKINGS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zstandard.compress}
XSD = "http://www.w3.org/2001/XMLSchema#"
LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
NT = f"""\
<http://e/Anna> <http://e/knows> <http://e/Bea> .
<http://e/Anna> <{RDF_TYPE}> <http://e/Person> .
<http://e/Anna> <{LABEL}> "Anna"@de-AT .
<http://e/Anna> <http://e/born> "1990"^^<{XSD}gYear> .
<http://e/Bea> <http://e/nick> "B" .
"""
TURTLE = f"""\
@prefix e: <http://e/> .
@prefix xsd: <{XSD}> .
e:Anna a e:Person ; e:knows e:Bea ; <{LABEL}> "Anna"@de-AT ; e:born "1990"^^xsd:gYear .
e:Bea e:nick "B" .
"""
RDF_XML = f"""\
<?xml version="1.0"?>
<!DOCTYPE rdf:RDF [<!ENTITY e "http://e/">]>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/"
  xmlns:rdfs="http://www.w3.org/2000/01/rdf-schema#">
<e:Person rdf:about="&e;Anna">
  <e:knows rdf:resource="&e;Bea"/>
  <rdfs:label xml:lang="de-AT">Anna</rdfs:label>
  <e:born rdf:datatype="{XSD}gYear">1990</e:born>
</e:Person>
<rdf:Description rdf:about="&e;Bea"><e:nick>B</e:nick></rdf:Description>
</rdf:RDF>
"""
NQ = NT.replace(" .\n", " <http://graph> .\n")
TRIG = TURTLE.replace("e:Anna a", "e:g { e:Anna a").replace("xsd:gYear .", "xsd:gYear . }")

JSON_LD = json.dumps(
    {
        "@context": {"e": "http://e/", "knows": {"@id": "e:knows", "@type": "@id"}, "label": LABEL},
        "@graph": [
            {
                "@id": "e:Anna",
                "@type": "e:Person",
                "knows": "e:Bea",
                "label": {"@value": "Anna", "@language": "de-AT"},
                "e:born": {"@value": "1990", "@type": XSD + "gYear"},
            },
            {"@id": "e:Bea", "e:nick": "B"},
        ],
    },
    indent=1,
)

FORMATS = {"x.nt": NT, "x.ttl": TURTLE, "x.rdf": RDF_XML, "x.owl": RDF_XML, "x.nq": NQ, "x.trig": TRIG}
FORMATS["x.jsonld"] = JSON_LD


def test_what_becomes_of_triples(tmp_path: Path) -> None:
    graph = read_rdf(put(tmp_path / "x.nt", NT))
    assert graph.entities == ("http://e/Anna", "http://e/Bea")  # the class is none
    assert relations(graph) == {("http://e/Anna", "http://e/knows", "http://e/Bea")}
    assert facts(graph) == {
        ("http://e/Anna", RDF_TYPE, "http://e/Person", RDFS_RESOURCE, ""),
        ("http://e/Anna", LABEL, "Anna", "", "de-at"),
        ("http://e/Anna", "http://e/born", "1990", XSD + "gYear", ""),
        ("http://e/Bea", "http://e/nick", "B", "", ""),
    }
    assert graph.names == ("Anna", "Bea")


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(
    "packing", ["plain", *PACKINGS, ".gz under a plain name", "byte order mark", "carriage returns"]
)
def test_every_format_gives_the_same_graph(name: str, packing: str, tmp_path: Path) -> None:
    expected = read_rdf(put(tmp_path / "expected.nt", NT)).fingerprint
    content = FORMATS[name].encode()
    path = tmp_path / (name + packing if packing in PACKINGS else name)
    if packing in PACKINGS:
        content = PACKINGS[packing](content)
    elif packing == ".gz under a plain name":
        content = gzip.compress(content)
    elif packing == "byte order mark":
        content = b"\xef\xbb\xbf" + content
    elif packing == "carriage returns":
        content = content.replace(b"\n", b"\r\n")
    path.write_bytes(content)
    assert read_graph(path).fingerprint == expected


@pytest.mark.parametrize("encoding", ["windows-1252", "ISO-8859-1", "utf-16", "UTF-8"])
def test_xml_in_the_encoding_that_it_declares(encoding: str, tmp_path: Path) -> None:
    text = RDF_XML.replace(">B<", ">Zoë<")
    assert "encoding" not in text.split("\n")[0]
    expected = read_rdf(put(tmp_path / "expected.rdf", text)).fingerprint
    declared = f'<?xml version="1.0" encoding="{encoding}"?>' + text[text.index("?>") + 2 :]
    (tmp_path / "x.rdf").write_bytes(declared.encode(encoding))
    assert read_rdf(tmp_path / "x.rdf").fingerprint == expected


def test_archives_of_several_parts(tmp_path: Path) -> None:
    first, second = NT[: NT.index("\n") + 1].encode(), NT[NT.index("\n") + 1 :].encode()
    expected = read_rdf(put(tmp_path / "expected.nt", NT)).fingerprint
    for ending, pack in PACKINGS.items():
        path = tmp_path / f"x.nt{ending}"
        path.write_bytes(pack(first) + pack(second))
        assert read_rdf(path).fingerprint == expected, ending


def test_text_under_the_name_of_an_archive(tmp_path: Path) -> None:
    assert read_rdf(put(tmp_path / "x.nt.gz", NT)).num_triples == 1


def test_blank_nodes_keep_labels_and_others_get_the_same_one_each_time(tmp_path: Path) -> None:
    text = "<http://a> <http://r> [ <http://q> _:named ; <http://p> 1 ] .\n[] <http://r> <http://a> ."
    path = put(tmp_path / "x.ttl", text)
    first, second = read_rdf(path), read_rdf(path)
    assert first.fingerprint == second.fingerprint
    assert set(first.entities) == {"http://a", "_:named", "_:[1]", "_:[2]"}
    assert read_rdf(put(tmp_path / "x.nt", "_:b1 <http://r> _:b2 .")).entities == ("_:b1", "_:b2")


def test_long_labels_in_ntriples_are_labels(tmp_path: Path) -> None:
    label = "_:" + "b6df8980b2b49a50f38407fd0c0ce2bb"
    assert label in read_rdf(put(tmp_path / "x.nt", f"{label} <http://r> <http://o> .")).entities


def test_entities_are_declared_without_literals(tmp_path: Path) -> None:
    text = f"<http://alone> <{RDF_TYPE}> <{RDFS_RESOURCE}> .\n"
    graph = read_rdf(put(tmp_path / "x.nt", text))
    assert graph.entities == ("http://alone",)
    assert len(graph.literals) == graph.num_triples == 0


def test_statements_about_the_file_are_left_out(tmp_path: Path) -> None:
    text = "<> <http://r> <http://a> . <http://a> <http://r> <> . <http://a> <http://r> <http://b> ."
    assert relations(read_rdf(put(tmp_path / "x.ttl", text))) == {("http://a", "http://r", "http://b")}


def test_dirty_iris_are_taken_as_they_are(tmp_path: Path) -> None:
    graph = read_rdf(put(tmp_path / "x.nt", '<http://a b"{}> <http://r> <relative> .\n'))
    assert graph.entities == ('http://a b"{}', "relative")


def test_element_names_in_newer_letters(tmp_path: Path) -> None:
    """The XML check must not refuse letters that came to Unicode after 1996."""
    text = RDF_XML.replace("e:nick", "e:Șș")
    assert "http://e/Șș" in read_rdf(put(tmp_path / "x.rdf", text)).attributes


names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=12)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=50)
@given(names, names, names)
def test_our_own_iris_become_identifiers(tmp_path: Path, first: str, second: str, third: str) -> None:
    lines = [
        f"<{to_iri(first)}> <{to_iri(second)}> <{to_iri(third)}> .",
        f'<{to_iri(first)}> <{to_iri(third)}> "urn:rlea:x" .',
        f"<{to_iri(first)}> <{RDF_TYPE}> <{to_iri(second)}> .",
    ]
    graph = read_rdf(put(tmp_path / "x.nt", "\n".join(lines)))
    assert relations(graph) == {(first, second, third)}
    assert facts(graph) == {(first, third, "urn:rlea:x", "", ""), (first, RDF_TYPE, second, RDFS_RESOURCE, "")}


def test_the_time_to_read_grows_with_the_file(tmp_path: Path) -> None:
    """Ten times the triples in about ten times the processor time; by pairs of lines it would be a hundred."""

    def seconds(number: int) -> float:
        lines = (f"<http://e/{i % 20000}> <http://r/{i % 90}> <http://e/{i * 7919 % 20011}> .\n" for i in range(number))
        path = put(tmp_path / f"{number}.nt", "".join(lines))
        start = time.process_time()
        assert read_rdf(path).num_triples == number
        return time.process_time() - start

    small = min(seconds(20_000) for _ in range(3))
    assert seconds(200_000) < 40 * max(small, 0.02)  # a clock may tick only now and then
