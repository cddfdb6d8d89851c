"""Links as tab-separated text: source, target, confidence, and the labels of both."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from rlea.errors import InputError
from rlea.io.writers.rows import LinkRows
from rlea.plain_text import cell

# Without quoting or escapes, which readers disagree about, these would break a row; half a character is no UTF-8.
_BREAKS = re.compile("[\t\n\r\0\ud800-\udfff]")
_BREAKS_BUT_TABS = re.compile("[\n\r\0\ud800-\udfff]")


def put_links_tsv(path: Path, rows: LinkRows, *, shown: str | Path | None = None) -> None:
    """Write links, the most confident first, with the names of both entities where they are known.

    Names are for people to read: tabs and line breaks become blanks, and none is a formula. Where there are blank
    nodes, two columns have the paths to them. Errors name `shown`.
    """
    header, columns = ["source", "target", "confidence"], [rows.sources, rows.targets, rows.printed_confidences()]
    if rows.source_names or not len(rows):
        header += ["source_label", "target_label"]
        columns += [[cell(name) for name in names] for names in (rows.source_names, rows.target_names)]
    if rows.source_paths:
        header += ["source_path", "target_path"]
        columns += [[*map(without_breaks, paths)] for paths in (rows.source_paths, rows.target_paths)]
    put_table(path, header, zip(*columns, strict=True), shown=shown)


def can_hold(field: str) -> bool:
    """Whether a text can be a field of such a file, and be read again."""
    return _BREAKS.search(field) is None


def refuse_unwritable(identifiers: Iterable[str], what: str) -> None:
    """Refuse identifiers that no file of links could hold, to be asked before long work; `what` has them."""
    for text in identifiers:
        if not can_hold(text):
            problem = (
                f"{what} has the identifier {text[:80]!r}, which holds a tab, line break, zero byte or half character"
            )
            raise InputError(problem, remedy="correct it there: no file of links could hold it")


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
            if line.count("\t") != len(row) - 1 or _BREAKS_BUT_TABS.search(line):
                field = next(field for field in row if not can_hold(field))
                problem = (
                    f"cannot hold {field[:80]!r}, which has a tab, a line break, a zero byte or half a character in it"
                )
                raise InputError(problem, path=shown or path, remedy=remedy)
            file.write(line + "\n")
