"""Vectors as channels: CSLS of candidates and of other pairs, pools, and products of sparse vectors."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from planted import make_pairs
from rlea.evidence import VECTORS
from rlea.evidence.vectors import by_products, vector_channel, vector_channels
from rlea.search.embeddings import Embeddings
from rlea.search.pairs import Pairs

SOURCE_POOL, TARGET_POOL = np.array([4, 0, 3, 1], np.int32), np.array([5, 2, 0, 1, 3], np.int32)


def random_vectors(measure="cosine", sizes=(6, 7), **more):
    rng = np.random.default_rng(4)
    return Embeddings(*(rng.standard_normal((size, 6), np.float32) for size in sizes), measure=measure, **more)


@pytest.mark.parametrize("measure", ["cosine", "inner", "manhattan"])
def test_csls_of_candidates_and_of_other_pairs_against_numpy(measure):
    vectors = random_vectors(measure)
    channel = vector_channel(vectors, SOURCE_POOL, TARGET_POOL, nearest=2)
    a, b = (np.asarray(part, np.float64) for part in (vectors.source, vectors.target))
    if measure == "cosine":
        a, b = (part / np.linalg.norm(part, axis=1, keepdims=True) for part in (a, b))
    scores = -np.abs(a[:, None] - b).sum(axis=2) if measure == "manhattan" else a @ b.T
    inside = scores[np.ix_(SOURCE_POOL, TARGET_POOL)]
    means = np.full(6, np.nan), np.full(7, np.nan)
    means[0][SOURCE_POOL] = np.sort(inside, axis=1)[:, -2:].mean(axis=1)  # as many as are kept
    means[1][TARGET_POOL] = np.sort(inside, axis=0)[-2:].mean(axis=0)
    csls = 2 * scores - means[0][:, None] - means[1]
    own = channel.proposals
    if measure != "cosine":  # brought to the spread that cosines have, over the proposals
        csls *= 0.1 / csls[own.source_ids, own.target_ids].std()
    every = Pairs.of(*(part.ravel() for part in np.meshgrid(SOURCE_POOL, TARGET_POOL)))
    assert len(own) < len(every)
    np.testing.assert_allclose(
        channel.score(every)[:, 0], csls[every.source_ids, every.target_ids], rtol=1e-3, atol=1e-5
    )


def test_entities_outside_the_pools_score_nothing_and_are_not_proposed():
    channel = vector_channel(random_vectors(), SOURCE_POOL, TARGET_POOL)
    assert set(channel.proposals.source_ids.tolist()) <= set(SOURCE_POOL.tolist())
    assert set(channel.proposals.target_ids.tolist()) <= set(TARGET_POOL.tolist())
    assert not channel.score(make_pairs([(2, 0), (5, 5), (0, 6), (2, 6)])).any()
    none = np.zeros(0, np.int32)
    for pools in ((none, none), (SOURCE_POOL, none), (none, TARGET_POOL)):
        empty = vector_channel(random_vectors(), *pools)
        assert len(empty.proposals) == 0
        assert not empty.score(make_pairs([(0, 0), (1, 1)])).any()


@pytest.mark.parametrize("is_fitted", [True, False])
def test_a_channel_is_named_after_its_model_and_knows_whether_seeds_made_it(is_fitted):
    named = vector_channel(random_vectors(info={"model": "AlignE"}, is_fitted=is_fitted), SOURCE_POOL, TARGET_POOL)
    assert (named.name, named.columns, named.is_fitted) == (VECTORS, ("aligne",), is_fitted)
    assert named.info == {"embedding": "file", "dimensions": 6}
    several = [random_vectors(name=name) for name in ("Mine", "file", "mine", "mine")]
    found = vector_channels(several, SOURCE_POOL, TARGET_POOL)
    assert [channel.columns[0] for channel in found] == ["mine", "file", "mine 2", "mine 3"]


def test_products_of_sparse_vectors_score_any_pair():
    rng = np.random.default_rng(0)
    dense = [np.maximum(rng.standard_normal((size, 9), np.float32), 0) for size in (5, 6)]
    vectors = Embeddings(*map(csr_matrix, dense), measure="inner")
    channel = by_products("words", "words", "shared words", vectors, make_pairs([(0, 0)]), {"words": 9})
    pairs = make_pairs([(s, t) for s in range(5) for t in range(6)])
    np.testing.assert_allclose(channel.score(pairs)[:, 0], (dense[0] @ dense[1].T).ravel(), rtol=1e-5, atol=1e-6)
    assert (channel.columns, len(channel.proposals)) == (("words",), 1)
