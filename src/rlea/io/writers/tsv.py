"""Links as tab-separated text: source, target, confidence, and the labels of both."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from rlea.errors import InputError
from rlea.io.writers.rows import LinkRows

# Without quoting or escapes, which readers disagree about, these would break a row.
_BREAKS = re.compile(r"[\t\n\r]")


def put_links_tsv(path: Path, rows: LinkRows, *, shown: str | Path | None = None) -> None:
    """Write links, the most confident first, with the names of both entities where they are known.

    Tabs and line breaks in a name become blanks: it is for people to read. Where there are blank nodes, two columns
    have the paths to them. Errors name `shown`.
    """
    header, columns = ["source", "target", "confidence"], [rows.sources, rows.targets, rows.printed_confidences()]
    if rows.source_names or not len(rows):
        header += ["source_label", "target_label"]
        columns += [[*map(without_breaks, names)] for names in (rows.source_names, rows.target_names)]
    if rows.source_paths:
        header += ["source_path", "target_path"]
        columns += [[*map(without_breaks, paths)] for paths in (rows.source_paths, rows.target_paths)]
    put_table(path, header, zip(*columns, strict=True), shown=shown)


def without_breaks(text: str) -> str:
    """Blanks in place of tabs and line breaks."""
    return _BREAKS.sub(" ", text)


def put_table(
    path: Path,
    header: Iterable[str],
    rows: Iterable[tuple[str, ...]],
    *,
    shown: str | Path | None = None,
    remedy: str = "write another format, such as .nt",
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
                problem = f"cannot hold {field[:80]!r}, which has a tab or a line break in it"
                raise InputError(problem, path=shown or path, remedy=remedy)
            file.write(line + "\n")
