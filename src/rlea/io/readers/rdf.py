"""Graphs in RDF: N-Triples, Turtle, RDF/XML, N-Quads, TriG and JSON-LD, plain or compressed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, cast

import polars as pl

from rlea.errors import InputError
from rlea.graph import LITERAL_COLUMNS, KnowledgeGraph
from rlea.graph.iri import PREFIX, from_iri
from rlea.io.limits import NESTING
from rlea.io.readers.compression import unpacked
from rlea.io.readers.literals import normalised
from rlea.io.readers.ntriples import RDF_TYPE, RDFS_RESOURCE, Statements, read_statements
from rlea.io.readers.text import SAVE_AS_UTF8, UTF8_BOM, check_file, check_marks, suffix_of
from rlea.io.readers.xml import read_xml

# Extension -> the name of the format in pyoxigraph.
RDF_FORMATS = {
    ".nt": "N_TRIPLES",
    ".ntriples": "N_TRIPLES",
    ".ttl": "TURTLE",
    ".turtle": "TURTLE",
    ".rdf": "RDF_XML",
    ".xml": "RDF_XML",
    ".owl": "RDF_XML",
    ".nq": "N_QUADS",
    ".nquads": "N_QUADS",
    ".trig": "TRIG",
    ".jsonld": "JSON_LD",
}
LINE_FORMATS = ("N_TRIPLES", "N_QUADS")  # one statement per line

_PARSER_PLACE = re.compile(r"^Parser error at line \d+ .*?columns? \d+(?: and (?:line \d+ column )?\d+)?: ")
_JSON_MARKS = re.compile(rb'(?s)\\.|[\\"\[\]{}]')
_HALF = re.compile("[\ud800-\udfff]")
# What the parser calls a blank node that has no label of its own: a random number, another one in every run.
_RANDOM_LABEL = re.compile(r"[0-9a-f]{24,32}")


def read_rdf(path: str | Path) -> KnowledgeGraph:
    """A graph from an RDF file, the format by its extension.

    - IRIs and blank nodes (as `_:label`) become entities, predicates between them relations.
    - Literals become literals; the datatype xsd:string is stored as "".
    - `rdf:type` triples become literals too, with the attribute rdf:type, the class IRI as value and the datatype
      rdfs:Resource: a class describes an entity but is no entity to be linked, unless the file says more of it.
    - `x rdf:type rdfs:Resource` holds of everything, so it only declares the entity x; so graphs keep entities
      without any other triple.
    - `urn:rlea:` IRIs are turned back into the identifiers they stand for (see `rlea.graph.iri`).
    - Named graphs are merged; statements about the file itself (`<>` without a base) are left out.

    IRIs are taken as they are, as real dumps hold characters that IRIs may not have; other errors of syntax are
    InputErrors with the line.
    """
    path = Path(path)
    return graph_of(statements_of(path), path)


def statements_of(path: Path) -> Statements:
    """The statements of an RDF file, by the faster of two ways where it can be taken."""
    found = _read_by_columns(path)
    return _read_by_quads(parse_rdf(path), _BlankLabels(path)) if found is None else found


def graph_of_quads(quads: Iterable[Any], place: Path) -> KnowledgeGraph:
    """A graph from pyoxigraph's quads, by the rules of `read_rdf`; blank nodes keep their labels."""
    return graph_of(_read_by_quads(quads, _BlankLabels()), place)


