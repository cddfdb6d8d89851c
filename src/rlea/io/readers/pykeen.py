"""The entity vectors of a model that PyKEEN has trained and saved (`result.save_to_directory(folder)`).

    trained_model.pkl                       a zip file: `data.pkl`, the pickled module; `data/0`, `data/1`, ...: bytes
    training_triples/entity_to_id.tsv.gz    columns `id` (the row of the vector) and `label` (the identifier)

Taken is the table of the model's first entity representation, as it is stored: a model with complex numbers (RotatE,
ComplEx) stores a real and an imaginary part for each, side by side, so a vector of n of them has 2n columns here, and
the cosine of two such rows is the real part of the complex one. Neither PyKEEN nor torch is needed.

Loading a pickle runs whatever code its author put into it. So this one is never loaded: every class and function that
it names is replaced by a stand-in that notes what it is given, and the numbers are then found among these notes.
"""

from __future__ import annotations

import io
import pickle
import pickletools
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlea.errors import InputError
from rlea.io.readers.columns import Columns, named_table, split_commas
from rlea.io.readers.text import check_file, read_text, shown

MODEL_FILE = "trained_model.pkl"
LABEL_FILE = "training_triples/entity_to_id.tsv.gz"
SAVE_AGAIN = "save it again with result.save_to_directory(...)"
EXPORT = "save the vectors as .npy with a file of identifiers (.ids) beside it"
# What pickled modules call. Nothing is called here, but a file that asks for more is reported.
_CALLING_PACKAGES = ("torch", "pykeen", "class_resolver", "collections", "copyreg", "functools", "numpy")
_CALLED_BUILTINS = ("builtins.frozenset", "builtins.getattr", "builtins.set", "builtins.slice")
_PYTHON_2_NAMES = {"__builtin__": "builtins", "copy_reg": "copyreg"}  # written by the older protocols
_NUMBER_TYPES = {"torch.HalfStorage": "f2", "torch.FloatStorage": "f4", "torch.DoubleStorage": "f8"}


@dataclass(frozen=True, eq=False)
class PykeenModel:
    """A table of entity vectors; row i belongs to `identifiers[i]`, in line `lines[i]` of its file."""

    identifiers: list[str]
    lines: list[int]
    table: NDArray[Any]  # (num_entities, dim), half, single or double precision
    info: dict[str, Any]  # the model's class and how many entity representations it has


def is_pykeen_folder(folder: Path) -> bool:
    """Whether a folder looks like one of PyKEEN's, complete or not."""
    return (folder / MODEL_FILE).exists() or (folder / LABEL_FILE).parent.is_dir()


def read_pykeen(folder: Path) -> PykeenModel:
    """The entity vectors and their identifiers from a folder of PyKEEN's; no code from the folder is run."""
    table, info = _read_table(folder / MODEL_FILE)
    identifiers, lines = _read_labels(folder / LABEL_FILE, len(table))
    return PykeenModel(identifiers, lines, table, info)


class _Inert:
    """Stands for an object of any class, or the result of any function: notes what it is given and does nothing."""

    origin = ""  # package.module.name that is stood for

    def __new__(cls, *args: Any, **_: Any) -> _Inert:
        self = super().__new__(cls)
        self.args, self.state, self.items = args, {}, {}
        return self

    # Declared for the type checker; set above, since a pickle makes most objects without calling __init__.
    args: tuple[Any, ...]
    state: Any
    items: dict[Any, Any]

    def __init__(self, *_: Any, **__: Any) -> None:
        # Reached only where the pickle calls something: plain objects are made by __new__ and __setstate__.
        if self.origin.partition(".")[0] not in _CALLING_PACKAGES and self.origin not in _CALLED_BUILTINS:
            raise _ForeignCallError(self.origin)

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def __setitem__(self, key: Any, value: Any) -> None:
        self.items[key] = value

    def append(self, item: Any) -> None:
        """For what stands for a kind of list."""

    def extend(self, items: Any) -> None:
        """As `append`."""

    def add(self, item: Any) -> None:
        """For what stands for a kind of set."""


class _ForeignCallError(Exception):
    """A pickle asks to call something that no model needs."""


class _Unpickler(pickle.Unpickler):
    """Reads a pickle into plain values and stand-ins; a tensor's storage is left as the tuple that describes it."""

    def __init__(self, stream: io.BytesIO) -> None:
        super().__init__(stream)
        self.classes: dict[str, type[_Inert]] = {}

    def find_class(self, module: str, name: str, /) -> type[_Inert]:
        origin = f"{_PYTHON_2_NAMES.get(module, module)}.{name}"
        if origin not in self.classes:
            # A class of its own for each name, as a pickle may only make objects of classes.
            self.classes[origin] = type("Inert", (_Inert,), {"origin": origin})
        return self.classes[origin]

    def persistent_load(self, pid: Any) -> Any:
        return pid


def _unpickle(content: bytes) -> Any:
    for opcode, argument, _ in pickletools.genops(content):
        # The unpickler makes room up to the number of a memo, which may be in the billions in a file of ten bytes.
        if opcode.name in ("PUT", "LONG_BINPUT") and int(argument or 0) > len(content):
            raise pickle.UnpicklingError("a memo beyond the end of the file")
    return _Unpickler(io.BytesIO(content)).load()


