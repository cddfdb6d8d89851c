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

import rlea
from rlea.errors import InputError
from rlea.graph import Links
from rlea.matchers.greedy import match as greedy
from rlea.matching import Task
from rlea.paper.agent import Agent, dense
from rlea.paper.deck import make_deck
from rlea.paper.policy import PolicySettings
from rlea.paper.presets import PRESETS, AgentSettings
from rlea.paper.reinforce import TrainSettings, match_probabilities
from rlea.search.candidates import find_candidates
from rlea.search.embeddings import Embeddings

SHORT = AgentSettings(candidates=3, policy=PolicySettings(hidden=8), train=TrainSettings(episodes=6, valid_every=2))


def weights(agent):
    return b"".join(tensor.numpy().tobytes() for tensor in agent.policy.state_dict().values())


def fit(world, settings=SHORT, **more):
    links = world.gold
    seeds = Links.of(links.source_ids[:30], links.target_ids[:30])
    valid = Links.of(links.source_ids[30:], links.target_ids[30:])
    return Agent(settings, seed=more.pop("seed", 0)).fit(world.pair(), world.embeddings, seeds, valid, **more)


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
        Agent(SHORT).fit(world.pair(), world.embeddings, Links.empty())


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
    agent = fit(world)
    task = world.task()
    found = agent.match(task)
    assert found.is_one_to_one
    assert len(found)
    deck = make_deck(task.candidates, agent.settings.candidates, task.seed)
    views = agent._views(world.source, world.target, world.embeddings)
    chance = match_probabilities(agent.policy, *views, agent._table(deck, task.candidates))
    sources, targets = task.candidates.source_ids[deck.rows], task.candidates.target_ids[deck.columns]
    expected = {(s, t): p for s, t, p in zip(sources.tolist(), targets.tolist(), chance.tolist(), strict=True)}
    told = zip(found.source_ids.tolist(), found.target_ids.tolist(), found.confidences.tolist(), strict=True)
    assert all(confidence == pytest.approx(expected[s, t]) for s, t, confidence in told)


def test_completion_fills_up_and_changes_no_decision(world):
    plain, filled = fit(world).match(world.task()), fit(world, replace(SHORT, complete=True)).match(world.task())
    assert filled.is_one_to_one
    assert len(filled) == 40  # in this world a free candidate is left for everybody
    decided = set(zip(plain.source_ids.tolist(), plain.target_ids.tolist(), strict=True))
    assert decided <= set(zip(filled.source_ids.tolist(), filled.target_ids.tolist(), strict=True))


def say_yes(agent):
    """The agent with a policy that accepts everything."""
    import torch

    with torch.no_grad():
        agent.policy.trunk.source_part.bias.fill_(1.0)
        agent.policy.trunk.source_part.weight.zero_()
        agent.policy.trunk.target_part.weight.zero_()
        agent.policy.head.weight.copy_(torch.tensor([[-1.0] * 8, [1.0] * 8]))
    return agent


def test_always_yes_is_greedy(world):
    """An agent that accepts everything gives the greedy one-to-one matching over the same candidates, link for link."""
    agent = say_yes(fit(world, replace(SHORT, policy=PolicySettings(estimator=False, hidden=8))))
    rng = np.random.default_rng(0)
    vectors = Embeddings(*(rng.standard_normal((size, 12)).astype(np.float32) for size in (40, 80)))  # no ties
    found = find_candidates(vectors, np.arange(40), np.arange(80), 3)
    one_sided = replace(found, backward_rows=found.backward_rows[:, :0], backward_scores=found.backward_scores[:, :0])
    task = Task(world.source, world.target, Links.empty(), one_sided)
    mine, plain = agent.match(task), greedy(task)
    assert len(mine) > 20
    links = [set(zip(m.source_ids.tolist(), m.target_ids.tolist(), strict=True)) for m in (mine, plain)]
    assert links[0] == links[1]


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

    agent = Agent(SHORT).fit(world.pair(), sparse(1.0), world.gold)
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


def test_the_best_policy_is_kept_and_of_equals_the_later(world, monkeypatch):
    """Validation is best in the middle, twice: the weights are those of a run that ended at the second of the two."""
    from rlea.agent import agent as module

    scores = iter([3, 9, 9, 5])
    real = module.decode

    def decode(deck, probability, draws=None):
        steps = real(deck, probability, draws)
        right = np.flatnonzero(deck.labels)[: next(scores)]
        return type(steps)(right, np.ones(len(right), np.int8))

    monkeypatch.setattr(module, "decode", decode)
    settings = replace(SHORT, train=replace(SHORT.train, episodes=8))
    kept = fit(world, settings)
    assert kept.best_episode == 6
    monkeypatch.setattr(module, "decode", real)
    links = world.gold
    until = Agent(replace(SHORT, train=replace(SHORT.train, episodes=6)))
    until.fit(world.pair(), world.embeddings, Links.of(links.source_ids[:30], links.target_ids[:30]))
    assert weights(kept) == weights(until)


