"""Graphs and pairs of graphs as files: RDF, tables, or the layout of the OpenEA benchmarks."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np

from rlea.errors import InputError
from rlea.graph import GraphPair, KnowledgeGraph, Links
from rlea.io.writers.atomic import write_all
from rlea.io.writers.iris import strict_iri
from rlea.io.writers.tsv import put_table

if TYPE_CHECKING:
    import polars as pl
    from pyoxigraph import Triple

RDF_FORMATS = ("nt", "nt.gz", "ttl", "rdf", "nq")
TABLE_FORMATS = ("tsv", "csv", "parquet")
FORMATS = (*RDF_FORMATS, *TABLE_FORMATS, "openea")
# What the files and folders of a pair are called, up to their extension.
LAYOUT_NAMES = (
    *("source", "target", "seeds", "valid", "test"),
    *("rel_triples_1", "rel_triples_2", "attr_triples_1", "attr_triples_2", "ent_links", "721_5fold"),
)

_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_TYPE = _RDF + "type"
_RESOURCE = "http://www.w3.org/2000/01/rdf-schema#Resource"
# RDF says "plain text" and "text in a language" without a datatype.
_IMPLIED = ("", "http://www.w3.org/2001/XMLSchema#string", _RDF + "langString")
_ROWS_AT_A_TIME = 100_000  # some 20 MB of text

_SPECIAL = re.compile(r'[\x00-\x1f\x7f"\\]')
_ESCAPES = {number: f"\\u{number:04X}" for number in (*range(0x20), 0x7F)}
_ESCAPES |= {ord('"'): '\\"', ord("\\"): "\\\\", ord("\n"): "\\n", ord("\r"): "\\r", ord("\t"): "\\t"}
_ESCAPES |= {ord("\b"): "\\b", ord("\f"): "\\f"}
# In the OpenEA layout only code points, quotes and backslashes are escaped.
_OPENEA_ESCAPES = _ESCAPES | {number: f"\\u{number:04X}" for number in range(0x20)}
_LANGUAGE = re.compile(r"[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*")
_NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_NAME_START = (
    "A-Z_a-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c\u200d\u2070-\u218f\u2c00-\u2fef"
    "\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_XML_NAME_AT_END = re.compile(rf"[{_NAME_START}][{_NAME_START}\-.0-9\u00b7\u0300-\u036f\u203f\u2040]*\Z")

Put = Callable[[Path], None]


def write_graph(path: str | Path, graph: KnowledgeGraph, format: str = "") -> tuple[str, ...]:  # noqa: A002
    """Write one graph and return notes on what the format cannot hold.

    The format is one of `RDF_FORMATS`, told by the file name where it is not given, or one of `TABLE_FORMATS`, for
    which `path` is a folder that gets the files triples, literals and names. Reading the file back gives the same
    graph, but for two things that RDF lacks: names that were given beside the graph, and not chosen from its labels
    and identifiers, are lost there; and text of datatype xsd:string is plain text.
    """
    path = Path(path)
    format = format or _format_of(path)  # noqa: A001
    writers, notes = _graph_writers(path, graph, format)
    if format in TABLE_FORMATS:
        refuse_leftovers(path, writers, ("triples", "literals", "names"))
    write_all(writers)
    return notes


def write_pair(folder: str | Path, pair: GraphPair, format: str = "nt") -> tuple[str, ...]:  # noqa: A002
    """Write a pair of graphs with its links into a folder and return notes on what the format cannot hold.

    RDF formats give `source.nt` and `target.nt` (or another extension), tables the folders `source` and `target`, both
    with `seeds.tsv`, `valid.tsv` and `test.tsv` where there are such links. `openea` gives the layout of the OpenEA
    benchmarks with one fold, `721_5fold/1`. See `write_graph` for what RDF loses; `openea` loses names in the same way,
    and entities that stand in no triple, literal or link.
    """
    if format not in FORMATS:
        raise InputError(f"unknown format {format!r}", remedy=f"use one of {', '.join(FORMATS)}")
    folder = Path(folder)
    writers: dict[Path, Put] = {}
    notes: list[str] = []
    if format == "openea":
        writers, notes = _openea_writers(folder, pair)
    else:
        for side, graph in (("source", pair.source), ("target", pair.target)):
            place = folder / (side if format in TABLE_FORMATS else f"{side}.{format}")
            more, told = _graph_writers(place, graph, format)
            writers |= more
            notes += [f"{side}: {note}" for note in told]
        for stem, links in (("seeds", pair.train), ("valid", pair.valid), ("test", pair.test)):
            if len(links):
                path = folder / f"{stem}.tsv"
                writers[path] = _links_writer(path, pair, links, ("source", "target"))
    refuse_leftovers(folder, writers, LAYOUT_NAMES)
    write_all(writers)
    return tuple(notes)


def refuse_leftovers(folder: Path, writers: Iterable[Path], names: Sequence[str]) -> None:
    """Raise if the folder has files of an earlier graph that would be read together with the new ones."""
    if not folder.is_dir():
        return
    new = {path.relative_to(folder).parts[0] for path in writers}
    for entry in sorted(folder.iterdir()):
        if entry.name.split(".", 1)[0] in names and entry.name not in new:
            raise InputError(
                f"has {entry.name} of something written before, which would be mixed up with the new files",
                path=folder,
                remedy="give an empty folder or remove it",
            )


def _format_of(path: Path) -> str:
    name = path.name.lower()
    found = next((known for known in RDF_FORMATS if name.endswith(f".{known}")), None)
    if found is None:
        raise InputError(
            "has no extension that names a format of graphs",
            path=path,
            remedy=f"use one of {', '.join('.' + known for known in RDF_FORMATS)}, or name a format",
        )
    return found


def _graph_writers(path: Path, graph: KnowledgeGraph, format_: str) -> tuple[dict[Path, Put], tuple[str, ...]]:
    """The files of one graph, each with the function that writes it, and notes."""
    if format_ in TABLE_FORMATS:
        return _table_writers(path, graph, format_), ()
    if format_ not in RDF_FORMATS:
        raise InputError(
            f"unknown format {format_!r}", remedy=f"use one of {', '.join((*RDF_FORMATS, *TABLE_FORMATS))}"
        )
    notes = []
    if _TYPE in graph.relations:
        number = int(np.sum(graph.triples[:, 1] == graph.relations.index(_TYPE)))
        notes.append(f"{number} triples of the relation rdf:type are read back from RDF as literals")
    return {path: lambda temporary: _put_rdf(temporary, path, graph, format_)}, tuple(notes)


# ---- RDF ------------------------------------------------------------------------------------------------------------


def _put_rdf(temporary: Path, path: Path, graph: KnowledgeGraph, format_: str) -> None:
    chunks = ntriples(graph, path)
    with temporary.open("wb") as file:
        if format_ in ("nt", "nq"):
            file.writelines(chunk.encode() for chunk in chunks)
        elif format_ == "nt.gz":
            _put_gzip(file, chunks)
        else:
            from pyoxigraph import RdfFormat, serialize

            if format_ == "rdf":
                _check_xml(path, graph)
            serialize(_parsed(chunks), file, RdfFormat.TURTLE if format_ == "ttl" else RdfFormat.RDF_XML)


def _put_gzip(file: IO[bytes], chunks: Iterable[str]) -> None:
    """Write compressed text; the same text gives the same bytes (neither name nor time is stored)."""
    with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=file, mtime=0) as stream:
        for chunk in chunks:
            stream.write(chunk.encode())


def _parsed(chunks: Iterable[str]) -> Iterator[Triple]:
    from pyoxigraph import RdfFormat, parse

    for chunk in chunks:
        for quad in parse(chunk.encode(), RdfFormat.N_TRIPLES):
            yield quad.triple


def ntriples(graph: KnowledgeGraph, path: Path) -> Iterator[str]:
    """The graph as N-Triples text, many lines at a time; `path` is for errors.

    Entities that stand in no triple and no literal are declared as rdfs:Resource, which says nothing else about them.
    """
    entities = [f"<{strict_iri(text)}>" for text in graph.entities]
    relations = [f"<{strict_iri(text)}>" for text in graph.relations]
    for rows in _slices(len(graph.triples)):
        yield "".join([f"{entities[h]} {relations[r]} {entities[t]} .\n" for h, r, t in graph.triples[rows].tolist()])
    literals = graph.literals
    attributes = [f"<{strict_iri(text)}>" for text in graph.attributes]
    class_attribute = graph.attributes.index(_TYPE) if _TYPE in graph.attributes else -1
    endings = _Endings(path)
    for rows in _slices(len(literals)):
        columns = (
            literals.entity_ids[rows].tolist(),
            literals.attribute_ids[rows].tolist(),
            literals.values[rows],
            literals.datatypes[rows],
            literals.languages[rows],
        )
        lines = []
        for entity, attribute, value, datatype, language in zip(*columns, strict=True):
            if attribute == class_attribute and datatype == _RESOURCE:
                thing = f"<{strict_iri(value)}>"
            else:
                thing = _quoted(value) + endings[datatype, language]
            lines.append(f"{entities[entity]} {attributes[attribute]} {thing} .\n")
        yield "".join(lines)
    alone = np.ones(graph.num_entities, dtype=bool)
    alone[graph.triples[:, [0, 2]].ravel()] = False
    alone[literals.entity_ids] = False
    yield "".join([f"{entities[entity]} <{_TYPE}> <{_RESOURCE}> .\n" for entity in np.flatnonzero(alone).tolist()])


def _quoted(value: str) -> str:
    """A string in the quotes and escapes of N-Triples."""
    return f'"{value.translate(_ESCAPES) if _SPECIAL.search(value) else value}"'


class _Endings(dict[tuple[str, str], str]):
    """What follows a quoted value in N-Triples, by datatype and language; `path` is for errors."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def __missing__(self, key: tuple[str, str]) -> str:
        datatype, language = key
        if language:
            if not _LANGUAGE.fullmatch(language):
                raise InputError(
                    f"cannot hold the language {language[:40]!r}, which is no language tag such as en or pt-br",
                    path=self._path,
                    remedy="correct it, or write tables",
                )
            ending = f"@{language}"
        else:
            ending = "" if datatype in _IMPLIED else f"^^<{strict_iri(datatype)}>"
        self[key] = ending
        return ending


