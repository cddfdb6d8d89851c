"""The scorer of pairs: where it begins, its arithmetic against numpy and torch, and what is kept of it."""

from dataclasses import replace
from itertools import pairwise

import numba
import numpy as np
import pytest
import torch

from rlea.agent.pair_scorer import BLOCK, ROWS_AT_A_TIME, Adam, PairScorer, ScorerSettings, apply_linear, forward
from rlea.agent.pair_scorer import gradient as gradient_of

SMALL = ScorerSettings(hidden=16, members=2)
SIZES = [1, 7, 8, 9, BLOCK - 1, BLOCK, BLOCK + 3, 2 * BLOCK + 13]


def randomised(width=5, settings=SMALL, seed=0, **more):
    """A scorer with weights of chance in all layers."""
    scorer = PairScorer(width, settings, seed, **more)
    rng = np.random.default_rng(seed + 100)
    scorer.weights[:] = 0.4 * rng.standard_normal(scorer.weights.shape)
    scorer.linear[:] = rng.standard_normal(scorer.linear.shape)
    return scorer


def some_pairs(count, width=5, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((count, width), np.float32), rng.random(count, np.float32)


def layers_of(row, hidden, width):
    """Last bias and weights, second bias and matrix, first bias and matrix; by hand."""
    last_bias, last, second_bias = row[0], row[1 : 1 + hidden], row[1 + hidden : 1 + 2 * hidden]
    second = row[1 + 2 * hidden : 1 + 2 * hidden + hidden**2].reshape(hidden, hidden)
    rest = row[1 + 2 * hidden + hidden**2 :]
    return (
        last_bias,
        last,
        second_bias,
        second,
        rest[:hidden],
        rest[hidden : hidden + width * hidden].reshape(width, -1),
    )


def by_hand(row, hidden, x):
    """The correction of a network in double precision, with matrix products, without padding."""
    last_bias, last, second_bias, second, first_bias, first = (
        np.asarray(part, np.float64) for part in layers_of(row, hidden, x.shape[1])
    )
    one = np.maximum(x.astype(np.float64) @ first + first_bias, 0)
    two = np.maximum(one @ second + second_bias, 0)
    return two @ last + last_bias


# ---- where it begins ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("measured", [False, True])
@pytest.mark.parametrize("bends", [0, 3])
def test_begins_at_the_scaled_priority(measured, bends):
    features, priorities = some_pairs(50)
    scorer = PairScorer(5, replace(SMALL, scale=5.0, offset=0.25, bends=bends), parts=3)
    if measured:
        scorer.measure(features, features[::3])
    np.testing.assert_allclose(scorer.logits(features, priorities), 5.0 * (priorities - 0.25), atol=1e-6)
    for part in range(3):
        np.testing.assert_allclose(scorer.logits(features, priorities, part), 5.0 * (priorities - 0.25), atol=1e-6)
    assert scorer.logits(features[:0], priorities[:0]).shape == (0,)


def test_first_weights_depend_on_the_seed_and_members_differ():
    one, same, other = (PairScorer(5, SMALL, seed, rows=100) for seed in (0, 0, 1))
    assert one.weights.tobytes() == same.weights.tobytes()
    assert not np.array_equal(one.weights, other.weights)
    assert not np.array_equal(one.weights[0], one.weights[1])
    last_bias, last, second_bias, second, first_bias, first = layers_of(one.weights[0], 16, 5)
    assert last_bias == 0
    assert not last.any()
    for part, inputs in ((second_bias, 16), (second, 16), (first_bias, 5), (first, 5)):
        assert 0 < np.abs(part).max() <= 1 / np.sqrt(inputs)


@pytest.mark.parametrize(
    ("rows", "parts", "members"), [(0, 1, 2), (10, 1, 2), (60, 1, 1), (10**6, 1, 1), (10, 3, 6), (10**6, 3, 3)]
)
def test_of_many_examples_a_part_has_fewer_members(rows, parts, members):
    assert len(PairScorer(5, replace(SMALL, most_rows=60), parts=parts, rows=rows).weights) == members


def test_every_part_is_left_out_by_as_many_members():
    scorer = PairScorer(5, SMALL, parts=3)
    assert sorted(map(scorer.left_out, range(6))) == [0, 0, 1, 1, 2, 2]
    assert PairScorer(5, SMALL).left_out(1) == -1


@pytest.mark.parametrize("values", [{"hidden": 0}, {"hidden": 12}, {"members": 0}])
def test_settings_that_make_no_sense_are_refused(values):
    with pytest.raises(ValueError, match="needs a multiple of 8"):
        ScorerSettings(**values)


# ---- inputs ---------------------------------------------------------------------------------------------------------


def test_measure_brings_features_to_one_scale():
    rng = np.random.default_rng(0)
    features = rng.normal(5, 3, (400, 5)).astype(np.float32)
    features[:, 2] = 7  # the same for all: no division by zero
    scorer = PairScorer(5, SMALL)
    scorer.measure(features, features[:10])
    scaled = scorer.inputs(features)
    assert scaled.shape == (400, 8)
    assert not scaled[:, 5:].any()
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-4)
    np.testing.assert_allclose(scaled[:, [0, 1, 3, 4]].std(axis=0), 1, rtol=1e-3)
    assert scorer.spread[2] == pytest.approx(1e-3)


