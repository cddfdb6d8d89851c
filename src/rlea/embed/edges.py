"""Sums over the edges of a graph: products of a sparse matrix with vectors, and a softmax over each row.

The edges are kept in the order of rows and of columns, so that gradients need no transposing and every sum is taken
by one worker in a fixed order: the result does not hang on the number of threads, nor on a GPU's scheduling.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import torch
from numpy.typing import NDArray

# Sums may be reordered and fused for vector instructions; not-a-number and infinity keep their meaning.
_FAST = {"reassoc", "nsz", "contract"}
_CHUNKS = 128  # parts of the rows with about the same number of edges


@dataclass(frozen=True, eq=False)
class Edges:
    """Where a sparse matrix has entries, row after row. Of two edges at the same place the weights add up."""

    rows: torch.Tensor  # (num_edges,) ascending
    columns: torch.Tensor  # (num_edges,)
    row_starts: torch.Tensor  # (num_rows + 1,): the edges of row i are row_starts[i] : row_starts[i + 1]
    by_column: torch.Tensor  # (num_edges,) the edges in the order of columns
    column_starts: torch.Tensor  # (num_columns + 1,)

    @staticmethod
    def of(
        rows: NDArray[np.integer], columns: NDArray[np.integer], num_rows: int, num_columns: int, device: str = "cpu"
    ) -> tuple[Edges, NDArray[np.intp]]:
        """The edges, and the order in which they now are: edge i of the result was edge `order[i]`."""
        order = np.lexsort((columns, rows))
        rows, columns = rows[order].astype(np.int64), columns[order].astype(np.int64)
        by_column = np.argsort(columns, kind="stable")
        parts = (
            rows,
            columns,
            np.searchsorted(rows, np.arange(num_rows + 1)),
            by_column,
            np.searchsorted(columns[by_column], np.arange(num_columns + 1)),
        )
        return Edges(*(torch.as_tensor(part.astype(np.int64), device=device) for part in parts)), order


def multiply(edges: Edges, weights: torch.Tensor, vectors: torch.Tensor) -> torch.Tensor:
    """The matrix with these weights (num_edges,) times vectors (num_columns, dim): (num_rows, dim)."""
    result: torch.Tensor = _Product.apply(weights, vectors, edges)  # type: ignore[no-untyped-call]
    return result


def softmax_by_row(edges: Edges, logits: torch.Tensor) -> torch.Tensor:
    """Weights (num_edges,) that are proportional to exp(logit) and add up to 1 in every row that has edges."""
    result: torch.Tensor = _Softmax.apply(logits, edges)  # type: ignore[no-untyped-call]
    return result


def sum_by_row(starts: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Sums of consecutive rows of `values` (n, ...): row i of the result sums values[starts[i] : starts[i + 1]]."""
    return torch.segment_reduce(values, "sum", offsets=starts, axis=0, unsafe=True, initial=0.0)


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weights: torch.Tensor, vectors: torch.Tensor, edges: Edges) -> torch.Tensor:
        ctx.save_for_backward(weights, vectors)
        ctx.edges = edges
        return _sum_edges(edges.row_starts, None, edges.columns, weights, vectors)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, torch.Tensor | None, None]:
        weights, vectors = ctx.saved_tensors
        edges, gradient = ctx.edges, gradients[0].contiguous()
        of_weights = _inner_products(edges, gradient, vectors) if ctx.needs_input_grad[0] else None
        of_vectors = None
        if ctx.needs_input_grad[1]:
            of_vectors = _sum_edges(edges.column_starts, edges.by_column, edges.rows, weights, gradient)
        return of_weights, of_vectors, None


class _Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: torch.Tensor, edges: Edges) -> torch.Tensor:
        highest = torch.segment_reduce(logits, "max", offsets=edges.row_starts, axis=0, unsafe=True)
        powers = (logits - highest[edges.rows]).exp()
        weights = powers / sum_by_row(edges.row_starts, powers)[edges.rows]
        ctx.save_for_backward(weights)
        ctx.edges = edges
        return weights

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None]:
        (weights,) = ctx.saved_tensors
        weighted = weights * gradients[0]
        return weighted - weights * sum_by_row(ctx.edges.row_starts, weighted)[ctx.edges.rows], None


def _sum_edges(
    starts: torch.Tensor, order: torch.Tensor | None, ends: torch.Tensor, weights: torch.Tensor, vectors: torch.Tensor
) -> torch.Tensor:
    """Row i: the sum of weight times the vector at the end, over the edges order[starts[i] : starts[i + 1]]."""
    if vectors.device.type == "cpu":
        result = torch.empty((len(starts) - 1, vectors.shape[1]), dtype=vectors.dtype)
        given = starts.numpy()
        places = np.arange(0, dtype=np.int64) if order is None else order.numpy()
        _sum_edges_compiled(
            _cuts(given), given, places, ends.numpy(), weights.detach().numpy(), _rows_of(vectors), result.numpy()
        )
        return result
    if order is not None:
        ends, weights = ends[order], weights[order]
    return sum_by_row(starts, vectors[ends] * weights[:, None])


def _inner_products(edges: Edges, gradient: torch.Tensor, vectors: torch.Tensor) -> torch.Tensor:
    if vectors.device.type == "cpu":
        result = torch.empty(len(edges.rows), dtype=vectors.dtype)
        _inner_products_compiled(
            edges.rows.numpy(), edges.columns.numpy(), _rows_of(gradient), _rows_of(vectors), result.numpy()
        )
        return result
    return (gradient[edges.rows] * vectors[edges.columns]).sum(dim=1)


def _rows_of(vectors: torch.Tensor) -> NDArray[np.float32]:
    rows: NDArray[np.float32] = vectors.detach().contiguous().numpy()
    return rows


def _cuts(starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Borders between rows that share out rows and edges about evenly."""
    load = starts + np.arange(len(starts))
    cuts: NDArray[np.int64] = np.searchsorted(load, np.arange(_CHUNKS + 1) * (load[-1] / _CHUNKS)).astype(np.int64)
    cuts[0], cuts[-1] = 0, len(starts) - 1
    return cuts


@numba.njit(cache=True, fastmath=_FAST, error_model="numpy")
def _add_scaled(total: Any, factor: Any, vector: Any) -> None:
    for k in range(total.shape[0]):
        total[k] += factor * vector[k]


@numba.njit(cache=True, fastmath=_FAST, error_model="numpy")
def _dot(a: Any, b: Any) -> Any:
    total = np.float32(0.0)
    for k in range(a.shape[0]):
        total += a[k] * b[k]
    return total


@numba.njit(parallel=True, cache=True)
def _sum_edges_compiled(cuts: Any, starts: Any, order: Any, ends: Any, weights: Any, vectors: Any, result: Any) -> None:
    is_ordered = len(order) == 0
    for chunk in numba.prange(len(cuts) - 1):
        for row in range(cuts[chunk], cuts[chunk + 1]):
            total = result[row]
            total[:] = np.float32(0.0)
            for place in range(starts[row], starts[row + 1]):
                edge = place if is_ordered else order[place]
                _add_scaled(total, weights[edge], vectors[ends[edge]])


@numba.njit(parallel=True, cache=True)
def _inner_products_compiled(rows: Any, columns: Any, left: Any, right: Any, result: Any) -> None:
    for edge in numba.prange(len(rows)):
        result[edge] = _dot(left[rows[edge]], right[columns[edge]])
