"""What corresponds in the schemas, read back from the folder of a run."""

from __future__ import annotations

from pathlib import Path

from rlea.errors import InputError
from rlea.graph.schema import PARTS, SCHEMA_FILES, Alignment, Schema, columns_of
from rlea.io.readers.columns import Columns, read_table
from rlea.io.readers.text import shown


def read_schema(folder: str | Path) -> Schema | None:
    """What `schema_files` wrote to a folder, as it was written; None where it holds none of the files."""
    paths = [Path(folder) / name for name in SCHEMA_FILES]
    if not any(path.exists() for path in paths):
        return None
    return Schema(*(_read(path, part) if path.exists() else () for path, part in zip(paths, PARTS, strict=True)))


def _read(path: Path, part: str) -> tuple[Alignment, ...]:
    columns = columns_of(part)
    found = []
    for row in read_table(path, Columns(columns)).frame.iter_rows(named=True):
        there, back = (_share(path, row, name) for name in columns[-2:])
        direction = row.get("direction", "same")
        if direction not in ("same", "inverse"):
            problem = f"the direction is {shown(direction)}"
            raise InputError(problem, path=path, line=int(row["line"]), remedy="write same or inverse")
        found.append(Alignment(row["source"], row["target"], direction == "inverse", there, back))
    return tuple(found)


def _share(path: Path, row: dict[str, str], column: str) -> float:
    try:
        value = float(row[column])
    except ValueError:
        value = -1.0
    if not 0.0 <= value <= 1.0:
        remedy = "give a number from 0 to 1"
        raise InputError(f"{column} is {shown(row[column])}", path=path, line=int(row["line"]), remedy=remedy)
    return value
