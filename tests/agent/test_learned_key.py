"""The learned key: where it begins, what it learns from planted truths, by supervision and by reward, and its masks."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from rlea.agent.learned_key import (
    ROWS_AT_A_TIME,
    Examples,
    KeySettings,
    LearnedKey,
    ReinforceSettings,
    Trial,
    play_episode,
    reinforce,
    supervise,
)
from rlea.agent.sight import COLUMNS, GROUPS

WIDTH = len(COLUMNS)
MARK = COLUMNS.index("kind source")  # the column in which truths are planted


def make_key(settings=None, seed=0):
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        return LearnedKey(settings or KeySettings())


def planted(seed=0, num_groups=60, size=5, dangling=0.25):
    """Groups of pairs with random features and keys; the true pair of a group is marked, some groups have none."""
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((num_groups * size, WIDTH)).astype(np.float32)
    keys = rng.normal(0.3, 0.1, num_groups * size).astype(np.float32)
    truths = np.arange(num_groups) * size + rng.integers(0, size, num_groups)
    truths[rng.random(num_groups) < dangling] = -1
    features[:, MARK] = 0
    features[truths[truths >= 0], MARK] = 1
    starts = np.arange(num_groups + 1) * size
    return Examples(features, keys, np.arange(num_groups * size), starts, truths)


@pytest.mark.parametrize("measured", [False, True])
def test_begins_at_the_scaled_key(measured):
    rng = np.random.default_rng(0)
    features, keys = rng.standard_normal((50, WIDTH)).astype(np.float32), rng.random(50).astype(np.float32)
    key = make_key(KeySettings(start_scale=5.0, start_nobody=0.25))
    if measured:
        key.measure(features)
    np.testing.assert_array_equal(key.worth(features, keys), np.float32(5.0) * (keys - np.float32(0.25)))


def test_worth_in_parts_equals_worth_at_once():
    key = make_key()
    torch.nn.init.ones_(key.correction[-1].weight)
    rng = np.random.default_rng(0)
    size = ROWS_AT_A_TIME + 3
    features, keys = rng.standard_normal((size, WIDTH), np.float32), rng.random(size, np.float32)
    ends = np.r_[0, ROWS_AT_A_TIME - 1 : size]
    np.testing.assert_allclose(key.worth(features, keys)[ends], key.worth(features[ends], keys[ends]), rtol=1e-4)
    assert key.worth(features[:0], keys[:0]).shape == (0,)


def test_measure_brings_features_to_one_scale():
    rng = np.random.default_rng(0)
    features = rng.normal(5, 3, (400, WIDTH)).astype(np.float32)
    features[:, 2] = 7  # the same for all: no division by zero
    key = make_key()
    key.measure(features)
    scaled = (features - key.mean.numpy()) / key.spread.numpy()
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-4)
    np.testing.assert_allclose(np.delete(scaled, 2, axis=1).std(axis=0), 1, rtol=1e-3)
    assert key.spread[2] == pytest.approx(1e-3)


def test_the_loss_by_hand_nobody_included():
    """Three groups over four pairs: a truth, nobody, and one in which the same pair stands again."""
    features = np.zeros((4, WIDTH), np.float32)
    keys = np.array([0.55, 0.3, 0.05, 100.3], np.float32)
    examples = Examples(features, keys, np.array([0, 1, 1, 2, 0, 3]), np.array([0, 2, 4, 6]), np.array([0, -1, 3]))
    worth = 8.0 * (keys.astype(float) - 0.3)  # 2, 0, -2, 800
    groups = [
        np.log(1 + np.exp(2) + np.exp(0)) - worth[0],
        np.log(1 + np.exp(0) + np.exp(-2)),
        0.0,  # so far above nobody that there is nothing to lose
    ]
    losses = supervise(make_key(), examples, KeySettings(), 1)
    assert losses[0] == pytest.approx(sum(groups) / 3, rel=1e-4)


def test_supervision_lowers_the_loss_and_puts_the_planted_truth_first():
    examples, fresh = planted(0), planted(1)
    key = make_key()
    key.measure(examples.features)
    losses = supervise(key, examples, KeySettings(), 60)
    assert len(losses) == 60
    assert losses[-1] < losses[0] / 3
    worth = key.worth(fresh.features, fresh.keys).reshape(-1, 5)
    has_truth = fresh.truths >= 0
    assert (worth.argmax(axis=1) == fresh.truths % 5)[has_truth].mean() > 0.95
    assert (worth.max(axis=1)[has_truth] > 0).mean() > 0.9
    assert (worth.max(axis=1)[~has_truth] < 0).mean() > 0.9  # better nobody


def test_supervision_is_reproducible_and_no_epochs_change_nothing():
    examples = planted()
    keys = [make_key() for _ in range(3)]
    for key, epochs in zip(keys, (5, 5, 0), strict=True):
        key.measure(examples.features)
        assert len(supervise(key, examples, KeySettings(), epochs)) == epochs
    worths = [key.worth(examples.features, examples.keys) for key in keys]
    assert worths[0].tobytes() == worths[1].tobytes()
    np.testing.assert_array_equal(worths[2], np.float32(8) * (examples.keys - np.float32(0.3)))


def test_join_shifts_pairs_and_groups():
    first = Examples(
        np.full((2, WIDTH), 1, np.float32),
        np.array([1, 2], np.float32),
        np.array([1, 0]),
        np.array([0, 1, 2]),
        np.array([1, -1]),
    )
    second = Examples(
        np.full((3, WIDTH), 2, np.float32),
        np.array([3, 4, 5], np.float32),
        np.array([0, 2, 1]),
        np.array([0, 3]),
        np.array([2]),
    )
    joined = Examples.join([first, second, first])
    assert joined.keys.tolist() == [1, 2, 3, 4, 5, 1, 2]
    assert joined.features[:, 0].tolist() == [1, 1, 2, 2, 2, 1, 1]
    assert joined.places.tolist() == [1, 0, 2, 4, 3, 6, 5]
    assert joined.starts.tolist() == [0, 1, 2, 5, 6, 7]
    assert joined.truths.tolist() == [1, -1, 4, 6, -1]
    assert supervise(make_key(), joined, KeySettings(), 1)[0] > 0
    alone = Examples.join([second])
    assert alone.starts.tolist() == second.starts.tolist()
    assert alone.truths.tolist() == second.truths.tolist()


def test_the_loss_of_joined_examples_is_the_mean_of_their_groups():
    parts = [planted(0, 10), planted(1, 30)]
    alone = [supervise(make_key(), part, KeySettings(), 1)[0] for part in parts]
    assert supervise(make_key(), Examples.join(parts), KeySettings(), 1)[0] == pytest.approx(
        (10 * alone[0] + 30 * alone[1]) / 40, rel=1e-5
    )


def test_an_episode_by_eye():
    source, target = np.array([0, 0, 1, 1, 2], np.int32), np.array([0, 1, 0, 1, 1], np.int32)
    rewards = np.array([1, -1, -1, 1, -1], np.float32)
    order = np.array([2, 0, 3, 1, 4])
    chances = np.array([0.9, 0.9, 0.4, 0.6, 0.9])
    # Pair 2 is refused, 0 is matched, 3 is matched; 1 and 4 find an entity taken.
    draws = np.array([0.5, 0.5, 0.5, 0.5, 0.5])
    actions, got_source, got_target = play_episode(order, source, target, rewards, chances, draws, 3, 2)
    assert actions.tolist() == [1, -1, 0, 1, -1]
    assert got_source.tolist() == [1, 1, 0]
    assert got_target.tolist() == [1, 1]
    # A lucky draw matches pair 2: only 0-1 is left for source 0, and it loses, too.
    draws = np.array([0.5, 0.5, 0.1, 0.5, 0.5])
    actions, got_source, got_target = play_episode(order, source, target, rewards, chances, draws, 3, 2)
    assert actions.tolist() == [-1, 1, 1, -1, -1]
    assert got_source.tolist() == [-1, -1, 0]
    assert got_target.tolist() == [-1, -1]


def trial(seed=0, size=40, sign=1.0):
    """Every source has two pairs, with its own target and with the next one's; the right ones are marked."""
    rng = np.random.default_rng(seed)
    source = np.repeat(np.arange(size), 2)
    target = np.column_stack([np.arange(size), (np.arange(size) + 1) % size]).ravel()
    right = source == target
    features = 0.1 * rng.standard_normal((2 * size, WIDTH)).astype(np.float32)
    features[:, MARK] = np.where(right, 1, -1)
    keys = rng.normal(0.3, 0.02, 2 * size).astype(np.float32)
    rewards = (sign * np.where(right, 1, -1)).astype(np.float32)
    return Trial(features, keys, source.astype(np.int32), target.astype(np.int32), rewards), right


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_reward_decides_what_is_learned(sign):
    """Nobody has a choice: right pairs become likelier and wrong ones less; with rewards turned round, the reverse."""
    scene, right = trial()
    alone = np.arange(len(right), dtype=np.int32)  # every pair of entities of its own
    scene = replace(scene, source_ids=alone, target_ids=alone, rewards=np.float32(sign) * scene.rewards)
    key = make_key(KeySettings(hidden=16))
    before = key.worth(scene.features, scene.keys)
    history = reinforce(key, [scene], ReinforceSettings(rate=3e-3), 100, seed=0)
    after = key.worth(scene.features, scene.keys)
    assert (sign * (after - before)[right] > 0.5).all()
    assert (sign * (after - before)[~right] < -0.5).all()
    assert history[-1]["reward_undrawn"] == 40 > history[0]["reward_undrawn"]
    assert len(history) == 100


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_rivals_are_told_apart_by_reward(sign):
    """Every entity has a right pair and a wrong one: what is rewarded comes first and is matched in the end."""
    scene, right = trial(sign=sign)
    key = make_key(KeySettings(hidden=16))
    history = reinforce(key, [scene], ReinforceSettings(rate=3e-3), 60, seed=0)
    worth = key.worth(scene.features, scene.keys)
    assert sign * (worth[right].mean() - worth[~right].mean()) > 0.3
    assert history[-1]["aligned_undrawn"] == history[-1]["reward_undrawn"] == 40 > history[0]["reward_undrawn"]


