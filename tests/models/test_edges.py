from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch

from rlea.models.edges import (
    LONGEST,
    Chunks,
    Edges,
    both_ways,
    inner_by_edge,
    inner_products_by_tensors,
    inner_products_compiled,
    multiply,
    of_columns,
    of_rows,
    softmax_by_row,
)

SHAPE = (7, 9)
DIM = 5


@pytest.fixture
def edges() -> Edges:
    random = np.random.default_rng(0)
    rows, columns = random.integers(0, 7, 30), random.integers(0, 9, 30)  # in no order, some places twice
    rows[rows == 4], columns[columns == 2] = 5, 3  # an empty row and an empty column
    return Edges.of(rows, columns, SHAPE)[0]


def numbers(*shape: int, seed: int = 1) -> torch.Tensor:
    return torch.tensor(np.random.default_rng(seed).standard_normal(shape), dtype=torch.float32)


def test_edges_are_sorted_by_row_then_column_and_by_column_then_row():
    rows, columns = np.array([2, 0, 0, 2]), np.array([0, 3, 1, 3])
    edges, order = Edges.of(rows, columns, (3, 4))
    assert len(edges) == 4
    assert list(zip(edges.rows.tolist(), edges.columns.tolist(), strict=True)) == [(0, 1), (0, 3), (2, 0), (2, 3)]
    assert (rows[order].tolist(), columns[order].tolist()) == (edges.rows.tolist(), edges.columns.tolist())
    assert edges.row_starts.tolist() == [0, 2, 2, 4]
    assert edges.by_column.tolist() == [2, 0, 1, 3]
    assert edges.column_starts.tolist() == [0, 1, 2, 2, 4]


def test_edges_run_both_ways_and_to_oneself():
    rows, columns = both_ways(np.array([0, 2, 2]), np.array([2, 0, 2]), 3)
    assert list(zip(rows.tolist(), columns.tolist(), strict=True)) == [(0, 0), (0, 2), (1, 1), (2, 0), (2, 2)]


@pytest.mark.parametrize("tensor_gradient", [False, True])
def test_products_and_their_gradients_are_those_of_the_dense_matrix(edges: Edges, tensor_gradient: bool):
    weights, vectors, down = numbers(30).requires_grad_(), numbers(9, DIM).requires_grad_(), numbers(7, DIM, seed=2)

    def dense() -> torch.Tensor:
        matrix = torch.zeros(SHAPE).index_put((edges.rows, edges.columns), weights, accumulate=True)
        return matrix @ vectors

    results = []
    for compute in (lambda: multiply(edges, weights, vectors, tensor_gradient=tensor_gradient), dense):
        result = compute()
        results.append((result.detach(), *torch.autograd.grad((result * down).sum(), (weights, vectors))))
    torch.testing.assert_close(*results)
    assert (results[0][0][4] == 0).all()
    assert (results[0][2][2] == 0).all()


def test_inner_products_by_tensors_are_the_compiled_ones(edges: Edges):
    gradient, vectors = numbers(7, DIM), numbers(9, DIM, seed=2)
    result = inner_products_by_tensors(edges.rows, edges.columns, gradient, vectors)
    rows, columns = gradient[edges.rows].double(), vectors[edges.columns].double()
    # Five products of float32 round by at most 5 eps of the sum of their sizes, however near zero they add up to.
    most = 5 * torch.finfo(torch.float32).eps * (rows * columns).abs().sum(dim=1)
    for found in (result, inner_products_compiled(edges.rows, edges.columns, gradient, vectors)):
        assert ((found.double() - (rows * columns).sum(dim=1)).abs() <= most).all()


@pytest.mark.parametrize("spread", [of_rows, of_columns])
def test_values_spread_over_edges_and_gradients_gather(
    edges: Edges, spread: Callable[[Edges, torch.Tensor], torch.Tensor]
):
    ids = edges.rows if spread is of_rows else edges.columns
    values, pull = numbers(SHAPE[spread is of_columns]).requires_grad_(), numbers(30, seed=2)
    result = spread(edges, values)
    assert result.tolist() == values[ids].tolist()
    (got,) = torch.autograd.grad((result * pull).sum(), values)
    (wanted,) = torch.autograd.grad((values[ids] * pull).sum(), values)
    torch.testing.assert_close(got, wanted)


def test_no_edges_give_zeros():
    none = np.zeros(0, dtype=np.int64)
    edges, _ = Edges.of(none, none, (3, 4))
    weights, vectors = torch.ones(0, requires_grad=True), torch.ones(4, 2, requires_grad=True)
    result = multiply(edges, weights, vectors)
    assert result.tolist() == [[0, 0]] * 3
    of_weights, of_vectors = torch.autograd.grad(result.sum(), (weights, vectors))
    assert of_weights.shape == (0,)
    assert of_vectors.tolist() == [[0, 0]] * 4


def test_softmax_by_row_and_its_gradient_are_those_of_each_row():
    edges, _ = Edges.of(np.array([0, 0, 2, 2, 2]), np.array([0, 1, 0, 1, 2]), (4, 3))
    logits = torch.tensor([1.0, 90.0, -1.0, 0.5, 0.25], requires_grad=True)
    down = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0])
    (softmax_by_row(edges, logits) * down).sum().backward()
    found = softmax_by_row(edges, logits).detach(), logits.grad
    logits.grad = None
    expected = torch.cat([logits[:2].softmax(0), logits[2:].softmax(0)])
    (expected * down).sum().backward()
    torch.testing.assert_close(found, (expected.detach(), logits.grad))


def test_long_sums_in_parts_are_the_same():
    """As on a GPU, where a hub would keep one worker busy while all others wait."""
    random = np.random.default_rng(3)
    rows, columns = random.integers(0, 7, 3000), np.minimum(random.geometric(0.5, 3000), 9) - 1
    rows[rows == 4] = 5
    whole, _ = Edges.of(rows, columns, SHAPE)
    assert whole.row_chunks is None is whole.column_chunks
    row_chunks, column_chunks = (Chunks.of(part.numpy(), "cpu") for part in (whole.row_starts, whole.column_starts))
    assert row_chunks is not None
    assert row_chunks.starts.diff().max() <= LONGEST
    assert row_chunks.starts[row_chunks.of_sums].tolist() == whole.row_starts.tolist()
    parts = replace(whole, row_chunks=row_chunks, column_chunks=column_chunks)
    weights, vectors, logits = numbers(3000).requires_grad_(), numbers(9, DIM).requires_grad_(), numbers(9)
    results = []
    for edges in (whole, parts):
        result = multiply(edges, weights, vectors)
        results.append((result, *torch.autograd.grad(result, (weights, vectors), numbers(7, DIM, seed=2))))
        spread = of_columns(edges, logits.requires_grad_())
        results[-1] += torch.autograd.grad(spread, logits, numbers(3000, seed=3))
        inner = inner_by_edge(edges, vectors, edges, numbers(9, DIM, seed=4))
        results[-1] += torch.autograd.grad(inner, vectors, numbers(3000, seed=3))
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)
    assert Chunks.of(np.array([0, LONGEST, LONGEST]), "cpu") is None
    assert Chunks.of(np.array([0]), "cpu") is None
