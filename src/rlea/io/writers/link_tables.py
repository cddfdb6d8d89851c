"""Links for programs: comma-separated text, Parquet, and JSON lines. The columns are those of links.tsv."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from rlea.io.writers.rows import LinkRows
from rlea.plain_text import cell

FIELDS = ("source", "target", "confidence", "source_label", "target_label")


def put_links_csv(path: Path, rows: LinkRows) -> None:
    """Write links by the common rules of CSV (RFC 4180, with plain line feeds), the most confident first."""
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        columns = _columns(rows)
        table.writerow(columns)
        columns |= {"confidence": rows.printed_confidences()}
        columns |= {name: [cell(str(label)) for label in columns[name]] for name in FIELDS[3:] if name in columns}
        table.writerows(zip(*columns.values(), strict=True))


def put_links_parquet(path: Path, rows: LinkRows) -> None:
    """Write links as columns of text, and the confidence as a number."""
    import polars as pl

    columns = _columns(rows)
    kinds = {name: pl.Float64 if name == "confidence" else pl.String for name in columns}
    pl.DataFrame(columns, schema=kinds).write_parquet(path)


def put_links_jsonl(path: Path, rows: LinkRows) -> None:
    """Write one JSON object per link and line."""
    columns = _columns(rows)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for row in zip(*columns.values(), strict=True):
            file.write(json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False) + "\n")


def _columns(rows: LinkRows) -> dict[str, list[str] | list[float]]:
    """The columns by name; without labels where these are not known."""
    confidences = [float(text) for text in rows.printed_confidences()]
    columns: dict[str, list[str] | list[float]] = dict(
        zip(FIELDS, (list(rows.sources), list(rows.targets), confidences), strict=False)
    )
    if rows.source_names or not len(rows):
        columns |= {"source_label": list(rows.source_names), "target_label": list(rows.target_names)}
    return columns
