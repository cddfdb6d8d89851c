"""Named arrays in a safetensors file (no pickle), with JSON about them: what a run leaves for later questions."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlea.errors import InputError

# Of safetensors: the types of the arrays that are mapped, and the most bytes that the format allows for the head.
_TYPES = {"U8": "u1", "U16": "<u2", "U32": "<u4", "I32": "<i4", "I64": "<i8"}
_MOST_HEAD = 100_000_000


def put_arrays(path: Path, arrays: Mapping[str, Any], format_name: str, **about: Any) -> None:
    """Write arrays with the name of their format and other facts to `path` (a temporary one, see `atomic`)."""
    put_safetensors(path, arrays, {"format": format_name, **about})


def load_arrays(
    path: str | Path, types: Mapping[str, Any], format_name: str, *, unreadable: str, other: str, remedy: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arrays of the names and types given, and the facts stored with them.

    `unreadable` and `other` are the error messages for a file that is none, or one with something else in it.
    """
    about, arrays = load_safetensors(path, unreadable, remedy)
    is_known = isinstance(about, dict) and about.get("format") == format_name and set(arrays) == set(types)
    if not is_known or any(arrays[name].dtype != kind for name, kind in types.items()):
        raise InputError(other, path=path, remedy=remedy)
    return arrays, about


def content_hash(arrays: Mapping[str, Any], about: Mapping[str, Any]) -> str:
    """SHA-256 of arrays and of the JSON about them, by which damage is seen."""
    digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype} {array.shape}\n".encode())
        digest.update(array.data)
    return digest.hexdigest()


def check_hash(path: str | Path, arrays: Mapping[str, Any], about: dict[str, Any], remedy: str) -> None:
    """Take the hash out of what is said about arrays, and refuse a file that was changed; older files have none."""
    known = about.pop("sha256", None)
    if known is not None and known != content_hash(arrays, about):
        raise InputError("is damaged: it is not as it was written", path=path, remedy=remedy)


def put_safetensors(
    path: Path, arrays: Mapping[str, Any], about: Mapping[str, Any], *, sort_keys: bool = False
) -> None:
    """Write arrays and JSON about them; with `sort_keys`, the same content gives the same bytes."""
    from safetensors.numpy import save_file

    whole = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    # One key: several would be written in random order, and the same content would not be the same file.
    save_file(whole, path, metadata={"rlea": json.dumps(about, sort_keys=sort_keys)})


def load_safetensors(path: str | Path, problem: str, remedy: str) -> tuple[Any, dict[str, Any]]:
    """The JSON about the arrays, {} where there is none, and the arrays; an unreadable file is the `problem`."""
    metadata, arrays = read_safetensors(path, problem, remedy)
    try:
        return json.loads(metadata.get("rlea", "{}")), arrays
    except (ValueError, RecursionError) as error:
        raise InputError(problem, path=path, remedy=remedy) from error


def read_safetensors(path: str | Path, problem: str, remedy: str) -> tuple[dict[str, str], dict[str, NDArray[Any]]]:
    """The metadata and the arrays of a safetensors file; an unreadable file is the `problem`."""
    from safetensors import SafetensorError, safe_open

    kind = "an array of an unknown type"
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            arrays = {}
            for name in file.keys():  # noqa: SIM118
                kind = f"the array {name[:40]!r} of a type that cannot be read"
                arrays[name] = file.get_tensor(name)
            return metadata, arrays
    except (AttributeError, TypeError) as error:  # numpy knows no such numbers, as those of eight bits
        raise InputError(f"has {kind}", path=path, remedy="store numbers, best of type float32") from error
    except (OSError, SafetensorError, ValueError) as error:
        raise InputError(problem, path=path, remedy=remedy) from error


def map_safetensors(path: Path, problem: str, remedy: str) -> tuple[Any, dict[str, NDArray[Any]]]:
    """As `load_safetensors`, with arrays that stay in the file until they are looked at, and cannot be changed."""
    try:
        size = path.stat().st_size
        with path.open("rb") as stream:
            start = 8 + int.from_bytes(stream.read(8), "little")
            if not 8 < start <= min(size, _MOST_HEAD):
                raise ValueError("the head is larger than the file")
            head = json.loads(stream.read(start - 8))
        whole = np.memmap(path, np.uint8, mode="r") if size > start else np.zeros(start, np.uint8)
        about = json.loads(head.pop("__metadata__")["rlea"])
        arrays = {}
        for name, one in head.items():
            begin, end = (start + int(place) for place in one["data_offsets"])
            kind = np.dtype(_TYPES[one["dtype"]])
            if not start <= begin <= end <= size or begin % kind.itemsize:
                raise ValueError("an array lies elsewhere")
            arrays[name] = np.asarray(whole[begin:end]).view(kind).reshape(one["shape"])
            arrays[name].flags.writeable = False
        if start + sum(array.nbytes for array in arrays.values()) != size:
            raise ValueError("the arrays are no whole file")
        return about, arrays
    except OSError as error:
        reason = (error.strerror or "unknown reason").lower()
        raise InputError(f"cannot be read ({reason})", path=path, remedy="check its permissions") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        raise InputError(problem, path=path, remedy=remedy) from error


def read_npy(path: Path) -> NDArray[Any]:
    """The array in a .npy file. Never pickles: loading one would run whatever code its author put into it."""
    remedy = "save a plain array of numbers with numpy.save(..., allow_pickle=False)"
    try:
        with path.open("rb") as stream:
            version = np.lib.format.read_magic(stream)
            header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
            shape, _, kind = header[version](stream)
            is_object = kind.hasobject
            size = math.prod(shape) * kind.itemsize
            # Before the memory is taken. A negative length makes the size wrong as well.
            if not is_object and (min(shape, default=1) < 0 or size > path.stat().st_size - stream.tell()):
                raise ValueError("the array is larger than the file")
            stream.seek(0)
            if not is_object:
                return np.lib.format.read_array(stream, allow_pickle=False)
    except Exception as error:  # the header is read as Python, so a damaged one can be any error of its parser
        raise InputError("is no .npy file or is cut off", path=path, remedy=remedy) from error
    raise InputError("holds pickled objects, which are never loaded", path=path, remedy=remedy)
