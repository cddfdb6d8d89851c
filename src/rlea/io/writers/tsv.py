"""Links as tab-separated text: source, target, confidence."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from rlea.errors import InputError
from rlea.io.writers.atomic import atomic
from rlea.io.writers.rows import LinkRows

# Without quoting or escapes, which readers disagree about, these would break a row.
_BREAKS = re.compile(r"[\t\n\r]")


def write_links_tsv(path: str | Path, rows: LinkRows) -> None:
    """Write links under the header `source`, `target`, `confidence`, one per line, the most confident first."""
    with atomic(path) as temporary:
        put_links_tsv(temporary, rows, shown=path)


def put_links_tsv(path: Path, rows: LinkRows, *, shown: str | Path | None = None) -> None:
    """As `write_links_tsv`, straight to `path`; errors name the file `shown`."""
    fields = zip(rows.sources, rows.targets, rows.printed_confidences(), strict=True)
    put_table(path, ("source", "target", "confidence"), fields, shown=shown)


def put_table(
    path: Path,
    header: Iterable[str],
    rows: Iterable[tuple[str, ...]],
    *,
    shown: str | Path | None = None,
    remedy: str = "write another format (links as .nt, .rdf or .sssom.tsv, graphs as .nt or .parquet)",
) -> None:
    """Write rows of fields, separated by tabs and without quotes; an empty `header` is left out."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        names = tuple(header)
        if names:
            file.write("\t".join(names) + "\n")
        for row in rows:
            line = "\t".join(row)
            if line.count("\t") != len(row) - 1 or "\n" in line or "\r" in line:
                field = next(field for field in row if _BREAKS.search(field))
                raise InputError(
                    f"cannot hold {field[:80]!r}, which has a tab or a line break in it",
                    path=shown or path,
                    remedy=remedy,
                )
            file.write(line + "\n")
