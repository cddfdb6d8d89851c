from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from rlea.io.readers.link_files import looks_like_links, read_link_rows
from rlea.io.readers.links import place_links, read_matching_and_gold
from small_graphs import ids, only_entities, put, write

SAME_AS = "http://www.w3.org/2002/07/owl#sameAs"


S, T = (only_entities(*(f"http://{side}/{number}" for number in range(6))) for side in "st")


def read_links(path: Path) -> tuple[list[tuple[int, int]], tuple[str, ...]]:
    placed = place_links(read_link_rows(path), S, T)
    return ids(placed.links), placed.notes


def tsv(folder: Path, *pairs: tuple[int, int], name: str = "x.tsv") -> Path:
    return put(folder / name, "".join(f"http://s/{a}\thttp://t/{b}\n" for a, b in pairs))


# ---- formats: each holds the links 1-1 (0.5) and 2-3 (1.0, or none) --------------------------------------------------

SSSOM = """\
# mapping_set_id: http://set
# curie_map:
#   S: "http://s/"
#   T: http://t/
# license: none
subject_id\tsubject_label\tpredicate_id\tobject_id\tmapping_justification\tconfidence
S:1\t"say ""hi"" twice"\tskos:exactMatch\tT:1\tsemapv:LexicalMatching\t0.5
S:4\tx\tskos:broadMatch\tT:4\tsemapv:LexicalMatching\t0.5
S:2\ty\towl:sameAs\thttp://t/3\tsemapv:LexicalMatching\t1.0
"""
ALIGNMENT = """\
<?xml version='1.0' encoding='utf-8'?>
<rdf:RDF xmlns='http://knowledgeweb.semanticweb.org/heterogeneity/alignment'
 xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:xsd='http://www.w3.org/2001/XMLSchema#'>
<Alignment><xml>yes</xml><level>0</level><type>11</type>
<map><Cell><entity1 rdf:resource='http://s/1'/><entity2 rdf:resource='http://t/1'/><relation>=</relation>
<measure rdf:datatype='http://www.w3.org/2001/XMLSchema#float'>0.5</measure></Cell></map>
<map><Cell><entity1 rdf:resource='http://s/4'/><entity2 rdf:resource='http://t/4'/><relation>&lt;</relation>
<measure>0.5</measure></Cell></map>
<map><Cell><entity1 rdf:resource='http://s/2'/><entity2 rdf:resource='http://t/3'/><measure>1.0</measure></Cell></map>
</Alignment></rdf:RDF>
"""
FORMATS = {
    "x.tsv": "source\ttarget\tconfidence\nhttp://s/1\thttp://t/1\t0.5\nhttp://s/2\thttp://t/3\t1.0\n",
    "order.tsv": "confidence\ttarget\tnote\tsource\n0.5\thttp://t/1\t\thttp://s/1\n1\thttp://t/3\tx\thttp://s/2\n",
    "no_header.tsv": "http://s/1\thttp://t/1\t0.5\nhttp://s/2\thttp://t/3\t1e0\n",
    "train_links": "http://s/1\thttp://t/1\nhttp://s/2\thttp://t/3\n",
    "x.csv": 'source,target,confidence\nhttp://s/1,"http://t/1",0.5\nhttp://s/2,http://t/3,\n',
    "x.jsonl": '{"source": "http://s/1", "target": "http://t/1", "confidence": 0.5}\n\n'
    '{"note": 1, "subject_id": "http://s/2", "object_id": "http://t/3", "confidence": 1.0}\n',
    "x.sssom.tsv": SSSOM,
    "flow.tsv": SSSOM.replace('# curie_map:\n#   S: "http://s/"\n#   T: http://t/\n', "#curie_map: {S: 'http://s/', T: http://t/}\n"),
    "x.nt": f"# links\n<http://s/1> <{SAME_AS}> <http://t/1> .\n\n<http://s/2> <{SAME_AS}> <http://t/3> .\n",
    "x.ttl": "@prefix owl: <http://www.w3.org/2002/07/owl#> .\n<http://s/1> owl:sameAs <http://t/1> .\n"
    "<http://s/2> <http://www.w3.org/2004/02/skos/core#exactMatch> <http://t/3> .\n",
    "x.rdf": ALIGNMENT,
    "hash.xml": ALIGNMENT.replace("heterogeneity/alignment'", "heterogeneity/alignment#'"),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMATS)
def test_formats(name: str, tmp_path: Path) -> None:
    rows = read_link_rows(put(tmp_path / name, FORMATS[name]))
    assert rows.sources == ("http://s/1", "http://s/2")
    assert rows.targets == ("http://t/1", "http://t/3")
    confidences = [None if np.isnan(value) else value for value in rows.confidences]
    if name in ("train_links", "x.nt", "x.ttl"):
        assert confidences == [None, None]
    else:
        assert confidences == [0.5, None if name == "x.csv" else 1.0]
    links, notes = read_links(tmp_path / name)
    assert links == [(1, 1), (2, 3)]
    dropped = name in ("x.sssom.tsv", "flow.tsv", "x.rdf", "hash.xml")
    assert [("1 of 3" in note) for note in notes] == ([True] if dropped else [])
    assert looks_like_links(tmp_path / name)


