import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlea.models.aligne import AlignESettings
from rlea.models.negatives import Sampler, nearest_neighbours
from rlea.models.triples import JointTriples


def units(random: np.random.Generator, rows: int, dim: int = 8) -> np.ndarray:
    vectors = random.standard_normal((rows, dim)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def search(vectors: np.ndarray, num_source: int, share: float, **changes: int) -> np.ndarray:
    options = {"num_negatives": 1, "max_pool": 10_000} | changes
    epoch = options.pop("epoch", 1)
    settings = AlignESettings(neighbour_share=share, **options)
    return nearest_neighbours(vectors, num_source, settings, seed=0, epoch=epoch)


def test_neighbours_on_a_circle_can_be_read_off():
    # Source entities at 0, 10, 20, 90 and 100 degrees, target entities at 0, 5 and 180.
    angles = np.radians([0, 10, 20, 90, 100, 0, 5, 180])
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    found = search(vectors, 5, 0.4)  # two of five, one of three
    assert [set(row) for row in found[:5].tolist()] == [{1, 2}, {0, 2}, {0, 1}, {4, 2}, {3, 2}]
    assert [set(row) for row in found[5:].tolist()] == [{6}, {5}, {6}]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 300), st.floats(0.01, 1.0), st.booleans())
def test_neighbours_are_the_most_similar(seed: int, size: int, share: float, tied: bool):
    random = np.random.default_rng(seed)
    vectors = units(random, size)
    if tied:
        vectors = vectors[random.integers(0, max(1, size // 4), size)]
    found = search(np.concatenate([vectors, vectors[:1]]), size, share)[:size]
    count = max(1, min(size - 1, round(share * size)))
    similarity = (vectors @ vectors.T).astype(np.float64)
    for entity in range(size):
        ids = set(found[entity].tolist())
        assert len(ids) == count
        assert entity not in ids
        left_out = sorted(set(range(size)) - ids - {entity})
        if left_out:
            assert similarity[entity, sorted(ids)].min() >= similarity[entity, left_out].max() - 1e-6


def test_a_graph_of_one_entity_has_no_neighbours():
    assert (search(units(np.random.default_rng(0), 4), 1, 0.5)[0] == -1).all()


def test_a_large_graph_is_searched_by_a_sample_drawn_anew_each_time():
    vectors = units(np.random.default_rng(0), 600)
    found = search(vectors, 500, 0.1, max_pool=100)
    assert found.shape == (600, 10)
    assert len(np.unique(found[:500])) <= 100
    assert found[:500].max() < 500 <= found[500:].min()
    other = search(vectors, 500, 0.1, max_pool=100, epoch=2)
    assert set(np.unique(found[:500])) != set(np.unique(other[:500]))
    similarity = vectors[:500] @ vectors[:500].T
    threshold = np.quantile(similarity, 0.8, axis=1)
    assert (np.take_along_axis(similarity, found[:500], 1) >= threshold[:, None]).mean() > 0.95


@pytest.fixture
def triples() -> JointTriples:
    random = np.random.default_rng(1)
    source = np.stack([random.integers(0, 40, 200), random.integers(0, 3, 200), random.integers(0, 40, 200)], axis=1)
    target = np.stack([random.integers(40, 60, 90), random.integers(3, 5, 90), random.integers(40, 60, 90)], axis=1)
    return JointTriples(
        np.unique(source, axis=0).astype(np.int32), np.unique(target, axis=0).astype(np.int32), 40, 20, 5
    )


def corrupted(positives: np.ndarray, negatives: np.ndarray, corrupt_tail: np.ndarray) -> set[tuple[int, int, int]]:
    result = set()
    for (head, relation, tail), entities, is_tail in zip(positives, negatives, corrupt_tail, strict=True):
        for entity in entities[entities >= 0]:
            result.add((head, relation, entity) if is_tail else (entity, relation, tail))
    return {tuple(map(int, triple)) for triple in result}


def test_negatives_are_false_and_stay_in_their_graph(triples: JointTriples):
    positives = np.concatenate([triples.source, triples.target])
    negatives, corrupt_tail = Sampler.of(triples).draw(positives, 10, None, seed=0, epoch=1)
    assert negatives.shape == (len(positives), 10)
    assert (negatives >= 0).all()
    assert not corrupted(positives, negatives, corrupt_tail) & {tuple(map(int, row)) for row in positives}
    replaced = np.where(corrupt_tail, positives[:, 2], positives[:, 0])
    assert ((negatives < 40) == (replaced < 40)[:, None]).all()
    assert 0.4 < corrupt_tail.mean() < 0.6
    assert len(np.unique(negatives[replaced < 40])) == 40


def test_truncated_negatives_are_neighbours_of_the_entity_they_replace(triples: JointTriples):
    neighbours = search(units(np.random.default_rng(2), 60), 40, 0.25)
    positives = np.concatenate([triples.source, triples.target])
    negatives, corrupt_tail = Sampler.of(triples).draw(positives, 10, neighbours, seed=0, epoch=1)
    replaced = np.where(corrupt_tail, positives[:, 2], positives[:, 0])
    among = [np.isin(row, neighbours[entity]).all() for row, entity in zip(negatives, replaced, strict=True)]
    # A few entities have only true triples nearby; then the whole graph is drawn from.
    assert np.mean(among) > 0.95


def test_where_every_triple_is_true_there_is_no_negative():
    everything = np.array([[h, 0, t] for h in range(2) for t in range(2)], dtype=np.int32)
    other = np.array([[2, 1, 3]], dtype=np.int32)
    sampler = Sampler.of(JointTriples(everything, other, 2, 2, 2))
    assert (sampler.draw(everything, 5, None, seed=0, epoch=1)[0] == -1).all()
    negatives, corrupt_tail = sampler.draw(other, 5, None, seed=0, epoch=1)
    assert (negatives == (2 if corrupt_tail[0] else 3)).all()


def test_draws_depend_on_seed_and_epoch_only(triples: JointTriples):
    sampler = Sampler.of(triples)
    draw = sampler.draw(triples.source, 10, None, seed=5, epoch=7)
    assert (draw[0] == sampler.draw(triples.source, 10, None, seed=5, epoch=7)[0]).all()
    for change in ({"seed": 6}, {"epoch": 8}):
        other = sampler.draw(triples.source, 10, None, **({"seed": 5, "epoch": 7} | change))
        assert (draw[0] != other[0]).mean() > 0.8


@pytest.mark.parametrize("seed", [0, 1, 2**63 - 1])
def test_draws_are_even(seed: int):
    """Either end equally often, every entity equally often: chi-squared far below what an uneven draw would give."""
    num_entities, num_triples, num_negatives = 50, 4000, 10
    no_triples = np.empty((0, 3), dtype=np.int32)
    sampler = Sampler.of(JointTriples(no_triples, no_triples, num_entities, num_entities, 1))
    positives = np.zeros((num_triples, 3), dtype=np.int32)
    negatives, corrupt_tail = sampler.draw(positives, num_negatives, None, seed=seed, epoch=1)
    expected = num_triples * num_negatives / num_entities
    counts = np.bincount(negatives.ravel(), minlength=num_entities)
    assert counts.sum() == negatives.size
    assert ((counts - expected) ** 2 / expected).sum() < num_entities + 6 * np.sqrt(2 * num_entities)
    assert abs(corrupt_tail.mean() - 0.5) < 5 * 0.5 / np.sqrt(num_triples)
