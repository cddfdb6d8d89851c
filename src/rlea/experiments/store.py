"""Records of cells: one record per cell in a JSON file, and one line per cell in the CSV file beside it."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from rlea.errors import InputError
from rlea.io.writers.atomic import write_all
from rlea.record import as_json

Record = dict[str, Any]

# Figures as the CSV has them: shares to a ten thousandth, seconds to a thousandth, megabytes whole.
_FORMATS = {"seconds": ".3f", "peak_memory_mb": ".0f"}


@dataclass(frozen=True)
class Store:
    """Cells of one kind. `path` has no suffix: `results/deciders` is results/deciders.json and results/deciders.csv.
    Of a store that is defined by its name alone, `at` is the one in a folder.

    `names` are the entries of a result that tell cells apart, `measures` the others that the CSV shows. `order` says by
    which names lines are sorted, and in which order their values come; values that it does not know come last.
    """

    path: Path
    names: tuple[str, ...]
    measures: tuple[str, ...]
    order: Mapping[str, Sequence[object]]

    def at(self, folder: Path) -> Store:
        """The store of this name in a folder."""
        return replace(self, path=folder / self.path)

    @property
    def columns(self) -> tuple[str, ...]:
        """Those of the CSV."""
        return (*self.names, *self.measures, "commit", "seed")

    @property
    def lines(self) -> Path:
        """The CSV file."""
        return self.path.with_suffix(".csv")

    @property
    def file(self) -> Path:
        """The JSON file."""
        return self.path.with_suffix(".json")

    def key(self, result: Mapping[str, Any]) -> str:
        """The name of a cell in one line; the pool is left out if it is that of all test targets."""
        return " ".join(str(result[name]) for name in self.names if (name, result[name]) != ("pool", "test"))

    def records(self) -> dict[str, Record]:
        """All records by key."""
        try:
            text = self.file.read_text(encoding="utf-8")
        except FileNotFoundError:
            return {}
        try:
            runs: dict[str, Record] = json.loads(text)["runs"]
            is_whole = all(self.key(record["result"]) == key for key, record in runs.items())
        except (ValueError, KeyError, TypeError, AttributeError):
            is_whole = False
        if not is_whole:
            raise InputError(
                "is not a file of recorded cells", path=self.file, remedy="move it away, or name another --output"
            )
        return runs

    def keep(self, record: Record) -> None:
        """Add the record of a cell; it takes the place of an earlier one of the same cell."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with locked(self.path.parent):
            self._write(self.records() | {self.key(record["result"]): record})

    def mend(self) -> None:
        """Write the CSV again if it does not match the records: a kill may come between the two files."""
        if not self.file.exists():
            return
        with locked(self.path.parent):
            known = self.records()
            if not self.lines.exists() or self.lines.read_text(encoding="utf-8") != self._table(list(known.values())):
                self._write(known)

    def _write(self, known: dict[str, Record]) -> None:
        known = dict(sorted(known.items(), key=lambda item: self._place(item[1]["result"])))
        texts = {self.file: as_json({"runs": known}), self.lines: self._table(list(known.values()))}
        write_all({path: partial(write_text, text) for path, text in texts.items()})

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


def plain(value: Any) -> Any:
    """A value as it comes back from a JSON file, so that the two can be compared."""
    return json.loads(as_json({"value": value}))["value"]


def write_text(text: str, path: Path) -> None:
    """A text as a file."""
    path.write_text(text, encoding="utf-8")


@contextmanager
def locked(place: Path) -> Iterator[None]:
    """A lock between runs that share a folder. `place` is that folder, or a file that is made for the lock."""
    try:
        import fcntl
    except ImportError:  # Windows: there only one run at a time may use a folder
        yield
        return
    handle = os.open(place, os.O_RDONLY if place.is_dir() else os.O_RDONLY | os.O_CREAT)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
