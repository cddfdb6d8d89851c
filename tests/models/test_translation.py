"""The steps of AlignE, JAPE, MTransE and SEA: by hand, against automatic gradients, and while rows wait."""

from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from rlea.models import aligne, jape, mtranse, sea
from rlea.models.attributes import Similar
from rlea.models.row_optimisers import KEEP_FIRST, KEEP_SECOND, Adam, MatrixAdam
from rlea.models.sea import Entities
from rlea.models.translation import mapped, orthogonal, parts
from rlea.models.translation_step import Table, batch_rows, distance_gradient, margin_gradient, row_gradient

from .conftest import DIM, ENTITIES, ROWS, random_batch, random_raw

SETTINGS = {
    aligne: aligne.AlignESettings,
    jape: jape.JAPESettings,
    mtranse: mtranse.MTransESettings,
    sea: sea.SEASettings,
}


def arrays_of(module: ModuleType, raw: np.ndarray, settings: Any) -> dict[str, np.ndarray]:
    """All that a trainer of the model starts from, with these vectors."""
    if module in (aligne, jape):
        return {"raw": raw, "squares": np.full_like(raw, 0.1)}
    return module.fresh_arrays(len(raw), settings, seed=0) | {"raw": raw}


def trainers(module: ModuleType, raw: np.ndarray, more: Any = None, **changes: float) -> tuple[Any, Any]:
    """The reference and the trainer written out, on the same vectors."""
    settings = SETTINGS[module](dim=raw.shape[1], **changes)
    arrays = arrays_of(module, raw, settings) | (more or {})
    return module.TorchTrainer(arrays, settings, "cpu"), module.CompiledTrainer(arrays, settings)


def ids(*rows: Any) -> np.ndarray:
    return np.array(rows, dtype=np.int32)


# ---- by hand ---------------------------------------------------------------------------------------------------------

# Vectors of any length count as unit vectors: rows 0 1 2 are the entities (1,0), (0,1), (-1,0); row 3 is (0,1).
HAND = np.array([[2.0, 0.0], [0.0, 0.5], [-1.0, 0.0], [0.0, 3.0]], dtype=np.float32)
# (1,0)+(0,1)-(0,1) = (1,0) has square 1; (0,1)+(0,1)-(-1,0) = (1,2) has square 5.
TWO, ENDS = ids([0, 3, 1], [1, 3, 2]), np.array([True, False])


@pytest.mark.parametrize(
    ("module", "settings", "batch", "expected"),
    [
        # False tails of the first: 0 gives (0,1), so 4 - 1; 2 gives (2,1), 5, beyond the limit; the third is missing.
        # False heads of the second: 0 gives (2,1), beyond the limit; 2 gives (0,1), so 4 - 1; 1 gives (1,2), beyond.
        (
            aligne,
            {"positive_limit": 0.5, "negative_limit": 4.0, "negative_weight": 0.25},
            (TWO, ids([0, 2, -1], [0, 2, 1]), ENDS),
            (1 - 0.5) + (5 - 0.5) + 0.25 * (3 + 3),
        ),
        # False tail 2 of the first: (2,1), 5; the other is missing. False heads of the second: (2,1), 5; (0,1), 1.
        (jape, {"negative_weight": 0.25}, (TWO, ids([2, -1], [0, 2]), ENDS), 1 + 5 - 0.25 * (5 + 5 + 1)),
        (mtranse, {}, (TWO,), 1 + 5),
        # With the false tail 2 the first is 5, beyond 1 + 1.5; with the false head 2 the second is 1, so 1.5 + 5 - 1.
        # The third has no negative.
        (sea, {"margin": 1.5}, (ids(*TWO, TWO[0]), ids([2], [2], [-1]), np.array([True, False, True])), 5.5),
    ],
)
def test_the_loss_of_two_triples(module: ModuleType, settings: dict[str, float], batch: Any, expected: float):
    for trainer in trainers(module, HAND, **settings):
        assert trainer.train_triples(*batch, [0, len(batch[0])]) == pytest.approx(expected, rel=1e-6)


def test_no_triple_is_too_far_to_count():
    # h = r = -t: the farthest a triple can be, |3h|^2 = 9, as positive and as negative.
    _, trainer = trainers(jape, np.array([[1, 0], [-1, 0], [1, 0]], dtype=np.float32))
    one = ids([0, 2, 1]), ids([1]), np.array([True])
    assert trainer.train_triples(*one, [0, 1]) == pytest.approx(9 - 0.1 * 9, rel=1e-6)