def test_slopes_change_at_quantiles_of_the_true_pairs():
    rng = np.random.default_rng(0)
    features, true = rng.random((300, 2), np.float32), (2 + rng.random((101, 2))).astype(np.float32)
    features = np.concatenate([features, true])
    scorer = PairScorer(2, replace(SMALL, bends=3))
    scorer.measure(features, true)
    np.testing.assert_array_equal(scorer.knots, np.sort(true, axis=0)[[25, 50, 75]])
    above = scorer.inputs(features)[:, 2:8].reshape(-1, 3, 2)
    for number, knot in enumerate(scorer.knots):
        hinge = np.maximum(features - knot, 0)
        np.testing.assert_allclose(above[:, number], (hinge - hinge.mean(0)) / hinge.std(0), rtol=1e-3, atol=1e-4)


def test_without_true_pairs_nothing_bends():
    features, priorities = some_pairs(30)
    scorer = PairScorer(5, replace(SMALL, bends=2))
    scorer.measure(features, features[:0])
    assert not scorer.knots.any()
    assert np.isfinite(scorer.logits(features, priorities)).all()


# ---- arithmetic -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("width", [1, 8, 11])
def test_logits_by_hand_whatever_is_padded(size, width):
    scorer = randomised(width)
    features, priorities = some_pairs(size, width)
    scale, bias, slopes = scorer.linear[:, 0], scorer.linear[:, 1], scorer.linear[:, 2 : 2 + width]
    expected = [
        scale[member] * priorities + bias[member] + features @ slopes[member] + by_hand(row, 16, features)
        for member, row in enumerate(scorer.weights)
    ]
    np.testing.assert_allclose(scorer.logits(features, priorities), np.mean(expected, axis=0), rtol=1e-4, atol=1e-4)


def test_a_part_is_scored_by_members_that_have_not_seen_it():
    scorer, (features, priorities) = randomised(parts=3), some_pairs(30)
    means = []
    for part in range(3):
        members = [member for member in range(6) if scorer.left_out(member) == part]
        alone = randomised()
        alone.linear, alone.weights = scorer.linear[members], scorer.weights[members]
        np.testing.assert_array_equal(scorer.logits(features, priorities, part), alone.logits(features, priorities))
        means.append(alone.logits(features, priorities))
    np.testing.assert_allclose(scorer.logits(features, priorities), np.mean(means, axis=0), rtol=1e-5, atol=1e-6)
    single = randomised()
    np.testing.assert_array_equal(single.logits(features, priorities, 0), single.logits(features, priorities))


def run_member(scorer, features, priorities):
    """The logits of the first member, and its gradient where every error is the priority."""
    inputs = scorer.inputs(features)
    bases = apply_linear(inputs, priorities, scorer.linear[0])
    logits = forward(inputs, bases, scorer.weights[0], 16, np.empty_like(bases))
    return logits, gradient_of(inputs, scorer.weights[0], 16, priorities)


@pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="there is but one thread")
@pytest.mark.parametrize("size", [9, BLOCK, 5 * BLOCK + 3])
def test_one_thread_and_two_give_the_same_bits(size):
    scorer, given = randomised(), some_pairs(size)
    before = numba.get_num_threads()
    found = []
    try:
        for count in (1, 2):
            numba.set_num_threads(count)
            found.append([part.tobytes() for part in run_member(scorer, *given)])
    finally:
        numba.set_num_threads(before)
    assert found[0] == found[1]


@pytest.mark.parametrize("cuts", [(1,), (7, 8, 9), (BLOCK,), (BLOCK - 1, BLOCK + 1, 1030), tuple(range(0, 1300, 100))])
def test_pairs_asked_in_parts_have_the_same_bits(cuts):
    scorer, (features, priorities) = randomised(), some_pairs(1300)
    whole = scorer.logits(features, priorities)
    ends = [0, *cuts, 1300]
    parts = [scorer.logits(features[low:high], priorities[low:high]) for low, high in pairwise(ends)]
    assert np.concatenate(parts).tobytes() == whole.tobytes()
    order = np.random.default_rng(0).permutation(1300)
    assert scorer.logits(features[order], priorities[order]).tobytes() == whole[order].tobytes()


