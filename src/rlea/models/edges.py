"""Sums over the edges of a graph: products of a sparse matrix with vectors, and a softmax over each row.

The edges are kept in the order of rows and of columns, so that gradients need no transposing and every sum is taken
by one worker in a fixed order: the result does not depend on the number of threads, nor on a GPU's scheduling. Nothing
of the size (edges, dim) is held, unless the weights of the edges are learned by operations on whole tensors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numba
import numpy as np
import torch
from numpy.typing import NDArray

from rlea.models.kernels import dot

if TYPE_CHECKING:
    from rlea.models.training import Device


LONGEST = 256  # edges that one worker of a GPU adds up


class Chunks(NamedTuple):
    """Parts of sums that are too long for one worker; the parts of a sum stand one after the other."""

    starts: torch.Tensor  # (num_chunks + 1,): the edges of chunk i are starts[i] : starts[i + 1]
    of_sums: torch.Tensor  # (num_sums + 1,): the chunks of sum i are of_sums[i] : of_sums[i + 1]

    @staticmethod
    def of(starts: NDArray[np.int64], device: Device) -> Chunks | None:
        """For sums over the edges starts[i] : starts[i + 1]; None where all are short."""
        counts = np.diff(starts)
        if not len(counts) or counts.max() <= LONGEST:
            return None
        numbers = -(-counts // LONGEST)
        of_sums = np.append(0, np.cumsum(numbers))
        places = np.arange(of_sums[-1]) - np.repeat(of_sums[:-1], numbers)
        own = np.append(np.repeat(starts[:-1], numbers) + LONGEST * places, starts[-1])
        return Chunks(*(torch.as_tensor(part.astype(np.int64), device=device) for part in (own, of_sums)))


@dataclass(frozen=True, eq=False)
class Edges:
    """Where a sparse matrix has entries: row after row, and by column within a row.

    Of two edges at the same place the weights add up.
    """

    rows: torch.Tensor  # (num_edges,) ascending
    columns: torch.Tensor  # (num_edges,)
    row_starts: torch.Tensor  # (num_rows + 1,): the edges of row i are row_starts[i] : row_starts[i + 1]
    by_column: torch.Tensor  # (num_edges,) the edges in the order of columns
    column_starts: torch.Tensor  # (num_columns + 1,)
    row_chunks: Chunks | None
    column_chunks: Chunks | None

    @staticmethod
    def of(
        rows: NDArray[Any], columns: NDArray[Any], shape: tuple[int, int], device: Device = "cpu"
    ) -> tuple[Edges, NDArray[np.intp]]:
        """The edges, and the order in which they now are: edge i of the result was edge `order[i]`."""
        order = np.lexsort((columns, rows))
        return Edges.in_order(rows[order], columns[order], shape, device), order

    @staticmethod
    def in_order(rows: NDArray[Any], columns: NDArray[Any], shape: tuple[int, int], device: Device = "cpu") -> Edges:
        """From edges that are in the order of rows; columns may be in any order within a row."""
        by_column = np.argsort(columns, kind="stable")
        row_starts = np.searchsorted(rows, np.arange(shape[0] + 1))
        column_starts = np.searchsorted(columns[by_column], np.arange(shape[1] + 1))

        def on_device(part: NDArray[Any]) -> torch.Tensor:
            return torch.as_tensor(part.astype(np.int64), device=device)

        is_cpu = device == "cpu"  # whose workers have other sums to do meanwhile
        return Edges(
            on_device(rows),
            on_device(columns),
            on_device(row_starts),
            on_device(by_column),
            on_device(column_starts),
            None if is_cpu else Chunks.of(row_starts, device),
            None if is_cpu else Chunks.of(column_starts, device),
        )

    def __len__(self) -> int:
        return len(self.rows)


class SparseMatrix(NamedTuple):
    """A fixed sparse matrix, to be multiplied with tables of vectors."""

    edges: Edges
    weights: torch.Tensor  # (num_edges,)

    @staticmethod
    def of(
        rows: NDArray[Any], columns: NDArray[Any], weights: NDArray[Any], shape: tuple[int, int], device: Device = "cpu"
    ) -> SparseMatrix:
        """From entries in any order."""
        edges, order = Edges.of(rows, columns, shape, device)
        return SparseMatrix(edges, torch.as_tensor(weights[order].astype(np.float32), device=device))

    def __matmul__(self, vectors: torch.Tensor) -> torch.Tensor:
        return multiply(self.edges, self.weights, vectors)


def distinct(rows: Any, columns: Any, num_columns: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The places (row, column), each once, row after row."""
    return np.divmod(np.unique(np.asarray(rows, dtype=np.int64) * num_columns + columns), max(num_columns, 1))


