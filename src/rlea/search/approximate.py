"""Candidate pairs for pools too large for the exact search: only vectors that lie near each other are compared.

k-means on a sample of both sides puts the vectors into cells. Every entity belongs to its nearest cell and probes the
few cells nearest to it. A pair is scored, by the exact measure and for both directions at once, if either of the two
probes the cell of the other. (If only sources probed, the same recall would take more pairs: three times as many for
AlignE's vectors, a third more for RSN's. An entity far from the centre of its cell is hard to find, but it can probe by
itself.) How many cells must be probed depends on the vectors, so it is tuned on a sample of entities whose exact
candidates are known, and a second sample measures the recall that was reached.

"Nearest" depends on the measure. `cosine`: the angle between vector and centre. `manhattan`: the Euclidean distance to
the centre (it bounds the Manhattan distance, and the mean is the centre that fits it). `inner`: entities belong by
Euclidean distance, so that a cell holds vectors alike in direction and length, and probe by the inner product with
the centre, which is their mean score in the cell. Whatever this misses shows in the measured recall.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
from numpy.typing import NDArray

from rlea.errors import InputError
from rlea.graph import Ids
from rlea.progress import Progress, silent
from rlea.search.candidates import BLOCK_COLUMNS, BLOCK_ROWS, Candidates, find_candidates, manhattan_block, scales_of
from rlea.search.recall import EXACT_SHARE, RECALL, SAMPLE, MeasuredSearch, check_search
from rlea.search.rows import FINE, BlockProduct, Scale, coarse_reach, from_whole, scale_rows, square_length, whole_of
from rlea.search.ties import mix
from rlea.search.top_k import BestLists, Floats, add_block, keep_best_of_rows

if TYPE_CHECKING:
    from rlea.search.embeddings import Embeddings

CELLS_PER_ROOT = 6.0  # cells = this times the square root of the larger pool; more cells are slower to find
TRAINING_PER_CELL = 40  # vectors per cell that k-means sees; with 24, a seventh more pairs were scored than with 64
ITERATIONS = 4  # of k-means; between 3 and 12 hardly anything changes
CHUNK = 1 << 13  # rows handled together where no block of scores is made of them
PROBES_AT_ONCE = 1 << 24  # probes kept together (a list of them takes 64 MiB)


@dataclass(frozen=True, eq=False, kw_only=True)
class Search(MeasuredSearch):
    """Candidates by cells of vectors. Where the search was exact, `probes` equals `num_cells`.

    `share` is that of all pairs that were scored; pairs scored from both sides count twice.
    """

    num_cells: int
    probes: int  # cells that an entity looked into

    @property
    def is_exact(self) -> bool:
        return self.probes >= self.num_cells

    def as_dict(self) -> dict[str, Any]:
        """What the record of a run says."""
        return {
            "kind": "approximate",
            "exact_instead": self.is_exact,
            **self.recalls(),
            "cells": self.num_cells,
            "probes": self.probes,
            "share_of_pairs": round(self.share, 5),
        }


def search_approximately(
    embeddings: Embeddings,
    source_ids: NDArray[np.integer],
    target_ids: NDArray[np.integer],
    k: int = 50,
    *,
    recall: float = RECALL,
    num_cells: int | None = None,
    probes: int | None = None,
    seed: int = 0,
    progress: Progress = silent,
) -> Search:
    """Nearly the k best targets of every source and the k best sources of every target, with the measured recall.

    `source_ids` (num_rows,) and `target_ids` (num_columns,) are entity ids, rows of the dense vectors. The result
    follows the conventions of `find_candidates`; an entity that meets fewer than k others in its cells has empty places
    (-1). `recall` (0 to 1) is wanted in both directions and decides how many cells are probed; `probes` sets their
    number instead. Besides vectors and candidates this needs one and a half times the memory of the pools' vectors.
    The same seed gives the same candidates, and the order of the pools decides nothing but ties.
    """
    if embeddings.is_sparse:
        raise InputError("approximate search is for dense vectors, and these are sparse", remedy="use the exact search")
    check_search(recall, k=k, num_cells=num_cells, probes=probes)
    sources: Ids = np.asarray(source_ids, dtype=np.int32)
    targets: Ids = np.asarray(target_ids, dtype=np.int32)
    if len(sources) == 0 or len(targets) == 0:
        nothing = find_candidates(embeddings, sources, targets, k)
        return Search(candidates=nothing, share=0.0, num_cells=0, probes=0)
    scales = _scales_for(embeddings)
    source = _Side.of(embeddings.source, sources, scales[0], seed)
    target = _Side.of(embeddings.target, targets, scales[1], seed)
    forward_k, backward_k = min(k, len(targets)), min(k, len(sources))
    products = None if embeddings.measure == "manhattan" else BlockProduct(BLOCK_ROWS * BLOCK_COLUMNS, coarse=False)
    finder = _Finder(embeddings.measure, source, target, forward_k, backward_k, progress, products)
    size = max(len(sources), len(targets))
    centres = finder.find_centres(min(num_cells or round(CELLS_PER_ROOT * math.sqrt(size)), size))
    source_cells, target_cells = finder.fill_cells(centres, source), finder.fill_cells(centres, target)
    chosen = probes or finder.choose_probes(source_cells, target_cells, recall)
    if chosen is None:
        del finder, source, target
        exact = find_candidates(embeddings, sources, targets, k, progress)
        return Search(candidates=exact, share=1.0, num_cells=len(centres), probes=len(centres))
    forward, backward = BestLists(len(sources), forward_k), BestLists(len(targets), backward_k)
    scored = finder.look_into_cells(source, target, target_cells, chosen, forward, backward, is_second=False)
    if chosen < len(target_cells.centres):
        scored += finder.look_into_cells(target, source, source_cells, chosen, backward, forward, is_second=True)
    forward.sort()
    backward.sort()
    recalls: list[float] = []
    sampled: list[int] = []
    for own, other, best in ((source, target, forward), (target, source, backward)):
        part = own.sample(0)
        _, scores = finder.find_exactly(own.vectors[part], other.vectors, best.ids.shape[1])
        # By score: which of several equal ones was found does not matter.
        recalls.append(float((best.scores[own.positions[part]] >= scores[:, -1:]).mean()))
        sampled.append(part.stop - part.start)
    best_scores = [best.scores for best in (forward, backward)]
    if scales[0].scale is not None and scales[1].scale is not None:
        best_scores = [from_whole(scores, (scales[0].scale, scales[1].scale)) for scores in best_scores]
    return Search(
        candidates=Candidates(sources, targets, forward.ids, best_scores[0], backward.ids, best_scores[1], embeddings),
        forward_recall=recalls[0],
        backward_recall=recalls[1],
        sampled=min(sampled),
        share=scored / (len(sources) * len(targets)),
        num_cells=len(centres),
        probes=min(chosen, len(centres)),
    )


@dataclass(frozen=True, eq=False)
class _Scales:
    """How vectors of one side become whole numbers: for scores, and as points among the cells."""

    scale: Scale | None  # for scores; None for `manhattan`, which uses the vectors as they are
    to_points: float  # factor from these numbers to points; the points of both sides have the same scale
    reach: float  # the greatest length of a point
    dtype: Any  # of points


def _scales_for(embeddings: Embeddings) -> list[_Scales]:
    scales = scales_of(embeddings)
    for side, own in zip(("source", "target"), scales, strict=True):
        if np.isnan(own.factors).any():
            raise InputError(
                f"the {side} vectors hold values that are no finite numbers",
                remedy="train them again or repair the file they came from",
            )
    if embeddings.measure == "cosine":
        # Coarse directions are good enough to find the nearest cells.
        reach = coarse_reach(embeddings.source.shape[1])
        return [_Scales(scale, reach * scale.unit, reach, np.float32) for scale in scales]
    unit = max(scale.unit for scale in scales)  # of the side with the longer vectors
    if embeddings.measure == "manhattan":
        return [_Scales(None, 1.0 / unit, FINE, np.float64)] * 2
    return [_Scales(scale, scale.unit / unit, FINE, np.float64) for scale in scales]


@dataclass(frozen=True, eq=False)
class _Side:
    """One pool in an order that depends on the vectors only, so that neither ids nor positions decide anything."""

    vectors: NDArray[Any]  # (num_entities, dim) for scores: whole numbers; for `manhattan` as they are
    positions: Ids  # (num_entities,) in the pool
    scales: _Scales

    @classmethod
    def of(cls, vectors: Any, ids: Ids, scales: _Scales, seed: int) -> _Side:
        order = _order_by_content(vectors, ids, seed)
        result = np.empty((len(ids), vectors.shape[1]), dtype=np.float32 if scales.scale is None else np.int32)
        for start in range(0, len(ids), CHUNK):  # without a second copy of them all
            part = ids[order[start : start + CHUNK]]
            result[start : start + CHUNK] = vectors[part] if scales.scale is None else scales.scale.whole(vectors, part)
        return cls(result, order.astype(np.int32), scales)

    def points(self, part: Any) -> NDArray[Any]:
        """The points of some entities among the cells, whole numbers; (num_entities, dim)."""
        own = np.ascontiguousarray(self.vectors[part])
        result = np.empty(own.shape, self.scales.dtype)
        scale_rows(own, np.full(len(own), self.scales.to_points), result)
        return result

    def __len__(self) -> int:
        return len(self.positions)

    def sample(self, number: int) -> slice:
        """The last entities (0) or those before them (1); k-means uses the first. Small pools are taken whole."""
        if len(self) < 2 * SAMPLE:
            return slice(0, len(self))
        return slice(len(self) - (number + 1) * SAMPLE, len(self) - number * SAMPLE)


@dataclass(frozen=True, eq=False)
class _Cells:
    """The cells that hold entities of one side."""

    centres: NDArray[Any]  # (num_cells, dim), whole numbers
    offsets: NDArray[Any] | None  # (num_cells,) subtracted from the products with the centres when probing
    cells: Ids  # (num_entities,) the cell of every entity

    def affinities(self, rows: NDArray[Any]) -> NDArray[Any]:
        """How near rows of the other side are to every cell, higher is nearer; (num_rows, num_cells)."""
        return _affinities(rows, self.centres, self.offsets)

    def places(self, side: _Side, rows: NDArray[np.integer], members: NDArray[np.integer]) -> NDArray[np.int64]:
        """How many cells row i of the other side would probe before it meets member i; (num_rows,)."""
        result = np.empty(len(rows), dtype=np.int64)
        for top in range(0, len(rows), BLOCK_ROWS):
            affinities = self.affinities(side.points(rows[top : top + BLOCK_ROWS]))
            own = np.take_along_axis(affinities, self.cells[members[top : top + BLOCK_ROWS], None], axis=1)
            result[top : top + BLOCK_ROWS] = (affinities > own).sum(axis=1)
        return result

    def shares(self, rows: NDArray[Any]) -> NDArray[np.float64]:
        """The mean share of the entities that a row meets with 1, 2, ... probes; (num_cells,)."""
        order = np.argsort(-self.affinities(rows), axis=1, kind="stable")
        sizes = np.bincount(self.cells, minlength=len(self.centres))
        return np.asarray(sizes[order].cumsum(axis=1).mean(axis=0) / len(self.cells))


@dataclass(frozen=True, eq=False)
class _Finder:
    """The stages of one search."""

    measure: str
    source: _Side
    target: _Side
    forward_k: int
    backward_k: int
    progress: Progress
    products: BlockProduct | None  # None for `manhattan`

    def find_centres(self, num_cells: int) -> NDArray[Any]:
        """k-means (Lloyd) on a sample of both sides; (num_cells, dim), without cells that lost all their vectors."""
        share = min(1.0, TRAINING_PER_CELL * num_cells / (len(self.source) + len(self.target)))
        firsts = [int(np.ceil(share * len(side))) for side in (self.source, self.target)]
        # Spread over the sample, whose order is as good as random.
        chosen = np.arange(num_cells) * sum(firsts) // num_cells
        is_source = chosen < firsts[0]
        points = self.source.points(chosen[is_source]), self.target.points(chosen[~is_source] - firsts[0])
        centres = np.concatenate(points)
        for number in range(ITERATIONS):
            self.progress("cells", number, ITERATIONS)
            sums, members = np.zeros(centres.shape), np.zeros(len(centres), dtype=np.int64)
            for side, count in zip((self.source, self.target), firsts, strict=True):
                cells = self.nearest_cells(side, count, centres)
                for start in range(0, count, CHUNK):
                    part = slice(start, min(start + CHUNK, count))
                    _add_to_cells(side.points(part), cells[part], sums, members)
            used = members > 0
            means = sums[used] / members[used, None]
            centres = np.empty(means.shape, centres.dtype)
            _round_centres(means, self.source.scales.reach if self.measure == "cosine" else 0.0, centres)
        self.progress("cells", ITERATIONS, ITERATIONS, f"{len(centres):,} cells")
        return centres

    def belonging(self, centres: NDArray[Any]) -> NDArray[Any] | None:
        """What to subtract from the products with the centres so that the nearest has the highest; (num_cells,)."""
        if self.measure == "cosine":
            return None
        return np.asarray(0.5 * (centres * centres).sum(axis=1))  # of whole numbers: exact in any order

    def nearest_cells(self, side: _Side, count: int, centres: NDArray[Any]) -> Ids:
        """The cell of each of the first `count` entities of a side."""
        cells, offsets = np.empty(count, dtype=np.int32), self.belonging(centres)
        for top in range(0, count, BLOCK_ROWS):
            part = slice(top, min(top + BLOCK_ROWS, count))
            cells[part] = _affinities(side.points(part), centres, offsets).argmax(axis=1)
        return cells

    def fill_cells(self, centres: NDArray[Any], side: _Side) -> _Cells:
        """The cell of every entity of a side; empty cells are left out."""
        cells = self.nearest_cells(side, len(side), centres)
        used, places = np.unique(cells, return_inverse=True)
        centres = np.ascontiguousarray(centres[used])
        offsets = None if self.measure == "inner" else self.belonging(centres)
        return _Cells(centres, offsets, places.astype(np.int32))

    def choose_probes(self, source_cells: _Cells, target_cells: _Cells, recall: float) -> int | None:
        """The fewest probes that find the wanted share of a sample's exact candidates; None where exact is as fast.

        The order in which an entity probes cells says how many probes would find each exact pair. One standard error is
        added to the wanted share.
        """
        rows, columns = self.source.sample(1), self.target.sample(1)
        found, _ = self.find_exactly(self.source.vectors[rows], self.target.vectors, self.forward_k)
        known, _ = self.find_exactly(self.target.vectors[columns], self.source.vectors, self.backward_k)
        needed = 1
        for sources, targets, shape in (
            (np.repeat(np.arange(rows.start, rows.stop), found.shape[1]), found.ravel(), found.shape),
            (known.ravel(), np.repeat(np.arange(columns.start, columns.stop), known.shape[1]), known.shape),
        ):
            by_source = target_cells.places(self.source, sources, targets)
            by_target = source_cells.places(self.target, targets, sources)
            needed = max(needed, _fewest_probes(np.minimum(by_source, by_target).reshape(shape), recall))
        share = 0.0
        for cells, others in ((target_cells, self.source.points(rows)), (source_cells, self.target.points(columns))):
            share += float(cells.shares(others)[min(needed, len(cells.centres)) - 1])
        return None if share > EXACT_SHARE else needed

    def find_exactly(self, queries: NDArray[Any], others: NDArray[Any], k: int) -> tuple[Ids, Floats]:
        """The rows and scores of the exact k best of the others for every query, best first; (num_queries, k)."""
        best, rows = BestLists(len(queries), k), np.arange(len(queries), dtype=np.int32)
        for left in range(0, len(others), BLOCK_COLUMNS):
            right = min(left + BLOCK_COLUMNS, len(others))
            columns = np.arange(left, right, dtype=np.int32)
            keep_best_of_rows(self.score(queries, others[left:right]), rows, columns, best.ids, best.scores, False)
            self.progress("recall", right, len(others))
        best.sort()
        return best.ids, best.scores

    def score(self, rows: NDArray[Any], columns: NDArray[Any]) -> Floats:
        """A block of scores, whole numbers where they are products; valid until the next call."""
        return manhattan_block(rows, columns) if self.products is None else self.products(rows, columns)

    def look_into_cells(
        self,
        probing: _Side,
        held: _Side,
        cells: _Cells,
        probes: int,
        own_best: BestLists,
        held_best: BestLists,
        *,
        is_second: bool,
    ) -> int:
        """Score every entity of one side with those in the cells that it probes; returns the number of pairs scored."""
        num_cells = len(cells.centres)
        probes = min(probes, num_cells)
        by_cell = np.argsort(cells.cells, kind="stable")
        starts = np.searchsorted(cells.cells[by_cell], np.arange(num_cells + 1))
        held_vectors, held_positions = held.vectors[by_cell], held.positions[by_cell]
        scored, slab = 0, max(PROBES_AT_ONCE // probes, 1)
        for top in range(0, len(probing), slab):
            probed = _best_cells(probing, slice(top, top + slab), cells, probes)
            probers, prober_starts = _group(probed, num_cells)
            for cell in range(num_cells):
                for left in range(starts[cell], starts[cell + 1], BLOCK_COLUMNS):
                    right = min(left + BLOCK_COLUMNS, starts[cell + 1])
                    height = BLOCK_ROWS * BLOCK_COLUMNS // (right - left)
                    for first in range(prober_starts[cell], prober_starts[cell + 1], height):
                        own = top + probers[first : min(first + height, prober_starts[cell + 1])]
                        block = self.score(probing.vectors[own], held_vectors[left:right])
                        rows, columns = probing.positions[own], held_positions[left:right]
                        # Pairs that the other side has met before must not be kept twice.
                        add_block(block, rows, columns, own_best, held_best, may_repeat=is_second)
                        scored += block.size
                done = is_second + (top + len(probed) * (cell + 1) / num_cells) / len(probing)
                self.progress("candidates", done, 2, f"{probes:,} of {num_cells:,} cells each")
        return scored


def _order_by_content(vectors: Any, ids: Ids, seed: int) -> NDArray[np.intp]:
    """Positions of a pool in an order that depends on vectors and seed; equal vectors come in random order."""
    keys = np.empty(len(ids), dtype=np.uint64)
    for start in range(0, len(ids), CHUNK):
        part = np.ascontiguousarray(vectors[ids[start : start + CHUNK]], dtype=np.float32)
        _hash_rows(part.view(np.uint32), np.uint64(seed), keys[start : start + CHUNK])
    shuffled = np.random.default_rng(seed).permutation(len(ids))
    return np.asarray(shuffled[np.argsort(keys[shuffled], kind="stable")])


def _affinities(rows: NDArray[Any], centres: NDArray[Any], offsets: NDArray[Any] | None) -> NDArray[Any]:
    result = rows @ centres.T
    if offsets is not None:
        result -= offsets
    return np.asarray(result)


def _best_cells(side: _Side, part: slice, cells: _Cells, count: int) -> Ids:
    """The `count` nearest cells of some entities, in no particular order; (num_entities, count)."""
    rows = range(len(side))[part]
    best = np.full((len(rows), count), -1, dtype=np.int32)
    all_cells = np.arange(len(cells.centres), dtype=np.int32)
    for top in range(0, len(rows), BLOCK_ROWS):
        own, chosen = best[top : top + BLOCK_ROWS], rows[top : top + BLOCK_ROWS]
        affinities = cells.affinities(side.points(slice(chosen.start, chosen.stop)))
        lowest = np.full(own.shape, -np.inf, dtype=affinities.dtype)
        keep_best_of_rows(affinities, np.arange(len(own), dtype=np.int32), all_cells, own, lowest, False)
    return best


def _fewest_probes(places: NDArray[np.int64], recall: float) -> int:
    """The fewest probes that find the wanted share; `places` has a row for every sampled entity."""
    probes = max(int(np.quantile(places, recall, method="lower")), 1)
    while probes <= places.max():
        found = (places < probes).mean(axis=1)
        error = found.std() / math.sqrt(len(found))
        if found.mean() >= min(recall + error, 1.0):
            break
        probes += max(probes // 16, 1)  # in steps of a sixteenth: precise enough, and fast
    return int(min(probes, places.max() + 1))


def _group(probed: Ids, num_cells: int) -> tuple[Ids, NDArray[np.integer]]:
    """The rows that probe each cell, cell after cell, and where each cell's begin; (num_probes,), (num_cells + 1,)."""
    from scipy.sparse import csr_matrix

    count, probes = probed.shape
    starts = np.arange(0, probed.size + 1, probes)
    by_row = csr_matrix((np.ones(probed.size, np.bool_), probed.ravel(), starts), shape=(count, num_cells))
    by_cell = by_row.tocsc()
    return by_cell.indices, by_cell.indptr


# ---- compiled --------------------------------------------------------------------------------------------------------


@numba.njit(cache=True)
def _hash_rows(bits, seed, keys):  # type: ignore[no-untyped-def]
    for i in range(len(bits)):
        key = mix(seed + np.uint64(0x9E3779B97F4A7C15))
        for d in range(bits.shape[1]):
            key = mix(key ^ np.uint64(bits[i, d])) + np.uint64(d)
        keys[i] = key


@numba.njit(cache=True)
def _round_centres(means, reach, result):  # type: ignore[no-untyped-def]
    """Means as whole numbers, first scaled to the length `reach` unless it is 0."""
    for i in range(len(means)):
        factor = 1.0
        if reach > 0.0:
            factor = reach / max(np.sqrt(square_length(means[i])), 1e-12)
        for d in range(means.shape[1]):
            result[i, d] = whole_of(means[i, d] * factor)


@numba.njit(cache=True)
def _add_to_cells(vectors, cells, sums, members):  # type: ignore[no-untyped-def]
    for i in range(len(vectors)):
        cell = cells[i]
        members[cell] += 1
        for d in range(vectors.shape[1]):
            sums[cell, d] += vectors[i, d]
