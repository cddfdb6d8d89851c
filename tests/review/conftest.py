"""A small reviewed run: three capitals, a planted trace with two channels, hostile text; and a server of it."""

import json
import threading
import urllib.error
import urllib.parse
import urllib.request
from types import SimpleNamespace

import numpy as np
import pytest

import rlea
from rlea.agent.trace import DECISIONS, Trace
from rlea.io.writers.run_folder import add_files
from rlea.review.session import Review
from rlea.review.web import ReviewServer
from rlea.verdicts import VERDICTS, VerdictStore
from rlea.views.explain import Run

S, T = "http://s.example/", "http://t.example/"
LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
SCRIPT = "<script>document.title='stolen'</script><img src=x onerror=alert(1)>"
NUMBER = 40


def write_graphs(folder):
    """Towns in two countries. Town k of one graph is town k of the other; the last one is called by a script."""
    for name, prefix, located in (("source.nt", S, "in"), ("target.nt", T, "lies")):
        lines = []
        for k in range(NUMBER):
            town = f"<{prefix}t{k:02}>"
            label = SCRIPT if k == NUMBER - 1 else f"Town {k:02}" + ("a" if prefix == T and k % 3 == 0 else "")
            lines.append(f"{town} {LABEL} {json.dumps(label)} .")
            lines.append(f"{town} {TYPE} <{prefix}{'City' if k % 2 else 'Village'}> .")
            lines.append(f'{town} <{prefix}people> "{1000 + k}" .')
            lines.append(f"{town} <{prefix}{located}> <{prefix}c{k % 2}> .")
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "seeds.tsv").write_text(f"{S}c0\t{T}c0\n{S}c1\t{T}c1\n", encoding="utf-8")


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """The folder of a run with a link for every town but two, which were left out; confidences rise with the number."""
    folder = tmp_path_factory.mktemp("towns")
    write_graphs(folder)
    pair = rlea.read(folder / "source.nt", folder / "target.nt", seeds=folder / "seeds.tsv")
    result = rlea.align(pair, matcher="best-first")
    rlea.write(folder / "run", result)
    source, target = pair.source.entity_index, pair.target.entity_index
    towns = [(source[f"{S}t{k:02}"], target[f"{T}t{k:02}"], (k + 1) / (NUMBER + 1)) for k in range(NUMBER)]
    lines = ["source\ttarget\tconfidence"]
    lines += [f"{S}t{k:02}\t{T}t{k:02}\t{towns[k][2]:.6f}" for k in range(2, NUMBER)]
    names = sorted((s, -logit, t, features) for s, t, logit, features in scored(towns))
    trace = Trace(
        *(np.array([row[k] for row in towns], kind) for k, kind in ((0, np.int32), (1, np.int32))),
        *[np.array([row[2] for row in towns], np.float32)] * 2,
        np.array([row[0] for row in names], np.int32),
        np.array([row[2] for row in names], np.int32),
        np.array([-row[1] for row in names], np.float32),
        np.array([row[3] for row in names], np.float32),
        ("name", "words"),
    )
    add_files(folder / "run", {"links.tsv": "\n".join(lines) + "\n", DECISIONS: trace.put})
    return folder / "run"


def scored(towns):
    """Every town with its own target and the next one's; names are for the pair, words every fourth time against it."""
    for k, (source, target, confidence) in enumerate(towns):
        yield source, target, confidence, (0.9, 0.2 if k % 4 == 0 else 0.8)
        yield source, towns[(k + 1) % NUMBER][1], confidence / 2, (0.5, 0.6)


@pytest.fixture
def folder(made):
    """The run, without verdicts."""
    (made / VERDICTS).unlink(missing_ok=True)
    return made


@pytest.fixture(scope="session")
def run(made):
    return Run.open(made)


@pytest.fixture
def review(run, folder):
    with VerdictStore.of_run(folder) as store:
        yield Review(run, store)


@pytest.fixture
def site(review):
    """Requests to a server of the review: status, headers, text, JSON."""
    server = ReviewServer(review, "127.0.0.1", 0, reviewer="Ann")
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()

    class Stay(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_):
            return None

    opener = urllib.request.build_opener(Stay)

    def ask(path="/", body=None, headers=None, token=server.token, method=None, **given):
        address = server.address + path + ("?" + urllib.parse.urlencode(given) if given else "")
        sent = {} if token is None else {"Cookie": f"{server.cookie}={token}"}
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        sent |= {"Content-Type": "application/json"} if data is not None else {}
        request = urllib.request.Request(address, data, sent | (headers or {}), method=method)
        try:
            answer = opener.open(request, timeout=30)
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            text = answer.read().decode()
            is_json = answer.headers.get("Content-Type", "").startswith("application/json")
            value = json.loads(text) if is_json else None
            return SimpleNamespace(status=answer.status, headers=answer.headers, text=text, json=value)

    yield SimpleNamespace(ask=ask, server=server, review=review)
    server.shutdown()
    server.server_close()
    thread.join()
