"""Files of trained agents: weights as safetensors, with all else as JSON in the same file; no pickle."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from rlea.io.array_files import load_safetensors, put_safetensors
from rlea.io.writers.atomic import atomic


def save_agent_file(path: str | Path, about: dict[str, Any], weights: Mapping[str, NDArray[Any]]) -> None:
    """Write weights and what belongs to them, whole or not at all; the same agent gives the same bytes."""
    with atomic(path) as temporary:
        put_safetensors(temporary, weights, about, sort_keys=True)


def load_agent_file(path: str | Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """What was saved: about the agent, and its weights."""
    return load_safetensors(path, "cannot be read as a trained agent", "give a file of `rlea train`")