def both_ways(
    heads: NDArray[Any], tails: NDArray[Any], num_entities: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Edges in both directions and of everyone with itself, each once: rows and columns."""
    own = np.arange(num_entities)
    return distinct(np.concatenate([heads, tails, own]), np.concatenate([tails, heads, own]), num_entities)


def multiply(
    edges: Edges, weights: torch.Tensor, vectors: torch.Tensor, *, tensor_gradient: bool = False
) -> torch.Tensor:
    """The matrix with these weights (num_edges,) times vectors (num_columns, dim): (num_rows, dim).

    With `tensor_gradient` the CPU, too, takes the gradient of the weights by operations on whole tensors. These round
    otherwise than the compiled loop, so a model must stay with one of the two for its vectors to stay the same.
    """
    result: torch.Tensor = _Product.apply(weights, vectors, edges, tensor_gradient)  # type: ignore[no-untyped-call]
    return result


def softmax_by_row(edges: Edges, logits: torch.Tensor) -> torch.Tensor:
    """Weights (num_edges,) that are proportional to exp(logit) and add up to 1 in every row that has edges."""
    result: torch.Tensor = _Softmax.apply(logits, edges)  # type: ignore[no-untyped-call]
    return result


def of_rows(edges: Edges, values: torch.Tensor) -> torch.Tensor:
    """For every edge the value of its row: values (num_rows,) to (num_edges,)."""
    result: torch.Tensor = _Spread.apply(values, edges.rows, edges.row_starts, None, edges.row_chunks)  # type: ignore[no-untyped-call]
    return result


def of_columns(edges: Edges, values: torch.Tensor) -> torch.Tensor:
    """For every edge the value of its column: values (num_columns,) to (num_edges,)."""
    where = edges.columns, edges.column_starts, edges.by_column, edges.column_chunks
    result: torch.Tensor = _Spread.apply(values, *where)  # type: ignore[no-untyped-call]
    return result


def inner_by_edge(edges: Edges, vectors: torch.Tensor, others: Edges, other_vectors: torch.Tensor) -> torch.Tensor:
    """The inner product of the vectors at the columns of every edge, (num_edges,).

    Both matrices have the same edges in the same order, with columns of their own: `vectors` (num_columns, dim) are
    those of the one, `other_vectors` those of the other.
    """
    result: torch.Tensor = _Inner.apply(vectors, other_vectors, edges, others)  # type: ignore[no-untyped-call]
    return result


def sum_by_row(starts: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Sums of consecutive rows of `values` (n, ...): row i of the result sums values[starts[i] : starts[i + 1]]."""
    return torch.segment_reduce(values, "sum", offsets=starts, axis=0, unsafe=True, initial=0.0)


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, weights: torch.Tensor, vectors: torch.Tensor, edges: Edges, tensor_gradient: bool
    ) -> torch.Tensor:
        ctx.save_for_backward(weights, vectors)
        ctx.edges, ctx.tensor_gradient = edges, tensor_gradient
        return _sum_edges(edges.row_starts, None, edges.columns, weights, vectors, edges.row_chunks)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, torch.Tensor | None, None, None]:
        weights, vectors = ctx.saved_tensors
        edges, gradient = ctx.edges, gradients[0].contiguous()
        of_weights = of_vectors = None
        if ctx.needs_input_grad[0]:
            by_tensors = ctx.tensor_gradient or gradient.device.type != "cpu"
            inner_products = inner_products_by_tensors if by_tensors else inner_products_compiled
            of_weights = inner_products(edges.rows, edges.columns, gradient, vectors)
        if ctx.needs_input_grad[1]:
            where = edges.column_starts, edges.by_column, edges.rows
            of_vectors = _sum_edges(*where, weights, gradient, edges.column_chunks)
        return of_weights, of_vectors, None, None


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


