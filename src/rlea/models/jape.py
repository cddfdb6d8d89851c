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
from itertools import pairwise
from typing import Any, Unpack

import numpy as np
import torch
from numpy.typing import NDArray

from rlea.graph import GraphPair, Ids
from rlea.models.attributes import (
    Similar,
    collect_occurrences,
    entity_vectors,
    learn_vectors,
    merge_rows,
    similar_entities,
    why_unused,
)
from rlea.models.negatives import Sampler
from rlea.models.similarity_step import Residuals, similarity_gradient
from rlea.models.torch_optimisers import Adagrad, as_array, descend, to_device, unit_rows
from rlea.models.training import (
    Arrays,
    Device,
    Floats,
    Options,
    require_at_most_one,
    require_positive,
    train,
)
from rlea.models.translation_step import adagrad_step, limit_gradient
from rlea.models.triples import initial_vectors, join_triples, shuffled
from rlea.models.unit_rows import Table
from rlea.search.embeddings import Embeddings

_FARTHEST = 10.0  # more than |h + r - t|^2 of unit vectors can be


@dataclass(frozen=True)
class JAPESettings:
    """Settings of JAPE; the defaults are the published ones unless the comment says otherwise."""

    dim: int = 100
    learning_rate: float = 0.01  # Adagrad
    initial_squares: float = 0.1  # Adagrad's sums start here: what the published runs' framework does unasked
    max_epochs: int = 2000
    batch_size: int = 5000
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
    valid_from: int = 100  # first epoch with validation
    valid_every: int = 10  # epochs between validations, and between checkpoints
    # Validations in a row without a new best one; published: two that fall. Of some 1,500 validation links ten epochs
    # add no more than the score wavers, so two would stop by chance. With five, fold 1 of D_Y_15K_V1 stopped at epoch
    # 320, and its folds 2 to 5 had their best validations at epochs 390 to 560: five stop by chance, too.
    patience: int = 10
    # Our own, for pairs without validation links, as for AlignE; after 220 epochs EN_FR_15K_V1 was still rising.
    epochs_without_valid: int = 500

    def __post_init__(self) -> None:
        require_positive("JAPE", self, "negative_weight", "similarity_weight")
        require_at_most_one("JAPE", self, "attribute_share", "min_similarity")


def train_jape(pair: GraphPair, settings: JAPESettings | None = None, **options: Unpack[Options]) -> Embeddings:
    """Unit vectors of all entities of a pair, compared by cosine; `rlea.models.training.train` says the rest.

    Learns from the triples, the attributes, `pair.train` and (for stopping) `pair.valid`. `info["attributes"]` says
    whether attributes took part, and `info["similar_pairs"]` how many pairs of entities they drew together. On the CPU
    the same seed gives the same bytes for any number of threads.
    """
    return train(JAPE, pair, settings or JAPESettings(), **options)


class JAPE:
    """JAPE in training: every epoch goes through the triples of both graphs, then takes one step by attributes."""

    title, version, measure = "JAPE", 1, "cosine"

    def __init__(self, pair: GraphPair, settings: JAPESettings, seed: int, device: Device) -> None:
        self.pair, self.settings, self.seed, self.device = pair, settings, seed, device
        self.unused = why_unused(pair) if settings.similarity_weight > 0 else "their weight is zero"
        self.info: dict[str, Any] = {"attributes": f"not used: {self.unused}" if self.unused else "used"}
        self.triples = join_triples(pair, swap=False)
        self.sampler = Sampler.of(self.triples)
        self.row_of = shared_rows(pair)

    def start(self, epoch: int, saved: Arrays) -> None:
        settings = self.settings
        self.similar = None
        if "similar.rows" in saved:
            self.similar = Similar(*(saved[f"similar.{name}"] for name in ("rows", "matches", "weights")))
        elif not saved and not self.unused:
            self.similar = find_similar(self.pair, settings, self.seed, self.row_of)
        if not saved:
            raw = initial_vectors(self.triples.num_entities + self.triples.num_relations, settings.dim, seed=self.seed)
            saved = {"raw": raw, "squares": np.full_like(raw, settings.initial_squares)}
        trainer = CompiledTrainer if self.device == "cpu" else TorchTrainer
        self.trainer: CompiledTrainer | TorchTrainer = trainer(saved, settings, self.similar, self.device)
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
        loss = self.trainer.follow_triples(self.triples.as_rows(positives), rows[negatives], corrupt_tail, cuts)
        if self.similar is not None:
            loss += self.trainer.follow_similarity()
        return loss / len(self.triples)

    def vectors(self) -> tuple[Floats, Floats]:
        units = self.trainer.units(self.triples.num_entities)[self.row_of]
        return units[: self.triples.num_source_entities], units[self.triples.num_source_entities :]

    def arrays(self, epoch: int) -> Arrays:
        result = self.trainer.arrays()
        if self.similar is not None:  # it takes longer to find than to keep
            result |= {"similar.rows": self.similar.rows, "similar.matches": self.similar.matches}
            result["similar.weights"] = self.similar.weights
        return result


