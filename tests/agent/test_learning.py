"""Learning to score pairs: planted truths, losses by hand, Newton's answer, and who has seen what."""

from dataclasses import replace

import numpy as np
import pytest

from rlea.agent import learning
from rlea.agent.learning import Examples, all_and_true, fit_linear, supervise
from rlea.agent.pair_scorer import PairScorer, ScorerSettings

WIDTH = 21
MARK = 11  # the column in which truths are planted
SMALL = ScorerSettings(hidden=16, members=1, epochs=20, scale=8.0, offset=0.3)


def planted(seed=0, num_groups=60, size=5, dangling=0.25):
    """Groups of pairs with random features; the true pair of a group is marked, some groups have none."""
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((num_groups * size, WIDTH)).astype(np.float32)
    priorities = rng.normal(0.3, 0.1, num_groups * size).astype(np.float32)
    truths = np.arange(num_groups) * size + rng.integers(0, size, num_groups)
    truths[rng.random(num_groups) < dangling] = -1
    features[:, MARK] = 0
    features[truths[truths >= 0], MARK] = 1
    starts = np.arange(num_groups + 1) * size
    return Examples(features, priorities, np.arange(num_groups * size), starts, truths)


def bent(seed=0, num_groups=120, size=4):
    """No slope tells the true pairs: two columns have the same sign there, and else opposite signs."""
    rng = np.random.default_rng(seed)
    given = planted(seed, num_groups, size, dangling=0.0)
    features = 0.1 * given.features
    signs = np.where(rng.random(len(features)) < 0.5, 1, -1)
    other = -signs
    other[given.truths] = signs[given.truths]
    features[:, 0], features[:, 1], features[:, MARK] = signs, other, 0
    return replace(given, features=features)


def fresh(settings=SMALL, seed=0, **more):
    """A scorer that has learned nothing and takes features as they are."""
    return PairScorer(WIDTH, settings, seed, **more)


def trained(parts, settings=SMALL, seed=0):
    """A scorer that has learned from parts, and its losses."""
    scorer = fresh(settings, seed, parts=len(parts))
    scorer.measure(*all_and_true(parts))
    return scorer, supervise(scorer, parts)


def share_first(scorer, examples, unseen=None):
    """How often the true pair of a group is put first, where there is one."""
    size = int(examples.starts[1])
    logits = scorer.logits(examples.features, examples.priorities, unseen).reshape(-1, size)
    has_truth = examples.truths >= 0
    return (logits.argmax(axis=1) == examples.truths % size)[has_truth].mean()


# ---- examples -------------------------------------------------------------------------------------------------------


def test_join_shifts_pairs_and_groups():
    def make(priorities, places, starts, truths, mark):
        features = np.full((len(priorities), WIDTH), mark, np.float32)
        return Examples(features, np.array(priorities, np.float32), *map(np.array, (places, starts, truths)))

    first, second = make([1, 2], [1, 0], [0, 1, 2], [1, -1], 1), make([3, 4, 5], [0, 2, 1], [0, 3], [2], 2)
    none = first.some(np.zeros(2, np.bool_))
    joined = Examples.join([none, first, second, none, first])
    assert joined.priorities.tolist() == [1, 2, 3, 4, 5, 1, 2]
    assert joined.features[:, 0].tolist() == [1, 1, 2, 2, 2, 1, 1]
    assert joined.places.tolist() == [1, 0, 2, 4, 3, 6, 5]
    assert joined.starts.tolist() == [0, 1, 2, 5, 6, 7]
    assert joined.truths.tolist() == [1, -1, 4, 6, -1]
    assert supervise(fresh(), [joined])[0]["loss"] > 0


def test_some_groups_keep_their_pairs():
    """Pairs 0 to 4; the third stands in two groups."""
    features = np.arange(5, dtype=np.float32)[:, None]
    groups = np.array([4, 2, 0, 2, 3]), np.array([0, 2, 3, 5])
    given = Examples(features, 10 * features[:, 0], *groups, np.array([2, -1, 3]))
    some = given.some(np.array([True, False, True]))
    assert some.priorities.tolist() == [20, 30, 40]
    assert some.features[some.places, 0].tolist() == [4, 2, 2, 3]
    assert some.starts.tolist() == [0, 2, 4]
    assert some.priorities[some.truths].tolist() == [20, 30]
    some.features[:] = -1
    assert features.min() == 0  # a copy
    none = given.some(np.zeros(3, np.bool_))
    assert (len(none.priorities), none.starts.tolist(), len(none.truths)) == (0, [0], 0)
    every, unmatched = given.some(np.ones(3, np.bool_)), given.some(np.array([False, True, False]))
    assert every.features[every.places, 0].tolist() == [4, 2, 0, 2, 3]
    assert unmatched.truths.tolist() == [-1]


