"""The deck: order, labels, difficulty, skip rates, rewards and returns, each by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlea.graph import Links
from rlea.paper.deck import Deck, Steps, label_deck, make_deck, play_deck, returns, rewards, skip_rates
from rlea.search.candidates import find_candidates
from rlea.search.embeddings import Embeddings


def small():
    """Two sources, three targets: similarities .9 .5 .1 / .8 .7 .2 by construction."""
    scores = np.array([[0.9, 0.5, 0.1], [0.8, 0.7, 0.2]], np.float32)
    embeddings = Embeddings(scores, np.eye(3, dtype=np.float32), measure="inner")
    return find_candidates(embeddings, np.arange(2), np.arange(3), 3)


def test_pairs_come_in_descending_similarity():
    deck = make_deck(small(), 2)
    assert list(zip(deck.rows.tolist(), deck.columns.tolist(), strict=True)) == [(0, 0), (1, 0), (1, 1), (0, 1)]
    assert deck.places.tolist() == [0, 0, 1, 1]
    assert not deck.is_labelled
    assert len(make_deck(small(), 3)) == 6


def test_difficulty_by_hand():
    """Gold: source 0 is target 1 (gap .4), source 1 is target 0 (gap 0). tau = 1."""
    candidates = small()
    deck = label_deck(make_deck(candidates, 2), candidates, Links.of([0, 1], [1, 0]))
    assert deck.labels.tolist() == [False, True, False, True]
    raw = np.array([1.0, 0.0, 1.0 - 0.1, 0.4])  # right pairs: the gap; wrong ones: tau minus the gap
    np.testing.assert_allclose(deck.difficulty, raw, atol=1e-6)
    # The authors' program measures from the best of all pairs (.9).
    other = label_deck(make_deck(candidates, 2), candidates, Links.of([0, 1], [1, 0]), best_of="all")
    raw = np.array([1.0, 0.1, 1.0 - 0.2, 0.4])
    np.testing.assert_allclose(other.difficulty, (raw - 0.1) / 0.9, atol=1e-6)


def test_difficulty_with_another_tau_is_rescaled():
    candidates = small()
    deck = label_deck(make_deck(candidates, 2), candidates, Links.of([0, 1], [1, 0]), tau=2.0)
    raw = np.array([2.0, 0.0, 1.9, 0.4])
    np.testing.assert_allclose(deck.difficulty, raw / 2.0, atol=1e-6)


def test_skip_rates_by_hand():
    candidates = small()
    deck = label_deck(make_deck(candidates, 2), candidates, Links.of([0, 1], [1, 0]))
    np.testing.assert_allclose(skip_rates(deck, 1), [0.5, 0.2, 0.45, 0.2], atol=1e-6)
    np.testing.assert_allclose(skip_rates(deck, 3)[0], 0.99**2 * 0.5, atol=1e-6)
    np.testing.assert_allclose(skip_rates(deck, 1000), 0.2, atol=1e-6)
    np.testing.assert_allclose(skip_rates(deck, 1, curriculum=False), 0.5, atol=1e-6)


def test_a_match_takes_both_entities_out():
    deck = make_deck(small(), 3)
    yes, never = np.ones(6, np.float32), np.zeros(6, np.float32)
    steps = play_deck(deck, yes, never, never, never)
    assert [(deck.rows[i], deck.columns[i]) for i in steps.pairs] == [(0, 0), (1, 1)]
    assert steps.actions.tolist() == [1, 1]
    steps = play_deck(deck, never, never, never, never)
    assert len(steps.pairs) == 6
    assert steps.actions.sum() == 0
    skipped = play_deck(deck, yes, np.array([1, 0, 0, 0, 0, 0], np.float32), never, never)
    assert [(deck.rows[i], deck.columns[i]) for i in skipped.pairs] == [(1, 0), (0, 1)]


def test_rewards_of_the_four_cases():
    candidates = small()
    deck = label_deck(make_deck(candidates, 2), candidates, Links.of([0, 1], [1, 0]))
    steps = Steps(np.array([0, 1, 2, 3]), np.array([1, 1, 0, 0], np.int8))
    assert rewards(deck, steps).tolist() == [0.0, 1.0, 0.0, -10.0]
    assert rewards(deck, steps, true_match=2.0, false_mismatch=-3.0, false_match=-1.0, true_mismatch=0.5).tolist() == [
        -1,
        2,
        0.5,
        -3,
    ]


def test_returns_by_hand():
    np.testing.assert_allclose(returns(np.array([1.0, 0.0, -10.0, 1.0], np.float32), 0.5), [-1.375, -4.75, -9.5, 1.0])
    assert returns(np.array([], np.float32), 0.5).tolist() == []


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 999))
def test_matches_are_one_to_one_and_every_free_pair_is_decided(num_rows, num_columns, seed):
    rng = np.random.default_rng(seed)
    rows, columns = np.divmod(rng.permutation(num_rows * num_columns), num_columns)
    size = len(rows)
    deck = Deck(
        rows.astype(np.int32), columns.astype(np.int32), np.zeros(size, np.float32), np.zeros(size, np.int32),
        num_rows, num_columns, np.zeros(0, np.bool_), np.zeros(0, np.float32),
    )  # fmt: skip
    probability, skip, one, two = rng.random((4, size), dtype=np.float32)
    steps = play_deck(deck, probability, skip, one, two)
    matched = steps.pairs[steps.actions == 1]
    assert len(set(rows[matched])) == len(set(columns[matched])) == len(matched)
    taken_rows, taken_columns, decided = (
        set(),
        set(),
        dict(zip(steps.pairs.tolist(), steps.actions.tolist(), strict=True)),
    )
    for i in range(size):
        if len(matched) and len(taken_rows) == min(num_rows, num_columns):
            break
        free = rows[i] not in taken_rows and columns[i] not in taken_columns
        assert (i in decided) == (free and not one[i] < skip[i])
        if decided.get(i) == 1:
            taken_rows.add(rows[i])
            taken_columns.add(columns[i])


@pytest.mark.parametrize("seed", [0, 1])
def test_ties_in_the_deck_do_not_follow_positions(seed):
    ones = np.ones((50, 2), np.float32)
    candidates = find_candidates(Embeddings(ones, ones), np.arange(50), np.arange(50), 50)
    deck = make_deck(candidates, 50, seed)
    yes, never = np.ones(len(deck), np.float32), np.zeros(len(deck), np.float32)
    pairs = play_deck(deck, yes, never, never, never).pairs
    assert (deck.rows[pairs] == deck.columns[pairs]).sum() < 8
