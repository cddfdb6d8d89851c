"""The state of a training run on disk: one safetensors file, its metadata JSON, replaced whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlea.errors import InputError
from rlea.io.agent_files import check_like
from rlea.io.array_files import check_hash, content_hash, read_safetensors

_AFRESH = "delete the file to train afresh, or name another"
_own: set[str] = set()  # real paths of checkpoints that this process has written, or has gone on from


def save_checkpoint(path: Path, arrays: Mapping[str, NDArray[Any]], state: Mapping[str, Any]) -> None:
    """Write arrays and JSON-able state; a reader sees the old file or the new one, never a part."""
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    partial = _partial(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        whole = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        plain = json.loads(json.dumps(dict(state)))
        told = json.dumps(plain | {"sha256": content_hash(whole, plain)}, sort_keys=True)
        save_file(whole, partial, metadata={"state": told})
        with partial.open("rb") as file:
            os.fsync(file.fileno())
        partial.replace(path)
        _own.add(os.path.realpath(path))
    except (OSError, SafetensorError) as problem:
        reason = (getattr(problem, "strerror", None) or str(problem)).lower()
        remedy = "make room, or choose a folder that you may write to"
        raise InputError(f"the checkpoint cannot be written ({reason})", path=path, remedy=remedy) from problem
    finally:
        with suppress(OSError):  # what went wrong is to be told, not what went wrong on the way out
            partial.unlink(missing_ok=True)


@contextmanager
def going_on(path: Path | None) -> Iterator[None]:
    """Turn whatever is wrong with the content of a checkpoint, while it is used, into one sentence; None is none.

    Its hash says that it is as it was written, not who wrote it: a file of another hand may hold anything.
    """
    try:
        yield
    except InputError:
        raise
    except Exception as problem:
        if path is None:
            raise
        what = f"{problem} is missing" if isinstance(problem, KeyError) else " ".join(str(problem).rstrip(".").split())
        raise InputError(f"is no whole checkpoint ({what[:200]})", path=path, remedy=_AFRESH) from problem


def check_state(state: Mapping[str, Any], like: Mapping[str, Any]) -> None:
    """Refuse a state whose values have other types than those of an example, or an epoch that there is not."""
    for name, example in like.items():
        check_like(state[name], example, name)
        if name in ("epoch", "episode") and state[name] < 0:
            raise ValueError(f"{name} is {state[name]}")


def check_rows(arrays: Mapping[str, NDArray[Any]], rows: Mapping[str, int]) -> None:
    """Refuse tables with another number of rows: compiled code would read beyond their end."""
    for name, count in rows.items():
        if arrays[name].ndim != 2 or len(arrays[name]) != count or arrays[name].dtype.kind != "f":
            raise ValueError(f"{name} has the shape {arrays[name].shape}")


def remove_checkpoint(path: Path) -> None:
    """Remove a checkpoint of this run, and what a run that was killed while writing it has left.

    One that this run neither wrote nor went on from belongs to another, which is not finished.
    """
    if os.path.realpath(path) in _own:
        _own.discard(os.path.realpath(path))
        path.unlink(missing_ok=True)
        _partial(path).unlink(missing_ok=True)


def _partial(path: Path) -> Path:
    """Where a checkpoint is written before it is renamed: one name, so that the next run overwrites what was left."""
    return path.with_name(f".{path.name}.partial")


def load_checkpoint(path: Path, run: Mapping[str, Any]) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Arrays and state of a checkpoint whose `state["run"]` equals `run`; anything else is refused."""
    remedy = _AFRESH
    metadata, arrays = read_safetensors(path, "is not a training checkpoint", remedy)
    try:
        state = json.loads(metadata["state"])
        made = state.get("run")
    except (KeyError, ValueError, RecursionError, AttributeError) as problem:
        raise InputError("is not a training checkpoint", path=path, remedy=remedy) from problem
    check_hash(path, arrays, state, remedy)
    if any(np.isnan(array).any() for array in arrays.values() if array.dtype.kind == "f"):
        raise InputError("is a damaged checkpoint: it has numbers that are none (NaN)", path=path, remedy=remedy)
    if not isinstance(made, dict):
        made = {}
    if made != json.loads(json.dumps(dict(run))):
        differing = sorted(key for key in {*run, *made} if run.get(key) != made.get(key))
        message = f"is the checkpoint of another run (its {', '.join(differing)} differ)"
        raise InputError(message, path=path, remedy=remedy)
    _own.add(os.path.realpath(path))
    return arrays, state
