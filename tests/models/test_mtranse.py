from dataclasses import replace

import numpy as np
import pytest
import torch

from rlea.errors import InputError
from rlea.graph import GraphPair, Links
from rlea.io.synthetic import SyntheticSettings, generate
from rlea.models import mtranse
from rlea.models.early_stop import hits_at_1
from rlea.models.mtranse import CompiledTrainer, MTransESettings, TorchTrainer, train_mtranse

SHORT = MTransESettings(dim=16, max_epochs=14, batch_size=300, valid_from=4, valid_every=4, patience=9)


@pytest.fixture(scope="module")
def pair() -> GraphPair:
    return generate(SyntheticSettings(num_entities=120))


def test_the_losses_by_hand():
    # Vectors of any length count as unit vectors: rows 0 1 2 are the entities (1,0), (0,1), (-1,0); row 3 is (0,1).
    raw = torch.tensor([[2.0, 0.0], [0.0, 0.5], [-1.0, 0.0], [0.0, 3.0]])
    # (1,0) + (0,1) - (0,1) = (1,0) has square 1; (0,1) + (0,1) - (-1,0) = (1,2) has square 5.
    assert float(mtranse.distance_loss(raw, torch.tensor([[0, 3, 1], [1, 3, 2]]))) == pytest.approx(6)
    # A quarter turn doubled: (1,0) goes to (0,2), one beyond (0,1); (0,1) goes to (-2,0), one beyond (-1,0).
    # M M^T is 4 I, which is 3 I too much: 9 + 9.
    mapping = torch.tensor([[0.0, 2.0], [-2.0, 0.0]])
    sources, targets = torch.tensor([0, 1]), torch.tensor([1, 2])
    assert float(mtranse.mapping_loss(raw, mapping, sources, targets, 5.0)) == pytest.approx(5 * (1 + 1 + 18))


def test_one_step_by_hand():
    # A triple h = (1,0), r = (0,1), t = (0,1): gradient 2(h+r-t) = (2,0) for h and r, minus that for t. Normalising
    # keeps what is across the vector: nothing for h, all of it for r and t.
    raw = np.array([[1, 0], [0, 1], [0, 1]], dtype=np.float32)
    arrays = mtranse.fresh_arrays(3, MTransESettings(dim=2), seed=0) | {"raw": raw}
    trainer = CompiledTrainer(arrays, MTransESettings(dim=2))
    assert trainer.train_triples(np.array([[0, 2, 1]], dtype=np.int32), [0, 1]) == pytest.approx(1)
    move = 0.01 * 2 / np.sqrt(0.1 + 4)
    assert trainer.table.raw == pytest.approx(np.array([[1, 0], [move, 1], [-move, 1]]), abs=1e-7)
    assert trainer.seed_squares == pytest.approx(np.full((3, 2), 0.1))


def test_written_out_steps_equal_the_reference():
    random = np.random.default_rng(0)
    settings = MTransESettings(dim=12)
    arrays = mtranse.fresh_arrays(50, settings, seed=0)
    arrays["raw"] *= random.uniform(0.5, 2, (50, 1)).astype(np.float32)
    reference, written_out = TorchTrainer(arrays, settings, "cpu"), CompiledTrainer(arrays, settings)
    for _ in range(3):
        ends, relations = random.integers(0, 40, (90, 2)), random.integers(40, 50, 90)
        triples = np.stack([ends[:, 0], relations, ends[:, 1]], axis=1).astype(np.int32), [0, 40, 90]
        # Entities may be in several seeds, and a batch of seeds may be empty.
        seeds = *random.integers(0, 40, (2, 15)).astype(np.int32), [0, 7, 7, 15]
        assert written_out.train_triples(*triples) == pytest.approx(reference.train_triples(*triples), rel=1e-5)
        assert written_out.train_mapping(*seeds) == pytest.approx(reference.train_mapping(*seeds), rel=1e-5)
    expected, arrays = reference.arrays(), written_out.arrays()
    assert set(arrays) - set(expected) == {"scales"}
    for name, array in expected.items():
        np.testing.assert_allclose(arrays[name], array, rtol=1e-3, atol=1e-5, err_msg=name)
    np.testing.assert_allclose(written_out.units(40), reference.units(40), atol=1e-5)


def test_finds_a_planted_alignment():
    # A matrix of 100 x 100 numbers is learnt from the seeds alone, so there must be more of them than in benchmarks.
    exact = {"drop": 0.0, "add": 0.0, "split_relations": 0.0, "merge_relations": 0.0}
    pair = generate(SyntheticSettings(num_entities=300, triples_per_entity=10, seeds=0.4, **exact))
    embeddings = train_mtranse(pair, MTransESettings(batch_size=500, max_epochs=200, patience=20), device="cpu")
    assert isinstance(embeddings.source, np.ndarray)
    assert isinstance(embeddings.target, np.ndarray)
    np.testing.assert_allclose(np.linalg.norm(embeddings.source, axis=1), 1, atol=1e-5)
    pool = np.setdiff1d(np.arange(300, dtype=np.int32), pair.train.target_ids)
    assert hits_at_1(embeddings.source, embeddings.target, pair.test, pool) > 0.9
    assert embeddings.measure == "cosine"
    assert embeddings.name == "mtranse"


def test_fewer_seeds_than_batches_are_enough(pair: GraphPair):
    few = replace(pair, train=Links.of(pair.train.source_ids[:2], pair.train.target_ids[:2]))
    settings = replace(SHORT, batch_size=50, max_epochs=3, valid_from=1)
    assert train_mtranse(few, settings, device="cpu").info["epochs"] == 3


def test_settings_that_cannot_train_are_refused():
    with pytest.raises(InputError, match="MTransE setting initial_squares is 0"):
        MTransESettings(initial_squares=0)
    with pytest.raises(InputError, match="mapping_weight is -1"):
        MTransESettings(mapping_weight=-1)
