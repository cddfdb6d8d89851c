import numpy as np
import pytest
import torch

from rlea.models.torch_optimisers import adam_arrays, restore_adam, trained_tensors

FRESH = {"a": np.arange(3, dtype=np.float32), "b.c": np.ones((2, 2), dtype=np.float32)}
RATES = {"lr": 0.1}


def take_steps(optimiser: torch.optim.Adam, parameters: dict[str, torch.Tensor], numbers: range) -> None:
    for number in numbers:
        optimiser.zero_grad()
        sum((value - number).square().sum() for value in parameters.values()).backward()
        optimiser.step()


@pytest.mark.parametrize("fused", [False, True])
def test_a_restored_optimiser_goes_on_as_the_saved_one(fused: bool):
    parameters = trained_tensors(FRESH, {}, "cpu")
    optimiser = torch.optim.Adam(parameters.values(), **RATES, fused=fused)
    take_steps(optimiser, parameters, range(3))
    saved = {name: array.copy() for name, array in adam_arrays(optimiser, parameters).items()}
    assert sorted(saved) == [
        "a", "adam.mean.a", "adam.mean.b.c", "adam.square.a", "adam.square.b.c", "adam.steps", "b.c",
    ]  # fmt: skip
    assert saved["adam.steps"].tolist() == [3]

    others = trained_tensors(FRESH, dict(sorted(saved.items(), reverse=True)), "cpu")
    assert list(others) == list(FRESH)
    other = torch.optim.Adam(others.values(), **RATES, fused=fused)
    restore_adam(other, others, saved)
    take_steps(optimiser, parameters, range(3, 6))
    take_steps(other, others, range(3, 6))
    for name, value in parameters.items():
        assert torch.equal(value, others[name])
    assert adam_arrays(other, others)["adam.steps"].tolist() == [6]


def test_without_saved_moments_the_optimiser_stays_new():
    parameters = trained_tensors(FRESH, {}, "cpu")
    optimiser = torch.optim.Adam(parameters.values(), **RATES)
    restore_adam(optimiser, parameters, FRESH)
    assert len(optimiser.state) == 0


def test_tensors_are_copies():
    arrays = {"a": np.zeros(2, dtype=np.float32)}
    tensors = trained_tensors(arrays, {}, "cpu")
    with torch.no_grad():
        tensors["a"] += 1
    assert arrays["a"].tolist() == [0, 0]
