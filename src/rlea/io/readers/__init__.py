"""Files -> graphs, pairs of graphs, links and vectors. Every failure is an InputError with file, line and remedy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rlea.errors import InputError
from rlea.graph import GraphPair, KnowledgeGraph
from rlea.io.readers.columns import TABLE_SUFFIXES
from rlea.io.readers.dbp15k import is_dbp15k, read_dbp15k
from rlea.io.readers.graph_files import read_graph_file
from rlea.io.readers.openea import read_openea
from rlea.io.readers.rdf import RDF_FORMATS, read_rdf
from rlea.io.readers.row_files import ROW_SUFFIXES, STANDARD_INPUT
from rlea.io.readers.rows import GUESS, RowOptions, has_rows, read_rows, row_files
from rlea.io.readers.tables import TABLES, find_table, read_triples_table
from rlea.io.readers.text import check_file, suffix_of

__all__ = ["GRAPH_READERS", "is_pair", "read_graph", "read_pair"]


# Extension -> the function that reads a graph from such a file.
GRAPH_READERS: dict[str, Callable[[Path], KnowledgeGraph]] = {
    **dict.fromkeys(RDF_FORMATS, read_rdf),
    **dict.fromkeys(TABLE_SUFFIXES, read_triples_table),
    ".rlea": read_graph_file,
}


def is_pair(path: str | Path) -> bool:
    """Whether a path is a folder in one of the layouts that `read_pair` knows, complete or not."""
    path = Path(path)
    return path.is_dir() and bool(_kind_of_pair(path))


def read_graph(path: str | Path, rows: RowOptions = GUESS) -> KnowledgeGraph:
    """One graph: an RDF file, a table of triples or with one row per entity, a graph on disk, or several RDF files.

    A folder holds the tables of one graph (see `tables`), or RDF files and nothing else, or tables with one row per
    entity and nothing else. `rows` is for these.
    """
    from rlea.io.readers.several import is_pattern, matching_files, rdf_files, read_files

    if is_pattern(str(path)):
        return read_files(matching_files(str(path)), Path(path))
    path = Path(path)
    if path.is_dir():
        if find_table(path, "triples") is None and _kind_of_pair(path):
            remedy = "give the folder alone, or two files with one graph each"
            raise InputError("is a folder with a pair of graphs, not one graph", path=path, remedy=remedy)
        if not any(find_table(path, stem) for stem in TABLES):
            if files := rdf_files(path):
                return read_files(files, path)
            if row_files(path):
                return read_rows(path, rows)
        return read_triples_table(path)
    if str(path) == STANDARD_INPUT:
        return read_rows(path, rows)
    check_file(path)
    suffix = suffix_of(path)
    if suffix in ROW_SUFFIXES and (rows.is_given or has_rows(path)):
        return read_rows(path, rows)
    if suffix not in GRAPH_READERS:
        problem = f"has the extension {suffix or '(none)'}, which is no format of graphs"
        raise InputError(
            problem,
            path=path,
            remedy=f"name it by its format: {', '.join(dict.fromkeys((*GRAPH_READERS, *ROW_SUFFIXES)))}",
        )
    return GRAPH_READERS[suffix](path)


def read_pair(path: str | Path, fold: str | None = None) -> GraphPair:
    """A pair of graphs with its links, from a folder in the layout of OpenEA, of DBP15K, or of this program.

    `fold` chooses among the folds of an OpenEA folder, "1" by default; other layouts have none.
    """
    path = Path(path)
    if not path.exists():
        raise InputError("there is no such folder", path=path, remedy="check the path")
    if not path.is_dir():
        problem = "is one graph alone"
        raise InputError(problem, path=path, remedy="give a second one, or find duplicates in it with `rlea dedupe`")
    kind = _kind_of_pair(path)
    if not kind:
        below = [one.name for one in sorted(path.iterdir()) if one.is_dir() and _kind_of_pair(one)]
        listed = f"give one of the folders in it: {', '.join(below[:6])}"
        remedy = listed if below else "give a folder that has them, or two files with one graph each"
        problem = "is no folder of a pair: it has neither rel_triples_1 and rel_triples_2 (OpenEA), nor ent_ids_1 and "
        problem += "triples_1 (DBP15K), nor graphs called source and target"
        raise InputError(problem, path=path, remedy=remedy)
    if kind == "openea":
        return read_openea(path, "1" if fold is None else fold)
    if fold is not None:
        raise InputError(f"has no folds, but fold {fold!r} is asked for", path=path, remedy="leave out the fold")
    if kind == "dbp15k":
        return read_dbp15k(path)
    from rlea.io.readers.pair_folder import read_pair_folder

    return read_pair_folder(path)


def _kind_of_pair(folder: Path) -> str:
    """The layout of a folder, "" if it has none of those known."""
    from rlea.io.readers.pair_folder import find_graphs

    if any((folder / f"rel_triples_{side}").is_file() for side in (1, 2)):
        return "openea"
    if is_dbp15k(folder):
        return "dbp15k"
    if find_graphs(folder, "source") or find_graphs(folder, "target"):
        return "pair"
    if any(is_dbp15k(path) for path in folder.iterdir() if path.is_dir()):
        return "dbp15k"
    return ""
