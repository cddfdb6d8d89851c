"""Graphs on disk (`.rlea`): the arrays of a graph as they lie in memory, so that a file is opened and not read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlea.errors import InputError
from rlea.graph import KnowledgeGraph, Literals
from rlea.graph.texts import CodedTexts, Texts
from rlea.io.array_files import content_hash, map_safetensors
from rlea.io.readers.text import check_file

FORMAT, VERSION = "rlea graph", 1
# The columns of text; each has an array of bytes by its name, and one of places, `name starts` (see `Texts`).
TEXTS = ("entities", "relations", "attributes", "names", "values", "datatypes", "languages")
# The other arrays: by column, which text their numbers stand for. All but `triples` have a row for every literal.
IDS = {
    "triples": ("entities", "relations", "entities"),
    "entity_ids": ("entities",),
    "attribute_ids": ("attributes",),
    "datatype_ids": ("datatypes",),
    "language_ids": ("languages",),
}
REMEDY = "write it again with `rlea convert`"


def read_graph_file(path: str | Path) -> KnowledgeGraph:
    """The graph in a file, of which the system fetches what is looked at.

    Everything in it is looked at once, so that damage shows here and not later.
    """
    path = Path(path)
    check_file(path)
    about, arrays = map_safetensors(path, "is no graph on disk, damaged or cut off", REMEDY)
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise InputError("holds something else than a graph", path=path, remedy=REMEDY)
    if about.get("version") != VERSION:
        problem = f"is of version {about.get('version')!r:.20} of this format, and only version {VERSION} is known"
        raise InputError(problem, path=path, remedy="use the rlea that wrote it to convert it to N-Triples")
    known = about.pop("sha256", None)
    if known != content_hash(arrays, about):
        raise InputError("is damaged: it is not as it was written", path=path, remedy=REMEDY)
    try:
        return _graph(about, arrays)
    except (KeyError, TypeError, ValueError) as error:  # as it was written, but not by this program
        raise InputError("holds no valid graph", path=path, remedy=REMEDY) from error


def _graph(about: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> KnowledgeGraph:
    texts = {name: _texts(arrays[name], arrays[f"{name} starts"]) for name in TEXTS}
    ids = {name: arrays[name] for name in IDS}
    for name, columns in IDS.items():
        _check_ids(ids[name], tuple(len(texts[column]) for column in columns))
    if len(texts["names"]) != len(texts["entities"]) or {len(ids[name]) for name in IDS if name != "triples"} != {
        len(texts["values"])
    }:
        raise ValueError("columns of one table have different lengths")
    if any(ids[name].dtype != np.int32 for name in ("triples", "entity_ids", "attribute_ids")):
        raise TypeError("numbers are of another type")
    graph = KnowledgeGraph(
        entities=texts["entities"],
        relations=tuple(texts["relations"]),
        attributes=tuple(texts["attributes"]),
        triples=ids["triples"],
        literals=Literals(
            ids["entity_ids"],
            ids["attribute_ids"],
            texts["values"],
            CodedTexts(ids["datatype_ids"], tuple(texts["datatypes"])),
            CodedTexts(ids["language_ids"], tuple(texts["languages"])),
        ),
        names=texts["names"],
        notes=tuple(map(str, about["notes"])),
        columns=tuple(map(str, about["columns"])),
    )
    vars(graph)["fingerprint"] = str(about["fingerprint"])  # the hash says that nothing has changed since
    return graph


def _texts(joined: NDArray[Any], starts: NDArray[Any]) -> Texts:
    if joined.dtype != np.uint8 or starts.dtype != np.int64 or (joined.ndim, starts.ndim) != (1, 1):
        raise TypeError("texts are bytes and places")
    if starts[:1].tolist() != [0] or max(starts[-1] - 1, 0) != len(joined) or (np.diff(starts) < 1).any():
        raise ValueError("texts begin at other places")
    if joined[starts[1:-1] - 1].any():
        raise ValueError("texts are not apart")
    column = Texts(joined, starts)
    for _ in column:  # which fails where a text is no UTF-8
        pass
    return column


def _check_ids(array: NDArray[Any], limits: tuple[int, ...]) -> None:
    """Refuse numbers that are not below the limit of their column: compiled code uses them without looking."""
    if array.dtype.kind not in "iu" or array.shape[1:] != ((len(limits),) if len(limits) > 1 else ()):
        raise TypeError("numbers have another shape")
    if array.size and (array.min() < 0 or (array.reshape(len(array), -1).max(axis=0) >= limits).any()):
        raise ValueError("a number is out of range")
