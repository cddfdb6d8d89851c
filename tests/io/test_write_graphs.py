from __future__ import annotations

import gzip
import os
from pathlib import Path

import pyoxigraph
import pytest
import rdflib
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlea.errors import InputError
from rlea.graph import GraphPair, KnowledgeGraph, Links
from rlea.io.readers import read_graph, read_pair
from rlea.io.writers.graphs import FORMATS, write_graph, write_pair
from rlea.io.writers.rdf import RDF_FORMATS
from rlea.io.writers.tables import TABLE_FORMATS
from small_graphs import build

RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
RESOURCE = "http://www.w3.org/2000/01/rdf-schema#Resource"
XSD = "http://www.w3.org/2001/XMLSchema#"
many = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def sample(side: str = "s") -> KnowledgeGraph:
    e = f"http://{side}.org/"
    return build(
        [
            (e + "Frölunda", "http://v.org/in", e + "Göteborg"),
            ("plain key", "born in", e + "Göteborg"),
            (e + "100%", "http://v.org/in", "_:b0"),
        ],
        [
            (e + "Frölunda", "http://www.w3.org/2000/01/rdf-schema#label", 'say "hi" \\ bye', "", "sv"),
            (e + "Frölunda", "http://v.org/founded", "1938", XSD + "gYear", ""),
            (e + "Frölunda", "http://v.org/odd", "5 km", "unit of length", ""),
            (e + "Frölunda", RDF_TYPE, "http://v.org/Club", RESOURCE, ""),
            (e + "Göteborg", RDF_TYPE, "a key as class", RESOURCE, ""),
            (e + "Göteborg", "http://v.org/seeAlso", "http://v.org/x", RESOURCE, ""),
            (e + "Göteborg", "http://v.org/note", "", "", ""),
            (e + "Göteborg", "http://v.org/note", " 汉字 \U0001f600 \\u0041 ", "", "pt-br"),
        ],
        entities=[e + "lonely", "lonely key"],
    )


def pair() -> GraphPair:
    source, target = sample("s"), sample("t")

    def links(*rows: tuple[str, str]) -> Links:
        return Links.of([source.entity_index[s] for s, _ in rows], [target.entity_index[t] for _, t in rows])

    train = links(("http://s.org/100%", "http://t.org/100%"), ("http://s.org/Frölunda", "http://t.org/Frölunda"))
    valid = links(("lonely key", "plain key"))
    test = links(("http://s.org/lonely", "http://t.org/Göteborg"), ("plain key", "http://t.org/lonely"))
    return GraphPair("p", source, target, train, valid, test)


def content(path: Path) -> set[tuple[str, ...]]:
    """The triples of an RDF file, as the strict parser of another program tells them."""
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    kind = pyoxigraph.RdfFormat.from_extension(path.name.removesuffix(".gz").rpartition(".")[2])
    return {(str(quad.subject), str(quad.predicate), str(quad.object)) for quad in pyoxigraph.parse(data, kind)}


# ---- one graph ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format_", RDF_FORMATS)
def test_rdf_says_what_the_graph_says(tmp_path, format_):
    path = tmp_path / f"g.{format_}"
    assert write_graph(path, sample()) == ()
    key = "<urn:rlea:{}>".format
    assert content(path) == {
        ("<http://s.org/Frölunda>", "<http://v.org/in>", "<http://s.org/Göteborg>"),
        (key("plain%20key"), key("born%20in"), "<http://s.org/Göteborg>"),
        (key("http%3A%2F%2Fs.org%2F100%25"), "<http://v.org/in>", key("_%3Ab0")),
        ("<http://s.org/Frölunda>", "<http://www.w3.org/2000/01/rdf-schema#label>", '"say \\"hi\\" \\\\ bye"@sv'),
        ("<http://s.org/Frölunda>", "<http://v.org/founded>", f'"1938"^^<{XSD}gYear>'),
        ("<http://s.org/Frölunda>", "<http://v.org/odd>", '"5 km"^^' + key("unit%20of%20length")),
        ("<http://s.org/Frölunda>", f"<{RDF_TYPE}>", "<http://v.org/Club>"),
        ("<http://s.org/Göteborg>", f"<{RDF_TYPE}>", key("a%20key%20as%20class")),
        ("<http://s.org/Göteborg>", "<http://v.org/seeAlso>", f'"http://v.org/x"^^<{RESOURCE}>'),
        ("<http://s.org/Göteborg>", "<http://v.org/note>", '""'),
        ("<http://s.org/Göteborg>", "<http://v.org/note>", '" 汉字 \U0001f600 \\\\u0041 "@pt-br'),
        ("<http://s.org/lonely>", f"<{RDF_TYPE}>", f"<{RESOURCE}>"),
        (key("lonely%20key"), f"<{RDF_TYPE}>", f"<{RESOURCE}>"),
    }
    if format_ != "nt.gz":
        names = {"nt": "nt", "ttl": "turtle", "rdf": "xml", "nq": "nt"}  # quads without a graph are triples
        assert len(rdflib.Graph().parse(data=path.read_text(), format=names[format_])) == 13
    assert read_graph(path).fingerprint == sample().fingerprint


