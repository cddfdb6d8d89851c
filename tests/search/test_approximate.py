"""Approximate search finds what it promises, measures how much that is, and is exact where it compares all."""

import json

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from planted import arrays_of
from rlea.demo import demo_folder
from rlea.errors import InputError
from rlea.search import approximate as module
from rlea.search.approximate import search_approximately
from rlea.search.candidates import find_candidates
from rlea.search.embeddings import Embeddings

MEASURES = ("cosine", "inner", "manhattan")


def pools(embeddings):
    return np.arange(len(embeddings.source)), np.arange(len(embeddings.target))


def true_recalls(found, exact):
    """The share of the exact pairs of all entities that were found, each way."""
    return [
        float(np.mean([len(np.intersect1d(a, b)) / len(b) for a, b in zip(mine, whole, strict=True)]))
        for mine, whole in (
            (found.forward_columns, exact.forward_columns),
            (found.backward_rows, exact.backward_rows),
        )
    ]


@pytest.mark.parametrize("measure", MEASURES)
def test_finds_the_wanted_share_and_knows_how_much(measure, planted_vectors):
    embeddings, truth = planted_vectors(3000, measure=measure)
    search = search_approximately(embeddings, *pools(embeddings), 10)
    exact = find_candidates(embeddings, *pools(embeddings), 10)
    recalls = true_recalls(search.candidates, exact)
    assert not search.is_exact
    assert search.share < 0.4
    assert search.sampled == module.SAMPLE
    assert min(recalls) >= module.RECALL - 0.01
    assert search.forward_recall == pytest.approx(recalls[0], abs=0.02)
    assert search.backward_recall == pytest.approx(recalls[1], abs=0.02)
    assert search.recall == min(search.forward_recall, search.backward_recall)
    if measure != "inner":
        assert (search.candidates.forward_columns[:, 0] == truth).mean() > 0.9
    for one, other in zip(arrays_of(search.candidates), arrays_of(exact), strict=True):
        assert one.dtype == other.dtype
        assert one.shape == other.shape


def test_more_is_found_where_more_is_wanted(planted_vectors):
    embeddings, _ = planted_vectors(3000)
    searches = [search_approximately(embeddings, *pools(embeddings), 10, recall=wanted) for wanted in (0.6, 0.9, 0.99)]
    assert searches[0].probes < searches[1].probes < searches[2].probes
    assert searches[0].recall < searches[1].recall < searches[2].recall
    assert searches[0].share < searches[1].share < searches[2].share
    for search, wanted in zip(searches, (0.6, 0.9, 0.99), strict=True):
        assert search.recall >= wanted - 0.02


def test_few_probes_have_a_low_recall_and_say_so(planted_vectors):
    embeddings, _ = planted_vectors(3000, dim=40, noise=1.0)
    search = search_approximately(embeddings, *pools(embeddings), 20, probes=1)
    recalls = true_recalls(search.candidates, find_candidates(embeddings, *pools(embeddings), 20))
    assert max(recalls) < 0.9
    assert search.forward_recall == pytest.approx(recalls[0], abs=0.04)
    assert search.backward_recall == pytest.approx(recalls[1], abs=0.04)


@pytest.mark.parametrize("measure", MEASURES)
def test_all_cells_probed_is_the_exact_search(measure, planted_vectors):
    embeddings, _ = planted_vectors(700, measure=measure)
    source_ids, target_ids = np.arange(0, 700, 2), np.arange(699, 50, -1)
    search = search_approximately(embeddings, source_ids, target_ids, 12, num_cells=30, probes=30)
    exact = find_candidates(embeddings, source_ids, target_ids, 12)
    assert search.is_exact
    assert search.recall == 1
    assert search.share == 1
    assert (search.candidates.source_ids == source_ids).all()
    assert (search.candidates.target_ids == target_ids).all()
    for one, other in zip(arrays_of(search.candidates), arrays_of(exact), strict=True):
        assert one.tobytes() == other.tobytes()


def test_small_pools(planted_vectors):
    embeddings, truth = planted_vectors(30)
    few = search_approximately(embeddings, *pools(embeddings), 100)
    assert few.candidates.forward_columns.shape == (30, 30)
    assert few.recall >= 0.95
    one = search_approximately(embeddings, [4], [truth[4]], 5)
    assert one.candidates.forward_columns.tolist() == one.candidates.backward_rows.tolist() == [[0]]
    assert one.recall == 1
    against = search_approximately(embeddings, [4], np.arange(30), 5)
    assert against.candidates.forward_columns[0, 0] == truth[4]
    assert against.candidates.backward_rows.shape == (30, 1)


