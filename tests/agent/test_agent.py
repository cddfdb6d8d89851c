"""The agent as people use it: fit, match, save, load, resume."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rlea.agent.agent import PRESETS, Agent, AgentSettings, dense
from rlea.agent.policy import PolicySettings
from rlea.agent.reinforce import TrainSettings
from rlea.embeddings import Embeddings
from rlea.errors import InputError
from rlea.graph import Links
from rlea.matchers.greedy import match as greedy
from rlea.matching import Task

SHORT = AgentSettings(candidates=3, policy=PolicySettings(hidden=8), train=TrainSettings(episodes=6, valid_every=2))


def weights(agent):
    return b"".join(tensor.numpy().tobytes() for tensor in agent.policy.state_dict().values())


def fit(world, settings=SHORT, **more):
    links = world.gold
    seeds = Links.of(links.source_ids[:30], links.target_ids[:30])
    valid = Links.of(links.source_ids[30:], links.target_ids[30:])
    return Agent(settings, seed=more.pop("seed", 0)).fit(
        world.source, world.target, world.embeddings, seeds, valid, **more
    )


def same(one, other):
    return (
        one.target_ids.tobytes() == other.target_ids.tobytes()
        and one.confidences.tobytes() == other.confidences.tobytes()
    )


def test_same_seed_same_bytes(world):
    assert weights(fit(world)) == weights(fit(world))
    assert weights(fit(world)) != weights(fit(world, seed=1))


def test_saved_and_loaded_agents_decide_alike(world, tmp_path):
    agent = fit(world)
    agent.save(tmp_path / "agent.safetensors")
    again = Agent.load(tmp_path / "agent.safetensors")
    assert again.settings == agent.settings
    assert again.history == agent.history
    assert same(agent.match(world.task()), again.match(world.task()))


def test_loading_something_else_is_refused(world, tmp_path):
    (tmp_path / "x").write_bytes(b"nonsense")
    with pytest.raises(InputError, match="trained agent"):
        Agent.load(tmp_path / "x")
    with pytest.raises(InputError, match="trained agent"):
        Agent.load(tmp_path / "missing")
    with pytest.raises(InputError, match="not been trained"):
        Agent().match(world.task())
    with pytest.raises(InputError, match="unknown preset"):
        Agent("papper")
    with pytest.raises(InputError, match="seed links"):
        Agent(SHORT).fit(world.source, world.target, world.embeddings, Links.empty())


def test_a_trained_agent_decodes_new_entities_of_the_same_space(world):
    from .conftest import World

    other = World(size=25, seed=9)
    found = fit(world).match(other.task())
    assert found.is_one_to_one
    narrow = Embeddings(other.embeddings.source[:, :5], other.embeddings.target[:, :5])
    with pytest.raises(InputError, match="12 dimensions"):
        fit(world).match(
            Task(other.source, other.target, Links.empty(), replace(other.task().candidates, embeddings=narrow))
        )


def test_confidence_is_the_policys_and_links_are_one_to_one(world):
    found = fit(world, replace(SHORT, complete=True)).match(world.task())
    assert found.is_one_to_one
    assert len(found) == 40
    assert ((found.confidences >= 0) & (found.confidences <= 1)).all()


def test_always_yes_is_greedy(world):
    """An agent that accepts everything gives the greedy one-to-one matching over the same candidates."""
    import torch

    agent = fit(world, replace(SHORT, policy=PolicySettings(estimator=False, hidden=8)))
    with torch.no_grad():
        agent.policy.trunk.source_part.bias.fill_(1.0)
        agent.policy.trunk.source_part.weight.zero_()
        agent.policy.trunk.target_part.weight.zero_()
        agent.policy.head.weight.copy_(torch.tensor([[-1.0] * 8, [1.0] * 8]))
    task = world.task(3)
    pairs = set(zip(*(x.tolist() for x in (agent.match(task).source_ids, agent.match(task).target_ids)), strict=True))
    expected = greedy(task)
    wanted = set(zip(expected.source_ids.tolist(), expected.target_ids.tolist(), strict=True))
    assert len(pairs) == 40
    assert len(pairs & wanted) >= 20  # equal similarities are settled differently; the rest must agree


def test_sparse_vectors_are_reduced(world):
    from scipy.sparse import csr_matrix

    sparse = Embeddings(csr_matrix(np.abs(world.embeddings.source)), csr_matrix(np.abs(world.embeddings.target)))
    reduced = dense(sparse, 0, dim=5)
    assert reduced.source.shape == (40, 5)
    assert dense(world.embeddings, 0) is world.embeddings


def test_sparse_vectors_of_another_pair_are_refused(world, tmp_path):
    from scipy.sparse import csr_matrix

    def sparse(scale):
        return Embeddings(csr_matrix(np.abs(world.embeddings.source) * scale), csr_matrix(world.embeddings.target))

    def task(vectors):
        return replace(world.task(), candidates=replace(world.task().candidates, embeddings=vectors))

    agent = Agent(SHORT).fit(world.source, world.target, sparse(1.0), world.gold)
    agent.save(tmp_path / "agent.safetensors")
    for one in (agent, Agent.load(tmp_path / "agent.safetensors")):
        assert one.match(task(sparse(1.0))).is_one_to_one
        with pytest.raises(InputError, match="another space"):
            one.match(task(sparse(2.0)))


def test_validation_chooses_and_history_records(world):
    agent = fit(world)
    assert [row["episode"] for row in agent.history] == [1, 2, 3, 4, 5, 6]
    scored = {row["episode"]: row["valid_aligned"] for row in agent.history if "valid_aligned" in row}
    assert set(scored) == {2, 4, 6}
    assert scored[agent.best_episode] == max(scored.values())
    assert {"aligned", "length", "reward", "accepted"} <= set(agent.history[0])


def test_resumed_run_equals_an_undisturbed_one(world, tmp_path):
    settings = replace(SHORT, train=replace(SHORT.train, episodes=24))
    whole = fit(world, settings)
    file = tmp_path / "checkpoint"

    class StopError(Exception):
        pass

    for stop_at in (7, 13, 14, 22):

        def stop(row, stop_at=stop_at):
            if row["episode"] == stop_at:
                raise StopError

        with pytest.raises(StopError):
            fit(world, settings, checkpoint=file, on_episode=stop)
    resumed = fit(world, settings, checkpoint=file)
    assert weights(resumed) == weights(whole)
    assert resumed.history == whole.history
    with pytest.raises(InputError, match="another run"):
        fit(world, settings, checkpoint=file, seed=3)


@pytest.mark.slow
def test_killed_five_times_and_resumed(tmp_path):
    """A real process, killed at random moments, ends with the bytes of one that was left alone."""
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from dataclasses import replace; from pathlib import Path\n"
        "from agent.conftest import World; from agent.test_agent import SHORT, fit\n"
        "settings = replace(SHORT, train=replace(SHORT.train, episodes=400))\n"
        "agent = fit(World(), settings, checkpoint=Path(sys.argv[2]) if sys.argv[2] else None)\n"
        "agent.save(sys.argv[3])\n"
    )
    tests = str(Path(__file__).parent.parent)

    def start(checkpoint, out):
        return subprocess.Popen([sys.executable, "-c", program, tests, str(checkpoint), str(out)])

    assert start("", tmp_path / "whole").wait() == 0
    rng = np.random.default_rng(0)
    for _ in range(5):
        child = start(tmp_path / "checkpoint", tmp_path / "cut")
        time.sleep(3 + 3 * rng.random())
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
    assert start(tmp_path / "checkpoint", tmp_path / "cut").wait() == 0
    assert (tmp_path / "cut").read_bytes() == (tmp_path / "whole").read_bytes()


@pytest.mark.parametrize("preset", list(PRESETS))
def test_every_preset_trains_and_decodes(world, preset):
    settings = replace(PRESETS[preset], candidates=3, train=replace(PRESETS[preset].train, episodes=3))
    found = fit(world, settings).match(world.task())
    assert found.is_one_to_one
    assert len(found) > 0
