"""Links between two graphs, as files tell them: by identifier, whether or not any graph knows them.

Known formats: the `links.tsv` of this program (source, target, confidence), TSV or CSV with or without a header,
Parquet, SSSOM, and RDF with owl:sameAs triples or the cells of the Alignment API.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rlea.errors import InputError
from rlea.graph.iri import from_iri
from rlea.io.readers.columns import Columns, Table, named_table, read_table, split_commas
from rlea.io.readers.rdf import RDF_FORMATS, parse_rdf
from rlea.io.readers.text import error_at, read_text, shown, split_tabs, suffix_of

_LINKS = Columns(
    required=("source", "target"),
    optional=("confidence",),
    may_be_empty=("confidence",),
    synonyms={"subject_id": "source", "object_id": "target"},
)
_SSSOM = Columns(
    required=("subject_id", "object_id"),
    # The last two are this program's own: identifiers to the letter, where the CURIE only has an encoded form of them.
    optional=("confidence", "predicate_id", "predicate_modifier", "source_identifier", "target_identifier"),
)
_OWL = "http://www.w3.org/2002/07/owl#"
_SKOS = "http://www.w3.org/2004/02/skos/core#"
# The predicates that say "these two are one"; broader, narrower and close matches do not.
_IDENTITY = {_OWL + "sameAs", _OWL + "equivalentClass", _OWL + "equivalentProperty", _SKOS + "exactMatch"}
# Prefixes that SSSOM defines itself and that files need not declare.
_SSSOM_PREFIXES = {
    "owl": _OWL,
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "semapv": "https://w3id.org/semapv/vocab/",
    "skos": _SKOS,
    "sssom": "https://w3id.org/sssom/",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}
# Most files lack the final "#" of the namespace, so the names are joined to it without one.
_ALIGNMENT = re.compile(r"http://knowledgeweb\.semanticweb\.org/heterogeneity/alignment#?(.*)")
_CELL = ("entity1", "entity2", "measure", "relation")
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")


@dataclass(frozen=True, eq=False)
class LinkFile:
    """Links by identifier, as a file gives them.

    `confidences` has a number in [0, 1] per link, NaN where none is given. `numbers[i]` says where link i stands: its
    line, its row (Parquet) or its place among the links (RDF without lines), as `unit` tells. `notes` say what was
    left out, such as matches that are not of identity.
    """

    path: Path
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    confidences: NDArray[np.float64]  # (num_links,)
    numbers: tuple[int, ...]
    unit: str = "line"
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.sources)


def read_link_rows(path: str | Path) -> LinkFile:
    """Read links by identifier, whether or not any graph knows them.

    A file that has a header and no rows is an empty list of links; a file without content is an error.
    """
    path = Path(path)
    suffix = suffix_of(path)
    if suffix in RDF_FORMATS:
        return _read_rdf_links(path)
    if suffix in (".csv", ".parquet"):
        return _from_table(read_table(path, _LINKS))
    if suffix not in (".tsv", ".txt", ".sssom", "") and not path.is_dir() and path.exists():
        raise InputError(
            f"has the extension {suffix}, which is no format of links",
            path=path,
            remedy="give .tsv, .csv, .parquet, .sssom.tsv, .nt (owl:sameAs) or .rdf (Alignment API)",
        )
    text = read_text(path)
    if _is_sssom(text):
        return _read_sssom(path, text)
    return _from_table(named_table(path, split_tabs(path, text), _LINKS))


def looks_like_links(path: str | Path) -> bool:
    """Whether a file holds links rather than a graph, judged by its first rows; False where it cannot be read."""
    path = Path(path)
    suffix = suffix_of(path)
    try:
        if not path.is_file():
            return False
        if suffix in RDF_FORMATS:
            predicates = [quad.predicate.value for quad in islice(parse_rdf(path), 100)]
            is_alignment = any(_ALIGNMENT.fullmatch(name) for name in predicates)
            return is_alignment or (bool(predicates) and _IDENTITY.issuperset(predicates))
        if suffix == ".parquet":
            return _has_link_columns(path)
        text = read_text(path)
        if _is_sssom(text):
            return True
        first = next(line for line in text.split("\n") if line.strip()).rstrip("\r")
        fields = _LINKS.named(next(csv.reader([first])) if suffix == ".csv" else first.split("\t"))
    except (InputError, OSError, csv.Error):
        return False
    if set(_LINKS.required) <= set(fields) or len(fields) == 2:
        return True
    # Three columns are links only if the third is a confidence; triples may have whole numbers there.
    return len(fields) == 3 and re.fullmatch(r"[01]\.\d+", fields[2]) is not None


def _has_link_columns(path: Path) -> bool:
    import polars as pl

    try:
        names = list(pl.read_parquet_schema(path))
    except pl.exceptions.PolarsError:
        return False
    return set(_LINKS.required) <= set(_LINKS.named(names))


def _confidence(path: Path, unit: str, number: int, text: str) -> float:
    stripped = text.strip()
    if not stripped:
        return math.nan
    value = float(stripped) if _NUMBER.fullmatch(stripped) else math.nan
    if not 0.0 <= value <= 1.0:
        raise error_at(
            path, unit, number, f"the confidence {shown(text, 30)} is no number between 0 and 1", "correct or delete it"
        )
    return value


def _from_table(table: Table) -> LinkFile:
    frame = table.frame
    numbers = frame["line"].to_list()
    if "confidence" in frame.columns:
        texts = frame["confidence"].to_list()
        confidences = [_confidence(table.path, table.unit, n, t) for n, t in zip(numbers, texts, strict=True)]
    else:
        confidences = [math.nan] * len(frame)
    return LinkFile(
        table.path,
        tuple(frame["source"].to_list()),
        tuple(frame["target"].to_list()),
        np.array(confidences, dtype=np.float64),
        tuple(numbers),
        table.unit,
    )


def _is_sssom(text: str) -> bool:
    """SSSOM files begin with comments and have a header with subject_id and object_id."""
    for line in text.split("\n"):
        if not line.startswith("#") and line.strip():
            fields = line.rstrip("\r").split("\t")
            return "subject_id" in fields and "object_id" in fields
    return False


def _read_sssom(path: Path, text: str) -> LinkFile:
    lines = text.split("\n")
    begin = next(number for number, line in enumerate(lines) if line.strip() and not line.startswith("#"))
    prefixes = {**_SSSOM_PREFIXES, **_curie_map(lines[:begin])}
    # Comment lines are blanked, not cut, so that line numbers stay those of the file.
    body = "\n".join([*[""] * begin, *lines[begin:]])
    # Other tools quote fields of SSSOM files where they hold a quote, so the rules of CSV hold here, unlike other TSV.
    frame = named_table(path, split_commas(path, body, "\t", strict=False), _SSSOM).frame
    names = (*_SSSOM.in_order, "line")
    fields = {name: frame[name].to_list() if name in frame.columns else [""] * len(frame) for name in names}
    sources: list[str] = []
    targets: list[str] = []
    confidences: list[float] = []
    numbers: list[int] = []
    for source, target, confidence, predicate, modifier, exact_source, exact_target, line in zip(
        *fields.values(), strict=True
    ):
        is_identity = not predicate or _expand(path, line, predicate, prefixes) in _IDENTITY
        if not is_identity or modifier.strip() or "sssom:NoTermFound" in (source, target):
            continue
        sources.append(exact_source or from_iri(_expand(path, line, source, prefixes)))
        targets.append(exact_target or from_iri(_expand(path, line, target, prefixes)))
        confidences.append(_confidence(path, "line", line, confidence))
        numbers.append(line)
    if len(frame) and not sources:
        raise InputError(
            "has no match of identity (owl:sameAs, skos:exactMatch)", path=path, remedy="give a file with such matches"
        )
    notes = _other_matches(path, len(frame) - len(sources), len(frame))
    return LinkFile(path, tuple(sources), tuple(targets), np.array(confidences), tuple(numbers), "line", notes)


def _other_matches(path: Path, num_other: int, num_rows: int) -> tuple[str, ...]:
    if not num_other:
        return ()
    return (f"{path.name}: left out {num_other} of {num_rows} matches that do not say that two entities are the same",)


def _curie_map(comments: Sequence[str]) -> dict[str, str]:
    """The prefixes in the comment block of an SSSOM file, which is YAML behind `#`.

    Only this one mapping is needed, in block style or on one line in braces, so no YAML parser is.
    """
    prefixes: dict[str, str] = {}
    outer = -1  # the indent of the mapping's own key while inside the mapping
    for comment in comments:
        line = comment.rstrip("\r").removeprefix("#")
        key, _, value = line.partition(":")
        indent = len(line) - len(line.lstrip())
        if key.strip() == "curie_map":
            outer = indent
            for entry in value.strip().removeprefix("{").removesuffix("}").split(","):
                prefix, colon, namespace = entry.partition(":")
                if colon:
                    prefixes[_unquoted(prefix)] = _unquoted(namespace)
        elif outer >= 0 and line.strip():
            if indent <= outer:
                break
            prefixes[_unquoted(key)] = _unquoted(value)
    return prefixes


def _unquoted(scalar: str) -> str:
    """The text of a YAML scalar on one line."""
    text = scalar.strip()
    if text[:1] in ("'", '"') and text.endswith(text[0]):
        return text[1:-1]
    return text.split(" #", 1)[0].strip()


def _expand(path: Path, number: int, curie: str, prefixes: Mapping[str, str]) -> str:
    """The IRI of a CURIE; whole IRIs are accepted too."""
    text = curie.strip().removeprefix("<").removesuffix(">")
    prefix, colon, rest = text.partition(":")
    if colon and prefix in prefixes:
        return prefixes[prefix] + rest
    if colon and (rest.startswith("//") or prefix.lower() == "urn"):
        return text
    raise InputError(
        f"the prefix of {shown(curie)} is not declared" if colon else f"{shown(curie)} is no CURIE",
        path=path,
        line=number,
        remedy="declare the prefix in the curie_map of the comment block, or write whole IRIs",
    )


def _read_rdf_links(path: Path) -> LinkFile:
    """Links from owl:sameAs (or skos:exactMatch) triples, or from the cells of an Alignment API file."""
    from pyoxigraph import Literal, NamedNode

    sources: list[str] = []
    targets: list[str] = []
    positions: list[int] = []
    cells: dict[object, dict[str, str]] = {}
    is_alignment = False
    num_quads = 0
    for num_quads, quad in enumerate(parse_rdf(path), start=1):
        predicate = quad.predicate.value
        if predicate in _IDENTITY and isinstance(quad.subject, NamedNode) and isinstance(quad.object, NamedNode):
            sources.append(from_iri(quad.subject.value))
            targets.append(from_iri(quad.object.value))
            positions.append(num_quads)
        elif (match := _ALIGNMENT.fullmatch(predicate)) is not None:
            is_alignment = True
            if match[1] in _CELL and isinstance(quad.object, NamedNode | Literal):
                cells.setdefault(quad.subject, {})[match[1]] = quad.object.value
    if is_alignment:
        return _from_cells(path, cells)
    if not sources:
        raise InputError(
            "holds neither owl:sameAs triples nor cells of an alignment",
            path=path,
            remedy="give links as owl:sameAs triples, in the Alignment API format, or as TSV",
        )
    notes = _other_matches(path, num_quads - len(sources), num_quads)
    rows = LinkFile(
        path, tuple(sources), tuple(targets), np.full(len(sources), np.nan), tuple(positions), "link", notes
    )
    if RDF_FORMATS[suffix_of(path)] not in ("N_TRIPLES", "N_QUADS"):
        return rows
    # These two formats have one statement per line, so the n-th quad stands on the n-th line that is not blank.
    lines = [
        number
        for number, line in enumerate(read_text(path).split("\n"), start=1)
        if (stripped := line.strip()) and not stripped.startswith("#")
    ]
    if len(lines) != num_quads:  # lines that end in a carriage return alone
        return rows
    return replace(rows, numbers=tuple(lines[position - 1] for position in positions), unit="line")


def _from_cells(path: Path, cells: Mapping[object, Mapping[str, str]]) -> LinkFile:
    sources: list[str] = []
    targets: list[str] = []
    confidences: list[float] = []
    numbers: list[int] = []
    for number, cell in enumerate(cells.values(), start=1):
        for side in ("entity1", "entity2"):
            if not cell.get(side):
                raise error_at(path, "link", number, f"the cell has no {side}", "complete the cell or delete it")
        if cell.get("relation", "=").strip() not in ("=", "equivalence", "EquivRelation"):
            continue
        sources.append(from_iri(cell["entity1"]))
        targets.append(from_iri(cell["entity2"]))
        confidences.append(_confidence(path, "link", number, cell.get("measure", "")))
        numbers.append(number)
    notes = _other_matches(path, len(cells) - len(sources), len(cells))
    return LinkFile(path, tuple(sources), tuple(targets), np.array(confidences), tuple(numbers), "link", notes)
