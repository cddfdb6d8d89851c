"""N-Triples and N-Quads by columns: whole blocks of lines at once, for graphs of millions of statements.

One regular expression takes the lines apart. It knows only the forms that files are made of in practice; a line of
another form goes to the parser in `rdf`, which knows the grammar. If that cannot read the line by itself, because it is
wrong or ends on a later one, the whole file is left to it, and it says what is wrong where. So nothing here reports
an error, and every line taken here means the same there.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import IO

import polars as pl

from rlea.io.readers.literals import CODE_POINT, code_point

RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
RDFS_RESOURCE = "http://www.w3.org/2000/01/rdf-schema#Resource"

# Large enough that the work on a block outweighs the calls for it, small enough to stay in the caches: of 0.5 to 16 MB
# this takes the least time, a quarter less than 16 MB.
_BLOCK_BYTES = 4_000_000

# No alternative here begins like another, and none can end in two places: such a pattern needs no backtracking, which
# makes it three times as fast. For that the labels of blank nodes have no dots, and IRIs no "<" (which also keeps
# out the triple terms `<<( ... )>>`). The carriage return is kept out because alone it ends a line for the parser.
_SPACE = r"[ \t]*"
_IRI = r"(?:[^<>\\\r]|\\[uU])*"
_LABEL = r"_:[A-Za-z0-9_][A-Za-z0-9_-]*"
_COMMENT = rf"{_SPACE}(?:#[^\r]*)?\r?$"
_STATEMENT = (
    rf"^{_SPACE}(?:<(?P<subject>{_IRI})>|(?P<subject_label>{_LABEL}))"
    rf"{_SPACE}<(?P<predicate>{_IRI})>"
    rf"{_SPACE}(?:<(?P<object>{_IRI})>|(?P<object_label>{_LABEL})|"
    r'"(?P<value>(?:[^"\\\r]|\\[^\r])*)"'
    rf"(?:\^\^<(?P<datatype>{_IRI})>|@(?P<language>[A-Za-z]+(?:-[A-Za-z0-9]+)*))?)"
)
_GRAPH_AND_SPACE = rf"(?:[ \t]+(?:(?:<[^<>\\\r]*>|{_LABEL}){_SPACE})?)?"
_TRIPLE_LINE = rf"{_STATEMENT}{_SPACE}\.{_COMMENT}"
_QUAD_LINE = rf"{_STATEMENT}{_GRAPH_AND_SPACE}\.{_COMMENT}"
_NO_STATEMENT = rf"^{_COMMENT}"

_ESCAPE = re.compile(CODE_POINT + r"|\\(?P<char>[tbnrf\"'\\])|\\")
_CHARACTERS = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", '"': '"', "'": "'", "\\": "\\"}


@dataclass(frozen=True, eq=False)
class Statements:
    """The statements of a file; IRIs as written, without escapes, and blank nodes as `_:label`.

    Columns are text, or categories (all but `value`): then head, tail, entity and class share one set of categories,
    so that equal codes mean equal strings, and so do relation and attribute.
    """

    triples: pl.DataFrame  # head, relation, tail
    literals: pl.DataFrame  # entity, attribute, value, datatype, language
    types: pl.DataFrame  # entity, class: for `entity rdf:type class`
    declared: pl.Series  # x for `x rdf:type rdfs:Resource`


class _OtherForm(Exception):  # noqa: N818
    """Lines cannot be read one by one."""


def read_statements(
    stream: IO[bytes], parse_lines: Callable[[Sequence[str]], Statements | None], *, may_have_graphs: bool
) -> Statements | None:
    """The statements of N-Triples, or of N-Quads without their graphs, or None if lines cannot be read one by one.

    `stream` gives bytes without byte order mark. `parse_lines` reads lines of rare forms, or gives None. Statements
    with an empty IRI (`<>`) in one of the three places are left out.
    """
    parse = partial(
        _parse_block,
        pattern=_QUAD_LINE if may_have_graphs else _TRIPLE_LINE,
        node=pl.Categorical(pl.Categories.random()),
        term=pl.Categorical(pl.Categories.random()),
        parse_lines=parse_lines,
    )
    parts = [parse(b"")]  # so that a file without lines has columns too
    # More than these would wait for the one that reads the file, each with a block in memory.
    num_workers = min(pl.thread_pool_size(), 8)
    with ThreadPoolExecutor(num_workers) as pool:
        pending: deque[Future[Statements]] = deque()
        try:
            for block in _blocks(stream):
                pending.append(pool.submit(parse, block))
                # No more blocks in memory than there is work for.
                if len(pending) > num_workers:
                    parts.append(pending.popleft().result())
            parts.extend(future.result() for future in pending)
        except _OtherForm:
            pool.shutdown(cancel_futures=True)
            return None
    return joined(parts)


def joined(parts: Sequence[Statements]) -> Statements:
    """The statements of all parts, whose columns have the same types."""
    return Statements(
        triples=pl.concat([part.triples for part in parts]),
        literals=pl.concat([part.literals for part in parts]),
        types=pl.concat([part.types for part in parts]),
        declared=pl.concat([part.declared for part in parts]),
    )


def _blocks(stream: IO[bytes]) -> Iterator[bytes]:
    """The stream in pieces that end where a line ends."""
    rest = b""
    while piece := stream.read(_BLOCK_BYTES):
        end = piece.rfind(b"\n")
        if end < 0 and len(rest) > _BLOCK_BYTES:
            raise _OtherForm
        if end < 0:
            rest += piece
        else:
            yield rest + piece[:end]
            rest = piece[end + 1 :]
    if rest:
        yield rest


def _parse_block(
    block: bytes,
    *,
    pattern: str,
    node: pl.DataType,
    term: pl.DataType,
    parse_lines: Callable[[Sequence[str]], Statements | None],
) -> Statements:
    try:
        text = pl.Series("line", [block], dtype=pl.Binary).cast(pl.String)
    except pl.exceptions.ComputeError as error:  # not UTF-8
        raise _OtherForm from error
    lines = text.str.split("\n").explode()
    fields = lines.str.extract_groups(pattern).struct.unnest()
    others = lines.filter(fields["predicate"].is_null())
    others = others.filter(~others.str.contains(_NO_STATEMENT))
    rare = parse_lines(others.to_list()) if len(others) else None
    if rare is None and len(others):
        raise _OtherForm
    del text, lines, others

    fields = fields.with_columns(
        _unescaped(fields[name]) for name in ("subject", "predicate", "object", "value", "datatype")
    )
    fields = fields.with_columns(
        pl.coalesce("subject", "subject_label").alias("subject"), pl.coalesce("object", "object_label").alias("object")
    ).filter(pl.col("subject") != "", pl.col("predicate") != "", (pl.col("object") != "").fill_null(True))
    is_type = pl.col("predicate") == RDF_TYPE
    is_declaration = pl.col("object") == RDFS_RESOURCE
    entity, relation = pl.col("subject").cast(node), pl.col("predicate").cast(term)
    tail = pl.col("object").cast(node)
    links = fields.filter(pl.col("object").is_not_null())
    types = links.filter(is_type)
    usual = Statements(
        triples=links.filter(~is_type).select(head=entity, relation=relation, tail=tail),
        literals=fields.filter(pl.col("value").is_not_null()).select(
            pl.col("datatype", "language").fill_null("").cast(term), "value", entity=entity, attribute=relation
        ),
        types=types.filter(~is_declaration).select(entity=entity, **{"class": tail}),
        declared=types.filter(is_declaration).select(entity).to_series(),
    )
    return usual if rare is None else joined([usual, _like(rare, usual)])


def _like(found: Statements, other: Statements) -> Statements:
    """Statements whose columns have the order and the types of others."""
    return Statements(
        triples=found.triples.select(other.triples.columns).cast(other.triples.schema),
        literals=found.literals.select(other.literals.columns).cast(other.literals.schema),
        types=found.types.select(other.types.columns).cast(other.types.schema),
        declared=found.declared.cast(other.declared.dtype).rename(other.declared.name),
    )


def _unescaped(column: pl.Series) -> pl.Series:
    rows = column.str.contains("\\", literal=True).arg_true()
    if not len(rows):
        return column
    texts = [_ESCAPE.sub(_decode, text) for text in column.gather(rows).to_list()]
    return column.scatter(rows, pl.Series(texts, dtype=pl.String))


def _decode(match: re.Match[str]) -> str:
    if match["char"]:
        return _CHARACTERS[match["char"]]
    character = None if match[0] == "\\" else code_point(match)
    if character is None:
        raise _OtherForm
    return character