@pytest.mark.parametrize("format_", TABLE_FORMATS)
def test_tables_keep_everything_and_given_names_too(tmp_path, format_):
    graph = build([("a", "r", "b")], [("a", "x", '1,5 "m"', "", "")], names={"a": "Anna"}, entities=["c"])
    assert write_graph(tmp_path / "g", graph, format_) == ()
    assert sorted(os.listdir(tmp_path / "g")) == [f"{stem}.{format_}" for stem in ("literals", "names", "triples")]
    assert read_graph(tmp_path / "g").fingerprint == graph.fingerprint
    assert read_graph(tmp_path / "g").names == ("Anna", "b", "c")


text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
word = text.filter(str.strip)
predicate = word.map("{}p".format)  # XML can name only what ends like a name
literal = st.tuples(
    word, predicate, text, st.sampled_from(["", XSD + "date", "odd type"]), st.sampled_from(["", "en", "zh-hans"])
).map(lambda row: (*row[:3], "", row[4]) if row[4] else row)


@pytest.mark.parametrize("format_", [*RDF_FORMATS, *TABLE_FORMATS])
@many
@given(
    triples=st.lists(st.tuples(word, predicate, word), min_size=1, max_size=6),
    literals=st.lists(literal, max_size=6),
    lonely=st.lists(word, max_size=2),
)
def test_any_graph_is_read_back_or_refused(tmp_path, format_, triples, literals, lonely):
    graph = build(triples, literals, entities=lonely)
    path = tmp_path / (f"g.{format_}" if format_ in RDF_FORMATS else f"g_{format_}")
    if path.is_dir():  # of the example before
        for table in path.iterdir():
            table.unlink()
    try:
        notes = write_graph(path, graph, format_)
    except InputError:
        # Plain TSV has no place for tabs and line breaks, XML none for control characters.
        assert format_ in ("tsv", "rdf")
        assert any(
            ord(c) < 32 or c in "\ufffe\uffff" for row in [*triples, *literals, lonely] for field in row for c in field
        )
        return
    assert notes == ()
    assert read_graph(path).fingerprint == graph.fingerprint


def test_predicates_that_xml_cannot_name_are_refused(tmp_path):
    for relation in ("http://v.org/123", "http://v.org/", "http://v.org/x(y)"):
        with pytest.raises(InputError, match=r"g\.rdf.*RDF/XML.*\.nt"):
            write_graph(tmp_path / "g.rdf", build([("a", relation, "b")]))
    assert os.listdir(tmp_path) == []
    write_graph(tmp_path / "g.rdf", build([("a", "http://v.org/1x", "b")]))
    assert read_graph(tmp_path / "g.rdf").relations == ("http://v.org/1x",)


def test_what_would_be_read_as_something_else_is_noted(tmp_path):
    notes = write_graph(tmp_path / "g.nt", build([("a", RDF_TYPE, "b"), ("b", RDF_TYPE, "c"), ("a", "r", "c")]))
    assert len(notes) == 1
    assert notes[0].startswith("2 triples")


def test_malformed_languages_and_unknown_formats_are_refused(tmp_path):
    odd = build([("a", "r", "b")], [("a", "x", "v", "", "not a tag")])
    for write, name, what, format_, words in (
        (write_graph, "g.nt", odd, "", "'not a tag'"),
        (write_graph, "g.xlsx", sample(), "", r"g\.xlsx"),
        (write_graph, "g", sample(), "xlsx", "'xlsx'"),
        (write_pair, "g", pair(), "xlsx", "'xlsx'"),
    ):
        with pytest.raises(InputError, match=words):
            write(tmp_path / name, what, format_)
    assert os.listdir(tmp_path) == []


