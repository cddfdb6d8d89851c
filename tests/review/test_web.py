"""The page over HTTP: who may ask, what comes back, and that text stays text."""

import json
import socket

import pytest

from review.conftest import NUMBER, SCRIPT, S, T
from rlea.review.web import STATIC


def verdict(number=5, **more):
    usual = {
        "source": f"{S}t{number:02}",
        "target": f"{T}t{number:02}",
        "answer": "accept",
        "reviewer": "Ann",
        "key": f"k{number}",
    }
    return usual | more


PLACES = [*STATIC, "/api/start", "/api/state", "/api/next", "/api/pair", "/api/search"]


@pytest.mark.parametrize("path", PLACES)
@pytest.mark.parametrize("token", [None, "", "wrong"])
def test_without_the_token_nothing_is_told(site, path, token):
    answer = site.ask(path, token=token, holder="h", text="Town", source=f"{S}t01", target=f"{T}t01")
    assert answer.status == 403
    assert "Town" not in answer.text
    assert site.server.token not in answer.text


def test_without_the_token_nothing_is_kept(site):
    for token in (None, "wrong"):
        assert site.ask("/api/verdict", verdict(), token=token).status == 403
    assert site.review.store.entries() == []


def test_the_token_of_the_address_becomes_a_cookie(site):
    answer = ask_with_token(site, site.server.token)
    assert (answer.status, answer.headers["Location"]) == (303, "/")
    cookie = answer.headers["Set-Cookie"]
    assert cookie.startswith(f"{site.server.cookie}={site.server.token}; ")
    assert {"HttpOnly", "SameSite=Strict"} <= set(cookie.split("; "))
    assert ask_with_token(site, "wrong").status == 403
    assert ask_with_token(site, "wrong").headers["Set-Cookie"] is None


def ask_with_token(site, token):
    return site.ask(f"/?token={token}", token=None)


def test_programs_may_send_the_token_as_a_header(site):
    good = {"Authorization": f"Bearer {site.server.token}"}
    assert site.ask("/api/start", token=None, headers=good).status == 200
    assert site.ask("/api/start", token=None, headers={"Authorization": "Bearer x"}).status == 403


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1", "127.0.0.1:1", "", "127.0.0.1.evil.example"]
)
def test_another_host_is_refused(site, host):
    assert site.ask("/api/start", headers={"Host": host}).status == 403
    assert site.ask("/api/verdict", verdict(), headers={"Host": host}).status == 403
    assert site.review.store.entries() == []


def test_the_names_of_loopback_are_accepted(site):
    port = site.server.server_address[1]
    for name in ("localhost", "127.0.0.1", "LOCALHOST"):
        assert site.ask("/api/start", headers={"Host": f"{name}:{port}"}).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "https://{host}"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_answers_from_other_pages_are_refused(site, headers):
    host = site.server.address.removeprefix("http://")
    sent = {name: value.format(host=host) for name, value in headers.items()}
    assert site.ask("/api/verdict", verdict(), headers=sent).status == 403
    assert site.review.store.entries() == []
    own = {"Origin": site.server.address, "Sec-Fetch-Site": "same-origin"}
    assert site.ask("/api/verdict", verdict(), headers=own).status == 200


@pytest.mark.parametrize("path", PLACES)
def test_other_pages_may_not_read(site, path):
    answer = site.ask(path, headers={"Origin": "http://evil.example"}, holder="h", source=f"{S}t01", target=f"{T}t01")
    assert answer.status == 403
    assert "Town" not in answer.text


def test_answers_must_be_json_as_other_pages_cannot_send_it(site):
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert site.ask("/api/verdict", verdict(), headers=form).status == 415
    assert site.ask("/api/verdict", verdict(), headers={"Content-Type": "text/plain"}).status == 415
    assert site.review.store.entries() == []


