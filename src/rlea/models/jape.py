"""JAPE (Sun et al., 2017): translation in one space where seeds share a vector, and like attributes attract.

Structure: a triple (h, r, t) is scored by f = |h + r - t|^2 over unit vectors, and

    O_SE = sum over true of f - negative_weight * sum over false of f

is made small; the two entities of a seed are one vector.

Attributes: entities with like attributes (`rlea.models.attributes`) should have like vectors. With S the similarities
of source and target entities that are high enough, every row scaled to sum 1, and S' the same from target to source,

    O_S = |E_source - S E_target|^2 + |E_target - S' E_source|^2,

and JAPE makes O_SE + similarity_weight * O_S small. The paper's further terms, for entities of one graph, are left out.
Where attributes cannot be used, the structure trains alone and `info` says why.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

import numba
import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import normalize

from rlea.graph import GraphPair, Ids
from rlea.models.aligne import CompiledTrainer as CompiledAlignE
from rlea.models.aligne import TorchTrainer as TorchAlignE
from rlea.models.attributes import (
    Similar,
    collect_occurrences,
    entity_vectors,
    learn_vectors,
    merge_rows,
    similar_entities,
    why_unused,
)
from rlea.models.kernels import add_scaled, dot
from rlea.models.negatives import Sampler
from rlea.models.row_optimisers import adagrad_step
from rlea.models.torch_optimisers import descend, to_device
from rlea.models.training import Arrays, Device, Floats, Options, train
from rlea.models.translation import AdagradSettings, TranslationModel, triple_scores
from rlea.models.translation_step import Gradient, Table
from rlea.models.triples import shuffled
from rlea.search.embeddings import Embeddings

_FARTHEST = 10.0  # more than |h + r - t|^2 of unit vectors can be


@dataclass(frozen=True)
class JAPESettings(AdagradSettings):
    """Settings of JAPE; the defaults are the published ones unless the comment says otherwise."""

    title: ClassVar[str] = "JAPE"
    may_be_zero: ClassVar[tuple[str, ...]] = ("negative_weight", "similarity_weight")
    at_most_one: ClassVar[tuple[str, ...]] = ("attribute_share", "min_similarity")
    negative_weight: float = 0.1
    num_negatives: int = 1  # per positive, any entity of its graph
    attribute_epochs: int = 200
    attribute_share: float = 0.9  # of the attributes of a graph, the most frequent
    # Our own, after what is usual for skip-gram over words: negatives, and a rate that falls to nothing.
    attribute_negatives: int = 5
    attribute_learning_rate: float = 0.025
    # Our own: drawn per epoch, seconds in all; there are only some hundred attributes to place.
    max_attribute_pairs: int = 10_000
    min_similarity: float = 0.95  # of entities by their attributes
    max_matches: int = 10  # our own: per entity, the most similar, or memory would grow with the square of the graph
    similarity_weight: float = 0.001
    valid_from: int = 100
    valid_every: int = 10
    # Published: two that fall. Of some 1,500 validation links ten epochs add no more than the score wavers, so two
    # would stop by chance. With five, fold 1 of D_Y_15K_V1 stopped at epoch 320, and its folds 2 to 5 had their best
    # validations at epochs 390 to 560: five stop by chance, too.
    patience: int = 10
    # Our own, for pairs without validation links, as for AlignE; after 220 epochs EN_FR_15K_V1 was still rising.
    epochs_without_valid: int = 500


class TorchTrainer(TorchAlignE):
    """The table of AlignE, in which seeds use the source's row; and the similar entities, if there are some."""

    def __init__(self, arrays: Arrays, settings: JAPESettings, device: Device) -> None:
        super().__init__(arrays, settings, device)
        self.similar = Similar.of(arrays)
        if self.similar is not None:
            self.rows, self.matches = to_device(device, self.similar.rows, self.similar.matches)
            self.weights = torch.tensor(self.similar.weights, device=device)

    def loss(self, positives: torch.Tensor, negatives: torch.Tensor, corrupt_tail: torch.Tensor) -> torch.Tensor:
        """O_SE of a batch, a sum over its triples."""
        true_scores, false_scores = triple_scores(self.raw, positives, negatives, corrupt_tail)
        weight: float = self.settings.negative_weight
        return true_scores.sum() - weight * (false_scores * (negatives >= 0)).sum()

    def follow_similarity(self) -> float:
        """A step of Adagrad down similarity_weight * O_S; the loss."""
        return float(descend(self.optimiser, self.settings.similarity_weight * self.similarity_loss()))

    def similarity_loss(self) -> torch.Tensor:
        """O_S."""
        units = normalize(self.raw)
        expected = (self.weights[:, :, None] * units[self.matches]).sum(dim=1)  # (number, dim)
        return (units[self.rows] - expected).square().sum()

    def arrays(self) -> Arrays:
        return super().arrays() | ({} if self.similar is None else self.similar.arrays())


