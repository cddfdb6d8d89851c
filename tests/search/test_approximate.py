"""Approximate search finds what it promises, says truly how much that is, and is exact where it looks at all."""

import json

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from rlea.demo import demo_folder
from rlea.errors import InputError
from rlea.search import approximate as module
from rlea.search.approximate import search_approximately
from rlea.search.candidates import find_candidates
from rlea.search.embeddings import Embeddings

MEASURES = ("cosine", "inner", "manhattan")


def planted(num_entities, dim=24, measure="cosine", *, seed=0, noise=0.3):
    """Vectors in groups, and noisy copies of them in another order; entity `truth[i]` is the copy of i."""
    rng = np.random.default_rng(seed)

    def draw(count):
        return rng.standard_normal((count, dim), dtype=np.float32)

    groups = draw(max(num_entities // 40, 1))
    source = groups[rng.integers(0, len(groups), num_entities)] + np.float32(0.6) * draw(num_entities)
    order = rng.permutation(num_entities)
    target = (source + np.float32(noise) * draw(num_entities))[order]
    if measure == "inner":  # norms that differ
        source *= rng.uniform(0.5, 2, (num_entities, 1)).astype(np.float32)
        target *= rng.uniform(0.9, 1.1, (num_entities, 1)).astype(np.float32)
    return Embeddings(source, target, measure=measure), np.argsort(order)


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


def arrays(found):
    return found.forward_columns, found.forward_scores, found.backward_rows, found.backward_scores


@pytest.mark.parametrize("measure", MEASURES)
def test_finds_the_wanted_share_and_knows_how_much(measure):
    embeddings, truth = planted(3000, measure=measure)
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
    for one, other in zip(arrays(search.candidates), arrays(exact), strict=True):
        assert one.dtype == other.dtype
        assert one.shape == other.shape


def test_more_is_found_where_more_is_wanted():
    embeddings, _ = planted(3000)
    searches = [search_approximately(embeddings, *pools(embeddings), 10, recall=wanted) for wanted in (0.6, 0.9, 0.99)]
    assert searches[0].probes < searches[1].probes < searches[2].probes
    assert searches[0].recall < searches[1].recall < searches[2].recall
    assert searches[0].share < searches[1].share < searches[2].share
    for search, wanted in zip(searches, (0.6, 0.9, 0.99), strict=True):
        assert search.recall >= wanted - 0.02


def test_few_probes_have_a_low_recall_and_say_so():
    embeddings, _ = planted(3000, dim=40, noise=1.0)
    search = search_approximately(embeddings, *pools(embeddings), 20, probes=1)
    recalls = true_recalls(search.candidates, find_candidates(embeddings, *pools(embeddings), 20))
    assert max(recalls) < 0.9
    assert search.forward_recall == pytest.approx(recalls[0], abs=0.04)
    assert search.backward_recall == pytest.approx(recalls[1], abs=0.04)


@pytest.mark.parametrize("measure", MEASURES)
def test_all_cells_probed_is_the_exact_search(measure):
    embeddings, _ = planted(700, measure=measure)
    source_ids, target_ids = np.arange(0, 700, 2), np.arange(699, 50, -1)
    search = search_approximately(embeddings, source_ids, target_ids, 12, num_cells=30, probes=30)
    exact = find_candidates(embeddings, source_ids, target_ids, 12)
    assert search.is_exact
    assert search.recall == 1
    assert search.share == 1
    assert (search.candidates.source_ids == source_ids).all()
    assert (search.candidates.target_ids == target_ids).all()
    columns, scores, rows, back_scores = arrays(search.candidates)
    assert (columns == exact.forward_columns).mean() > 0.999  # rounding may exchange neighbours
    assert (rows == exact.backward_rows).mean() > 0.999
    np.testing.assert_allclose(scores, exact.forward_scores, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(back_scores, exact.backward_scores, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("probes", [1, 3, 7])
def test_no_pair_stands_twice_and_scores_are_true(measure, probes):
    """A pair that both sides find is met twice; the numbers of cells make it common."""
    embeddings, _ = planted(400, measure=measure)
    found = search_approximately(embeddings, *pools(embeddings), 15, num_cells=10, probes=probes).candidates
    for ids, scores in ((found.forward_columns, found.forward_scores), (found.backward_rows, found.backward_scores)):
        for row, own in zip(ids, scores, strict=True):
            known = row[row >= 0]
            assert len(np.unique(known)) == len(known)
            assert (row[len(known) :] == -1).all()
            assert (own[len(known) :] == -np.inf).all()
            assert (np.diff(own[: len(known)]) <= 0).all()
    rows, places = np.nonzero(found.forward_columns >= 0)
    true = found.score_pairs(rows, found.forward_columns[rows, places])
    np.testing.assert_allclose(found.forward_scores[rows, places], true, rtol=1e-4, atol=1e-4)


def test_same_seed_same_bytes():
    embeddings, _ = planted(2000)
    one, other = (search_approximately(embeddings, *pools(embeddings), 10, seed=7) for _ in range(2))
    for first, second in zip(arrays(one.candidates), arrays(other.candidates), strict=True):
        assert first.tobytes() == second.tobytes()
    assert one.as_dict() == other.as_dict()


def test_the_order_of_the_pools_and_the_ids_do_not_matter():
    embeddings, _ = planted(2000)
    rng = np.random.default_rng(3)
    source_order, target_order = rng.permutation(2000), rng.permutation(2000)
    plain = search_approximately(embeddings, *pools(embeddings), 10)
    assert plain.recall < 1
    moved = search_approximately(embeddings, source_order, target_order, 10).candidates
    renamed = Embeddings(embeddings.source[source_order], embeddings.target[target_order])
    again = search_approximately(renamed, *pools(renamed), 10).candidates
    for other in (moved, again):
        columns = target_order[other.forward_columns]
        assert (columns == plain.candidates.forward_columns[source_order]).all()
        assert (source_order[other.backward_rows] == plain.candidates.backward_rows[target_order]).all()
        assert (other.forward_scores == plain.candidates.forward_scores[source_order]).all()


def test_small_pools():
    embeddings, truth = planted(30)
    few = search_approximately(embeddings, *pools(embeddings), 100)
    assert few.candidates.forward_columns.shape == (30, 30)
    assert few.recall >= 0.95
    one = search_approximately(embeddings, [4], [truth[4]], 5)
    assert one.candidates.forward_columns.tolist() == [[0]]
    assert one.candidates.backward_rows.tolist() == [[0]]
    assert one.recall == 1
    against = search_approximately(embeddings, [4], np.arange(30), 5)
    assert against.candidates.forward_columns[0, 0] == truth[4]
    assert against.candidates.backward_rows.shape == (30, 1)
    none = search_approximately(embeddings, [], np.arange(30), 5)
    assert none.candidates.forward_columns.shape == (0, 5)
    assert none.candidates.backward_rows.shape == (30, 0)


def test_equal_vectors_are_kept_without_regard_to_ids():
    """600 times the same target: which of them are candidates must not hang on their numbers."""
    rng = np.random.default_rng(0)
    source = rng.standard_normal((300, 8)).astype(np.float32)
    target = np.repeat(rng.standard_normal((1, 8)).astype(np.float32), 600, axis=0)
    search = search_approximately(Embeddings(source, target), np.arange(300), np.arange(600), 5)
    assert search.recall == 1
    columns = search.candidates.forward_columns
    assert (columns >= 0).all()
    assert 200 < columns.mean() < 400
    in_cells = search_approximately(
        Embeddings(source, target), np.arange(300), np.arange(600), 5, num_cells=4, probes=4
    ).candidates.forward_columns
    assert all(len(set(row)) == 5 for row in in_cells.tolist())
    assert 150 < in_cells.mean() < 450


def test_vectors_without_neighbourhoods_are_searched_exactly():
    """Random vectors of many dimensions: nearly all cells would have to be probed, so cells do not pay."""
    rng = np.random.default_rng(0)
    embeddings = Embeddings(*(rng.standard_normal((1500, 100)).astype(np.float32) for _ in range(2)))
    search = search_approximately(embeddings, *pools(embeddings), 10)
    assert search.is_exact
    assert search.as_dict()["exact_instead"]
    exact = find_candidates(embeddings, *pools(embeddings), 10)
    for one, other in zip(arrays(search.candidates), arrays(exact), strict=True):
        assert one.tobytes() == other.tobytes()


def test_slabs_and_blocks_change_nothing(monkeypatch):
    embeddings, _ = planted(1200, measure="manhattan")
    whole = search_approximately(embeddings, *pools(embeddings), 8, probes=6)
    monkeypatch.setattr(module, "PROBES_AT_ONCE", 1000)
    monkeypatch.setattr(module, "BLOCK_COLUMNS", 16)
    monkeypatch.setattr(module, "BLOCK_ROWS", 50)
    pieces = search_approximately(embeddings, *pools(embeddings), 8, probes=6)
    assert pieces.share == whole.share
    assert (pieces.candidates.forward_columns == whole.candidates.forward_columns).mean() > 0.999
    np.testing.assert_allclose(pieces.candidates.backward_scores, whole.candidates.backward_scores, rtol=1e-5)


def test_progress_runs_from_nothing_to_all():
    embeddings, _ = planted(2000)
    told = {}
    search_approximately(
        embeddings, *pools(embeddings), 5,
        progress=lambda stage, done, total, note="": told.setdefault(stage, []).append((done, total)),
    )  # fmt: skip
    assert set(told) == {"cells", "recall", "candidates"}
    assert told["cells"][-1][0] == told["cells"][-1][1]
    done = [done for done, _ in told["candidates"]]
    assert done == sorted(done)
    assert done[-1] == pytest.approx(told["candidates"][-1][1])


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"recall": 0.0}, "recall is 0"),
        ({"recall": 1.5}, "recall is 1.5"),
        ({"k": 0}, "k is 0"),
        ({"probes": 0}, "probes is 0"),
        ({"num_cells": -1}, "num_cells is -1"),
    ],
)
def test_bad_numbers_are_refused(more, words):
    embeddings, _ = planted(50)
    with pytest.raises(InputError, match=words):
        search_approximately(embeddings, *pools(embeddings), **more)


def test_sparse_vectors_are_refused():
    sparse = csr_matrix(np.eye(4, dtype=np.float32))
    with pytest.raises(InputError, match="dense vectors"):
        search_approximately(Embeddings(sparse, sparse), np.arange(4), np.arange(4), 2)


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


@pytest.mark.parametrize("measure", ["cosine", "inner", "manhattan"])
def test_vectors_without_numbers_are_refused(measure):
    rows = np.ones((5, 3), np.float32)
    broken = rows.copy()
    broken[2, 1] = np.nan
    with pytest.raises(InputError, match="target vectors hold values that are no finite numbers"):
        search_approximately(Embeddings(rows, broken, measure=measure), np.arange(5), np.arange(5), 2)
