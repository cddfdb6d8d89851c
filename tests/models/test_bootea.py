from dataclasses import fields, replace
from itertools import combinations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rlea.graph import GraphPair, Links
from rlea.io.synthetic import SyntheticSettings, generate
from rlea.models.aligne import AlignESettings, CompiledTrainer, TorchTrainer, train_aligne
from rlea.models.bootea import (
    BootEA,
    BootEASettings,
    CompiledCopies,
    TorchCopies,
    copies_of_labels,
    edit_labels,
    heaviest_matching,
    propose_labels,
    train_bootea,
)
from rlea.models.early_stop import hits_at_1
from rlea.models.triples import JointTriples

from .conftest import bytes_of, started

# Labels, neighbour searches and validations that do not fall on the same epochs: a checkpoint must keep them apart.
# The rate is high, so that a few epochs are enough for the last to be the best.
SHORT = BootEASettings(
    dim=32, learning_rate=0.1, batch_size=300, refresh_every=3, label_every=5, similarity_limit=0.6,
    max_epochs=14, valid_from=4, valid_every=4, patience=9,
)  # fmt: skip
ALIGNE = [field.name for field in fields(AlignESettings)]
PLAIN = SyntheticSettings(num_entities=120, drop=0, add=0, split_relations=0, merge_relations=0, seeds=0.3)


@pytest.fixture(scope="module")
def pair() -> GraphPair:
    return generate(PLAIN)


def pairs_of(links: Links) -> list[tuple[int, int]]:
    return list(zip(links.source_ids.tolist(), links.target_ids.tolist(), strict=True))


def at(*degrees: float) -> np.ndarray:
    """Unit vectors of the plane: their similarity is the cosine of the angle between them."""
    angles = np.radians(np.array(degrees))
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


# Similarities of the pairs: .9 and .8 in one row, .85 and nothing in the other.
@pytest.mark.parametrize(
    ("cells", "chosen"),
    [
        ({(0, 0): 0.9, (0, 1): 0.8, (1, 0): 0.85}, [(0, 1), (1, 0)]),  # .8 + .85, not the best pair first
        ({(0, 0): 0.9, (1, 0): 0.85}, [(0, 0)]),  # one stays without a partner
        ({(0, 0): 0.8, (0, 1): 0.9}, [(0, 1)]),
        ({(7, 3): 0.75}, [(7, 3)]),
        ({(0, 0): 0.9, (0, 1): 0.2, (1, 0): 0.3}, [(0, 0)]),  # .9 is more than .2 + .3: weight, not number
        ({}, []),
    ],
)
def test_the_matching_has_the_largest_sum(cells: dict[tuple[int, int], float], chosen: list[tuple[int, int]]):
    rows, columns = np.array(list(cells), dtype=np.int32).reshape(-1, 2).T
    places = heaviest_matching(rows, columns, np.array(list(cells.values()), dtype=np.float32))
    assert [list(cells)[i] for i in places] == chosen


@settings(max_examples=50)
@given(
    st.dictionaries(
        st.tuples(st.integers(0, 4), st.integers(0, 4)), st.integers(1, 100).map(lambda x: x / 100), max_size=8
    )
)
def test_no_matching_has_a_larger_sum(cells: dict[tuple[int, int], float]):
    def is_one_to_one(some: tuple[tuple[int, int], ...]) -> bool:
        return len({i for i, _ in some}) == len(some) == len({j for _, j in some})

    some = [part for size in range(len(cells) + 1) for part in combinations(cells, size) if is_one_to_one(part)]
    best = max(sum(cells[cell] for cell in part) for part in some)
    rows, columns = np.array(list(cells), dtype=np.int32).reshape(-1, 2).T
    places = heaviest_matching(rows, columns, np.array(list(cells.values()), dtype=np.float32))
    found = tuple(list(cells)[i] for i in places)
    assert is_one_to_one(found)
    assert sum(cells[cell] for cell in found) == pytest.approx(best, abs=1e-5)


def test_labels_are_more_similar_than_the_limit():
    source, target = at(0, 90, 180), at(44, 136, 360)  # cos 44 = .719, cos 46 = .695
    every = np.arange(3, dtype=np.int32)
    proposed = propose_labels(source, target, every, every, BootEASettings(similarity_limit=0.7, num_candidates=2))
    assert pairs_of(proposed) == [(0, 2), (2, 1)]  # source 1 lies 46 degrees from both targets it is near to
    proposed = propose_labels(source, target, every, every, BootEASettings(similarity_limit=0.69, num_candidates=2))
    assert sorted(pairs_of(proposed)) == [(0, 2), (1, 0), (2, 1)]