def _check_xml(path: Path, graph: KnowledgeGraph) -> None:
    """Raise on what RDF/XML has no notation for; the serializer would write a file that no other program reads."""
    remedy = "write .nt or .ttl"
    for predicate in (*graph.relations, *graph.attributes):
        if not _XML_NAME_AT_END.search(strict_iri(predicate)):
            raise InputError(f"RDF/XML cannot hold the predicate {predicate[:200]!r}", path=path, remedy=remedy)
    for value in graph.literals.values:
        if _NO_XML.search(value):
            raise InputError(f"RDF/XML cannot hold the control character in {value[:80]!r}", path=path, remedy=remedy)


# ---- tables ---------------------------------------------------------------------------------------------------------


def _table_writers(folder: Path, graph: KnowledgeGraph, format_: str) -> dict[Path, Put]:
    import polars as pl

    def triples() -> pl.DataFrame:
        entities, relations = _series(graph.entities), _series(graph.relations)
        columns = zip(("head", "relation", "tail"), (entities, relations, entities), graph.triples.T, strict=True)
        return pl.DataFrame({name: series.gather(ids.copy()) for name, series, ids in columns})

    def literals() -> pl.DataFrame:
        facts = graph.literals
        return pl.DataFrame(
            {
                "entity": _series(graph.entities).gather(facts.entity_ids),
                "attribute": _series(graph.attributes).gather(facts.attribute_ids),
                "value": _series(facts.values),
                "datatype": _series(facts.datatypes),
                "language": _series(facts.languages),
            }
        )

    def names() -> pl.DataFrame:
        return pl.DataFrame({"entity": _series(graph.entities), "name": _series(graph.names)})

    def writer(make: Callable[[], pl.DataFrame], path: Path) -> Put:
        return lambda temporary: _put_frame(temporary, make(), format_, shown=path)

    made: Mapping[str, Callable[[], pl.DataFrame]] = {"triples": triples, "literals": literals, "names": names}
    return {
        path: writer(make, path)
        for stem, make in made.items()
        if stem != "literals" or len(graph.literals)
        for path in [folder / f"{stem}.{format_}"]
    }


