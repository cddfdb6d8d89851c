"""The service over HTTP.

By the standard library: the routes are few and every request is a short computation, so a framework would add packages
and no speed.
"""

from __future__ import annotations

import json
import re
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from rlea.errors import InputError
from rlea.io.readers.places import read_place, short_name
from rlea.io.readers.rows import GUESS, RowOptions
from rlea.progress import Progress, silent
from rlea.serve.local import LocalServer
from rlea.serve.protocol import Html, RequestError, Service
from rlea.serve.reconciler import Reconciler

MOST_BYTES = 4_000_000  # of the body of a request
MOST_FIELDS = 20
_CALLBACK = re.compile(r"[A-Za-z_$][\w$]*(\.[A-Za-z_$][\w$]*)*", re.ASCII)
_HOST = re.compile(r"(\[[0-9a-fA-F:]+\]|[A-Za-z0-9.-]+)(:\d{1,5})?")
CORS = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Methods": "GET, POST, OPTIONS",
    "Access-Control-Allow-Headers": "Content-Type, X-Requested-With",
}


def open_server(
    graph: str | Path, host: str, port: int, *, rows: RowOptions = GUESS, progress: Progress = silent
) -> Server:
    """Read a graph, index it, and listen; `serve_forever` answers."""
    read = read_place(graph, rows=rows, progress=progress)
    if not read.num_entities:
        raise InputError("has no entities", path=graph, remedy="give a graph with something in it")
    return Server(Service(Reconciler(read, progress=progress), short_name(graph)), host, port)


class Server(LocalServer):
    """An HTTP server for one service."""

    def __init__(self, service: Service, host: str, port: int) -> None:
        self.service = service
        super().__init__(host, port, _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    timeout = 60  # seconds that a connection may be silent
    disable_nagle_algorithm = True  # head and body are written apart: the second would wait for an answer to the first

    def do_GET(self) -> None:
        self._answer(urlsplit(self.path).query)

    def do_POST(self) -> None:
        try:
            length = int(self.headers.get("Content-Length", ""))
        except ValueError:
            self._refuse("The request does not say how long it is.", 411)
            return
        if not 0 <= length <= MOST_BYTES:
            self._refuse(f"The request has more than {MOST_BYTES:,} bytes.", 413)
            return
        body = self.rfile.read(length).decode("utf-8", "replace")
        more = urlsplit(self.path).query
        self._answer(f"{body}&{more}" if more else body)

    def do_OPTIONS(self) -> None:
        self._send(204, b"", "text/plain")

    def _answer(self, fields: str) -> None:
        try:
            given = dict(reversed(parse_qsl(fields, keep_blank_values=True, max_num_fields=MOST_FIELDS)))
        except ValueError:
            self._fail(f"The request has more than {MOST_FIELDS} parameters.", 400)
            return
        callback = given.get("callback", "")
        if callback and not (len(callback) <= 100 and _CALLBACK.fullmatch(callback)):
            self._fail("The callback is no name of a function.", 400)
            return
        try:
            found = self.server.service.answer(urlsplit(self.path).path.rstrip("/"), given, self._base())
        except RequestError as problem:
            self._fail(str(problem), problem.status)
            return
        except Exception:  # a defect of the program: the client hears of it, and the server goes on
            self._fail("The service has failed at this request.", 500)
            return
        if isinstance(found, Html):
            self._send(200, found.text.encode("utf-8", "replace"), "text/html; charset=utf-8")
            return
        text = json.dumps(found)  # in ASCII, so that any identifier can be sent
        if callback:
            # The comment keeps other programs from taking the answer for one of their own files.
            self._send(200, f"/**/{callback}({text});".encode(), "application/javascript; charset=utf-8")
        else:
            self._send(200, text.encode(), "application/json; charset=utf-8")

    def _base(self) -> str:
        """The address by which the client knows the service."""
        host = self.headers.get("Host", "")
        return f"http://{host}" if _HOST.fullmatch(host) else self.server.address

    def _fail(self, sentence: str, status: int) -> None:
        text = json.dumps({"status": "error", "message": sentence})
        self._send(status, text.encode(), "application/json; charset=utf-8")

    def _refuse(self, sentence: str, status: int) -> None:
        """Answer without having read the body; the connection cannot be used again."""
        self.close_connection = True
        self._fail(sentence, status)

    def _send(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        headers = {"Content-Type": kind, "Content-Length": str(len(body)), "X-Content-Type-Options": "nosniff"}
        if self.close_connection:
            headers["Connection"] = "close"
        for name, value in {**headers, **CORS}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Nothing is printed for a request."""
