"""A margin ranking loss over Manhattan distances, its gradient, and the negatives that it is taken over.

For links (s, t) and, per link, entities n that are near s and entities m that are near t,

    loss = mean of max(0, |s - t| + margin - |s - n|) and max(0, |s - t| + margin - |m - t|).

The gradient consists of signs alone, so it is written out: a table of differences (750,000 pairs of 300 coordinates
for a 15K pair) is never held on the CPU, and pairs that keep the margin cost no more than the part of their distance
that shows it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import torch

from rlea.models.edges import sum_by_row
from rlea.models.kernels import manhattan
from rlea.search.top_k import replace_worst

_STEP = 96  # terms of a distance summed before the sum is looked at
_QUERIES = 32  # searched for together: an entity's vector is then brought from memory once for all of them
_CHUNKS = 128  # parts of the entities with about the same number of negatives
_GPU_NUMBERS = 1 << 27  # held at a time (512 MiB of floats)


@dataclass(frozen=True, eq=False)
class Negatives:
    """Which entities stand in for one end of each link, and the same by entity."""

    anchors: torch.Tensor  # (2, num_links) the ends of the links, first the source ends
    others: torch.Tensor  # (2, num_links, k) row i of part s: what anchors[1 - s, i] is replaced by, near anchors[s, i]
    by_entity: torch.Tensor  # (2 * num_links * k,) places in `others`, flat, in the order of their entities
    starts: torch.Tensor  # (num_entities + 1,) of each entity's places in `by_entity`

    @staticmethod
    def of(anchors: torch.Tensor, others: torch.Tensor, num_entities: int) -> Negatives:
        in_order, by_entity = others.flatten().sort(stable=True)
        everyone = torch.arange(num_entities + 1, device=others.device)
        return Negatives(anchors, others, by_entity, torch.searchsorted(in_order, everyone))


def ranking_loss(vectors: torch.Tensor, negatives: Negatives, margin: float) -> torch.Tensor:
    """The loss over vectors (num_entities, dim), a scalar with a gradient."""
    result: torch.Tensor = _RankingLoss.apply(vectors, negatives, margin)  # type: ignore[no-untyped-call]
    return result


class _RankingLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, vectors: torch.Tensor, negatives: Negatives, margin: float) -> torch.Tensor:
        on_cpu = vectors.device.type == "cpu"
        loss, gradient = (_rank_compiled if on_cpu else rank_by_tensors)(vectors.detach(), negatives, margin)
        ctx.save_for_backward(gradient)
        return loss

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        (gradient,) = ctx.saved_tensors
        return gradient * gradients[0], None, None


def rank_by_tensors(vectors: torch.Tensor, negatives: Negatives, margin: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Loss and gradient in operations on whole tensors: the way to a GPU, and what the compiled form is held to."""
    _, num_links, k = negatives.others.shape
    dim = vectors.shape[1]
    source, target = vectors[negatives.anchors[0]], vectors[negatives.anchors[1]]
    limits = (source - target).abs().sum(dim=1) + margin  # (num_links,)
    gaps = vectors.new_empty((2, num_links, k))
    links_at_a_time = max(1, _GPU_NUMBERS // (k * dim))
    for side, anchor in enumerate((source, target)):
        for begin in range(0, num_links, links_at_a_time):
            part = slice(begin, begin + links_at_a_time)
            distances = (anchor[part, None] - vectors[negatives.others[side, part]]).abs_().sum(dim=2)
            gaps[side, part] = limits[part, None] - distances
    loss = gaps.relu().sum() / gaps.numel()
    is_open = (gaps > 0).to(vectors.dtype) / gaps.numel()  # the weight of each pair in the gradient
    pull = is_open.sum(dim=(0, 2))[:, None] * (source - target).sign()  # (num_links, dim)
    of_anchors = [pull, -pull]
    gradient = torch.zeros_like(vectors)
    pairs_at_a_time = max(1, _GPU_NUMBERS // (2 * num_links * k))  # coordinates
    for begin in range(0, dim, pairs_at_a_time):
        part = slice(begin, begin + pairs_at_a_time)
        narrow = vectors[:, part].contiguous()
        anchors = narrow[negatives.anchors][:, :, None]  # (2, num_links, 1, coordinates)
        signs = (anchors - narrow[negatives.others]).sign_().mul_(is_open[..., None])
        for side in range(2):
            of_anchors[side][:, part] -= signs[side].sum(dim=1)
        gradient[:, part] = sum_by_row(negatives.starts, signs.flatten(0, 2)[negatives.by_entity])
    gradient.index_add_(0, negatives.anchors[0], of_anchors[0])
    gradient.index_add_(0, negatives.anchors[1], of_anchors[1])
    return loss, gradient


def _rank_compiled(vectors: torch.Tensor, negatives: Negatives, margin: float) -> tuple[torch.Tensor, torch.Tensor]:
    _, num_links, k = negatives.others.shape
    rows = vectors.contiguous().numpy()
    anchors, others, starts = negatives.anchors.numpy(), negatives.others.numpy(), negatives.starts.numpy()
    losses = np.empty((2, num_links), dtype=np.float32)
    is_open = np.empty(2 * num_links * k, dtype=np.bool_)
    of_anchors = np.empty((2, num_links, rows.shape[1]), dtype=np.float32)
    _score(rows, anchors, others, np.float32(margin), losses, is_open, of_anchors)
    gradient = np.empty_like(rows)
    load = starts + np.arange(len(starts))
    cuts = np.searchsorted(load, np.arange(_CHUNKS + 1) * (load[-1] / _CHUNKS)).astype(np.int64)
    cuts[0], cuts[-1] = 0, len(rows)
    scale = np.float32(1.0 / (2 * num_links * k))
    _gather(rows, anchors.ravel(), cuts, starts, negatives.by_entity.numpy(), k, is_open, scale, gradient)
    _add_anchors(anchors, of_anchors, scale, gradient)
    return torch.tensor(losses.sum(dtype=np.float64) * scale, dtype=torch.float32), torch.from_numpy(gradient)


def nearest(vectors: torch.Tensor, anchors: torch.Tensor, k: int, before: torch.Tensor | None = None) -> torch.Tensor:
    """For every end of every link the k nearest entities by Manhattan distance but for both ends: (2, num_links, k).

    Anchors (2, num_links). All entities of both graphs are looked at; rows are ordered by id. `before` is the result
    for vectors near these ones: it makes the search faster on the CPU and leaves the result as it is.
    """
    own, partners = anchors.flatten(), anchors.flip(0).flatten()
    if vectors.device.type == "cpu":
        found = torch.empty((len(own), k), dtype=torch.int64)
        known = np.zeros((0, 0), dtype=np.int64) if before is None else before.flatten(0, 1).numpy()
        _nearest_compiled(vectors.contiguous().numpy(), own.numpy(), partners.numpy(), known, found.numpy())
    else:
        found = nearest_by_tensors(vectors, own, partners, k)
    return found.sort(dim=1).values.reshape(2, -1, k)


def nearest_by_tensors(vectors: torch.Tensor, own: torch.Tensor, partners: torch.Tensor, k: int) -> torch.Tensor:
    """For entities `own` the k nearest ones but for themselves and their `partners`, (len(own), k), in any order."""
    at_a_time = max(1, _GPU_NUMBERS // len(vectors))
    parts = []
    for begin in range(0, len(own), at_a_time):
        ids = own[begin : begin + at_a_time]
        distances = torch.cdist(vectors[ids], vectors, p=1.0)
        rows = torch.arange(len(ids), device=vectors.device)
        distances[rows, ids] = float("inf")
        distances[rows, partners[begin : begin + at_a_time]] = float("inf")
        parts.append(distances.topk(k, dim=1, largest=False).indices)
    return torch.cat(parts)


@numba.njit(cache=True, error_model="numpy")
def _add_signs(total: Any, factor: Any, a: Any, b: Any) -> None:
    """Add `factor` where a is larger, take it away where b is."""
    for d in range(a.shape[0]):
        more = factor if a[d] > b[d] else np.float32(0.0)
        less = factor if a[d] < b[d] else np.float32(0.0)
        total[d] += more - less


@numba.njit(parallel=True, cache=True)
def _score(rows: Any, anchors: Any, others: Any, margin: Any, losses: Any, is_open: Any, of_anchors: Any) -> None:
    """Losses of the links, which pairs break the margin, and what these do to the anchors, in units of a pair."""
    num_links, k = others.shape[1], others.shape[2]
    for i in numba.prange(num_links):
        source, target = rows[anchors[0, i]], rows[anchors[1, i]]
        limit = manhattan(source, target, np.float32(np.inf), _STEP) + margin
        num_open = 0
        for side in range(2):
            anchor = rows[anchors[side, i]]
            total = of_anchors[side, i]
            total[:] = np.float32(0.0)
            loss = np.float32(0.0)
            for j in range(k):
                other = rows[others[side, i, j]]
                gap = limit - manhattan(anchor, other, limit, _STEP)
                is_open[(side * num_links + i) * k + j] = gap > 0
                if gap > 0:
                    num_open += 1
                    loss += gap
                    _add_signs(total, np.float32(1.0), other, anchor)
            losses[side, i] = loss
        _add_signs(of_anchors[0, i], np.float32(num_open), source, target)
        _add_signs(of_anchors[1, i], np.float32(num_open), target, source)


@numba.njit(parallel=True, cache=True)
def _gather(
    rows: Any, anchors: Any, cuts: Any, starts: Any, by_entity: Any, k: Any, is_open: Any, scale: Any, gradient: Any
) -> None:
    """What being a negative does to each entity."""
    for chunk in numba.prange(len(cuts) - 1):
        for entity in range(cuts[chunk], cuts[chunk + 1]):
            total = gradient[entity]
            total[:] = np.float32(0.0)
            for p in range(starts[entity], starts[entity + 1]):
                place = by_entity[p]
                if is_open[place]:
                    _add_signs(total, scale, rows[anchors[place // k]], rows[entity])


@numba.njit(cache=True)
def _add_anchors(anchors: Any, of_anchors: Any, scale: Any, gradient: Any) -> None:
    for side in range(2):
        for i in range(anchors.shape[1]):
            total, own = gradient[anchors[side, i]], of_anchors[side, i]
            for d in range(len(total)):
                total[d] += scale * own[d]


@numba.njit(parallel=True, cache=True)
def _nearest_compiled(rows: Any, anchors: Any, partners: Any, before: Any, result: Any) -> None:
    """The best so far are kept in heaps of scores, which put the nearer before the farther, then the lower id."""
    count, k = result.shape
    last_score = -np.int64(np.float32(np.inf).view(np.int32)) << 32
    for block in numba.prange((count + _QUERIES - 1) // _QUERIES):
        first, last = block * _QUERIES, min((block + 1) * _QUERIES, count)
        bounds = np.full(_QUERIES, np.float32(np.inf), dtype=np.float32)
        ids = np.full((_QUERIES, k), -1, dtype=np.int64)
        scores = np.full((_QUERIES, k), last_score, dtype=np.int64)
        if len(before) > 0:
            # Some k entities are known, so the k nearest are no farther than the farthest of them.
            for i in range(first, last):
                bounds[i - first] = np.float32(0.0)
                for j in before[i]:
                    distance = manhattan(rows[anchors[i]], rows[j], np.float32(np.inf), _STEP)
                    bounds[i - first] = max(bounds[i - first], distance)
        for entity in range(len(rows)):
            row = rows[entity]
            for i in range(first, last):
                bound = bounds[i - first]
                distance = manhattan(rows[anchors[i]], row, bound, _STEP)
                if distance > bound or entity == anchors[i] or entity == partners[i]:
                    continue
                own = scores[i - first]
                # The bits of floats that are not below zero are in the order of the floats.
                score = -(np.int64(np.float32(distance).view(np.int32)) << 32 | entity)
                if score > own[0]:
                    replace_worst(ids[i - first], own, entity, score)
                    bounds[i - first] = min(bound, np.int32(-own[0] >> 32).view(np.float32))
        for i in range(first, last):
            result[i] = ids[i - first]
