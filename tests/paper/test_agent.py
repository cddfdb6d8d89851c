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

from rlea.errors import InputError
from rlea.graph import Links
from rlea.matchers.greedy import match as greedy
from rlea.matching import Task
from rlea.paper import agent as module
from rlea.paper.agent import Agent, dense
from rlea.paper.policy import PolicySettings
from rlea.paper.presets import PRESETS, AgentSettings
from rlea.paper.reinforce import TrainSettings
from rlea.search.candidates import find_candidates
from rlea.search.embeddings import Embeddings

from .conftest import World, pairs_of, take

SHORT = AgentSettings(candidates=3, policy=PolicySettings(hidden=8), train=TrainSettings(episodes=6, valid_every=2))


def lasting(episodes, settings=SHORT):
    return replace(settings, train=replace(settings.train, episodes=episodes))


def weights(agent):
    return b"".join(tensor.numpy().tobytes() for tensor in agent.policy.state_dict().values())


def fit(world, settings=SHORT, *, seed=0, device="cpu", **more):
    seeds, valid = take(world.gold, slice(30)), take(world.gold, slice(30, None))
    return Agent(settings, seed=seed, device=device).fit(world.pair(), world.embeddings, seeds, valid, **more)


def same(one, other):
    return pairs_of(one) == pairs_of(other) and one.confidences.tobytes() == other.confidences.tobytes()


def sparse(world, scale=1.0):
    from scipy.sparse import csr_matrix

    return Embeddings(csr_matrix(np.abs(world.embeddings.source) * scale), csr_matrix(world.embeddings.target))


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


def test_what_cannot_work_is_refused(world, tmp_path):
    (tmp_path / "x").write_bytes(b"nonsense")
    narrow = Embeddings(world.embeddings.source[:, :5], world.embeddings.target[:, :5])
    fewer = Embeddings(world.embeddings.source[:-1], world.embeddings.target)
    trained = fit(world)
    narrow_task = replace(world.task(), candidates=replace(world.candidates(), embeddings=narrow))
    for words, work in (
        ("trained agent", lambda: Agent.load(tmp_path / "x")),
        ("trained agent", lambda: Agent.load(tmp_path / "missing")),
        ("not been trained", lambda: Agent().match(world.task())),
        ("unknown preset", lambda: Agent("papper")),
        ("seed is -1", lambda: Agent(seed=-1)),
        ("seed links", lambda: Agent(SHORT).fit(world.pair(), world.embeddings, Links.empty())),
        ("40 entities and 39 vectors", lambda: Agent(SHORT).fit(world.pair(), fewer, world.gold)),
        ("are none; give embeddings", lambda: trained.match(world.pair())),
        ("12 dimensions", lambda: trained.match(narrow_task)),
    ):
        with pytest.raises(InputError, match=words):
            work()


@pytest.mark.parametrize(
    ("settings", "name", "value"),
    [
        (AgentSettings, "candidates", 0),
        (AgentSettings, "pool", "seed"),
        (AgentSettings, "best_of", "sorce"),
        (TrainSettings, "episodes", 0),
        (TrainSettings, "scale_rate", "sqrt"),
        (PolicySettings, "encoder", "gnn"),
        (PolicySettings, "num_layers", 0),
    ],
)
def test_settings_that_cannot_work_are_refused(settings, name, value):
    with pytest.raises(InputError, match=f"{name} is {value!r}"):
        settings(**{name: value})


def test_a_trained_agent_decodes_new_entities_of_the_same_space(world):
    assert fit(world).match(World(size=25, seed=9).task()).is_one_to_one
    nobody = find_candidates(world.embeddings, np.arange(0), np.arange(40), 3)
    assert len(fit(world).match(replace(world.task(), candidates=nobody))) == 0


