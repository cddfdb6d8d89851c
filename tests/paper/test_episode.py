"""An episode by hand: order, labels, difficulty, skip rates, rewards and returns."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlea.graph import Links
from rlea.paper.episode import (
    EnvSettings,
    PairSequence,
    Steps,
    label_sequence,
    make_sequence,
    play,
    returns,
    rewards,
    skip_rates,
)
from rlea.search.candidates import find_candidates
from rlea.search.embeddings import Embeddings


@pytest.fixture
def candidates():
    """Two sources, three targets: similarities .9 .5 .1 / .8 .7 .2 by construction."""
    scores = np.array([[0.9, 0.5, 0.1], [0.8, 0.7, 0.2]], np.float32)
    embeddings = Embeddings(scores, np.eye(3, dtype=np.float32), measure="inner")
    return find_candidates(embeddings, np.arange(2), np.arange(3), 3)


def labelled(candidates, **more):
    """Gold: source 0 is target 1 (gap .4), source 1 is target 0 (gap 0)."""
    return label_sequence(make_sequence(candidates, 2), candidates, Links.of([0, 1], [1, 0]), **more)


def pairs_in(sequence, chosen=slice(None)):
    return list(zip(sequence.rows[chosen].tolist(), sequence.columns[chosen].tolist(), strict=True))


def test_pairs_come_in_descending_similarity(candidates):
    sequence = make_sequence(candidates, 2)
    assert pairs_in(sequence) == [(0, 0), (1, 0), (1, 1), (0, 1)]
    assert sequence.places.tolist() == [0, 0, 1, 1]
    assert not sequence.is_labelled
    assert len(make_sequence(candidates, 3)) == 6


@pytest.mark.parametrize(
    ("more", "difficulty"),
    [
        ({}, [1.0, 0.0, 0.9, 0.4]),  # correct pairs: the gap; wrong ones: tau (1) minus the gap
        ({"tau": 2.0}, [1.0, 0.0, 0.95, 0.2]),  # 2, 0, 1.9 and .4, rescaled
        ({"best_of": "all"}, [1.0, 0.0, 0.7 / 0.9, 0.3 / 0.9]),  # 1, .1, .8 and .4: gaps from the best of all pairs, .9
    ],
)
def test_difficulty_by_hand(candidates, more, difficulty):
    sequence = labelled(candidates, **more)
    assert sequence.labels.tolist() == [False, True, False, True]
    np.testing.assert_allclose(sequence.difficulty, difficulty, atol=1e-6)


def test_skip_rates_by_hand(candidates):
    sequence, rules = labelled(candidates), EnvSettings()
    np.testing.assert_allclose(skip_rates(sequence, 1, rules), [0.5, 0.2, 0.45, 0.2], atol=1e-6)
    np.testing.assert_allclose(skip_rates(sequence, 3, rules)[0], 0.99**2 * 0.5, atol=1e-6)
    np.testing.assert_allclose(skip_rates(sequence, 1000, rules), 0.2, atol=1e-6)
    np.testing.assert_allclose(skip_rates(sequence, 1, EnvSettings(curriculum=False)), 0.5, atol=1e-6)


def test_a_match_takes_both_entities_out(candidates):
    sequence = make_sequence(candidates, 3)
    yes, never = np.ones(6, np.float32), np.zeros(6, np.float32)
    steps = play(sequence, yes, never, never, never)
    assert pairs_in(sequence, steps.pairs) == [(0, 0), (1, 1)]
    assert steps.actions.tolist() == [1, 1]
    steps = play(sequence, never, never, never, never)
    assert len(steps.pairs) == 6
    assert steps.actions.sum() == 0
    skipped = play(sequence, yes, np.array([1, 0, 0, 0, 0, 0], np.float32), never, never)
    assert pairs_in(sequence, skipped.pairs) == [(1, 0), (0, 1)]


def test_rewards_of_the_four_cases(candidates):
    steps = Steps(np.array([0, 1, 2, 3]), np.array([1, 1, 0, 0], np.int8))
    assert rewards(labelled(candidates), steps, EnvSettings()).tolist() == [0.0, 1.0, 0.0, -10.0]
    prices = EnvSettings(true_match=2.0, false_mismatch=-3.0, false_match=-1.0, true_mismatch=0.5)
    assert rewards(labelled(candidates), steps, prices).tolist() == [-1, 2, 0.5, -3]


def test_returns_by_hand():
    np.testing.assert_allclose(returns(np.array([1.0, 0.0, -10.0, 1.0], np.float32), 0.5), [-1.375, -4.75, -9.5, 1.0])
    assert returns(np.array([], np.float32), 0.5).tolist() == []


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 999))
def test_matches_are_one_to_one_and_every_free_pair_is_decided(num_rows, num_columns, seed):
    rng = np.random.default_rng(seed)
    rows, columns = np.divmod(rng.permutation(num_rows * num_columns), num_columns)
    size, empty = len(rows), np.zeros(0, np.float32)
    sequence = PairSequence(
        rows.astype(np.int32), columns.astype(np.int32), np.zeros(size, np.float32), np.zeros(size, np.int32),
        num_rows, num_columns, empty.astype(np.bool_), empty,
    )  # fmt: skip
    probability, skip, one, two = rng.random((4, size), dtype=np.float32)
    steps = play(sequence, probability, skip, one, two)
    decided = dict(zip(steps.pairs.tolist(), steps.actions.tolist(), strict=True))
    taken_rows, taken_columns = set(), set()
    for i in range(size):
        if len(taken_rows) == min(num_rows, num_columns):
            break
        free = rows[i] not in taken_rows and columns[i] not in taken_columns
        assert (i in decided) == (free and not one[i] < skip[i])
        if decided.get(i) == 1:
            assert two[i] < probability[i]
            taken_rows.add(rows[i])
            taken_columns.add(columns[i])
    assert len(taken_rows) == len(taken_columns) == sum(decided.values())


@pytest.mark.parametrize("seed", [0, 1])
def test_ties_do_not_follow_positions(seed):
    ones = np.ones((50, 2), np.float32)
    candidates = find_candidates(Embeddings(ones, ones), np.arange(50), np.arange(50), 50)
    sequence = make_sequence(candidates, 50, seed)
    yes, never = np.ones(len(sequence), np.float32), np.zeros(len(sequence), np.float32)
    pairs = play(sequence, yes, never, never, never).pairs
    assert (sequence.rows[pairs] == sequence.columns[pairs]).sum() < 8