# ---- pairs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format_", [name for name in FORMATS if name != "openea"])
def test_pair_comes_back(tmp_path, format_):
    ending = "" if format_ in TABLE_FORMATS else f".{format_}"
    wanted = {f"source{ending}", f"target{ending}", "seeds.tsv", "valid.tsv", "test.tsv"}
    assert write_pair(tmp_path / "p", pair(), format_) == ()
    assert set(os.listdir(tmp_path / "p")) == wanted
    assert (tmp_path / "p" / "valid.tsv").read_text() == "source\ttarget\nlonely key\tplain key\n"
    back = read_pair(tmp_path / "p")
    assert back.fingerprint == pair().fingerprint
    assert [note for note in back.notes if "left out" in note] == []


def test_pair_comes_back_from_the_openea_layout(tmp_path):
    triples = [("a b", "r", "c"), ("c", "r", "d")]
    values = ["plain", ' "quoted" ', "tab\tnewline\nreturn\r\x01", "back\\slash\\", "\\u0041", "", " ", '"', "x@en"]
    literals = [("c", "v", value, datatype, "") for value in values for datatype in ("", XSD + "string2", "odd/type")]
    literals += [("c", "v", value, "", "de") for value in values]
    source = build(triples, literals, entities=["linked", "alone"])
    target = build([("x", "r", "y")], entities=["z"])
    links = Links.of([0, source.entity_index["linked"]], [1, 2])
    one = GraphPair("p", source, target, train=links)
    assert write_pair(tmp_path / "p", one, "openea") == (
        "source: 1 entities without triples, literals and links are not written",
    )
    assert (tmp_path / "p" / "rel_triples_1").read_text() == "a b\tr\tc\nc\tr\td\n"
    assert "c\tv\tplain\n" in (tmp_path / "p" / "attr_triples_1").read_text()
    assert f'c\tv\t"plain"^^<{XSD}string2>\n' in (tmp_path / "p" / "attr_triples_1").read_text()
    back = read_pair(tmp_path / "p")
    assert back.target.fingerprint == target.fingerprint
    assert back.source.fingerprint == build(triples, literals, entities=["linked"]).fingerprint
    assert (len(back.train), len(back.valid), len(back.test)) == (2, 0, 0)
    spaced = GraphPair("p", build(triples, [("c", "v", "1", "odd type", "")]), target)
    with pytest.raises(InputError, match="odd type"):
        write_pair(tmp_path / "q", spaced, "openea")
    assert os.listdir(tmp_path) == ["p"]


def test_pair_does_not_mix_with_what_was_there(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    write_pair(tmp_path, pair())
    write_pair(tmp_path, pair())
    with pytest.raises(InputError, match=r"source\.nt"):
        write_pair(tmp_path, pair(), "ttl")
    with pytest.raises(InputError, match=r"seeds\.tsv"):
        write_pair(tmp_path, GraphPair("p", sample(), sample()))
    assert sorted(os.listdir(tmp_path)) == ["notes.txt", "seeds.tsv", "source.nt", "target.nt", "test.tsv", "valid.tsv"]
    assert read_pair(tmp_path).fingerprint == pair().fingerprint


def test_failure_in_one_file_leaves_none_and_absent_links_get_no_file(tmp_path):
    bad = GraphPair("p", sample(), build([("a", "r", "b")], [("a", "x", "v", "", "not a tag")]))
    for format_ in ("nt", "ttl", "openea"):
        with pytest.raises(InputError):
            write_pair(tmp_path / "p", bad, format_)
    with pytest.raises(InputError, match=r"triples\.tsv.*\.parquet"):
        write_pair(tmp_path / "p", GraphPair("p", sample(), build([("a\tb", "r", "c")])), "tsv")
    assert os.listdir(tmp_path) == []
    write_pair(tmp_path / "p", GraphPair("p", sample(), sample()))
    assert sorted(os.listdir(tmp_path / "p")) == ["source.nt", "target.nt"]


@pytest.mark.parametrize("format_", ["nt.gz", "ttl", "parquet"])
def test_same_graph_same_bytes(tmp_path, format_):
    files = []
    for folder in ("a", "b"):
        write_pair(tmp_path / folder, pair(), format_)
        files.append({p.name: p.read_bytes() for p in (tmp_path / folder).rglob("*") if p.is_file()})
    assert files[0] == files[1]
    assert len(files[0]) >= 5


@pytest.mark.parametrize("format_", ["nt", "openea"])
def test_benchmark_comes_back(tmp_path, format_, data_folder):
    once = read_pair(data_folder / "openea-15k-v1" / "EN_FR_15K_V1")
    assert write_pair(tmp_path / "EN_FR", once, format_) == ()
    assert read_pair(tmp_path / "EN_FR").fingerprint == once.fingerprint
