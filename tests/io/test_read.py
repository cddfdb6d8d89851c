"""`rlea.read`: every kind of graph and links gives the same pair, and the pair says which files it came from."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import rlea
from rlea.demo import demo_folder
from rlea.errors import InputError
from rlea.graph import GraphPair, KnowledgeGraph
from small_graphs import ids, put, write

TRIPLES = [("http://a/1", "http://a/near", "http://a/2"), ("http://a/2", "http://a/near", "http://a/3")]
LITERALS = [("http://a/1", "http://a/year", "1900"), ("http://a/2", "http://a/name", "two")]
NAMES = ("head", "relation", "tail")
OTHER = [("http://b/1", "http://b/near", "http://b/2"), ("http://b/2", "http://b/near", "http://b/3")]
PAIRS = [("http://a/1", "http://b/1"), ("http://a/3", "http://b/3")]
NT = "".join(f"<{head}> <{relation}> <{tail}> .\n" for head, relation, tail in TRIPLES)
FACTS = "".join(f'<{entity}> <{attribute}> "{value}" .\n' for entity, attribute, value in LITERALS)


def frame(rows: list[tuple[str, ...]], *columns: str) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=list(columns), orient="row")


def pandas_frame(rows: list[tuple[Any, ...]], columns: list[str] | None = None) -> Any:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    return pandas.DataFrame(rows, columns=columns)


def rdflib_graph(text: str) -> Any:
    rdflib = pytest.importorskip("rdflib", reason="rdflib is not installed")
    return rdflib.Graph().parse(data=text, format="nt")


def rdflib_dataset(text: str) -> Any:
    rdflib = pytest.importorskip("rdflib", reason="rdflib is not installed")
    made = rdflib.Dataset()
    made.graph("http://g").parse(data=text, format="nt")
    return made


def store(text: str) -> Any:
    from pyoxigraph import RdfFormat, Store

    made = Store()
    made.load(text.encode(), RdfFormat.N_TRIPLES)
    return made


# ---- graphs ---------------------------------------------------------------------------------------------------------


GRAPHS = {
    "polars": lambda: frame(TRIPLES, *NAMES),
    "lazy": lambda: frame(TRIPLES, *NAMES).lazy(),
    "synonyms": lambda: frame(TRIPLES, "Subject", "predicate", "object").with_row_index("row"),
    "by position": lambda: frame(TRIPLES, "one", "two", "three"),
    "categories": lambda: frame(TRIPLES, *NAMES).cast(pl.Categorical),
    "pandas": lambda: pandas_frame(TRIPLES, list(NAMES)),
    "pandas by position": lambda: pandas_frame(TRIPLES),
    "rows": lambda: TRIPLES,
    "iterator": lambda: iter([list(row) for row in TRIPLES]),
    "dict": lambda: {"triples": TRIPLES},
    "rdflib": lambda: rdflib_graph(NT),
    "rdflib dataset": lambda: rdflib_dataset(NT),
    "store": lambda: store(NT),
    "graph": lambda: KnowledgeGraph.build(frame(TRIPLES, *NAMES)),
}


@pytest.mark.parametrize("kind", GRAPHS)
def test_every_kind_of_graph_is_the_same_graph(kind, tmp_path):
    expected = rlea.read(put(tmp_path / "a.nt", NT), OTHER)
    pair = rlea.read(GRAPHS[kind](), OTHER)
    assert pair.fingerprint == expected.fingerprint
    assert (pair.name, expected.name) == ("source-target", "a-target")
    assert pair.default_pool == "all"


def test_literals_come_with_a_dict_of_tables_or_with_rdf(tmp_path):
    expected = rlea.read(put(tmp_path / "a.nt", NT + FACTS), OTHER).source
    assert len(expected.literals) == 2
    literals = frame(LITERALS, "entity", "attribute", "value")
    for source in (
        {"triples": TRIPLES, "literals": LITERALS},
        {"triples": frame(TRIPLES, *NAMES), "literals": literals},
        rdflib_graph(NT + FACTS),
        store(NT + FACTS),
    ):
        assert rlea.read(source, OTHER).source.fingerprint == expected.fingerprint
    told = rlea.read(
        {"triples": TRIPLES, "literals": [(*LITERALS[0], "http://d", ""), (*LITERALS[1], "", "EN")]}, OTHER
    ).source.literals
    assert (told.datatypes, told.languages) == (("http://d", ""), ("", "en"))
    names = rlea.read(
        {"triples": TRIPLES, "names": [("http://a/1", "Anna"), ("http://a/9", "Bea")]}, OTHER
    ).source.names
    assert names == ("Anna", "2", "3", "Bea")


def test_rdf_in_memory_follows_the_rules_of_files(tmp_path):
    text = NT + '_:b1 <http://a/near> <urn:rlea:a%20b> .\n<http://a/1> <http://a/name> "\\u00e9\\n\\"x\\""@de-AT .\n'
    expected = rlea.read(put(tmp_path / "a.nt", text), OTHER).source
    assert "a b" in expected.entities
    for source in (rdflib_graph(text), store(text)):
        graph = rlea.read(source, OTHER).source
        assert graph.literals.values == expected.literals.values == ('é\n"x"',)
        assert graph.literals.languages == ("de-at",)
        assert set(expected.entities) - set(graph.entities) <= {"_:b1"}  # libraries may name blank nodes anew


# ---- links ----------------------------------------------------------------------------------------------------------


LINKS = {
    "polars": lambda: frame(PAIRS, "source", "target"),
    "by position": lambda: frame(PAIRS, "left", "right"),
    "confidence": lambda: frame(PAIRS, "source", "target").with_columns(confidence=0.5),
    "pandas": lambda: pandas_frame([(*pair, 0.5) for pair in PAIRS], ["source", "target", "confidence"]),
    "no confidence": lambda: pandas_frame([(PAIRS[0] + (None,)), (*PAIRS[1], 1.0)]),
    "pairs": lambda: PAIRS,
    "iterator": lambda: (pair for pair in PAIRS),
    "triples": lambda: [(*PAIRS[0], np.float32(0.75)), PAIRS[1]],
    "dict": lambda: dict(PAIRS),
}


@pytest.mark.parametrize("kind", LINKS)
def test_every_kind_of_links_is_the_same_links(kind):
    assert ids(rlea.read(TRIPLES, OTHER, seeds=LINKS[kind]()).train) == [(0, 0), (2, 2)]
    pair = rlea.read(TRIPLES, OTHER, seeds=PAIRS[:1], valid=[("http://a/2", "http://b/2")], gold=LINKS[kind]())
    assert (ids(pair.train), ids(pair.valid), ids(pair.test)) == ([(0, 0)], [(1, 1)], [(2, 2)])
    assert "gold: left out 1 of 2 links that also stand in another split, the first at row 1" in pair.notes[0]


# ---- bad values -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"source": 7}, "source: is of the type int; give a path, a frame or rows of head"),
        ({"target": b"x.nt"}, "target: is of the type bytes"),
        ({"source": []}, "source: holds no triples; give at least one"),
        ({"source": ["abc"]}, "source: row 1: \"'abc'\" is no row of 3 texts"),
        ({"source": [TRIPLES[0], ("a", "r")]}, "source: row 2: .* is no row of 3 texts"),
        ({"source": [("a", 1, "b")]}, "source: row 1: .*'a', 1, 'b'.* is no row"),
        ({"source": [("a", "r", " ")]}, "source: row 1: the field tail is empty"),
        ({"source": frame(TRIPLES, "head", "relation", "cauda")}, "source: has no column tail"),
        ({"source": pl.DataFrame({"head": [1.5], "relation": ["r"], "tail": ["b"]})}, "head is of type Float64"),
        ({"source": {"literals": LITERALS}}, "triples, literals and names, not 'literals'"),
        ({"source": {"triples": TRIPLES, "literals": [("a", "b")]}}, "source literals: row 1"),
        ({"source": pl.Series(["a"])}, "source: is of the type Series"),
        ({"source": "missing.nt"}, "missing.nt: there is no such file"),
        ({"seeds": 7}, "seeds: is of the type int; give a path, or a frame or pairs"),
        ({"seeds": []}, "seeds: holds no links"),
        ({"seeds": [("http://a/1",)]}, "seeds: row 1: .* is no row of 2 texts"),
        ({"seeds": [(*PAIRS[0], "high")]}, "seeds: row 1: the confidence 'high'"),
        ({"seeds": [(*PAIRS[0], 2)]}, "seeds: row 1: the confidence '2'"),
        ({"seeds": {"x": "http://b/1"}}, "seeds: row 1: the source graph has no entity 'x'"),
        ({"seeds": PAIRS, "gold": PAIRS}, "gold: no gold link is left"),
        ({"target": None}, "one graph alone; give two graphs"),
        ({"target": None, "gold": PAIRS}, "links are given for a folder"),
        ({"fold": "1"}, "--fold is for benchmark folders"),
    ],
)
def test_bad_values_are_one_sentence(given, message):
    with pytest.raises(InputError, match=message) as caught:
        rlea.read(**{"source": TRIPLES, "target": OTHER} | given)
    assert "\n" not in str(caught.value)


def test_bad_frames_of_pandas_and_empty_stores():
    for source, message in (
        (pandas_frame([("a", "r", None)]), "row 1: the field tail is empty"),
        (pandas_frame([("a", "r", "b"), (1, "r", "b")], list(NAMES)), "the column 'head' has values of several types"),
        (pandas_frame([("a", "r", "b")], ["head", "head", "tail"]), "source: has the column 'head' twice"),
        (rdflib_graph(""), "source: holds no triples"),
    ):
        with pytest.raises(InputError, match=message):
            rlea.read(source, OTHER)


# ---- what the pair came from ----------------------------------------------------------------------------------------


def test_inputs_are_the_absolute_paths_that_were_given(tmp_path, monkeypatch):
    put(tmp_path / "a.nt", NT)
    links = put(tmp_path / "links.tsv", "http://a/1\thttp://b/1\n")
    monkeypatch.chdir(tmp_path)
    pair = rlea.read("a.nt", OTHER, seeds=Path("links.tsv"), valid=[("http://a/2", "http://b/2")])
    assert pair.inputs == {"source": str(tmp_path / "a.nt"), "seeds": str(links)}
    again = rlea.read(**{"target": OTHER, "valid": [("http://a/2", "http://b/2")], **pair.inputs})
    assert again.fingerprint == pair.fingerprint
    assert rlea.read(TRIPLES, OTHER, seeds=PAIRS).inputs == {}
    assert rlea.read(demo_folder()).inputs == {"demo": "yes"}


def test_inputs_of_a_folder_with_folds(tmp_path):
    files = {"rel_triples_1": "a\tr\tb\n", "rel_triples_2": "x\tr\ty\n", "ent_links": "a\tx\n"}
    files |= {f"721_5fold/2/{name}_links": "a\tx\n" for name in ("train", "valid", "test")}
    write(tmp_path, files)
    assert rlea.read(tmp_path, fold="2").inputs == {"source": str(tmp_path), "fold": "2"}


def test_inputs_survive_changes_and_are_no_part_of_the_fingerprint():
    from rlea.graph.masking import hide

    pair = rlea.read(TRIPLES, OTHER, seeds=PAIRS)
    known = replace(pair, inputs={"source": "/a.nt"})
    assert known.fingerprint == pair.fingerprint
    assert replace(known, name="other").inputs == hide(known, "names").inputs == {"source": "/a.nt"}
    assert GraphPair("x", pair.source, pair.target).inputs == {}


def test_nothing_is_imported_that_is_not_used(tmp_path):
    path = put(tmp_path / "a.tsv", "a\tr\tb\n")
    program = (
        "import sys, rlea\n"
        f"rlea.read({str(path)!r}, [('x', 'r', 'y')], seeds=[('a', 'x')])\n"
        "print(sorted({'pandas', 'rdflib', 'pyoxigraph', 'torch', 'numba'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
