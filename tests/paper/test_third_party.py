"""Other people's learners play the game: the environment is Gymnasium's, not only ours."""

from contextlib import contextmanager

import numpy as np
import pytest
import torch

from rlea.paper.episode import EnvSettings

from .conftest import World
from .test_env import make_env


@contextmanager
def one_thread():
    """PPO asks for one decision at a time: threads that share so little wait for each other longer than they work."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def mean_reward(env, choose, episodes):
    """Mean sum of the rewards of an episode."""
    totals = []
    for number in range(episodes):
        seen, _ = env.reset(seed=number)
        total, done = 0.0, False
        while not done:
            seen, reward, done, _, _ = env.step(choose(seen))
            total += reward
        totals.append(total)
    return float(np.mean(totals))


@pytest.mark.slow
def test_ppo_learns_what_chance_does_not():
    """A wrong match costs a point and the mark gives it away: the best is one point for every source."""
    algorithms = pytest.importorskip("stable_baselines3", reason="stable-baselines3 is missing: pip install 'rlea[rl]'")
    world = World(size=20)
    prices = {"false_mismatch": -1.0, "false_match": -1.0}
    exercise = make_env(world, EnvSettings(**prices), k=2)
    exam = make_env(world, EnvSettings(**prices, dynamics=False), k=2)
    best = len(world.gold)
    assert exam.sequence.labels.sum() == best
    with one_thread():
        learner = algorithms.PPO(
            "MultiInputPolicy",
            exercise,
            n_steps=512,
            learning_rate=0.001,
            gamma=0.5,  # what a decision brings comes at once, or with the same source's other pair
            seed=0,
            device="cpu",
        )
        learner.learn(6 * 1024)
        learned = mean_reward(exam, lambda seen: int(learner.predict(seen, deterministic=True)[0]), 1)
    rng = np.random.default_rng(0)
    by_chance = mean_reward(exam, lambda seen: int(rng.integers(2)), 50)
    assert by_chance < 0
    assert learned > 0.8 * best