@pytest.mark.parametrize(
    ("module", "batch", "loss", "squares"),
    [(aligne, (ids([-1]), np.array([True])), 0.99, "squares"), (mtranse, (), 1, "triple_squares")],
)
def test_one_adagrad_step(module: ModuleType, batch: Any, loss: float, squares: str):
    # A single triple h = (1,0), r = (0,1), t = (0,1), no negatives: gradient 2(h+r-t) = (2,0) for h and r, minus that
    # for t. Normalising keeps what is across the vector: nothing for h, all of it for r and t.
    _, trainer = trainers(module, np.array([[1, 0], [0, 1], [0, 1]], dtype=np.float32))
    assert trainer.train_triples(ids([0, 2, 1]), *batch, [0, 1]) == pytest.approx(loss)
    move, kept = 0.01 * 2 / np.sqrt(0.1 + 4), trainer.kept
    assert trainer.table.raw == pytest.approx(np.array([[1, 0], [move, 1], [-move, 1]]), abs=1e-7)
    assert kept[squares] == pytest.approx(np.array([[0.1, 0.1], [4.1, 0.1], [4.1, 0.1]]), abs=1e-6)
    assert all((kept[name] == np.float32(0.1)).all() for name in kept if name.endswith("squares") and name != squares)


def test_the_mapping_of_mtranse():
    # A quarter turn doubled: (1,0) goes to (0,2), one beyond (0,1); (0,1) goes to (-2,0), one beyond (-1,0).
    # M M^T is 4 I, which is 3 I too much: 9 + 9.
    turn = {"mapping": np.array([[0, 2], [-2, 0]], dtype=np.float32)}
    for trainer in trainers(mtranse, HAND, turn, mapping_weight=5.0):
        assert trainer.train_mapping(ids([0, 1], [1, 2]), [0, 2]) == pytest.approx(5 * (1 + 1 + 18))


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        # The seed 0 - 1: M takes (1,0) right onto (0,1); N leaves (0,1) there, which is sqrt 2 from (1,0).
        (([0], [1], [], []), 3.0 * 2),
        # There and back is a quarter turn for everyone: sqrt 2 from home.
        (([], [], [0, 2], [1]), 0.5 * 2 * 3),
    ],
)
def test_the_mappings_of_sea(rows: Any, expected: float):
    # M is a quarter turn, doubled: (1,0) to (0,2), that is (0,1) at unit length. N does nothing.
    there = np.array([[0, 2], [-2, 0]], dtype=np.float32)
    turn = {"there": there, "back": np.eye(2, dtype=np.float32)}
    for trainer in trainers(sea, HAND, turn, seed_weight=3.0, cycle_weight=0.5):
        assert trainer.train_mapping([Entities(*(ids(*one) for one in rows))]) == pytest.approx(expected)


def test_the_similarity_loss_and_its_step():
    # Row 0 is (1,0); it should be 3/4 of row 1, (0,1), and 1/4 of row 2, (-1,0): |(1,0) - (-.25,.75)|^2 = 2.125.
    raw = np.array([[1, 0], [0, 1], [-1, 0]], dtype=np.float32)
    similar = Similar(ids(0), ids([1, 2, 0]), np.array([[0.75, 0.25, 0]], dtype=np.float32))
    reference, trainer = trainers(jape, raw, similar.arrays(), similarity_weight=0.5)
    assert reference.follow_similarity() == pytest.approx(0.5 * 2.125)
    assert trainer.follow_similarity() == pytest.approx(0.5 * 2.125)
    # Residual (1.25, -.75). Gradients: 2 * .5 * that for row 0, times -.75 for row 1, times -.25 for row 2;
    # normalising keeps what is across the vector.
    gradient = np.array([[0, -0.75], [-0.75 * 1.25, 0], [0, 0.25 * 0.75]])
    assert trainer.kept["squares"] == pytest.approx(0.1 + gradient**2, abs=1e-6)
    assert trainer.table.raw == pytest.approx(raw - 0.01 * gradient / np.sqrt(0.1 + gradient**2), abs=1e-6)


# ---- written out against the reference -------------------------------------------------------------------------------


