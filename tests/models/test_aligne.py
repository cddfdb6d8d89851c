import weakref
from typing import Any

import numpy as np
import pytest
import torch

from rlea.errors import InputError
from rlea.graph import GraphPair
from rlea.io.synthetic import SyntheticSettings, generate
from rlea.models import aligne
from rlea.models.aligne import AlignE, AlignESettings, CompiledTrainer, TorchTrainer, limit_loss, train_aligne
from rlea.models.early_stop import hits_at_1

# Neighbour searches and validations that do not fall on the same epochs, so that a checkpoint must keep both apart.
SHORT = AlignESettings(dim=16, max_epochs=14, batch_size=300, refresh_every=3, valid_from=4, valid_every=4, patience=9)


@pytest.fixture(scope="module")
def pair() -> GraphPair:
    return generate(SyntheticSettings(num_entities=120))


def test_finds_a_planted_alignment():
    exact = {"drop": 0.0, "add": 0.0, "split_relations": 0.0, "merge_relations": 0.0}
    pair = generate(SyntheticSettings(num_entities=300, seeds=0.3, **exact))
    settings = AlignESettings(dim=150, batch_size=1000, max_epochs=150, patience=20)
    embeddings = train_aligne(pair, settings, device="cpu")
    assert isinstance(embeddings.source, np.ndarray)
    assert isinstance(embeddings.target, np.ndarray)
    np.testing.assert_allclose(np.linalg.norm(embeddings.source, axis=1), 1, atol=1e-5)
    pool = np.setdiff1d(np.arange(300, dtype=np.int32), pair.train.target_ids)
    assert hits_at_1(embeddings.source, embeddings.target, pair.test, pool) > 0.9
    assert embeddings.info["valid_hits_at_1"] > 0.9
    assert embeddings.info["epoch_of_vectors"] <= embeddings.info["epochs"] <= 150


def test_the_old_table_of_neighbours_is_gone_before_a_new_one_is_made(pair: GraphPair, monkeypatch: pytest.MonkeyPatch):
    search = aligne.nearest_neighbours
    tables: list[Any] = []
    still_there = []

    def watch(*given: Any, **options: Any) -> np.ndarray:
        still_there.append(sum(table() is not None for table in tables))
        found = search(*given, **options)
        tables.append(weakref.ref(found))
        return found

    monkeypatch.setattr(aligne, "nearest_neighbours", watch)
    model = AlignE(pair, SHORT, 0, "cpu")
    model.start(0, {})
    for epoch in range(1, 11):
        model.run_epoch(epoch)
    assert still_there == [0, 0, 0]  # before epochs 4, 7 and 10
    assert tables[-1]() is model.neighbours


def test_settings_that_cannot_train_are_refused():
    with pytest.raises(InputError, match="initial_squares is 0"):
        AlignESettings(initial_squares=0)
    with pytest.raises(InputError, match="batch_size is -1"):
        AlignESettings(batch_size=-1)
    assert AlignESettings(positive_limit=0.0).positive_limit == 0.0


# ---- the compiled step against the reference, and the reference against arithmetic ----

ROWS, ENTITIES, DIM = 60, 50, 24


def tables(seed: int = 0) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    raw = random.standard_normal((ROWS, DIM)).astype(np.float32) * random.uniform(0.3, 3, (ROWS, 1)).astype(np.float32)
    return {"raw": raw, "squares": np.full_like(raw, 0.1)}


def batch(seed: int = 0, size: int = 200) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    entities = random.integers(0, ENTITIES, (size, 2))
    relations = random.integers(ENTITIES, ROWS, size)
    negatives = random.integers(-1, ENTITIES, (size, 10))  # -1: none found
    positives = np.stack([entities[:, 0], relations, entities[:, 1]], axis=1)
    return positives.astype(np.int32), negatives.astype(np.int32), random.random(size) < 0.5