def graph_of(found: Statements, place: Path) -> KnowledgeGraph:
    """Build the graph: classes become literals, and `urn:rlea:` IRIs the identifiers they stand for."""
    triples, literals, types = found.triples, found.literals, found.types
    if triples.is_empty() and literals.is_empty() and types.is_empty() and found.declared.is_empty():
        raise InputError("holds no triples", path=place, remedy="check that this is the right graph")
    head, tail, entity, typed = _identifiers(triples["head"], triples["tail"], literals["entity"], types["entity"])
    relation, attribute = _identifiers(triples["relation"], literals["attribute"])
    classes, declared = _identifiers(types["class"], found.declared)
    (datatype,) = _identifiers(literals["datatype"])
    language = literals["language"]
    described = pl.select(
        entity=entity,
        attribute=attribute,
        value=literals["value"],
        datatype=datatype,
        language=language,
    )
    classified = pl.select(
        entity=typed,
        attribute=pl.lit(RDF_TYPE, dtype=attribute.dtype),
        value=classes.cast(pl.String),
        datatype=pl.lit(RDFS_RESOURCE, dtype=datatype.dtype),
        language=pl.lit("", dtype=language.dtype),
    )
    return KnowledgeGraph.build(
        pl.select(head=head, relation=relation, tail=tail),
        normalised(pl.concat([described, classified])),
        entities=declared.cast(pl.String),
    )


def _read_by_columns(path: Path) -> Statements | None:
    """What `_read_by_quads` gives, in a fraction of its time, for N-Triples and N-Quads of the usual forms."""
    format_name = rdf_format(path)
    if format_name not in LINE_FORMATS:
        return None
    check_file(path)
    try:
        with _open(path) as stream:
            return read_statements(stream, partial(_parse_lines, path), may_have_graphs=format_name == "N_QUADS")
    except InputError:
        return None  # the other way meets the same failure and says on which line


def _parse_lines(path: Path, lines: Sequence[str]) -> Statements | None:
    """The statements of single lines of a file, or None if one cannot be read by itself."""
    from pyoxigraph import RdfFormat, parse

    format_ = getattr(RdfFormat, rdf_format(path))
    quads = (quad for line in lines for quad in parse(line.encode(), format_, lenient=True))
    try:
        return _read_by_quads(quads, _BlankLabels(path))
    except (SyntaxError, InputError):
        return None


def _read_by_quads(quads: Iterable[Any], blank: _BlankLabels) -> Statements:
    from pyoxigraph import Literal, NamedNode, Triple

    triples: list[tuple[str, str, str]] = []
    literals: list[tuple[str, str, str, str, str]] = []
    types: list[tuple[str, str]] = []
    declared: list[str] = []
    # Attribute access is what costs time here, so every attribute is read once and only where it is needed.
    for quad in quads:
        subject, predicate, thing = quad.subject, quad.predicate.value, quad.object
        head = subject.value if type(subject) is NamedNode else blank[subject.value]
        if not head or not predicate:
            continue
        kind = type(thing)
        if kind is Literal:
            language = thing.language
            literals.append((head, predicate, thing.value, "" if language else thing.datatype.value, language or ""))
            continue
        if kind is Triple:
            problem = "holds a triple as the object of another, which cannot be read"
            raise InputError(problem, path=blank.path, remedy="remove the statements about statements, <<( ... )>>")
        tail = thing.value if kind is NamedNode else blank[thing.value]
        if not tail:
            continue
        if predicate != RDF_TYPE:
            triples.append((head, predicate, tail))
        elif tail == RDFS_RESOURCE:
            declared.append(head)
        else:
            types.append((head, tail))

    def frame(rows: Sequence[tuple[str, ...]], *columns: str) -> pl.DataFrame:
        return pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String), orient="row")

    return Statements(
        frame(triples, "head", "relation", "tail"),
        frame(literals, *LITERAL_COLUMNS),
        frame(types, "entity", "class"),
        pl.Series(declared, dtype=pl.String),
    )


class _BlankLabels(dict[str, str]):
    """The parser's name of a blank node -> ours. Nodes without a label are numbered as the file brings them up.

    The parser gives them random names; a graph must be the same every time it is read. The brackets cannot occur in a
    label of a file. Without a path all nodes keep their labels.
    """

    def __init__(self, path: Path | None = None) -> None:
        super().__init__()
        self.path = path
        self._all_labelled = path is None or rdf_format(path) in LINE_FORMATS
        self._num_unlabelled = 0

    def __missing__(self, label: str) -> str:
        if self._all_labelled or not _RANDOM_LABEL.fullmatch(label):
            name = f"_:{label}"
        else:
            self._num_unlabelled += 1
            name = f"_:[{self._num_unlabelled}]"
        self[label] = name
        return name