def some_similar() -> dict[str, np.ndarray]:
    """Two to four matches each for 20 entities, among them one that is its own match, as with seeds."""
    random = np.random.default_rng(0)
    weights = random.uniform(0.5, 1, (20, 4)).astype(np.float32)
    weights[::2, 2:] = 0
    weights /= weights.sum(axis=1, keepdims=True)
    rows = random.permutation(ENTITIES)[:20].astype(np.int32)
    matches = random.integers(0, ENTITIES, (20, 4)).astype(np.int32)
    matches[3, 1] = rows[3]
    return Similar(rows, np.where(weights > 0, matches, 0).astype(np.int32), weights).arrays()


def batch_of(module: ModuleType, seed: int) -> Any:
    batch = random_batch(seed, num_negatives=2 if module is jape else 10)
    return (*batch[: 1 if module is mtranse else 3], [0, 70, 200])


def more_steps(module: ModuleType, trainer: Any, seed: int) -> float:
    if module is jape:
        return trainer.follow_similarity()
    if module is mtranse:  # entities may be in several seeds, and a batch of seeds may be empty
        seeds = np.random.default_rng(seed).integers(0, ENTITIES, (15, 2)).astype(np.int32)
        return trainer.train_mapping(seeds, [0, 7, 7, 15])
    return 0.0


@pytest.mark.parametrize("module", [aligne, jape, mtranse])
def test_written_out_steps_equal_the_reference(module: ModuleType):
    start = random_raw()
    both = trainers(module, start, some_similar() if module is jape else None)
    for seed in range(4):
        expected, found = (trainer.train_triples(*batch_of(module, seed)) for trainer in both)
        assert found == pytest.approx(expected, rel=1e-5)
        expected, found = (more_steps(module, trainer, seed) for trainer in both)
        assert found == pytest.approx(expected, rel=1e-5)
    reference, written_out = (trainer.arrays() for trainer in both)
    assert np.abs(reference["raw"] - start).max() > 0.01  # there was something to compare
    assert set(written_out) - set(reference) == {"scales"}
    for name, array in reference.items():
        np.testing.assert_allclose(written_out[name], array, rtol=1e-3, atol=1e-5, err_msg=name)
    np.testing.assert_allclose(both[1].units(ENTITIES), both[0].units(ENTITIES), atol=1e-5)


def test_rows_that_no_triple_touches_do_not_move():
    _, trainer = trainers(aligne, random_raw())
    positives, negatives, corrupt_tail = random_batch(0, size=3)
    trainer.train_triples(positives, negatives, corrupt_tail, [0, 3])
    untouched = np.setdiff1d(np.arange(ROWS), np.concatenate([positives.ravel(), negatives.ravel()]))
    assert len(untouched) > 10
    assert (trainer.table.raw[untouched] == random_raw()[untouched]).all()


def by_raw(table: Table, gradient: Any) -> np.ndarray:
    """The gradient written out, row by row, and taken through the normalising."""
    result = np.zeros_like(table.raw)
    for row in range(len(table.raw)):
        for term in range(gradient.begins[row], gradient.begins[row + 1]):
            result[row] += gradient.factors[term] * gradient.vectors[gradient.picks[term]]
    units = table.raw * table.scales[:, None]
    return (result - (result * units).sum(axis=1, keepdims=True) * units) * table.scales[:, None]


@pytest.mark.parametrize("module", [mtranse, sea])
def test_gradients_are_the_automatic_ones(module: ModuleType):
    reference, written_out = trainers(module, random_raw(), **({"margin": 0.5} if module is sea else {}))
    positives, negatives, corrupt_tail = random_batch(1, num_negatives=1)
    if module is mtranse:
        loss, gradient = distance_gradient(written_out.table, positives)
        expected = reference.distance_loss(torch.tensor(positives))
    else:
        loss, gradient = margin_gradient(written_out.table, positives, negatives, corrupt_tail, 0.5)
        expected = reference.margin_loss(*map(torch.tensor, (positives, negatives, corrupt_tail)))
        # Triples with -1 and those beyond the margin have no part in it.
        assert 0 < gradient.begins[-1] < 4 * (negatives >= 0).sum()
    expected.backward()
    assert loss == pytest.approx(float(expected.detach()), rel=1e-5)
    np.testing.assert_allclose(by_raw(written_out.table, gradient), reference.raw.grad, rtol=1e-3, atol=1e-4)