def test_the_page_may_load_nothing_from_elsewhere(site):
    page = site.ask("/")
    policy = dict(part.strip().split(" ", 1) for part in page.headers["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert page.headers["X-Content-Type-Options"] == "nosniff"
    assert page.headers["Referrer-Policy"] == "no-referrer"
    for name in STATIC:
        text = site.ask(name).text
        assert "http://" not in text
        assert "https://" not in text
    assert "<script>" not in page.text
    assert "style=" not in page.text
    assert " on" + "click=" not in page.text


def test_the_script_never_makes_markup_of_text(site):
    script = site.ask("/review.js").text
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function("):
        assert word not in script


def test_text_of_the_graphs_is_sent_as_data(site):
    last = NUMBER - 1
    answer = site.ask("/api/pair", holder="h", source=f"{S}t{last:02}", target=f"{T}t{last:02}")
    assert answer.headers["Content-Type"] == "application/json; charset=utf-8"
    assert answer.json["card"]["source"]["name"] == SCRIPT
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


PATHS = [
    "/../run.json",
    "/..%2f..%2fetc/passwd",
    "/review.css/../../run.json",
    "//etc/passwd",
    "/%2e%2e/run.json",
    "/api/../run.json",
]


@pytest.mark.parametrize("path", PATHS)
def test_a_path_is_never_a_file(site, path):
    assert site.ask(path).status == 404


@pytest.mark.parametrize(
    "text", ["../../etc/passwd", "/etc/passwd", "file:///etc/passwd", "\x00", "x" * 5000, "'; DROP TABLE entries; --"]
)
def test_a_path_in_a_parameter_is_an_unknown_entity(site, text):
    answer = site.ask("/api/pair", holder="h", source=text, target=text)
    assert answer.status == 400
    assert "root:" not in answer.text
    assert site.ask("/api/search", text=text).status == 200
    assert site.ask("/api/verdict", verdict(source=text)).status == 400
    assert site.review.store.entries() == []


@pytest.mark.parametrize(
    "body",
    [b"", b"nonsense", b"[]", b"{}", b'{"source": 1}', b"[" * 50_000, json.dumps({"source": "\ud800"}).encode()],
)
def test_bad_requests_are_answered_in_a_sentence(site, body):
    for path in ("/api/verdict", "/api/undo"):
        answer = site.ask(path, body)
        assert answer.status == 400
        assert answer.json["message"].endswith(".")
    assert site.review.store.entries() == []


@pytest.mark.parametrize(
    "change",
    [{"source": None}, {"answer": "maybe"}, {"reviewer": ""}, {"instead": 3}, {"key": ""}, {"reviewer": "\udcff"}],
)
def test_bad_answers_are_refused(site, change):
    assert site.ask("/api/verdict", verdict(**change)).status == 400
    assert site.review.store.entries() == []


def test_too_long_requests_are_not_read(site):
    assert site.ask("/api/verdict", b" " * 100_001).status == 413
    with socket.create_connection(site.server.server_address[:2], timeout=30) as client:
        host = site.server.address.removeprefix("http://")
        head = f"POST /api/verdict HTTP/1.1\r\nHost: {host}\r\nCookie: {site.server.cookie}={site.server.token}\r\n"
        client.sendall((head + "Content-Type: application/json\r\n\r\n").encode())
        assert b" 411 " in client.recv(1000)


@pytest.mark.parametrize(
    "filters", [{"order": "x"}, {"low": "x"}, {"low": "0.9", "high": "0.1"}, {"channel": "x for"}, {"scope": "x"}]
)
def test_bad_filters_are_refused(site, filters):
    assert site.ask("/api/next", holder="h", **filters).status == 400


def test_a_session(site):
    start = site.ask("/api/start").json
    assert (start["reviewer"], start["channels"][0]) == ("Ann", "name for")
    assert start["orders"] == ["least confident", "least margin", "doubt x reach", "random"]  # without a live part
    found = site.ask("/api/next", holder="h", reviewer="Ann").json
    card = found["card"]
    body = {"source": card["source"]["identifier"], "target": card["target"]["identifier"], "answer": "accept"}
    body |= {"reviewer": "Ann", "key": "one", "blind": False}
    first = site.ask("/api/verdict", body).json
    assert site.ask("/api/verdict", body).json == first  # as a page that has not heard the answer would send it
    after = site.ask("/api/next", holder="h", reviewer="Ann").json
    assert after["card"]["source"] != card["source"]
    assert (after["state"]["answers"], after["state"]["left"]) == (1, found["state"]["left"] - 1)
    (entry,) = site.review.store.entries()
    assert (entry.reviewer, entry.is_blind, entry.confidence) == ("Ann", False, pytest.approx(card["confidence"]))
    undone = site.ask("/api/undo", {"reviewer": "Ann", "key": "two"}).json
    assert undone["undone"] == [body["source"], body["target"]]
    assert site.ask("/api/undo", {"reviewer": "Ann", "key": "three"}).json["undone"] is None


def test_a_blind_page_is_told_no_score(site):
    text = site.ask("/api/next", holder="h", reviewer="Ann", blind="1").json["card"]
    assert {"confidence", "decision", "channels"}.isdisjoint(text)
    site.ask("/api/verdict", verdict(blind=True))
    assert site.review.store.entries()[0].is_blind


def test_two_windows_get_two_pairs_and_are_told_of_each_other(site):
    first = site.ask("/api/next", holder="one").json["card"]
    second = site.ask("/api/next", holder="two").json["card"]
    assert first["source"] != second["source"]
    ends = {side: first[side]["identifier"] for side in ("source", "target")}
    assert site.ask("/api/pair", holder="two", **ends).json["card"]["busy"]
    assert not site.ask("/api/pair", holder="one", **ends).json["card"]["busy"]