def test_confidence_is_the_policys_and_links_are_one_to_one(world):
    agent, task = fit(world), world.task()
    found = agent.match(task)
    assert found.is_one_to_one
    assert len(found)
    sequence, chance = agent.probabilities(task)
    sources, targets = task.candidates.source_ids[sequence.rows], task.candidates.target_ids[sequence.columns]
    expected = dict(zip(zip(sources.tolist(), targets.tolist(), strict=True), chance.tolist(), strict=True))
    for s, t, confidence in zip(found.source_ids, found.target_ids, found.confidences, strict=True):
        assert confidence == pytest.approx(expected[s, t])


def test_completion_fills_up_and_changes_no_decision(world):
    plain, filled = (fit(world, replace(SHORT, complete=full)).match(world.task()) for full in (False, True))
    assert filled.is_one_to_one
    assert len(filled) == 40  # in this world every source still has a free candidate
    assert pairs_of(plain) <= pairs_of(filled)


def test_always_yes_is_greedy(world):
    """An agent that accepts everything gives the greedy one-to-one matching over the same candidates, link for link."""
    import torch

    agent = fit(world, replace(SHORT, policy=PolicySettings(estimator=False, hidden=8)))
    with torch.no_grad():
        agent.policy.trunk.source_part.bias.fill_(1.0)
        agent.policy.trunk.source_part.weight.zero_()
        agent.policy.trunk.target_part.weight.zero_()
        agent.policy.head.weight.copy_(torch.tensor([[-1.0] * 8, [1.0] * 8]))
    rng = np.random.default_rng(0)
    vectors = Embeddings(*(rng.standard_normal((size, 12)).astype(np.float32) for size in (40, 80)))  # no ties
    found = find_candidates(vectors, np.arange(40), np.arange(80), 3)
    one_sided = replace(found, backward_rows=found.backward_rows[:, :0], backward_scores=found.backward_scores[:, :0])
    task = Task(world.source, world.target, Links.empty(), one_sided)
    assert len(agent.match(task)) > 20
    assert pairs_of(agent.match(task)) == pairs_of(greedy(task))


def test_sparse_vectors_are_reduced(world):
    assert dense(sparse(world), 0, dim=5).source.shape == (40, 5)
    assert dense(world.embeddings, 0) is world.embeddings


def test_sparse_vectors_of_another_pair_are_refused(world, tmp_path):
    def task(vectors):
        return replace(world.task(), candidates=replace(world.candidates(), embeddings=vectors))

    agent = Agent(SHORT).fit(world.pair(), sparse(world), world.gold)
    agent.save(tmp_path / "agent.safetensors")
    for one in (agent, Agent.load(tmp_path / "agent.safetensors")):
        assert one.match(task(sparse(world))).is_one_to_one
        with pytest.raises(InputError, match="another space"):
            one.match(task(sparse(world, 2.0)))


def test_validation_chooses_and_history_records(world):
    agent = fit(world)
    assert [row["episode"] for row in agent.history] == [1, 2, 3, 4, 5, 6]
    scored = {row["episode"]: row["valid_aligned"] for row in agent.history if "valid_aligned" in row}
    assert set(scored) == {2, 4, 6}
    assert scored[agent.best_episode] == max(scored.values())
    assert {"aligned", "length", "reward", "accepted"} <= set(agent.history[0])


def test_the_best_policy_is_kept_and_of_equals_the_later(world, monkeypatch):
    """Validation is best in the middle, twice: the weights are those of a run that ended at the second of the two."""
    scores, real = iter([3, 9, 9, 5]), module.decode

    def decode(sequence, probability, draws=None):
        correct = np.flatnonzero(sequence.labels)[: next(scores)]
        return real(sequence, probability, draws)._replace(pairs=correct, actions=np.ones(len(correct), np.int8))

    monkeypatch.setattr(module, "decode", decode)
    kept = fit(world, lasting(8))
    assert kept.best_episode == 6
    until = Agent(lasting(6)).fit(world.pair(), world.embeddings, take(world.gold, slice(30)))
    assert weights(kept) == weights(until)


