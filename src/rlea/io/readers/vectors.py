"""Entity vectors made elsewhere: safetensors, numpy arrays with identifiers, word2vec text, or a model of PyKEEN's.

    x.safetensors         matrices `source` and `target`; one entry of metadata, `rlea`, a JSON object with the lists
                          `source_ids` and `target_ids` and, if need be, `measure`, `name`, `info` (an object), `format`
    x.npy + x.ids         one matrix for both graphs, one identifier per line (`x.txt` is read for `x.ids`)
    folder                source.npy, source.ids, target.npy, target.ids
    folder                trained_model.pkl, training_triples/: saved by PyKEEN, see `rlea.io.readers.pykeen`
    x.vec, x.w2v, x.txt   word2vec text: identifier and numbers on each line, after an optional line "rows dimensions"

Vectors are put in the order of the graphs' entities; those of other identifiers are ignored.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlea.errors import InputError
from rlea.graph import KnowledgeGraph
from rlea.io.array_files import read_npy, read_safetensors
from rlea.io.readers.pykeen import LABEL_FILE, MODEL_FILE, is_pykeen_folder, read_pykeen
from rlea.io.readers.text import check_file, error_at, read_text, shown, suffix_of
from rlea.search.embeddings import MEASURES, Embeddings

Matrix = NDArray[np.float32]
FORMAT = 1  # the newest form of the metadata in safetensors files that is understood here

_REACH = 20  # largest exponent of two that vectors may have: products of a million by a million are far from the end


@dataclass(frozen=True, eq=False)
class _Block:
    """Vectors of a file with their identifiers."""

    path: Path
    index: Mapping[str, int]  # identifier -> row
    matrix: Matrix  # (num_rows, dim)


def read_embeddings(path: str | Path, source: KnowledgeGraph, target: KnowledgeGraph) -> Embeddings:
    """The vectors of all entities of two graphs, from a file or folder as described at the head of this module."""
    path = Path(path)
    suffix = suffix_of(path)
    measure, name = "cosine", path.stem
    info: dict[str, Any] = {}
    if is_pykeen_folder(path):
        model = read_pykeen(path)
        matrix = _numeric(path / MODEL_FILE, model.table, "the table of vectors")
        labels = path / LABEL_FILE
        block = _block(path / MODEL_FILE, matrix, labels, model.identifiers, "line", model.lines)
        blocks, info = (block, block), model.info
    elif path.is_dir():
        blocks = (_read_npy(path / "source.npy"), _read_npy(path / "target.npy"))
    elif suffix == ".safetensors":
        blocks, measure, name, info = _read_safetensors(path)
    elif suffix == ".npy":
        blocks = (_read_npy(path),) * 2
    elif suffix in (".vec", ".w2v", ".txt"):
        blocks = (_read_word2vec(path, (source, target)),) * 2
    else:
        check_file(path)
        problem = f"has the extension {suffix or '(none)'}, which is no format of vectors"
        remedy = "give .safetensors, .npy with .ids beside it, or word2vec text as .vec, .w2v or .txt"
        raise InputError(problem, path=path, remedy=remedy)
    dims = [block.matrix.shape[1] for block in blocks]
    if dims[0] != dims[1]:
        problem = f"the source and target vectors have {dims[0]} and {dims[1]} dimensions"
        raise InputError(problem, path=path, remedy="give vectors of one common space")
    first, second = _in_order(blocks[0], source, "source"), _in_order(blocks[1], target, "target")
    return Embeddings(*_within_reach(first, second), name, measure, info)


def _within_reach(first: Matrix, second: Matrix) -> tuple[Matrix, Matrix]:
    """Vectors whose products, and the squares of these, single precision can hold.

    Both sides are multiplied by one power of two, which changes no digit and the order of no two scores.
    """
    largest = max(float(np.abs(side).max(initial=0.0)) for side in (first, second))
    exponent = math.frexp(largest)[1]
    if abs(exponent) <= _REACH:
        return first, second
    # In double precision: the factor itself may be larger than a single-precision number can be.
    factor = math.ldexp(1.0, -exponent)
    return (first * np.float64(factor)).astype(np.float32), (second * np.float64(factor)).astype(np.float32)


def _in_order(block: _Block, graph: KnowledgeGraph, side: str) -> Matrix:
    """The vectors of a graph's entities, in their order."""
    rows = [block.index.get(identifier, -1) for identifier in graph.entities]
    num_missing = rows.count(-1)
    if num_missing:
        first = graph.entities[rows.index(-1)]
        problem = f"{num_missing} of {len(rows)} {side} entities have no vector, the first is {shown(first)}"
        remedy = "give a vector for every entity, under the identifiers of the graph"
        raise InputError(problem, path=block.path, remedy=remedy)
    return np.ascontiguousarray(block.matrix[rows], dtype=np.float32)


