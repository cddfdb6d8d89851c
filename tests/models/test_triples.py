from itertools import pairwise

import numpy as np
import polars as pl

from rlea.graph import GraphPair, KnowledgeGraph, Links
from rlea.models.triples import JointTriples, initial_vectors, join_triples, shuffled, swapped_copies


def graph(*rows: tuple[str, str, str]) -> KnowledgeGraph:
    return KnowledgeGraph.build(pl.DataFrame(rows, schema=["head", "relation", "tail"], orient="row"))


def as_set(triples: np.ndarray) -> set[tuple[int, ...]]:
    return {tuple(map(int, row)) for row in triples}


def test_swapped_copies_replace_one_end_at_a_time():
    triples = np.array([[0, 0, 1], [1, 0, 2], [2, 1, 2]], dtype=np.int32)
    copies = swapped_copies(triples, np.array([1, 2], dtype=np.int32), np.array([11, 12], dtype=np.int32))
    assert as_set(copies) == {(0, 0, 11), (11, 0, 2), (1, 0, 12), (12, 1, 2), (2, 1, 12)}
    assert len(copies) == 5


def test_an_entity_with_two_counterparts_is_swapped_for_both():
    triples = np.array([[0, 0, 1]], dtype=np.int32)
    copies = swapped_copies(triples, np.array([0, 0], dtype=np.int32), np.array([5, 6], dtype=np.int32))
    assert as_set(copies) == {(5, 0, 1), (6, 0, 1)}


def test_joint_ids_and_swaps_of_a_pair_small_enough_to_read():
    # Source entities a b c are 0 1 2, target entities x y are 3 4; relations: source r is 0, target p q are 1 2.
    pair = GraphPair(
        "tiny",
        graph(("a", "r", "b"), ("b", "r", "c")),
        graph(("x", "p", "y"), ("y", "q", "y")),
        train=Links.of([0], [1]),  # a is y
    )
    plain = join_triples(pair, swap=False)
    assert as_set(plain.source) == {(0, 0, 1), (1, 0, 2)}
    assert as_set(plain.target) == {(3, 1, 4), (4, 2, 4)}
    swapped = join_triples(pair, swap=True)
    assert as_set(swapped.source) == {(0, 0, 1), (1, 0, 2), (4, 0, 1)}
    assert as_set(swapped.target) == {(3, 1, 4), (4, 2, 4), (3, 1, 0), (0, 2, 4), (4, 2, 0)}
    assert (swapped.num_entities, swapped.num_relations, len(swapped)) == (5, 3, 8)


def test_batches_hold_every_triple_once_in_proportion_and_in_a_new_order_each_epoch():
    random = np.random.default_rng(0)
    source = np.unique(random.integers(0, 50, (300, 3)).astype(np.int32), axis=0)
    target = np.unique(random.integers(50, 99, (100, 3)).astype(np.int32), axis=0)
    triples = JointTriples(source, target, 50, 49, 99)
    order, cuts = shuffled(triples, 64, seed=3, epoch=1)
    assert as_set(order) == as_set(np.concatenate([source, target]))
    assert (cuts[0], cuts[-1], len(order)) == (0, len(triples), len(triples))
    sizes = np.diff(cuts)
    assert 0 < sizes.min() <= sizes.max() <= 64
    shares = [(order[begin:end, 0] < 50).mean() for begin, end in pairwise(cuts)]
    assert max(shares) - min(shares) < 0.05
    assert (order == shuffled(triples, 64, seed=3, epoch=1)[0]).all()
    assert (order != shuffled(triples, 64, seed=3, epoch=2)[0]).any()
    assert (order != shuffled(triples, 64, seed=4, epoch=1)[0]).any()


def test_initial_vectors_are_truncated_at_two_deviations():
    vectors = initial_vectors(2000, 25, seed=0)
    assert vectors.dtype == np.float32
    assert np.abs(vectors).max() <= 2 / 5 + 1e-6
    # A normal distribution cut at two deviations keeps 0.774 of its variance.
    assert abs(vectors.std() * 5 - np.sqrt(0.774)) < 0.01
