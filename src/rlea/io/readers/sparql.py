"""Graphs from SPARQL endpoints, page by page.

Every page is asked for in a total order and from a place that the rows so far give: those whose first variable is not
before the last one that came, less the ones that came already. So it does not matter how many rows an endpoint is
willing to send at a time, and no page makes it count from the beginning. The end is a page without rows.

Pages are kept on disk as they come. A read that was interrupted goes on behind the last page, and one that was
finished is not asked for again.
"""

from __future__ import annotations

import gzip
import http.client
import json
import re
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlencode

from rlea.errors import InputError
from rlea.graph import KnowledgeGraph
from rlea.io.readers.rdf import graph_of_quads
from rlea.io.readers.text import read_text
from rlea.io.readers.web import Incomplete, ask, cache_folder, is_url, make_request
from rlea.progress import Progress, counted, silent

PREFIX = "sparql+"
LIMIT = 1_000_000  # triples by default; more take hours over the web, and a dump is the better way
PAGE = 10_000  # rows to ask for; public endpoints send no more at a time
_COUNT_TIMEOUT = 30.0  # an endpoint that cannot count is read all the same
Row = dict[str, dict[str, str]]
_LANGUAGE = re.compile(r"[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*")

_TOKEN = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*"""|\'\'\'(?:[^\'\\]|\\.|\'(?!\'\'))*\'\'\'|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\''
    r"|<[^<>\"{}|^`\\\s]*>|(?P<comment>#[^\n]*)|[?$](?P<variable>\w+)|\w+|.",
    re.DOTALL,
)


@dataclass(frozen=True)
class Query:
    """A CONSTRUCT query in its parts."""

    prologue: str
    template: str  # with its braces
    dataset: str  # FROM clauses
    pattern: str  # with its braces
    variables: tuple[str, ...]  # of the template, with question marks

    @property
    def is_everything(self) -> bool:
        return self == EVERYTHING

    def page(self, first: str | None, offset: int) -> str:
        """The query for the rows from a place on: `offset` rows behind the first whose first variable is `first`."""
        names = " ".join(self.variables)
        place = "" if first is None else f" FILTER(STR({self.variables[0]}) >= {_quoted(first)})"
        # Terms alone are in no total order: 1 and 1.0 are equal there, and "a" and "a"@en may be.
        keys = [f"STR({name}) BOUND({name}) STR(DATATYPE({name})) LANG({name})" for name in self.variables]
        if self.is_everything:
            keys = ["STR(?s) STR(?p) STR(?o) STR(DATATYPE(?o)) LANG(?o)"]
        return (
            f"{self.prologue}SELECT DISTINCT {names} {self.dataset}WHERE {{ {self.pattern}{place} }}\n"
            f"ORDER BY {' '.join(keys)} LIMIT {PAGE} OFFSET {offset}"
        )

    @property
    def count(self) -> str:
        """The query for the number of all rows."""
        inner = f"SELECT DISTINCT {' '.join(self.variables)} WHERE {self.pattern}"
        return f"{self.prologue}SELECT (COUNT(*) AS ?number_of_rows) {self.dataset}WHERE {{ {{ {inner} }} }}"


EVERYTHING = Query("", "{ ?s ?p ?o }", "", "{ ?s ?p ?o }", ("?s", "?p", "?o"))


def is_endpoint(text: str) -> bool:
    """Whether a text names an endpoint, such as `sparql+https://example.org/sparql`."""
    return text.lower().startswith(PREFIX) and is_url(text[len(PREFIX) :])


def read_endpoint(
    address: str, query: str | Path | None = None, *, limit: int = LIMIT, progress: Progress = silent
) -> KnowledgeGraph:
    """The graph of an endpoint: all triples of its default graph, or those that a CONSTRUCT query in a file makes.

    At most `limit` triples are read. Statements with blank nodes are left out, as their labels hold for one page alone.
    Notes of the graph say what was left out.
    """
    if limit < 1:
        raise InputError(f"--endpoint-limit is {limit}", remedy="give a number of at least 1")
    endpoint = address[len(PREFIX) :]
    asked = EVERYTHING if query is None else parse_query(Path(query))
    folder = cache_folder("sparql", "\n".join([endpoint, asked.page(None, 0), asked.template]))
    pages = _Pages(endpoint, asked, folder)
    lines: list[str] = []
    num_rows = num_left_out = 0
    is_cut = False
    for rows in pages:
        num_rows += len(rows)
        for line in _statements(asked, rows):
            num_left_out += line is None
            if line is not None:
                lines.append(line)
        progress("endpoint", num_rows, max(num_rows, pages.count or 0), counted(len(lines), "triple"))
        is_cut = len(lines) > limit
        if is_cut:
            break
    if not lines:
        raise InputError("gives no triples", path=endpoint, remedy="check the address and the query")
    notes = []
    if is_cut:
        of_all = f" of about {pages.count:,} rows" if pages.count else ""
        notes.append(f"{endpoint}: only the first {limit:,} triples{of_all} were read; --endpoint-limit is the limit")
    elif pages.count is not None and pages.count != num_rows:
        problem = f"{endpoint}: {num_rows:,} rows came, and it counts {pages.count:,}"
        notes.append(f"{problem}; it may have changed meanwhile: to read it anew, remove {folder}")
    if pages.num_asked == 0:
        notes.append(f"{endpoint}: read from the cache of {pages.day}; to ask it anew, remove {folder}")
    if pages.cap:
        notes.append(f"{endpoint}: sends {pages.cap:,} rows at a time, though more are asked for; all pages were read")
    if num_left_out:
        reason = "statements with blank nodes, which cannot be followed from page to page, or with invalid IRIs"
        notes.append(f"{endpoint}: left out {num_left_out:,} {reason}")
    from pyoxigraph import RdfFormat, parse

    text = "\n".join(lines[:limit])
    graph = graph_of_quads(parse(text, RdfFormat.N_TRIPLES, lenient=True), Path(endpoint))
    return replace(graph, notes=(*graph.notes, *notes))


class _Pages:
    """The pages of an answer, from the cache as far as they are there, then from the endpoint."""

    def __init__(self, endpoint: str, query: Query, folder: Path) -> None:
        self.endpoint = endpoint
        self.query = query
        self.folder = folder
        self.count: int | None = None  # of all rows, as the endpoint says; None where it does not
        self.num_asked = 0  # pages that were not in the cache
        self.cap = 0  # rows of a page, if they are fewer than were asked for and others followed
        self.day = ""  # when the last page of the cache came

    def __iter__(self) -> Iterator[list[Row]]:
        """All pages that have rows."""
        first: str | None = None
        offset = number = short = 0
        rows: list[Row] = []
        self.count = self._count()
        while True:
            number += 1
            before, rows = rows, self._page(number, first, offset)
            if not rows:
                return
            if rows == before:
                problem = "sends the same rows again, whatever page is asked for"
                raise InputError(problem, path=self.endpoint, remedy="read a dump of its graph")
            self.cap = max(self.cap, short)
            yield rows
            short = len(rows) if len(rows) < PAGE else 0
            for row in rows:
                value = _place(row.get(self.query.variables[0][1:]))
                first, offset = (first, offset + 1) if value == first else (value, 1)

    def _page(self, number: int, first: str | None, offset: int) -> list[Row]:
        path = self.folder / f"{number:06}.json.gz"
        if path.exists():
            try:
                rows = _rows(gzip.decompress(path.read_bytes()))
                self.day = time.strftime("%Y-%m-%d", time.localtime(path.stat().st_mtime))
                return rows
            except (OSError, EOFError, zlib.error, Incomplete):
                path.unlink(missing_ok=True)  # of a disk that failed; it is asked for again
        self.num_asked += 1
        content = self._ask(self.query.page(first, offset))
        _keep(path, gzip.compress(content, 6))
        return _rows(content)

    def _count(self) -> int | None:
        path = self.folder / "count.json"
        if path.exists():
            return _whole(json.loads(path.read_text(encoding="utf-8")))
        try:
            rows = _rows(self._ask(self.query.count, tries=2, timeout=_COUNT_TIMEOUT))
            count = _whole(rows[0]["number_of_rows"]["value"])
        except (InputError, LookupError):
            count = None
        _keep(path, json.dumps(count).encode())
        return count

    def _ask(self, query: str, **more: Any) -> bytes:
        data = urlencode({"query": query}).encode()
        request = make_request(self.endpoint, "application/sparql-results+json", data)
        return ask(request, _take, remedy="run the command again later, it goes on from here", **more)


def _keep(path: Path, content: bytes) -> None:
    from rlea.io.writers.atomic import atomic

    with atomic(path) as temporary:
        temporary.write_bytes(content)


def _take(answer: http.client.HTTPResponse) -> bytes:
    # Virtuoso sends what it has when its time is over, and says so in this header alone.
    if answer.headers.get("X-SQL-State") == "S1TAT":
        raise Incomplete("the endpoint ran out of time")
    content = answer.read()
    _rows(content)  # an answer that was cut off is asked for again
    return content


def _rows(content: bytes) -> list[Row]:
    try:
        rows: list[Row] = json.loads(content)["results"]["bindings"]
        texts = [[term["type"], term["value"], term.get("datatype", "")] for row in rows for term in row.values()]
        if all(isinstance(text, str) for term in texts for text in term):
            return rows
        raise ValueError
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Incomplete("the answer is cut off, or no SPARQL result in JSON") from error


def _whole(text: object) -> int | None:
    return int(str(text)) if str(text).isdigit() else None


def _place(term: dict[str, str] | None) -> str | None:
    """What STR() gives for a term: nothing for blank nodes and where there is none, which come first."""
    return None if term is None or term["type"] == "bnode" else _whole_text(term["value"])


def _statements(query: Query, rows: Sequence[Row]) -> Iterator[str | None]:
    """Lines of N-Triples, None for each row that was left out."""
    names = [name[1:] for name in query.variables]
    terms = [[_term(row.get(name)) for name in names] for row in rows]
    if query.is_everything:
        for row in terms:
            # A subject or predicate that is none is invalid as well, whatever the endpoint was thinking.
            is_whole = None not in row and all(str(term).startswith("<") for term in row[:2]) and row[2] != "UNDEF"
            yield f"{' '.join(map(str, row))} ." if is_whole else None
        return
    from pyoxigraph import QueryTriples, Store

    good = [row for row in terms if None not in row and all(_is_valid(str(term)) for term in row)]
    yield from [None] * (len(terms) - len(good))
    values = "\n".join(f"({' '.join(map(str, row))})" for row in good)
    local = (
        f"{query.prologue}CONSTRUCT {query.template} WHERE {{ VALUES ({' '.join(query.variables)}) {{ {values} }} }}"
    )
    for triple in cast(QueryTriples, Store().query(local)):
        yield f"{triple.subject} {triple.predicate} {triple.object} ."


def _term(term: dict[str, str] | None) -> str | None:
    """A term in the notation of N-Triples, UNDEF where there is none, None for a blank node."""
    if term is None:
        return "UNDEF"
    value = _whole_text(term["value"])
    if term["type"] == "uri":
        return _bracketed(value)
    if term["type"] == "bnode":
        return None
    language = str(term.get("xml:lang", ""))
    if _LANGUAGE.fullmatch(language):
        return f"{_quoted(value)}@{language}"
    return f"{_quoted(value)}^^{_bracketed(term['datatype'])}" if "datatype" in term else _quoted(value)


def _bracketed(iri: str) -> str:
    return "<" + re.sub(r"[\x00-\x20<>\\]", lambda match: f"\\u{ord(match[0]):04X}", iri) + ">"


def _whole_text(text: str) -> str:
    """JSON can hold halves of characters, which no other text can."""
    return text.encode("utf-8", "replace").decode("utf-8")


@lru_cache(100_000)
def _is_valid(term: str) -> bool:
    """Whether the local SPARQL engine, which is strict about IRIs, takes a term."""
    from pyoxigraph import NamedNode

    for iri in re.findall(r"(?:^|\^\^)<([^<>]*)>$", term):
        try:
            NamedNode(iri)
        except ValueError:
            return False
    return True


def _quoted(text: str) -> str:
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"}
    return '"' + "".join(escapes.get(one, one) for one in text) + '"'


def parse_query(path: Path) -> Query:
    """The parts of a CONSTRUCT query in a file; anything else is an InputError."""
    from pyoxigraph import Store

    text = "".join("\n" if match["comment"] else match[0] for match in _TOKEN.finditer(read_text(path)))
    try:
        Store().query(text)
    except (SyntaxError, ValueError) as error:
        problem = f"is no SPARQL query ({' '.join(str(error).split())[:200]})"
        raise InputError(problem, path=path, remedy="write CONSTRUCT { ... } WHERE { ... }") from error
    tokens = list(_TOKEN.finditer(text))
    verb = next((token for token in tokens if token[0].upper() == "CONSTRUCT"), None)
    blocks = _blocks(tokens, verb.end()) if verb else []
    if verb is None or not blocks:
        raise InputError("is no CONSTRUCT query", path=path, remedy="write CONSTRUCT { ... } WHERE { ... }")
    (first, first_end), (last, last_end) = blocks[0], blocks[-1]
    is_short = len(blocks) == 1  # CONSTRUCT WHERE { ... }: the pattern is the template
    if len(blocks) > 2 or text[last_end:].strip():
        problem = f"goes on behind its WHERE block ({' '.join(text[last_end:].split())[:40]})"
        remedy = "leave out ORDER BY, LIMIT and the like, which are added for each page; --endpoint-limit limits"
        raise InputError(problem, path=path, remedy=remedy)
    template = text[first:first_end]
    if re.search(r"\[|_:", "".join(token[0] for token in _TOKEN.finditer(template) if token[0][0] not in "\"'<")):
        remedy = "use IRIs, such as those of variables"
        raise InputError("makes blank nodes, which are others on each page", path=path, remedy=remedy)
    found = [f"?{token['variable']}" for token in _TOKEN.finditer(template) if token["variable"]]
    if not found:
        raise InputError("has no variable in its template", path=path, remedy="use the variables of its WHERE block")
    between = text[verb.end() : first] if is_short else text[first_end:last]
    dataset = re.sub(r"\bWHERE$", "", between.strip(), flags=re.IGNORECASE).strip()
    return Query(
        text[: verb.start()],
        template,
        f"{dataset} " if dataset else "",
        text[last:last_end],
        tuple(dict.fromkeys(found)),
    )


def _blocks(tokens: Sequence[re.Match[str]], start: int) -> list[tuple[int, int]]:
    """Where the outermost pairs of braces begin and end, from a place on."""
    found, depth, begin = [], 0, 0
    for token in tokens:
        if token.start() < start:
            continue
        if token[0] == "{":
            begin = token.start() if depth == 0 else begin
            depth += 1
        elif token[0] == "}":
            depth -= 1
            if depth == 0:
                found.append((begin, token.end()))
    return found
