"""Nearest rows of sparse vectors in large graphs, by the rarest terms that two rows share.

An exact search visits, for every row, all rows that share any of its terms: time that grows with the square of their
number, nearly all of it for terms that very many have. Here a row looks up its terms from the rarest on and stops at a
budget of visits; the best by what was added up are then compared in full. A term that alone is beyond the budget is
never looked up, so a word that everybody shares costs nothing. The recall is measured on a sample of rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from rlea.progress import tick
from rlea.search.candidates import prepare
from rlea.search.embeddings import Embeddings
from rlea.search.pairs import Pairs
from rlea.search.ties import hash_pair

VISITS = 1000  # rows looked at for one row
COMPARED = 24  # rows compared in full
SAMPLE = 200  # rows of either side whose exact nearest are computed, to measure the recall
ROWS_AT_A_TIME = 1 << 16  # between two signs of life


@dataclass(frozen=True, eq=False)
class TermSearch:
    """Nearly the nearest rows, both ways, and which share of the exact ones is among them."""

    pairs: Pairs
    recall: float
    sampled: int


def search_terms(vectors: Embeddings, k: int, *, visits: int = VISITS) -> TermSearch:
    """Nearly the `k` nearest rows of the other side for every row of either, by the inner product of sparse vectors."""
    sides = [prepare(part, vectors) for part in (vectors.source, vectors.target)]
    parts, shares = [Pairs.empty()], []
    for number, (own, other) in enumerate((sides, sides[::-1])):
        postings = other.tocsc()
        found = _find(own, other, postings, np.arange(own.shape[0]), k, visits, COMPARED)
        rows = np.repeat(np.arange(own.shape[0], dtype=np.int32), k)
        columns = found[0].ravel()
        is_found = columns >= 0
        ends = rows[is_found], columns[is_found]
        parts.append(Pairs.of(*(ends if number == 0 else ends[::-1])))
        asked = np.flatnonzero(np.diff(own.indptr))
        asked = np.sort(np.random.default_rng([number, 31]).permutation(asked)[:SAMPLE])
        exact = _find(own, other, postings, asked, k, 1 << 62, k + 8)[1]
        shares.append(_shares(found[1][asked], exact))
    every = np.concatenate(shares)
    return TermSearch(Pairs.union(parts), float(every.mean()) if len(every) else 1.0, len(every))


def _shares(found: NDArray[np.float32], exact: NDArray[np.float32]) -> NDArray[np.float64]:
    """The share found for every row that has exact neighbours, by score: equal ones are interchangeable."""
    counts = (exact > 0).sum(axis=1)
    rows = np.flatnonzero(counts)
    edges = exact[rows, counts[rows] - 1]
    return np.asarray(
        (found[rows] >= edges[:, None] - np.float32(1e-6)).sum(axis=1).clip(0, counts[rows]) / counts[rows]
    )


def _find(
    own: Any, other: Any, postings: Any, asked: NDArray[np.integer], k: int, visits: int, compared: int
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """The best rows of the other side for the rows asked about, (num_asked, k) each: -1 and 0 where there are fewer."""
    best = np.full((len(asked), k), -1, np.int32)
    scores = np.zeros((len(asked), k), np.float32)
    sums = np.zeros((numba.get_num_threads(), other.shape[0]), np.float32)
    touched = np.empty((len(sums), other.shape[0] + 1), np.int32)
    for first in range(0, len(asked), ROWS_AT_A_TIME):
        tick("searching by rare terms")
        part = slice(first, first + ROWS_AT_A_TIME)
        _look_up(
            np.asarray(asked[part], np.int64),
            (own.indptr, own.indices, own.data),
            (other.indptr, other.indices, other.data),
            (postings.indptr, postings.indices, postings.data),
            *(visits, compared, sums, touched, best[part], scores[part]),
        )
    return best, scores


@numba.njit(cache=True)
def _offer(ids, scores, count, new_id, new_score, own):  # type: ignore[no-untyped-def]
    """Insert a row among the best, by score and then by a hash of both; returns how many there are."""
    size = len(ids)
    if count == size:
        last = scores[size - 1]
        if last > new_score or (last == new_score and hash_pair(own, ids[size - 1], 0) <= hash_pair(own, new_id, 0)):
            return count
        place = size - 1
    else:
        place = count
        count += 1
    chance = hash_pair(own, new_id, 0)
    while place > 0 and (
        scores[place - 1] < new_score or (scores[place - 1] == new_score and hash_pair(own, ids[place - 1], 0) > chance)
    ):
        ids[place], scores[place] = ids[place - 1], scores[place - 1]
        place -= 1
    ids[place], scores[place] = new_id, new_score
    return count


@numba.njit(cache=True, parallel=True)
def _look_up(asked, own, other, postings, visits, compared, sums, touched, best, scores):  # type: ignore[no-untyped-def]
    starts, terms, weights = own
    other_starts, other_terms, other_weights = other
    posting_starts, posting_rows, posting_weights = postings
    for worker in numba.prange(len(sums)):
        own_sums, own_touched = sums[worker], touched[worker]
        ids, totals = np.empty(compared, np.int32), np.empty(compared, np.float32)
        for number in range(worker, len(asked), len(sums)):
            row = asked[number]
            begin, end = starts[row], starts[row + 1]
            lengths = np.empty(end - begin, np.int64)
            for p in range(begin, end):
                lengths[p - begin] = posting_starts[terms[p] + 1] - posting_starts[terms[p]]
            num_touched, left = 0, visits
            for place in np.argsort(lengths, kind="mergesort"):
                if lengths[place] > left:
                    break
                left -= lengths[place]
                term, weight = terms[begin + place], weights[begin + place]
                for q in range(posting_starts[term], posting_starts[term + 1]):
                    found = posting_rows[q]
                    if own_sums[found] == 0:
                        own_touched[num_touched] = found
                        num_touched += 1
                    own_sums[found] += weight * posting_weights[q]
            count = 0
            for t in range(num_touched):
                found = own_touched[t]
                count = _offer(ids, totals, count, found, own_sums[found], row)
                own_sums[found] = 0.0
            filled = 0
            for t in range(count):
                found = ids[t]
                total = np.float32(0.0)
                i, j, j_stop = begin, other_starts[found], other_starts[found + 1]
                while i < end and j < j_stop:
                    if terms[i] == other_terms[j]:
                        total += weights[i] * other_weights[j]
                        i += 1
                        j += 1
                    elif terms[i] < other_terms[j]:
                        i += 1
                    else:
                        j += 1
                filled = _offer(best[number], scores[number], filled, found, total, row)
