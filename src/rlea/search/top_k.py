"""The k best partners of every entity, kept in heaps while blocks of scores go by."""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from rlea.graph import Ids
from rlea.search.ties import hash_pair

LANES = 16  # scores compared at once

Floats = NDArray[np.float32]


class BestLists:
    """For each of `count` entities the k best partners so far: positions (-1 for none) and scores.

    While blocks are added every list is a heap with its worst score first; `sort` ends that.
    """

    def __init__(self, count: int, k: int, lowest: float = -np.inf) -> None:
        """Only scores above `lowest` are kept."""
        self.ids: Ids = np.full((count, k), -1, dtype=np.int32)
        self.scores: Floats = np.full((count, k), lowest, dtype=np.float32)

    def renumber(self, own: Ids, partners: Ids) -> None:
        """List i becomes that of entity own[i], and partner j becomes partners[j]."""
        ids, scores = np.empty_like(self.ids), np.empty_like(self.scores)
        ids[own] = np.where(self.ids < 0, -1, partners[self.ids])
        scores[own] = self.scores
        self.ids, self.scores = ids, scores

    def sort(self) -> None:
        """Best first, equal scores by the tie key of the pair; unused places come last and score -inf."""
        _sort_lists(self.ids, self.scores)
        self.scores[self.ids < 0] = -np.inf


def add_block(
    block: Floats, row_ids: Ids, column_ids: Ids, of_rows: BestLists, of_columns: BestLists, may_repeat: bool = False
) -> None:
    """Offer a block of scores to the lists of its rows and of its columns.

    `row_ids` and `column_ids` are the positions of both in the lists. `may_repeat`: some pairs were offered before, and
    must not be kept twice.
    """
    keep_best_of_rows(block, row_ids, column_ids, of_rows.ids, of_rows.scores, may_repeat)
    _keep_best_of_columns(block, row_ids, column_ids, of_columns.ids, of_columns.scores, may_repeat)


# ---- compiled --------------------------------------------------------------------------------------------------------


@numba.njit(cache=True)
def replace_worst(ids, scores, new_id, new_score):  # type: ignore[no-untyped-def]
    """Put a partner in place of the worst one and restore the heap."""
    size = len(ids)
    place = 0
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        if child + 1 < size and scores[child + 1] < scores[child]:
            child += 1
        if scores[child] >= new_score:
            break
        ids[place] = ids[child]
        scores[place] = scores[child]
        place = child
    ids[place] = new_id
    scores[place] = new_score


@numba.njit(cache=True)
def _keep(ids, scores, new_id, new_score, may_repeat):  # type: ignore[no-untyped-def]
    """Keep a partner unless it is known; returns the worst score kept from now on."""
    if may_repeat:
        for known in ids:
            if known == new_id:
                return scores[0]
    replace_worst(ids, scores, new_id, new_score)
    return scores[0]


@numba.njit(cache=True, parallel=True)
def keep_best_of_rows(block, row_ids, column_ids, ids, scores, may_repeat):  # type: ignore[no-untyped-def]
    """Offer every score of a block to the list of its row."""
    height, width = block.shape
    whole = width // LANES * LANES
    for i in numba.prange(height):
        row = block[i]
        own_ids, own_scores = ids[row_ids[i]], scores[row_ids[i]]
        worst = own_scores[0]
        for start in range(0, whole, LANES):
            # Most stretches hold nothing good enough. This loop of fixed length without branches finds out in vector
            # registers.
            num_better = 0
            for lane in range(LANES):
                num_better += row[start + lane] > worst
            if num_better:
                for j in range(start, start + LANES):
                    if row[j] > worst:
                        worst = _keep(own_ids, own_scores, column_ids[j], row[j], may_repeat)
        for j in range(whole, width):
            if row[j] > worst:
                worst = _keep(own_ids, own_scores, column_ids[j], row[j], may_repeat)


@numba.njit(cache=True, parallel=True)
def _keep_best_of_columns(block, row_ids, column_ids, ids, scores, may_repeat):  # type: ignore[no-untyped-def]
    height, width = block.shape
    strip = 256 if width > 1024 else 64  # columns per task: narrow blocks are shared among threads too
    for part in numba.prange((width + strip - 1) // strip):
        low, high = part * strip, min((part + 1) * strip, width)
        whole = low + (high - low) // LANES * LANES
        worst = np.empty(strip, dtype=np.float32)
        for j in range(low, high):
            worst[j - low] = scores[column_ids[j], 0]
        for i in range(height):
            row = block[i]
            for start in range(low, whole, LANES):
                num_better = 0
                for lane in range(LANES):
                    num_better += row[start + lane] > worst[start - low + lane]
                if num_better:
                    for j in range(start, start + LANES):
                        if row[j] > worst[j - low]:
                            own = column_ids[j]
                            worst[j - low] = _keep(ids[own], scores[own], row_ids[i], row[j], may_repeat)
            for j in range(whole, high):
                if row[j] > worst[j - low]:
                    own = column_ids[j]
                    worst[j - low] = _keep(ids[own], scores[own], row_ids[i], row[j], may_repeat)


@numba.njit(cache=True, parallel=True)
def _sort_lists(ids, scores):  # type: ignore[no-untyped-def]
    for i in numba.prange(len(ids)):
        sort_descending(ids[i], scores[i], i)


@numba.njit(cache=True)
def sort_descending(ids, scores, own):  # type: ignore[no-untyped-def]
    """Sort one list in place: best score first, equal scores by the tie key with `own`, unused places (-1) last."""
    order = np.argsort(-scores, kind="mergesort")
    ids[:] = ids[order]
    scores[:] = scores[order]
    size = len(ids)
    i = 0
    while i < size:
        j = i + 1
        while j < size and scores[j] == scores[i]:
            j += 1
        for a in range(i + 1, j):
            b = a
            while b > i and _comes_before(ids[b], ids[b - 1], own):
                ids[b], ids[b - 1] = ids[b - 1], ids[b]
                b -= 1
        i = j


@numba.njit(cache=True)
def _comes_before(first, second, own):  # type: ignore[no-untyped-def]
    if first < 0 or second < 0:
        return first >= 0
    return hash_pair(own, first, 0) < hash_pair(own, second, 0)
