"""What corresponds in the schemas as tab-separated text: a file each for relations, attributes and classes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from rlea.graph.schema import DECIMALS, RELATIONS, SCHEMA_FILES, Alignment, Schema, columns_of
from rlea.io.writers.tsv import put_table

__all__ = ["SCHEMA_FILES", "schema_files"]


def schema_files(schema: Schema) -> dict[str, Callable[[Path], None]]:
    """The files of a schema by name, each as the function that writes it: what `write_links` takes as `extra`.

    Lines are sorted, the surest first, under the header `source`, `target`, `source_in_target`, `target_in_source`;
    relations have a column `direction` after the target: `same`, or `inverse` where the source relation corresponds to
    the inverse of the target's. Of SCHEMA_FILES only those are here that have a line; where an earlier run left
    others, they are to be removed.
    """
    parts = schema.as_written().parts.items()
    return {
        file: partial(_put, file, part, found) for file, (part, found) in zip(SCHEMA_FILES, parts, strict=True) if found
    }


def _put(file: str, part: str, found: tuple[Alignment, ...], path: Path) -> None:
    rows = [
        (
            one.source,
            one.target,
            *(("inverse" if one.is_inverse else "same",) if part == RELATIONS else ()),
            f"{one.source_in_target:.{DECIMALS}f}",
            f"{one.target_in_source:.{DECIMALS}f}",
        )
        for one in found
    ]
    put_table(path, columns_of(part), rows, shown=file, remedy="give it another name in the graph")