# ---- supervision ----------------------------------------------------------------------------------------------------


def test_the_loss_by_hand_no_match_included():
    """Three groups over four pairs: a truth, no match, and one in which the same pair stands again."""
    features = np.zeros((4, WIDTH), np.float32)
    priorities = np.array([0.55, 0.3, 0.05, 100.3], np.float32)
    ends = np.array([0, 1, 1, 2, 0, 3]), np.array([0, 2, 4, 6])
    examples = Examples(features, priorities, *ends, np.array([0, -1, 3]))
    logits = 8.0 * (priorities.astype(float) - 0.3)  # 2, 0, -2, 800
    groups = [
        np.log(1 + np.exp(2) + np.exp(0)) - logits[0],
        np.log(1 + np.exp(0) + np.exp(-2)),
        0.0,  # so far above no match that there is nothing to lose
    ]
    held = replace(SMALL, prior=1e12, epochs=1)  # the linear part stays where it begins
    losses = supervise(fresh(held), [examples])
    assert losses[0]["loss"] == pytest.approx(sum(groups) / 3, rel=1e-4)
    # Derivatives by the logits: chances, summed over groups, less one where the pair is right.
    logits, errors = logits.astype(np.float32), np.empty(4, np.float32)
    own = (examples.places, examples.starts, examples.truths)
    assert learning._softmax_errors(logits, *own, errors) == pytest.approx(sum(groups), rel=1e-5)
    chances = np.exp([2, 0, 0, -2]) / np.repeat([1 + np.exp(2) + 1, 1 + 1 + np.exp(-2)], 2)
    np.testing.assert_allclose(errors, [chances[0] - 1, chances[1] + chances[2], chances[3], 0], atol=1e-6)


def test_supervision_lowers_the_loss_and_puts_the_planted_truth_first():
    examples, others = planted(0), planted(1)
    before = fresh()
    scorer, losses = trained([examples])
    assert [row["epoch"] for row in losses] == list(range(1, 21))
    assert losses[-1]["loss"] < losses[0]["loss"] < 1.0
    assert share_first(before, others) < 0.5
    assert share_first(scorer, others) > 0.95
    logits = scorer.logits(others.features, others.priorities).reshape(-1, 5)
    has_truth = others.truths >= 0
    assert (logits.max(axis=1)[has_truth] > 0).mean() > 0.9
    assert (logits.max(axis=1)[~has_truth] < 0).mean() > 0.9  # better no match


@pytest.mark.parametrize("bends", [0, 3])
def test_slopes_alone_find_a_planted_truth(bends):
    scorer, losses = trained([planted(0)], replace(SMALL, epochs=0, bends=bends))
    assert len(losses) == 1
    assert share_first(scorer, planted(1)) > 0.95


def test_networks_find_what_no_slope_can_separate():
    parts = [bent(seed, 120) for seed in range(3)]
    straight, _ = trained(parts, replace(SMALL, epochs=0))
    curved, losses = trained(parts, replace(SMALL, epochs=80, rate=1e-2))
    assert share_first(straight, bent(7)) < 0.5
    assert share_first(curved, bent(7)) > 0.9
    assert losses[-1]["loss"] < losses[0]["loss"] / 2


def test_bends_find_what_is_true_in_the_middle():
    """A feature that is 0.5 of true pairs, and near 0 or 1 of others."""
    rng = np.random.default_rng(0)
    given = planted(0, 200, dangling=0.0)
    features = 0.1 * given.features
    features[:, MARK] = 0
    features[:, 0] = np.where(rng.random(len(features)) < 0.5, 0.0, 1.0) + rng.normal(0, 0.1, len(features))
    features[given.truths, 0] = rng.normal(0.5, 0.1, len(given.truths))
    examples = replace(given, features=features)
    assert share_first(trained([examples], replace(SMALL, epochs=0))[0], examples) < 0.5
    assert share_first(trained([examples], replace(SMALL, epochs=0, bends=3))[0], examples) > 0.9


