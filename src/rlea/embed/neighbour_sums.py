"""Weighted sums over neighbours: the product of a sparse matrix and a table of vectors, with gradients for both.

Each sum is taken in the order of the matrix, forwards and backwards, so results repeat to the byte on a GPU too, and
nothing of the size (edges, dim) is held unless the weights themselves are learned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

if TYPE_CHECKING:
    from rlea.embed.training import Device


@dataclass(frozen=True, eq=False)
class Edges:
    """Who sums over whom: the places of a sparse matrix's entries, in both of its orders.

    Entry p stands in row `rows[p]` and column `columns[p]`; entries are sorted by row, then column. The same entries
    sorted by column are `order`: entry `order[q]` is the q-th of the transpose.
    """

    rows: torch.Tensor  # (num_edges,)
    columns: torch.Tensor  # (num_edges,)
    starts: torch.Tensor  # (num_rows + 1,) where the entries of each row begin
    order: torch.Tensor  # (num_edges,)
    back_rows: torch.Tensor  # (num_edges,) rows[order]
    back_starts: torch.Tensor  # (num_columns + 1,)

    @staticmethod
    def of(
        rows: NDArray[Any], columns: NDArray[Any], shape: tuple[int, int], device: Device
    ) -> tuple[Edges, NDArray[np.intp]]:
        """The edges, and the order into which the given ones were put, for the weights that belong to them."""
        sorting = np.lexsort((columns, rows))
        rows, columns = rows[sorting], columns[sorting]
        order = np.lexsort((rows, columns))

        def starts(sorted_ids: NDArray[Any], count: int) -> NDArray[Any]:
            return np.searchsorted(sorted_ids, np.arange(count + 1))

        arrays = (
            rows,
            columns,
            starts(rows, shape[0]),
            order,
            rows[order],
            starts(columns[order], shape[1]),
        )
        return Edges(*(torch.as_tensor(array.astype(np.int64), device=device) for array in arrays)), sorting

    def __len__(self) -> int:
        return len(self.rows)


def sum_neighbours(edges: Edges, weights: torch.Tensor, vectors: torch.Tensor) -> torch.Tensor:
    """Row i: the sum over entries p of row i of weights[p] * vectors[columns[p]]. Shape (num_rows, dim)."""
    result: torch.Tensor = _SumNeighbours.apply(vectors, weights, edges)  # type: ignore[no-untyped-call]
    return result


def of_rows(edges: Edges, values: torch.Tensor) -> torch.Tensor:
    """For every edge the value of its row: values (num_rows,) to (num_edges,)."""
    result: torch.Tensor = _Spread.apply(values, edges.rows, None, edges.starts)  # type: ignore[no-untyped-call]
    return result


def of_columns(edges: Edges, values: torch.Tensor) -> torch.Tensor:
    """For every edge the value of its column: values (num_columns,) to (num_edges,)."""
    spread = _Spread.apply(values, edges.columns, edges.order, edges.back_starts)  # type: ignore[no-untyped-call]
    result: torch.Tensor = spread
    return result


def _sum(vectors: torch.Tensor, ids: torch.Tensor, starts: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    # A bag is a row of the matrix; one kernel gathers, weighs and sums it from front to back.
    if len(ids) == 0:
        return vectors.new_zeros(len(starts) - 1, vectors.shape[1])
    return torch.embedding_bag(vectors.contiguous(), ids, starts, False, 0, False, weights, True)[0]


class _SumNeighbours(torch.autograd.Function):
    """The gradients written out: vectors get theirs from the transpose, weights from products of rows."""

    @staticmethod
    def forward(ctx, vectors, weights, edges):  # type: ignore[no-untyped-def]
        ctx.edges = edges
        ctx.save_for_backward(vectors, weights)
        return _sum(vectors, edges.columns, edges.starts, weights)

    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        vectors, weights = ctx.saved_tensors
        edges = ctx.edges
        of_vectors = of_weights = None
        if ctx.needs_input_grad[0]:
            of_vectors = _sum(gradient, edges.back_rows, edges.back_starts, weights[edges.order])
        if ctx.needs_input_grad[1]:
            # Whole rows: `index_select` copies them many times faster than an index does.
            of_weights = (gradient.index_select(0, edges.rows) * vectors.index_select(0, edges.columns)).sum(dim=1)
        return of_vectors, of_weights, None


class _Spread(torch.autograd.Function):
    """values[ids]; on the way back each value sums over its edges in a fixed order."""

    @staticmethod
    def forward(ctx, values, ids, order, starts):  # type: ignore[no-untyped-def]
        ctx.order, ctx.starts = order, starts
        return values[ids]

    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        order = torch.arange(len(gradient), device=gradient.device) if ctx.order is None else ctx.order
        return _sum(gradient[:, None], order, ctx.starts, torch.ones_like(gradient))[:, 0], None, None, None