def test_many_pairs_are_scaled_in_parts():
    scorer, (features, priorities) = randomised(), some_pairs(ROWS_AT_A_TIME + 3)
    ends = np.r_[0, ROWS_AT_A_TIME - 1 : ROWS_AT_A_TIME + 3]
    some = scorer.logits(features[ends], priorities[ends])
    np.testing.assert_array_equal(scorer.logits(features, priorities)[ends], some)


def by_torch(row, hidden, x, errors):
    """The same network in torch, in double precision: its gradient in the order of the weights."""
    parts = [torch.tensor(np.array(part), dtype=torch.float64) for part in layers_of(row, hidden, x.shape[1])]
    for part in parts:
        part.requires_grad_()
    last_bias, last, second_bias, second, first_bias, first = parts
    one = torch.relu(torch.from_numpy(x.astype(np.float64)) @ first + first_bias)
    logits = torch.relu(one @ second + second_bias) @ last + last_bias
    (logits * torch.from_numpy(errors.astype(np.float64))).sum().backward()
    return np.concatenate([part.grad.numpy().ravel() for part in parts])


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("width", [3, 8, 11])
def test_the_gradient_is_that_of_torch(size, width):
    scorer = randomised(width)
    features, errors = some_pairs(size, width)
    row = scorer.weights[0]
    found = gradient_of(scorer.inputs(features), row, 16, errors - np.float32(0.5))
    expected = by_torch(row, 16, features, errors - np.float32(0.5))
    assert np.abs(expected).max() > 0.1
    np.testing.assert_allclose(found[: len(expected)], expected, rtol=1e-3, atol=1e-4 * np.abs(expected).max())
    assert not found[len(expected) :].any()  # inputs that are there to fill up an eight


def test_adam_is_torchs():
    rng = np.random.default_rng(0)
    own = rng.standard_normal(20).astype(np.float32)
    other = torch.tensor(own.copy(), requires_grad=True)
    optimiser, theirs = Adam(own, 1e-2, 1e-3), torch.optim.Adam([other], 1e-2, weight_decay=1e-3)
    for _ in range(30):
        slopes = rng.standard_normal(20) + own
        optimiser.step(slopes)
        other.grad = torch.from_numpy(slopes.astype(np.float32))
        theirs.step()
    np.testing.assert_allclose(own, other.detach().numpy(), rtol=1e-4, atol=1e-5)


# ---- keeping --------------------------------------------------------------------------------------------------------


def test_what_was_learned_can_be_put_back():
    features, priorities = some_pairs(40)
    scorer = randomised(settings=replace(SMALL, bends=2), parts=3)
    scorer.measure(features, features[::4])
    again = PairScorer(5, replace(SMALL, bends=2), seed=9, parts=3, rows=10**6)  # with fewer members
    again.load_state({name: array.copy() for name, array in scorer.state().items()})
    assert again.logits(features, priorities).tobytes() == scorer.logits(features, priorities).tobytes()
    assert again.logits(features, priorities, 1).tobytes() == scorer.logits(features, priorities, 1).tobytes()


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("weights", None),
        ("weights", lambda array: array[:-1]),
        ("linear", lambda array: array[0]),
        ("linear", lambda array: array[:, :-8]),
        ("mean", lambda array: array[:4]),
        ("knots", lambda array: array[:1]),
    ],
)
def test_what_is_missing_or_of_another_shape_is_refused(name, change):
    scorer = randomised(settings=replace(SMALL, bends=2), parts=2)
    state = scorer.state()
    if change is None:
        del state[name]
    else:
        state[name] = change(state[name])
    with pytest.raises(ValueError, match=f"{name} is missing or has another shape|the number of members"):
        PairScorer(5, replace(SMALL, bends=2), parts=2).load_state(state)


@pytest.mark.parametrize("unseen", [None, 1])
def test_without_networks_a_logit_is_a_sum_over_features_added_channel_by_channel(unseen):
    scorer = randomised(settings=replace(SMALL, bends=3, epochs=0), parts=3)
    features, priorities = some_pairs(200)
    scorer.measure(features, features[::3])
    assert not scorer.is_linear
    scorer.weights[:] = 0
    assert scorer.is_linear
    logits = np.zeros(200, np.float32)
    for first, stop in ((0, 2), (2, 5)):
        scorer.add_columns(logits, np.ascontiguousarray(features[:, first:stop]), first, unseen)
    scorer.add_priorities(logits, priorities, unseen)
    np.testing.assert_allclose(logits, scorer.logits(features, priorities, unseen), rtol=1e-4, atol=1e-4)
