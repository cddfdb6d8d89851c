"""Files of trained agents: weights as safetensors, all else as JSON beside them; no pickle."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlea.errors import InputError


def save_agent_file(path: str | Path, about: dict[str, Any], weights: Mapping[str, NDArray[Any]]) -> None:
    """Write weights and what belongs to them, whole or not at all."""
    from safetensors.numpy import save_file

    from rlea.io.writers.atomic import atomic

    arrays = {name: np.ascontiguousarray(array) for name, array in weights.items()}
    with atomic(path) as temporary:
        # One key: several would be written in random order, and the same agent would not be the same file.
        save_file(arrays, temporary, metadata={"rlea": json.dumps(about, sort_keys=True)})


def load_agent_file(path: str | Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """What was saved: about the agent, and its weights."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np") as file:
            about: dict[str, Any] = json.loads((file.metadata() or {}).get("rlea", "{}"))
            return about, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError, ValueError) as problem:
        raise InputError(
            "cannot be read as a trained agent", path=path, remedy="give a file of `rlea train`"
        ) from problem
