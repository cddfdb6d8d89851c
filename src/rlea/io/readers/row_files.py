"""Files with one row per entity, as frames of text: CSV and the like, Parquet, Excel, SQLite, DuckDB, standard input.

What separates the fields, how they are quoted and in which encoding the text is, is found by looking.
"""

from __future__ import annotations

import csv
import io
import sqlite3
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from rlea.errors import InputError
from rlea.io.limits import COLUMNS, check_archive
from rlea.io.readers.columns import quiet_panics, read_parquet, split_commas
from rlea.io.readers.text import SAVE_AS_UTF8, check_file, check_text, read_bytes, shown, split_tabs, suffix_of

TEXT_SUFFIXES = (".csv", ".tsv", ".txt")
EXCEL_SUFFIXES = (".xlsx", ".xls", ".xlsb", ".ods")
SQLITE_SUFFIXES = (".sqlite", ".sqlite3", ".db")
DUCKDB_SUFFIXES = (".duckdb",)
ROW_SUFFIXES = (*TEXT_SUFFIXES, ".parquet", *EXCEL_SUFFIXES, *SQLITE_SUFFIXES, *DUCKDB_SUFFIXES)
STANDARD_INPUT = "-"
SEPARATORS = (",", "\t", ";", "|", "%", "^", "~")  # the first of those that split a file equally well
SEPARATOR_NAMES = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars (|)"}
MISSING = ("", "null", "nan", "n/a", "#n/a", "none", "\\n")
MANY_VALUES = 20  # in so many one may be the name of its column by chance
LOOKED_AT = 300  # rows that tell what separates fields
MOST_HEADER = 60  # characters of a column's name
_NUMBER_OR_DATE = r"^[+\-$€£]?\d[\d.,:/\- ]*%?$"


@dataclass(frozen=True, eq=False)
class RowTable:
    """A table of text: a row per entity, one column for every field; empty fields are null.

    `lines` has the line of every row, None where a file has no lines. `references` says of columns which table they
    refer to, where the file declares that.
    """

    name: str
    path: Path
    frame: pl.DataFrame
    lines: pl.Series | None = None
    note: str = ""
    references: Mapping[str, str] = field(default_factory=dict)


def read_row_file(path: Path, asked: Sequence[str] = ()) -> list[RowTable]:
    """All tables of a file; `asked` are columns that a user names."""
    if str(path) == STANDARD_INPUT:
        return [read_text_table(path, sys.stdin.buffer.read(), "standard input", asked)]
    check_file(path)
    suffix = suffix_of(path)
    if suffix == ".parquet":
        return [RowTable(_stem(path), path, _as_text(read_parquet(path)))]
    if suffix in EXCEL_SUFFIXES:
        return _read_excel(path)
    if suffix in SQLITE_SUFFIXES:
        return _read_sqlite(path)
    if suffix in DUCKDB_SUFFIXES:
        return _read_duckdb(path)
    return [read_text_table(path, read_bytes(path), _stem(path), asked)]


# ---- text -----------------------------------------------------------------------------------------------------------


def read_text_table(path: Path, content: bytes, name: str, asked: Sequence[str] = ()) -> RowTable:
    """A text file with a header, or columns called `column 1` and so on where it has none."""
    text, encoding = decode(path, content)
    raw, separator = split_text(path, text)
    check_width(path, raw.width - 1)
    header, rows = find_header(raw.drop("line"), asked)
    lines = raw["line"].tail(len(rows))
    _check_columns(path, header)
    frame = rows.rename(dict(zip(rows.columns, header, strict=True)))
    told = f"fields separated by {SEPARATOR_NAMES.get(separator, shown(separator))}"
    note = f"{told}, read as {encoding}" if encoding != "UTF-8" else told
    return RowTable(name, path, _as_text(frame), lines, note)


