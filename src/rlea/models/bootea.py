"""BootEA (Sun et al., 2018): AlignE that labels the pairs it is sure of, learns from them, and revises them.

Every few epochs of AlignE the entities x and y in no seed are compared by the cosine of their vectors. Labels are the
pairs M that have the largest sum of similarities,

    max sum over (x, y) in M of cos(x, y),   each x and each y in one pair at most, every cos(x, y) > similarity_limit,

taken from the pairs in which one is among the `num_candidates` nearest of the other. They are added to the labels there
are, which are edited: of two labels of one x the more similar stays, then of two labels of one y. For every label the
triples of x are copied with y in place of x, and those of y with x in place of y; one pass over the copies lowers

    -sum over copies (h, r, t) of log sigmoid(-f(h, r, t)),   f = |h + r - t|^2 over unit vectors,

by an Adagrad of its own: its sums grow by one pass in ten epochs only, so its steps stay larger than those of AlignE.

The paper also has a likelihood of the labels over all pairs of entities in no seed. It is left out, as in the program
that the published figures come from: every step of it would need the whole matrix of similarities.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar, Unpack

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import logsigmoid, normalize

from rlea.graph import GraphPair, Ids, Links
from rlea.models.aligne import AlignE, AlignESettings, CompiledTrainer, TorchTrainer
from rlea.models.kernels import one_thread
from rlea.models.torch_optimisers import Adagrad, descend_batches
from rlea.models.training import Arrays, Device, Floats, Options, train
from rlea.models.triples import JointTriples, join_triples, shuffled, swapped_copies
from rlea.search.embeddings import Embeddings


@dataclass(frozen=True)
class BootEASettings(AlignESettings):
    """Settings of AlignE, and those of labelling; the defaults are the published ones unless the comment says so."""

    title: ClassVar[str] = "BootEA"
    label_every: int = 10  # epochs between two rounds of labelling, the first one after so many
    similarity_limit: float = 0.7  # labels are more similar than this
    num_candidates: int = 10  # nearest of either graph that an entity may be labelled with
    # Our own, for pairs without validation links: on D_W_15K_V1 validation Hits@1 still rises by some .004 in ten
    # epochs at epoch 320, and by less and less.
    epochs_without_valid: int = 500

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.similarity_limit >= 1:
            raise self.refused("similarity_limit", "below 1, or nothing could ever be labelled")


class BootEA(AlignE):
    """BootEA in training: AlignE, the labels so far, and the passes over the copies they give."""

    version = 1
    settings: BootEASettings

    def __init__(self, pair: GraphPair, settings: BootEASettings, seed: int, device: Device) -> None:
        super().__init__(pair, settings, seed, device)
        self.info = {"aligne_version": AlignE.version}  # its state is AlignE's, and more
        self.unswapped = join_triples(pair, swap=False)
        self.free_source = np.setdiff1d(np.arange(pair.source.num_entities, dtype=np.int32), pair.train.source_ids)
        self.free_target = np.setdiff1d(np.arange(pair.target.num_entities, dtype=np.int32), pair.train.target_ids)

    def start(self, epoch: int, saved: Arrays) -> None:
        source, target, sums = (saved.pop(f"labels.{name}", None) for name in ("source", "target", "squares"))
        self.labels = Links.empty() if source is None else Links.of(source, target)
        if sums is None:
            sums = np.full((self.num_rows, self.settings.dim), self.settings.initial_squares, dtype=np.float32)
        super().start(epoch, saved)
        in_torch = isinstance(self.trainer, TorchTrainer)
        self.copies = TorchCopies(self.trainer, sums) if in_torch else CompiledCopies(self.trainer, sums)

    def run_epoch(self, epoch: int) -> float:
        """Labels and a pass over their copies where it is time for them, then an epoch of AlignE; the loss of that."""
        settings = self.settings
        if epoch > 1 and (epoch - 1) % settings.label_every == 0:
            source, target = self.vectors()
            proposed = propose_labels(source, target, self.free_source, self.free_target, settings)
            self.labels = edit_labels(self.labels, proposed, source, target)
            if len(self.labels) > 0:
                copies = copies_of_labels(self.unswapped, self.labels)
                triples, cuts = shuffled(copies, settings.batch_size, seed=self.seed, epoch=epoch)
                self.copies.learn(copies.as_rows(triples), cuts)
        return super().run_epoch(epoch)

    def arrays(self, epoch: int) -> Arrays:
        labels = {"labels.source": self.labels.source_ids, "labels.target": self.labels.target_ids}
        return {**super().arrays(epoch), **labels, "labels.squares": self.copies.squares()}


def propose_labels(
    source: Floats,  # (num_source_entities, dim) unit vectors
    target: Floats,  # (num_target_entities, dim) likewise
    source_ids: Ids,
    target_ids: Ids,
    settings: BootEASettings,
) -> Links:
    """The one-to-one pairs of the given entities with the largest sum of similarities, all above the limit.

    Only pairs in which one is among the `num_candidates` most similar to the other are looked at.
    """
    from rlea.search.candidates import find_candidates

    with one_thread():
        vectors = Embeddings(source, target, measure="inner")
        pairs = find_candidates(vectors, source_ids, target_ids, settings.num_candidates).pairs
    likely = np.flatnonzero(pairs.scores > settings.similarity_limit)
    rows, columns = pairs.rows[likely], pairs.columns[likely]
    chosen = heaviest_matching(rows, columns, pairs.scores[likely])
    return Links.of(source_ids[rows[chosen]], target_ids[columns[chosen]])


def heaviest_matching(rows: Ids, columns: Ids, weights: Floats) -> NDArray[np.intp]:
    """Which of the pairs (rows[i], columns[i]) form a one-to-one matching of the largest sum of weights, in order.

    Weights are above 0 and at most 1 (with room for rounding); a pair stands in the list once.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    if len(rows) == 0:
        return np.zeros(0, dtype=np.intp)
    row_ids, row_places = np.unique(rows, return_inverse=True)
    column_ids, column_places = np.unique(columns, return_inverse=True)
    num_rows, num_columns = len(row_ids), len(column_ids)
    # The solver wants every row matched at the lowest cost above zero. So every row gets a column of its own for
    # "unmatched", dearer than a pair by the pair's weight: the lowest cost then has the largest sum of weights.
    own = np.arange(num_rows)
    costs = np.append(2.0 - weights.astype(np.float64), np.full(num_rows, 2.0))
    places = (np.append(row_places, own), np.append(column_places, num_columns + own))
    graph = csr_array((costs, places), shape=(num_rows, num_columns + num_rows))
    _, partner = min_weight_full_bipartite_matching(graph)  # rows come in order, since all are matched
    return np.flatnonzero(partner[row_places] == column_places)


