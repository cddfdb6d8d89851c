"""Steps written out against automatic gradients and framework optimisers, and on examples small enough to check."""

import numpy as np
import pytest
import torch

from rlea.models import mtranse, sea
from rlea.models.row_adam import KEEP_FIRST, KEEP_SECOND, Adam, MatrixAdam
from rlea.models.translation_step import (
    batch_rows,
    distance_gradient,
    mapped,
    margin_gradient,
    orthogonal,
    parts,
    row_gradient,
)
from rlea.models.unit_rows import Table

ROWS, ENTITIES, DIM = 60, 50, 24


def random_table(seed: int = 0) -> Table:
    random = np.random.default_rng(seed)
    raw = random.standard_normal((ROWS, DIM)).astype(np.float32) * random.uniform(0.3, 3, (ROWS, 1)).astype(np.float32)
    return Table.of(raw)


def random_triples(seed: int, size: int = 200, num_entities: int = ENTITIES) -> np.ndarray:
    random = np.random.default_rng(seed)
    ends, relations = random.integers(0, num_entities, (size, 2)), random.integers(ENTITIES, ROWS, size)
    return np.stack([ends[:, 0], relations, ends[:, 1]], axis=1).astype(np.int32)


def random_negatives(seed: int, size: int = 200, num_entities: int = ENTITIES) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed + 100)
    return random.integers(-1, num_entities, size).astype(np.int32), random.random(size) < 0.5


def by_raw(table: Table, gradient) -> np.ndarray:
    """The gradient written out, row by row, and taken through the normalising."""
    result = np.zeros_like(table.raw)
    for row in range(len(table.raw)):
        for term in range(gradient.begins[row], gradient.begins[row + 1]):
            result[row] += gradient.factors[term] * gradient.vectors[gradient.picks[term]]
    units = table.raw * table.scales[:, None]
    return (result - (result * units).sum(axis=1, keepdims=True) * units) * table.scales[:, None]


def autograd(table: Table, loss_of) -> tuple[float, np.ndarray]:
    raw = torch.tensor(table.raw, requires_grad=True)
    loss = loss_of(raw)
    loss.backward()
    return float(loss.detach()), raw.grad.numpy()


def test_the_gradient_of_distances_is_the_automatic_one():
    table, positives = random_table(), random_triples(1)
    loss, gradient = distance_gradient(table, positives)
    expected_loss, expected = autograd(table, lambda raw: mtranse.distance_loss(raw, torch.tensor(positives)))
    assert loss == pytest.approx(expected_loss, rel=1e-5)
    np.testing.assert_allclose(by_raw(table, gradient), expected, rtol=1e-3, atol=1e-4)


def test_the_gradient_of_margins_is_the_automatic_one():
    table, positives = random_table(), random_triples(1)
    negatives, corrupt_tail = random_negatives(1)
    loss, gradient = margin_gradient(table, positives, negatives, corrupt_tail, 0.5)
    expected_loss, expected = autograd(
        table,
        lambda raw: sea.margin_loss(
            raw, torch.tensor(positives), torch.tensor(negatives), torch.tensor(corrupt_tail), 0.5
        ),
    )
    assert loss == pytest.approx(expected_loss, rel=1e-5)
    np.testing.assert_allclose(by_raw(table, gradient), expected, rtol=1e-3, atol=1e-4)
    # Triples with -1 and those beyond the margin have no part in it.
    assert 0 < gradient.begins[-1] < 4 * (negatives >= 0).sum()


def test_a_row_named_twice_gets_both_gradients():
    table = random_table()
    vectors = np.arange(3 * DIM, dtype=np.float32).reshape(3, DIM)
    gradient = row_gradient(table, np.array([7, 2, 7], dtype=np.int32), vectors)
    expected = np.zeros_like(table.raw)
    expected[2], expected[7] = vectors[1], vectors[0] + vectors[2]
    rows = range(ROWS)
    total = [
        sum((vectors[gradient.picks[j]] for j in range(gradient.begins[i], gradient.begins[i + 1])), np.zeros(DIM))
        for i in rows
    ]
    np.testing.assert_array_equal(total, expected)


def everyone() -> np.ndarray:
    return np.arange(ROWS, dtype=np.int32)


