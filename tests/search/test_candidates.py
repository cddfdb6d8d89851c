"""The search for the k best is exact in both directions, in blocks, for every measure, and blind to ids."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from rlea.search import candidates as module
from rlea.search.candidates import CandidateLists, find_candidates, tie_hash
from rlea.search.embeddings import Embeddings
from rlea.search.pairs import Pairs
from rlea.search.rows import BlockProduct, Scale


def dense_scores(embeddings):
    source, target = embeddings.source, embeddings.target
    if embeddings.is_sparse:
        source, target = source.toarray(), target.toarray()
    if embeddings.measure == "manhattan":
        return -np.abs(source[:, None] - target[None]).sum(-1)
    if embeddings.measure == "cosine":
        source = source / np.maximum(np.linalg.norm(source, axis=1, keepdims=True), 1e-12)
        target = target / np.maximum(np.linalg.norm(target, axis=1, keepdims=True), 1e-12)
    return source @ target.T


def vectors(rng, rows, dim, sparse):
    matrix = rng.standard_normal((rows, dim)).astype(np.float32)
    if sparse:
        matrix = np.abs(matrix) * (rng.random((rows, dim)) < 0.3)
        return csr_matrix(matrix.astype(np.float32))
    return matrix


@settings(max_examples=30, deadline=None)
@given(
    st.integers(1, 70),
    st.integers(1, 70),
    st.integers(1, 90),
    st.sampled_from(["cosine", "inner", "manhattan", "sparse"]),
    st.integers(0, 10_000),
)
def test_equals_the_whole_matrix(num_source, num_target, k, kind, seed):
    rng = np.random.default_rng(seed)
    sparse = kind == "sparse"
    measure = "cosine" if sparse else kind
    embeddings = Embeddings(
        vectors(rng, num_source + 5, 8, sparse), vectors(rng, num_target + 5, 8, sparse), measure=measure
    )
    source_ids = np.sort(rng.permutation(num_source + 5)[:num_source])
    target_ids = np.sort(rng.permutation(num_target + 5)[:num_target])
    found = find_candidates(embeddings, source_ids, target_ids, k)
    whole = dense_scores(embeddings)[np.ix_(source_ids, target_ids)]
    for scores, ids, matrix in (
        (found.forward_scores, found.forward_columns, whole),
        (found.backward_scores, found.backward_rows, whole.T),
    ):
        best = -np.sort(-matrix, axis=1)[:, :k]
        if sparse:
            assert ((ids < 0) == (best <= 1e-9)).all()
            best = np.where(best > 1e-9, best, -np.inf)
        np.testing.assert_allclose(scores, best, atol=1e-5)
        used = ids >= 0
        rows = np.nonzero(used)[0]
        np.testing.assert_allclose(matrix[rows, ids[used]], scores[used], atol=1e-5)
        for row in ids:
            kept = row[row >= 0]
            assert len(set(kept.tolist())) == len(kept)
    if not sparse and k >= 5:
        means = np.sort(whole, axis=1)[:, ::-1][:, :5].mean(1), np.sort(whole, axis=0)[::-1][:5].mean(0)
        for own, expected in zip(found.csls_means(5), means, strict=True):
            np.testing.assert_allclose(own, expected, atol=1e-5)


@pytest.mark.parametrize("sparse", [False, True])
def test_blocks_join_without_seams(monkeypatch, sparse):
    rng = np.random.default_rng(3)
    embeddings = Embeddings(vectors(rng, 83, 9, sparse), vectors(rng, 61, 9, sparse))
    ids = np.arange(83), np.arange(61)
    whole = find_candidates(embeddings, *ids, 7)
    monkeypatch.setattr(module, "BLOCK_ROWS", 10)
    monkeypatch.setattr(module, "BLOCK_COLUMNS", 17)
    pieces = find_candidates(embeddings, *ids, 7)
    assert (whole.forward_columns == pieces.forward_columns).all()
    assert (whole.backward_rows == pieces.backward_rows).all()


@pytest.mark.parametrize(
    ("measure", "sparse"),
    [("cosine", False), ("inner", False), ("cosine", True), ("inner", True), ("manhattan", False)],
)
def test_a_pair_has_one_score_found_or_asked_for(measure, sparse):
    rng = np.random.default_rng(4)
    embeddings = Embeddings(vectors(rng, 20, 37, sparse), vectors(rng, 15, 37, sparse), measure=measure)
    found = find_candidates(embeddings, np.arange(20), np.arange(15), 2)
    rows, columns = (side.ravel() for side in np.meshgrid(np.arange(20), np.arange(15)))
    whole = found.score_pairs(rows, columns)
    assert [found.score_pairs(rows[[i]], columns[[i]])[0] for i in range(300)] == whole.tolist()
    assert (found.score_pairs(found.pairs.rows, found.pairs.columns) == found.pairs.scores).all()
    assert len(np.unique(whole.round(6))) > 30
    assert found.score_pairs(rows[:0], columns[:0]).shape == (0,)


def test_pairs_are_the_union_of_both_directions_sorted_within_rows():
    rng = np.random.default_rng(5)
    embeddings = Embeddings(vectors(rng, 40, 4, False), vectors(rng, 30, 4, False))
    found = find_candidates(embeddings, np.arange(40), np.arange(30), 3)
    pairs = found.pairs
    expected = {(i, j) for i in range(40) for j in found.forward_columns[i].tolist()}
    expected |= {(i, j) for j in range(30) for i in found.backward_rows[j].tolist()}
    assert set(zip(pairs.rows.tolist(), pairs.columns.tolist(), strict=True)) == expected
    assert len(pairs) == len(expected)
    for i in range(40):
        part = slice(pairs.row_starts[i], pairs.row_starts[i + 1])
        assert (pairs.rows[part] == i).all()
        assert (np.diff(pairs.scores[part]) <= 0).all()
    assert not found.is_complete
    few = find_candidates(embeddings, np.arange(40), np.arange(30), 2)
    assert found.best(2).forward_columns.tolist() == few.forward_columns.tolist()
    assert len(found.best(2).pairs) == len(few.pairs)
    complete = find_candidates(embeddings, np.arange(40), np.arange(30), 40)
    assert complete.is_complete
    assert len(complete.pairs) == 1200


def test_lists_of_scored_pairs():
    """The best of every entity of the pools, both ways, and nothing of others."""
    pairs = Pairs.of(np.array([3, 3, 3, 5, 5, 9]), np.array([1, 2, 4, 1, 2, 1]))
    scores = np.array([0.1, 0.9, 0.5, 0.7, 0.7, 1.0], np.float32)
    found = CandidateLists.of_pairs(pairs, scores, np.array([5, 3]), np.array([1, 2, 7]), 2)
    assert found.forward_columns.tolist() == [[0, 1], [1, 0]]  # of equal scores the first in the pool
    assert found.forward_scores.tolist() == [[np.float32(0.7)] * 2, [np.float32(0.9), np.float32(0.1)]]
    assert found.backward_rows.tolist() == [[0, 1], [1, 0], [-1, -1]]
    assert found.backward_scores[2].tolist() == [-np.inf, -np.inf]
    assert set(zip(found.pairs.rows.tolist(), found.pairs.columns.tolist(), strict=True)) == {
        *((0, 0), (0, 1)),
        *((1, 0), (1, 1)),
    }
    empty = CandidateLists.of_pairs(pairs, scores, np.zeros(0, np.int32), np.array([1]), 2)
    assert (empty.num_rows, empty.num_columns, len(empty.pairs)) == (0, 1, 0)


def test_equal_scores_favour_no_id():
    """All targets are alike: the kept ones and the first one must not follow the numbering."""
    same = np.ones((400, 3), dtype=np.float32)
    found = find_candidates(Embeddings(same, same), np.arange(400), np.arange(400), 5)
    for firsts in (found.forward_columns[:, 0], found.backward_rows[:, 0]):
        assert (firsts == np.arange(400)).sum() < 10  # one is expected by chance
        assert np.bincount(firsts, minlength=400).max() < 400


def test_tie_hash_is_spread_and_depends_on_the_seed():
    rows, columns = np.divmod(np.arange(10_000), 100)
    keys = tie_hash(rows, columns, 0)
    assert len(np.unique(keys)) == 10_000
    assert (keys != tie_hash(rows, columns, 1)).mean() > 0.99
    assert abs(np.corrcoef(keys.astype(float), rows)[0, 1]) < 0.05
    # Equal positions must not stand out: the diagonal is smallest in its row one time in a hundred.
    square = keys.reshape(100, 100)
    assert (square.argmin(1) == np.arange(100)).sum() < 8


@pytest.mark.parametrize("kind", [np.asarray, csr_matrix])
def test_empty_pools_and_zero_vectors(kind):
    ones, zeros = kind(np.ones((3, 2), np.float32)), kind(np.zeros((3, 2), np.float32))
    for pools in ((np.arange(0), np.arange(3)), (np.arange(3), np.arange(0))):
        found = find_candidates(Embeddings(ones, ones), *pools, 2)
        assert len(found.pairs) == 0
        assert [len(side) for side in found.csls_means()] == [len(pool) for pool in pools]
        assert not np.concatenate(found.csls_means()).any()
    found = find_candidates(Embeddings(zeros, ones), np.arange(3), np.arange(3), 2)
    assert set(found.forward_scores.ravel().tolist()) == ({0.0} if kind is np.asarray else {-np.inf})


def test_measures_and_shapes_are_checked():
    ones = np.ones((2, 2), np.float32)
    with pytest.raises(ValueError, match="measure"):
        Embeddings(ones, ones, measure="euclid")
    with pytest.raises(ValueError, match="dimension"):
        Embeddings(ones, np.ones((2, 3), np.float32))
    with pytest.raises(ValueError, match="sparse"):
        Embeddings(csr_matrix(ones), csr_matrix(ones), measure="manhattan")


@pytest.mark.parametrize("measure", ["cosine", "inner"])
@pytest.mark.parametrize("dim", [1, 8, 700])
def test_coarse_search_is_exact_up_to_the_grid(measure, dim):
    rng = np.random.default_rng(6)
    embeddings = Embeddings(vectors(rng, 50, dim, False), vectors(rng, 40, dim, False), measure=measure)
    found = find_candidates(embeddings, np.arange(50), np.arange(40), 40, coarse=True)
    whole = dense_scores(embeddings)
    rows = np.arange(50)[:, None]
    lengths = [np.linalg.norm(side, axis=1).max() for side in (embeddings.source, embeddings.target)]
    slack = np.sqrt(dim) / 4000 * (1.0 if measure == "cosine" else lengths[0] * lengths[1])
    np.testing.assert_allclose(found.forward_scores, whole[rows, found.forward_columns], atol=slack)


@pytest.mark.parametrize("coarse", [False, True])
@pytest.mark.parametrize("dim", [3, 64, 1000])
def test_products_of_whole_numbers_are_exact(coarse, dim):
    """In any order: no partial sum leaves the range in which floats hold whole numbers."""
    rng = np.random.default_rng(dim)
    sides = [np.sign(rng.standard_normal((30, dim))).astype(np.float32), vectors(rng, 30, dim, False)]
    for measure in ("cosine", "inner"):
        scales = [Scale.of(side, measure, coarse=coarse) for side in sides]
        whole = [scale.whole(side) for scale, side in zip(scales, sides, strict=True)]
        exact = [[int(value) for row in side for value in row] for side in whole]
        for one in exact:
            largest = max(sum(v * v for v in one[i : i + dim]) for i in range(0, len(one), dim))
            assert largest <= (2**24 if coarse else 2**53)
        product = BlockProduct(900, coarse)(*whole)
        for i in (0, 7, 29):
            expected = [
                sum(a * b for a, b in zip(exact[0][i * dim : (i + 1) * dim], exact[1][j * dim :][:dim], strict=True))
                for j in range(30)
            ]
            assert product[i].tolist() == [float(np.float32(value)) for value in expected]


@pytest.mark.parametrize("measure", ["cosine", "inner"])
def test_vectors_that_are_not_finite_have_no_candidates(measure):
    rng = np.random.default_rng(7)
    source, target = vectors(rng, 6, 5, False), vectors(rng, 5, 5, False)
    source[2, 1], target[3, 0] = np.nan, np.inf
    for coarse in (False, True):
        found = find_candidates(
            Embeddings(source, target, measure=measure), np.arange(6), np.arange(5), 5, coarse=coarse
        )
        assert (found.forward_columns[2] == -1).all()
        assert (found.backward_rows[3] == -1).all()
        assert (found.forward_columns >= 0).sum() == 5 * 4
        assert np.isfinite(found.forward_scores[found.forward_columns >= 0]).all()


@pytest.mark.parametrize("size", [1e18, 1e37, 1e-19, 1e-37])
def test_very_long_and_very_short_vectors(size):
    rng = np.random.default_rng(8)
    source, target = vectors(rng, 6, 5, False), vectors(rng, 5, 5, False)
    far = Embeddings(source * np.float32(size), target * np.float32(size), measure="inner")
    found = find_candidates(far, np.arange(6), np.arange(5), 5)
    exact = far.source.astype(np.float64) @ far.target.astype(np.float64).T
    with np.errstate(over="ignore"):  # beyond what single precision holds they are infinite, or nothing
        expected = np.sort(exact, axis=1)[:, ::-1].astype(np.float32)
    np.testing.assert_allclose(found.forward_scores, expected, rtol=1e-4)
    assert (found.forward_columns == np.argsort(-exact, axis=1)).all()
    if size > 1e-12:
        found = find_candidates(Embeddings(far.source, far.target), np.arange(6), np.arange(5), 5)
        cosines = dense_scores(Embeddings(source, target))
        np.testing.assert_allclose(found.forward_scores, np.sort(cosines, axis=1)[:, ::-1], atol=1e-6)
