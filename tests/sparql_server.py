"""A SPARQL endpoint on loopback that fails in the ways of public ones, and a server of files."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

import pyoxigraph


class Endpoint:
    """Answers SELECT queries over a store; `cap` rows at most, and every n-th answer is a failure."""

    def __init__(
        self, text: str = "", *, cap: int = 10_000, failing: bool = False, format_=pyoxigraph.RdfFormat.N_TRIPLES
    ):
        self.store = pyoxigraph.Store()
        self.store.bulk_load(text.encode(), format_)
        self.cap = cap
        self.failing = failing
        self.queries: list[str] = []
        self.on_page: Callable[[int], None] = lambda number: None

    def answer(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        query = parse_qs(body.decode())["query"][0]
        self.queries.append(query)
        number = len(self.queries)
        self.on_page(number)
        if self.failing and number % 4 == 1:
            handler.send_response(503 if number % 8 == 1 else 429)
            handler.send_header("Retry-After", "0")
            handler.end_headers()
            return
        if self.failing and number % 4 == 2:
            handler.close_connection = True  # nothing is sent at all
            return
        found = json.loads(self.store.query(query).serialize(format=pyoxigraph.QueryResultsFormat.JSON))
        found["results"]["bindings"] = found["results"]["bindings"][: self.cap]
        content = json.dumps(found).encode()
        handler.send_response(200)
        handler.send_header("Content-Type", "application/sparql-results+json")
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        # A connection that breaks in the middle of an answer.
        handler.wfile.write(content[: len(content) // 2] if self.failing and number % 4 == 3 else content)


@contextmanager
def serving(respond: Callable[[BaseHTTPRequestHandler, bytes], None]) -> Iterator[str]:
    """The address of a server on loopback; `respond` gets every request with its body."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            respond(self, b"")

        def do_POST(self) -> None:
            respond(self, self.rfile.read(int(self.headers["Content-Length"])))

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