def _series(texts: Sequence[str]) -> pl.Series:
    import polars as pl

    return pl.Series(list(texts), dtype=pl.String)


def _put_frame(path: Path, frame: pl.DataFrame, format_: str, *, shown: Path) -> None:
    """Write string columns as TSV (without quotes, so without tabs and line breaks), CSV or Parquet."""
    if format_ == "parquet":
        frame.write_parquet(path)
        return
    _refuse(frame, "\x00" if format_ == "csv" else "\x00\t\n\r", shown)
    with path.open("wb") as file:
        if format_ == "csv":
            frame.write_csv(file)
        else:
            frame.write_csv(file, separator="\t", quote_style="never")


def _refuse(frame: pl.DataFrame, characters: str, path: Path) -> None:
    """Raise if a field holds one of the characters."""
    for column in frame.columns:
        bad = frame[column].str.contains_any(list(characters))
        if bad.any():
            value = frame[column].filter(bad)[0]
            raise InputError(
                f"cannot hold the {column} {value[:80]!r} (tabs, line breaks and zero bytes have no place in it)",
                path=path,
                remedy="write .nt or .parquet" if "\t" in characters else "write .parquet",
            )


# ---- the OpenEA layout ----------------------------------------------------------------------------------------------


def _openea_writers(folder: Path, pair: GraphPair) -> tuple[dict[Path, Put], list[str]]:
    writers: dict[Path, Put] = {}
    notes: list[str] = []
    known = Links.union([pair.train, pair.valid, pair.test])
    for number, side, graph, linked in (
        (1, "source", pair.source, known.source_ids),
        (2, "target", pair.target, known.target_ids),
    ):
        writers |= {
            folder / f"rel_triples_{number}": _relation_writer(folder / f"rel_triples_{number}", graph),
            folder / f"attr_triples_{number}": _attribute_writer(folder / f"attr_triples_{number}", graph),
        }
        found = np.zeros(graph.num_entities, dtype=bool)
        found[graph.triples[:, [0, 2]].ravel()] = True
        found[graph.literals.entity_ids] = True
        found[linked] = True
        if not found.all():
            notes.append(f"{side}: {int((~found).sum())} entities without triples, literals and links are not written")
    splits = {"train_links": pair.train, "valid_links": pair.valid, "test_links": pair.test}
    places = {folder / "721_5fold" / "1" / name: links for name, links in splits.items()}
    for path, links in ({folder / "ent_links": known} | places).items():
        writers[path] = _links_writer(path, pair, links, ())
    return writers, notes