def test_only_the_entities_given_are_labelled():
    source, target = at(0, 10, 20), at(0, 10, 20)
    some = np.array([0, 2], dtype=np.int32)
    proposed = propose_labels(source, target, some, some, BootEASettings(similarity_limit=0.7, num_candidates=10))
    assert sorted(pairs_of(proposed)) == [(0, 0), (2, 2)]
    nobody = np.zeros(0, dtype=np.int32)
    assert (
        len(propose_labels(source, target, nobody, some, BootEASettings(similarity_limit=0.7, num_candidates=10))) == 0
    )


def test_candidates_are_the_nearest_of_either():
    # The nearest target of both sources is the one at 5; of the one at 20 the nearest source is the one at 10. With
    # one candidate each, source 1 gets a partner because a target chose it.
    source, target = at(4, 10), at(5, 20)
    every = np.arange(2, dtype=np.int32)
    proposed = propose_labels(source, target, every, every, BootEASettings(similarity_limit=0.7, num_candidates=1))
    assert sorted(pairs_of(proposed)) == [(0, 0), (1, 1)]


@pytest.mark.parametrize(
    ("old", "new", "kept"),
    [
        ([(0, 0)], [(1, 1)], [(0, 0), (1, 1)]),  # no conflict: both
        ([(0, 1)], [(0, 0)], [(0, 0)]),  # the new target of 0 is nearer to it
        ([(0, 0)], [(0, 1)], [(0, 0)]),  # and here it is not
        ([(1, 0)], [(0, 0)], [(0, 0)]),  # two sources for one target
        ([(0, 0)], [(1, 0)], [(0, 0)]),
        ([(0, 0)], [(0, 0)], [(0, 0)]),
        # The old label of 0 gives way to a new one, which itself loses its target to the old label of 1.
        ([(0, 2), (1, 1)], [(0, 1)], [(1, 1)]),
        ([], [], []),
    ],
)
def test_editing_keeps_the_more_similar_label(
    old: list[tuple[int, int]], new: list[tuple[int, int]], kept: list[tuple[int, int]]
):
    labels = [Links.of([i for i, _ in pairs], [j for _, j in pairs]) for pairs in (old, new)]
    assert pairs_of(edit_labels(*labels, at(0, 30, 60), at(1, 28, 70))) == kept


def test_of_equally_similar_labels_the_new_one_stays():
    source, target = at(0), at(10, 10)
    assert pairs_of(edit_labels(Links.of([0], [0]), Links.of([0], [1]), source, target)) == [(0, 1)]
    assert pairs_of(edit_labels(Links.of([0], [1]), Links.of([0], [0]), source, target)) == [(0, 0)]


def test_copies_have_the_partner_in_place_of_the_labelled_entity():
    # Source entities 0, 1, 2 and target entities 3, 4; the label says that 1 is 4.
    triples = JointTriples(
        np.array([[0, 0, 1], [1, 0, 2], [0, 0, 2]], dtype=np.int32), np.array([[3, 1, 4]], dtype=np.int32), 3, 2, 2
    )
    copies = copies_of_labels(triples, Links.of([1], [1]))
    assert copies.source.tolist() == [[0, 0, 4], [4, 0, 2]]
    assert copies.target.tolist() == [[3, 1, 1]]


def test_loss_by_hand():
    def loss(raw: list[list[float]], triples: list[list[int]]) -> float:
        start = np.array(raw, dtype=np.float32)
        trainer = TorchTrainer({"raw": start, "squares": np.ones_like(start)}, SHORT, "cpu")
        return float(TorchCopies(trainer, np.ones_like(start)).loss(torch.tensor(triples)).detach())

    # Unit vectors h = (1, 0), r = (0, 1), t = (0, 1), whatever their length was: f = |(1, 0)|^2 = 1.
    assert loss([[2.0, 0.0], [0.0, 3.0], [0.0, 0.5]], [[0, 1, 2]]) == pytest.approx(np.log(1 + np.e))
    # And f = 0 for h = t, r = 0 in effect: h + r - t with t = h + r of unit length.
    raw = [[1.0, 0.0], [-0.5, 0.75**0.5], [0.5, 0.75**0.5]]
    assert loss(raw, [[0, 1, 2], [0, 1, 2]]) == pytest.approx(2 * np.log(2))


