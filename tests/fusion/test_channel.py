"""What a channel says: look-ups, products, who stands out, and what is told of pairs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import random as random_sparse

from rlea.evidence import CHANNELS
from rlea.evidence.channel import (
    Table,
    describe_pairs,
    join_proposals,
    stand_out,
)
from rlea.search.pairs import Pairs
from rlea.search.rows import multiply_sparse_pairs

from .conftest import make_channel, pairs_from

SAID = st.dictionaries(
    st.tuples(st.integers(0, 6), st.integers(0, 6)), st.sampled_from([0.0, 0.25, 0.5, 1.0]), max_size=20
)


def test_the_channels_of_the_command_line_are_these():
    from rlea import pipeline

    assert pipeline.CHANNELS == CHANNELS


@given(SAID, st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=30), st.sampled_from([0.0, -1.0]))
@settings(max_examples=60, deadline=None)
def test_a_table_knows_its_pairs_and_no_others(said, wanted, otherwise):
    pairs = pairs_from(said)
    scores = np.array([said[pair] for pair in sorted(said)], np.float32)
    asked = Pairs(np.array([s for s, _ in wanted], np.int32), np.array([t for _, t in wanted], np.int32))
    found = Table(pairs, scores, otherwise)(asked)
    assert found.tolist() == [said.get(pair, otherwise) for pair in wanted]


@pytest.mark.parametrize("seed", range(3))
def test_products_are_those_of_scipy(seed):
    rng = np.random.default_rng(seed)
    source, target = (random_sparse(n, 30, 0.2, "csr", np.float32, random_state=seed + n) for n in (17, 23))
    for part in (source, target):
        part.sort_indices()
    pairs = pairs_from(
        {(int(s), int(t)) for s, t in zip(rng.integers(0, 17, 90), rng.integers(0, 23, 90), strict=True)}
    )
    whole = (source @ target.T).toarray()
    found = multiply_sparse_pairs(source, target, pairs.source_ids, pairs.target_ids)
    np.testing.assert_allclose(found, whole[pairs.source_ids, pairs.target_ids], atol=1e-6)
    assert (found > 0).any()
    assert (found == 0).any()
    nothing = np.zeros(0, np.int32)
    assert len(multiply_sparse_pairs(source, target, nothing, nothing)) == 0


@given(SAID)
@settings(max_examples=60, deadline=None)
def test_only_one_pair_of_an_entity_stands_out_and_none_without_a_score(said):
    pairs = pairs_from(said)
    scores = np.array([said[pair] for pair in sorted(said)], np.float32)
    for pair, found in zip(sorted(said), stand_out(pairs, scores), strict=True):
        rivals = [said[other] for other in said if other != pair and (other[0] == pair[0] or other[1] == pair[1])]
        assert found == (said[pair] > 0 and all(said[pair] > rival for rival in rivals))


def test_what_is_told_of_pairs():
    names = make_channel("names", {(0, 0): 1.0, (0, 1): 0.25, (1, 1): 0.5})
    words = make_channel("words", {(1, 0): 0.75}, "words around")
    pairs = pairs_from([(0, 0), (0, 1), (1, 0), (1, 1)])
    told = describe_pairs([names, words], pairs)
    assert told.dtype == np.float32
    np.testing.assert_allclose(
        told,
        [
            [1.0, 0.75, 1.0, 0.0, 0.0, -0.75],
            [0.25, -0.75, -0.25, 0.0, 0.0, 0.0],
            [0.0, -0.5, -1.0, 0.75, 0.75, 0.75],
            [0.5, 0.5, 0.25, 0.0, -0.75, 0.0],
        ],
    )
    assert describe_pairs([], pairs).shape == (4, 0)
    assert describe_pairs([names], pairs_from([])).shape == (0, 3)


def test_proposals_are_joined_once_and_only_among_those_to_be_matched():
    first = make_channel("names", {(0, 0): 1.0, (1, 1): 1.0, (2, 2): 1.0})
    second = make_channel("words", {(1, 1): 0.5, (1, 2): 0.5, (3, 0): 0.5})
    is_source, is_target = np.array([True, True, True, False]), np.array([True, True, False])
    joined = join_proposals([first, second], is_source, is_target)
    assert list(zip(joined.source_ids.tolist(), joined.target_ids.tolist(), strict=True)) == [(0, 0), (1, 1)]
    assert len(join_proposals([], is_source, is_target)) == 0
