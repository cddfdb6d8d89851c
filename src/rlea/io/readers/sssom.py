"""Links in SSSOM/TSV: a table of matches below a block of comments that declares the prefixes of their CURIEs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from rlea.errors import InputError
from rlea.graph.iri import from_iri
from rlea.io.readers.columns import Columns, named_table, split_commas
from rlea.io.readers.link_files import IDENTITY, SKOS, LinkFile, confidence_of
from rlea.io.readers.text import shown

_COLUMNS = Columns(
    required=("subject_id", "object_id"),
    # The last two are this program's own: the exact identifiers, where the CURIE only has an encoded form of them.
    optional=("confidence", "predicate_id", "predicate_modifier", "source_identifier", "target_identifier"),
    by_name=("subject_label", "object_label"),
)
# Prefixes that SSSOM defines itself and that files need not declare.
_PREFIXES = {
    "owl": "http://www.w3.org/2002/07/owl#",
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "semapv": "https://w3id.org/semapv/vocab/",
    "skos": SKOS,
    "sssom": "https://w3id.org/sssom/",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}


def is_sssom(text: str) -> bool:
    """Whether the first line that is no comment is a header with subject_id and object_id."""
    for line in text.split("\n"):
        if not line.startswith("#") and line.strip():
            return {"subject_id", "object_id"} <= {*line.rstrip("\r").split("\t")}
    return False


def read_sssom(path: Path, text: str) -> LinkFile:
    """The matches of identity (owl:sameAs, skos:exactMatch and the like) that are not negated."""
    lines = text.split("\n")
    begin = next(number for number, line in enumerate(lines) if line.strip() and not line.startswith("#"))
    prefixes = {**_PREFIXES, **_curie_map(lines[:begin])}
    # Comment lines are blanked, not cut, so that line numbers stay those of the file.
    body = "\n".join([*[""] * begin, *lines[begin:]])
    # Other tools quote fields of SSSOM files where they hold a quote, so the rules of CSV hold here, unlike other TSV.
    frame = named_table(path, split_commas(path, body, "\t", strict=False), _COLUMNS).frame
    names = (*_COLUMNS.all_names, "line")
    columns = [frame[name].to_list() if name in frame.columns else [""] * len(frame) for name in names]
    found, labels = [], []
    for row in zip(*columns, strict=True):
        source, target, confidence, predicate, modifier, exact_source, exact_target, *names_of_both, line = row
        is_identity = not predicate or _expand(path, line, predicate, prefixes) in IDENTITY
        if not is_identity or modifier.strip() or "sssom:NoTermFound" in (source, target):
            continue
        first = exact_source or from_iri(_expand(path, line, source, prefixes))
        second = exact_target or from_iri(_expand(path, line, target, prefixes))
        found.append((first, second, confidence_of(path, "line", line, confidence), line))
        labels.append(names_of_both)
    if len(frame) and not found:
        remedy = "give a file with such matches"
        raise InputError("has no match of identity (owl:sameAs, skos:exactMatch)", path=path, remedy=remedy)
    links = LinkFile.of_matches(path, found, "line", len(frame))
    return links.with_labels(tuple(one for one, _ in labels), tuple(other for _, other in labels))


def _curie_map(comments: Sequence[str]) -> dict[str, str]:
    """The prefixes in the comment block, which is YAML behind `#`.

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
    problem = f"the prefix of {shown(curie)} is not declared" if colon else f"{shown(curie)} is no CURIE"
    remedy = "declare the prefix in the curie_map of the comment block, or write whole IRIs"
    raise InputError(problem, path=path, line=number, remedy=remedy)