def find_similar(pair: GraphPair, settings: JAPESettings, seed: int, row_of: Ids) -> Similar | None:
    """Which entities should have like vectors, by their attributes; None where there are none."""
    of_entities = collect_occurrences(pair, settings.attribute_share)
    vectors = learn_vectors(
        merge_rows(of_entities, row_of),
        settings.dim,
        epochs=settings.attribute_epochs,
        max_pairs=settings.max_attribute_pairs,
        num_negatives=settings.attribute_negatives,
        learning_rate=settings.attribute_learning_rate,
        seed=seed,
    )
    similar = similar_entities(
        entity_vectors(of_entities, vectors),
        pair.source.num_entities,
        row_of,
        min_similarity=settings.min_similarity,
        max_matches=settings.max_matches,
        seed=seed,
    )
    return similar if len(similar) > 0 else None


def shared_rows(pair: GraphPair) -> Ids:
    """The row of every entity, source entities first: its own number, or for seeds the lowest number of the group.

    Seeds that are not one to one make groups of more than two, and all of a group share a row.
    """
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    number = pair.source.num_entities + pair.target.num_entities
    links = (pair.train.source_ids, pair.train.target_ids + pair.source.num_entities)
    edges = coo_matrix((np.ones(len(pair.train), dtype=np.int8), links), shape=(number, number))
    _, groups = connected_components(edges, directed=False)
    _, lowest = np.unique(groups, return_index=True)
    return lowest[groups].astype(np.int32)


def structure_loss(
    raw: torch.Tensor,  # (num_rows, dim) vectors before normalising
    positives: torch.Tensor,  # (batch, 3) rows of head, relation, tail
    negatives: torch.Tensor,  # (batch, num_negatives) rows of corrupting entities, -1 for none
    corrupt_tail: torch.Tensor,  # (batch,) whether they stand for the tail, else for the head
    negative_weight: float,
) -> torch.Tensor:
    """O_SE of a batch, a sum over its triples."""
    units = torch.nn.functional.normalize(raw)
    head, relation, tail = units[positives].unsqueeze(2).unbind(1)  # (batch, 1, dim) each
    corrupting = units[negatives.clamp(min=0)]  # (batch, num_negatives, dim)
    is_tail = corrupt_tail[:, None, None]
    false_head, false_tail = torch.where(is_tail, head, corrupting), torch.where(is_tail, corrupting, tail)
    true_scores = (head + relation - tail).square().sum(dim=2)  # (batch, 1)
    false_scores = (false_head + relation - false_tail).square().sum(dim=2)  # (batch, num_negatives)
    return true_scores.sum() - negative_weight * (false_scores * (negatives >= 0)).sum()


def similarity_loss(
    raw: torch.Tensor,  # (num_rows, dim) vectors before normalising
    rows: torch.Tensor,  # (number,) entities that have similar ones in the other graph
    matches: torch.Tensor,  # (number, max_matches) rows of these
    weights: torch.Tensor,  # (number, max_matches) of sum 1
) -> torch.Tensor:
    """O_S."""
    units = torch.nn.functional.normalize(raw)
    expected = (weights[:, :, None] * units[matches]).sum(dim=1)  # (number, dim)
    return (units[rows] - expected).square().sum()