def _block(
    path: Path, matrix: Matrix, ids_path: Path, ids: Sequence[str], unit: str, numbers: Sequence[int] = ()
) -> _Block:
    """The vectors with their identifiers, each once, unless a number is not finite.

    Identifier i stands at the `unit` (line, row) `numbers[i]` of its file; by default they are counted from 1.
    """
    numbers = numbers or range(1, len(ids) + 1)
    index: dict[str, int] = {}
    for row, (identifier, number) in enumerate(zip(ids, numbers, strict=True)):
        if not identifier.strip():
            raise error_at(ids_path, unit, number, "the identifier is empty", "give every vector an identifier")
        before = index.setdefault(identifier, row)
        if before != row:
            problem = f"the identifier {shown(identifier)} was given before, at {unit} {numbers[before]}"
            raise error_at(ids_path, unit, number, problem, "keep one vector per identifier")
    finite = np.isfinite(matrix).all(axis=1)
    if not finite.all():
        row = int(np.argmin(finite))
        # Lines are those of the identifiers, so they say where the vector is only if both are in one file.
        unit, number = (unit, numbers[row]) if ids_path == path else ("row", row + 1)
        problem = f"the vector has numbers that are not finite (there are {int((~finite).sum())} such vectors)"
        raise error_at(path, unit, number, problem, "train the vectors again or replace NaN and infinity")
    return _Block(path, index, matrix)


def _numeric(path: Path, matrix: NDArray[Any], what: str) -> Matrix:
    """The matrix in single precision, unless it is no matrix of numbers."""
    if matrix.ndim != 2:
        remedy = "store one row per entity"
        raise InputError(f"{what} has the shape {matrix.shape}, which is no matrix", path=path, remedy=remedy)
    if matrix.shape[1] == 0:
        raise InputError(f"{what} has no columns", path=path, remedy="store vectors of at least one dimension")
    if matrix.dtype.kind not in "fiu":
        raise InputError(f"{what} is of type {matrix.dtype}", path=path, remedy="store numbers, best of type float32")
    with np.errstate(over="ignore"):  # what does not fit becomes infinite and is reported as such
        return matrix.astype(np.float32, copy=False)


def _read_npy(path: Path) -> _Block:
    check_file(path)
    beside = [path.with_suffix(suffix) for suffix in (".ids", ".txt") if path.with_suffix(suffix).exists()]
    if not beside:
        remedy = "write the identifiers of the rows there, one per line"
        raise InputError(f"there is no {path.with_suffix('.ids').name} beside it", path=path, remedy=remedy)
    raw = read_npy(path)
    matrix = _numeric(path, raw, "the array")
    texts = [line.removesuffix("\r") for line in read_text(beside[0]).removesuffix("\n").split("\n")]
    if len(texts) != len(matrix):
        problem = f"has {len(texts)} identifiers for the {len(matrix)} rows of {path.name}"
        remedy = "write one identifier per row, in the same order"
        raise InputError(problem, path=beside[0], line=len(texts), remedy=remedy)
    return _block(path, matrix, beside[0], texts, "line")


def _read_safetensors(path: Path) -> tuple[tuple[_Block, _Block], str, str, dict[str, Any]]:
    check_file(path)
    remedy = "write it with the matrices source and target and the metadata rlea, a JSON object with their identifiers"
    matrices: dict[str, Matrix] = {}
    metadata, arrays = read_safetensors(path, "is no safetensors file or is cut off", "write the file again")
    for side in ("source", "target"):
        if side not in arrays:
            raise InputError(f"has no matrix {side}", path=path, remedy=remedy)
        matrices[side] = _numeric(path, arrays[side], f"the matrix {side}")
    about = _metadata(path, metadata, remedy)
    source, target = (_safetensors_block(path, matrix, side, about, remedy) for side, matrix in matrices.items())
    measure = about.get("measure", "cosine")
    if measure not in MEASURES:
        problem = f"the measure {shown(str(measure), 30)} is not known"
        raise InputError(problem, path=path, remedy=f"name one of {', '.join(MEASURES)}")
    name, info = about.get("name", path.stem), about.get("info", {})
    for key, value, kind, wanted in (("name", name, str, "string"), ("info", info, dict, "object")):
        if not isinstance(value, kind):
            raise InputError(
                f"{key} in its metadata is no JSON {wanted}", path=path, remedy="correct it or leave it out"
            )
    return (source, target), measure, name, info