def test_equal_vectors_are_kept_without_regard_to_ids():
    """600 times the same target: which of them are candidates must not depend on their ids."""
    rng = np.random.default_rng(0)
    source = rng.standard_normal((300, 8)).astype(np.float32)
    target = np.repeat(rng.standard_normal((1, 8)).astype(np.float32), 600, axis=0)
    search = search_approximately(Embeddings(source, target), np.arange(300), np.arange(600), 5)
    assert search.recall == 1
    columns = search.candidates.forward_columns
    assert (columns >= 0).all()
    assert 200 < columns.mean() < 400
    limited = {"num_cells": 4, "probes": 4}
    columns = search_approximately(Embeddings(source, target), np.arange(300), np.arange(600), 5, **limited).candidates
    assert all(len(set(row)) == 5 for row in columns.forward_columns.tolist())
    assert 150 < columns.forward_columns.mean() < 450


def test_vectors_without_neighbourhoods_are_searched_exactly():
    """Random vectors of many dimensions: nearly all cells would have to be probed, so cells do not pay."""
    rng = np.random.default_rng(0)
    embeddings = Embeddings(*(rng.standard_normal((1500, 100)).astype(np.float32) for _ in range(2)))
    search = search_approximately(embeddings, *pools(embeddings), 10)
    assert search.is_exact
    assert search.as_dict()["exact_instead"]
    exact = find_candidates(embeddings, *pools(embeddings), 10)
    for one, other in zip(arrays_of(search.candidates), arrays_of(exact), strict=True):
        assert one.tobytes() == other.tobytes()


def test_the_command_line_says_which_search_and_its_recall(run_cli, tmp_path):
    from rlea.io.readers import read_pair
    from rlea.io.writers.vectors import write_embeddings

    pair = read_pair(demo_folder())
    rng = np.random.default_rng(0)
    groups = rng.standard_normal((40, 12))
    source, target = (
        (groups[rng.integers(0, 40, count)] + 0.5 * rng.standard_normal((count, 12))).astype(np.float32)
        for count in (pair.source.num_entities, pair.target.num_entities)
    )
    target[pair.test.target_ids] = source[pair.test.source_ids] + 0.05 * target[pair.test.target_ids]
    vectors = tmp_path / "vectors.safetensors"
    write_embeddings(vectors, Embeddings(source, target), pair.source, pair.target)
    arguments = (demo_folder(), "--embedding", vectors, "--candidates", 5, "--search", "approximate")
    done = run_cli("align", *arguments, "--matcher", "mutual", "--json", "--output", tmp_path / "out")
    assert done.code == 0, done.err
    summary = json.loads(done.out)
    assert summary["search"]["kind"] == "approximate"
    assert 0.9 < summary["search"]["recall"] <= 1
    assert summary["search"]["cells"] > summary["search"]["probes"] >= 1
    assert not summary["search"]["exact_instead"]
    assert summary["f1"] > 0.95
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert record["result"]["search"] == summary["search"]
    shown = run_cli("align", *arguments, "--matcher", "mutual", "--quiet")
    assert "% of the exact ones" in shown.out
    assert "% of the exact ones" in (tmp_path / "out" / "report.html").read_text()
    compared = run_cli("bench", *arguments, "--matchers", "mutual,nearest", "--json")
    assert json.loads(compared.out)["search"] == summary["search"]
    plain = run_cli("align", demo_folder(), "--matcher", "mutual", "--json")
    assert json.loads(plain.out)["search"] == {"asked": "auto", "kind": "exact"}


@pytest.mark.parametrize("measure", MEASURES)
def test_sparse_vectors_and_values_that_are_not_finite_are_refused(measure):
    rows = np.ones((5, 3), np.float32)
    broken = rows.copy()
    broken[2, 1] = np.nan
    with pytest.raises(InputError, match="target vectors hold values that are no finite numbers"):
        search_approximately(Embeddings(rows, broken, measure=measure), np.arange(5), np.arange(5), 2)
    sparse = csr_matrix(rows)
    with pytest.raises(InputError, match="dense vectors"):
        search_approximately(Embeddings(sparse, sparse), np.arange(5), np.arange(5), 2)
