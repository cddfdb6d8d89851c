"""A SPARQL endpoint is read whole, whatever it does, and goes on where a read was interrupted."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlencode

import pytest

from rlea.errors import InputError
from rlea.io.read import read
from rlea.io.readers import read_graph, sparql, web
from rlea.io.readers.places import read_place
from rlea.io.readers.sparql import PAGE, parse_query, read_endpoint
from small_graphs import facts, put, relations
from sparql_server import Endpoint, serving

LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
XSD = "http://www.w3.org/2001/XMLSchema#"


@pytest.fixture(autouse=True)
def quick(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(web, "BACKOFF", 0.0)


def dump(num_triples: int) -> str:
    """Triples of all kinds: relations, a hub with very many as a subject, classes, text with quotes, numbers, dates."""
    lines = []
    for n in range(num_triples):
        one, k = f"<http://e/{n // 7:05}>", n % 7
        thing = [
            f"<http://e/near> <http://e/{(n * 31) % (num_triples // 7):05}>",
            f'<{LABEL}> "Ort {n}"@de-at',
            f'<{LABEL}> "Ort {n}"',
            f'<http://e/size> "{n}"^^<{XSD}integer>',
            f'<http://e/size> "{n}.5"^^<{XSD}decimal>',
            "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://e/Place>",
            f'<http://e/says> "a \\"quote\\"\\n{n} ü"',
        ][k]
        lines.append(f"{'<http://e/hub>' if n % 3 == 0 and k == 0 else one} {thing} .")
    return "\n".join(lines) + "\n"


def read_through_trouble(num_triples: int, cap: int, tmp_path: Path) -> tuple[int, int]:
    """Kill a reader in the middle, go on, and compare with the file; the number of requests before and after."""
    text = dump(num_triples)
    expected = read_graph(put(tmp_path / "dump.nt", text))
    endpoint = Endpoint(text, cap=cap, failing=True)
    pages = tmp_path / "cache" / "rlea" / "sparql"
    program = "import sys; from rlea.io.readers import web, places; web.BACKOFF = 0.0; places.read_place(sys.argv[1])"
    with serving(endpoint.answer) as address:
        reader = subprocess.Popen([sys.executable, "-c", program, f"sparql+{address}/sparql"], env=os.environ.copy())
        half = num_triples // cap // 2
        # The server ends the reader when it asks for a page behind the middle.
        endpoint.on_page = lambda number: reader.kill() if len([*pages.glob("*/0*.json.gz")]) >= half else None
        reader.wait(600)
        before = len(endpoint.queries)
        kept = len([*pages.glob("*/0*.json.gz")])
        assert kept >= half
        assert reader.returncode != 0
        endpoint.on_page = lambda number: None
        graph = read_endpoint(f"sparql+{address}/sparql")
        after = len(endpoint.queries) - before
        assert graph.fingerprint == expected.fingerprint
        assert any(f"sends {cap:,} rows at a time" in note for note in graph.notes)
        total = len([*pages.glob("*/0*.json.gz")])
        assert after <= 4 * (total - kept) + 4  # nothing that was there is asked for again; three of four tries fail
    return before, after


def test_an_endpoint_is_read_whole_through_interruptions(tmp_path):
    before, after = read_through_trouble(2_000, 150, tmp_path)
    assert before
    assert after


@pytest.mark.slow
def test_a_large_endpoint_is_read_whole_through_interruptions(tmp_path):
    before, after = read_through_trouble(50_000, 2_000, tmp_path)
    print(f"50,000 triples: {before} requests, killed, {after} more")
    assert after


def test_a_finished_read_is_not_asked_for_again(tmp_path):
    text = dump(300)
    endpoint = Endpoint(text)
    with serving(endpoint.answer) as address:
        first = read_place(f"sparql+{address}")
    again = read_place(f"sparql+{address}")  # the server is gone
    assert again.fingerprint == first.fingerprint == read_graph(put(tmp_path / "x.nt", text)).fingerprint
    assert first.notes == ()
    assert "from the cache" in again.notes[0]


def test_the_limit_is_kept_and_told():
    with serving(Endpoint(dump(700), cap=100).answer) as address:
        graph = read_endpoint(f"sparql+{address}", limit=250)
        assert any("only the first 250 triples of about 700" in note for note in graph.notes)
        assert len(graph.triples) + len(graph.literals) == 250
        with pytest.raises(InputError, match="limit is 0"):
            read_endpoint(f"sparql+{address}", limit=0)


def test_blank_nodes_are_left_out_and_counted():
    text = '_:b <http://e/p> "x" .\n<http://e/1> <http://e/p> _:b .\n<http://e/1> <http://e/p> <http://e/2> .\n'
    with serving(Endpoint(text).answer) as address:
        graph = read_endpoint(f"sparql+{address}")
    assert relations(graph) == {("http://e/1", "http://e/p", "http://e/2")}
    assert any("left out 2 statements with blank nodes" in note for note in graph.notes)


@pytest.mark.parametrize("cap", [3, 1000])
def test_a_query_of_ones_own(tmp_path, cap):
    query = """
    PREFIX e: <http://e/>  # names of all places
    CONSTRUCT { ?s e:name ?o ; a e:Named . ?s e:near ?x } WHERE {
        ?s <http://www.w3.org/2000/01/rdf-schema#label> ?o  FILTER(LANG(?o) = "" && ?o != "}")
        OPTIONAL { ?s e:near ?x }
    }"""
    text = dump(140)
    endpoint = Endpoint(text, cap=cap)
    path = put(tmp_path / "names.rq", query)
    with serving(endpoint.answer) as address:
        graph = read(f"sparql+{address}", [("a", "r", "b")], source_query=path).source
    told = {(str(t.subject), str(t.predicate), str(t.object)) for t in endpoint.store.query(query)}
    assert len(graph.triples) + len(graph.literals) == len(told)
    assert {value for _, name, value, *_ in facts(graph) if name == "http://e/name"} == {
        f"Ort {n}" for n in range(140) if n % 7 == 2
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT * WHERE { ?s ?p ?o }", "no CONSTRUCT query"),
        ("CONSTRUCT { ?s ?p ?o WHERE", "no SPARQL query"),
        ("CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o } LIMIT 10", "LIMIT 10"),
        ("CONSTRUCT { ?s ?p [] } WHERE { ?s ?p ?o }", "blank nodes"),
        ("CONSTRUCT { <a:b> <a:c> <a:d> } WHERE { ?s ?p ?o }", "no variable"),
    ],
)
def test_other_queries_are_refused(tmp_path, text, words):
    with pytest.raises(InputError, match=words):
        parse_query(put(tmp_path / "x.rq", text))


def test_the_parts_of_a_query(tmp_path):
    text = "PREFIX e: <http://e#>\nCONSTRUCT WHERE { ?s e:p ?o }"
    query = parse_query(put(tmp_path / "x.rq", text))
    assert (query.template, query.pattern, query.variables) == ("{ ?s e:p ?o }", "{ ?s e:p ?o }", ("?s", "?o"))
    text = "CONSTRUCT { ?o <a:b> ?s } FROM <http://g> WHERE { ?s ?p ?o }"
    assert parse_query(put(tmp_path / "y.rq", text)).dataset == "FROM <http://g> "


def test_errors_are_sentences(tmp_path):
    def refuse(handler, body):
        handler.send_response(400, "Bad Request")
        handler.end_headers()
        handler.wfile.write(b"Virtuoso 37000 Error: syntax")

    with serving(refuse) as address, pytest.raises(InputError, match=r"400 \(Bad Request\): Virtuoso 37000"):
        read_endpoint(f"sparql+{address}")

    def busy(handler, body):
        handler.send_response(503)
        handler.end_headers()

    with serving(busy) as address, pytest.raises(InputError, match=r"answers 503.*6 tries; run the command again"):
        read_endpoint(f"sparql+{address}")

    with serving(Endpoint("").answer) as address, pytest.raises(InputError, match="gives no triples"):
        read_endpoint(f"sparql+{address}")
    triples = [("a", "r", "b")]
    for options in ({"source_query": tmp_path}, {"target_query": tmp_path}, {"endpoint_limit": 5}):
        name = next(iter(options)).replace("_", "-")
        with pytest.raises(InputError, match=f"--{name} is for SPARQL endpoints"):
            read(triples, triples, **options)


def test_an_answer_that_the_endpoint_cut_short_is_asked_for_again():
    endpoint = Endpoint(dump(70))
    short = iter([True, False, True, False, False, False])

    def respond(handler, body):
        if next(short):
            handler.send_response(200)
            handler.send_header("X-SQL-State", "S1TAT")
            handler.end_headers()
        else:
            endpoint.answer(handler, body)

    with serving(respond) as address:
        graph = read_endpoint(f"sparql+{address}")
    assert len(graph.triples) + len(graph.literals) == 70


@pytest.mark.parametrize("with_query", [False, True])
def test_odd_terms(tmp_path, with_query):
    """What real endpoints send: IRIs with spaces, languages that are none, halves of characters."""
    terms = [
        {"type": "uri", "value": "http://e/a b>c"},
        {"type": "literal", "value": "x", "xml:lang": "no language"},
        {"type": "literal", "value": "half \ud83d"},
        {"type": "typed-literal", "value": "1", "datatype": "http://e/type"},
        {"type": "literal", "value": 'a\\b"c\n'},
    ]
    subject, predicate = ({"type": "uri", "value": f"http://e/{name}"} for name in "sp")
    pages = iter([[{"s": subject, "p": predicate, "o": term} for term in terms], []])

    def respond(handler, body):
        rows = [{}] if b"COUNT" in body else next(pages)
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(json.dumps({"results": {"bindings": rows}}).encode())

    query = put(tmp_path / "x.rq", "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o . }") if with_query else None
    with serving(respond) as address:
        graph = read_endpoint(f"sparql+{address}", query)
    assert {value for _, _, value, *_ in facts(graph)} == {"x", "half ?", "1", 'a\\b"c\n'}
    assert ("http://e/a b>c" in graph.entities) == (not with_query)
    assert any("invalid IRIs" in note for note in graph.notes) == with_query


def test_an_answer_that_is_no_result():
    def respond(handler, body):
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(b"<html>Welcome</html>")

    with serving(respond) as address, pytest.raises(InputError, match="no SPARQL result in JSON"):
        read_endpoint(f"sparql+{address}")


def test_an_endpoint_that_knows_no_pages():
    endpoint = Endpoint(dump(70))

    def respond(handler, body):
        query = parse_qs(body.decode())["query"][0]
        unpaged = re.sub(r" FILTER.* }|OFFSET.*", lambda match: "}" if "FILTER" in match[0] else "", query)
        endpoint.answer(handler, urlencode({"query": unpaged}).encode())

    with serving(respond) as address, pytest.raises(InputError, match="sends the same rows again"):
        read_endpoint(f"sparql+{address}")


def test_rows_that_do_not_come_are_told():
    endpoint = Endpoint(dump(700), cap=200)

    def respond(handler, body):
        endpoint.cap = 0 if len(endpoint.queries) > 2 else endpoint.cap  # the count, and two pages
        endpoint.answer(handler, body)

    with serving(respond) as address:
        graph = read_endpoint(f"sparql+{address}")
    assert any("400 rows came, and it counts 700" in note for note in graph.notes)


def test_endpoints_on_the_command_line(tmp_path, run_cli):
    text = dump(210)
    put(tmp_path / "x.nt", text)
    query = put(tmp_path / "all.rq", "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }")
    endpoint = Endpoint(text)
    with serving(endpoint.answer) as address:
        options = ["--matcher", "mutual", "--embedding", "names", "--output", tmp_path / "out", "--endpoint-limit", 200]
        place = f"sparql+{address}"
        done = run_cli("align", place, place, "--source-query", query, "--target-query", query, *options)
    assert done.code == 0, done.err
    assert "only the first 200 triples of about 210 rows were read" in " ".join((done.out + done.err).split())
    # The record says how to read the graphs again, which the cache can do.
    assert run_cli("explain", tmp_path / "out", "http://e/00001").code == 0
    done = run_cli("convert", f"sparql+{address}", tmp_path / "y.nt")
    assert done.code == 2
    assert "cannot be read" in done.err
    assert f"{sparql.LIMIT:,}".replace(",", "") in run_cli("align", "--help").out
    assert PAGE <= sparql.LIMIT