class TorchTrainer:
    """Vectors in training (a row per entity, source first; seeds use the source's; then one per relation).

    The steps in the words of the paper, with automatic gradients: the reference, and the way to a GPU.
    """

    def __init__(self, arrays: Arrays, settings: JAPESettings, similar: Similar | None, device: Device) -> None:
        self.settings = settings
        self.raw = torch.tensor(arrays["raw"], device=device, requires_grad=True)
        self.optimiser = Adagrad({self.raw: arrays["squares"]}, settings.learning_rate)
        if similar is not None:
            self.rows, self.matches = to_device(device, similar.rows, similar.matches)
            self.weights = torch.tensor(similar.weights, device=device)

    def follow_triples(self, positives: Ids, negatives: Ids, corrupt_tail: NDArray[np.bool_], cuts: list[int]) -> float:
        """A step of Adagrad down O_SE for every batch between two cuts; the loss, a sum. Relations are given by row."""
        # A whole epoch goes over at once, and only its sum comes back: waiting at every batch would cost most time.
        true, false, is_tail = to_device(self.raw.device, positives, negatives, corrupt_tail)
        total = torch.zeros((), device=self.raw.device, dtype=torch.float64)
        for begin, end in pairwise(cuts):
            batch = true[begin:end], false[begin:end], is_tail[begin:end]
            total += descend(self.optimiser, structure_loss(self.raw, *batch, self.settings.negative_weight))
        return float(total)

    def follow_similarity(self) -> float:
        """A step of Adagrad down similarity_weight * O_S; the loss."""
        loss = self.settings.similarity_weight * similarity_loss(self.raw, self.rows, self.matches, self.weights)
        return float(descend(self.optimiser, loss))

    def units(self, num_rows: int) -> Floats:
        """Unit vectors of the first rows."""
        return unit_rows(self.raw, num_rows)

    def arrays(self) -> Arrays:
        """All that the next step depends on."""
        return {"raw": as_array(self.raw), "squares": self.optimiser.sums(self.raw)}


class CompiledTrainer:
    """The same steps compiled for processors, where only rows that a batch touches are read and written."""

    def __init__(self, arrays: Arrays, settings: JAPESettings, similar: Similar | None, device: Device = "cpu") -> None:
        self.settings = settings
        self.table, self.squares = Table.of(arrays["raw"], arrays.get("scales")), arrays["squares"].copy()
        self.residuals = None if similar is None else Residuals.of(similar, len(self.table.raw))

    def follow_triples(self, positives: Ids, negatives: Ids, corrupt_tail: NDArray[np.bool_], cuts: list[int]) -> float:
        # AlignE's loss with limits that every triple is beyond is O_SE but for a constant: max(0, f - 0) = f, and
        # max(0, farthest - f) = farthest - f.
        weight = self.settings.negative_weight
        total = 0.0
        for begin, end in pairwise(cuts):
            batch = positives[begin:end], negatives[begin:end], corrupt_tail[begin:end]
            loss, gradient = limit_gradient(
                self.table, *batch, positive_limit=0.0, negative_limit=_FARTHEST, negative_weight=weight
            )
            adagrad_step(self.table, self.squares, gradient, self.settings.learning_rate)
            total += loss
        return total - weight * _FARTHEST * int((negatives >= 0).sum())

    def follow_similarity(self) -> float:
        assert self.residuals is not None
        loss, gradient = similarity_gradient(self.table, self.residuals, self.settings.similarity_weight)
        adagrad_step(self.table, self.squares, gradient, self.settings.learning_rate)
        return loss

    def units(self, num_rows: int) -> Floats:
        return self.table.units(slice(num_rows))

    def arrays(self) -> Arrays:
        return {"raw": self.table.raw, "squares": self.squares, "scales": self.table.scales}
