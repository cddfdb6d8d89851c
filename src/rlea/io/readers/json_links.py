"""Links as JSON lines: {"source": ..., "target": ..., "confidence": ...}, one object a line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl

from rlea.errors import InputError
from rlea.io.readers.columns import Table
from rlea.io.readers.link_files import LINKS
from rlea.io.readers.text import check_filled, read_text

_REMEDY = 'write {"source": "...", "target": "...", "confidence": 0.9}'


def read_json_links(path: Path) -> Table:
    """The rows of a file of links; other fields than those of links are ignored. No line at all is no link."""
    names = LINKS.all_names
    rows = []
    is_empty = path.is_file() and path.stat().st_size == 0  # as the writer leaves it where there are no links
    for number, line in enumerate([] if is_empty else read_text(path).split("\n"), start=1):
        if line.strip():
            fields = link_fields(line)
            if not set(LINKS.required) <= fields.keys():
                raise InputError("is no link", path=path, line=number, remedy=_REMEDY)
            rows.append((*(_text(path, number, name, fields.get(name)) for name in names), number))
    schema = {**dict.fromkeys(names, pl.String), "line": pl.UInt32}
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    check_filled(path, frame, LINKS.required)
    return Table(path, frame, "line")


def link_fields(line: str) -> dict[str, Any]:
    """The fields of a JSON object under our names; empty where the line is no object."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return dict(zip(LINKS.named(list(row)), row.values(), strict=True)) if isinstance(row, dict) else {}


def _text(path: Path, line: int, name: str, value: Any) -> str:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if value is None or (is_number and name == "confidence"):
        return "" if value is None else repr(value)
    # JSON can escape half of a character that has two halves; that is no text.
    if isinstance(value, str) and not any("\ud800" <= one <= "\udfff" for one in value):
        return value
    raise InputError(f"the field {name} is no text", path=path, line=line, remedy=_REMEDY)
