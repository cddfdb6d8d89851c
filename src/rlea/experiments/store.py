"""What was measured: a record a cell in a JSON file, a line a cell in the CSV file beside it, both whole or neither."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlea.errors import InputError
from rlea.record import as_json
from rlea.writers.atomic import write_all

Record = dict[str, Any]

# Figures as the CSV has them: shares to a ten thousandth, seconds to a thousandth, megabytes whole.
_FORMATS = {"seconds": ".3f", "peak_memory_mb": ".0f"}


@dataclass(frozen=True)
class Store:
    """Cells of one kind. `path` has no suffix: `results/deciders` is results/deciders.json and results/deciders.csv.

    `columns` are those of the CSV: entries of a record's `result`, or of the record itself. `names` are the columns
    that tell cells apart. `order` says by which of them lines are sorted, and in which order their values come; values
    that it does not know come after those.
    """

    path: Path
    columns: tuple[str, ...]
    names: tuple[str, ...]
    order: Mapping[str, Sequence[object]]

    @property
    def lines(self) -> Path:
        """The CSV file."""
        return self.path.with_suffix(".csv")

    @property
    def file(self) -> Path:
        """The JSON file."""
        return self.path.with_suffix(".json")

    def key(self, result: Mapping[str, Any]) -> str:
        """The cell in one line; the whole pool of test targets goes without saying."""
        return " ".join(str(result[name]) for name in self.names if (name, result[name]) != ("pool", "test"))

    def records(self) -> dict[str, Record]:
        """All that is kept, by key."""
        try:
            text = self.file.read_text(encoding="utf-8")
        except FileNotFoundError:
            return {}
        try:
            runs: dict[str, Record] = json.loads(text)["runs"]
        except (ValueError, KeyError, TypeError) as problem:
            raise InputError(
                "is not a file of recorded cells", path=self.file, remedy="name another folder with --output"
            ) from problem
        return runs

    def keep(self, record: Record) -> None:
        """Add the record of a cell; it takes the place of an earlier one of the same cell."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with _locked(self.path.parent):
            known = self.records() | {self.key(record["result"]): record}
            known = dict(sorted(known.items(), key=lambda item: self._place(item[1]["result"])))
            table, whole = self._table(list(known.values())), as_json({"runs": known})
            write_all(
                {
                    self.file: lambda path: _write(path, whole),
                    self.lines: lambda path: _write(path, table),
                }
            )

    def _table(self, records: Sequence[Record]) -> str:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(self._line(record) for record in records)
        return text.getvalue()

    def _line(self, record: Record) -> list[str]:
        result = record["result"]
        cells = []
        for column in self.columns:
            value = result[column] if column in result else record.get(column, "")
            shape = _FORMATS.get(column, ".4f")
            cells.append(format(value, shape) if isinstance(value, float) else str("" if value is None else value))
        return cells

    def _place(self, result: Mapping[str, Any]) -> tuple[Any, ...]:
        def of(name: str) -> tuple[int, Any]:
            value, known = result[name], self.order.get(name, ())
            return (list(known).index(value), "") if value in known else (len(known), value)

        # Other pools come last: those cells are an aside.
        return (result.get("pool", "test") != "test", *(of(name) for name in self.order))


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One writer at a time: several runs may share a folder."""
    try:
        import fcntl
    except ImportError:  # Windows: there one run at a time is to use a folder
        yield
        return
    place = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(place, fcntl.LOCK_EX)
        yield
    finally:
        os.close(place)
