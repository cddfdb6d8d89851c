"""The contract of a channel: score tables, mutual-best pairs, features of pairs, and joined proposals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planted import make_channel, make_pairs, make_table, rows_of
from rlea.evidence.channel import ScoreTable, describe_pairs, join_proposals, silent_channel
from rlea.search.pairs import Pairs

SCORES = st.dictionaries(
    st.tuples(st.integers(0, 6), st.integers(0, 6)), st.sampled_from([0.0, 0.25, 0.5, 1.0]), max_size=20
)


@given(SCORES, st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=30), st.sampled_from([0.0, -1.0]))
@settings(max_examples=60, deadline=None)
def test_a_table_has_its_own_scores_and_a_default_for_other_pairs(scores, wanted, default):
    asked = Pairs(np.array([s for s, _ in wanted], np.int32), np.array([t for _, t in wanted], np.int32))
    assert make_table(scores, default)(asked).tolist() == [scores.get(pair, default) for pair in wanted]


def test_a_table_wants_a_score_for_every_pair():
    """A pair that is given twice is one pair, and would shift the scores of all that follow."""
    pairs = Pairs.of(np.array([0, 0, 1]), np.array([0, 0, 1]))
    with pytest.raises(ValueError, match="2 pairs have 3 scores"):
        ScoreTable(pairs, np.ones(3, np.float32))


@given(SCORES)
@settings(max_examples=60, deadline=None)
def test_a_mutual_best_pair_is_above_zero_and_above_all_others_of_its_entities(scores):
    for pair, found in zip(sorted(scores), make_channel("names", scores).is_best(), strict=True):
        rivals = [scores[other] for other in scores if other != pair and (other[0] == pair[0] or other[1] == pair[1])]
        assert found == (scores[pair] > 0 and all(scores[pair] > rival for rival in rivals))


def test_features_are_scores_and_leads():
    names = make_channel("names", {(0, 0): 1.0, (0, 1): 0.25, (1, 1): 0.5})
    words = make_channel("words", {(1, 0): 0.75}, "words around")
    pairs = make_pairs([(0, 0), (0, 1), (1, 0), (1, 1)])
    features = describe_pairs([names, words], pairs)
    assert features.dtype == np.float32
    np.testing.assert_allclose(
        features,
        [
            [1.0, 0.75, 1.0, 0.0, 0.0, -0.75],
            [0.25, -0.75, -0.25, 0.0, 0.0, 0.0],
            [0.0, -0.5, -1.0, 0.75, 0.75, 0.75],
            [0.5, 0.5, 0.25, 0.0, -0.75, 0.0],
        ],
    )
    assert describe_pairs([], pairs).shape == (4, 0)
    assert describe_pairs([names], make_pairs([])).shape == (0, names.width)


def test_a_silent_channel_keeps_its_columns_and_has_no_evidence():
    silent = silent_channel("attributes", ("attributes", "conflict"))
    pairs = make_pairs([(0, 0), (0, 1)])
    assert (len(silent.proposals), silent.width) == (0, 4)
    assert silent.score(pairs).tolist() == [[0, 0], [0, 0]]
    assert describe_pairs([silent], pairs)[:, :2].tolist() == [[0, 0], [0, 0]]


def test_proposals_are_joined_once_and_only_among_those_to_be_matched():
    first = make_channel("names", {(0, 0): 1.0, (1, 1): 1.0, (2, 2): 1.0})
    second = make_channel("words", {(1, 1): 0.5, (1, 2): 0.5, (3, 0): 0.5})
    is_source, is_target = np.array([True, True, True, False]), np.array([True, True, False])
    assert rows_of(join_proposals([first, second], is_source, is_target)) == [(0, 0), (1, 1)]
    assert len(join_proposals([], is_source, is_target)) == 0
