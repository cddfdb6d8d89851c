"""The policy network of the paper (section 3.2): graph convolutions, a pair layer, and a mutual-information estimate.

All candidates of a set of sources are scored in one pass.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from rlea.errors import InputError
from rlea.graph import KnowledgeGraph
from rlea.models.edges import both_ways


def check_settings(settings: Any, above_zero: Iterable[str], choices: Mapping[str, Collection[str]]) -> None:
    """Refuse settings of the agent that cannot be."""
    for name in above_zero:
        if getattr(settings, name) <= 0:
            raise InputError(f"the agent's setting {name} is {getattr(settings, name)}", remedy="it must be above zero")
    for name, known in choices.items():
        if getattr(settings, name) not in known:
            remedy = f"use {' or '.join(known)}" if len(known) == 2 else f"use one of {', '.join(known)}"
            raise InputError(f"the agent's setting {name} is {getattr(settings, name)!r}", remedy=remedy)


@dataclass(frozen=True)
class PolicySettings:
    """Shape of the network. The paper leaves all sizes open; the defaults are those of its authors' program."""

    encoder: str = "gcn"  # or "gat"
    num_layers: int = 1  # the text says "multi-layer" and gives no number
    hidden: int = 64
    pair_hidden: int = 8
    activation: bool = True  # ReLU after every layer
    estimator: bool = True  # the mutual-information estimate
    zero_start: bool = False  # as in the authors' program: every layer starts at zero and stays there

    def __post_init__(self) -> None:
        check_settings(self, ("num_layers", "hidden", "pair_hidden"), {"encoder": ("gcn", "gat")})


class GraphView:
    """One graph as the encoder sees it: neighbourhoods (each entity in its own) and the fixed input vectors."""

    def __init__(self, graph: KnowledgeGraph, vectors: NDArray[np.float32], device: torch.device) -> None:
        count = graph.num_entities
        # Each neighbour once, whatever the number of relations between the two.
        rows, columns = both_ways(graph.triples[:, 0], graph.triples[:, 2], count)
        shares = (1.0 / np.bincount(rows, minlength=count))[rows].astype(np.float32)
        back = np.lexsort((rows, columns))
        self.rows = torch.as_tensor(rows, device=device)  # (edges,)
        self.columns = torch.as_tensor(columns, device=device)  # (edges,)
        self.mean = _sparse(rows, columns, shares, count, device)  # (entities, entities)
        # The transpose: gradients of a sparse product are taken with it.
        self.mean_back = _sparse(columns[back], rows[back], shares[back], count, device)
        self.vectors = torch.as_tensor(vectors, dtype=torch.float32, device=device)  # (entities, dim)
        # The input never changes, so its neighbourhood means are computed once for all episodes.
        self.averaged = self.mean @ self.vectors


def _sparse(
    rows: NDArray[np.int64], columns: NDArray[np.int64], values: NDArray[np.float32], count: int, device: torch.device
) -> torch.Tensor:
    """A (count, count) matrix in compressed rows; `rows` ascend."""
    starts = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(rows, minlength=count), out=starts[1:])
    first, inner, filled = (torch.as_tensor(array, device=device) for array in (starts, columns, values))
    with warnings.catch_warnings():
        # torch marks the format as "beta" on its first use; the product with a matrix is all that is needed.
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support")
        warnings.filterwarnings("ignore", message="Sparse invariant checks")  # said by torch 2.11 though they are on
        return torch.sparse_csr_tensor(first, inner, filled, (count, count), device=device, check_invariants=True)


class _Average(torch.autograd.Function):
    """Mean over neighbours, with the stored transpose for the gradient."""

    @staticmethod
    def forward(ctx, hidden, view):  # type: ignore[no-untyped-def]
        ctx.view = view
        return view.mean @ hidden

    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        return ctx.view.mean_back @ gradient, None


class GcnEncoder(nn.Module):
    """Equation 1: g_x^k = ReLU(mean over neighbours and self of W g_i^(k-1)); the weights serve both graphs."""

    def __init__(self, dim: int, settings: PolicySettings) -> None:
        super().__init__()
        sizes = [dim] + [settings.hidden] * settings.num_layers
        self.layers = nn.ModuleList(nn.Linear(before, after, bias=False) for before, after in pairwise(sizes))
        self.settings = settings

    def activate(self, hidden: torch.Tensor) -> torch.Tensor:
        return torch.relu(hidden) if self.settings.activation else hidden

    def forward(self, view: GraphView, ids: torch.Tensor) -> torch.Tensor:
        """Outputs of some entities of a graph, (len(ids), hidden)."""
        if len(self.layers) == 1:  # then no entity needs another's output
            return self.activate(self.layers[0](view.averaged[ids]))
        hidden = self.layers[0](view.averaged)
        for layer in list(self.layers)[1:]:
            hidden = _Average.apply(layer(self.activate(hidden)), view)  # type: ignore[no-untyped-call]
        return self.activate(hidden)[ids]


