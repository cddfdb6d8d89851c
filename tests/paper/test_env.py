"""The environment keeps Gymnasium's contract and plays the same episodes as the compiled path."""

from dataclasses import replace

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from rlea.errors import InputError
from rlea.paper.env import AlignmentEnv, PoolVectors
from rlea.paper.episode import EnvSettings, label_sequence, make_sequence, play, rewards


def make_env(world, settings=None, labelled=True, k=4):
    candidates = world.candidates(k)
    sequence = make_sequence(candidates, k)
    if labelled:
        sequence = label_sequence(sequence, candidates, world.gold)
    return AlignmentEnv(sequence, PoolVectors.of(*world.views(), candidates), settings)


def run(env, choose, **start):
    """One episode: pairs, actions and rewards; `choose` is given a pair and the number of the step."""
    _, info = env.reset(**start)
    steps, done = [], info["pair"] < 0
    while not done:
        pair = info["pair"]
        action = int(choose(pair, len(steps)))
        _, reward, done, truncated, info = env.step(action)
        assert not truncated
        steps.append((pair, action, reward))
    return tuple(zip(*steps, strict=True))


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
def test_step_by_step_equals_the_compiled_path(world, settings):
    """The same random numbers give the same pairs, actions and rewards."""
    env = make_env(world, settings)
    for seed in range(3):
        probability, draws = np.random.default_rng(seed).random((2, len(env.sequence)), dtype=np.float32)
        start = {"seed": seed, "options": {"episode": 3}}
        pairs, actions, got = run(env, lambda pair, _: draws[pair] < probability[pair], **start)  # noqa: B023
        order = env._order
        whole = env.sequence
        sequence = replace(whole, rows=whole.rows[order], columns=whole.columns[order], labels=whole.labels[order])
        steps = play(sequence, *(one[order] for one in (probability, env.skip_rate, env.skip_draws, draws)))
        assert order[steps.pairs].tolist() == list(pairs)
        assert steps.actions.tolist() == list(actions)
        np.testing.assert_allclose(rewards(sequence, steps, settings), got, rtol=1e-6)


def test_observation_shows_the_pair_and_its_opponents(world):
    env = make_env(world)
    seen, info = env.reset(seed=0)
    row, column = env.sequence.rows[info["pair"]], env.sequence.columns[info["pair"]]
    candidates = world.candidates(4)
    np.testing.assert_allclose(seen["source"], world.embeddings.source[candidates.source_ids[row]])
    np.testing.assert_allclose(seen["target"], world.embeddings.target[candidates.target_ids[column]])
    shown = {tuple(np.round(vector, 5)) for vector in seen["opponents"]}
    others = [c for c in candidates.forward_columns[row] if c != column]
    assert shown == {tuple(np.round(world.embeddings.target[candidates.target_ids[c]], 5)) for c in others}


def test_without_labels_there_is_no_reward_and_no_skipping(world):
    env = make_env(world, labelled=False)
    pairs, _, got = run(env, lambda pair, step: 0, seed=0)
    assert list(pairs) == list(range(len(env.sequence)))
    assert not any(got)


def test_best_return_is_known(world):
    """Matching exactly the gold pairs gives one point for each, if nothing is skipped."""
    env = make_env(world, EnvSettings(dynamics=False))
    _, _, got = run(env, lambda pair, step: env.sequence.labels[pair], seed=0)
    assert sum(got) == env.sequence.labels.sum() == len(world.gold)


def test_same_seed_same_episode(world):
    env = make_env(world)
    first = run(env, lambda pair, step: step % 2, seed=5)
    for _ in range(30):  # what was played before does not matter
        env.reset()
    assert run(env, lambda pair, step: step % 2, seed=5) == first


def test_an_episode_always_begins_and_ends_with_a_clear_word(world):
    """All pairs of a tiny sequence may be skipped: the draws are made again. After the end only `reset` makes sense."""
    env = make_env(world)
    names = ("rows", "columns", "scores", "places", "labels", "difficulty")
    few = replace(env.sequence, **{name: getattr(env.sequence, name)[:2] for name in names})
    vectors = env._vectors
    env = AlignmentEnv(few, vectors, EnvSettings(least_skip_rate=0.9))
    for seed in range(50):
        pairs, _, _ = run(env, lambda pair, step: 0, seed=seed)
        assert pairs[0] in (0, 1)
    with pytest.raises(InputError, match="call reset"):
        env.step(0)
    with pytest.raises(InputError, match="every pair is skipped"):
        AlignmentEnv(few, vectors, EnvSettings(least_skip_rate=1.0)).reset(seed=0)
