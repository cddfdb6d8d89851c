"""The margin loss of GCN-Align written out for processors: compiled, parallel, the same for any number of threads.

Every difference's gradient is a sign, so a gradient is a sum of small whole numbers times one factor. Each entity
collects its own from the pairs that it stands in; nothing is written by two threads.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import torch
from numpy.typing import NDArray

from rlea.graph import Ids


class SeedMargin:
    """The loss against one draw of negatives, as a function of the output; see `rlea.models.gcnalign.margin_loss`."""

    def __init__(self, seeds: Ids, negatives: Ids, num_entities: int, margin: float) -> None:
        num_seeds, width = negatives.shape[1:]
        kept = seeds[:, ::-1].T[:, :, None]  # who stays when an end is replaced
        # The pairs: all seeds, then those with the source end replaced, then those with the target end replaced.
        negative_pairs = np.stack(np.broadcast_arrays(kept, negatives), axis=-1).reshape(-1, 2)
        self.pairs = np.ascontiguousarray(np.concatenate([seeds, negative_pairs]).astype(np.int32))
        self.num_seeds, self.width, self.margin = num_seeds, width, margin
        # Places of entities in pairs: place 2p is the first end of pair p, place 2p + 1 the second.
        ends = self.pairs.ravel()
        self.places = np.argsort(ends, kind="stable").astype(np.int32)
        self.starts = np.searchsorted(ends[self.places], np.arange(num_entities + 1)).astype(np.int32)

    def __call__(self, output: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = _Margin.apply(output, self)  # type: ignore[no-untyped-call]
        return result

    def loss_and_gradient(self, output: NDArray[np.float32]) -> tuple[float, NDArray[np.float32]]:
        """The mean loss, and its gradient by the output, of the same shape as the output."""
        distances = np.empty(len(self.pairs), dtype=np.float32)
        _distances(output, self.pairs, distances)
        near, far = distances[: self.num_seeds], distances[self.num_seeds :].reshape(2, self.num_seeds, self.width)
        violation = near[:, None] + np.float32(self.margin) - far
        active = violation > 0
        factors = np.concatenate([active.sum(axis=(0, 2)), -active.ravel().astype(np.int64)]).astype(np.float32)
        gradient = np.empty_like(output)
        _gradient(output, self.pairs, self.places, self.starts, factors, np.float32(1 / active.size), gradient)
        return float(violation[active].sum(dtype=np.float64)) / active.size, gradient


class _Margin(torch.autograd.Function):
    @staticmethod
    def forward(ctx, output, loss):  # type: ignore[no-untyped-def]
        value, gradient = loss.loss_and_gradient(output.detach().numpy())
        ctx.save_for_backward(torch.from_numpy(gradient))
        return output.new_tensor(value)

    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        return ctx.saved_tensors[0] * gradient, None


@numba.njit(parallel=True, cache=True, fastmath={"reassoc", "nsz", "contract"})
def _distances(output: Any, pairs: Any, distances: Any) -> None:
    for p in numba.prange(len(pairs)):
        first, second = output[pairs[p, 0]], output[pairs[p, 1]]
        total = np.float32(0.0)
        for d in range(output.shape[1]):
            total += abs(first[d] - second[d])
        distances[p] = total


@numba.njit(parallel=True, cache=True)
def _gradient(output: Any, pairs: Any, places: Any, starts: Any, factors: Any, scale: Any, gradient: Any) -> None:
    for i in numba.prange(len(starts) - 1):
        own, row = output[i], gradient[i]
        row[:] = np.float32(0.0)
        for q in range(starts[i], starts[i + 1]):
            pair, end = places[q] >> 1, places[q] & 1
            factor = factors[pair]
            if factor == 0:
                continue
            other = output[pairs[pair, 1 - end]]
            for d in range(output.shape[1]):
                row[d] += factor * (np.float32(own[d] > other[d]) - np.float32(own[d] < other[d]))
        for d in range(output.shape[1]):
            row[d] *= scale