def test_parquet(tmp_path: Path) -> None:
    frame = pl.DataFrame({"source": ["http://s/1"], "target": ["http://t/2"], "confidence": [0.25]})
    frame.write_parquet(tmp_path / "x.parquet")
    rows = read_link_rows(tmp_path / "x.parquet")
    assert (rows.sources, rows.targets, rows.confidences.tolist()) == (("http://s/1",), ("http://t/2",), [0.25])
    assert looks_like_links(tmp_path / "x.parquet")


def test_lines_are_those_of_the_file(tmp_path: Path) -> None:
    assert read_link_rows(put(tmp_path / "x.nt", FORMATS["x.nt"])).numbers == (2, 4)
    assert read_link_rows(put(tmp_path / "x.sssom.tsv", SSSOM)).numbers == (7, 9)


def test_encoded_identifiers_are_decoded_in_rdf_only(tmp_path: Path) -> None:
    text = f"<urn:rlea:a%20b> <{SAME_AS}> <urn:rlea:c> .\n"
    assert read_link_rows(put(tmp_path / "x.nt", text)).sources == ("a b",)
    assert read_link_rows(put(tmp_path / "x.tsv", "urn:rlea:a%20b\tc\n")).sources == ("urn:rlea:a%20b",)


def test_sssom_exact_identifiers_and_negations(tmp_path: Path) -> None:
    text = (
        "#curie_map:\n#  S: http://s/\n"
        "subject_id\tpredicate_id\tpredicate_modifier\tobject_id\tsource_identifier\ttarget_identifier\n"
        "S:%C3%A9\tskos:exactMatch\t\tS:2\thttp://s/é\t\n"
        "S:5\tskos:exactMatch\tNot\tS:6\t\t\n"
        "S:7\tskos:exactMatch\t\tsssom:NoTermFound\t\t\n"
    )
    rows = read_link_rows(put(tmp_path / "x.sssom.tsv", text))
    assert (rows.sources, rows.targets) == (("http://s/é",), ("http://s/2",))
    assert "2 of 3" in rows.notes[0]


# ---- cleaning -------------------------------------------------------------------------------------------------------


def test_links_are_sorted_and_clean_files_give_no_notes(tmp_path: Path) -> None:
    assert read_links(tsv(tmp_path, (3, 1), (1, 2), (2, 0))) == ([(1, 2), (2, 0), (3, 1)], ())


def test_unknown_entities_up_to_a_half_are_noted(tmp_path: Path) -> None:
    links, notes = read_links(tsv(tmp_path, (1, 1), (9, 2), (2, 9), (4, 4)))
    assert links == [(1, 1), (4, 4)]
    assert len(notes) == 1
    assert "left out 2 of 4 links" in notes[0]
    assert "line 2" in notes[0]


def test_repeated_and_contradicting_links(tmp_path: Path) -> None:
    links, notes = read_links(tsv(tmp_path, (1, 1), (1, 1), (1, 2), (3, 1), (2, 2)))
    assert links == [(1, 1), (2, 2)]
    assert [note.split(" links ")[0] for note in notes] == ["x.tsv: left out 1 of 5", "x.tsv: left out 2 of 5"]
    assert "more than once, the first at line 2" in notes[0]
    assert "contradict an earlier link of the same entity, the first at line 3" in notes[1]


# ---- evaluation without graphs --------------------------------------------------------------------------------------


def test_matching_and_gold_share_one_numbering(tmp_path: Path) -> None:
    found_file = put(tmp_path / "links.tsv", "source\ttarget\tconfidence\nb\ty\t0.5\na\tx\t\nc\tz\t0.2\n")
    matching, gold = read_matching_and_gold(found_file, put(tmp_path / "gold.tsv", "c\tx\nb\ty\nd\tw\n"))
    sources, targets = "abcd", "wxyz"
    found = {
        (sources[s], targets[t], c)
        for s, t, c in zip(matching.source_ids, matching.target_ids, matching.confidences, strict=True)
    }
    assert found == {("b", "y", 0.5), ("a", "x", 1.0), ("c", "z", 0.2)}
    assert {(sources[s], targets[t]) for s, t in ids(gold)} == {("c", "x"), ("b", "y"), ("d", "w")}


def test_no_found_links_can_be_evaluated(tmp_path: Path) -> None:
    none = put(tmp_path / "links.tsv", "source\ttarget\tconfidence\n")
    matching, gold = read_matching_and_gold(none, tsv(tmp_path, (1, 1), name="gold.tsv"))
    assert (len(matching), len(gold)) == (0, 1)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.tsv", "a\tr\tb\n"),
        ("x.tsv", "1\t2\t3\n"),
        ("x.csv", "head,relation,tail\n"),
        ("x.jsonl", '{"head":\t"a"}\n'),  # of another format, with a tab in it
        ("x.nt", "<http://a> <http://r> <http://b> .\n"),
        ("x.ttl", "broken"),
        ("x.parquet", "broken"),
        ("missing.tsv", None),
    ],
)
def test_graphs_and_broken_files_do_not_look_like_links(name: str, text: str | None, tmp_path: Path) -> None:
    write(tmp_path, {name: text})
    assert not looks_like_links(tmp_path / name)
