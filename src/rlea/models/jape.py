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
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rlea.errors import InputError
from rlea.graph import GraphPair, Ids
from rlea.models.training import Arrays, Device, choose_device, require_data, require_positive, train
from rlea.models.triples import initial_vectors, join_triples, shuffled
from rlea.progress import Progress, silent
from rlea.search.embeddings import Embeddings

if TYPE_CHECKING:
    import torch

    from rlea.models.attributes import Similar

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
        for name in ("negative_weight", "similarity_weight"):
            if getattr(self, name) < 0:
                raise InputError(
                    f"the JAPE setting {name} is {getattr(self, name)}", remedy="it must not be below zero"
                )
        for name in ("attribute_share", "min_similarity"):
            if getattr(self, name) > 1:
                raise InputError(f"the JAPE setting {name} is {getattr(self, name)}", remedy="it must be at most 1")


class Trainer(Protocol):
    """Vectors in training: one row per entity (source first; seeds use the source's), then one per relation."""

    def follow_triples(self, positives: Ids, negatives: Ids, corrupt_tail: NDArray[np.bool_], cuts: list[int]) -> float:
        """A step of Adagrad down O_SE for every batch between two cuts; the loss, a sum. Relations are given by row."""
        ...

    def follow_similarity(self) -> float:
        """A step of Adagrad down similarity_weight * O_S; the loss."""
        ...

    def units(self, num_rows: int) -> NDArray[np.float32]:
        """Unit vectors of the first rows."""
        ...

    def arrays(self) -> dict[str, NDArray[np.float32]]:
        """All that the next step depends on."""
        ...


def train_jape(
    pair: GraphPair,
    settings: JAPESettings | None = None,
    *,
    seed: int = 0,
    device: str = "auto",  # or cpu, or cuda
    progress: Progress = silent,
    checkpoint: Path | None = None,
    epochs: int | None = None,
) -> Embeddings:
    """Unit vectors of all entities of a pair, compared by cosine; those of the epoch with the best validation Hits@1.

    Learns from the triples, the attributes, `pair.train` and (for stopping) `pair.valid`; `pair.test` is not read.
    `info["attributes"]` says whether attributes took part, and `info["similar_pairs"]` how many pairs of entities they
    drew together. On the CPU the same seed gives the same bytes for any number of threads.
    The rest is said at `rlea.models.training.train`.
    """
    from rlea.models.attributes import why_unused

    settings = settings or JAPESettings()
    require_data(pair, "JAPE", seed)
    chosen = choose_device(device)
    reason = why_unused(pair) if settings.similarity_weight > 0 else "their weight is zero"
    num_similar = 0

    def start(epoch: int, saved: Arrays) -> JAPE:
        nonlocal num_similar
        if reason is None and epoch == 0:
            progress("jape", 0, settings.max_epochs, "learning from attributes")
        model = JAPE(pair, settings, seed, chosen, saved, with_attributes=reason is None)
        num_similar = 0 if model.similar is None else model.similar.num_pairs
        return model

    embeddings = train(
        pair,
        settings,
        start,
        model="JAPE",
        version=1,
        measure="cosine",
        seed=seed,
        device=chosen,
        progress=progress,
        checkpoint=checkpoint,
        epochs=epochs,
        more={"attributes": "used" if reason is None else f"not used: {reason}"},
    )
    embeddings.info["similar_pairs"] = num_similar
    notes = [embeddings.info["note"]] if "note" in embeddings.info else []
    if reason is not None:
        notes.append(f"attributes not used: {reason}; trained on structure alone")
    elif num_similar == 0:
        notes.append("no two entities have attributes alike enough; trained on structure alone")
    if notes:
        embeddings.info["note"] = "; ".join(notes)
    return embeddings


