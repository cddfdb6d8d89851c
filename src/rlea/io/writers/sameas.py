"""Links as `owl:sameAs` statements in N-Triples."""

from __future__ import annotations

from pathlib import Path

from rlea.io.writers.iris import strict_iri
from rlea.io.writers.rows import LinkRows

SAME_AS = "http://www.w3.org/2002/07/owl#sameAs"


def put_links_sameas(path: Path, rows: LinkRows) -> None:
    """Write one statement per link, the most confident first.

    The confidence is lost: a statement has no place for it, and whoever loads the file takes every link for certain.
    Identifiers that are no IRIs become `urn:rlea:` IRIs (see `rlea.graph.iri`).
    """
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for source, target in zip(rows.sources, rows.targets, strict=True):
            # A strict IRI holds none of the characters that N-Triples escapes.
            file.write(f"<{strict_iri(source)}> <{SAME_AS}> <{strict_iri(target)}> .\n")