def edit_labels(old: Links, new: Links, source: Floats, target: Floats) -> Links:
    """Both sets of labels, one-to-one: of the labels of one source the most similar, then of one target likewise.

    `source` and `target` are unit vectors of all entities. Of labels that are equally similar the new one stays.
    """
    every = Links.union([new, old])
    similarities = np.einsum("ld,ld->l", source[every.source_ids], target[every.target_ids])
    kept = _most_similar(every.source_ids, similarities)
    kept = kept[_most_similar(every.target_ids[kept], similarities[kept])]
    kept = kept[np.argsort(every.source_ids[kept])]
    return Links.of(every.source_ids[kept], every.target_ids[kept])


def _most_similar(ids: Ids, similarities: Floats) -> NDArray[np.intp]:
    """The place of the highest similarity of each id, the first of several; places in order."""
    order = np.lexsort((-similarities, ids))  # stable, so among equals the first comes first
    is_first = np.diff(ids[order], prepend=-1) > 0
    return np.sort(order[is_first])


def copies_of_labels(triples: JointTriples, labels: Links) -> JointTriples:
    """The copies of the triples of both graphs in which a labelled entity is swapped for its partner, each once."""
    partners = labels.target_ids + np.int32(triples.num_source_entities)
    source = np.unique(swapped_copies(triples.source, labels.source_ids, partners), axis=0)
    target = np.unique(swapped_copies(triples.target, partners, labels.source_ids), axis=0)
    return replace(triples, source=source, target=target)


