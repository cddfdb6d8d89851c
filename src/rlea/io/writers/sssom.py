"""Mappings as SSSOM: a TSV file with its metadata in a comment block on top.

SSSOM names entities by CURIEs: `prefix:local` stands for the namespace that the file gives for the prefix, followed by
`local`. The common tools for the format take ASCII only and drop other rows without an error, so an IRI such as
http://fr.dbpedia.org/resource/Frölunda_HC is written as the URI that RFC 3987 derives from it (Fr%C3%B6lunda_HC). The
exact identifiers are then in two more columns, `source_identifier` and `target_identifier` (empty in rows that do
not need them), declared as extensions.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from rlea.graph.iri import PREFIX, from_iri
from rlea.io.writers.iris import strict_iri
from rlea.io.writers.rows import LinkRows
from rlea.plain_text import cell

# The format fixes the first six; the others are what people expect to see. Any other namespace gets ns1, ns2, ...
_KNOWN = {
    "https://w3id.org/sssom/": "sssom",
    "https://w3id.org/semapv/vocab/": "semapv",
    "http://www.w3.org/2002/07/owl#": "owl",
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#": "rdf",
    "http://www.w3.org/2000/01/rdf-schema#": "rdfs",
    "http://www.w3.org/2004/02/skos/core#": "skos",
    "http://dbpedia.org/resource/": "dbr",
    "http://www.wikidata.org/entity/": "wd",
    "http://yago-knowledge.org/resource/": "yago",
    PREFIX: "rlea",
}
_NAMESPACE_END = re.compile(r"[/#:]")
_BLANK = re.compile(r"[\x00-\x20\x7f-\x9f\u2028\u2029]+")
# A namespace must pay for its line in the head: readers of the format grow slow (as the square) with their number.
_LEAST_USE = 0.01
_LICENSE = "https://w3id.org/sssom/license/unspecified"  # the user's to choose; the format demands a value
# Not owl:sameAs: links with a confidence are guesses, and owl:sameAs makes a reasoner merge the entities.
_PREDICATE = "skos:exactMatch"
EXACT_COLUMNS = ("source_identifier", "target_identifier")


@dataclass(frozen=True)
class MappingSet:
    """What an SSSOM file says about itself; empty fields are left out."""

    mapping_tool_version: str = ""
    mapping_date: str = ""  # YYYY-MM-DD, given by the caller: a clock read here would make every file differ
    justification: str = "semapv:UnspecifiedMatching"  # a term of semapv; see `justification_of`


def justification_of(embedding_uses: str, matcher_uses_structure: bool) -> str:
    """The semapv term for links by what the embedding looks at: names, structure, both ("... and ..."), unknown."""
    if " and " in embedding_uses:
        return "semapv:CompositeMatching"
    if embedding_uses == "names":
        return "semapv:CompositeMatching" if matcher_uses_structure else "semapv:LexicalMatching"
    return "semapv:StructuralMatching" if embedding_uses == "structure" else "semapv:UnspecifiedMatching"


def put_links_sssom(path: Path, rows: LinkRows, about: MappingSet) -> None:
    """Write links as SSSOM/TSV. Labels keep no line breaks or tabs; identifiers are kept exactly."""
    put_mappings(path, rows, about, [_PREDICATE] * len(rows))


def put_mappings(
    path: Path,
    rows: LinkRows,
    about: MappingSet,
    predicates: Sequence[str],
    more: Mapping[str, Sequence[str]] | None = None,
    namespaces: Mapping[str, str] | None = None,
) -> None:
    """Write any mappings: a predicate (CURIE) for each row, and `more` columns of the format by name.

    `namespaces` (prefix -> namespace) are those that CURIEs in `more` need.
    """
    sources, targets = [_uri(text) for text in rows.sources], [_uri(text) for text in rows.targets]
    prefixes = _prefixes([*sources, *targets], predicates)
    curie = _shortener(prefixes)
    exact = [
        [text if from_iri(uri) != text else "" for text, uri in zip(texts, uris, strict=True)]
        for texts, uris in ((rows.sources, sources), (rows.targets, targets))
    ]
    with_exact = any(map(any, exact))
    blank = [""] * len(rows)
    table: dict[str, Iterable[str]] = {
        "subject_id": map(curie, sources),
        "subject_label": map(_label, rows.source_names or blank),
        "predicate_id": predicates,
        "object_id": map(curie, targets),
        "object_label": map(_label, rows.target_names or blank),
        "mapping_justification": [about.justification] * len(rows),
        "confidence": rows.printed_confidences(),
        **(more or {}),
    }
    if with_exact:
        table.update(zip(EXACT_COLUMNS, exact, strict=True))
    with path.open("w", encoding="utf-8", newline="\n") as file:
        said = [
            " ".join(words) for words in zip(predicates, (more or {}).get("predicate_modifier", blank), strict=True)
        ]
        named = prefixes | {namespace: prefix for prefix, namespace in (namespaces or {}).items()}
        for line in _head(rows, about, named, with_exact, said):
            file.write(f"#{line}\n")
        file.write("\t".join(table) + "\n")
        file.writelines("\t".join(row) + "\n" for row in zip(*table.values(), strict=True))


def _head(
    rows: LinkRows, about: MappingSet, prefixes: dict[str, str], with_exact: bool, predicates: Sequence[str]
) -> Iterator[str]:
    """The lines of the metadata block: YAML, with quotes only where a plain scalar would be misread."""
    yield "curie_map:"
    for namespace, prefix in sorted(prefixes.items(), key=lambda item: item[1]):
        yield f"  {prefix}: {json.dumps(namespace) if namespace.endswith(':') else namespace}"
    yield f"mapping_set_id: {json.dumps(_content_id(rows, predicates))}"
    yield f"license: {json.dumps(_LICENSE)}"
    yield 'mapping_tool: "rlea"'
    for slot in ("mapping_tool_version", "mapping_date"):
        if text := getattr(about, slot):
            yield f"{slot}: {json.dumps(text)}"
    if with_exact:
        yield "extension_definitions:"
        for column in EXACT_COLUMNS:
            yield f"  - slot_name: {column}"
            yield f'    property: "{PREFIX}{column}"'
            yield '    type_hint: "http://www.w3.org/2001/XMLSchema#string"'


def _content_id(rows: LinkRows, predicates: Sequence[str]) -> str:
    """An IRI derived from the links, so that the same links give the same file."""
    digest = hashlib.sha256()
    for row in zip(rows.sources, rows.targets, rows.printed_confidences(), map(str.strip, predicates), strict=True):
        digest.update(json.dumps(row).encode())
    return uuid.uuid5(uuid.NAMESPACE_URL, digest.hexdigest()).urn


def _uri(identifier: str) -> str:
    """The IRI of an identifier in ASCII."""
    return quote(strict_iri(identifier), safe="%!$&'()*+,;=:@/?#-._~")


def _label(text: str) -> str:
    """A label on one line, quoted as in CSV where it holds quotes."""
    text = cell(_BLANK.sub(" ", text).strip())
    return '"' + text.replace('"', '""') + '"' if '"' in text else text


def _prefixes(uris: list[str], predicates: Sequence[str]) -> dict[str, str]:
    """Namespace -> prefix, for all that the URIs and predicates need, and the justification."""
    ends = [_namespace_ends(uri) for uri in uris]
    uses = Counter(uri[: cuts[-1]] for uri, cuts in zip(uris, ends, strict=True))
    least = _LEAST_USE * len(uris)
    chosen = {namespace for namespace, number in uses.items() if number >= least or namespace in _KNOWN}
    for uri, cuts in zip(uris, ends, strict=True):
        # A rare namespace (http://dbpedia.org/resource/AC/ for AC/DC) yields to a longer-lived one around it.
        if not any(uri[:cut] in chosen for cut in cuts):
            chosen.add(uri[: cuts[0]])
    needed = {_KNOWN[namespace]: namespace for namespace in chosen if namespace in _KNOWN}
    terms = {"skos", "semapv", "owl", *(curie.split(":")[0] for curie in predicates)}
    needed |= {prefix: namespace for namespace, prefix in _KNOWN.items() if prefix in terms}
    unnamed = sorted(chosen - set(_KNOWN))
    needed |= {f"ns{number}": namespace for number, namespace in enumerate(unnamed, start=1)}
    return {namespace: prefix for prefix, namespace in needed.items()}


def _namespace_ends(uri: str) -> list[int]:
    """Where a namespace may end, shortest first: behind the host, then behind every / and #; else behind a colon.

    What follows never begins with a slash: `ns1://` would look like the start of a URI.
    """
    if uri.startswith(PREFIX):
        return [len(PREFIX)]
    marks = "/#" if "://" in uri else ":/#"
    start = uri.index("://") + 3 if "://" in uri else 0
    ends = [
        match.end()
        for match in _NAMESPACE_END.finditer(uri, start)
        if match.group() in marks and uri[match.end() : match.end() + 1] not in ("/", "")
    ]
    if ends:
        return ends
    return [uri.index(":") + 1] if "://" not in uri else [len(uri)]


def _shortener(prefixes: dict[str, str]) -> Callable[[str], str]:
    def curie(uri: str) -> str:
        end = next(end for end in reversed(_namespace_ends(uri)) if uri[:end] in prefixes)
        return f"{prefixes[uri[:end]]}:{uri[end:]}"

    return curie
