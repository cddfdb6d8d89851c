"""Blank nodes in links: by a path in TSV, left out of formats that would need an identifier for them."""

from __future__ import annotations

import csv
import re

import pyoxigraph

import rlea
from rlea.graph.iri import from_iri
from rlea.io.readers import read_graph
from rlea.io.readers.link_files import read_link_rows
from rlea.io.writers import LinkRows, write_links
from rlea.io.writers.blank_nodes import blank_paths
from rlea.io.writers.graphs import write_graph
from rlea.matching import Matching
from small_graphs import put

LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
PEOPLE = f"""
@prefix e: <http://e/> .
e:anna e:address [ e:city "Basel" ; e:geo [ e:lat 47.5 ] ] ; e:knows e:bea .
e:bea e:address [ e:city "Wien" ] , [ e:city "Graz" ] .
[] e:about e:anna ; e:text "a note" .
_:a e:text "nobody points here" ; e:next [] .
_:typed a e:Thing .
e:anna <{LABEL}> "Anna" . e:bea <{LABEL}> "Bea" .
"""


PATH = re.compile(r"(?P<start><[^>]*>|\[[^\]]*\])(?: (?P<steps>[^ \[]+))?(?: \[(?P<said>.*)\])?")


def paths_of(graph):
    return blank_paths(graph, range(graph.num_entities))


def test_every_path_finds_its_node(tmp_path):
    """As SPARQL, over the graph as it is written: there blank nodes are IRIs, so that they can be compared."""
    graph = read_graph(put(tmp_path / "x.ttl", PEOPLE))
    paths = paths_of(graph)
    assert len(paths) == sum(name.startswith("_:") for name in graph.entities) == 8
    write_graph(tmp_path / "x.nt", graph)
    store = pyoxigraph.Store()
    store.bulk_load(path=tmp_path / "x.nt")
    for number, path in paths.items():
        parts = PATH.fullmatch(path)
        assert parts, path
        query = f"{parts['start']} {parts['steps']} ?x" if parts["steps"] else f"?x {parts['start'][1:-1]}"
        more = f"?x {parts['said']}" if parts["said"] else ""
        found = {row[0].value for row in store.query(f"SELECT ?x {{ {query} . {more} }}")}
        assert [from_iri(name) for name in found if name.startswith("urn:rlea:")] == [graph.entities[number]], path


def test_long_chains(tmp_path):
    """A list in RDF is a chain of blank nodes; only the paths that are asked for are made."""
    size = 3_000
    lines = [f"_:n{n:05} <http://e/rest> _:n{n + 1:05} ." for n in range(size)]
    lines += ["<http://e/list> <http://e/first> _:n00000 ."]
    graph = read_graph(put(tmp_path / "x.nt", "\n".join(lines)))
    last = graph.entity_index[f"_:n{size:05}"]
    assert blank_paths(graph, [last])[last].count("<http://e/rest>") == size


def test_paths_are_readable(tmp_path):
    graph = read_graph(put(tmp_path / "x.ttl", PEOPLE))
    assert {
        "<http://e/anna> <http://e/address>",
        "<http://e/anna> <http://e/address>/<http://e/geo>",
        '<http://e/bea> <http://e/address> [<http://e/city> "Wien"]',
        "<http://e/anna> ^<http://e/about>",
        '[<http://e/text> "nobody points here"]',
        '[<http://e/text> "nobody points here"] <http://e/next>',
    } < {*paths_of(graph).values()}


def test_links_with_blank_nodes(tmp_path):
    graph = read_graph(put(tmp_path / "x.ttl", PEOPLE))
    size = graph.num_entities
    rows = LinkRows.of(Matching.of(range(size), range(size), [0.5] * size), graph, graph)
    write_links(tmp_path / "out", rows)
    with (tmp_path / "out" / "links.tsv").open(encoding="utf-8", newline="") as file:
        lines = [*csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)]
    assert len(lines) == size
    for line in lines:
        assert bool(line["source_path"]) == bool(line["target_path"]) == line["source"].startswith("_:")
    assert len(read_link_rows(tmp_path / "out" / "links.tsv")) == size
    for name in ("links.nt", "links.rdf", "links.sssom.tsv"):
        links = read_link_rows(tmp_path / "out" / name)
        assert {*links.sources} == {name for name in graph.entities if not name.startswith("_:")}, name
        assert "urn:rlea:_" not in (tmp_path / "out" / name).read_text()


def test_graphs_without_blank_nodes_have_no_paths(tmp_path):
    graph = read_graph(put(tmp_path / "x.nt", "<http://e/1> <http://e/p> <http://e/2> .\n"))
    rows = LinkRows.of(Matching.of([0], [0], [0.5]), graph, graph)
    assert rows.source_paths == ()
    assert rows.without_blank() is rows


def test_runs_say_how_many_links_have_blank_nodes(tmp_path, run_cli):
    path = put(tmp_path / "x.ttl", PEOPLE)
    options = ["--matcher", "mutual", "--embedding", "names", "--output", tmp_path / "out"]
    done = run_cli("align", path, path, *options)
    assert done.code == 0, done.err
    links = read_link_rows(tmp_path / "out" / "links.tsv")
    blank = sum(name.startswith("_:") for name in links.sources)
    assert blank > 1
    assert f"{blank} links have a blank node at one end" in " ".join((done.out + done.err).split())
    assert run_cli("explain", tmp_path / "out", next(name for name in links.sources if name[:2] == "_:")).code == 0
    done = run_cli("convert", tmp_path / "out" / "links.tsv", tmp_path / "links.nt")
    assert f"{blank} links have a blank node" in " ".join(done.err.split())
    assert len(rlea.read(path, path, gold=tmp_path / "links.nt").test) == len(links) - blank
