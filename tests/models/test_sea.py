from dataclasses import replace

import numpy as np
import pytest
import torch

from rlea.errors import InputError
from rlea.graph import GraphPair, Links
from rlea.io.synthetic import SyntheticSettings, generate
from rlea.models import sea
from rlea.models.early_stop import hits_at_1
from rlea.models.sea import CompiledTrainer, Entities, SEASettings, TorchTrainer, train_sea

SHORT = SEASettings(dim=16, max_epochs=14, batch_size=300, valid_from=4, valid_every=4, patience=9)


@pytest.fixture(scope="module")
def pair() -> GraphPair:
    return generate(SyntheticSettings(num_entities=120))


def test_the_margin_by_hand():
    # Vectors of any length count as unit vectors: rows 0 1 2 are the entities (1,0), (0,1), (-1,0); row 3 is (0,1).
    raw = torch.tensor([[2.0, 0.0], [0.0, 0.5], [-1.0, 0.0], [0.0, 3.0]])
    positives = torch.tensor([[0, 3, 1], [1, 3, 2], [0, 3, 1]])
    # (1,0)+(0,1)-(0,1) = (1,0): 1; with the false tail 2, (2,1): 5, beyond 1 + 1.5.
    # (0,1)+(0,1)-(-1,0) = (1,2): 5; with the false head 2, (0,1): 1, so 1.5 + 5 - 1. The third has no negative.
    negatives, corrupt_tail = torch.tensor([2, 2, -1]), torch.tensor([True, False, True])
    assert float(sea.margin_loss(raw, positives, negatives, corrupt_tail, 1.5)) == pytest.approx(5.5)


def test_the_mappings_by_hand():
    raw = torch.tensor([[2.0, 0.0], [0.0, 0.5], [-1.0, 0.0], [0.0, 3.0]])
    # M is a quarter turn, doubled: (1,0) to (0,2), that is (0,1) at unit length. N does nothing.
    there, back = torch.tensor([[0.0, 2.0], [-2.0, 0.0]]), torch.eye(2)
    settings = SEASettings(seed_weight=3.0, cycle_weight=0.5)

    def loss(*rows: list[int]) -> float:
        return float(
            sea.mapping_loss(raw, there, back, *(torch.tensor(r, dtype=torch.long) for r in rows), settings=settings)
        )

    # The seed 0 - 1: M takes (1,0) right onto (0,1); N leaves (0,1) there, which is sqrt 2 from (1,0).
    assert loss([0], [1], [], []) == pytest.approx(3.0 * 2)
    # There and back is a quarter turn for everyone: sqrt 2 from home.
    assert loss([], [], [0, 2], [1]) == pytest.approx(0.5 * 2 * 3)


def test_every_entity_is_a_seed_or_one_of_the_others(pair: GraphPair):
    entities = sea.all_entities(pair)
    assert sorted(entities.rows().tolist()) == list(range(pair.source.num_entities + pair.target.num_entities))
    np.testing.assert_array_equal(entities.seed_targets - pair.source.num_entities, pair.train.target_ids)
    batches = sea.split_entities(entities, 7, seed=0, epoch=1)
    assert sorted(np.concatenate([batch.rows() for batch in batches])) == sorted(entities.rows())
    known = dict(zip(entities.seed_sources.tolist(), entities.seed_targets.tolist(), strict=True))
    for batch in batches:
        assert [known[row] for row in batch.seed_sources.tolist()] == batch.seed_targets.tolist()
    sizes = [len(batch.rows()) for batch in batches]
    assert max(sizes) - min(sizes) <= 4