def _read_table(path: Path) -> tuple[NDArray[Any], dict[str, Any]]:
    """The table of a model's first entity representation, (num_entities, dim), and what the model is."""
    check_file(path)
    try:
        with zipfile.ZipFile(path) as archive:
            if any(member.compress_type != zipfile.ZIP_STORED for member in archive.infolist()):
                raise zipfile.BadZipFile("torch compresses nothing, and a small file may unpack to a huge one")
            root = next(name for name in archive.namelist() if name.endswith("/data.pkl")).removesuffix("data.pkl")
            model = _unpickle(archive.read(root + "data.pkl"))
            weight, info = _find_weight(path, model)
            return _read_tensor(path, archive, root, weight), info
    except InputError:
        raise
    except _ForeignCallError as error:
        problem = f"asks for a call of {shown(str(error))}, which no model needs (it was not called)"
        remedy = "open the file with no other program and get the model anew from someone you trust"
        raise InputError(problem, path=path, remedy=remedy) from error
    except Exception as error:  # what a damaged zip file or pickle can raise has no end
        raise InputError("is no model saved by PyKEEN, or is damaged", path=path, remedy=SAVE_AGAIN) from error


def _find_weight(path: Path, model: Any) -> tuple[Any, dict[str, Any]]:
    """The stand-in for the weights of `entity_representations[0]._embeddings`, and what the model is."""
    kind = _kind(model)
    representations = _part(model, "_modules", "entity_representations")
    first = _part(representations, "_modules", "0")
    if first is None:
        raise InputError(f"holds {kind}, which has no entity representations", path=path, remedy=SAVE_AGAIN)
    weight = _part(_part(first, "_modules", "_embeddings"), "_parameters", "weight")
    if weight is None:
        problem = f"{kind} computes its entity vectors ({_kind(first)}) and stores no table of them"
        raise InputError(problem, path=path, remedy=f"compute them with model.entity_representations[0]() and {EXPORT}")
    num_representations = len(_entries(_entries(representations.state).get("_modules")))
    return weight, {"library": "PyKEEN", "model": kind, "entity_representations": num_representations}


def _entries(value: Any) -> Mapping[Any, Any]:
    """The entries of a dictionary or of what stands for one (torch 1 has OrderedDict where torch 2 has dict)."""
    if isinstance(value, dict):
        return value
    return value.items if isinstance(value, _Inert) else {}


def _part(module: Any, group: str, name: str) -> Any:
    """What a stand-in for a module has under `group` ("_modules" or "_parameters") and a name, or None."""
    state = module.state if isinstance(module, _Inert) else None
    return _entries(_entries(state).get(group)).get(name)


def _kind(value: Any) -> str:
    """The class of what was pickled, such as TransE."""
    return value.origin.rpartition(".")[2] if isinstance(value, _Inert) else type(value).__name__


def _read_tensor(path: Path, archive: zipfile.ZipFile, root: str, tensor: Any) -> NDArray[Any]:
    """The numbers of a matrix from the archive: what torch would make of the notes, for a plain table alone."""
    match tensor:
        case _Inert(origin="torch._utils._rebuild_parameter", args=(tensor, *_)):
            pass
    match tensor:
        case _Inert(
            origin="torch._utils._rebuild_tensor_v2",
            args=(("storage", type() as storage, str(key), _, _), int(offset), (int(rows), int(dim)), strides, *_),
        ) if issubclass(storage, _Inert) and rows > 0 and dim > 0 and offset >= 0 and strides == (dim, 1):
            pass
        case _:
            raise InputError("the table of entity vectors is no plain matrix", path=path, remedy=EXPORT)
    if storage.origin not in _NUMBER_TYPES:
        problem = f"the entity vectors are of type {storage.origin.rpartition('.')[2].removesuffix('Storage').lower()}"
        raise InputError(problem, path=path, remedy="save the model in single precision (model.float())")
    order_file = root + "byteorder"
    is_big = order_file in archive.namelist() and archive.read(order_file) == b"big"
    number_type = np.dtype((">" if is_big else "<") + _NUMBER_TYPES[storage.origin])
    numbers = np.frombuffer(archive.read(f"{root}data/{key}"), dtype=number_type)
    return numbers[offset : offset + rows * dim].reshape(rows, dim)


def _read_labels(path: Path, num_rows: int) -> tuple[list[str], list[int]]:
    """The identifier of each row of the table and the line where it stands."""
    if path.parent.is_dir() and not path.exists():
        remedy = "train on a TriplesFactory with labels and save the result again"
        raise InputError("there is no such file, so the entities have no names", path=path, remedy=remedy)
    # Labels with a tab, a quote or a line end in them are quoted, as in .csv.
    rows = split_commas(path, read_text(path), "\t")
    frame = named_table(path, rows, Columns(("id", "label"), may_be_empty=("label",))).frame
    found: dict[int, tuple[str, int]] = {}
    for text, label, line in frame.select("id", "label", "line").iter_rows():
        number = int(text) if text.isdecimal() and len(text) < 19 else -1
        if not 0 <= number < num_rows or number in found:
            problem = f"an id below {num_rows}, each once, is needed, not {shown(text)}"
            raise InputError(problem, path=path, line=line, remedy=f"take this file and {MODEL_FILE} from one training")
        found[number] = label, line
    if len(found) != num_rows:
        problem = f"has {len(found)} labels for the {num_rows} vectors of {MODEL_FILE}"
        raise InputError(problem, path=path, remedy="take both files from one training")
    return [found[number][0] for number in range(num_rows)], [found[number][1] for number in range(num_rows)]