def decode(path: Path, content: bytes) -> tuple[str, str]:
    """The text of a file and the name of its encoding: UTF-8, UTF-16 by its mark, or else Windows-1252."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        encoding = "UTF-16"
    else:
        try:
            content.decode("utf-8")
            encoding = "UTF-8"
        except UnicodeDecodeError:
            encoding = "Windows-1252"
    try:
        text = content.decode({"UTF-8": "utf-8-sig", "UTF-16": "utf-16", "Windows-1252": "cp1252"}[encoding])
    except UnicodeDecodeError as error:
        raise InputError("is in no encoding that is known here", path=path, remedy=SAVE_AS_UTF8) from error
    check_text(path, text)
    return text, encoding


def split_text(path: Path, text: str) -> tuple[pl.DataFrame, str]:
    """Rows of fields, in columns "0", "1", ... and `line`; and what separates them.

    In tab-separated files quotes have no meaning. In others a field may be quoted; where quotes do not match, they have
    no meaning either.
    """
    if suffix_of(path) == ".tsv":
        return split_tabs(path, text), "\t"
    quoting, separator = find_separator(text)
    if separator == "\t" and quoting == csv.QUOTE_NONE:
        return split_tabs(path, text), separator
    return split_commas(path, text, separator, quoting=quoting), separator


def find_separator(text: str) -> tuple[int, str]:
    """How fields are quoted, and what separates them: what gives all rows the same number of fields, and most of these.

    >>> find_separator("id|name\\n1|Bolt, long\\n2|Nut\\n")[1]
    '|'
    """
    best = (0, csv.QUOTE_MINIMAL, ",")
    for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_NONE):
        for separator in SEPARATORS:
            width = _width(text, separator, quoting)
            if width > max(1, best[0]):
                best = (width, quoting, separator)
        if best[0]:
            break
    return best[1], best[2]


def _width(text: str, separator: str, quoting: Any) -> int:
    """The number of fields that all of the first rows have; 0 if they differ or quotes do not match."""
    limit = csv.field_size_limit(2**31 - 1)
    try:
        lines = io.StringIO(text, newline="")
        reader = csv.reader(lines, delimiter=separator, quoting=quoting, strict=quoting == csv.QUOTE_MINIMAL)
        widths = {len(row) for row, _ in zip(reader, range(LOOKED_AT), strict=False) if any(map(str.strip, row))}
    except csv.Error:
        return 0
    finally:
        csv.field_size_limit(limit)
    return widths.pop() if len(widths) == 1 else 0


def find_header(raw: pl.DataFrame, asked: Sequence[str] = ()) -> tuple[list[str], pl.DataFrame]:
    """The names of the columns, and the rows below them.

    The first row is a header if a column that a user asks for is named there. Else each column votes: for a header if
    its first field is text over numbers or occurs nowhere below, against it if it is like the fields below, or long.
    A header may leave a name out, as that of an index.
    """
    first = [(value or "").strip() for value in raw.row(0)]
    rest = raw.slice(1)
    votes = [_votes(value, rest[name]) for name, value in zip(raw.columns, first, strict=True) if value]
    is_header = bool(set(asked) & set(first)) or (len(votes) * 2 > len(first) and sum(votes) > 0)
    if is_header:
        return [value or f"column {number}" for number, value in enumerate(first, start=1)], rest
    return [f"column {number}" for number in range(1, len(first) + 1)], raw


def _votes(first: str, below: pl.Series) -> int:
    """Whether a column speaks for a header (1), against one (-1), or says nothing (0)."""
    values = below.drop_nulls().str.strip_chars()
    values = values.filter(values != "")
    is_number = bool(pl.Series([first]).str.contains(_NUMBER_OR_DATE)[0])
    numbers = values.str.contains(_NUMBER_OR_DATE).mean() if len(values) else 0.0
    if is_number:
        is_year = len(first) == 4 and first.isdigit()  # columns are called 2019, 2020, ...
        are_years = bool(values.str.contains(r"^[0-9]{4}$").all())
        return 0 if is_year and not are_years else -1
    if len(first) > MOST_HEADER:
        return -1
    if first in values:
        return -1 if len(values) < MANY_VALUES else 0
    return 2 if float(numbers or 0.0) > 0.5 else 1  # type: ignore[arg-type]


def check_width(path: Path, width: int) -> None:
    """Refuse a table of more columns than anybody would call one row per entity."""
    if width > COLUMNS.value:
        raise COLUMNS.exceeded("has more than {} columns", path)


def _check_columns(path: Path, header: list[str]) -> None:
    counts = Counter(name.lower() for name in header)
    for name in header:
        if counts[name.lower()] > 1:
            raise InputError(f"has the column {shown(name, 30)} twice", path=path, line=1, remedy="rename one of them")


# ---- other files ----------------------------------------------------------------------------------------------------


def _missing(path: Path, package: str) -> InputError:
    remedy = "pip install 'rlea[tables]', or give CSV or Parquet"
    return InputError(f"cannot be read without the package {package}", path=path, remedy=remedy)


def _read_excel(path: Path) -> list[RowTable]:
    try:
        import fastexcel
    except ImportError as error:
        raise _missing(path, "fastexcel") from error
    check_archive(path)
    try:
        with quiet_panics():
            sheets = pl.read_excel(path, sheet_id=0, raise_if_empty=False)
    except (fastexcel.FastExcelError, pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        remedy = "check the file, or give CSV"
        raise InputError("is no Excel file or is damaged", path=path, remedy=remedy) from error
    found = [RowTable(name, path, _as_text(frame), note=f"sheet {name}") for name, frame in sheets.items()]
    return _some(path, [table for table in found if table.frame.width and table.frame.height])


def _read_sqlite(path: Path) -> list[RowTable]:
    tables = []
    try:
        # Read only: no file is made by looking at one, and none is changed.
        with sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True) as base:
            base.text_factory = lambda raw: raw.decode("utf-8", "replace")
            listed = base.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
            for (name,) in sorted(listed.fetchall()):
                quoted = '"' + name.replace('"', '""') + '"'
                cursor = base.execute(f"SELECT * FROM {quoted}")
                columns = [one[0] for one in cursor.description]
                rows = [[_cell(value) for value in row] for row in cursor]
                keys = base.execute(f"PRAGMA foreign_key_list({quoted})").fetchall()
                frame = pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String), orient="row")
                references = {key[3]: key[2].lower() for key in keys}
                tables.append(RowTable(name, path, _as_text(frame), note=f"table {name}", references=references))
    except sqlite3.Error as error:
        raise InputError("is no SQLite file or is damaged", path=path, remedy="check the file, or give CSV") from error
    finally:
        if "base" in locals():
            base.close()
    return _some(path, [table for table in tables if table.frame.height])


def _read_duckdb(path: Path) -> list[RowTable]:
    try:
        import duckdb
    except ImportError as error:
        raise _missing(path, "duckdb") from error
    try:
        # Nothing outside of the file is read: a view may name any other file.
        with duckdb.connect(str(path), read_only=True, config={"enable_external_access": "false"}) as base:
            listed = base.execute("SELECT table_name FROM duckdb_tables() WHERE schema_name = 'main'")
            names = sorted(row[0] for row in listed.fetchall())
            tables = []
            for name in names:
                quoted = '"' + name.replace('"', '""') + '"'
                cursor = base.execute(f"SELECT * FROM {quoted}")
                columns = [one[0] for one in cursor.description or []]
                rows = [[_cell(value) for value in row] for row in cursor.fetchall()]
                frame = pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String), orient="row")
                tables.append(RowTable(name, path, _as_text(frame), note=f"table {name}"))
    except duckdb.Error as error:
        raise InputError("is no DuckDB file or is damaged", path=path, remedy="check the file, or give CSV") from error
    return _some(path, [table for table in tables if table.frame.height])


def _some(path: Path, tables: list[RowTable]) -> list[RowTable]:
    if not tables:
        raise InputError("has no table with rows", path=path, remedy="give a file with at least one")
    return tables


def _cell(value: Any) -> str | None:
    """A value of a database as text; binary ones are left out."""
    return None if value is None or isinstance(value, bytes | memoryview) else str(value)


def _as_text(frame: pl.DataFrame) -> pl.DataFrame:
    """All columns as stripped text; empty fields are null. Columns of lists and the like are left out."""
    kept = [
        name
        for name, kind in frame.schema.items()
        if not kind.is_nested() and kind not in (pl.Binary, pl.Duration, pl.Object)
    ]
    text = settle_dates(frame.select(pl.col(kept).cast(pl.String, strict=False).str.strip_chars()))
    return text.with_columns(
        pl.when(pl.all().str.to_lowercase().is_in(MISSING)).then(None).otherwise(pl.all()).name.keep()
    )


_SLASHED = r"^([0-9]{1,2})[/\-]([0-9]{1,2})[/\-]([0-9]{4})$"


def settle_dates(frame: pl.DataFrame) -> pl.DataFrame:
    """Dates such as 05/11/1986 as 1986-11-05 where other dates of their column show which number is the day."""
    for name in frame.columns:
        parts = frame[name].str.extract_groups(_SLASHED).struct.unnest()
        numbers = [parts[part].cast(pl.Int32) for part in ("1", "2")]
        if numbers[0].null_count() == frame.height:
            continue
        is_day = [bool((number > 12).any()) for number in numbers]
        if is_day[0] == is_day[1]:  # nothing shows it, or they contradict each other
            continue
        day, month = ("1", "2") if is_day[0] else ("2", "1")
        fields = (parts[part].str.zfill(2) for part in (month, day))
        dates = pl.select(pl.concat_str(parts["3"], *fields, separator="-")).to_series()
        frame = frame.with_columns(pl.coalesce(dates, frame[name]).alias(name))
    return frame


def _stem(path: Path) -> str:
    return path.name.split(".")[0] or path.name
