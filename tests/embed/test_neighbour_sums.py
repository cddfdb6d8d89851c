import numpy as np
import pytest
import torch

from rlea.embed.neighbour_sums import Edges, of_columns, of_rows, sum_neighbours

ROWS, COLUMNS = np.array([2, 0, 0, 2]), np.array([0, 3, 1, 3])  # unsorted, row 1 and column 2 empty
SHAPE = (3, 4)


def dense(weights: torch.Tensor, order: np.ndarray) -> torch.Tensor:
    return torch.zeros(SHAPE, dtype=weights.dtype).index_put(
        (torch.tensor(ROWS[order]), torch.tensor(COLUMNS[order])), weights
    )


def test_sums_are_the_product_with_the_matrix_and_so_are_gradients():
    edges, order = Edges.of(ROWS, COLUMNS, SHAPE, "cpu")
    assert list(zip(edges.rows.tolist(), edges.columns.tolist(), strict=True)) == [(0, 1), (0, 3), (2, 0), (2, 3)]
    random = torch.Generator().manual_seed(3)
    weights = torch.rand(4, generator=random, requires_grad=True)
    vectors = torch.rand(4, 5, generator=random, requires_grad=True)
    pull = torch.rand(3, 5, generator=random)
    expected = dense(weights, order) @ vectors
    result = sum_neighbours(edges, weights, vectors)
    torch.testing.assert_close(result, expected)
    assert (result[1] == 0).all()
    for got, wanted in zip(
        torch.autograd.grad((result * pull).sum(), (weights, vectors)),
        torch.autograd.grad((expected * pull).sum(), (weights, vectors)),
        strict=True,
    ):
        torch.testing.assert_close(got, wanted)


@pytest.mark.parametrize("spread", [of_rows, of_columns])
def test_values_spread_over_edges_and_gradients_gather(spread):
    edges, _ = Edges.of(ROWS, COLUMNS, SHAPE, "cpu")
    ids = edges.rows if spread is of_rows else edges.columns
    values = torch.tensor([1.0, 2.0, 3.0, 4.0])[: SHAPE[spread is of_columns]].requires_grad_()
    pull = torch.tensor([1.0, 10.0, 100.0, 1000.0])
    result = spread(edges, values)
    assert result.tolist() == values[ids].tolist()
    (got,) = torch.autograd.grad((result * pull).sum(), values)
    (wanted,) = torch.autograd.grad((values[ids] * pull).sum(), values)
    torch.testing.assert_close(got, wanted)


def test_no_edges_give_zeros():
    edges, _ = Edges.of(ROWS[:0], COLUMNS[:0], SHAPE, "cpu")
    vectors = torch.ones(4, 2, requires_grad=True)
    result = sum_neighbours(edges, torch.ones(0), vectors)
    assert result.tolist() == [[0, 0]] * 3
    (gradient,) = torch.autograd.grad(result.sum(), vectors)
    assert gradient.tolist() == [[0, 0]] * 4