def _links_writer(path: Path, pair: GraphPair, links: Links, header: tuple[str, ...]) -> Put:
    def put(temporary: Path) -> None:
        sources = [pair.source.entities[number] for number in links.source_ids.tolist()]
        targets = [pair.target.entities[number] for number in links.target_ids.tolist()]
        put_table(temporary, header, zip(sources, targets, strict=True), shown=path)

    return put


def _relation_writer(path: Path, graph: KnowledgeGraph) -> Put:
    def put(temporary: Path) -> None:
        rows = (
            (graph.entities[h], graph.relations[r], graph.entities[t])
            for part in _slices(len(graph.triples))
            for h, r, t in graph.triples[part].tolist()
        )
        put_table(temporary, (), rows, shown=path)

    return put


def _attribute_writer(path: Path, graph: KnowledgeGraph) -> Put:
    def put(temporary: Path) -> None:
        literals = graph.literals
        columns = (
            literals.entity_ids.tolist(),
            literals.attribute_ids.tolist(),
            literals.values,
            literals.datatypes,
            literals.languages,
        )
        rows = (
            (graph.entities[entity], graph.attributes[attribute], _openea_value(path, value, datatype, language))
            for entity, attribute, value, datatype, language in zip(*columns, strict=True)
        )
        put_table(temporary, (), rows, shown=path)

    return put


def _openea_value(path: Path, value: str, datatype: str, language: str) -> str:
    """A literal as these files have them: bare where nothing in it could be taken for a quote or an escape."""
    if "\x00" in value or re.search(r'[<>"\s]', datatype) or (language and not _LANGUAGE.fullmatch(language)):
        raise InputError(
            f"cannot hold the literal {value[:80]!r} (datatype {datatype!r}, language {language!r})",
            path=path,
            remedy="write .parquet",
        )
    special = _SPECIAL.search(value) is not None
    if not special and not language and not datatype and value.strip() == value:
        return value
    text = f'"{value.translate(_OPENEA_ESCAPES) if special else value}"'
    if language:
        return f"{text}@{language}"
    return f"{text}^^<{datatype}>" if datatype else text


def _slices(number: int) -> Iterator[slice]:
    return (slice(start, start + _ROWS_AT_A_TIME) for start in range(0, number, _ROWS_AT_A_TIME))
