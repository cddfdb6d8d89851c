"""Rows of length 1, and products that nothing rounds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from rlea.search.rows import (
    Scale,
    inner_products,
    multiply_pairs,
    multiply_sparse_pairs,
    row_lengths,
    unit_rows,
    whole_of,
)


def some_rows(seed, count=20, dim=37):
    rng = np.random.default_rng(seed)
    return (rng.standard_normal((count, dim)) * np.exp(rng.uniform(-5, 5, (count, 1)))).astype(np.float32)


def test_lengths_are_those_in_double_precision():
    rows = some_rows(0)
    np.testing.assert_allclose(row_lengths(rows), np.linalg.norm(rows.astype(np.float64), axis=1), rtol=1e-14)
    assert row_lengths(np.full((1, 100), 1e38, np.float32)) == pytest.approx(1e39, rel=1e-7)
    assert not np.isfinite(row_lengths(np.array([[1.0, np.nan], [np.inf, 0.0]], np.float32))).any()
    assert row_lengths(np.zeros((0, 3), np.float32)).shape == (0,)


def test_unit_rows_dense_and_sparse_are_the_same():
    rows = some_rows(1)
    rows[3] = 0.0
    dense = unit_rows(rows)
    sparse = unit_rows(csr_matrix(rows)).toarray()
    np.testing.assert_allclose(dense, sparse, rtol=1e-6)
    np.testing.assert_allclose(row_lengths(dense), np.where(np.arange(20) == 3, 0.0, 1.0), rtol=1e-6)
    assert dense.dtype == sparse.dtype == np.float32
    assert (rows[3] == 0).all()


def test_unit_rows_leave_what_they_are_given_alone():
    given_rows = csr_matrix((np.array([3.0, 4.0, 1.0]), np.array([2, 0, 0]), np.array([0, 3])), shape=(1, 3))
    found = unit_rows(given_rows)
    assert given_rows.data.tolist() == [3.0, 4.0, 1.0]
    assert found.indices.tolist() == [0, 2]  # sorted, and the two of column 0 added up
    np.testing.assert_allclose(found.data, np.array([5.0, 3.0]) / np.sqrt(34.0))
    assert unit_rows(csr_matrix(np.array([[3, 4]]))).toarray().tolist() == [[0.6, 0.8]]


@settings(max_examples=200, deadline=None)
@given(st.floats(-(2.0**50), 2.0**50))
def test_whole_numbers(value):
    assert whole_of(value) == np.rint(value)


@pytest.mark.parametrize("measure", ["cosine", "inner"])
@pytest.mark.parametrize("coarse", [False, True])
def test_pairs_are_the_products_of_the_matrices(measure, coarse):
    source, target = some_rows(2, 20), some_rows(3, 15)
    scales = Scale.of(source, measure, coarse=coarse), Scale.of(target, measure, coarse=coarse)
    rows, columns = (part.ravel() for part in np.meshgrid(np.arange(20), np.arange(15), indexing="ij"))
    found = multiply_pairs(source, target, scales, rows, columns).reshape(20, 15)
    whole = [scale.whole(side).astype(np.int64) for scale, side in zip(scales, (source, target), strict=True)]
    exact = (whole[0] @ whole[1].T).astype(np.float32)
    assert (found == (exact.astype(np.float64) * scales[0].unit * scales[1].unit).astype(np.float32)).all()


def test_inner_products_of_small_whole_numbers_are_exact():
    rng = np.random.default_rng(4)
    source, target = (rng.integers(-9, 10, (12, 20)).astype(np.float32) / 4 for _ in range(2))
    scales = Scale.of(source, "inner"), Scale.of(target, "inner")
    found = multiply_pairs(source, target, scales, np.arange(12), np.arange(12))
    assert found.tolist() == (source.astype(np.float64) * target).sum(axis=1).tolist()


def test_sparse_pairs():
    source, target = (np.maximum(some_rows(seed), 0) for seed in (5, 6))
    rows, columns = np.arange(20), np.arange(20)[::-1]
    found = multiply_sparse_pairs(csr_matrix(source), csr_matrix(target), rows, columns)
    np.testing.assert_allclose(found, (source[rows] * target[columns]).sum(axis=1), rtol=1e-5)


def test_inner_products():
    rng = np.random.default_rng(0)
    source, target = rng.standard_normal((5, 7), np.float32), rng.standard_normal((6, 7), np.float32)
    rows, columns = np.array([0, 4, 2], np.int32), np.array([5, 0, 0], np.int32)
    expected = (source @ target.T)[rows, columns]
    np.testing.assert_allclose(inner_products(source, target, rows, columns), expected, rtol=1e-5)