def test_the_written_out_gradients_of_the_mappings_are_the_automatic_ones():
    random = np.random.default_rng(0)
    settings = SEASettings(dim=12)
    arrays = sea.fresh_arrays(50, settings, seed=0)
    arrays["there"] += random.standard_normal((12, 12)).astype(np.float32) * np.float32(0.2)
    batch = Entities(*(random.integers(0, 50, size).astype(np.int32) for size in (9, 9, 20, 15)))
    trainer = CompiledTrainer(arrays, settings)
    loss, by_units, by_there, by_back = trainer._mapping_gradients(batch)
    units = torch.tensor(trainer.units(50), requires_grad=True)
    there, back = (torch.tensor(arrays[name], requires_grad=True) for name in ("there", "back"))
    expected = sea.mapping_loss(units, there, back, *map(torch.tensor, batch.kinds()), settings=settings)
    expected.backward()
    assert loss == pytest.approx(float(expected.detach()), rel=1e-5)
    np.testing.assert_allclose(by_there, there.grad, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(by_back, back.grad, rtol=1e-3, atol=1e-4)
    total = np.zeros((50, 12), dtype=np.float32)
    np.add.at(total, batch.rows(), by_units)
    unit = units.detach().numpy()
    total -= (total * unit).sum(axis=1, keepdims=True) * unit  # what is along a unit vector does not count
    np.testing.assert_allclose(total, units.grad, rtol=1e-3, atol=1e-4)


def test_written_out_epochs_equal_the_reference():
    random = np.random.default_rng(0)
    settings = SEASettings(dim=12, learning_rate=0.002)  # small: steps of Adam turn where a gradient changes its sign
    arrays = sea.fresh_arrays(60, settings, seed=0)
    reference, written_out = TorchTrainer(arrays, settings, "cpu"), CompiledTrainer(arrays, settings)
    for _ in range(3):
        ends, relations = random.integers(0, 50, (40, 2)), random.integers(50, 60, 40)
        positives = np.stack([ends[:, 0], relations, ends[:, 1]], axis=1).astype(np.int32)
        triples = positives, random.integers(0, 50, 40).astype(np.int32), random.random(40) < 0.5, [0, 11, 25, 40]
        batches = [
            Entities(*(random.integers(0, 50, size).astype(np.int32) for size in (3, 3, 5, 5))) for _ in range(3)
        ]
        assert written_out.train_triples(*triples) == pytest.approx(reference.train_triples(*triples), rel=1e-4)
        assert written_out.train_mapping(batches) == pytest.approx(reference.train_mapping(batches), rel=1e-4)
    np.testing.assert_allclose(written_out.units(60), reference.units(60), atol=1e-3)
    np.testing.assert_allclose(written_out.matrix(), reference.matrix(), atol=1e-3)
    # Some rows wait for their next batch; asking for vectors does not move them, or a look would change the run.
    before = {name: array.copy() for name, array in written_out.arrays().items()}
    assert (before["triple_adam.last"] < 9).any()
    written_out.units(60)
    for name, array in written_out.arrays().items():
        np.testing.assert_array_equal(array, before[name], err_msg=name)


def test_finds_a_planted_alignment():
    exact = {"drop": 0.0, "add": 0.0, "split_relations": 0.0, "merge_relations": 0.0}
    pair = generate(SyntheticSettings(num_entities=300, **exact))
    embeddings = train_sea(pair, SEASettings(batch_size=500, max_epochs=180), device="cpu")
    assert isinstance(embeddings.source, np.ndarray)
    assert isinstance(embeddings.target, np.ndarray)
    np.testing.assert_allclose(np.linalg.norm(embeddings.source, axis=1), 1, atol=1e-5)
    pool = np.setdiff1d(np.arange(300, dtype=np.int32), pair.train.target_ids)
    assert hits_at_1(embeddings.source, embeddings.target, pair.test, pool) > 0.9
    assert embeddings.measure == "cosine"
    assert embeddings.name == "sea"


def test_pairs_with_few_seeds_or_without_others_are_trained(pair: GraphPair):
    settings = replace(SHORT, batch_size=50, max_epochs=3, valid_from=1)
    few = replace(pair, train=Links.of(pair.train.source_ids[:2], pair.train.target_ids[:2]))
    assert train_sea(few, settings, device="cpu").info["epochs"] == 3
    every = Links.union([pair.train, pair.valid, pair.test])
    assert np.isfinite(train_sea(replace(pair, train=every, valid=Links.empty()), settings, device="cpu").info["loss"])


def test_settings_that_cannot_train_are_refused():
    with pytest.raises(InputError, match="SEA setting margin is 0"):
        SEASettings(margin=0)
    with pytest.raises(InputError, match="seed_weight is -1"):
        SEASettings(seed_weight=-1)
    assert SEASettings(cycle_weight=0.0).cycle_weight == 0.0
