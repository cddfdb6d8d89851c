"""What the models that translate by relations share: one table of vectors, a row per entity, source first, then one per
relation. It is trained in torch, in the words of the papers, or by the same steps compiled for processors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch.nn.functional import normalize

from rlea.graph import GraphPair, Ids
from rlea.models.kernels import one_thread
from rlea.models.torch_optimisers import as_array
from rlea.models.training import Arrays, Device, Floats, Schedule, TrainedModel
from rlea.models.translation_step import Table
from rlea.models.triples import initial_vectors, join_triples


@dataclass(frozen=True)
class AdagradSettings(Schedule):
    """Settings that AlignE, JAPE and MTransE have in common."""

    dim: int = 100
    learning_rate: float = 0.01  # Adagrad
    initial_squares: float = 0.1  # Adagrad's sums start here: what the published runs' framework does unasked
    max_epochs: int = 2000
    batch_size: int = 5000


class TorchTable:
    """Vectors in training with automatic gradients: the reference, and the way to a GPU."""

    def __init__(self, arrays: Arrays, settings: Any, device: Device) -> None:
        self.settings = settings
        self.raw = torch.tensor(arrays["raw"], device=device, requires_grad=True)

    def units(self, num_rows: int) -> Floats:
        """Unit vectors of the first rows."""
        return as_array(normalize(self.raw[:num_rows].detach()))


class CompiledTable:
    """Vectors in training on a processor, with the sums of squares and the matrices that belong to them."""

    def __init__(self, arrays: Arrays, settings: Any, device: Device = "cpu") -> None:
        self.settings = settings
        self.table = Table.of(arrays["raw"], arrays.get("scales"))
        self.kept = {name: array.copy() for name, array in arrays.items() if name not in Table._fields}

    def units(self, num_rows: int) -> Floats:
        return self.table.units(slice(num_rows))

    def arrays(self) -> Arrays:
        return {**self.table._asdict(), **self.kept}


class TranslationModel(TrainedModel):
    """A model with such a table. Its trainers have the same methods, each a pass over the batches of an epoch."""

    trainers: ClassVar[tuple[Callable[..., Any], Callable[..., Any]]]  # for processors, and for a GPU
    swaps: ClassVar[bool] = False  # whether triples are copied with a seed entity swapped for its counterpart

    def __init__(self, pair: GraphPair, settings: Any, seed: int, device: Device) -> None:
        super().__init__(pair, settings, seed, device)
        self.triples = join_triples(pair, swap=self.swaps)
        self.num_rows = self.num_entities + self.triples.num_relations

    def fresh_arrays(self) -> Arrays:
        """Random vectors, and the sums of squared gradients of one Adagrad."""
        raw = initial_vectors(self.num_rows, self.settings.dim, seed=self.seed)
        return {"raw": raw, "squares": np.full_like(raw, self.settings.initial_squares)}

    def start(self, epoch: int, saved: Arrays) -> None:
        trainer = self.trainers[self.device != "cpu"]
        self.trainer = trainer(saved or self.fresh_arrays(), self.settings, self.device)

    def joint_vectors(self) -> Floats:
        vectors: Floats = self.trainer.units(self.num_entities)
        return vectors

    def arrays(self, epoch: int) -> Arrays:
        arrays: Arrays = self.trainer.arrays()
        return arrays


class TwoSpaces(TranslationModel):
    """A space for each graph, and a matrix (`trainer.matrix()`) from the source space to the target space."""

    def vectors(self) -> tuple[Floats, Floats]:
        """Unit vectors in the target space."""
        source, target = super().vectors()
        return mapped(source, self.trainer.matrix()), target


def orthogonal(dim: int, *, seed: int, number: int) -> Floats:
    """A random orthogonal matrix (dim, dim), another for every `number`."""
    random = np.random.default_rng([seed, 0, 2, 1 + number])
    q, r = np.linalg.qr(random.standard_normal((dim, dim)))
    return np.ascontiguousarray(q * np.sign(np.diag(r)), dtype=np.float32)  # signs: else not all are as likely


def parts(num_items: int, num_parts: int, *, seed: int, epoch: int, stream: int) -> tuple[Ids, list[int]]:
    """The numbers below `num_items` in a new order for every epoch, and the cuts between parts of about one size."""
    order = np.random.default_rng([seed, epoch, 2, 1 + stream]).permutation(num_items).astype(np.int32)
    return order, (np.arange(num_parts + 1) * num_items // num_parts).tolist()


def mapped(units: Floats, mapping: Floats) -> Floats:
    """Unit vectors taken into the other space, and scaled to unit length again."""
    with one_thread():
        result: Floats = units @ mapping
    result /= np.maximum(np.sqrt(np.einsum("nd,nd->n", result, result)), np.float32(1e-12))[:, None]
    return result


def triple_scores(
    raw: torch.Tensor,  # (num_rows, dim) vectors before normalising
    positives: torch.Tensor,  # (batch, 3) rows of head, relation, tail
    negatives: torch.Tensor,  # (batch, num_negatives) rows of corrupting entities, -1 for none
    corrupt_tail: torch.Tensor,  # (batch,) whether they stand for the tail, else for the head
) -> tuple[torch.Tensor, torch.Tensor]:
    """|h + r - t|^2 of the true triples (batch, 1) and of the false ones (batch, num_negatives)."""
    units = normalize(raw)
    head, relation, tail = units[positives].unsqueeze(2).unbind(1)  # (batch, 1, dim) each
    corrupting = units[negatives.clamp(min=0)]  # (batch, num_negatives, dim)
    is_tail = corrupt_tail[:, None, None]
    false_head, false_tail = torch.where(is_tail, head, corrupting), torch.where(is_tail, corrupting, tail)
    true_scores = (head + relation - tail).square().sum(dim=2)
    return true_scores, (false_head + relation - false_tail).square().sum(dim=2)
