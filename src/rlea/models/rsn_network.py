"""The parts of an RSN that torch does not have, each with its gradient written out; tests hold them to automatic ones.

Written out they need a few calls per step of a walk, so that a GPU need not wait for them, and no second copy of the
largest tensor, a score per prediction and sampled negative.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

# Predictions scored at a time on the CPU, so that their scores of all negatives stay in the cache.
_ROWS = 128


@dataclass(frozen=True, eq=False)
class NoiseSampler:
    """Ids drawn without replacement, those that occur more often with a higher chance.

    The id of rank k by occurrence (from 0) has the log-uniform probability p = log((k + 2) / (k + 1)) / log(n + 1) of
    being the next draw, as in TensorFlow's sampler. Draws go on until there are `num_samples` ids, which is the same
    as to let every id wait for an exponential time of rate p and to take the first; up to a time t that the mean
    number of ids settles, one is among them with probability 1 - exp(-t p).
    """

    rates: Tensor  # (num_ids,) p
    log_chances: Tensor  # (num_ids,) logarithm of the probability of being drawn
    num_samples: int

    @staticmethod
    def of(occurrences: NDArray[np.int64], num_samples: int, device: str) -> NoiseSampler:
        num_ids = len(occurrences)
        ranks = np.empty(num_ids)
        ranks[np.argsort(-occurrences, kind="stable")] = np.arange(num_ids)
        rates = np.log1p(1 / (ranks + 1)) / np.log(num_ids + 1)
        low, high = 0.0, 1.0
        while -np.expm1(-rates * high).sum() < min(num_samples, num_ids - 0.5):
            high *= 2
        for _ in range(100):
            time = (low + high) / 2
            low, high = (time, high) if -np.expm1(-rates * time).sum() < num_samples else (low, time)
        chances = np.log(-np.expm1(-rates * high))
        return NoiseSampler(
            torch.tensor(rates, dtype=torch.float32, device=device),
            torch.tensor(chances, dtype=torch.float32, device=device),
            num_samples,
        )

    def draw(self, generator: torch.Generator) -> Tensor:
        """Ids (num_samples,), sorted by nothing in particular."""
        waits = torch.empty_like(self.rates).exponential_(generator=generator) / self.rates
        return waits.topk(self.num_samples, largest=False, sorted=False).indices


class NoiseScores(torch.autograd.Function):
    """sum over rows and negatives of log(1 + exp(s)), s = rows (n, dim) . weights (m, dim) + offsets (m)."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, weights: Tensor, offsets: Tensor) -> Tensor:
        total = rows.new_zeros(())
        towards_rows, towards_weights = torch.empty_like(rows), torch.zeros_like(weights)
        towards_offsets = torch.zeros_like(offsets)
        size = _ROWS if rows.device.type == "cpu" else max(1, len(rows))
        for begin in range(0, len(rows), size):
            part = slice(begin, begin + size)
            scores = torch.addmm(offsets, rows[part], weights.T)
            total += torch.nn.functional.softplus(scores).sum()
            slopes = scores.sigmoid_()
            torch.mm(slopes, weights, out=towards_rows[part])
            towards_weights.addmm_(slopes.T, rows[part])
            towards_offsets += slopes.sum(dim=0)
        ctx.save_for_backward(towards_rows, towards_weights, towards_offsets)
        return total

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, ...]:
        return tuple(gradient * towards for towards in ctx.saved_tensors)


class LinearLSTM(torch.autograd.Function):
    """A layer of long short-term memory without the usual tanh: gates are sigmoids, memory and output are linear.

        o, i, f = sigmoid of, g = as they are: x_t W + h_{t-1} U + b     (blocks of dim columns, in this order)
        c_t = f c_{t-1} + i g,     h_t = o c_t

    Inputs (steps, batch, dim), W and U (dim, 4 dim), b (4 dim); the result is h (steps, batch, dim).
    """

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, w: Tensor, u: Tensor, b: Tensor) -> Tensor:
        steps, batch, dim = inputs.shape
        gates = torch.addmm(b, inputs.reshape(-1, dim), w).view(steps, batch, 4 * dim)
        cells = inputs.new_zeros(steps + 1, batch, dim)  # cells[t + 1] is c_t
        hidden = inputs.new_zeros(steps + 1, batch, dim)
        # All views at once: made one by one in the loop they would take longer than the sums.
        o, i, f, g = (gate.unbind() for gate in gates.view(steps, batch, 4, dim).unbind(2))
        whole, squashed, c, h = gates.unbind(), gates[:, :, : 3 * dim].unbind(), cells.unbind(), hidden.unbind()
        for t in range(steps):
            if t > 0:
                whole[t].addmm_(h[t], u)
            squashed[t].sigmoid_()
            torch.mul(i[t], g[t], out=c[t + 1])
            c[t + 1].addcmul_(f[t], c[t])
            torch.mul(o[t], c[t + 1], out=h[t + 1])
        ctx.save_for_backward(inputs, w, u, gates, cells, hidden)
        return hidden[1:].clone()

    @staticmethod
    def backward(ctx: Any, towards_hidden: Tensor) -> tuple[Tensor, ...]:
        inputs, w, u, gates, cells, hidden = ctx.saved_tensors
        steps, batch, dim = inputs.shape
        o, i, f, g = gates.view(steps, batch, 4, dim).unbind(2)
        # How the output moves with o before its sigmoid, and the memory with i, f, g before theirs: all at once.
        slopes = torch.stack([cells[1:] * o * (1 - o), g * i * (1 - i), cells[:-1] * f * (1 - f), i], dim=2)
        before = torch.empty_like(slopes)  # (steps, batch, 4, dim) gradients of the gates before their sigmoids
        steps_of = [
            part.unbind() for part in (o, f, slopes[:, :, 0], slopes[:, :, 1:], before[:, :, 0], before[:, :, 1:])
        ]
        open_output, kept_cell, output_slopes, cell_slopes, before_output, before_cell = steps_of
        whole, arriving, back = before.view(steps, batch, 4 * dim).unbind(), towards_hidden.unbind(), u.T
        towards_cell = torch.zeros_like(cells[0])
        spread = towards_cell[:, None]
        for t in reversed(range(steps)):
            of_output = arriving[t] if t == steps - 1 else torch.addmm(arriving[t], whole[t + 1], back)
            towards_cell.addcmul_(of_output, open_output[t])
            torch.mul(of_output, output_slopes[t], out=before_output[t])
            torch.mul(spread, cell_slopes[t], out=before_cell[t])
            towards_cell *= kept_cell[t]
        flat = before.view(steps * batch, 4 * dim)
        towards_u = hidden[1:-1].reshape(-1, dim).T @ flat[batch:]
        return (flat @ w.T).view_as(inputs), inputs.reshape(-1, dim).T @ flat, towards_u, flat.sum(dim=0)


def normalise(inputs: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """Batch normalisation (batch, steps, dim): each step by its own mean and deviation, `scale` and `shift` for all."""
    batch, steps, _ = inputs.shape
    flat = torch.nn.functional.batch_norm(
        inputs.reshape(batch, -1), None, None, scale.repeat(steps), shift.repeat(steps), training=True, eps=1e-3
    )
    return flat.view_as(inputs)