def test_rows_that_wait_move_as_adam_moves_all_rows_at_every_step():
    # Some entities are in every batch, some in the first ones alone, some in every seventh.
    table = random_table()
    adam = Adam.of({}, "", table, 0.01)
    raw = torch.tensor(table.raw, requires_grad=True)
    reference = torch.optim.Adam([raw], lr=0.01)
    for step in range(40):
        size = ENTITIES if step < 3 or step % 7 == 0 else 20
        positives, (negatives, corrupt_tail) = random_triples(step, 30, size), random_negatives(step, 30, size)
        adam.catch_up(table, batch_rows(ROWS, positives, negatives))
        adam.step(table, margin_gradient(table, positives, negatives, corrupt_tail, 1.5)[1])
        reference.zero_grad()
        batch = torch.tensor(positives), torch.tensor(negatives), torch.tensor(corrupt_tail)
        sea.margin_loss(raw, *batch, 1.5).backward()
        reference.step()
    assert (adam.last[:ENTITIES] < 40).any()
    behind = table.raw.copy()
    adam.catch_up(table, everyone())
    expected = raw.detach().numpy()
    np.testing.assert_allclose(table.raw, expected, atol=2e-4)
    assert np.abs(behind - expected).max() > 0.005
    np.testing.assert_allclose(table.scales, 1 / np.linalg.norm(table.raw, axis=1), rtol=1e-5)


def test_adam_comes_to_rest_where_nothing_pulls():
    table = random_table()
    adam = Adam.of({}, "", table, 0.01)
    gradient = row_gradient(table, np.array([3], dtype=np.int32), np.ones((1, DIM), dtype=np.float32))
    before = table.raw.copy()
    adam.step(table, gradient)
    once = table.raw[3].copy()
    # The sign of a gradient decides the first step, whatever its size.
    assert np.abs(once - before[3]) == pytest.approx(np.full(DIM, 0.01), rel=1e-3)
    adam.steps += 100_000
    adam.catch_up(table, everyone())
    rest = table.raw[3].copy()
    share = KEEP_FIRST / np.sqrt(KEEP_SECOND)
    # rate_t at step t, from the definition; m / sqrt(v) after the first step is 0.1 / sqrt(0.001).
    rates = [0.01 * np.sqrt(1 - KEEP_SECOND**t) / (1 - KEEP_FIRST**t) for t in range(2, 400)]
    path = sum(rate * share**j for j, rate in enumerate(rates, start=1)) * 0.1 / np.sqrt(0.001)
    assert np.abs(rest - once) == pytest.approx(np.full(DIM, path), rel=1e-3)
    assert not adam.first[3].any()
    adam.steps += 100
    adam.catch_up(table, everyone())
    np.testing.assert_array_equal(table.raw[3], rest)
    others = np.arange(ROWS) != 3
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


def test_rows_of_a_batch_come_once_and_without_none():
    ids = np.array([[4, 1], [1, 0]], dtype=np.int32), np.array([-1, 5], dtype=np.int32)
    assert batch_rows(6, *ids).tolist() == [0, 1, 4, 5]


def test_orthogonal_matrices_are_and_differ():
    first, second = (orthogonal(30, seed=1, number=number) for number in (0, 1))
    np.testing.assert_allclose(first @ first.T, np.eye(30), atol=1e-5)
    assert np.abs(first - second).max() > 0.1
    units = random_table().units(everyone())
    turned = mapped(units, orthogonal(DIM, seed=0, number=0) * np.float32(3))
    np.testing.assert_allclose(turned @ turned.T, units @ units.T, atol=1e-5)


def test_parts_hold_everything_once_and_change_with_the_epoch():
    order, cuts = parts(10, 4, seed=0, epoch=1, stream=0)
    assert cuts == [0, 2, 5, 7, 10]
    assert sorted(order.tolist()) == list(range(10))
    assert parts(10, 4, seed=0, epoch=2, stream=0)[0].tolist() != order.tolist()
    assert parts(10, 4, seed=0, epoch=1, stream=1)[0].tolist() != order.tolist()
    assert parts(2, 4, seed=0, epoch=1, stream=0)[1] == [0, 0, 1, 1, 2]
