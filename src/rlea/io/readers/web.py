"""Files of the web: asked for with patience, and kept in a cache on disk."""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import re
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, TypeVar
from urllib.error import HTTPError, URLError
from urllib.parse import quote, unquote, urlsplit

from rlea.errors import InputError
from rlea.io.readers import GRAPH_READERS
from rlea.io.readers.text import suffix_of
from rlea.progress import Progress, silent

if TYPE_CHECKING:
    from urllib.request import Request

T = TypeVar("T")

TRIES = 6
BACKOFF = 1.0  # seconds before the second try, then twice as long each time
MOST_WAIT = 60.0
TIMEOUT = 120.0
_PASSING = (408, 425, 429, 500, 502, 503, 504)  # answers that may be others a little later
_PIECE = 1 << 20
# Media type -> extension, for addresses that have none.
_TYPES = {
    "application/n-triples": ".nt",
    "text/turtle": ".ttl",
    "application/x-turtle": ".ttl",
    "application/rdf+xml": ".rdf",
    "application/owl+xml": ".owl",
    "application/n-quads": ".nq",
    "application/trig": ".trig",
    "application/ld+json": ".jsonld",
    "text/tab-separated-values": ".tsv",
    "text/csv": ".csv",
    "application/vnd.apache.parquet": ".parquet",
}
_ACCEPT = "application/n-triples, text/turtle;q=0.9, application/rdf+xml;q=0.8, application/ld+json;q=0.5, */*;q=0.1"


class Unreachable(InputError):  # noqa: N818
    """The server could not be reached, or did not answer in the end."""


class Incomplete(Exception):  # noqa: N818
    """An answer that was cut off; it is asked for again."""


def is_url(text: str) -> bool:
    """Whether a text is the address of a file."""
    return text.lower().startswith(("http://", "https://"))


def cache_folder(kind: str, key: str) -> Path:
    """The folder in the cache for what belongs to a key; not made yet."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "rlea" / kind / hashlib.sha256(key.encode()).hexdigest()[:24]


def make_request(url: str, accept: str, data: bytes | None = None, headers: Mapping[str, str] | None = None) -> Request:
    """A request for an address, which may have letters that are not ASCII."""
    from urllib.request import Request

    ascii_url = quote(url, safe="%/:=&?~#+!$,;'@()*[]")
    return Request(ascii_url, data, {"User-Agent": "rlea", "Accept": accept, **(headers or {})})


def ask(
    request: Request,
    take: Callable[[http.client.HTTPResponse], T],
    *,
    tries: int = TRIES,
    timeout: float = TIMEOUT,
    remedy: str = "try again later",
) -> T:
    """What `take` makes of the answer; asked again where that may help, each time after a longer pause.

    The pause is longer still if the server names one. Answers that will not change, such as 404, are InputErrors at
    once.
    """
    from urllib.request import urlopen

    address = request.full_url
    reason = ""
    for number in range(tries):
        pause = BACKOFF * 2**number
        try:
            with urlopen(request, timeout=timeout) as answer:
                return take(answer)
        except HTTPError as error:
            with error:
                reason = f"answers {error.code} ({error.reason})"
                if error.code not in _PASSING:
                    raise InputError(f"{reason}{_said(error)}", path=address, remedy="check the address") from error
                named = error.headers.get("Retry-After", "")
            pause = max(pause, float(named)) if named.isdigit() else pause
        except (URLError, TimeoutError, ConnectionError, http.client.HTTPException, Incomplete) as error:
            cause = error.reason if isinstance(error, URLError) else error
            reason = f"cannot be read ({str(cause) or type(cause).__name__})"
            if isinstance(cause, ssl.SSLCertVerificationError | http.client.InvalidURL | str):
                raise InputError(reason, path=address, remedy="check the address") from error
            if isinstance(cause, socket.gaierror) and cause.errno == socket.EAI_NONAME:
                raise Unreachable("there is no such host", path=address, remedy="check the address") from error
        if number + 1 < tries:
            time.sleep(min(pause, MOST_WAIT))
    raise Unreachable(f"{reason}, after {tries} tries", path=address, remedy=remedy)


def _said(error: HTTPError) -> str:
    """The first words of a refusal, where they are text: endpoints say there what is wrong with a query."""
    try:
        text = error.read(2000).decode("utf-8", "replace").strip()
    except (OSError, http.client.HTTPException):
        return ""
    return "" if not text or text.startswith("<") else f": {' '.join(text.split())[:200]}"


def download(url: str, progress: Progress = silent) -> tuple[Path, tuple[str, ...]]:
    """The file at an address, from the cache if it is still the same there; and notes.

    The format is that of the extension or, without one, of the media type that the server names.
    """
    from rlea.io.writers.atomic import atomic

    folder = cache_folder("files", url)
    about = folder / "about.json"
    known = _read_about(about)
    marks = {"If-None-Match": known.get("etag"), "If-Modified-Since": known.get("modified")}
    headers = {name: value for name, value in marks.items() if value}

    def take(answer: http.client.HTTPResponse) -> Path:
        path = folder / _file_name(url, answer)
        length = int(answer.headers.get("Content-Length") or 0)
        with atomic(path) as temporary, temporary.open("wb") as file:
            done = 0
            while piece := answer.read(_PIECE):
                file.write(piece)
                done += len(piece)
                progress("download", done, max(done, length), f"{done / 1e6:,.1f} MB")
            if done < length:
                raise Incomplete(f"{done:,} of {length:,} bytes came")
        version = {"etag": answer.headers.get("ETag", ""), "modified": answer.headers.get("Last-Modified", "")}
        with atomic(about) as temporary:
            temporary.write_text(json.dumps({"url": url, "file": path.name, **version}), encoding="utf-8")
        return path

    try:
        return ask(make_request(url, _ACCEPT, headers=headers), take), ()
    except InputError as error:
        is_same = isinstance(error.__cause__, HTTPError) and error.__cause__.code == 304
        if known and (is_same or isinstance(error, Unreachable)):
            path = folder / known["file"]
            day = time.strftime("%Y-%m-%d", time.localtime(path.stat().st_mtime))
            return path, () if is_same else (f"{url} could not be read, so the copy of {day} is used",)
        raise


def _read_about(path: Path) -> dict[str, str]:
    """What is known of a file in the cache; {} where it is not there."""
    try:
        about: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))
        return about if (path.parent / about["file"]).is_file() else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _file_name(url: str, answer: http.client.HTTPResponse) -> str:
    name = re.sub(r"[^\w.\-]", "_", unquote(PurePosixPath(urlsplit(url).path).name)) or "graph"
    if suffix_of(Path(name)) in GRAPH_READERS:
        return name
    kind = answer.headers.get_content_type()
    if kind not in _TYPES:
        problem = f"has no extension of a graph, and the server says that it is {kind}"
        raise InputError(problem, path=url, remedy="download it, and name the file by its format")
    return name + _TYPES[kind]