def test_a_second_fit_starts_afresh(world):
    agent = Agent(SHORT)
    for _ in range(2):
        agent.fit(world.pair(), world.embeddings, world.gold)
    assert [row["episode"] for row in agent.history] == [1, 2, 3, 4, 5, 6]
    assert weights(agent) == weights(Agent(SHORT).fit(world.pair(), world.embeddings, world.gold))


def test_five_lines_of_a_notebook(world, tmp_path):
    links = world.gold
    pair = world.pair(Links.of(links.source_ids[:30], links.target_ids[:30]))
    agent = Agent(SHORT).fit(pair, world.embeddings)
    found = agent.match(pair, world.embeddings)
    assert set(found.source_ids.tolist()) <= set(links.source_ids[30:].tolist())
    agent.save(tmp_path / "deep" / "agent.safetensors")
    assert same(Agent.load(tmp_path / "deep" / "agent.safetensors").match(pair, world.embeddings), found)
    with pytest.raises(InputError, match="vectors"):
        agent.match(pair)
    with pytest.raises(InputError, match="40 entities and 39 vectors"):
        agent.fit(pair, Embeddings(world.embeddings.source[:-1], world.embeddings.target), world.gold)


def test_the_plain_matcher_trains_on_the_seeds_of_the_task(world, monkeypatch):
    from rlea.agent import matcher
    from rlea.agent.context import ContextAgent
    from rlea.matchers import MATCHERS

    monkeypatch.setitem(PRESETS, "paper", SHORT)
    task = replace(world.task(), seeds=world.gold)
    expected = Agent(SHORT).fit(world.pair(), world.embeddings, world.gold).match(task)
    assert same(matcher.match(task, "paper"), expected)
    pair = rlea.GraphPair("task", task.source, task.target, task.seeds)
    assert same(MATCHERS["rlea"](task), ContextAgent().fit(pair, world.embeddings).match(task))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: AgentSettings(candidates=0), "candidates is 0"),
        (lambda: AgentSettings(pool="seed"), "pool is 'seed'"),
        (lambda: AgentSettings(best_of="sorce"), "best_of is 'sorce'"),
        (lambda: TrainSettings(episodes=0), "episodes is 0"),
        (lambda: TrainSettings(valid_every=0), "valid_every is 0"),
        (lambda: TrainSettings(scale_rate="sqrt"), "scale_rate is 'sqrt'"),
        (lambda: PolicySettings(encoder="gnn"), "encoder is 'gnn'"),
        (lambda: PolicySettings(num_layers=0), "num_layers is 0"),
        (lambda: Agent(seed=-1), "seed is -1"),
    ],
)
def test_settings_that_cannot_work_are_refused(make, words):
    with pytest.raises(InputError, match=words):
        make()


def test_a_longer_run_is_a_shorter_one_carried_on(world, tmp_path):
    file = tmp_path / "checkpoint"
    short = replace(SHORT, train=replace(SHORT.train, episodes=10))
    long = replace(SHORT, train=replace(SHORT.train, episodes=20))
    fit(world, short, checkpoint=str(file))
    assert weights(fit(world, long, checkpoint=file)) == weights(fit(world, long))
    with pytest.raises(InputError, match="episode 20, and 10"):
        fit(world, short, checkpoint=file)
    with pytest.raises(InputError, match="its tau differ"):
        fit(world, replace(long, tau=2.0), checkpoint=file)


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
        "settings = replace(SHORT, train=replace(SHORT.train, episodes=1500))\n"
        "agent = fit(World(), settings, checkpoint=Path(sys.argv[2]) if sys.argv[2] else None)\n"
        "agent.save(sys.argv[3])\n"
    )
    tests = str(Path(__file__).parent.parent)

    def start(checkpoint, out):
        return subprocess.Popen([sys.executable, "-c", program, tests, str(checkpoint), str(out)])

    assert start("", tmp_path / "whole").wait() == 0
    rng = np.random.default_rng(0)
    for number in range(5):
        child = start(tmp_path / "checkpoint", tmp_path / "cut")
        begin, before = time.monotonic(), (tmp_path / "checkpoint").stat().st_mtime_ns if number else 0
        while not (tmp_path / "checkpoint").exists() or (tmp_path / "checkpoint").stat().st_mtime_ns == before:
            assert time.monotonic() - begin < 120
            time.sleep(0.05)
        time.sleep(0.3 * rng.random())  # in the midst of training, after its first checkpoint
        assert child.poll() is None
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
    assert start(tmp_path / "checkpoint", tmp_path / "cut").wait() == 0
    assert (tmp_path / "cut").read_bytes() == (tmp_path / "whole").read_bytes()


@pytest.mark.parametrize("preset", list(PRESETS))
def test_every_preset_trains_and_decodes(world, preset):
    settings = replace(PRESETS[preset], candidates=3, train=replace(PRESETS[preset].train, episodes=3))
    # After three episodes paper-random still decides all pairs alike, to match or not, as its first weights do.
    found = fit(world, settings, seed=1).match(world.task())
    assert found.is_one_to_one
    assert len(found) > 0
