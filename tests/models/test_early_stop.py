import numpy as np
import pytest

from rlea.graph import Links
from rlea.models.early_stop import EarlyStop, hits_at_1, validation_pool


def stopping_index(scores: list[float], patience: int = 2) -> int | None:
    stop = EarlyStop(patience)
    for index, score in enumerate(scores):
        stop.record(index, score)
        if stop.should_stop:
            return index
    return None


def test_stops_at_the_second_evaluation_in_a_row_without_a_new_best():
    assert stopping_index([0.1, 0.2, 0.2, 0.19]) == 3
    assert stopping_index([0.1, 0.2, 0.15, 0.21, 0.1, 0.2]) == 5
    assert stopping_index([0.1, 0.2, 0.15, 0.16]) == 3  # it rises again, but not above the best
    assert stopping_index([0.1, 0.2, 0.3, 0.4]) is None
    assert stopping_index([0.0, 0.0]) is None
    assert stopping_index([0.2, 0.1], patience=1) == 1


def test_remembers_the_best_epoch_and_says_when_it_is_new():
    stop = EarlyStop(2)
    is_best = [stop.record(epoch, score) for epoch, score in ((10, 0.1), (20, 0.3), (30, 0.2), (40, 0.3))]
    assert is_best == [True, True, False, False]
    assert (stop.best_epoch, stop.best_score) == (20, 0.3)


def test_the_validation_pool_leaves_out_the_targets_of_seeds():
    assert validation_pool(5, Links.of([0, 1], [3, 0])).tolist() == [1, 2, 4]


def test_hits_at_1_counts_strictly_best_targets():
    source = np.eye(3, dtype=np.float32)
    target = np.array([[1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1]], dtype=np.float32)
    links = Links.of([0, 1, 2], [0, 1, 3])
    everything = np.arange(4, dtype=np.int32)
    assert hits_at_1(source, target, links, everything) == pytest.approx(2 / 3)  # 1 and 2 tie
    assert hits_at_1(source, target, links, np.array([0, 1, 3], dtype=np.int32)) == 1.0
    with pytest.raises(ValueError, match="at least one"):
        hits_at_1(source, target, Links.empty(), everything)


@pytest.mark.parametrize("measure", ["cosine", "inner", "manhattan"])
def test_hits_are_those_of_a_plain_count(measure):
    rng = np.random.default_rng(0)
    source = rng.standard_normal((40, 70)).astype(np.float32)
    target = (source[rng.permutation(40)] + 1.2 * rng.standard_normal((40, 70))).astype(np.float32)
    links = Links.of(np.arange(0, 30), rng.permutation(40)[:30])
    pool = np.setdiff1d(np.arange(40), links.target_ids[:3]).astype(np.int32)  # three golds are not in the pool
    hits = 0
    for s, t in zip(links.source_ids, links.target_ids, strict=True):
        if measure == "manhattan":
            scores = -np.abs(source[s].astype(np.float64) - target).sum(axis=1)
        else:
            scores = target.astype(np.float64) @ source[s]
            if measure == "cosine":
                scores /= np.linalg.norm(target, axis=1)
        hits += t in pool and (scores[pool] >= scores[t]).sum() == 1
    assert hits_at_1(source, target, links, pool, measure) == pytest.approx(hits / 30)


def test_a_tie_by_manhattan_is_no_hit():
    source = np.array([[0.0, 0.0]], dtype=np.float32)
    target = np.array([[1.0, 0.0], [0.0, 1.0], [5.0, 5.0]], dtype=np.float32)
    links = Links.of([0], [0])
    assert hits_at_1(source, target, links, np.array([0, 1, 2], np.int32), "manhattan") == 0.0
    assert hits_at_1(source, target, links, np.array([0, 2], np.int32), "manhattan") == 1.0


@pytest.mark.parametrize("measure", ["cosine", "manhattan"])
def test_who_is_not_in_the_pool_is_not_found(measure):
    vectors = np.eye(3, dtype=np.float32)
    links = Links.of([0, 1], [0, 1])
    assert hits_at_1(vectors, vectors, links, np.array([], np.int32), measure) == 0.0
    assert hits_at_1(vectors, vectors, links, np.array([2], np.int32), measure) == 0.0
    assert hits_at_1(vectors, vectors, links, np.array([2, 1], np.int32), measure) == 0.5