def test_a_second_fit_starts_afresh(world):
    agent = Agent(SHORT)
    for _ in range(2):
        agent.fit(world.pair(), world.embeddings, world.gold)
    assert [row["episode"] for row in agent.history] == [1, 2, 3, 4, 5, 6]
    assert weights(agent) == weights(Agent(SHORT).fit(world.pair(), world.embeddings, world.gold))


def test_five_lines_of_a_notebook(world, tmp_path):
    pair = world.pair(take(world.gold, slice(30)))
    agent = Agent(SHORT).fit(pair, world.embeddings)
    found = agent.match(pair, world.embeddings)
    assert set(found.source_ids) <= set(world.gold.source_ids[30:])
    agent.save(tmp_path / "deep" / "agent.safetensors")
    assert same(Agent.load(tmp_path / "deep" / "agent.safetensors").match(pair, world.embeddings), found)


def test_a_longer_run_is_a_shorter_one_carried_on(world, tmp_path):
    file = tmp_path / "checkpoint"
    fit(world, lasting(10), checkpoint=str(file))
    assert weights(fit(world, lasting(20), checkpoint=file)) == weights(fit(world, lasting(20)))
    with pytest.raises(InputError, match="episode 20, and 10"):
        fit(world, lasting(10), checkpoint=file)
    with pytest.raises(InputError, match="its tau differ"):
        fit(world, replace(lasting(20), tau=2.0), checkpoint=file)


class StopError(Exception):
    pass


def stop_at(episode):
    def stop(row):
        if row["episode"] == episode:
            raise StopError

    return stop


def test_resumed_run_equals_an_undisturbed_one(world, tmp_path):
    whole, file = fit(world, lasting(24)), tmp_path / "checkpoint"
    for episode in (7, 13, 14, 22):
        with pytest.raises(StopError):
            fit(world, lasting(24), checkpoint=file, on_episode=stop_at(episode))
    resumed = fit(world, lasting(24), checkpoint=file)
    assert weights(resumed) == weights(whole)
    assert resumed.history == whole.history
    with pytest.raises(InputError, match="another run"):
        fit(world, lasting(24), checkpoint=file, seed=3)


@pytest.mark.slow
def test_killed_five_times_and_resumed(tmp_path):
    """A real process, killed at random moments, ends with the bytes of one that was left alone."""
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from pathlib import Path; from paper.conftest import World; from paper.test_agent import fit, lasting\n"
        "agent = fit(World(), lasting(1500), checkpoint=Path(sys.argv[2]) if sys.argv[2] else None)\n"
        "agent.save(sys.argv[3])\n"
    )
    tests = str(Path(__file__).parent.parent)

    def start(checkpoint, out):
        return subprocess.Popen([sys.executable, "-c", program, tests, str(checkpoint), str(out)])

    assert start("", tmp_path / "whole").wait() == 0
    rng, checkpoint = np.random.default_rng(0), tmp_path / "checkpoint"
    for number in range(5):
        child = start(checkpoint, tmp_path / "cut")
        begin, before = time.monotonic(), checkpoint.stat().st_mtime_ns if number else 0
        while not checkpoint.exists() or checkpoint.stat().st_mtime_ns == before:
            assert time.monotonic() - begin < 120
            time.sleep(0.05)
        time.sleep(0.3 * rng.random())  # in the midst of training, after its first checkpoint
        assert child.poll() is None
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
    assert start(checkpoint, tmp_path / "cut").wait() == 0
    assert (tmp_path / "cut").read_bytes() == (tmp_path / "whole").read_bytes()


@pytest.mark.parametrize("preset", list(PRESETS))
def test_every_preset_trains_and_decodes(world, preset):
    # After three episodes paper-random still decides all pairs alike, to match or not, as its first weights do.
    found = fit(world, replace(lasting(3, PRESETS[preset]), candidates=3), seed=1).match(world.task())
    assert found.is_one_to_one
    assert len(found) > 0
