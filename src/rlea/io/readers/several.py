"""Several RDF files as one graph: a list of them, a pattern such as `dumps/*.nt.gz`, or a folder with nothing else."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from rlea.errors import InputError
from rlea.graph import KnowledgeGraph
from rlea.io.readers.ntriples import Statements, joined
from rlea.io.readers.rdf import RDF_FORMATS, graph_of, statements_of
from rlea.io.readers.text import check_file, suffix_of


def read_files(paths: Sequence[Path], place: Path) -> KnowledgeGraph:
    """One graph from all files, which must be RDF; `place` is for errors.

    The label of a blank node holds for its file alone, so it is preceded by the name of the file.
    """
    for path in paths:
        check_file(path)
        if suffix_of(path) not in RDF_FORMATS:
            problem = "is no RDF file, and only such files can be read as one graph"
            raise InputError(problem, path=path, remedy=f"leave it out, or give RDF ({', '.join(RDF_FORMATS)})")
    if len(paths) == 1:
        return graph_of(statements_of(paths[0]), paths[0])
    names = [path.name for path in paths]
    labels = names if len(set(names)) == len(names) else [str(number) for number in range(1, len(paths) + 1)]
    parts = [_own_labels(statements_of(path), label) for path, label in zip(paths, labels, strict=True)]
    return graph_of(joined(parts), place)


def is_pattern(text: str) -> bool:
    """Whether a text that names no file is a pattern for names of files."""
    return glob.has_magic(text) and not Path(text).exists()


def matching_files(pattern: str) -> list[Path]:
    """The files that a pattern stands for, in the order of their names; none is an InputError."""
    found = [path for path in map(Path, sorted(glob.glob(pattern, recursive=True))) if path.is_file()]
    if not found:
        raise InputError("no file has a name like this", path=pattern, remedy="check the folder and the pattern")
    return found


def rdf_files(folder: Path) -> list[Path]:
    """The files of a folder that has RDF and nothing else but hidden files; [] if it has no RDF."""
    files = [path for path in sorted(folder.iterdir()) if not path.name.startswith(".")]
    is_rdf = [path.is_file() and suffix_of(path) in RDF_FORMATS for path in files]
    if any(is_rdf) and not all(is_rdf):
        other, one = files[is_rdf.index(False)].name, files[is_rdf.index(True)]
        problem = f"has other things beside RDF files, such as {other}"
        remedy = f"remove them, or give a pattern in quotes: '{folder / ('*' + ''.join(one.suffixes))}'"
        raise InputError(problem, path=folder, remedy=remedy)
    return files if any(is_rdf) else []


def _own_labels(part: Statements, label: str) -> Statements:
    def own(column: pl.Expr) -> pl.Expr:
        return column.cast(pl.String).str.replace(r"^_:", f"_:{label}:".replace("$", "$$"))

    # As text: the categories of several files cannot be put together.
    return Statements(
        triples=part.triples.select(own(pl.col("head")), pl.col("relation").cast(pl.String), own(pl.col("tail"))),
        literals=part.literals.select(
            own(pl.col("entity")), pl.col("attribute", "value", "datatype", "language").cast(pl.String)
        ),
        types=part.types.select(own(pl.col("entity")), own(pl.col("class"))),
        declared=part.declared.to_frame("entity").select(own(pl.col("entity"))).to_series(),
    )
