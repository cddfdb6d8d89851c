"""A small graph with namesakes, types, other scripts and hostile text, and a server of it."""

import json
import threading
import urllib.error
import urllib.parse
import urllib.request
from types import SimpleNamespace

import pytest

from rlea.io.readers import read_graph
from rlea.serve.protocol import Service
from rlea.serve.reconciler import Reconciler
from rlea.serve.web import Server

X = "http://x.example/"
LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
XSD = "http://www.w3.org/2001/XMLSchema#"
STEMS = ("Alder", "Birch", "Cedar", "Dogwood", "Elm", "Fir", "Ginkgo", "Hazel", "Ivy", "Juniper", "Katsura", "Larch")
ENDS = ("brook", "field", "ford", "haven", "hill", "mouth", "port", "stead", "wick", "worth")


def lines():
    """120 towns of made-up names in four states, and what single tests speak of."""
    for number, (stem, end) in enumerate((stem, end) for stem in STEMS for end in ENDS):
        town = f"<{X}t{number}>"
        yield f'{town} {LABEL} "{stem}{end}" .'
        yield f"{town} {TYPE} <{X}Town> ."
        yield f"{town} <{X}state> <{X}s{number % 4}> ."
        yield f'{town} <{X}people> "{1000 + 37 * number}"^^<{XSD}integer> .'
        yield f'{town} <{X}founded> "{1600 + number}-05-02" .'
    for number, name in enumerate(("North Marland", "South Marland", "Ostrava", "Quillon")):
        yield f'<{X}s{number}> {LABEL} "{name}" .'
        yield f"<{X}s{number}> {TYPE} <{X}State> ."
    for number in (0, 1):
        yield f'<{X}twin{number}> {LABEL} "Springvale" .'
        yield f"<{X}twin{number}> {TYPE} <{X}Town> ."
        yield f"<{X}twin{number}> <{X}state> <{X}s{number}> ."
    yield f'<{X}msk> {LABEL} "Москва"@ru .'
    yield f'<{X}msk> <http://www.w3.org/2004/02/skos/core#altLabel> "Capital of the Bears" .'
    yield f'<{X}bad> {LABEL} "<script>alert(1)</script> & Sons" .'
    yield f'<{X}bad> <{X}motto> "<img src=x onerror=alert(2)>" .'
    yield f'<{X}bad> <{X}since> "2001-02-03T04:05:06Z"^^<{XSD}dateTime> .'
    yield f'<{X}bad> <{X}share> "0.5"^^<{XSD}decimal> .'


@pytest.fixture(scope="session")
def towns_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("serve") / "towns.nt"
    path.write_text("\n".join(lines()) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def towns(towns_file):
    return Reconciler(read_graph(towns_file))


@pytest.fixture(scope="session")
def client(towns):
    """Requests to a server in a thread: status, headers and body."""
    server = Server(Service(towns, "towns"), "127.0.0.1", 0)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()

    def ask(path="/", form=None, headers=None, method=None, **given):
        address = server.address + path + ("?" + urllib.parse.urlencode(given) if given else "")
        body = None if form is None else form if isinstance(form, bytes) else urllib.parse.urlencode(form).encode()
        request = urllib.request.Request(address, body, headers or {}, method=method)
        try:
            answer = urllib.request.urlopen(request, timeout=30)
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            text = answer.read().decode()
            kind = answer.headers.get("Content-Type", "")
            value = json.loads(text) if kind.startswith("application/json") else None
            return SimpleNamespace(status=answer.status, headers=answer.headers, text=text, json=value)

    def reconcile(**query):
        return ask(form={"queries": json.dumps({"q": query})}).json["q"]["result"]

    yield SimpleNamespace(ask=ask, reconcile=reconcile, address=server.address, server=server)
    server.shutdown()
    server.server_close()
    thread.join()
