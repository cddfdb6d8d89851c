"""The device: its name is checked, it reaches the agent, and on CUDA the agent learns and decides as on the CPU."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from rlea.demo import demo_folder
from rlea.errors import InputError
from rlea.paper import agent as module
from rlea.paper.agent import Agent
from rlea.paper.presets import PRESETS

from .conftest import right_and_wrong
from .test_agent import SHORT, StopError, fit, lasting, stop_at
from .test_transfer import SETTINGS

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
needs_none = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")


def test_unknown_devices_are_refused(world, tmp_path):
    with pytest.raises(InputError, match="unknown device 'tpu'; use auto, cpu or cuda"):
        Agent(device="tpu")
    fit(world).save(tmp_path / "agent.safetensors")
    with pytest.raises(InputError, match="unknown device 'gpu'"):
        Agent.load(tmp_path / "agent.safetensors", device="gpu")


@needs_none
@pytest.mark.parametrize(
    "command", [["train", "--embedding", "names"], ["align", "--matcher", "rlea", "--preset", "paper"]]
)
def test_missing_cuda_is_said_before_the_work(run_cli, command, monkeypatch):
    monkeypatch.setattr("rlea.commands.read_pair", None)
    monkeypatch.setattr("rlea.pipeline.read", None)
    done = run_cli(*command, demo_folder(), "--device", "cuda", "--quiet")
    assert done.code == 2
    assert "no CUDA device" in done.err
    done = run_cli("align", demo_folder(), "--device", "cuda")
    assert (done.code, done.err) == (2, "Error: there is nothing to train on a GPU; leave --device out.\n")
    assert Agent(device="auto").device.type == "cpu"


def test_the_device_reaches_the_agent(run_cli, vectors, tmp_path, monkeypatch):
    made = []

    class Watched(Agent):
        def __init__(self, *more, device, **others):
            made.append(device)
            super().__init__(*more, device="cpu", **others)

    monkeypatch.setattr(module, "Agent", Watched)
    monkeypatch.setattr(module, "choose_device", lambda device: "cpu")
    file, kept = vectors / "v.safetensors", tmp_path / "agent.safetensors"
    common = [vectors / "pair", "--embedding", file, "--device", "cuda"]
    done = run_cli("train", *common, "--preset", "paper", "--episodes", 1, "--output", kept, "--json")
    assert json.loads(done.out)["device"] == "cpu"
    monkeypatch.setitem(PRESETS, "paper", SHORT)
    for arguments in (["--preset", "paper"], ["--agent", kept]):
        assert run_cli("align", *common, "--matcher", "rlea", *arguments, "--json").code == 0
    assert made == ["cuda", "cuda", "cuda"]


def test_training_leaves_the_callers_random_numbers_alone(world):
    torch.manual_seed(5)
    before = torch.get_rng_state()
    fit(world)
    assert torch.equal(torch.get_rng_state(), before)


@needs_cuda
def test_cuda_learns_the_planted_truth_and_its_agent_decides_alike_on_the_cpu(world, tmp_path):
    generator = torch.cuda.get_rng_state()
    agent = Agent(SETTINGS, device="auto").fit(world.pair(), world.embeddings, world.gold)
    assert agent.device.type == "cuda"
    assert all(tensor.is_cuda for tensor in agent.policy.state_dict().values())
    assert torch.equal(torch.cuda.get_rng_state(), generator)
    there = agent.match(world.task(2))
    right, wrong = right_and_wrong(there, world.gold)
    assert right >= 38
    assert wrong <= 3
    agent.save(tmp_path / "agent.safetensors")
    for device in ("cpu", "cuda"):
        here = Agent.load(tmp_path / "agent.safetensors", device=device).match(world.task(2))
        assert here.target_ids.tolist() == there.target_ids.tolist()
        np.testing.assert_allclose(here.confidences, there.confidences, atol=1e-4)


@needs_cuda
@pytest.mark.parametrize("encoder", ["gcn", "gat"])
@pytest.mark.parametrize("num_layers", [1, 2])
def test_cuda_trains_every_encoder(world, encoder, num_layers):
    settings = replace(SHORT, policy=replace(SHORT.policy, encoder=encoder, num_layers=num_layers))
    assert [row["episode"] for row in fit(world, settings, device="cuda").history] == [1, 2, 3, 4, 5, 6]
    one, other = (fit(world, lasting(1, settings), device=device).history for device in ("cuda", "cpu"))
    # The first episode is played before anything is learned: the same weights, the same draws, the same decisions.
    assert {**one[0], "valid_aligned": 0} == {**other[0], "valid_aligned": 0}


@needs_cuda
def test_cuda_resumes_and_keeps_to_its_device(world, tmp_path):
    run = {"settings": lasting(24), "device": "cuda"}
    whole, file = fit(world, **run), tmp_path / "checkpoint"
    with pytest.raises(StopError):
        fit(world, **run, checkpoint=file, on_episode=stop_at(14))
    with pytest.raises(InputError, match="another run"):
        fit(world, lasting(24), checkpoint=file)
    resumed = fit(world, **run, checkpoint=file)
    assert resumed.history == whole.history
    for name, tensor in resumed.policy.state_dict().items():
        assert torch.equal(tensor, whole.policy.state_dict()[name]), name
