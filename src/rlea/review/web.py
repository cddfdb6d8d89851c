"""The review as a web page, for people at this machine.

A page in another tab must not be able to read the graphs or answer in a person's name. So every request needs the token
that only the printed address has, which the browser then keeps as a cookie for this server alone; requests that name
another host (DNS rebinding) or come from another origin are refused; and the page may load nothing but its own three
files. Those have fixed names: no part of a request is ever a path on the disk.
"""

from __future__ import annotations

import hmac
import json
import secrets
import socket
from collections.abc import Callable, Mapping
from functools import cache, cached_property
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

from rlea.errors import InputError
from rlea.review.session import Filters, Review
from rlea.serve.local import LOOPBACK, LocalServer

MOST_BYTES = 100_000  # of the body of a request
MOST_FIELDS = 30
STATIC = {
    "/": ("page.html", "text/html; charset=utf-8"),
    "/review.css": ("review.css", "text/css; charset=utf-8"),
    "/review.js": ("review.js", "text/javascript; charset=utf-8"),
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}

Fields = Mapping[str, Any]


class ReviewServer(LocalServer):
    """A server of one review; `url` is what a person opens."""

    def __init__(self, review: Review, host: str, port: int, *, reviewer: str = "", token: str = "") -> None:
        self.review, self.host, self.reviewer = review, host, reviewer
        self.token = token or secrets.token_urlsafe(32)
        super().__init__(host, port, _Handler)

    @property
    def url(self) -> str:
        """The address with the token, which must be kept from others."""
        return f"{self.address}/?token={quote(self.token)}"

    @property
    def cookie(self) -> str:
        """The name of the cookie; those of one machine are shared by all of its ports."""
        return f"rlea_review_{self.server_address[1]}"

    @cached_property
    def _names(self) -> frozenset[str]:
        """Names that do not depend on the connection; those of the machine only where others may ask."""
        others = () if self.host in LOOPBACK else (socket.gethostname(), socket.getfqdn())
        return frozenset((*LOOPBACK, self.host, *others)) - {""}

    def hosts(self, own: str) -> set[str]:
        """The names by which this server may be called; `own` is the address that a connection came in at."""
        port = self.server_address[1]
        shown = {f"[{name}]" if ":" in name else name for name in {*self._names, own}}
        return {f"{name}:{port}".lower() for name in shown} | (shown if port == 80 else set())


