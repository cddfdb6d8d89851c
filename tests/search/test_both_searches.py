"""What holds of the approximate searches, by vectors and by names: no pair twice, true scores, the same every time."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numba
import numpy as np
import pytest

from planted import arrays_of
from rlea.errors import InputError
from rlea.search import approximate, name_index


@dataclass
class Case:
    search: Any  # (source_ids, target_ids, k, ...) -> MeasuredSearch
    pools: tuple
    limited: dict  # so few probes or visits that candidates are missed
    stages: set
    at_once: dict  # sizes of what is handled together


@pytest.fixture(params=["vectors", "names"])
def make_case(request, planted_vectors, planted_names):
    def make(count):
        if request.param == "vectors":
            search = partial(approximate.search_approximately, planted_vectors(count)[0])
            sizes = {"PROBES_AT_ONCE": 1000, "BLOCK_COLUMNS": 16, "BLOCK_ROWS": 512}
            given = {"num_cells": 10, "probes": 3}, {"cells", "recall", "candidates"}, (approximate, sizes)
        else:
            search = partial(name_index.search_names, planted_names(count, name_noise=0.2))
            given = {"budget": 60}, {"names", "recall", "candidates"}, (name_index, {"QUERIES_AT_ONCE": 100})
        return Case(search, (np.arange(count), np.arange(count)), *given)

    return make


def test_no_pair_stands_twice_and_scores_are_true(make_case):
    """A pair that both sides find is met twice."""
    case = make_case(600)
    found = case.search(*case.pools, 15, **case.limited).candidates
    for ids, scores in ((found.forward_columns, found.forward_scores), (found.backward_rows, found.backward_scores)):
        for row, own in zip(ids, scores, strict=True):
            known = row[row >= 0]
            assert len(np.unique(known)) == len(known)
            assert (row[len(known) :] == -1).all()
            assert (own[len(known) :] == -np.inf).all()
            assert (np.diff(own[: len(known)]) <= 0).all()
    rows, places = np.nonzero(found.forward_columns >= 0)
    columns, forward = found.forward_columns[rows, places], found.forward_scores[rows, places]
    np.testing.assert_allclose(forward, found.score_pairs(rows, columns), rtol=1e-4, atol=1e-4)
    there = dict(zip(zip(rows.tolist(), columns.tolist(), strict=True), forward.tolist(), strict=True))
    columns, places = np.nonzero(found.backward_rows >= 0)
    rows, backward = found.backward_rows[columns, places], found.backward_scores[columns, places]
    back = dict(zip(zip(rows.tolist(), columns.tolist(), strict=True), backward.tolist(), strict=True))
    both = there.keys() & back.keys()
    assert len(both) > 1000
    assert all(there[pair] == back[pair] for pair in both)  # to the last bit, whichever side found it


def test_same_seed_same_bytes_whatever_the_chunks_and_threads(make_case, monkeypatch):
    case = make_case(1200)
    threads = numba.get_num_threads()
    try:
        numba.set_num_threads(numba.config.NUMBA_NUM_THREADS)
        one = case.search(*case.pools, 8, seed=4, **case.limited)
        module, sizes = case.at_once
        for name, value in sizes.items():
            monkeypatch.setattr(module, name, value)
        numba.set_num_threads(1)
        other = case.search(*case.pools, 8, seed=4, **case.limited)
    finally:
        numba.set_num_threads(threads)
    for first, second in zip(arrays_of(one.candidates), arrays_of(other.candidates), strict=True):
        assert first.tobytes() == second.tobytes()
    assert one.as_dict() == other.as_dict()


def test_the_order_of_the_pools_does_not_matter(make_case):
    case = make_case(2000)
    rng = np.random.default_rng(3)
    source_order, target_order = rng.permutation(2000), rng.permutation(2000)
    plain = case.search(*case.pools, 10)
    moved = case.search(source_order, target_order, 10)
    assert plain.as_dict() == moved.as_dict()
    assert plain.recall < 1
    columns, rows = moved.candidates.forward_columns, moved.candidates.backward_rows
    columns, rows = np.where(columns < 0, -1, target_order[columns]), np.where(rows < 0, -1, source_order[rows])
    assert (columns == plain.candidates.forward_columns[source_order]).all()
    assert (rows == plain.candidates.backward_rows[target_order]).all()
    assert (moved.candidates.forward_scores == plain.candidates.forward_scores[source_order]).all()


def test_progress_runs_from_nothing_to_all(make_case):
    case = make_case(2000)
    told = {}
    note = lambda stage, done, total, note="": told.setdefault(stage, []).append((done, total))  # noqa: E731
    case.search(*case.pools, 5, progress=note)
    assert set(told) == case.stages
    done = [done for done, _ in told["candidates"]]
    assert done == sorted(done)
    assert all(stage[-1][0] == pytest.approx(stage[-1][1]) for stage in told.values())


def test_empty_pools(make_case):
    case = make_case(30)
    for source_ids, target_ids, shapes in (([], [0, 1], ((0, 2), (2, 0))), ([0, 1], [], ((2, 0), (0, 2)))):
        none = case.search(source_ids, target_ids, 5)
        assert (none.candidates.forward_columns.shape, none.candidates.backward_rows.shape) == shapes
        assert none.recall == 1


@pytest.mark.parametrize(("name", "value"), [("recall", 0.0), ("recall", 1.5), ("k", 0), ("limit", 0), ("limit", -1)])
def test_bad_numbers_are_refused(make_case, name, value):
    case = make_case(50)
    name = next(reversed(case.limited)) if name == "limit" else name
    with pytest.raises(InputError, match=f"{name} is {value}"):
        case.search(*case.pools, **{name: value})
