"""What torch trains, as arrays for a checkpoint: parameters under their names, and the state of the optimiser."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from rlea.models.training import Arrays, Device, Floats, TrainedModel

ADAM = "adam."  # before the names of all that is no parameter; no parameter is called so
SQUARE = "rmsprop.square."


def trained_tensors(fresh: Arrays, saved: Arrays, device: Device) -> dict[str, torch.Tensor]:
    """Parameters as tensors that an optimiser can train: the saved values, or the fresh ones where none are.

    They are in the order of the fresh ones. A file has an order of its own, and a sum over all parameters, such as the
    norm of a gradient, rounds by their order: a resumed run would go another way. For the same reason matrices are laid
    out row by row, as a file gives them back.
    """
    values = {name: np.ascontiguousarray(saved.get(name, value)) for name, value in fresh.items()}
    return {name: torch.tensor(value, device=device, requires_grad=True) for name, value in values.items()}


def adam_arrays(optimiser: torch.optim.Adam, parameters: Mapping[str, torch.Tensor], prefix: str = ADAM) -> Arrays:
    """All that the next step depends on, once there was a first one."""
    result: Arrays = {}
    for name, parameter in parameters.items():
        state = optimiser.state[parameter]
        result[name] = as_array(parameter)
        result[f"{prefix}mean.{name}"] = as_array(state["exp_avg"])
        result[f"{prefix}square.{name}"] = as_array(state["exp_avg_sq"])
        result[f"{prefix}steps"] = as_array(state["step"]).reshape(1)  # the same for all
    return result


def restore_adam(
    optimiser: torch.optim.Adam, parameters: Mapping[str, torch.Tensor], saved: Arrays, prefix: str = ADAM
) -> None:
    """Give a new optimiser the moments that `adam_arrays` saved; without any it stays new."""
    if f"{prefix}steps" not in saved:
        return
    for name, parameter in parameters.items():
        # A fused Adam counts its steps where the parameters are, any other on the CPU.
        counting = parameter.device if optimiser.defaults["fused"] else "cpu"
        optimiser.state[parameter] = {
            "step": torch.tensor(float(saved[f"{prefix}steps"][0]), dtype=torch.float32, device=counting),
            "exp_avg": torch.tensor(saved[f"{prefix}mean.{name}"], device=parameter.device),
            "exp_avg_sq": torch.tensor(saved[f"{prefix}square.{name}"], device=parameter.device),
        }


class AdamModel(TrainedModel):
    """A model whose parameters are trained by Adam."""

    fused: ClassVar[bool | None] = True

    @abstractmethod
    def initial_parameters(self) -> Arrays:
        """Parameters before the first epoch, by name."""

    def start(self, epoch: int, saved: Arrays) -> None:
        self.parameters = trained_tensors(self.initial_parameters(), saved, self.device)
        rate = self.settings.learning_rate
        self.optimiser = torch.optim.Adam(self.parameters.values(), lr=rate, fused=self.fused)
        restore_adam(self.optimiser, self.parameters, saved)

    def arrays(self, epoch: int) -> Arrays:
        return adam_arrays(self.optimiser, self.parameters)


class RMSpropModel(TrainedModel):
    """A model whose parameters are trained by RMSprop."""

    @abstractmethod
    def initial_parameters(self) -> Arrays:
        """Parameters before the first epoch, by name."""

    def start(self, epoch: int, saved: Arrays) -> None:
        self.parameters = trained_tensors(self.initial_parameters(), saved, self.device)
        rate = self.settings.learning_rate
        self.optimiser = torch.optim.RMSprop(self.parameters.values(), lr=rate, alpha=0.9, eps=1e-7)
        for name, parameter in self.parameters.items():
            if f"{SQUARE}{name}" in saved:
                squares = torch.tensor(saved[f"{SQUARE}{name}"], device=parameter.device)
                self.optimiser.state[parameter] = {"step": torch.tensor(0.0), "square_avg": squares}

    def arrays(self, epoch: int) -> Arrays:
        result = {name: as_array(parameter) for name, parameter in self.parameters.items()}
        for name, parameter in self.parameters.items():
            if parameter in self.optimiser.state:
                result[f"{SQUARE}{name}"] = as_array(self.optimiser.state[parameter]["square_avg"])
        return result


class Adagrad(torch.optim.Adagrad):
    """Adagrad that starts with given sums of squared gradients, one array for each parameter."""

    def __init__(self, sums: Mapping[torch.Tensor, Floats], learning_rate: float) -> None:
        super().__init__(list(sums), lr=learning_rate, eps=0.0)
        for parameter, values in sums.items():
            self.state[parameter]["sum"] = torch.tensor(values, device=parameter.device)

    def sums(self, parameter: torch.Tensor) -> Floats:
        """Its sums of squared gradients, in the shape of the parameter."""
        return as_array(self.state[parameter]["sum"])


def descend(optimiser: torch.optim.Optimizer, loss: torch.Tensor) -> torch.Tensor:
    """One step down the gradient of the loss; the loss before it."""
    optimiser.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    optimiser.step()
    return loss.detach()


def descend_batches(
    optimiser: torch.optim.Optimizer,
    loss_of: Callable[..., torch.Tensor],
    cuts: list[int],
    *arrays: NDArray[Any],  # of ids or truth values, those of a batch between two cuts
    precision: torch.dtype = torch.float32,  # of the sum
) -> float:
    """A step for every batch; the sum of the losses."""
    # A whole epoch goes over at once, and only its sum comes back: waiting at every batch would cost most time.
    device = optimiser.param_groups[0]["params"][0].device
    tensors = to_device(device, *arrays)
    total = torch.zeros((), device=device, dtype=precision)
    for begin, end in pairwise(cuts):
        total += descend(optimiser, loss_of(*(tensor[begin:end] for tensor in tensors)))
    return float(total)


def as_array(tensor: torch.Tensor) -> NDArray[Any]:
    """The values of a tensor, on the CPU."""
    array: NDArray[Any] = tensor.detach().cpu().numpy()
    return array


def to_device(device: torch.device | str, *arrays: NDArray[Any]) -> list[torch.Tensor]:
    """Arrays of ids or of truth values as tensors to index with."""
    kinds = (torch.bool if array.dtype == np.bool_ else torch.long for array in arrays)
    return [torch.as_tensor(array, device=device, dtype=kind) for array, kind in zip(arrays, kinds, strict=True)]