class CompiledTrainer(CompiledAlignE):
    """The same steps compiled for processors, where only rows that a batch touches are read and written."""

    def __init__(self, arrays: Arrays, settings: JAPESettings, device: Device = "cpu") -> None:
        super().__init__(arrays, settings, device)
        self.similar = Similar.of(arrays)
        self.residuals = None if self.similar is None else residual_matrices(self.similar, len(self.table.raw))

    def limits(self) -> tuple[float, float, float]:
        # AlignE's loss with limits that every triple is beyond is O_SE but for a constant: max(0, f - 0) = f, and
        # max(0, farthest - f) = farthest - f.
        return 0.0, _FARTHEST, self.settings.negative_weight

    def train_triples(self, positives: Ids, negatives: Ids, corrupt_tail: NDArray[np.bool_], cuts: list[int]) -> float:
        _, farthest, weight = self.limits()
        total = super().train_triples(positives, negatives, corrupt_tail, cuts)
        return total - weight * farthest * int((negatives >= 0).sum())

    def follow_similarity(self) -> float:
        assert self.residuals is not None
        loss, gradient = similarity_gradient(self.table, *self.residuals, self.settings.similarity_weight)
        adagrad_step(self.table, self.kept["squares"], gradient, self.settings.learning_rate)
        return loss


class JAPE(TranslationModel):
    """JAPE in training: every epoch goes through the triples of both graphs, then takes one step by attributes."""

    version = 1
    trainers = CompiledTrainer, TorchTrainer
    settings: JAPESettings

    def __init__(self, pair: GraphPair, settings: JAPESettings, seed: int, device: Device) -> None:
        super().__init__(pair, settings, seed, device)
        self.pair = pair
        self.unused = why_unused(pair) if settings.similarity_weight > 0 else "their weight is zero"
        self.info = {"attributes": f"not used: {self.unused}" if self.unused else "used"}
        self.sampler = Sampler.of(self.triples)
        self.row_of = shared_rows(self.seeds, self.num_entities)

    def fresh_arrays(self) -> Arrays:
        similar = None if self.unused else find_similar(self.pair, self.settings, self.seed, self.row_of)
        return super().fresh_arrays() | ({} if similar is None else similar.arrays())  # longer to find than to keep

    def start(self, epoch: int, saved: Arrays) -> None:
        super().start(epoch, saved)
        self.similar: Similar | None = self.trainer.similar
        self.info["similar_pairs"] = 0 if self.similar is None else self.similar.num_pairs
        if self.unused:
            self.info["note"] = f"attributes not used: {self.unused}; trained on structure alone"
        elif self.similar is None:
            self.info["note"] = "no two entities have attributes alike enough; trained on structure alone"

    def run_epoch(self, epoch: int) -> float:
        """One pass over all triples and one step by attributes; the loss per triple."""
        positives, cuts = shuffled(self.triples, self.settings.batch_size, seed=self.seed, epoch=epoch)
        negatives, corrupt_tail = self.sampler.draw(
            positives, self.settings.num_negatives, None, seed=self.seed, epoch=epoch
        )
        rows = np.append(self.row_of, np.int32(-1))  # the last for negatives that were not found: -1 stays -1
        positives[:, 0], positives[:, 2] = rows[positives[:, 0]], rows[positives[:, 2]]
        loss: float = self.trainer.train_triples(self.triples.as_rows(positives), rows[negatives], corrupt_tail, cuts)
        if self.similar is not None:
            loss += self.trainer.follow_similarity()
        return loss / len(self.triples)

    def joint_vectors(self) -> Floats:
        return super().joint_vectors()[self.row_of]


