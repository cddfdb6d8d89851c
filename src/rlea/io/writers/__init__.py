"""Links, vectors and graphs -> files, written whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rlea.errors import InputError
from rlea.io.writers.alignment_api import put_links_alignment
from rlea.io.writers.atomic import atomic, check_writable, write_all
from rlea.io.writers.link_tables import put_links_csv, put_links_jsonl, put_links_parquet
from rlea.io.writers.rows import LinkRows, blank_note
from rlea.io.writers.run_folder import put_text, write_run
from rlea.io.writers.sameas import put_links_sameas
from rlea.io.writers.sssom import MappingSet, justification_of, put_links_sssom
from rlea.io.writers.tsv import put_links_tsv

__all__ = [
    "ALWAYS",
    "LINK_FILES",
    "LinkRows",
    "MappingSet",
    "atomic",
    "blank_note",
    "check_formats",
    "check_writable",
    "justification_of",
    "write_all",
    "write_links",
    "write_links_file",
]

# Format -> the endings of its files, the first of which is that of links in a folder of results; and its writer, a
# function of (path, rows, what SSSOM says about itself, the path to name in errors, as `path` is a temporary file).
_LINK_FORMATS: dict[str, tuple[tuple[str, ...], Callable[[Path, LinkRows, MappingSet, Path], None]]] = {
    "tsv": ((".tsv",), lambda path, rows, about, shown: put_links_tsv(path, rows, shown=shown)),
    "sssom": ((".sssom.tsv",), lambda path, rows, about, shown: put_links_sssom(path, rows, about)),
    "sameas": ((".nt",), lambda path, rows, about, shown: put_links_sameas(path, rows)),
    "alignment": ((".rdf", ".xml"), lambda path, rows, about, shown: put_links_alignment(path, rows)),
    "csv": ((".csv",), lambda path, rows, about, shown: put_links_csv(path, rows)),
    "parquet": ((".parquet",), lambda path, rows, about, shown: put_links_parquet(path, rows)),
    "jsonl": ((".jsonl",), lambda path, rows, about, shown: put_links_jsonl(path, rows)),
}
LINK_FILES = {name: f"links{endings[0]}" for name, (endings, _) in _LINK_FORMATS.items()}
ALWAYS = ("tsv", "sssom", "sameas", "alignment")  # formats of every run; others where they are asked for


def write_links(
    folder: str | Path,
    rows: LinkRows,
    *,
    formats: Sequence[str] = ALWAYS,
    about: MappingSet | None = None,
    extra: Mapping[str, str | Callable[[Path], None]] | None = None,
    record: Mapping[str, Any] | None = None,
    inputs: Iterable[str | Path] = (),
) -> list[Path]:
    """Write links in several formats into a folder, all files together or none, and return their paths.

    `about` is what the SSSOM file says about itself; `extra` has further files of the same result: name -> text, or
    the function that writes the file. With a `record` the folder is that of a run made from `inputs` (`write_run`).
    """
    folder = Path(folder)
    writers: dict[str, str | Callable[[Path], None]] = {}
    for name in check_formats(",".join(formats)):
        file_name = LINK_FILES[name]
        writers[file_name] = _writer(name, folder / file_name, rows, about)
    writers |= extra or {}
    if record is not None:
        return write_run(folder, writers, record, inputs)
    return write_all(
        {
            folder / name: partial(put_text, text=content) if isinstance(content, str) else content
            for name, content in writers.items()
        }
    )


def check_formats(names: str) -> tuple[str, ...]:
    """Formats of links from a list with commas; an unknown one is refused."""
    formats = tuple(name.strip() for name in names.split(",") if name.strip())
    for name in formats:
        if name not in LINK_FILES:
            raise InputError(f"unknown format of links {name!r}", remedy=f"use {', '.join(LINK_FILES)}")
    return formats


def write_links_file(path: str | Path, rows: LinkRows, *, about: MappingSet | None = None) -> tuple[str, ...]:
    """Write links in the format that the file name ends in, and return notes on what it cannot hold."""
    path = Path(path)
    formats = {ending: name for name, (endings, _) in _LINK_FORMATS.items() for ending in endings}
    ending = max((one for one in formats if path.name.lower().endswith(one)), key=len, default=None)
    if ending is None:
        remedy = f"use one of {', '.join(formats)}"
        raise InputError("has no extension that names a format of links", path=path, remedy=remedy)
    write_all({path: _writer(formats[ending], path, rows, about)})
    return (blank_note(rows.num_blank),) if rows.num_blank and formats[ending] != "tsv" else ()


def _writer(name: str, path: Path, rows: LinkRows, about: MappingSet | None) -> Callable[[Path], None]:
    written = rows if name == "tsv" else rows.without_blank()
    return lambda temporary: _LINK_FORMATS[name][1](temporary, written, about or MappingSet(), path)
