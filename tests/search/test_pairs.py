"""Pairs of entities: sorted and unique, found again, and compared with the other pairs of an entity."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rlea.search.pairs import Pairs, discount_hubs, find_pairs, is_around, is_near, leads, mean_of_best


def test_leads_by_hand():
    ids = np.array([0, 0, 0, 2, 3, 3, 5, 5], np.int32)
    scores = np.array([0.5, 0.3, -0.4, 0.7, 0.2, 0.2, 9.0, 1.0], np.float32)
    # Best against second, others against the best; alone: as much as can be; level: nothing; far apart: cut.
    np.testing.assert_allclose(leads(ids, scores), [0.2, -0.2, -0.9, 2, 0, 0, 2, -2], atol=1e-6)
    np.testing.assert_allclose(leads(ids, scores, most=0.5), [0.2, -0.2, -0.5, 0.5, 0, 0, 0.5, -0.5], atol=1e-6)
    assert leads(ids[:0], scores[:0]).shape == (0,)


scored = st.lists(
    st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(-8, 8)), max_size=40, unique_by=lambda row: row[:2]
)


def as_pairs(rows):
    rows = sorted(rows)
    source, target, values = (np.array([row[i] for row in rows]) for i in range(3))
    return Pairs(source.astype(np.int32), target.astype(np.int32)), (values / 4).astype(np.float32)


@settings(max_examples=60, deadline=None)
@given(scored, st.integers(1, 5))
def test_mean_of_best_is_near_and_csls_against_numpy(rows, k):
    pairs, values = as_pairs(rows)
    near = np.zeros(len(pairs), bool)
    means = []
    for ids in (pairs.source_ids, pairs.target_ids):
        best = {i: np.sort(values[ids == i])[::-1][:k] for i in ids.tolist()}
        expected = [best[i].mean() if i in best else 0 for i in range(ids.max(initial=-1) + 1)]
        np.testing.assert_allclose(mean_of_best(ids, values, k), expected, atol=1e-6)
        means.append(np.array([best[i].mean() for i in ids.tolist()], np.float32))
        near |= np.array([v >= best[i].min() for i, v in zip(ids.tolist(), values, strict=True)], bool)
    np.testing.assert_array_equal(is_near(pairs, values, k), near)
    np.testing.assert_allclose(discount_hubs(pairs, values, k), 2 * values - means[0] - means[1], atol=1e-5)


@settings(max_examples=60, deadline=None)
@given(scored)
def test_leads_against_numpy(rows):
    pairs, values = as_pairs(rows)
    rivals = np.array(
        [
            max([v for k, v in enumerate(values) if k != own and pairs.source_ids[k] == i], default=-np.inf)
            for own, i in enumerate(pairs.source_ids)
        ]
    )
    np.testing.assert_allclose(leads(pairs.source_ids, values), np.clip(values - rivals, -2, 2), atol=1e-6)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1))
        | st.tuples(st.integers(0, 3), st.integers(0, 3))
    )
)
def test_pairs_are_unique_and_sorted(rows):
    source, target = (np.array([row[i] for row in rows], np.int64) for i in range(2))
    pairs = Pairs.of(source, target)
    assert list(zip(pairs.source_ids.tolist(), pairs.target_ids.tolist(), strict=True)) == sorted(set(rows))
    assert pairs.source_ids.dtype == pairs.target_ids.dtype == np.int32
    assert len(pairs) == len(set(rows))


@settings(max_examples=60, deadline=None)
@given(st.sets(st.tuples(st.integers(0, 9), st.integers(0, 10**6)), min_size=1, max_size=30), st.randoms())
def test_find_pairs(rows, random):
    pairs = Pairs.of(*np.array(sorted(rows)).T)
    asked = random.sample(sorted(rows), random.randint(0, len(rows)))
    source, target = (np.array([row[i] for row in asked], np.int32) for i in range(2))
    places = find_pairs(pairs, source, target)
    found = list(zip(pairs.source_ids[places].tolist(), pairs.target_ids[places].tolist(), strict=True))
    assert found == asked


def test_around_some_entities_are_their_pairs_and_those_of_their_rivals():
    pairs = Pairs.of(np.array([0, 1, 1, 2, 3, 4]), np.array([0, 0, 1, 1, 2, 3]))
    found = pairs.some(is_around(pairs, np.array([0], np.int32), np.array([3], np.int32)))
    assert list(zip(found.source_ids.tolist(), found.target_ids.tolist(), strict=True)) == [(0, 0), (1, 0), (4, 3)]
    nobody = np.zeros(0, np.int32)
    assert not is_around(pairs, nobody, nobody).any()
    assert len(is_around(Pairs.empty(), np.array([7], np.int32), nobody)) == 0