def test_a_row_named_twice_gets_both_gradients():
    table = Table(random_raw(), np.ones(ROWS, dtype=np.float32))
    vectors = np.arange(3 * DIM, dtype=np.float32).reshape(3, DIM)
    gradient = row_gradient(table, ids(7, 2, 7), vectors)
    assert np.flatnonzero(np.diff(gradient.begins)).tolist() == [2, 7]
    sums = [vectors[gradient.picks[slice(*gradient.begins[[row, row + 1]])]].sum(axis=0) for row in (2, 7)]
    np.testing.assert_array_equal(sums, [vectors[1], vectors[0] + vectors[2]])
    assert (gradient.factors == 1).all()


def test_the_gradients_of_the_mappings_of_sea_are_the_automatic_ones():
    random = np.random.default_rng(0)
    reference, trainer = trainers(sea, random_raw(), {"there": random.standard_normal((DIM, DIM)).astype(np.float32)})
    batch = Entities(*(random.integers(0, ENTITIES, size).astype(np.int32) for size in (9, 9, 20, 15)))
    loss, by_units, by_there, by_back = trainer._mapping_gradients(batch)
    expected = reference.mapping_loss(*map(torch.tensor, batch))
    expected.backward()
    assert loss == pytest.approx(float(expected.detach()), rel=1e-5)
    np.testing.assert_allclose(by_there, reference.there.grad, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(by_back, reference.back.grad, rtol=1e-3, atol=1e-4)
    found = by_raw(trainer.table, row_gradient(trainer.table, batch.rows(), by_units))
    np.testing.assert_allclose(found, reference.raw.grad, rtol=1e-3, atol=1e-4)


def test_epochs_of_sea_equal_the_reference():
    random = np.random.default_rng(0)
    # A small rate: steps of Adam turn where a gradient changes its sign.
    reference, written_out = trainers(sea, random_raw(), learning_rate=0.002)
    for seed in range(3):
        triples = (*random_batch(seed, size=40, num_negatives=1), [0, 11, 25, 40])
        batches = [
            Entities(*(random.integers(0, ENTITIES, size).astype(np.int32) for size in (3, 3, 5, 5))) for _ in range(3)
        ]
        assert written_out.train_triples(*triples) == pytest.approx(reference.train_triples(*triples), rel=1e-4)
        assert written_out.train_mapping(batches) == pytest.approx(reference.train_mapping(batches), rel=1e-4)
    np.testing.assert_allclose(written_out.units(ROWS), reference.units(ROWS), atol=1e-3)
    np.testing.assert_allclose(written_out.matrix(), reference.matrix(), atol=1e-3)
    # Some rows wait for their next batch; asking for vectors does not move them, or a look would change the run.
    before = {name: array.copy() for name, array in written_out.arrays().items()}
    assert (before["triple_adam.last"] < 9).any()
    written_out.units(ROWS)
    for name, array in written_out.arrays().items():
        np.testing.assert_array_equal(array, before[name], err_msg=name)


# ---- Adam ------------------------------------------------------------------------------------------------------------

EVERYONE = np.arange(ROWS, dtype=np.int32)


def test_rows_that_wait_move_as_adam_moves_all_rows_at_every_step():
    # Some entities are in every batch, some in the first ones alone, some in every seventh.
    reference, written_out = trainers(sea, random_raw())
    table, adam, optimiser = (
        written_out.table,
        Adam.of({}, "", written_out.table, 0.01),
        reference.optimisers["triples."],
    )
    for step in range(40):
        size = ENTITIES if step < 3 or step % 7 == 0 else 20
        positives, negatives, corrupt_tail = random_batch(step, 30, 1, size)
        adam.catch_up(table, batch_rows(ROWS, positives, negatives))
        adam.step(table, margin_gradient(table, positives, negatives, corrupt_tail, 1.5)[1])
        optimiser.zero_grad()
        reference.margin_loss(*map(torch.tensor, (positives, negatives, corrupt_tail))).backward()
        optimiser.step()
    assert (adam.last[:ENTITIES] < 40).any()
    behind = table.raw.copy()
    adam.catch_up(table, EVERYONE)
    expected = reference.raw.detach().numpy()
    np.testing.assert_allclose(table.raw, expected, atol=2e-4)
    assert np.abs(behind - expected).max() > 0.005
    np.testing.assert_allclose(table.scales, 1 / np.linalg.norm(table.raw, axis=1), rtol=1e-5)


def test_adam_comes_to_rest_where_nothing_pulls():
    table = Table.of(random_raw())
    adam = Adam.of({}, "", table, 0.01)
    before = table.raw.copy()
    adam.step(table, row_gradient(table, ids(3), np.ones((1, DIM), dtype=np.float32)))
    once = table.raw[3].copy()
    # The sign of a gradient decides the first step, whatever its size.
    assert np.abs(once - before[3]) == pytest.approx(np.full(DIM, 0.01), rel=1e-3)
    adam.steps += 100_000
    adam.catch_up(table, EVERYONE)
    rest = table.raw[3].copy()
    share = KEEP_FIRST / np.sqrt(KEEP_SECOND)
    # rate_t at step t, from the definition; m / sqrt(v) after the first step is 0.1 / sqrt(0.001).
    rates = [0.01 * np.sqrt(1 - KEEP_SECOND**t) / (1 - KEEP_FIRST**t) for t in range(2, 400)]
    path = sum(rate * share**j for j, rate in enumerate(rates, start=1)) * 0.1 / np.sqrt(0.001)
    assert np.abs(rest - once) == pytest.approx(np.full(DIM, path), rel=1e-3)
    assert not adam.first[3].any()
    adam.steps += 100
    adam.catch_up(table, EVERYONE)
    np.testing.assert_array_equal(table.raw[3], rest)
    others = EVERYONE != 3
    np.testing.assert_array_equal(table.raw[others], before[others])


def test_a_matrix_moves_as_adam_moves_it():
    random = np.random.default_rng(0)
    matrix = MatrixAdam.of({"m": random.standard_normal((5, 5)).astype(np.float32)}, "m", 0.01)
    parameter = torch.tensor(matrix.value, requires_grad=True)
    reference = torch.optim.Adam([parameter], lr=0.01)
    for step in range(1, 20):
        gradient = random.standard_normal((5, 5)).astype(np.float32)
        matrix.step(gradient, step)
        parameter.grad = torch.tensor(gradient)
        reference.step()
    np.testing.assert_allclose(matrix.value, parameter.detach().numpy(), atol=1e-5)


# ---- batches and spaces ----------------------------------------------------------------------------------------------


def test_rows_of_a_batch_come_once_and_without_none():
    assert batch_rows(6, ids([4, 1], [1, 0]), ids(-1, 5)).tolist() == [0, 1, 4, 5]


def test_orthogonal_matrices_are_and_differ():
    first, second = (orthogonal(30, seed=1, number=number) for number in (0, 1))
    np.testing.assert_allclose(first @ first.T, np.eye(30), atol=1e-5)
    assert np.abs(first - second).max() > 0.1
    units = Table.of(random_raw()).units(EVERYONE)
    turned = mapped(units, orthogonal(DIM, seed=0, number=0) * np.float32(3))
    np.testing.assert_allclose(turned @ turned.T, units @ units.T, atol=1e-5)


def test_parts_hold_everything_once_and_change_with_the_epoch():
    order, cuts = parts(10, 4, seed=0, epoch=1, stream=0)
    assert cuts == [0, 2, 5, 7, 10]
    assert sorted(order.tolist()) == list(range(10))
    assert parts(10, 4, seed=0, epoch=2, stream=0)[0].tolist() != order.tolist()
    assert parts(10, 4, seed=0, epoch=1, stream=1)[0].tolist() != order.tolist()
    assert parts(2, 4, seed=0, epoch=1, stream=0)[1] == [0, 0, 1, 1, 2]


def test_every_entity_is_a_seed_or_one_of_the_others():
    seeds = np.stack([np.arange(0, 90, 3), 100 + np.arange(30)], axis=1).astype(np.int32)
    entities = sea.all_entities(seeds, 100, 180)
    assert sorted(entities.rows().tolist()) == list(range(180))
    assert (entities.other_sources.max(), entities.other_targets.min()) == (99, 130)
    batches = sea.split_entities(entities, 7, seed=0, epoch=1)
    assert sorted(np.concatenate([batch.rows() for batch in batches])) == list(range(180))
    known = dict(seeds.tolist())
    for batch in batches:
        assert [known[row] for row in batch.seed_sources.tolist()] == batch.seed_targets.tolist()
    sizes = [len(batch.rows()) for batch in batches]
    assert max(sizes) - min(sizes) <= 4