def test_the_written_out_pass_is_that_of_autograd():
    random = np.random.default_rng(0)
    raw = random.standard_normal((9, 5)).astype(np.float32)
    sums = random.uniform(0.1, 1, raw.shape).astype(np.float32)
    # Rows 0 to 5 are entities (5 in no triple), 6 and 7 relations in use; the first triple comes twice, one is a loop.
    triples = np.array([[0, 6, 1], [0, 6, 1], [2, 7, 3], [4, 6, 4], [1, 7, 2]], dtype=np.int32)
    settings = BootEASettings(learning_rate=0.1)
    trainer = TorchTrainer({"raw": raw, "squares": np.ones_like(raw)}, settings, "cpu")
    reference = TorchCopies(trainer, sums)
    compiled = CompiledTrainer({"raw": raw, "squares": np.ones_like(raw)}, settings)
    copies, table = CompiledCopies(compiled, sums), compiled.table
    for cuts in ([0, 5], [0, 2, 5]):
        assert copies.learn(triples, cuts) == pytest.approx(reference.learn(triples, cuts), rel=1e-5)
        np.testing.assert_allclose(table.raw, trainer.arrays()["raw"], rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(copies.squares(), reference.squares(), rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(table.scales, 1 / np.linalg.norm(table.raw, axis=1), rtol=1e-5)
    np.testing.assert_array_equal(table.raw[[5, 8]], raw[[5, 8]])


def test_learns_a_planted_alignment_better_than_aligne():
    pair = generate(replace(PLAIN, num_entities=300, seeds=0.2))
    pool = np.setdiff1d(np.arange(300, dtype=np.int32), pair.train.target_ids)
    settings = BootEASettings(
        dim=75, learning_rate=0.05, batch_size=500, max_epochs=60, valid_from=20, patience=9, label_every=10
    )
    without = AlignESettings(**{name: getattr(settings, name) for name in ALIGNE})
    found = []
    for embeddings in (train_aligne(pair, without, device="cpu"), train_bootea(pair, settings, device="cpu")):
        assert isinstance(embeddings.source, np.ndarray)
        assert isinstance(embeddings.target, np.ndarray)
        np.testing.assert_allclose(np.linalg.norm(embeddings.source, axis=1), 1, atol=1e-5)
        found.append(hits_at_1(embeddings.source, embeddings.target, pair.test, pool))
    assert found[1] > 0.9
    assert found[1] > found[0] + 0.05


def test_seeds_are_not_labelled_and_the_rest_is_looked_at(pair: GraphPair):
    training = started(BootEA, pair, SHORT)
    for epoch in range(1, 22):
        training.run_epoch(epoch)
    labels = training.labels
    assert len(labels) > 10
    assert len(np.unique(labels.source_ids)) == len(labels) == len(np.unique(labels.target_ids))
    assert not np.isin(labels.source_ids, pair.train.source_ids).any()
    assert not np.isin(labels.target_ids, pair.train.target_ids).any()
    # Entities of validation links are entities like others, and nothing but vectors says who is whose.
    assert np.isin(labels.source_ids, pair.valid.source_ids).any()


def test_without_labels_it_is_aligne(pair: GraphPair):
    course = {name: getattr(SHORT, name) for name in ALIGNE}
    expected = bytes_of(train_aligne(pair, AlignESettings(**course), device="cpu"))
    assert bytes_of(train_bootea(pair, replace(SHORT, similarity_limit=0.9999), device="cpu")) == expected
    assert bytes_of(train_bootea(pair, replace(SHORT, label_every=14), device="cpu")) == expected
    assert bytes_of(train_bootea(pair, SHORT, device="cpu")) != expected


def test_the_way_to_a_gpu_learns_the_same(pair: GraphPair, monkeypatch: pytest.MonkeyPatch):
    settings = replace(SHORT, max_epochs=8, num_negatives=3)
    expected = train_bootea(pair, settings, device="cpu")
    monkeypatch.setattr(BootEA, "trainers", (TorchTrainer, TorchTrainer))
    reference = train_bootea(pair, settings, device="cpu")
    assert expected.info["loss"] == pytest.approx(reference.info["loss"], rel=1e-3)
