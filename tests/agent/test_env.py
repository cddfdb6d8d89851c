"""The environment keeps Gymnasium's contract and plays the same episodes as the compiled path."""

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from rlea.errors import InputError
from rlea.paper.agent import env_vectors
from rlea.paper.deck import label_deck, make_deck, play_deck, rewards
from rlea.paper.env import AlignmentEnv, EnvSettings
from rlea.paper.policy import GraphView


def make_env(world, settings=None, labelled=True, k=4):
    import torch

    candidates = world.candidates(k)
    deck = make_deck(candidates, k)
    if labelled:
        deck = label_deck(deck, candidates, world.gold)
    views = (
        GraphView(world.source, world.embeddings.source, torch.device("cpu")),
        GraphView(world.target, world.embeddings.target, torch.device("cpu")),
    )
    return AlignmentEnv(deck, env_vectors(views, candidates), settings)


@pytest.mark.parametrize("labelled", [True, False])
def test_gymnasium_checker_passes(world, labelled):
    env = make_env(world, labelled=labelled)
    check_env(env, skip_render_check=True)
    assert env.action_space.n == 2


@pytest.mark.parametrize(
    "settings",
    [
        EnvSettings(),
        EnvSettings(curriculum=False),
        EnvSettings(dynamics=False),
        EnvSettings(random_order=True),
        EnvSettings(true_match=2.0, false_mismatch=-1.0, false_match=-0.5, true_mismatch=0.25),
    ],
)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_step_by_step_equals_the_compiled_path(world, settings, seed):
    """The same random numbers give the same pairs, actions and rewards."""
    from dataclasses import replace

    env = make_env(world, settings)
    rng = np.random.default_rng(seed)
    probability = rng.random(len(env.deck), dtype=np.float32)
    draws = rng.random(len(env.deck), dtype=np.float32)
    _, info = env.reset(seed=seed, options={"episode": 3})
    order, skip_draws, skip_rate = env._order, env.skip_draws, env.skip_rate
    pairs, actions, got, done = [], [], [], info["pair"] < 0
    while not done:
        pair = info["pair"]
        action = int(draws[pair] < probability[pair])
        _, reward, done, truncated, info = env.step(action)
        assert not truncated
        pairs.append(pair)
        actions.append(action)
        got.append(reward)
    deck = replace(env.deck, rows=env.deck.rows[order], columns=env.deck.columns[order])
    steps = play_deck(deck, probability[order], skip_rate[order], skip_draws[order], draws[order])
    assert order[steps.pairs].tolist() == pairs
    assert steps.actions.tolist() == actions
    fast = rewards(
        replace(deck, labels=env.deck.labels[order]),
        steps,
        true_match=settings.true_match,
        false_mismatch=settings.false_mismatch,
        false_match=settings.false_match,
        true_mismatch=settings.true_mismatch,
    )
    np.testing.assert_allclose(fast, got, rtol=1e-6)


def test_observation_shows_the_pair_and_its_opponents(world):
    env = make_env(world)
    seen, info = env.reset(seed=0)
    row, column = env.deck.rows[info["pair"]], env.deck.columns[info["pair"]]
    candidates = world.candidates(4)
    np.testing.assert_allclose(seen["source"], world.embeddings.source[candidates.source_ids[row]])
    np.testing.assert_allclose(seen["target"], world.embeddings.target[candidates.target_ids[column]])
    shown = {tuple(np.round(vector, 5)) for vector in seen["opponents"]}
    others = [c for c in candidates.forward_columns[row] if c != column]
    assert shown == {tuple(np.round(world.embeddings.target[candidates.target_ids[c]], 5)) for c in others}


def test_without_labels_there_is_no_reward_and_no_skipping(world):
    env = make_env(world, labelled=False)
    _, info = env.reset(seed=0)
    assert info["pair"] == 0
    assert env.skip_rate.max() == 0
    total, steps, done = 0.0, 0, False
    while not done:
        _, reward, done, _, info = env.step(0)
        total += reward
        steps += 1
    assert total == 0.0
    assert steps == len(env.deck)


def test_best_return_is_known(world):
    """Matching exactly the gold pairs of a fixed deck gives one point for each."""
    env = make_env(world, EnvSettings(dynamics=False))
    _, info = env.reset(seed=0)
    total, done = 0.0, False
    while not done:
        _, reward, done, _, info = env.step(int(env.deck.labels[info["pair"]]))
        total += reward
    assert total == env.deck.labels.sum() == len(world.gold)


def test_same_seed_same_episode(world):
    env = make_env(world)
    runs = []
    for _ in range(2):
        for _ in range(30):  # what was played before does not matter
            env.reset()
        _, info = env.reset(seed=5)
        seen, done = [], False
        while not done:
            seen.append(info["pair"])
            *_, done, _, info = env.step(len(seen) % 2)
        runs.append(seen)
    assert runs[0] == runs[1]


def test_an_episode_always_begins_and_ends_with_a_clear_word(world):
    """Of a tiny deck all pairs may be skipped: the draws are made again. After the end only `reset` makes sense."""
    from dataclasses import replace

    env = make_env(world)
    deck = env.deck
    few = replace(
        deck,
        **{name: getattr(deck, name)[:2] for name in ("rows", "columns", "scores", "places", "labels", "difficulty")},
    )
    env = AlignmentEnv(few, env._vectors, EnvSettings(least_skip_rate=0.9))
    for seed in range(50):
        _, info = env.reset(seed=seed)
        assert info["pair"] in (0, 1)
    done = False
    while not done:
        *_, done, _, _ = env.step(0)
    with pytest.raises(InputError, match="call reset"):
        env.step(0)
    with pytest.raises(InputError, match="every pair is skipped"):
        AlignmentEnv(few, env._vectors, EnvSettings(least_skip_rate=1.0)).reset(seed=0)
