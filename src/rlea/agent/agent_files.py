"""Files of trained agents: weights as safetensors, all else as JSON beside them; no pickle."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from rlea.errors import InputError


def save_agent_file(path: str | Path, about: dict[str, Any], network: torch.nn.Module) -> None:
    """Write a network's weights and what belongs to them, whole or not at all."""
    from safetensors.torch import save_file

    from rlea.writers.atomic import atomic

    weights = {name: tensor.contiguous() for name, tensor in network.state_dict().items()}
    with atomic(path) as temporary:
        # One key: several would be written in random order, and the same agent would not be the same file.
        save_file(weights, temporary, metadata={"rlea": json.dumps(about, sort_keys=True)})


def load_agent_file(path: str | Path) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """What was saved: about the agent, and its weights."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            about: dict[str, Any] = json.loads((file.metadata() or {}).get("rlea", "{}"))
            return about, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError, ValueError) as problem:
        raise InputError(
            "cannot be read as a trained agent", path=path, remedy="give a file of `rlea train`"
        ) from problem