class GatEncoder(GcnEncoder):
    """The other encoder: neighbours weighted by attention (one head) instead of alike."""

    def __init__(self, dim: int, settings: PolicySettings) -> None:
        super().__init__(dim, settings)
        self.of_self = nn.ModuleList(nn.Linear(settings.hidden, 1, bias=False) for _ in self.layers)
        self.of_other = nn.ModuleList(nn.Linear(settings.hidden, 1, bias=False) for _ in self.layers)

    def forward(self, view: GraphView, ids: torch.Tensor) -> torch.Tensor:
        """Outputs of some entities of a graph, (len(ids), hidden)."""
        hidden = view.vectors
        for layer, of_self, of_other in zip(self.layers, self.of_self, self.of_other, strict=True):
            hidden = layer(hidden)  # (entities, hidden)
            raw = of_self(hidden)[view.rows, 0] + of_other(hidden)[view.columns, 0]  # (edges,)
            raw = nn.functional.leaky_relu(raw, 0.2)
            top = torch.full((len(hidden),), -torch.inf, device=raw.device).scatter_reduce(0, view.rows, raw, "amax")
            weight = (raw - top.detach()[view.rows]).exp()
            total = torch.zeros(len(hidden), device=raw.device).index_add(0, view.rows, weight)
            weight = weight / total[view.rows]
            hidden = torch.zeros_like(hidden).index_add(0, view.rows, weight[:, None] * hidden[view.columns])
            hidden = self.activate(hidden)
        return hidden[ids]


class Trunk(nn.Module):
    """Encoder, pair layer and estimate: what the policy and the value network have in common."""

    def __init__(self, dim: int, settings: PolicySettings) -> None:
        super().__init__()
        self.encoder = (GcnEncoder if settings.encoder == "gcn" else GatEncoder)(dim, settings)
        self.source_part = nn.Linear(settings.hidden, settings.pair_hidden)  # W_h, split where the pair is joined
        self.target_part = nn.Linear(settings.hidden, settings.pair_hidden, bias=False)
        self.ratio = nn.Linear(settings.hidden, settings.hidden, bias=False) if settings.estimator else None  # W_f
        self.width = settings.pair_hidden + (1 if settings.estimator else 0)
        if settings.zero_start:
            for parameter in self.parameters():
                nn.init.zeros_(parameter)

    def forward(
        self,
        source: GraphView,
        target: GraphView,
        source_ids: torch.Tensor,  # (rows,) entity ids
        target_ids: torch.Tensor,  # (rows, k) entity ids of the candidates, -1 for none
    ) -> torch.Tensor:
        """Features of every candidate pair, (rows, k, width)."""
        present = target_ids >= 0
        # Targets are candidates of many sources: each is encoded once.
        needed, chosen = target_ids.clamp(min=0).unique(return_inverse=True)  # type: ignore[no-untyped-call]
        g_source = self.encoder(source, source_ids)  # (rows, hidden)
        g_target = self.encoder(target, needed)  # (needed, hidden)
        # Equation 2, (rows, k, pair_hidden). `embedding` gathers rows like an index; its gradient is much faster.
        h = self.source_part(g_source)[:, None] + nn.functional.embedding(chosen, self.target_part(g_target))
        h = torch.relu(h)
        if self.ratio is None:
            return h
        # Equations 3 and 4 in log form: a softmax over the source's candidates, each against its opponents.
        others = nn.functional.embedding(chosen, g_target)  # (rows, k, hidden)
        log_f = torch.bmm(others, self.ratio(g_source)[:, :, None])[:, :, 0]  # (rows, k)
        estimate = log_f.masked_fill(~present, -torch.inf).softmax(dim=1)
        estimate = torch.where(present, estimate, torch.zeros_like(estimate))
        return torch.cat([h, estimate[:, :, None]], dim=2)


class Network(nn.Module):
    """A trunk and a linear head."""

    num_outputs: int
    has_bias: bool

    def __init__(self, dim: int, settings: PolicySettings | None = None) -> None:
        super().__init__()
        self.settings = settings or PolicySettings()
        self.dim = dim
        self.trunk = Trunk(dim, self.settings)
        self.head = nn.Linear(self.trunk.width, self.num_outputs, bias=self.has_bias)
        if self.settings.zero_start:
            for parameter in self.head.parameters():
                nn.init.zeros_(parameter)


class Policy(Network):
    """Equation 5: a softmax over the two actions."""

    num_outputs, has_bias = 2, False  # W_p

    def forward(self, *pairs: Any) -> torch.Tensor:
        """log pi(a | s) of every candidate pair, (rows, k, 2), given as to the trunk; action 1 is match."""
        logits: torch.Tensor = self.head(self.trunk(*pairs))
        return logits.log_softmax(dim=2)


class Value(Network):
    """The baseline of equation 8: an estimate of the return from such features, by a trunk of its own."""

    num_outputs, has_bias = 1, True

    def forward(self, *pairs: Any) -> torch.Tensor:
        """The estimated return from every candidate pair on, (rows, k)."""
        result: torch.Tensor = self.head(self.trunk(*pairs))
        return result[:, :, 0]
