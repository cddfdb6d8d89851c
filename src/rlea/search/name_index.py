"""Candidates by name for very many names: an inverted index over pieces of names, searched from both sides.

Names are compared by the cosine of their pieces (`rlea.search.name_pieces`).

Comparing a name with all that share a piece takes time in proportion to the square of their number, nearly all of it
for pieces that very many names have. So a search starts with the rarest pieces of a name, adds up partial scores of the
names that have them, and stops at a budget of such visits; the best by these sums are then compared in full. What one
side finds is offered to the other. The budget is tuned on a sample of entities whose exact candidates are known, and a
second sample measures the recall, as in `approximate.py`. (Of 30,000 synthetic names with a tenth of the letters
misspelt, a hundredth of all visits finds 98 % of the exact candidates.)

Entities with the same name are searched for once. Here the distinct names of a pool are called "entries".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from rlea.graph import Ids
from rlea.progress import Progress, silent
from rlea.search.candidates import Candidates
from rlea.search.name_pieces import Graphs, Keys, NamePieces, Offsets, embed_name_pieces
from rlea.search.recall import EXACT_SHARE, RECALL, SAMPLE, MeasuredSearch, check_search
from rlea.search.ties import hash_pair
from rlea.search.top_k import Floats, replace_worst

LEAST_BUDGET = 250  # visits per name: the first budget tried ...
BUDGET_STEP = 1.5  # ... and the factor to the next
LEAST_PIECES = 2  # looked up whatever they cost: a name of frequent pieces only would find nothing otherwise
COMPARED_PER_CANDIDATE = 5  # names compared in full per candidate wanted; with 3, twice the visits are needed
LEAST_COMPARED = 30  # for small k
VISITS_PER_COMPARISON = 128  # take about as long as one comparison, so that both take half of the time
SPARE = 5  # names beyond k that are scored exactly: sums of the same score differ by rounding
QUERIES_AT_ONCE = 1 << 14  # names searched for between two reports of progress
WITHOUT_LIMIT = 1 << 62


@dataclass(frozen=True, eq=False, kw_only=True)
class NameSearch(MeasuredSearch):
    """Candidates by name. Where the search was exact, `budgets` is None.

    `share` is that of the visits of an exact search that were made.
    """

    budgets: tuple[int, int] | None  # visits (of a name for one piece) allowed to a source's name and to a target's
    num_names: tuple[int, int]  # distinct names of the pools, source and target
    num_nameless: tuple[int, int]  # entities of the pools without a name, source and target

    @property
    def is_exact(self) -> bool:
        return self.budgets is None

    def as_dict(self) -> dict[str, Any]:
        """What the record of a run says."""
        return {
            "kind": "names",
            "exact_instead": self.is_exact,
            **self.recalls(),
            "budgets": None if self.budgets is None else list(self.budgets),
            "share_of_visits": round(self.share, 5),
            "distinct_names": list(self.num_names),
            "nameless": list(self.num_nameless),
        }


def search_names(
    graphs: Graphs | NamePieces,
    source_ids: NDArray[np.integer],
    target_ids: NDArray[np.integer],
    k: int = 10,
    *,
    recall: float = RECALL,
    budget: int | None = None,
    most_visits: int | None = None,
    seed: int = 0,
    progress: Progress = silent,
) -> NameSearch:
    """Nearly the k targets of every source, and the k sources of every target, whose names are most alike.

    `source_ids` (num_rows,) and `target_ids` (num_columns,) are entity ids of the two graphs. The result follows the
    conventions of `find_candidates`: scores are cosines (0 to 1), and places are empty (-1) where fewer than k names
    have a piece in common, or the entity has no name. `recall` (0 to 1) is wanted in both directions and decides the
    budgets of visits per name; 1 means the exact search, and `budget` sets the number for both sides instead.
    `most_visits` bounds the budgets, whatever the recall is then. Rarity is counted over all entities of both graphs,
    whatever the pools. Vectors from `embed_name_pieces` can be given in place of the graphs.

    `seed` draws the samples and decides which of several equal names are kept. The same seed gives the same candidates,
    whatever the order of the pools and the number of threads. Links are not read. Where a graph keeps its names in some
    other attribute, `rlea.models.name_vectors.readable_names` finds them; give graphs with these names.
    """
    check_search(recall, k=k, budget=budget)
    sources: Ids = np.asarray(source_ids, dtype=np.int32)
    targets: Ids = np.asarray(target_ids, dtype=np.int32)
    vectors = graphs if isinstance(graphs, NamePieces) else embed_name_pieces(graphs, progress)
    source = _Side.of(vectors.source, vectors.source_keys, vectors.source_starts, sources, seed)
    target = _Side.of(vectors.target, vectors.target_keys, vectors.target_starts, targets, seed)
    finder = _Finder(source, target, k, seed, progress)
    if budget is not None:
        budgets: tuple[int, int] | None = (budget, budget)
    else:
        budgets = None if recall == 1 else finder.choose_budgets(recall, most_visits or WITHOUT_LIMIT)
    found = finder.search(budgets or (WITHOUT_LIMIT, WITHOUT_LIMIT))
    forward, backward = finder.spread(source, target, found[0]), finder.spread(target, source, found[1])
    recalls, sampled = [1.0, 1.0], [0, 0]
    if budgets is not None:
        for side, (own, other, scores) in enumerate(((source, target, forward[1]), (target, source, backward[1]))):
            part = own.sample(0, seed)
            shares = _shares_found(scores[part], finder.find_exactly(own, other, part))
            recalls[side], sampled[side] = float(shares.mean()) if len(shares) else 1.0, len(part)
    return NameSearch(
        candidates=Candidates(sources, targets, *forward, *backward, vectors),
        forward_recall=recalls[0],
        backward_recall=recalls[1],
        budgets=budgets,
        share=finder.share_of_visits(found[0].visits + found[1].visits),
        sampled=min(sampled),
        num_names=(len(source.rows), len(target.rows)),
        num_nameless=(int((source.entries < 0).sum()), int((target.entries < 0).sum())),
    )


# ---- the search -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Side:
    """One pool: its distinct names (entries) in an order that depends on the names only, and the entities of each."""

    ids: Ids  # (num_entities,) entity ids, in the order of the pool
    entries: Ids  # (num_entities,) the entry of every entity, -1 where it has no name
    members: Ids  # positions in the pool, entry after entry, those of one in a random order
    member_starts: Offsets  # (num_entries + 1,)
    rows: Ids  # (num_entries,) the row of the vectors
    keys: Keys  # (num_entries,)
    vectors: Any  # csr_matrix of all entities of the graph

    @classmethod
    def of(cls, vectors: Any, keys: Keys, starts: Keys, ids: Ids, seed: int) -> _Side:
        own = keys[ids]
        named = np.flatnonzero(own)
        distinct, first, entries = np.unique(own[named], return_index=True, return_inverse=True)
        letters = np.full(len(distinct), np.iinfo(np.uint64).max, dtype=np.uint64)
        np.minimum.at(letters, entries, starts[ids[named]])  # names of the same words in another order are equal
        # Names that begin alike, and their sums, lie together in memory.
        order = np.lexsort((distinct, letters))
        places = np.empty(len(order), dtype=np.int32)
        places[order] = np.arange(len(order), dtype=np.int32)
        all_entries = np.full(len(ids), -1, dtype=np.int32)
        all_entries[named] = places[entries]
        chance = _mix_ids(ids[named], np.uint64(seed))
        members = named[np.lexsort((chance, all_entries[named]))].astype(np.int32)
        member_starts = np.searchsorted(all_entries[members], np.arange(len(order) + 1)).astype(np.int64)
        return cls(ids, all_entries, members, member_starts, ids[named[first[order]]], distinct[order], vectors)

    def sample(self, number: int, seed: int) -> NDArray[np.intp]:
        """Positions of some entities with a name; samples 0 and 1 do not overlap unless the pool is small."""
        named = np.flatnonzero(self.entries >= 0)
        order = named[np.argsort(_mix_ids(self.ids[named], np.uint64(seed + 1)), kind="stable")]
        return order if len(order) < 2 * SAMPLE else order[number * SAMPLE : (number + 1) * SAMPLE]

    def postings(self) -> Any:
        """For every piece (column) the entries that have it, with its weight in each; csc_matrix."""
        return self.vectors[self.rows].tocsc()


@dataclass(frozen=True, eq=False)
class _Found:
    """The best entries of the other side, best first, for some entries of one."""

    entries: Ids  # (num_queries, k), -1 where there is none
    scores: Floats  # (num_queries, k), -inf where there is none
    visits: int


@dataclass(frozen=True, eq=False)
class _Finder:
    """The stages of one search."""

    source: _Side
    target: _Side
    k: int
    seed: int
    progress: Progress

    def search(self, budgets: tuple[int, int]) -> tuple[_Found, _Found]:
        """The best entries of every entry, forward and backward."""
        found = []
        for number, (own, other) in enumerate(((self.source, self.target), (self.target, self.source))):
            queries = np.arange(len(own.rows), dtype=np.int32)
            found.append(self.find(own, other, other.postings(), queries, budgets[number], number))
        forward, backward = found
        keys, other_keys = self.source.keys, self.target.keys
        _exchange(forward.entries, forward.scores, backward.entries, backward.scores, keys, other_keys)
        _exchange(backward.entries, backward.scores, forward.entries, forward.scores, other_keys, keys)
        return forward, backward

    def find(
        self,
        own: _Side,
        other: _Side,
        postings: Any,
        queries: Ids,
        budget: int,
        half: int | None = None,
    ) -> _Found:
        """The best entries of the other side for some of this one, within a budget of visits each.

        Progress is reported for the first or second `half` of the search itself, not for samples.
        """
        k = min(self.k, len(other.rows))
        best = np.full((len(queries), k), -1, dtype=np.int32)
        scores = np.full((len(queries), k), -np.inf, dtype=np.float32)
        visits = np.zeros(len(queries), dtype=np.int64)
        compared = k + LEAST_COMPARED  # without a limit the sums are the scores
        if budget < WITHOUT_LIMIT:
            compared = max(COMPARED_PER_CANDIDATE * k, LEAST_COMPARED, budget // VISITS_PER_COMPARISON)
        compared = min(compared, len(other.rows))
        workers, num_pieces = numba.get_num_threads(), own.vectors.shape[1]
        sums = np.zeros((workers, len(other.rows)), dtype=np.float32)
        touched = np.empty((workers, len(other.rows) + 1), dtype=np.int32)
        row = np.zeros((workers, num_pieces), dtype=np.float32)
        for first in range(0, len(queries) if k else 0, QUERIES_AT_ONCE):
            part = slice(first, first + QUERIES_AT_ONCE)
            _look_up(
                queries[part], own.rows, own.keys, own.vectors.indptr, own.vectors.indices, own.vectors.data,
                other.rows, other.keys, other.vectors.indptr, other.vectors.indices, other.vectors.data,
                postings.indptr, postings.indices, postings.data,
                budget, compared, sums, touched, row, best[part], scores[part], visits[part],
            )  # fmt: skip
            if half is not None:
                note = "exact" if budget == WITHOUT_LIMIT else f"{budget:,} visits each"
                self.progress("candidates", half + min(part.stop / len(queries), 1.0), 2, note)
        return _Found(best, scores, int(visits.sum()))

    def choose_budgets(self, recall: float, most: int = WITHOUT_LIMIT) -> tuple[int, int] | None:
        """The smallest budgets that find the wanted share for a sample; None where the exact search is as fast.

        Each side is tuned by itself, so the exchange between them comes on top. One standard error is added to the
        wanted share.
        """
        chosen, visits, exact_visits = [LEAST_BUDGET, LEAST_BUDGET], 0.0, 0.0
        for number, (own, other) in enumerate(((self.source, self.target), (self.target, self.source))):
            part = own.sample(1, self.seed)
            if not len(part) or not len(other.rows):
                continue
            postings = other.postings()
            exact = self.find(own, other, postings, own.entries[part], WITHOUT_LIMIT)
            budget = LEAST_BUDGET
            while True:
                self.progress("recall", number, 2, f"{budget:,} visits")
                found = self.find(own, other, postings, own.entries[part], budget)
                shares = _shares_found(found.scores, exact.scores)
                if not len(shares) or found.visits >= exact.visits:  # no names share a piece, or all were visited
                    break
                if shares.mean() >= min(recall + shares.std() / math.sqrt(len(shares)), 1.0):
                    break
                if budget >= most:
                    break
                budget = min(round(budget * BUDGET_STEP), most)
            chosen[number] = budget
            visits += found.visits / len(part)
            exact_visits += exact.visits / len(part)
        self.progress("recall", 2, 2)
        return None if visits > EXACT_SHARE * exact_visits else (chosen[0], chosen[1])

    def find_exactly(self, own: _Side, other: _Side, part: NDArray[np.intp]) -> Floats:
        """The exact k best scores of the entities at these positions, best first; (num_positions, k)."""
        found = self.find(own, other, other.postings(), own.entries[part], WITHOUT_LIMIT)
        return self.spread(own, other, found, part)[1]

    def spread(
        self, own: _Side, other: _Side, found: _Found, part: NDArray[np.intp] | None = None
    ) -> tuple[Ids, Floats]:
        """From entries to entities: positions of the k best and their scores, (num_entities, k).

        `found` has a row for every entry, or for every position in `part`. If not all of several equal ones fit, a run
        of them is taken that starts at random, so that not everyone gets the same few.
        """
        positions = np.arange(len(own.ids)) if part is None else part
        rows = own.entries if part is None else np.arange(len(part), dtype=np.int32)
        k = min(self.k, len(other.ids))
        best = np.full((len(positions), k), -1, dtype=np.int32)
        scores = np.full((len(positions), k), -np.inf, dtype=np.float32)
        chance = _mix_ids(own.ids[positions], np.uint64(self.seed + 2))
        _spread(rows, chance, found.entries, found.scores, other.members, other.member_starts, best, scores)
        return best, scores

    def share_of_visits(self, visits: int) -> float:
        having = [side.vectors[side.rows].getnnz(axis=0).astype(np.int64) for side in (self.source, self.target)]
        exact = 2.0 * float((having[0] * having[1]).sum())
        return visits / exact if exact else 0.0


def _shares_found(found: Floats, exact: Floats) -> NDArray[np.float64]:
    """The share found for every row that has exact candidates, by score, so that equal ones are interchangeable."""
    counts = np.isfinite(exact).sum(axis=1)
    rows = np.flatnonzero(counts)
    edges = exact[rows, counts[rows] - 1]
    return np.asarray((found[rows] >= edges[:, None] - np.float32(1e-6)).sum(axis=1) / counts[rows])


# ---- compiled -------------------------------------------------------------------------------------------------------


@numba.njit(cache=True)
def _mix_ids(ids, seed):  # type: ignore[no-untyped-def]
    result = np.empty(len(ids), dtype=np.uint64)
    for i in range(len(ids)):
        result[i] = hash_pair(ids[i], 0, seed)
    return result


@numba.njit(cache=True)
def _insert(ids, scores, new_id, new_score, own_key, keys):  # type: ignore[no-untyped-def]
    """Insert an entry among the best: by score, then by a hash of both names; the last one drops out."""
    place = len(ids)
    if scores[place - 1] > new_score:
        return
    chance = hash_pair(own_key, keys[new_id], 0)
    while place > 0:
        other = ids[place - 1]
        if other >= 0:
            if scores[place - 1] > new_score:
                break
            if scores[place - 1] == new_score and hash_pair(own_key, keys[other], 0) <= chance:
                break
        if place < len(ids):
            ids[place], scores[place] = other, scores[place - 1]
        place -= 1
    if place < len(ids):
        ids[place], scores[place] = new_id, new_score


@numba.njit(cache=True, parallel=True)
def _look_up(  # type: ignore[no-untyped-def]
    queries, rows, keys, pointers, pieces, weights,
    other_rows, other_keys, other_pointers, other_pieces, other_weights,
    posting_starts, posting_entries, posting_weights,
    budget, compared, sums, touched, dense, best, scores, visits,
):  # fmt: skip
    """Add up the rarest pieces within the budget, then compare the best by these sums in full."""
    num_workers = len(sums)
    for worker in numba.prange(num_workers):
        own_sums, own_touched, own_row = sums[worker], touched[worker], dense[worker]
        heap, heap_sums = np.empty(compared, dtype=np.int32), np.empty(compared, dtype=np.float32)
        finalists = np.empty(best.shape[1] + SPARE, dtype=np.int32)
        final_sums = np.empty(len(finalists), dtype=np.float32)
        for query in range(worker, len(queries), num_workers):
            row = rows[queries[query]]
            begin, end = pointers[row], pointers[row + 1]
            num_touched, num_used, num_left, spent = 0, 0, 0, 0
            for p in range(end - 1, begin - 1, -1):  # the rarest stand last
                first, last = posting_starts[pieces[p]], posting_starts[pieces[p] + 1]
                if first == last:
                    continue
                if num_used >= LEAST_PIECES and spent + last - first > budget:
                    num_left = p + 1 - begin
                    break
                num_used += 1
                spent += last - first
                weight = weights[p]
                for q in range(first, last):
                    entry = posting_entries[q]
                    old = own_sums[entry]
                    # Always written, and kept if new: a branch that cannot be predicted would be slow.
                    own_touched[num_touched] = entry
                    num_touched += old == 0.0
                    own_sums[entry] = old + weight * posting_weights[q]
            visits[query] = spent
            heap[:] = -1
            heap_sums[:] = 0.0
            for t in range(num_touched):
                entry = own_touched[t]
                if own_sums[entry] > heap_sums[0]:
                    replace_worst(heap, heap_sums, entry, own_sums[entry])
                own_sums[entry] = 0.0
            for p in range(begin, end):
                own_row[pieces[p]] = weights[p]
            # The sums lack the frequent pieces, which come first in every row.
            bound = pieces[begin + num_left - 1] if num_left else -1
            finalists[:] = -1
            final_sums[:] = 0.0
            for place in range(compared):
                entry, total = heap[place], heap_sums[place]
                if entry >= 0:
                    for p in range(other_pointers[other_rows[entry]], other_pointers[other_rows[entry] + 1]):
                        if other_pieces[p] > bound:
                            break
                        total += own_row[other_pieces[p]] * other_weights[p]
                    if total > final_sums[0]:
                        replace_worst(finalists, final_sums, entry, total)
            own_key = keys[queries[query]]
            for entry in finalists:
                if entry >= 0:
                    # In the order of the pieces: a pair has the same score, to the last bit, from both sides.
                    total = np.float32(0.0)
                    for p in range(other_pointers[other_rows[entry]], other_pointers[other_rows[entry] + 1]):
                        total += own_row[other_pieces[p]] * other_weights[p]
                    _insert(best[query], scores[query], entry, total, own_key, other_keys)
            for p in range(begin, end):
                own_row[pieces[p]] = 0.0


@numba.njit(cache=True)
def _exchange(best, scores, other_best, other_scores, keys, other_keys):  # type: ignore[no-untyped-def]
    """Offer what the other side found: if an entry is among the best of another, the reverse may hold too."""
    for other in range(len(other_best)):
        for place in range(other_best.shape[1]):
            own = other_best[other, place]
            if own < 0:
                break
            if other_scores[other, place] >= scores[own, -1]:
                is_known = False
                for entry in best[own]:
                    is_known |= entry == other
                if not is_known:
                    _insert(best[own], scores[own], other, other_scores[other, place], keys[own], other_keys)


@numba.njit(cache=True)
def _spread(rows, chance, entries, entry_scores, members, member_starts, best, scores):  # type: ignore[no-untyped-def]
    for i in range(len(rows)):
        if rows[i] < 0:
            continue
        found, found_scores = entries[rows[i]], entry_scores[rows[i]]
        filled, first = 0, 0
        while first < len(found) and found[first] >= 0 and filled < best.shape[1]:
            stop, total = first, 0
            while stop < len(found) and found[stop] >= 0 and found_scores[stop] == found_scores[first]:
                total += member_starts[found[stop] + 1] - member_starts[found[stop]]
                stop += 1
            offset = np.int64(chance[i] % np.uint64(total))
            for number in range(min(total, best.shape[1] - filled)):
                place, entry = (offset + number) % total, first
                while place >= member_starts[found[entry] + 1] - member_starts[found[entry]]:
                    place -= member_starts[found[entry] + 1] - member_starts[found[entry]]
                    entry += 1
                best[i, filled] = members[member_starts[found[entry]] + place]
                scores[i, filled] = found_scores[first]
                filled += 1
            first = stop
