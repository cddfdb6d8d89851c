"""Named string columns from a TSV, CSV or Parquet file, with or without a header."""

from __future__ import annotations

import csv
import io
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from rlea.errors import InputError
from rlea.io.limits import UNPACKED, UNPACKED_FREE
from rlea.io.readers.text import TEXT, check_file, check_filled, ragged, read_text, shown, split_tabs, suffix_of

TABLE_SUFFIXES = (".tsv", ".csv", ".parquet", ".txt")
NO_KINDS: Mapping[str, pl.DataType] = {}


@dataclass(frozen=True)
class Columns:
    """What a table may hold. Columns are found by name (in any order) or, without a header, by position.

    `synonyms` maps other header names to ours; columns in `may_be_empty` may have empty fields, and so may those in
    `by_name`, which are found by a header alone.
    """

    required: tuple[str, ...]
    optional: tuple[str, ...] = ()
    may_be_empty: tuple[str, ...] = ()
    synonyms: Mapping[str, str] = field(default_factory=dict)
    by_name: tuple[str, ...] = ()

    @property
    def in_order(self) -> tuple[str, ...]:
        return (*self.required, *self.optional)

    @property
    def all_names(self) -> tuple[str, ...]:
        return (*self.in_order, *self.by_name)

    @property
    def must_be_filled(self) -> tuple[str, ...]:
        return tuple(name for name in self.required if name not in self.may_be_empty)

    def named(self, header: Sequence[str]) -> list[str]:
        """The header's names in our words; names we do not know stay as they are."""
        lowered = [name.strip().lower() for name in header]
        return [self.synonyms.get(name, name) for name in lowered]


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of strings: the required columns, those of the optional ones that the file has, and `line`.

    `unit` says what `line` counts: "line" in text files, "row" in Parquet files and frames."""

    path: Path
    frame: pl.DataFrame
    unit: str


def read_table(path: Path, columns: Columns, kinds: Mapping[str, pl.DataType] = NO_KINDS) -> Table:
    """Read a table by the extension of its file; a file without a known extension is taken as TSV.

    In TSV quotes have no meaning; CSV is read by the common rules (RFC 4180). Columns of no interest are ignored where
    there is a header. Optional columns come with empty strings for missing values. Of Parquet, the columns in `kinds`
    come as these categories: large graphs have many triples, and far fewer identifiers. So do those of TSV, all as the
    first kind, if there are kinds for all of them.
    """
    if suffix_of(path) == ".parquet":
        frame = read_parquet(path, lambda raw: _as_text(path, raw, columns, kinds))
        return _filled(path, frame, columns)
    text = read_text(path)
    if suffix_of(path) == ".csv":
        return named_table(path, split_commas(path, text), columns)
    kind = kinds[columns.required[0]] if set(columns.in_order) <= kinds.keys() else TEXT
    return named_table(path, split_tabs(path, text, kind), columns)


def named_table(path: Path, raw: pl.DataFrame, columns: Columns) -> Table:
    """Give names to the columns of rows that may begin with a header."""
    first = [str(value) for value in raw.drop("line").row(0)]
    header = columns.named(first)
    line = int(raw["line"][0])
    found = [name for name in columns.required if name in header]
    # A single known word among three may be an identifier by chance; more of them in their places are a header that
    # lacks something, which must be said and not be read as data.
    in_place = all(header.index(name) == columns.required.index(name) for name in found)
    has_header = len(found) == len(columns.required) or (in_place and 2 * len(found) >= len(columns.required))
    if has_header:
        _check_header(path, header, columns, line)
        frame = raw.slice(1).select(
            *[pl.col(str(header.index(name))).alias(name) for name in columns.all_names if name in header], "line"
        )
    else:
        width = len(first)
        if not len(columns.required) <= width <= len(columns.in_order):
            wanted = columns.required if width < len(columns.required) else columns.in_order
            separator = "commas" if suffix_of(path) == ".csv" else "tabs"
            raise ragged(path, line, width, wanted, separator, " ".join(first))
        frame = raw.rename({str(number): name for number, name in enumerate(columns.in_order[:width])})
    check_filled(path, frame, columns.must_be_filled)
    return Table(path, frame, "line")


def split_commas(
    path: Path, text: str, delimiter: str = ",", *, strict: bool = True, quoting: Any = csv.QUOTE_MINIMAL
) -> pl.DataFrame:
    """CSV text as string columns named "0", "1", ... and `line`, the line on which each row begins."""
    fields: list[list[str]] = []  # by column, which spares a million small lists
    lines: list[int] = []
    limit = csv.field_size_limit(2**31 - 1)  # long abstracts are real; the default is 128 KiB
    begin = 1
    try:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=strict, quoting=quoting)
        for row in reader:
            if len(row) > 1 or (row and row[0].strip()):
                if not fields:
                    fields = [[] for _ in row]
                if len(row) != len(fields):
                    names = [str(number) for number in range(len(fields))]
                    separator = {",": "commas", "\t": "tabs"}.get(delimiter, shown(delimiter))
                    raise ragged(path, begin, len(row), names, separator, delimiter.join(row))
                for column, value in zip(fields, row, strict=True):
                    column.append(value)
                lines.append(begin)
            begin = reader.line_num + 1
    except csv.Error as error:
        problem = f"the quotes of this row do not match ({error})"
        remedy = 'close every quoted field and write a quote within one as ""'
        raise InputError(problem, path=path, line=begin, remedy=remedy) from error
    finally:
        csv.field_size_limit(limit)
    if not fields:
        raise InputError("has nothing but empty fields", path=path, remedy="give a file with at least one row")
    columns = [pl.Series(str(number), values, dtype=pl.String) for number, values in enumerate(fields)]
    return pl.DataFrame([*columns, pl.Series("line", lines, dtype=pl.UInt32)])


def _check_header(path: Path, header: Sequence[str], columns: Columns, line: int | None) -> None:
    remedy = f"name the columns {', '.join(columns.required)}"
    if columns.optional:
        remedy += f" and, if need be, {', '.join(columns.optional)}"
    for name in columns.required:
        if name not in header:
            listed = ", ".join(shown(column, 30) for column in header[:8])
            raise InputError(f"has no column {name} (it has {listed})", path=path, line=line, remedy=remedy)
    for name in columns.all_names:
        if header.count(name) > 1:
            raise InputError(f"has the column {name} twice", path=path, line=line, remedy=remedy)


def parquet_columns(path: Path) -> list[str]:
    """The names of the columns; none if the file cannot be read, of which its reader says more."""
    try:
        with quiet_panics():
            return list(pl.read_parquet_schema(path))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        return []


@contextmanager
def quiet_panics() -> Iterator[None]:
    """Keep what a panic in compiled code prints from the terminal; the exception that follows is caught.

    It writes to the system's standard error itself, so that is put aside. What others wrote there meanwhile is written
    again, unless there was a panic.
    """
    sys.stderr.flush()
    try:
        kept = os.dup(2)
    except OSError:  # there is no standard error
        yield
        return
    with tempfile.TemporaryFile() as aside:
        os.dup2(aside.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            aside.seek(0)
            text = aside.read()
            if text and b"panicked at" not in text:
                os.write(2, text)


def read_parquet(path: Path, query: Callable[[pl.LazyFrame], pl.LazyFrame] = lambda raw: raw) -> pl.DataFrame:
    """The frame of a Parquet file, or what a query makes of it, piece by piece."""
    check_file(path)
    try:
        with quiet_panics():
            # A column of one value takes no room in the file, however many rows it has.
            raw = pl.scan_parquet(path, glob=False)
            rows = raw.select(pl.len()).collect().item()
            if 8 * rows * len(pl.read_parquet_schema(path)) > max(UNPACKED_FREE, UNPACKED.value * path.stat().st_size):
                raise UNPACKED.exceeded("unpacks to more than {} times its size", path)
            return query(raw).collect(engine="streaming")
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        remedy = "write it again as Parquet, or give TSV or CSV"
        raise InputError("is no Parquet file or is damaged", path=path, remedy=remedy) from error


def frame_table(path: Path, raw: pl.DataFrame, columns: Columns) -> Table:
    """The columns of a frame as strings; rows are numbered from 1. `path` is for errors."""
    return _filled(path, _as_text(path, raw.lazy(), columns, NO_KINDS).collect(), columns)


def _as_text(path: Path, raw: pl.LazyFrame, columns: Columns, kinds: Mapping[str, pl.DataType]) -> pl.LazyFrame:
    schema = raw.collect_schema()
    header = columns.named(schema.names())
    _check_header(path, header, columns, None)
    found = {name: schema.names()[header.index(name)] for name in columns.all_names if name in header}
    for name, kind in ((name, schema[own]) for name, own in found.items()):
        is_number = name in columns.may_be_empty and kind.is_float()
        if kind not in (pl.String, pl.Categorical, pl.Enum, pl.Null) and not kind.is_integer() and not is_number:
            remedy = "store the column as text (string)"
            raise InputError(f"the column {name} is of type {kind}", path=path, remedy=remedy)
    texts = (
        pl.col(own).cast(pl.String).fill_null("").cast(kinds.get(name, pl.String)).alias(name)
        for name, own in found.items()
    )
    return raw.select(*texts).with_row_index("line", offset=1)


def _filled(path: Path, frame: pl.DataFrame, columns: Columns) -> Table:
    check_filled(path, frame, columns.must_be_filled, "row")
    return Table(path, frame, "row")
