"""A model that torch's Adam trains, as arrays for a checkpoint: parameters under their names, and Adam's moments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import torch

if TYPE_CHECKING:
    from rlea.models.training import Arrays, Device

_PREFIX = "adam."  # of all that is no parameter; no parameter is called so


def trained_tensors(fresh: Arrays, saved: Arrays, device: Device) -> dict[str, torch.Tensor]:
    """Parameters as tensors of their own that Adam can train: the saved values, or the fresh ones where none are.

    They are in the order of the fresh ones. A file has an order of its own, and a sum over all parameters, such as the
    norm of a gradient, rounds by their order: a run that is taken up again would go another way. For the same reason
    matrices are laid out row by row, as a file gives them back.
    """
    values = {name: np.ascontiguousarray(saved.get(name, value)) for name, value in fresh.items()}
    return {name: torch.tensor(value, device=device, requires_grad=True) for name, value in values.items()}


def adam_arrays(optimiser: torch.optim.Adam, parameters: Mapping[str, torch.Tensor]) -> Arrays:
    """All that the next step depends on, once there was a first one."""
    result: Arrays = {}
    for name, parameter in parameters.items():
        state = optimiser.state[parameter]
        result[name] = parameter.detach().cpu().numpy()
        result[f"{_PREFIX}mean.{name}"] = state["exp_avg"].cpu().numpy()
        result[f"{_PREFIX}square.{name}"] = state["exp_avg_sq"].cpu().numpy()
        result[f"{_PREFIX}steps"] = state["step"].cpu().numpy().reshape(1)  # the same for all
    return result


def restore_adam(optimiser: torch.optim.Adam, parameters: Mapping[str, torch.Tensor], saved: Arrays) -> None:
    """Give a new optimiser the moments that `adam_arrays` saved; without any it stays new."""
    if f"{_PREFIX}steps" not in saved:
        return
    for name, parameter in parameters.items():
        # A fused Adam counts its steps where the parameters are, any other on the CPU.
        counting = parameter.device if optimiser.defaults["fused"] else "cpu"
        optimiser.state[parameter] = {
            "step": torch.tensor(float(saved[f"{_PREFIX}steps"][0]), dtype=torch.float32, device=counting),
            "exp_avg": torch.tensor(saved[f"{_PREFIX}mean.{name}"], device=parameter.device),
            "exp_avg_sq": torch.tensor(saved[f"{_PREFIX}square.{name}"], device=parameter.device),
        }