def _safetensors_block(path: Path, matrix: Matrix, side: str, about: Mapping[str, Any], remedy: str) -> _Block:
    key = f"{side}_ids"
    if key not in about:
        raise InputError(f"the metadata rlea has no {key}", path=path, remedy=remedy)
    identifiers = about[key]
    if not isinstance(identifiers, list) or not all(isinstance(text, str) for text in identifiers):
        raise InputError(f"{key} in its metadata is no list of strings", path=path, remedy=remedy)
    if len(identifiers) != len(matrix):
        problem = f"has {len(identifiers)} {key} for the {len(matrix)} rows of the matrix {side}"
        raise InputError(problem, path=path, remedy="write one identifier per row, in the same order")
    return _block(path, matrix, path, identifiers, f"{side} row")


def _metadata(path: Path, metadata: Mapping[str, str], remedy: str) -> dict[str, Any]:
    """The JSON object about the vectors of a safetensors file."""
    if "rlea" not in metadata:
        raise InputError("has no metadata rlea", path=path, remedy=remedy)
    try:
        about = json.loads(metadata["rlea"])
    except (ValueError, RecursionError) as error:
        raise InputError("the metadata rlea is no JSON", path=path, remedy=remedy) from error
    if not isinstance(about, dict):
        raise InputError("the metadata rlea is no JSON object", path=path, remedy=remedy)
    if about.get("format", FORMAT) != FORMAT:
        problem = f"its metadata has the format {shown(str(about['format']), 30)}, and only {FORMAT} is known"
        raise InputError(problem, path=path, remedy="update rlea, or write the file again")
    return about


def _read_word2vec(path: Path, graphs: Sequence[KnowledgeGraph]) -> _Block:
    """Identifiers and numbers on lines; identifiers may hold spaces, as the last `dim` fields are the numbers."""
    text = read_text(path)
    lines = [(number, line.strip()) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
    header = lines[0][1].split()
    if len(header) == 2 and all(field.isdecimal() and len(field) < 20 for field in header):
        promised, dim = int(header[0]), int(header[1])
        lines = lines[1:]
        if len(lines) != promised:
            problem = f"the first line promises {promised} vectors, but {len(lines)} follow"
            remedy = "fetch the file again if it was cut off, or correct its first line"
            raise InputError(problem, path=path, line=lines[-1][0] if lines else 1, remedy=remedy)
    else:
        # Without a header the usual number of fields decides: identifiers with spaces in them are the exception.
        dim = Counter(len(line.split()) for _, line in lines).most_common(1)[0][0] - 1
    if dim < 1 or not lines:
        raise InputError("has no vectors", path=path, line=1, remedy="write an identifier and its numbers on each line")
    # Before the memory is taken: a number is one character at least, and a space before it.
    short = next((place for place in lines if len(place[1]) < 2 * dim), None)
    if short is not None:
        raise _too_few(path, short[0], len(short[1].split()) - 1, dim)
    identifiers: list[str] = []
    matrix = np.empty((len(lines), dim), dtype=np.float32)
    for row, (number, line) in enumerate(lines):
        identifier, *fields = line.rsplit(maxsplit=dim)  # from the right: spaces within the identifier stay as they are
        is_entity = any(identifier in graph.entity_index for graph in graphs)
        words = identifier.split()
        is_too_long = len(words) > 1 and not is_entity and _is_number(words[-1])
        if len(fields) < dim or is_too_long:
            raise _too_few(path, number, len(words) + len(fields) - 1, dim)
        try:
            with np.errstate(over="ignore"):
                matrix[row] = [float(field) for field in fields]
        except ValueError as error:
            problem = f"{str(error).partition(': ')[2] or 'a field'} is no number"
            remedy = "write an identifier and its numbers, separated by spaces"
            raise InputError(problem, path=path, line=number, remedy=remedy) from error
        identifiers.append(identifier)
    return _block(path, matrix, path, identifiers, "line", [number for number, _ in lines])


def _too_few(path: Path, line: int, found: int, dim: int) -> InputError:
    remedy = "give every line an identifier and the same number of numbers"
    return InputError(f"has {found} numbers where {dim} are needed", path=path, line=line, remedy=remedy)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
