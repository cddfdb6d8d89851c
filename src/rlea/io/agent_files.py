"""Files of trained agents: weights as safetensors, with all else as JSON in the same file; no pickle."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlea.errors import InputError
from rlea.io.array_files import check_hash, content_hash, load_safetensors, put_safetensors
from rlea.io.writers.atomic import atomic
from rlea.record import is_number

_LARGEST = 1e12  # of any number among settings


def save_agent_file(path: str | Path, about: dict[str, Any], weights: Mapping[str, NDArray[Any]]) -> None:
    """Write weights and what belongs to them, whole or not at all; the same agent gives the same bytes."""
    with atomic(path) as temporary:
        put_agent_file(temporary, about, weights)


def put_agent_file(path: Path, about: dict[str, Any], weights: Mapping[str, NDArray[Any]]) -> None:
    """The same where the caller makes the write atomic."""
    plain = json.loads(json.dumps(about))  # as it is read again: tuples become lists
    put_safetensors(path, weights, plain | {"sha256": content_hash(weights, plain)}, sort_keys=True)


def load_agent_file(path: str | Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """What was saved: about the agent, and its weights."""
    problem, remedy = "cannot be read as a trained agent", "give a file of `rlea train`"
    about, weights = load_safetensors(path, problem, remedy)
    if not isinstance(about, dict):
        raise InputError(problem, path=path, remedy=remedy)
    check_hash(path, weights, about, "train it again, or copy it again")
    if not all(np.isfinite(array).all() for array in weights.values() if array.dtype.kind == "f"):
        raise InputError("has weights that are not finite", path=path, remedy="train it again")
    return about, weights


@contextmanager
def whole_agent(path: str | Path) -> Iterator[None]:
    """Turn whatever is wrong with the content of a file while it is taken apart into one sentence."""
    try:
        yield
    except MemoryError as problem:
        raise InputError("asks for more memory than there is", path=path, remedy="train it again") from problem
    except Exception as problem:  # a file of another hand may hold any value at any place
        what = f"{problem} is missing" if isinstance(problem, KeyError) else " ".join(str(problem).rstrip(".").split())
        raise InputError(f"is no whole agent: {what[:200]}", path=path, remedy="train it again") from problem


def check_like(value: Any, like: Any, place: str) -> None:
    """Refuse a value read from JSON whose keys and types are not those of an example; `place` says where it stands."""
    if isinstance(like, dict):
        if not isinstance(value, dict) or set(value) != set(like):
            raise ValueError(f"{place} has other fields than {', '.join(like)}")
        for key in like:
            check_like(value[key], like[key], f"{place}.{key}")
        return
    if isinstance(like, list | tuple):
        is_right = isinstance(value, list) and all(map(_is_number, value))
    elif isinstance(like, bool | str):
        is_right = isinstance(value, type(like))
    else:
        is_right = _is_number(value) and (isinstance(like, float) or isinstance(value, int))
    if not is_right:
        raise ValueError(f"{place} is {str(value)[:40]!r}")


def _is_number(value: Any) -> bool:
    return is_number(value) and abs(value) <= _LARGEST