def test_no_reward_no_change():
    scene, _ = trial()
    key = make_key()
    silent = replace(scene, rewards=np.zeros_like(scene.rewards))
    before = key.worth(scene.features, scene.keys)
    reinforce(key, [silent], ReinforceSettings(), 5, seed=0)
    np.testing.assert_array_equal(key.worth(scene.features, scene.keys), before)


def test_reinforcement_is_reproducible_reports_and_takes_trials_in_turn():
    scenes = [trial(0, 10)[0], trial(1, 30)[0]]
    rows, worths = [], []
    for seed in (0, 0, 1):
        key = make_key()
        told = []
        history = reinforce(key, scenes, ReinforceSettings(rate=1e-2), 6, seed, told.append)
        assert told == history
        rows.append(history)
        worths.append(key.worth(scenes[0].features, scenes[0].keys))
    assert rows[0] == rows[1]
    assert worths[0].tobytes() == worths[1].tobytes()
    assert worths[0].tobytes() != worths[2].tobytes()
    lengths = [row["length"] for row in rows[0]]
    assert max(lengths[::2]) <= 20 < min(lengths[1::2])


@pytest.mark.parametrize("group", list(GROUPS))
def test_groups_that_are_not_seen_do_not_count(group):
    settings = KeySettings(without=(group,))
    examples = planted()
    key = make_key(settings)
    key.measure(examples.features)
    supervise(key, examples, settings, 20)
    hidden = [COLUMNS.index(name) for name in GROUPS[group]]
    rng = np.random.default_rng(5)
    changed, other = examples.features.copy(), examples.features.copy()
    changed[:, hidden] = rng.normal(0, 10, (len(changed), len(hidden)))
    rest = [column for column in range(WIDTH) if column not in hidden]
    other[:, rest] += 1
    worth = key.worth(examples.features, examples.keys)
    np.testing.assert_array_equal(key.worth(changed, examples.keys), worth)
    assert not np.allclose(key.worth(other, examples.keys), worth)
    if MARK in hidden:  # the planted truth cannot be found any more
        first = key.worth(planted(1).features, planted(1).keys).reshape(-1, 5).argmax(axis=1)
        assert (first == planted(1).truths % 5)[planted(1).truths >= 0].mean() < 0.5


def test_unknown_groups_are_refused():
    with pytest.raises(ValueError, match="no such group of features: evidense"):
        KeySettings(without=("evidense", "kind"))
