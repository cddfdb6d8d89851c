"""Text files as rows of fields: encodings, compression, line ends and ragged rows are dealt with here, once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl

from rlea.errors import InputError
from rlea.io.readers.compression import unpacked, without_packing

UTF8_BOM = b"\xef\xbb\xbf"
# The UTF-32 marks begin like the UTF-16 ones, so they come first.
_FOREIGN_MARKS = (
    (b"\xff\xfe\x00\x00", "UTF-32"),
    (b"\x00\x00\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
)
_BLOCK = 4_000_000  # characters of a text that are taken apart at a time
TEXT = pl.String()
SAVE_AS_UTF8 = "save it as UTF-8 text"


def shown(text: str, limit: int = 80) -> str:
    """A piece of a file for a one-line message: quoted, escaped, cut at `limit` characters."""
    return repr(text if len(text) <= limit else text[: limit - 1] + "…")


def suffix_of(path: Path) -> str:
    """The extension in lower case, looking through that of a compression.

    >>> suffix_of(Path("dump.NT.gz"))
    '.nt'
    """
    return Path(without_packing(path.name.lower())).suffix


def check_file(path: Path) -> None:
    """Raise unless the path is a file that exists."""
    if path.is_dir():
        raise InputError("is a folder where a file is expected", path=path, remedy="give the path of a file")
    if not path.exists():
        raise InputError("there is no such file", path=path, remedy="check the path")
    if not path.is_file():  # a pipe would be waited for without end
        raise InputError("is a pipe or a device", path=path, remedy="write its content to a file, and give that")


def is_empty(path: Path) -> bool:
    """Whether a path is a file without a single byte, which some layouts have on purpose."""
    return path.is_file() and path.stat().st_size == 0


def check_marks(path: Path, head: bytes) -> None:
    """Raise if the first bytes of a file are the byte order mark of an encoding that is not UTF-8."""
    for mark, encoding in _FOREIGN_MARKS:
        if head.startswith(mark):
            raise InputError(f"is {encoding} text, not UTF-8", path=path, line=1, remedy=SAVE_AS_UTF8)


def read_bytes(path: Path) -> bytes:
    """The content of a file, unpacked if it is compressed (judged by its first bytes, not its name)."""
    check_file(path)
    with unpacked(path) as stream:
        return stream.read()


def read_text(path: Path) -> str:
    """The text of a UTF-8 file without its byte order mark; never empty."""
    return decoded(path, read_bytes(path))


def decoded(path: Path, content: bytes) -> str:
    """As `read_text`, for the content of a file."""
    check_marks(path, content[:4])
    content = content.removeprefix(UTF8_BOM)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        problem = f"is not UTF-8 (byte 0x{content[error.start]:02x})"
        raise InputError(problem, path=path, line=line, remedy=SAVE_AS_UTF8) from error
    check_text(path, text)
    return text


def check_text(path: Path, text: str) -> None:
    """Raise unless there is text, and no zero byte in it."""
    if (position := text.find("\x00")) >= 0:
        line = text.count("\n", 0, position) + 1
        raise InputError("holds a zero byte, so it is no text file", path=path, line=line, remedy=SAVE_AS_UTF8)
    if not text.strip():
        raise InputError("is empty", path=path, remedy="give a file with at least one row")


def tab_rows(path: Path, columns: Sequence[str], *, keep_tabs: bool = False) -> pl.DataFrame:
    """A tab-separated file without a header: the given string columns and `line` (numbered from 1).

    Quotes have no meaning. Blank lines are passed over, other lines must have one field per column; with `keep_tabs`
    the last field keeps the tabs within it. No field of the other columns is empty.
    """
    fields = _split(path, read_text(path), columns, keep_tabs)
    check_filled(path, fields, columns[:-1] if keep_tabs else columns)
    return fields


def split_tabs(path: Path, text: str, kind: pl.DataType = TEXT) -> pl.DataFrame:
    """As `tab_rows`, with as many columns as the first line has fields, named "0", "1", ...; fields may be empty.

    The columns are of a kind of categories, if one is given.
    """
    first = next(line for line in text.split("\n") if line.strip(" \r"))
    columns = [str(number) for number in range(first.count("\t") + 1)]
    return _split(path, text, columns, keep_tabs=False, kind=kind)


def _split(path: Path, text: str, columns: Sequence[str], keep_tabs: bool, kind: pl.DataType = TEXT) -> pl.DataFrame:
    frames = []
    first = 1
    for block in _blocks(text):
        lines = pl.Series("text", [block], dtype=pl.String).str.split("\n").explode()
        rows = _split_lines(path, lines, first, columns, keep_tabs)
        frames.append(rows.with_columns(pl.exclude("line").cast(kind)))
        first += len(lines)
    return pl.concat(frames)


def _blocks(text: str) -> Iterator[str]:
    """A text in pieces that end where a line ends: what is taken apart at once is in memory several times."""
    start = 0
    while (end := text.find("\n", start + _BLOCK)) >= 0:
        yield text[start:end]
        start = end + 1
    yield text[start:]


def _split_lines(path: Path, lines: pl.Series, first: int, columns: Sequence[str], keep_tabs: bool) -> pl.DataFrame:
    num_tabs = len(columns) - 1
    rows = (
        lines.to_frame()
        .with_row_index("line", offset=first)
        .with_columns(pl.col("text").str.strip_chars_end("\r"))
        .filter(pl.col("text").str.strip_chars(" ") != "")
    )
    tabs = rows["text"].str.count_matches("\t", literal=True)
    bad = tabs < num_tabs if keep_tabs else tabs != num_tabs
    if bad.any():
        position = bad.arg_max() or 0
        raise ragged(
            path, int(rows["line"][position]), int(tabs[position]) + 1, columns, "tabs", rows["text"][position]
        )
    if num_tabs == 0:
        return rows.rename({"text": columns[0]}).select(*columns, "line")
    parts = rows["text"].str.splitn("\t", num_tabs + 1).struct.unnest()
    parts.columns = list(columns)
    return parts.with_columns(rows["line"])


def ragged(
    path: Path, line: int, num_fields: int, columns: Sequence[str], separator: str, text: str = ""
) -> InputError:
    """The error for a row with too few or too many fields."""
    named = "" if columns[0].isdigit() else f" ({', '.join(columns)})"
    remedy = f"give every line the same fields, separated by {separator}"
    if separator == "tabs" and num_fields == 1 and "," in text:
        remedy = "separate the fields by tabs, or name the file .csv if they are separated by commas"
    elif separator == "tabs" and num_fields == 1 and " " in text:
        remedy = "separate the fields by tabs, not spaces"
    elif separator == "commas" and num_fields == 1 and ("\t" in text or ";" in text):
        remedy = "separate the fields by commas, or name the file .tsv if they are separated by tabs"
    noun = "field" if num_fields == 1 else "fields"
    problem = f"has {num_fields} {noun} where {len(columns)} are needed{named}"
    return InputError(problem, path=path, line=line, remedy=remedy)


def check_filled(path: Path, fields: pl.DataFrame, columns: Sequence[str], unit: str = "line") -> None:
    """Raise if a field of the columns is empty or nothing but space."""
    for name in columns:
        column = fields[name]
        if isinstance(column.dtype, pl.Categorical) and not _is_empty(column.unique()).any():
            continue
        empty = _is_empty(column)
        if empty.any():
            number = int(fields["line"][empty.arg_max() or 0])
            field = f"field {int(name) + 1}" if name.isdigit() else f"the field {name}"
            remedy = "give every row an identifier there or delete the row"
            raise error_at(path, unit, number, f"{field} is empty", remedy)


def _is_empty(column: pl.Series) -> pl.Series:
    column = column.cast(pl.String)
    return (column.is_null() | (column.str.strip_chars() == "")).fill_null(True)


def error_at(path: Path, unit: str, number: int, problem: str, remedy: str) -> InputError:
    """An error with its place: a line, or a row of a file that has no lines (Parquet), or the n-th link."""
    if unit == "line":
        return InputError(problem, path=path, line=number, remedy=remedy)
    return InputError(f"{unit} {number}: {problem}", path=path, remedy=remedy)
