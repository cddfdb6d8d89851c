"""Named arrays in a safetensors file (no pickle), with JSON about them: what a run leaves for later questions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rlea.errors import InputError


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
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            about = json.loads((file.metadata() or {}).get("rlea", "{}"))
            return about, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError, ValueError) as error:
        raise InputError(problem, path=path, remedy=remedy) from error