def test_the_loss_of_two_triples_by_hand():
    # Vectors of any length count as unit vectors: rows 0 1 2 are the entities (1,0), (0,1), (-1,0); row 3 is (0,1).
    raw = torch.tensor([[2.0, 0.0], [0.0, 0.5], [-1.0, 0.0], [0.0, 3.0]])
    settings = AlignESettings(positive_limit=0.5, negative_limit=4.0, negative_weight=0.25)
    positives = torch.tensor([[0, 3, 1], [1, 3, 2]])
    # (1,0)+(0,1)-(0,1) = (1,0): 1 - 0.5; (0,1)+(0,1)-(-1,0) = (1,2): 5 - 0.5.
    # False tails of the first: 0 gives (0,1), so 4 - 1; 2 gives (2,1), 5, beyond the limit; the third is missing.
    # False heads of the second: 0 gives (2,1), beyond the limit; 2 gives (0,1), so 4 - 1; 1 gives (1,2), beyond.
    negatives = torch.tensor([[0, 2, -1], [0, 2, 1]])
    loss = limit_loss(raw, positives, negatives, torch.tensor([True, False]), settings)
    assert float(loss) == pytest.approx(0.5 + 4.5 + 0.25 * (3 + 3))
    written_out = CompiledTrainer({"raw": raw.numpy(), "squares": np.full((4, 2), 0.1, dtype=np.float32)}, settings)
    args = positives.numpy().astype(np.int32), negatives.numpy().astype(np.int32), np.array([True, False])
    assert written_out.step(*args) == pytest.approx(float(loss))


def test_one_adagrad_step_by_hand():
    # A single triple h = (1,0), r = (0,1), t = (0,1), no negatives: gradient 2(h+r-t) = (2,0) for h and r, minus that
    # for t. Normalising keeps what is across the vector: nothing for h, all of it for r and t.
    raw = np.array([[1, 0], [0, 1], [0, 1]], dtype=np.float32)
    trainer = CompiledTrainer({"raw": raw, "squares": np.full_like(raw, 0.1)}, AlignESettings())
    positives = np.array([[0, 2, 1]], dtype=np.int32)
    assert trainer.step(positives, np.array([[-1]], dtype=np.int32), np.array([True])) == pytest.approx(0.99)
    move = 0.01 * 2 / np.sqrt(0.1 + 4)
    assert trainer.table.raw == pytest.approx(np.array([[1, 0], [move, 1], [-move, 1]]), abs=1e-7)
    assert trainer.squares == pytest.approx(np.array([[0.1, 0.1], [4.1, 0.1], [4.1, 0.1]]), abs=1e-6)


def test_written_out_steps_equal_the_reference():
    settings = AlignESettings(dim=DIM)
    reference, written_out = TorchTrainer(tables(), settings, "cpu"), CompiledTrainer(tables(), settings)
    for seed in range(5):
        expected, loss = reference.step(*batch(seed)), written_out.step(*batch(seed))
        assert loss == pytest.approx(expected, rel=1e-5)
    expected_arrays, arrays = reference.arrays(), written_out.arrays()
    assert np.abs(expected_arrays["raw"] - tables()["raw"]).max() > 0.01  # there was something to compare
    np.testing.assert_allclose(arrays["raw"], expected_arrays["raw"], atol=1e-5)
    np.testing.assert_allclose(arrays["squares"], expected_arrays["squares"], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(written_out.units(ROWS), reference.units(ROWS), atol=1e-5)


def test_rows_that_no_triple_touches_do_not_move():
    trainer = CompiledTrainer(tables(), AlignESettings())
    positives, negatives, corrupt_tail = batch(0, size=3)
    trainer.step(positives, negatives, corrupt_tail)
    untouched = np.setdiff1d(np.arange(ROWS), np.concatenate([positives.ravel(), negatives.ravel()]))
    assert len(untouched) > 10
    assert (trainer.table.raw[untouched] == tables()["raw"][untouched]).all()
