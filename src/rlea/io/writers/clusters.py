"""Clusters as files: their members, the pairs within them, the options and the record of the run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rlea.io.writers.run_folder import RUN_CONFIG, write_run
from rlea.io.writers.tsv import put_table
from rlea.plain_text import cell
from rlea.record import describe_run

CLUSTERS, PAIRS = "clusters.tsv", "pairs.tsv"
CLUSTER_FILES = (CLUSTERS, PAIRS, RUN_CONFIG)
REMEDY = "give identifiers without tabs and line breaks"


def write_clusters(
    folder: str | Path,
    members: tuple[Sequence[str], Iterable[Sequence[Any]]],
    pairs: tuple[Sequence[str], Iterable[Sequence[Any]]],
    facts: Mapping[str, Any],
    config: str,
    inputs: Iterable[str | Path] = (),
) -> list[Path]:
    """clusters.tsv, pairs.tsv, run.toml and run.json: all of them or none. Tables are a header and rows.

    Numbers with a fraction are confidences. In columns whose name ends in "label", which are for people, tabs and line
    breaks become blanks. `config` is the text of run.toml, `inputs` are the files that the run was made from.
    """
    folder = Path(folder)

    def put(table: tuple[Sequence[str], Iterable[Sequence[Any]]], name: str, path: Path) -> None:
        header, rows = table
        is_label = [column.endswith("label") for column in header]
        texts = (
            tuple(
                cell(value) if label else f"{value:.6f}" if isinstance(value, float) else str(value)
                for label, value in zip(is_label, row, strict=True)
            )
            for row in rows
        )
        put_table(path, header, texts, shown=folder / name, remedy=REMEDY)

    writers: dict[str, str | Callable[[Path], None]] = {
        CLUSTERS: lambda path: put(members, CLUSTERS, path),
        PAIRS: lambda path: put(pairs, PAIRS, path),
        RUN_CONFIG: config,
    }
    return write_run(folder, writers, describe_run(**facts), inputs)
