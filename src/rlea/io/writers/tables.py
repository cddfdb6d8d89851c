"""Graphs as tables: triples, literals and names as TSV, CSV or Parquet."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import polars as pl

from rlea.errors import InputError
from rlea.graph import KnowledgeGraph
from rlea.graph.frames import literals_frame, triples_frame

TABLE_FORMATS = ("tsv", "csv", "parquet")


def table_writers(folder: Path, graph: KnowledgeGraph, format_: str) -> dict[Path, Callable[[Path], None]]:
    """The files of a graph in a folder, each with the function that writes it; no literals, no file of them."""
    frames = {"triples": triples_frame, "literals": literals_frame, "names": _names_frame}
    if not len(graph.literals):
        del frames["literals"]
    paths = {folder / f"{stem}.{format_}": make for stem, make in frames.items()}
    return {path: partial(_put_frame, path, make, graph, format_) for path, make in paths.items()}


def _names_frame(graph: KnowledgeGraph) -> pl.DataFrame:
    return pl.DataFrame({"entity": graph.entities.series(), "name": graph.names.series()})


def _put_frame(
    path: Path, make: Callable[[KnowledgeGraph], pl.DataFrame], graph: KnowledgeGraph, format_: str, temporary: Path
) -> None:
    """Write a frame to `temporary`; TSV has no quotes, so no tabs and line breaks. `path` is for errors."""
    frame = make(graph)
    if format_ == "parquet":
        frame.write_parquet(temporary)
        return
    is_csv = format_ == "csv"
    for column in frame.columns:
        bad = frame[column].str.contains_any(["\x00"] if is_csv else ["\x00", "\t", "\n", "\r"])
        if bad.any():
            value = frame[column].filter(bad)[0]
            problem = f"cannot hold the {column} {value[:80]!r} (tabs, line breaks and zero bytes have no place in it)"
            remedy = "write .parquet" if is_csv else "write .nt or .parquet"
            raise InputError(problem, path=path, remedy=remedy)
    with temporary.open("wb") as file:
        if is_csv:
            frame.write_csv(file)
        else:
            frame.write_csv(file, separator="\t", quote_style="never")