def _identifiers(*iris: pl.Series) -> Sequence[pl.Series]:
    """Columns of identifiers from columns of IRIs, all of one type (text or categories), which is kept."""
    distinct = pl.concat([column.rename("iri") for column in iris]).unique().cast(pl.String)
    ours = distinct.filter(distinct.str.starts_with(PREFIX)).to_list()
    if not ours:
        return iris
    # Half of a character (%ED%A0%80) is no text that a file could hold: such an IRI stays as it is.
    identifiers = {iri: text for iri in ours if not _HALF.search(text := from_iri(iri))}
    return [column.cast(pl.String).replace(identifiers).cast(column.dtype) for column in iris]


def rdf_format(path: Path) -> str:
    """The name of the file's format in pyoxigraph."""
    return RDF_FORMATS[suffix_of(path)]


def parse_rdf(path: Path) -> Iterator[Any]:
    """The quads of an RDF file (pyoxigraph's `Quad`), with every failure turned into an InputError."""
    from pyoxigraph import RdfFormat, parse

    format_name = rdf_format(path)
    format_ = getattr(RdfFormat, format_name)
    check_file(path)
    try:
        if format_name == "RDF_XML":
            yield from parse(read_xml(path), format_, lenient=True)
        else:
            with _open(path) as stream:
                if format_name == "JSON_LD":
                    stream = cast("IO[bytes]", NestedJson(stream, path))
                yield from parse(stream, format_, lenient=True)
    except SyntaxError as error:
        problem = _PARSER_PLACE.sub("", error.msg).replace("\n", " ").strip()
        if "utf-8" in problem.lower():
            raise InputError("is not UTF-8", path=path, line=error.lineno, remedy=SAVE_AS_UTF8) from error
        if "remote contexts" in problem:
            raise InputError(
                "names a @context by its address, and none is fetched",
                path=path,
                remedy="write the context into the file, or convert it to N-Triples or Turtle",
            ) from error
        column = f" at column {error.offset}" if error.offset else ""
        raise InputError(
            f"is no valid {format_.name}{column} ({problem[:200]})",
            path=path,
            line=error.lineno,
            remedy="correct it there, or convert the file with another tool",
        ) from error


class NestedJson:
    """A stream of JSON whose brackets stand within each other no deeper than the limit."""

    def __init__(self, stream: IO[bytes], path: Path) -> None:
        self._stream, self._path = stream, path
        self._most, self._depth = NESTING.value, 0
        self._is_text, self._escape = False, b""  # within a string; a backslash at the end of the piece before

    def read(self, size: int = -1) -> bytes:
        """The next piece of the stream."""
        piece = self._stream.read(size)
        text = self._escape + piece
        self._escape = b""
        for mark in _JSON_MARKS.findall(text):
            if mark == b'"':
                self._is_text = not self._is_text
            elif mark == b"\\":
                self._escape = mark
            elif not self._is_text and mark in b"[{":
                self._depth += 1
                if self._depth > self._most:
                    raise NESTING.exceeded("has more than {} brackets within each other", self._path)
            elif not self._is_text and mark in b"]}":
                self._depth -= 1
        return piece


@contextmanager
def _open(path: Path) -> Iterator[IO[bytes]]:
    """The file as a stream of UTF-8 bytes without compression and byte order mark."""
    with unpacked(path) as stream:
        head = stream.read(4)
    check_marks(path, head)
    with unpacked(path) as stream:  # again, as not every stream can go back
        stream.read(len(UTF8_BOM) if head.startswith(UTF8_BOM) else 0)
        yield stream