class TorchCopies:
    """Learning from copies in the words of the paper, with automatic gradients; the reference, and the way to a GPU.

    It changes the vectors of AlignE, with Adagrad's sums of its own (num_rows, dim).
    """

    def __init__(self, trainer: TorchTrainer, sums: Floats) -> None:
        self.raw = trainer.raw
        self.optimiser = Adagrad({self.raw: sums}, trainer.settings.learning_rate)

    def learn(self, triples: Ids, cuts: list[int]) -> float:
        """Steps over the batches `triples[cuts[i] : cuts[i + 1]]` (rows of the table); the sum of their losses."""
        return descend_batches(self.optimiser, self.loss, cuts, triples, precision=torch.float64)

    def loss(self, triples: torch.Tensor) -> torch.Tensor:
        """-log sigmoid(-f), summed over triples (batch, 3) of rows of the table."""
        head, relation, tail = normalize(self.raw)[triples].unbind(1)  # (batch, dim) each
        return -logsigmoid(-(head + relation - tail).square().sum(dim=1)).sum()

    def squares(self) -> Floats:
        return self.optimiser.sums(self.raw)


class CompiledCopies:
    """The same pass for processors: gradients of the rows that a batch touches and of no others."""

    def __init__(self, trainer: CompiledTrainer, sums: Floats) -> None:
        self.table, self.sums, self.learning_rate = trainer.table, sums.copy(), trainer.settings.learning_rate

    def learn(self, triples: Ids, cuts: list[int]) -> float:
        return sum(self.step(triples[a:b]) for a, b in pairwise(cuts))

    def step(self, triples: Ids) -> float:
        """The loss of a batch before the step; raw vectors and Adagrad's sums are moved down its gradient."""
        from scipy.sparse import csr_array

        (raw, scales), sums = self.table, self.sums
        rows, places = np.unique(triples, return_inverse=True)
        places = places.reshape(-1, 3)
        units = self.table.units(rows)
        head, relation, tail = places.T
        difference = units[head] + units[relation] - units[tail]  # (batch, dim)
        scores = np.einsum("bd,bd->b", difference, difference)
        # The gradient of -log sigmoid(-f) is 2 sigmoid(f) (h + r - t) for h and r, and minus that for t.
        slopes = 2 / (1 + np.exp(-scores))
        factors = np.concatenate([slopes, slopes, -slopes])
        numbers = np.tile(np.arange(len(triples)), 3)
        gradient = csr_array((factors, (places.T.ravel(), numbers)), shape=(len(rows), len(triples))) @ difference
        along = np.einsum("rd,rd->r", gradient, units)
        gradient = (gradient - along[:, None] * units) * scales[rows, None]  # through x / |x|
        squares = sums[rows] + gradient * gradient
        moved = raw[rows] - np.float32(self.learning_rate) * gradient / np.sqrt(squares)
        sums[rows], raw[rows] = squares, moved
        scales[rows] = 1 / np.sqrt(np.maximum(np.einsum("rd,rd->r", moved, moved), np.float32(1e-12)))
        return float(np.logaddexp(0, scores).sum(dtype=np.float64))

    def squares(self) -> Floats:
        return self.sums


def train_bootea(pair: GraphPair, settings: BootEASettings | None = None, **options: Unpack[Options]) -> Embeddings:
    """Unit vectors of all entities of a pair, compared by cosine; `rlea.models.training.train` says the rest.

    Learns from the triples, `pair.train` and (for stopping) `pair.valid`; labels are sought among all entities in no
    seed. On the CPU the same seed gives the same bytes for any number of threads.
    """
    return train(BootEA, pair, settings or BootEASettings(), **options)
