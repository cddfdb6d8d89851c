"""Several files as one graph, and files of the web."""

from __future__ import annotations

import gzip
import json

import pytest

from rlea.errors import InputError
from rlea.io.read import read
from rlea.io.readers import read_graph, web
from rlea.io.readers.places import read_place, short_name
from small_graphs import put
from sparql_server import serving

FIRST = '<http://e/1> <http://e/p> <http://e/2> .\n<http://e/1> <http://e/q> "x" .\n_:b <http://e/p> <http://e/1> .\n'
SECOND = """\
<http://e/2> <http://e/p> <http://e/3> .
<http://e/1> <http://e/p> <http://e/2> .
_:b <http://e/p> <http://e/2> .
"""
WHOLE = (FIRST + SECOND.replace("_:b", "_:c")).encode()


@pytest.fixture
def parts(tmp_path):
    folder = tmp_path / "dumps"
    put(folder / "a.ttl", FIRST)
    (folder / "b.nt.gz").write_bytes(gzip.compress(SECOND.encode()))
    put(folder / ".hidden", "x")
    return folder


def whole(tmp_path):
    text = WHOLE.decode().replace("_:b", "<urn:rlea:_%3Aa.ttl%3Ab>").replace("_:c", "<urn:rlea:_%3Ab.nt.gz%3Ab>")
    return read_graph(put(tmp_path / "whole.nt", text))


def test_a_list_a_folder_and_a_pattern_are_one_graph(parts, tmp_path):
    expected = whole(tmp_path)
    other = [("x", "r", "y")]
    for given in ([parts / "a.ttl", str(parts / "b.nt.gz")], parts, str(parts / "*.[tn]*"), tmp_path / "d*" / "*"):
        assert read(given, other).source.fingerprint == expected.fingerprint, given
    assert expected.num_triples == 4
    assert {"_:a.ttl:b", "_:b.nt.gz:b"} < {*expected.entities}  # a label holds for its file


def test_a_list_of_triples_is_no_list_of_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    put(tmp_path / "a", "x")
    assert read([("a", "r", "b")], [["a", "r", "b"]]).target.num_triples == 1
    with pytest.raises(InputError, match="is no row of 3 texts"):
        read(["one", "two", "three"], [("a", "r", "b")])


def test_what_cannot_be_one_graph(parts, tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read([parts / "a.ttl", parts / "none.nt"], parts)
    with pytest.raises(InputError, match="no file has a name like this"):
        read_place(str(parts / "*.rdf"))
    put(parts / "README.md", "x")
    with pytest.raises(InputError, match=r"such as README.md; .*'.*\*.ttl'"):
        read_graph(parts)
    with pytest.raises(InputError, match=r"README.md: is no RDF file"):
        read([parts / "a.ttl", parts / "README.md"], parts)


def test_patterns_on_the_command_line(parts, tmp_path, run_cli):
    pattern = str(parts / "*.*")
    done = run_cli("align", pattern, parts, "--matcher", "mutual", "--embedding", "names", "--output", tmp_path / "out")
    assert done.code == 0, done.err
    assert run_cli("explain", tmp_path / "out", "http://e/1").code == 0
    assert run_cli("convert", pattern, tmp_path / "one.nt").code == 0
    assert read_graph(tmp_path / "one.nt").fingerprint == whole(tmp_path).fingerprint


class Files:
    """A server of files, which counts what it sends."""

    def __init__(self):
        self.content = {"/x.nt": FIRST.encode(), "/y.ttl.gz": gzip.compress(FIRST.encode()), "/no-extension": WHOLE}
        self.kind = "application/n-triples; charset=utf-8"
        self.trouble = []
        self.sent = 0

    def answer(self, handler, body):
        content = self.content.get(handler.path.partition("?")[0])
        trouble = self.trouble.pop() if self.trouble else ""
        if trouble == "busy" or content is None:
            handler.send_response(503 if trouble else 404)
            handler.end_headers()
            return
        mark = f'"{hash(content)}"'
        if handler.headers.get("If-None-Match") == mark:
            handler.send_response(304)
            handler.end_headers()
            return
        self.sent += 1
        handler.send_response(200)
        handler.send_header("Content-Type", self.kind)
        handler.send_header("Content-Length", str(len(content)))
        handler.send_header("ETag", mark)
        handler.end_headers()
        handler.wfile.write(content[:20] if trouble == "cut" else content)


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(web, "BACKOFF", 0.0)
    return Files()


def test_files_of_the_web(files, tmp_path):
    expected = read_graph(put(tmp_path / "x.nt", FIRST)).fingerprint
    files.trouble = ["cut", "busy"]
    told = []
    with serving(files.answer) as address:
        graph = read_place(f"{address}/x.nt?version=1", progress=lambda *report: told.append(report))
        assert graph.fingerprint == expected
        assert files.sent == 2  # one of them was cut off
        assert told[-1][:3] == ("download", len(FIRST), len(FIRST))
        assert read_place(f"{address}/x.nt?version=1").fingerprint == expected
        assert files.sent == 2  # the second time it was still the same
        assert read_place(f"{address}/y.ttl.gz").fingerprint == expected
        assert read_place(f"{address}/no-extension").num_triples == 4
        files.content["/x.nt"] = SECOND.encode()
        assert read_place(f"{address}/x.nt?version=1").fingerprint != expected
        both = read([f"{address}/x.nt", f"{address}/no-extension"], f"{address}/y.ttl.gz")
        assert both.name == "source-y"
        assert both.inputs == {"target": f"{address}/y.ttl.gz"}
    again = read_place(f"{address}/y.ttl.gz")  # the server is gone
    assert again.fingerprint == expected
    assert "could not be read, so the copy of" in again.notes[0]
    assert not [*(tmp_path / "cache").rglob("*.tmp")]


def test_failures_of_the_web_are_sentences(files):
    with serving(files.answer) as address:
        with pytest.raises(InputError, match="answers 404"):
            read_place(f"{address}/none.nt")
        files.kind = "text/html"
        with pytest.raises(InputError, match="no extension of a graph, and the server says that it is text/html"):
            read_place(f"{address}/no-extension")
    with pytest.raises(InputError, match=r"x.nt: cannot be read \(.*refused.*after 6 tries"):
        read_place(f"{address}/x.nt")
    for wrong in ("http://", "http://host:port/x.nt"):
        with pytest.raises(InputError, match="check the address"):
            read_place(wrong)
    with pytest.raises(InputError, match="there is one graph alone"):
        read(f"{address}/x.nt")


def test_addresses_on_the_command_line(files, tmp_path, run_cli):
    with serving(files.answer) as address:
        graphs = [f"{address}/x.nt", f"{address}/y.ttl.gz"]
        done = run_cli("align", *graphs, "--matcher", "mutual", "--embedding", "names", "--output", tmp_path / "out")
        assert done.code == 0, done.err
        assert run_cli("explain", tmp_path / "out", "http://e/1").code == 0
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert record["inputs"] == dict(zip(("source", "target"), graphs, strict=True))


def test_addresses_with_other_letters(files):
    files.content["/Z%C3%BCrich.nt"] = FIRST.encode()
    with serving(files.answer) as address:
        assert read_place(f"{address}/Zürich.nt").num_triples == 2


@pytest.mark.parametrize(
    ("place", "name"),
    [
        ("folder/people.nt.gz", "people"),
        ("https://host/a/people.ttl?x=1", "people"),
        ("sparql+https://query.host.org/sparql", "query.host.org"),
        ("dumps/*.nt", "*.nt"),
        ("-", "stdin"),
    ],
)
def test_names_of_graphs(place, name):
    assert short_name(place) == name
