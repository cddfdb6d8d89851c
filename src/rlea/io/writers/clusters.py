"""Clusters as files: their members, the pairs within them, and the record of the run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rlea.io.writers.atomic import write_all
from rlea.io.writers.tsv import put_table, without_breaks
from rlea.record import as_json, describe_run

CLUSTERS, PAIRS = "clusters.tsv", "pairs.tsv"
REMEDY = "give identifiers without tabs and line breaks"


def write_clusters(
    folder: str | Path,
    members: tuple[Sequence[str], Iterable[Sequence[Any]]],
    pairs: tuple[Sequence[str], Iterable[Sequence[Any]]],
    facts: Mapping[str, Any],
) -> list[Path]:
    """clusters.tsv, pairs.tsv and run.json: all of them or none. Tables are a header and rows; labels are for people.

    Numbers with a fraction are confidences. In columns whose name ends in "label" tabs and line breaks become blanks.
    """
    folder = Path(folder)
    record = as_json(describe_run(**facts))

    def put(table: tuple[Sequence[str], Iterable[Sequence[Any]]], name: str, path: Path) -> None:
        header, rows = table
        is_label = [column.endswith("label") for column in header]
        texts = (
            tuple(
                without_breaks(value) if label else f"{value:.6f}" if isinstance(value, float) else str(value)
                for label, value in zip(is_label, row, strict=True)
            )
            for row in rows
        )
        put_table(path, header, texts, shown=folder / name, remedy=REMEDY)

    return write_all(
        {
            folder / CLUSTERS: lambda path: put(members, CLUSTERS, path),
            folder / PAIRS: lambda path: put(pairs, PAIRS, path),
            folder / "run.json": lambda path: put_text(path, record),
        }
    )


def put_text(path: Path, text: str) -> None:
    """The text alone, with line breaks as they are."""
    path.write_text(text, encoding="utf-8", newline="\n")
