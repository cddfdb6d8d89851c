"""Nearest rows by their rarest terms: what a full comparison finds, and what terms of a crowd may cost."""

import numba
import numpy as np
import pytest
from scipy.sparse import csr_matrix

import rlea.search.rare_terms as module
from rlea.search.candidates import find_candidates
from rlea.search.embeddings import Embeddings
from rlea.search.pairs import Pairs, numbers
from rlea.search.rare_terms import search_terms


def random_vectors(seed=0, count=300, terms=200, most=6):
    """Sparse vectors of unit length; no two products are equal."""
    random = np.random.default_rng(seed)
    sides = []
    for _ in range(2):
        rows = np.zeros((count, terms), np.float32)
        for row in rows:
            row[random.integers(0, terms, random.integers(1, most))] = random.random() + 0.1 + random.random()
        rows *= random.random(rows.shape, dtype=np.float32) + np.float32(0.1)
        sides.append(csr_matrix(rows / np.linalg.norm(rows, axis=1, keepdims=True)))
    return Embeddings(*sides, measure="inner")


def test_without_a_limit_the_nearest_are_those_of_the_exact_search():
    vectors, ids = random_vectors(), np.arange(300, dtype=np.int32)
    found = search_terms(vectors, 3, visits=10**9)
    exact = Pairs.of_candidates(find_candidates(vectors, ids, ids, 3))
    assert found.recall > 0.999
    assert np.isin(numbers(exact), numbers(found.pairs)).mean() > 0.99  # of equal products either search keeps some


def test_the_recall_that_is_told_is_the_share_of_the_nearest_that_was_found():
    vectors, ids = random_vectors(1, terms=40), np.arange(300, dtype=np.int32)
    found = search_terms(vectors, 3, visits=30)
    exact = Pairs.of_candidates(find_candidates(vectors, ids, ids, 3))
    share = np.isin(numbers(exact), numbers(found.pairs)).mean()
    assert 0.2 < found.recall < 0.95
    assert share == pytest.approx(found.recall, abs=0.15)  # a pair that one side misses the other may find


def test_a_term_that_everybody_has_is_not_looked_up():
    vectors = random_vectors(2)
    crowd = [
        csr_matrix(np.column_stack([part.toarray(), np.full(300, 5, np.float32)]))
        for part in (vectors.source, vectors.target)
    ]
    common = Embeddings(*crowd, measure="inner")
    without, found = (search_terms(part, 3, visits=250).pairs for part in (vectors, common))
    assert len(found)
    assert np.isin(numbers(found), numbers(search_terms(vectors, 300, visits=250).pairs)).all()  # by other terms alone
    assert len(found) <= 1.1 * len(without)
    alone = Embeddings(*(csr_matrix(np.ones((300, 1), np.float32)) for _ in range(2)), measure="inner")
    assert not len(search_terms(alone, 3, visits=250).pairs)


def test_rows_without_terms_have_no_neighbours():
    vectors = random_vectors(3)
    source = vectors.source.toarray()
    source[::2] = 0
    found = search_terms(Embeddings(csr_matrix(source), vectors.target, measure="inner"), 3)
    assert len(found.pairs)
    assert (found.pairs.source_ids % 2 == 1).all()
    nothing = Embeddings(csr_matrix((0, 5), dtype=np.float32), csr_matrix((4, 5), dtype=np.float32), measure="inner")
    assert (len(search_terms(nothing, 3).pairs), search_terms(nothing, 3).recall) == (0, 1.0)


def test_the_number_of_threads_changes_nothing(monkeypatch):
    vectors = random_vectors(4)
    before = numbers(search_terms(vectors, 3, visits=60).pairs)
    monkeypatch.setattr(module, "ROWS_AT_A_TIME", 17)
    numba.set_num_threads(1)
    try:
        assert np.array_equal(numbers(search_terms(vectors, 3, visits=60).pairs), before)
    finally:
        numba.set_num_threads(numba.config.NUMBA_NUM_THREADS)