def train_jape(pair: GraphPair, settings: JAPESettings | None = None, **options: Unpack[Options]) -> Embeddings:
    """Unit vectors of all entities of a pair, compared by cosine; `rlea.models.training.train` says the rest.

    Learns from the triples, the attributes, `pair.train` and (for stopping) `pair.valid`. `info["attributes"]` says
    whether attributes took part, and `info["similar_pairs"]` how many pairs of entities they drew together. On the CPU
    the same seed gives the same bytes for any number of threads.
    """
    return train(JAPE, pair, settings or JAPESettings(), **options)


def find_similar(pair: GraphPair, settings: JAPESettings, seed: int, row_of: Ids) -> Similar | None:
    """Which entities should have like vectors, by their attributes; None where there are none."""
    of_entities = collect_occurrences(pair, settings.attribute_share)
    vectors = learn_vectors(merge_rows(of_entities, row_of), settings, seed)
    units = entity_vectors(of_entities, vectors)
    similar = similar_entities(units, pair.source.num_entities, row_of, settings, seed)
    return similar if len(similar.rows) > 0 else None


def shared_rows(seeds: Ids, num_entities: int) -> Ids:
    """The row of every entity: its own number, or for seeds (n, 2) the lowest number of the group.

    Seeds that are not one to one make groups of more than two, and all of a group share a row.
    """
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    ones = np.ones(len(seeds), dtype=np.int8)
    edges = coo_matrix((ones, (seeds[:, 0], seeds[:, 1])), shape=(num_entities, num_entities))
    _, groups = connected_components(edges, directed=False)
    _, lowest = np.unique(groups, return_index=True)
    return lowest[groups].astype(np.int32)


def residual_matrices(similar: Similar, num_rows: int) -> tuple[Any, Any]:
    """A with a sparse row for every entity i that has similar ones, 1 at i and -S(i, j) at entities j; and A'.

    With U the table of unit vectors O_S is |A U|^2, and its gradient 2 A' A U.
    """
    from scipy.sparse import csr_matrix

    number, width = similar.matches.shape
    numbers = np.arange(number)
    real = similar.weights.ravel() > 0
    lines = np.concatenate([numbers, np.repeat(numbers, width)[real]])
    columns = np.concatenate([similar.rows, similar.matches.ravel()[real]])
    values = np.concatenate([np.ones(number, dtype=np.float32), -similar.weights.ravel()[real]])
    matrix = csr_matrix((values, (lines, columns)), shape=(number, num_rows), dtype=np.float32)
    matrix.sort_indices()
    transposed = matrix.T.tocsr()
    transposed.sort_indices()
    return matrix, transposed


def similarity_gradient(table: Table, matrix: Any, transposed: Any, weight: float) -> tuple[float, Gradient]:
    """weight * O_S, and its gradient; see `residual_matrices`."""
    vectors = np.empty((matrix.shape[0], table.raw.shape[1]), dtype=np.float32)
    losses: NDArray[np.float32] = np.empty(len(vectors), dtype=np.float32)
    _residuals(table, matrix.indptr, matrix.indices, matrix.data, vectors, losses)
    begins, factors = transposed.indptr.astype(np.int64), np.float32(2 * weight) * transposed.data
    gradient = Gradient(begins, transposed.indices.astype(np.int32), factors, vectors)
    return weight * float(losses.sum(dtype=np.float64)), gradient


@numba.njit(parallel=True, cache=True)
def _residuals(table: Any, begins: Any, columns: Any, values: Any, residuals: Any, losses: Any) -> None:
    for i in numba.prange(len(residuals)):
        total = residuals[i]
        total[:] = np.float32(0.0)
        for p in range(begins[i], begins[i + 1]):
            add_scaled(total, values[p] * table.scales[columns[p]], table.raw[columns[p]])
        losses[i] = dot(total, total)
