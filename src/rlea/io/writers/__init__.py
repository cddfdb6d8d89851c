"""Links, vectors and graphs -> files, written whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from rlea.errors import InputError
from rlea.io.writers.alignment_api import put_links_alignment
from rlea.io.writers.atomic import atomic, check_writable, write_all
from rlea.io.writers.rows import LinkRows
from rlea.io.writers.sameas import put_links_sameas
from rlea.io.writers.sssom import MappingSet, justification_of, put_links_sssom
from rlea.io.writers.tsv import put_links_tsv

__all__ = [
    "LINK_FILES",
    "LinkRows",
    "MappingSet",
    "atomic",
    "check_writable",
    "justification_of",
    "write_all",
    "write_links",
    "write_links_file",
]

# Format -> its file in a folder of results, and its writer: (path, rows, about, name for errors).
LINK_FILES = {"tsv": "links.tsv", "sssom": "links.sssom.tsv", "sameas": "links.nt", "alignment": "links.rdf"}
_LINK_WRITERS: dict[str, Callable[[Path, LinkRows, MappingSet, Path], None]] = {
    "tsv": lambda path, rows, about, shown: put_links_tsv(path, rows, shown=shown),
    "sssom": lambda path, rows, about, shown: put_links_sssom(path, rows, about),
    "sameas": lambda path, rows, about, shown: put_links_sameas(path, rows),
    "alignment": lambda path, rows, about, shown: put_links_alignment(path, rows),
}


def write_links(
    folder: str | Path,
    rows: LinkRows,
    *,
    formats: Sequence[str] = tuple(LINK_FILES),
    about: MappingSet | None = None,
    extra: Mapping[str, str | Callable[[Path], None]] | None = None,
) -> list[Path]:
    """Write links in several formats into a folder, all files together or none, and return their paths.

    `about` is what the SSSOM file says about itself; `extra` has further files of the same result, such as the record
    of the run: name -> text, or the function that writes the file.
    """
    folder = Path(folder)
    writers: dict[Path, Callable[[Path], None]] = {}
    for name in formats:
        if name not in LINK_FILES:
            raise InputError(f"unknown format of links {name!r}", remedy=f"use {', '.join(LINK_FILES)}")
        path = folder / LINK_FILES[name]
        writers[path] = _writer(name, path, rows, about)
    for file_name, content in (extra or {}).items():
        writers[folder / file_name] = _text_writer(content) if isinstance(content, str) else content
    return write_all(writers)


def write_links_file(path: str | Path, rows: LinkRows, *, about: MappingSet | None = None) -> None:
    """Write links in the format of the file name: .sssom.tsv, .tsv, .nt (owl:sameAs) or .rdf (Alignment API)."""
    path = Path(path)
    endings = {".sssom.tsv": "sssom", ".tsv": "tsv", ".nt": "sameas", ".rdf": "alignment", ".xml": "alignment"}
    name = next((endings[ending] for ending in endings if path.name.lower().endswith(ending)), None)
    if name is None:
        remedy = f"use one of {', '.join(endings)}"
        raise InputError("has no extension that names a format of links", path=path, remedy=remedy)
    write_all({path: _writer(name, path, rows, about)})


def _writer(name: str, path: Path, rows: LinkRows, about: MappingSet | None) -> Callable[[Path], None]:
    return lambda temporary: _LINK_WRITERS[name](temporary, rows, about or MappingSet(), path)


def _text_writer(content: str) -> Callable[[Path], None]:
    def put(path: Path) -> None:
        path.write_text(content, encoding="utf-8", newline="\n")

    return put
