"""How much one file may ask for before it is refused: a few bytes can stand for gigabytes, by mistake or by malice.

Each limit is checked before the memory is taken. The message names the environment variable that sets another one.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rlea.errors import InputError
from rlea.graph.texts import Texts

if TYPE_CHECKING:
    from rlea.graph import KnowledgeGraph


@dataclass(frozen=True)
class Limit:
    """A largest number, and the environment variable that changes it."""

    variable: str
    default: int

    @property
    def value(self) -> int:
        """The number that holds in this process."""
        given = os.environ.get(self.variable, "").strip()
        if not given:
            return self.default
        if not given.isascii() or not given.isdigit():
            raise InputError(f"{self.variable} is {given[:40]!r}", remedy="give a whole number")
        return int(given)

    def exceeded(self, problem: str, path: str | Path | None = None, line: int | None = None) -> InputError:
        """The error for what is above the limit, which stands in the sentence `problem` as {}."""
        remedy = f"if that is meant, set {self.variable} to a larger number"
        return InputError(problem.format(f"{self.value:,}"), path=path, line=line, remedy=remedy)


# Characters that the entities declared in an XML file stand for, all together. Real ontologies abbreviate namespaces.
ENTITIES = Limit("RLEA_MAX_ENTITY_CHARACTERS", 1_000_000)
# Elements of XML, or brackets of JSON-LD, within each other: the time of parsers grows with the square, and real files
# have about five.
NESTING = Limit("RLEA_MAX_NESTING", 500)
# How many times its size a compressed file may unpack to, above UNPACKED_FREE bytes. Dumps unpack to 10 or 30 times.
UNPACKED = Limit("RLEA_MAX_UNPACKED_RATIO", 100)
UNPACKED_FREE = 64_000_000
# Columns of a table with a row per entity: each is looked at by itself, which takes about a millisecond.
COLUMNS = Limit("RLEA_MAX_COLUMNS", 10_000)
# Characters of one value. Whole articles are below a million.
LITERAL = Limit("RLEA_MAX_LITERAL", 20_000_000)
# Characters of one identifier, relation, attribute, datatype.
IDENTIFIER = Limit("RLEA_MAX_IDENTIFIER", 50_000)


def check_lengths(graph: KnowledgeGraph, what: str) -> None:
    """Refuse identifiers and values so long that every later step would carry them along; `what` names the graph."""
    identifiers = graph.entities, Texts.of(graph.relations), Texts.of(graph.attributes)
    for limit, columns, kind in (
        (IDENTIFIER, identifiers, "an identifier"),
        (LITERAL, (graph.literals.values,), "a value"),
    ):
        if any(column.has_longer(limit.value) for column in columns):
            raise limit.exceeded(f"{what} has {kind} of more than {{}} characters")


def check_archive(path: Path) -> None:
    """Refuse a ZIP archive, such as an Excel file, whose parts say that they unpack to too many times its size."""
    import zipfile

    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(part.file_size for part in archive.infolist())
    except (zipfile.BadZipFile, ValueError, OSError):
        return  # not a ZIP archive, or whoever reads it says what is wrong
    if size > max(UNPACKED_FREE, UNPACKED.value * path.stat().st_size):
        raise UNPACKED.exceeded("unpacks to more than {} times its size", path)
