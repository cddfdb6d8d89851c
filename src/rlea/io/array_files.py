"""Named arrays in a safetensors file (no pickle) that says which format it has: what a run leaves for those who ask."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rlea.errors import InputError


def put_arrays(path: Path, arrays: Mapping[str, Any], format_name: str, **about: Any) -> None:
    """Write arrays as they are, and what is to be known about them, for a caller who sees to the whole."""
    from safetensors.numpy import save_file

    whole = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    save_file(whole, path, metadata={"rlea": json.dumps({"format": format_name, **about})})


def load_arrays(
    path: str | Path, types: Mapping[str, Any], format_name: str, *, unreadable: str, other: str, remedy: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arrays of the names and types given, and what is said about them.

    `unreadable` and `other` are said of a file that holds something else.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            about = json.loads((file.metadata() or {}).get("rlea", "{}"))
            arrays: dict[str, Any] = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError, ValueError) as problem:
        raise InputError(unreadable, path=path, remedy=remedy) from problem
    is_known = isinstance(about, dict) and about.get("format") == format_name and set(arrays) == set(types)
    if not is_known or any(arrays[name].dtype != kind for name, kind in types.items()):
        raise InputError(other, path=path, remedy=remedy)
    return arrays, about