class _Spread(torch.autograd.Function):
    """values[ids]; on the way back each value sums over its edges in a fixed order."""

    @staticmethod
    def forward(
        ctx: Any,
        values: torch.Tensor,
        ids: torch.Tensor,
        starts: torch.Tensor,
        order: torch.Tensor | None,
        chunks: Chunks | None,
    ) -> torch.Tensor:
        ctx.starts, ctx.order, ctx.chunks = starts, order, chunks
        return values[ids]

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None, None, None, None]:
        gradient = gradients[0]
        every = torch.arange(len(gradient), device=gradient.device)
        summed = _sum_edges(ctx.starts, ctx.order, every, torch.ones_like(gradient), gradient[:, None], ctx.chunks)
        return summed[:, 0], None, None, None, None


class _Inner(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, vectors: torch.Tensor, other_vectors: torch.Tensor, edges: Edges, others: Edges
    ) -> torch.Tensor:
        ctx.save_for_backward(vectors, other_vectors)
        ctx.edges, ctx.others = edges, others
        inner_products = inner_products_compiled if vectors.device.type == "cpu" else inner_products_by_tensors
        return inner_products(edges.columns, others.columns, vectors, other_vectors)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, None, None]:
        (vectors, other_vectors), gradient = ctx.saved_tensors, gradients[0].contiguous()

        def summed(one: Edges, other: Edges, seen: torch.Tensor) -> torch.Tensor:
            return _sum_edges(one.column_starts, one.by_column, other.columns, gradient, seen, one.column_chunks)

        edges, others = ctx.edges, ctx.others
        return summed(edges, others, other_vectors), summed(others, edges, vectors), None, None


def _sum_edges(
    starts: torch.Tensor,
    order: torch.Tensor | None,
    ends: torch.Tensor,
    weights: torch.Tensor,
    vectors: torch.Tensor,
    chunks: Chunks | None,
) -> torch.Tensor:
    """Row i: the sum of weight times the vector at the end, over the edges order[starts[i] : starts[i + 1]].

    `order` may be left out where the edges are in order. With `chunks`, long sums are those of their parts.
    """
    if len(ends) == 0:
        return vectors.new_zeros(len(starts) - 1, vectors.shape[1])
    if order is not None:
        ends, weights = ends[order], weights[order]
    # A bag is a row of the matrix; one kernel gathers, weighs and sums it from front to back.
    bags = starts if chunks is None else chunks.starts
    summed = torch.embedding_bag(vectors.contiguous(), ends, bags, False, 0, False, weights, True)[0]
    if chunks is None:
        return summed
    every = torch.arange(len(summed), device=summed.device)
    return torch.embedding_bag(summed, every, chunks.of_sums, False, 0, False, None, True)[0]


def inner_products_compiled(
    rows: torch.Tensor, columns: torch.Tensor, of_rows: torch.Tensor, of_columns: torch.Tensor
) -> torch.Tensor:
    """For every edge the product of the vectors at its ends, (num_edges,). The way for processors.

    `of_rows` are (num_rows, dim), `of_columns` (num_columns, dim).
    """
    result = torch.empty(len(rows), dtype=of_columns.dtype)
    own, other = (tensor.detach().contiguous().numpy() for tensor in (of_rows, of_columns))
    _inner_products_loop(rows.numpy(), columns.numpy(), own, other, result.numpy())
    return result


def inner_products_by_tensors(
    rows: torch.Tensor, columns: torch.Tensor, of_rows: torch.Tensor, of_columns: torch.Tensor
) -> torch.Tensor:
    """The same in operations on whole tensors: the way to a GPU."""
    # Whole rows: `index_select` copies them many times faster than an index does.
    return (of_rows.index_select(0, rows) * of_columns.index_select(0, columns)).sum(dim=1)


@numba.njit(parallel=True, cache=True)
def _inner_products_loop(rows: Any, columns: Any, gradient: Any, vectors: Any, result: Any) -> None:
    for edge in numba.prange(len(rows)):
        result[edge] = dot(gradient[rows[edge]], vectors[columns[edge]])
