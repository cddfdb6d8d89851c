"""Tables with one row per entity -> a graph: fields are literals, keys between tables are relations.

Which column identifies a row and which one names it is found by looking, and told in a note; `RowOptions` overrule it.
Of several tables (in one file or folder) the rows of all are entities; they are called `table/id`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl

from rlea.errors import InputError
from rlea.graph import LITERAL_COLUMNS, KnowledgeGraph
from rlea.graph.name_attribute import BONUS, name_likeness, says_name
from rlea.io.readers.columns import parquet_columns
from rlea.io.readers.compression import unpacked
from rlea.io.readers.row_files import (
    ROW_SUFFIXES,
    TEXT_SUFFIXES,
    RowTable,
    check_width,
    decode,
    find_header,
    read_row_file,
    split_text,
)
from rlea.io.readers.tables import TABLES
from rlea.io.readers.text import error_at, shown, suffix_of

CALLED = "\x00called"  # a column that no file has
TRIPLE_COLUMNS = ["head", "relation", "tail"]
LOOKED_AT = 1 << 18  # bytes of a text file that tell rows from triples
MOST_LISTED = 20  # columns that an error names
LEAST_FILLED = 0.5  # share of rows that have a name
# What a column loses if all values have a number: addresses are as nearly unique and in words as the names beside them.
NUMBERED = 0.25
NEARLY_ALL = 0.95  # of the values of a column that must be keys of another table for it to refer to it
# Joined where no single column names a person.
FIRST, LAST = {"firstname", "givenname", "forename", "vorname"}, {"lastname", "familyname", "surname", "nachname"}
_DIGIT = re.compile(r"\d")
_ID = re.compile(r"(?:^|[^a-z])(?:id|key|uuid|guid)$|Id$|ID$")
_REFERENCE = re.compile(r"(?:[_ ]?(?:id|key|no|nr|ref|fk|code))$", re.IGNORECASE)
_SURROGATE = r"^\d+$|^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$"


@dataclass(frozen=True)
class RowOptions:
    """Columns that a user names where the guess is wrong; empty: the guess."""

    id: str = ""
    name: str = ""
    columns: tuple[str, ...] = field(default_factory=tuple)  # to use, all if empty

    @property
    def is_given(self) -> bool:
        """Whether any column is named."""
        return self != GUESS


GUESS = RowOptions()


@dataclass(frozen=True, eq=False)
class _Chosen:
    """A table and what its columns are for."""

    table: RowTable
    id: str  # "" where rows are numbered
    names: tuple[str, ...]  # joined by blanks; none where no column names rows
    columns: tuple[str, ...]  # that become literals or relations
    ids: pl.Series  # the identifier of every row

    @property
    def is_surrogate(self) -> bool:
        """Whether identifiers are numbers or random, which say nothing outside of their table."""
        return not self.id or bool(self.ids.str.contains(_SURROGATE).all())


def read_rows(path: Path, options: RowOptions) -> KnowledgeGraph:
    """A graph from a file of tables, or from a folder with nothing but such files."""
    asked = [name for name in (options.id, options.name, *options.columns) if name]
    if path.is_dir():
        tables = [table for file in row_files(path) for table in read_row_file(file, asked)]
        stems = [table.name for table in tables]
        return graph_of_rows(
            [replace(one, name=one.path.name) if stems.count(one.name) > 1 else one for one in tables], options
        )
    return graph_of_rows(read_row_file(path, asked), options)


def has_rows(path: Path) -> bool:
    """Whether a file of tables has a row per entity, by its first rows; if not, it is one of triples."""
    suffix = suffix_of(path)
    if suffix == ".parquet":
        header = parquet_columns(path)
        return bool(header) and not set(TABLES["triples"].required) <= set(TABLES["triples"].named(header))
    if suffix not in TEXT_SUFFIXES:
        return True
    with unpacked(path) as stream:
        head = stream.read(LOOKED_AT)
    try:
        text, _ = decode(path, _whole_lines(head))
        raw, _ = split_text(path, text)
    except InputError:
        return False
    width = raw.width - 1
    first = [str(value or "") for value in raw.drop("line").row(0)]
    known = [name for name in TABLES["triples"].named(first) if name in TABLES["triples"].required]
    if width < 2:
        return suffix == ".csv" and raw.height > 1  # a list of names; text in other files is no table yet
    if len(known) >= 2:
        return False
    return width != len(TABLES["triples"].required) or not looks_like_triples(raw)


def _whole_lines(head: bytes) -> bytes:
    """The first bytes of a file up to the end of a line, if there may be more."""
    if len(head) < LOOKED_AT:
        return head
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):  # two bytes a character
        end = b"\n\x00" if head.startswith(b"\xff\xfe") else b"\x00\n"
        places = [place for place in range(0, len(head) - 1, 2) if head[place : place + 2] == end]
        return head[: places[-1] + 2] if places else head[: len(head) // 2 * 2]
    return head[: head.rfind(b"\n") + 1]


def looks_like_triples(raw: pl.DataFrame) -> bool:
    """Whether rows of three fields without a header of triples are triples, and not `id, name, city`.

    A table has a header. Its rows differ in their first field, which never is a third one, and most of them in their
    second one, unless the header calls the first an id. A lone row that begins with an id is a header without rows.
    """
    fields = raw.drop("line")
    if fields.height == 1:
        return not _is_id(str(fields.item(0, 0) or ""))
    header, rows = find_header(fields)
    if rows.height < 2 or rows.height == fields.height:  # nothing tells, or no header does
        return True
    heads, relations, tails = rows.iter_columns()
    is_key = heads.n_unique() == len(heads) and not tails.is_in(heads.implode()).any()
    return not is_key or not (_is_id(header[0]) or relations.n_unique() > len(relations) / 2)


def _is_id(column: str) -> bool:
    return bool(_ID.search(column)) or column.lower() == "id"


def row_files(folder: Path) -> list[Path]:
    """The tables of a folder; none if it has other files that are not hidden."""
    files = sorted(path for path in folder.iterdir() if not path.name.startswith(".") and path.is_file())
    return files if all(suffix_of(path) in ROW_SUFFIXES for path in files) else []


def graph_of_rows(tables: Sequence[RowTable], options: RowOptions) -> KnowledgeGraph:
    """A graph from tables with one row per entity."""
    for table in tables:
        check_width(table.path, table.frame.width)
        if not table.frame.height:
            raise InputError("has a header and no rows", path=table.path, remedy="give at least one row")
    several = len(tables) > 1
    for name in filter(None, (options.id, options.name)):
        if several and not any(name in table.frame.columns for table in tables):
            raise _no_column(tables[0], name)
    chosen = [_choose(table, options, several) for table in tables]
    triples, literals, notes = [], [], []
    names: dict[str, str] = {}
    for one in chosen:
        references = {column: other for column in one.columns if (other := _refers_to(one, column, chosen)) is not None}
        own = one.ids if not several else (one.table.name + "/" + one.ids)
        for column in one.columns:
            cells = pl.DataFrame({"entity": own, "value": one.table.frame[column]}).drop_nulls()
            if column in references:
                other = references[column]
                is_key = cells["value"].is_in(other.ids.implode())
                ends = cells.filter(is_key)["value"]
                ends = ends if not several else (other.table.name + "/" + ends)
                keyed = cells.filter(is_key)
                triples.append(pl.DataFrame({"head": keyed["entity"], "relation": [column] * len(keyed), "tail": ends}))
                cells = cells.filter(~is_key)
            literals.append(_literals(cells, column))
        if one.id and not one.is_surrogate and one.id not in one.columns:
            literals.append(_literals(pl.DataFrame({"entity": own, "value": one.ids}), one.id))
        called = pl.concat_str(one.names, separator=" ", ignore_nulls=True) if one.names else pl.lit("")
        texts = one.table.frame.with_columns(called.alias(CALLED))[CALLED].fill_null("")
        names |= dict(zip(own.to_list(), texts.to_list(), strict=True))
        notes.append(_note(one, references))
    nothing = pl.DataFrame(schema=dict.fromkeys(TRIPLE_COLUMNS, pl.String))
    graph = KnowledgeGraph.build(
        pl.concat([nothing, *triples]),
        pl.concat([_literals(pl.DataFrame(schema={"entity": pl.String, "value": pl.String}), ""), *literals]),
        names={entity: name for entity, name in names.items() if name},
        entities=list(names),
        notes=notes,
    )
    return replace(graph, columns=tuple(dict.fromkeys(name for table in tables for name in table.frame.columns)))


def _literals(cells: pl.DataFrame, column: str) -> pl.DataFrame:
    return cells.with_columns(attribute=pl.lit(column), datatype=pl.lit(""), language=pl.lit("")).select(
        LITERAL_COLUMNS
    )


def _note(one: _Chosen, references: dict[str, _Chosen]) -> str:
    parts = [part for part in (one.table.note,) if part]
    parts.append(f"identified by {one.id}" if one.id else "rows are numbered, as no column identifies them")
    parts.append(f"named by {' and '.join(one.names)}" if one.names else "no column holds names")
    parts += [f"{column} refers to {other.table.name}" for column, other in references.items()]
    return f"{one.table.path.name}: one row per entity; {', '.join(parts)} (--id, --name and --columns overrule this)"


# ---- what columns are for -------------------------------------------------------------------------------------------


def _choose(table: RowTable, options: RowOptions, several: bool) -> _Chosen:
    frame = table.frame
    if options.columns:
        columns = [name for name in options.columns if name in frame.columns]
        if not columns and not several:
            raise _no_column(table, options.columns[0])
    else:
        columns = frame.columns
    key = _find_id(table, options.id, several)
    ids = frame[key] if key else pl.Series([str(number) for number in range(1, frame.height + 1)])
    others = [name for name in columns if name != key]
    names = _find_names(table, options.name, others or columns, several)
    # A table of nothing but identifiers: these are all that is known.
    return _Chosen(table, key, names, tuple(others or columns), ids.rename("id"))


def _no_column(table: RowTable, name: str) -> InputError:
    names = table.frame.columns
    more = f" and {len(names) - MOST_LISTED:,} more" if len(names) > MOST_LISTED else ""
    listed = ", ".join(shown(column, 30) for column in names[:MOST_LISTED]) + more
    return InputError(f"has no column {name} (it has {listed})", path=table.path, remedy="name one of its columns")


def _find_id(table: RowTable, asked: str, several: bool) -> str:
    frame = table.frame
    if asked and (asked in frame.columns or not several):
        if asked not in frame.columns:
            raise _no_column(table, asked)
        _check_key(table, asked)
        return asked
    keys = [name for name in frame.columns if frame[name].null_count() == 0 and frame[name].n_unique() == frame.height]
    called = [name for name in keys if _is_id(name)]
    # Not names: a name that happens to be unique identifies nobody tomorrow.
    codes = [name for name in keys if not frame[name].str.contains(r"\s").any() and not says_name(name)]
    return next(iter([*called, *codes[:1]]), "")


def _check_key(table: RowTable, column: str) -> None:
    values = table.frame[column]
    unit = "line" if table.lines is not None else "row"

    def number(place: int) -> int:
        return int(table.lines[place]) if table.lines is not None else place + 1

    if values.null_count():
        place = values.is_null().arg_max() or 0
        raise error_at(table.path, unit, number(place), f"the field {column} is empty", "give every row an identifier")
    twice = values.is_duplicated()
    if twice.any():
        place = (~values.is_first_distinct()).arg_max() or 0
        problem = f"the column {column} has the value {shown(values[place])} a second time"
        raise error_at(table.path, unit, number(place), problem, "name a column that differs in all rows with --id")


def _find_names(table: RowTable, asked: str, columns: Sequence[str], several: bool) -> tuple[str, ...]:
    frame = table.frame
    if asked and (asked in frame.columns or not several):
        if asked not in frame.columns:
            raise _no_column(table, asked)
        return (asked,)
    best, most = "", 0.0
    for column in columns:
        values = frame[column].drop_nulls().to_list()
        filled = len(values) / frame.height
        likeness = name_likeness(values) if filled >= LEAST_FILLED else 0.0
        if likeness:
            likeness *= 1 - NUMBERED * sum(1 for value in values if _DIGIT.search(value)) / len(values)
        score = likeness * filled + BONUS * (likeness > 0 and says_name(column))
        if score > most + 1e-9:  # of equals the first
            best, most = column, score
    plain = {re.sub(r"[^a-z]", "", column.lower()): column for column in columns}
    first, last = (next((plain[word] for word in sorted(words) if word in plain), "") for words in (FIRST, LAST))
    if first and last and not (best and says_name(best)):
        return first, last
    return (best,) if best else ()


def _refers_to(one: _Chosen, column: str, tables: Sequence[_Chosen]) -> _Chosen | None:
    """The table whose keys a column has: declared in the file, or nearly all values are keys and the name says so."""
    declared = one.table.references.get(column)
    if declared:
        return next((other for other in tables if other.table.name.lower() == declared and other.id), None)
    values = one.table.frame[column].drop_nulls().unique()
    if not len(values) or column in one.names:
        return None
    for other in sorted(tables, key=lambda other: other is one):
        if not other.id or float(values.is_in(other.ids.implode()).mean() or 0.0) < NEARLY_ALL:  # type: ignore[arg-type]
            continue
        stem = _REFERENCE.sub("", column).lower().rstrip("_")
        is_named = _abbreviates(stem, other.table.name.lower()) or column.lower() == other.id.lower()
        # Any small number is the key of some row; a number refers only where the column's name says so.
        is_telling = not other.is_surrogate and other is not one
        refers_to_itself = other is one and column.lower().endswith("id")
        if is_named or is_telling or refers_to_itself:
            return other
    return None


def _abbreviates(stem: str, name: str) -> bool:
    """Whether a name has the first letter of a stem, and all others in this order (dept, departments)."""
    letters = iter(name)
    return len(stem) > 1 and name[:1] == stem[:1] and all(letter in letters for letter in stem)