def test_supervision_is_reproducible_and_depends_on_the_seed():
    parts = [planted(seed, 30) for seed in range(2)]
    scorers = [trained(parts, replace(SMALL, members=2), seed)[0] for seed in (0, 0, 1)]
    found = [scorer.logits(parts[0].features, parts[0].priorities).tobytes() for scorer in scorers]
    assert found[0] == found[1] != found[2]
    assert scorers[0].linear.tobytes() == scorers[2].linear.tobytes()  # what is convex does not


def test_no_examples_change_nothing():
    none = planted(0, 0)
    scorer = fresh(parts=2)
    before = {name: array.copy() for name, array in scorer.state().items()}
    assert supervise(scorer, [none, none]) == []
    for name, array in scorer.state().items():
        np.testing.assert_array_equal(array, before[name])


def test_a_part_without_examples_is_no_hindrance():
    """Its member learns from the others, to the last epoch; those who would ask it about theirs learn as well."""
    none, some = planted(0, 0), planted(0)
    scorer, losses = trained([some, none, planted(2)])
    assert len(losses) == 20
    for unseen in range(3):
        assert share_first(scorer, planted(1), unseen) > 0.9


# ---- who has seen what ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epochs", [0, 5])
def test_a_member_never_saw_the_part_that_it_leaves_out(epochs):
    """The left-out part is changed: its members keep their slopes to the last bit, and the others do not."""
    parts = [planted(seed, 30) for seed in range(3)]
    settings = replace(SMALL, members=2, epochs=epochs, patience=100)
    scorer = fresh(settings, parts=3)
    again = fresh(settings, parts=3)
    supervise(scorer, parts)
    rng = np.random.default_rng(0)
    changed = replace(
        parts[1],
        features=parts[1].features + rng.standard_normal(parts[1].features.shape, np.float32),
        truths=np.roll(parts[1].truths, 1) % len(parts[1].priorities),
    )
    supervise(again, [parts[0], changed, parts[2]])
    for member in range(len(scorer.linear)):
        same = scorer.left_out(member) == 1
        assert (scorer.linear[member].tobytes() == again.linear[member].tobytes()) == same
    asked = [one.logits(parts[1].features, parts[1].priorities, 1) for one in (scorer, again)]
    if not epochs:
        assert asked[0].tobytes() == asked[1].tobytes()
    others = [one.logits(parts[0].features, parts[0].priorities, 0) for one in (scorer, again)]
    assert not np.array_equal(*others)


def test_answers_that_are_noise_are_known_only_to_members_that_saw_them():
    """Truths at random: whoever has learned them knows them, whoever has not draws lots."""
    rng = np.random.default_rng(0)
    parts = []
    for seed in range(3):
        part = planted(seed, 12, dangling=0.0)
        part.features[:, MARK] = 0
        parts.append(replace(part, truths=np.arange(12) * 5 + rng.integers(0, 5, 12)))
    scorer, _ = trained(parts, replace(SMALL, prior=0.01, epochs=0))
    seen = np.mean([share_first(scorer, part) for part in parts])
    unseen = np.mean([share_first(scorer, part, number) for number, part in enumerate(parts)])
    assert seen > 0.5
    assert unseen < 0.35  # one in five


def test_training_stops_where_the_left_out_part_is_scored_best(monkeypatch):
    """The held-out loss of every epoch is that of the weights kept, or more, and few epochs follow the best."""
    parts = [bent(seed, 30) for seed in range(2)]
    settings = replace(SMALL, epochs=200, rate=3e-2, patience=7)
    seen = []
    train = learning._train

    def watch(weights, learned, asked, settings):
        losses = train(weights, learned, asked, settings)
        (batch,) = asked
        seen.append((losses, batch.loss(weights) / batch.num_groups))
        return losses

    monkeypatch.setattr(learning, "_train", watch)
    _, rows = trained(parts, settings)
    assert len(seen) == 2
    for losses, kept in seen:
        asked = [row[1] for row in losses]
        assert len(losses) < 200  # it did stop
        assert kept == min(asked)
        assert len(losses) - 1 - int(np.argmin(asked)) == 6  # the seventh is not learned from any more
        assert losses[-1][0] < losses[0][0]
    assert len(rows) == max(len(losses) for losses, _ in seen)
    assert rows[0]["held_out_loss"] == pytest.approx(np.mean([losses[0][1] for losses, _ in seen]))