class JAPE:
    """JAPE in training: every epoch goes through the triples of both graphs, then takes one step by attributes."""

    def __init__(
        self,
        pair: GraphPair,
        settings: JAPESettings,
        seed: int,
        device: Device,
        saved: Arrays,
        *,
        with_attributes: bool,
    ) -> None:
        from rlea.models.negatives import Sampler

        self.settings, self.seed = settings, seed
        self.triples = join_triples(pair, swap=False)
        self.sampler = Sampler.of(self.triples)
        self.row_of = shared_rows(pair)
        self.similar = _find_similar(pair, settings, seed, self.row_of, saved) if with_attributes else None
        num_rows = self.triples.num_entities + self.triples.num_relations
        if not saved:
            raw = initial_vectors(num_rows, settings.dim, seed=seed)
            saved = {"raw": raw, "squares": np.full_like(raw, settings.initial_squares)}
        self.trainer: Trainer = (
            WrittenOutTrainer(saved, settings, self.similar)
            if device == "cpu"
            else TorchTrainer(saved, settings, self.similar, device)
        )

    def run_epoch(self, epoch: int) -> float:
        """One pass over all triples and one step by attributes; the loss per triple."""
        settings, triples = self.settings, self.triples
        positives, cuts = shuffled(triples, settings.batch_size, seed=self.seed, epoch=epoch)
        negatives, corrupt_tail = self.sampler.draw(
            positives, settings.num_negatives, None, seed=self.seed, epoch=epoch
        )
        rows = np.append(self.row_of, np.int32(-1))  # the last for negatives that were not found: -1 stays -1
        positives[:, 0], positives[:, 2] = rows[positives[:, 0]], rows[positives[:, 2]]
        positives[:, 1] += triples.num_entities  # relations follow the entities in the table
        loss = self.trainer.follow_triples(positives, rows[negatives], corrupt_tail, cuts)
        if self.similar is not None:
            loss += self.trainer.follow_similarity()
        return loss / len(triples)

    def vectors(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        units = self.trainer.units(self.triples.num_entities)[self.row_of]
        return units[: self.triples.num_source_entities], units[self.triples.num_source_entities :]

    def arrays(self, epoch: int) -> Arrays:
        result: Arrays = dict(self.trainer.arrays())
        if self.similar is not None:  # it takes longer to find than to keep
            result |= {"similar.rows": self.similar.rows, "similar.matches": self.similar.matches}
            result["similar.weights"] = self.similar.weights
        return result


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
    import torch

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
    import torch

    units = torch.nn.functional.normalize(raw)
    expected = (weights[:, :, None] * units[matches]).sum(dim=1)  # (number, dim)
    return (units[rows] - expected).square().sum()


class TorchTrainer:
    """The training steps in the words of the paper, with automatic gradients; the reference, and the way to a GPU."""

    def __init__(
        self, arrays: dict[str, NDArray[Any]], settings: JAPESettings, similar: Similar | None, device: str
    ) -> None:
        import torch

        self.settings = settings
        self.raw = torch.tensor(arrays["raw"], device=device, requires_grad=True)
        self.optimiser = torch.optim.Adagrad([self.raw], lr=settings.learning_rate, eps=0.0)
        self.optimiser.state[self.raw]["sum"] = torch.tensor(arrays["squares"], device=device)
        if similar is not None:
            self.rows = torch.tensor(similar.rows, device=device, dtype=torch.long)
            self.matches = torch.tensor(similar.matches, device=device, dtype=torch.long)
            self.weights = torch.tensor(similar.weights, device=device)

    def follow_triples(self, positives: Ids, negatives: Ids, corrupt_tail: NDArray[np.bool_], cuts: list[int]) -> float:
        import torch

        device = self.raw.device
        # A whole epoch goes over at once, and only its sum comes back: waiting at every batch would cost most time.
        true = torch.as_tensor(positives, device=device).long()
        false = torch.as_tensor(negatives, device=device).long()
        is_tail = torch.as_tensor(corrupt_tail, device=device)
        total = torch.zeros((), device=device, dtype=torch.float64)
        for begin, end in pairwise(cuts):
            batch = slice(begin, end)
            total += self._step(
                structure_loss(self.raw, true[batch], false[batch], is_tail[batch], self.settings.negative_weight)
            )
        return float(total)

    def follow_similarity(self) -> float:
        loss = self.settings.similarity_weight * similarity_loss(self.raw, self.rows, self.matches, self.weights)
        return float(self._step(loss))

    def units(self, num_rows: int) -> NDArray[np.float32]:
        import torch

        result: NDArray[np.float32] = torch.nn.functional.normalize(self.raw[:num_rows].detach()).cpu().numpy()
        return result

    def arrays(self) -> dict[str, NDArray[np.float32]]:
        squares = self.optimiser.state[self.raw]["sum"]
        return {"raw": self.raw.detach().cpu().numpy(), "squares": squares.cpu().numpy()}

    def _step(self, loss: torch.Tensor) -> torch.Tensor:
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimiser.step()
        return loss.detach()


class WrittenOutTrainer:
    """The same steps written out for processors, where only rows that a batch touches are read and written."""

    def __init__(self, arrays: dict[str, NDArray[Any]], settings: JAPESettings, similar: Similar | None) -> None:
        from rlea.models.limit_step import Tables
        from rlea.models.similarity_step import residual_rows

        self.settings = settings
        self.tables = Tables.of(arrays["raw"], arrays["squares"], arrays.get("scales"))
        self.residuals = None if similar is None else residual_rows(similar, len(self.tables.raw))

    def follow_triples(self, positives: Ids, negatives: Ids, corrupt_tail: NDArray[np.bool_], cuts: list[int]) -> float:
        from rlea.models.limit_step import limit_step

        # AlignE's loss with limits that every triple is beyond is O_SE but for a constant: max(0, f - 0) = f, and
        # max(0, farthest - f) = farthest - f.
        total = 0.0
        for begin, end in pairwise(cuts):
            total += limit_step(
                self.tables,
                positives[begin:end],
                negatives[begin:end],
                corrupt_tail[begin:end],
                positive_limit=0.0,
                negative_limit=_FARTHEST,
                negative_weight=self.settings.negative_weight,
                learning_rate=self.settings.learning_rate,
            )
        return total - self.settings.negative_weight * _FARTHEST * int((negatives >= 0).sum())

    def follow_similarity(self) -> float:
        from rlea.models.similarity_step import similarity_step

        assert self.residuals is not None
        return similarity_step(
            self.tables,
            *self.residuals,
            weight=self.settings.similarity_weight,
            learning_rate=self.settings.learning_rate,
        )

    def units(self, num_rows: int) -> NDArray[np.float32]:
        return self.tables.units(num_rows)

    def arrays(self) -> dict[str, NDArray[np.float32]]:
        return {"raw": self.tables.raw, "squares": self.tables.squares, "scales": self.tables.scales}


def _find_similar(pair: GraphPair, settings: JAPESettings, seed: int, row_of: Ids, saved: Arrays) -> Similar | None:
    """Which entities should have like vectors, as saved or by their attributes; None where there are none."""
    from rlea.models import attributes

    if saved:
        if "similar.rows" not in saved:
            return None
        return attributes.Similar(saved.pop("similar.rows"), saved.pop("similar.matches"), saved.pop("similar.weights"))
    of_entities = attributes.collect_occurrences(pair, settings.attribute_share)
    vectors = attributes.learn_vectors(
        attributes.merge_rows(of_entities, row_of),
        settings.dim,
        epochs=settings.attribute_epochs,
        max_pairs=settings.max_attribute_pairs,
        num_negatives=settings.attribute_negatives,
        learning_rate=settings.attribute_learning_rate,
        seed=seed,
    )
    similar = attributes.similar_entities(
        attributes.entity_vectors(of_entities, vectors),
        pair.source.num_entities,
        row_of,
        min_similarity=settings.min_similarity,
        max_matches=settings.max_matches,
        seed=seed,
    )
    return similar if len(similar) > 0 else None