class _Handler(BaseHTTPRequestHandler):
    server: ReviewServer
    protocol_version = "HTTP/1.1"
    timeout = 60  # seconds that a connection may be silent
    disable_nagle_algorithm = True  # head and body are written apart: the second would wait for an answer to the first

    def do_GET(self) -> None:
        place = urlsplit(self.path)
        if not self._is_from_here():
            return
        try:
            given: dict[str, Any] = dict(parse_qsl(place.query, keep_blank_values=True, max_num_fields=MOST_FIELDS))
        except ValueError:
            self._fail(f"The request has more than {MOST_FIELDS} parameters.", 400)
            return
        if place.path == "/" and "token" in given:
            self._enter(given["token"])
        elif self._may_enter():
            if place.path in STATIC:
                name, kind = STATIC[place.path]
                self._send(200, _file(name), kind)
            else:
                self._answer(_QUESTIONS.get(place.path), given)

    def do_POST(self) -> None:
        self.close_connection = True  # until the body was read
        if not self._is_from_here() or not self._may_enter():
            return
        if self.headers.get_content_type() != "application/json":
            self._fail("Answers are sent as JSON.", 415)
            return
        try:
            length = int(self.headers.get("Content-Length", ""))
        except ValueError:
            self._fail("The request does not say how long it is.", 411)
            return
        if not 0 <= length <= MOST_BYTES:
            self._fail(f"The request has more than {MOST_BYTES:,} bytes.", 413)
            return
        try:
            given = json.loads(self.rfile.read(length))
        except (ValueError, RecursionError):
            given = None
        self.close_connection = False
        if not isinstance(given, dict):
            self._fail("The request is no JSON object.", 400)
            return
        self._answer(_ANSWERS.get(urlsplit(self.path).path), given)

    # ---- who may ask ------------------------------------------------------------------------------------------------

    def _is_from_here(self) -> bool:
        """Whether the request is meant for this server and made by its own page; if not, it is refused."""
        host, origin = self.headers.get("Host", "").lower(), self.headers.get("Origin")
        is_own = origin is None or origin.lower() == f"http://{host}"
        if self.command == "POST":
            is_own = is_own and self.headers.get("Sec-Fetch-Site", "none") in ("none", "same-origin")
        if host not in self.server.hosts(str(self.connection.getsockname()[0])):
            self._refuse("This server is not called by that name.", 403)
        elif not is_own:
            self._refuse("Other pages may not ask this server.", 403)
        else:
            return True
        return False

    def _may_enter(self) -> bool:
        """Whether the request has the token, as a cookie or as `Authorization: Bearer`; if not, it is refused."""
        try:
            cookies = SimpleCookie(self.headers.get("Cookie", ""))
        except CookieError:
            cookies = SimpleCookie()
        kept = cookies[self.server.cookie].value if self.server.cookie in cookies else ""
        given = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if any(self._is_token(one) for one in (kept, given)):
            return True
        self._refuse("Open the address that rlea review has printed: it has the token that is missing here.", 403)
        return False

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "replace"), self.server.token.encode())

    def _enter(self, token: str) -> None:
        """Keep the token as a cookie, and take it out of the address: that one is shown, kept and shared."""
        if not self._is_token(token):
            self._refuse("The token is wrong: open the address that rlea review has printed.", 403)
            return
        cookie = f"{self.server.cookie}={self.server.token}; HttpOnly; SameSite=Strict; Path=/"
        self._send(303, b"", "text/plain", {"Location": "/", "Set-Cookie": cookie})

    # ---- answers ----------------------------------------------------------------------------------------------------

    def _answer(self, work: Callable[[ReviewServer, Fields], Any] | None, given: Fields) -> None:
        if work is None:
            self._fail("There is nothing of this name.", 404)
            return
        try:
            found = work(self.server, given)
        except InputError as problem:
            self._fail(str(problem), 400)
        except (KeyError, TypeError, ValueError):  # what is missing, or of another type than the page sends
            self._fail("The request lacks something, or something in it is of another kind.", 400)
        except Exception:  # a defect, or a full disk: the person hears that nothing was kept, and the server goes on
            self._fail("The server has failed at this request; nothing was kept.", 500)
        else:
            self._send(200, json.dumps(found).encode(), "application/json; charset=utf-8")

    def _fail(self, sentence: str, status: int) -> None:
        self._send(status, json.dumps({"message": sentence}).encode(), "application/json; charset=utf-8")

    def _refuse(self, sentence: str, status: int) -> None:
        """Answer somebody who may know nothing; the body is not read, so the connection ends."""
        self.close_connection = True
        self._send(status, (sentence + "\n").encode(), "text/plain; charset=utf-8")

    def _send(self, status: int, body: bytes, kind: str, more: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        headers = {"Content-Type": kind, "Content-Length": str(len(body)), **HEADERS, **(more or {})}
        if self.close_connection:
            headers["Connection"] = "close"
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Nothing is printed for a request."""


@cache
def _file(name: str) -> bytes:
    return (files("rlea.review") / name).read_bytes()


# ---- what can be asked ----------------------------------------------------------------------------------------------


def filters_of(given: Fields) -> Filters:
    """The filters in a request; what is not there has its default."""
    texts = {name: str(given[name]) for name in ("order", "scope", "kind", "channel") if given.get(name)}
    numbers = {name: float(given[name]) for name in ("low", "high") if given.get(name) not in (None, "")}
    is_disagreeing = str(given.get("disagree", "")) in ("1", "true", "True")
    return Filters(**texts, **numbers, class_=str(given.get("class", "")), disagree=is_disagreeing)  # type: ignore[arg-type]


def _start(server: ReviewServer, given: Fields) -> dict[str, Any]:
    return {**server.review.choices(), "reviewer": server.reviewer}


def _state(server: ReviewServer, given: Fields) -> dict[str, Any]:
    return server.review.state(filters_of(given), str(given.get("reviewer", "")), is_blind=_is_blind(given))


def _is_blind(given: Fields) -> bool:
    return str(given.get("blind", "")) in ("1", "true", "True")


def _next(server: ReviewServer, given: Fields) -> dict[str, Any]:
    """The next pair of a window (`holder`), and the state."""
    reviewer = str(given.get("reviewer", ""))
    found = server.review.next(filters_of(given), reviewer=reviewer, holder=str(given["holder"]))
    return {"card": None if found is None else _card(server, given, *found), "state": _state(server, given)}


def _pair(server: ReviewServer, given: Fields) -> dict[str, Any]:
    """A pair that was searched for. It is kept from others if none of them has it; they are told apart anyway."""
    source, target = str(given["source"]), str(given["target"])
    found = server.review.find(source, target)
    is_free = server.review.store.lease(source, target, str(given["holder"]))
    return {"card": {**_card(server, given, *found), "busy": not is_free}, "state": _state(server, given)}


def _card(server: ReviewServer, given: Fields, source: int, target: int) -> dict[str, Any]:
    return server.review.card(source, target, reviewer=str(given.get("reviewer", "")), is_blind=_is_blind(given))


def _search(server: ReviewServer, given: Fields) -> list[dict[str, Any]]:
    return server.review.search(str(given["text"])[:200], str(given.get("side", "both")))


def _verdict(server: ReviewServer, given: Fields) -> dict[str, Any]:
    """Keep an answer. The reply is sent when it is on the disk, not before."""
    texts = {name: given[name] for name in ("source", "target", "answer", "reviewer", "key")}
    texts["instead"] = given.get("instead", "")
    for name, text in texts.items():
        if not isinstance(text, str):
            raise TypeError(name)
        text.encode()  # half a surrogate pair can be sent, and not be kept
    entry = server.review.answer(**texts, blind=given.get("blind") is True)
    return {"number": entry.number, "time": entry.time}


def _undo(server: ReviewServer, given: Fields) -> dict[str, Any]:
    """Undo the last answer of the reviewer, and tell which pair that was about."""
    entry = server.review.undo(reviewer=str(given["reviewer"]), key=str(given["key"]))
    return {"undone": None if entry is None else [entry.source, entry.target]}


_QUESTIONS: dict[str, Callable[[ReviewServer, Fields], Any]] = {
    "/api/start": _start,
    "/api/state": _state,
    "/api/next": _next,
    "/api/pair": _pair,
    "/api/search": _search,
}
_ANSWERS: dict[str, Callable[[ReviewServer, Fields], Any]] = {"/api/verdict": _verdict, "/api/undo": _undo}