def test_the_last_step_counts_if_it_is_the_best():
    """One epoch: weights before its step and after it are compared."""
    parts = [bent(seed, 200) for seed in range(2)]
    short, _ = trained(parts, replace(SMALL, epochs=1, rate=1e-2))
    harmful, _ = trained(parts, replace(SMALL, epochs=1, rate=100.0))
    start = fresh(parts=2).weights
    assert not np.array_equal(short.weights, start)
    np.testing.assert_array_equal(harmful.weights, start)


# ---- the linear part ------------------------------------------------------------------------------------------------


def batches_of(scorer, parts):
    return [learning._Batch(scorer, part) for part in parts]


def penalised(linear, start, parts, prior):
    """Loss and slopes by hand, in double precision."""
    moved = linear - start
    loss, slopes = 0.5 * prior * moved @ moved, prior * moved
    for part in parts:
        rows = np.column_stack([part.priorities, np.ones(len(part.priorities)), part.features]).astype(np.float64)
        for low, high, truth in zip(part.starts[:-1], part.starts[1:], part.truths, strict=True):
            own = rows[part.places[low:high]]
            logits = np.append(own @ linear, 0.0)
            chances = np.exp(logits - logits.max())
            loss += logits.max() + np.log(chances.sum())
            chances /= chances.sum()
            slopes = slopes + chances[:-1] @ own
            if truth >= 0:
                loss -= rows[truth] @ linear
                slopes = slopes - rows[truth]
    return loss, slopes


@pytest.mark.parametrize("prior", [0.1, 10.0])
def test_newton_reaches_the_one_answer(prior):
    """No slope is left, and no step in any direction is better."""
    parts = [planted(0, 80), planted(1, 40)]
    scorer = PairScorer(WIDTH, ScorerSettings(scale=8.0, offset=0.3))
    start = scorer.linear[0].copy()
    found = start.copy()
    fit_linear(found, batches_of(scorer, parts), prior)
    used = 2 + WIDTH
    assert not found[used:].any()
    before, slopes_before = penalised(start[:used], start[:used], parts, prior)
    loss, slopes = penalised(found[:used], start[:used], parts, prior)
    assert loss < before / 1.5
    assert np.abs(slopes).max() < 1e-3 * np.abs(slopes_before).max()
    rng = np.random.default_rng(0)
    for _ in range(20):
        way = rng.standard_normal(used)
        assert penalised(found[:used] + 0.01 * way, start[:used], parts, prior)[0] > loss
    # From elsewhere the same answer, if the prior stays where it is: from the answer, nothing moves far.
    again = found.copy()
    fit_linear(again, batches_of(scorer, parts), 1e6)
    np.testing.assert_allclose(again, found, atol=1e-3)


def test_the_answer_does_not_depend_on_the_order_of_groups():
    given = planted(0, 200)
    scorer = PairScorer(WIDTH, ScorerSettings(scale=8.0, offset=0.3))
    order = np.random.default_rng(0).permutation(200)
    rows = (5 * order[:, None] + np.arange(5)).ravel()
    place = np.empty(1000, np.int64)
    place[rows] = np.arange(1000)
    truths = np.where(given.truths[order] < 0, -1, place[given.truths[order]])
    mixed = replace(given, features=given.features[rows], priorities=given.priorities[rows], truths=truths)
    found = []
    for parts in ([given], [mixed], [given.some(order < 70), given.some(order >= 70)]):
        linear = scorer.linear[0].copy()
        fit_linear(linear, batches_of(scorer, parts), 10.0)
        found.append(linear)
    np.testing.assert_allclose(found[1], found[0], atol=1e-6)
    np.testing.assert_allclose(found[2], found[0], atol=1e-6)


def test_equal_columns_share_their_weight():
    """Without the prior there would be many answers."""
    given = planted(0)
    given.features[:, 0] = given.features[:, MARK]
    scorer = PairScorer(WIDTH, ScorerSettings())
    linear = scorer.linear[0]
    fit_linear(linear, batches_of(scorer, [given]), 1.0)
    assert linear[2] == pytest.approx(linear[2 + MARK], rel=1e-5)
    assert linear[2] > 1


def test_huge_priorities_do_not_break_newton():
    given = planted(0)
    scorer = PairScorer(WIDTH, ScorerSettings(scale=1e4, offset=0.3))
    linear = scorer.linear[0]
    before = linear.copy()
    fit_linear(linear, batches_of(scorer, [given]), 1.0)
    assert np.isfinite(linear).all()
    used = 2 + WIDTH
    losses = [penalised(x[:used], before[:used], [given], 1.0)[0] for x in (before, linear)]
    assert losses[1] < losses[0]
