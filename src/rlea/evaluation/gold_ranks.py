"""Where gold links rank among the candidates, and which type of error, if any, each one suffered.

For looking at errors after a run, never for deciding: like `metrics`, this reads test links.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rlea.errors import InputError
from rlea.evaluation.metrics import pair_keys
from rlea.graph import Ids, Links
from rlea.io.array_files import load_arrays, put_arrays
from rlea.search.candidates import positions_in

if TYPE_CHECKING:
    from rlea.matching import Matching
    from rlea.search.candidates import CandidateLists

GOLD_RANKS = "gold_ranks.safetensors"  # the file in the folder of a run
FORMAT = "rlea gold ranks 1"
BLOCK = 1 << 16  # gold links looked up together: 13 MB at 50 candidates

CORRECT, WRONG_LINK, NO_LINK, NOT_A_CANDIDATE = range(4)  # error types of a gold link


@dataclass(frozen=True, eq=False)
class GoldRanks:
    """Each gold link once, sorted by source and target, with its ranks among the candidates; 0 if not a candidate."""

    source_ids: Ids  # (num_gold,)
    target_ids: Ids  # (num_gold,)
    source_ranks: Ids  # (num_gold,) of the correct target among the candidates of the source, from 1
    target_ranks: Ids  # (num_gold,) of the correct source among the candidates of the target, from 1

    def __len__(self) -> int:
        return len(self.source_ids)

    @staticmethod
    def of(candidates: CandidateLists, gold: Links) -> GoldRanks:
        """Look up every gold link in both directions; entities outside the pools have rank 0."""
        links = distinct(gold)
        rows = positions_in(candidates.source_ids, links.source_ids)
        columns = positions_in(candidates.target_ids, links.target_ids)
        return GoldRanks(
            links.source_ids,
            links.target_ids,
            _ranks(candidates.forward_columns, rows, columns),
            _ranks(candidates.backward_rows, columns, rows),
        )

    @property
    def best_ranks(self) -> Ids:
        """The better of the two ranks, (num_gold,); 0 if neither entity was a candidate of the other."""
        worst = np.iinfo(np.int32).max
        ranks = np.minimum(*(np.where(own > 0, own, worst) for own in (self.source_ranks, self.target_ranks)))
        return np.where(ranks == worst, 0, ranks).astype(np.int32)

    def is_of(self, gold: Links) -> bool:
        """Whether these are the ranks of exactly these gold links."""
        links = distinct(gold)
        return np.array_equal(self.source_ids, links.source_ids) and np.array_equal(self.target_ids, links.target_ids)

    def put(self, path: Path) -> None:
        """Write as safetensors (no pickle); the caller makes the write atomic."""
        put_arrays(path, {name: getattr(self, name) for name in _TYPES}, FORMAT)

    @staticmethod
    def load(path: str | Path) -> GoldRanks:
        """Read what `put` wrote."""
        remedy = "align again, or remove it: the report can be made without it"
        other = "does not hold the ranks of gold links"
        unreadable = "cannot be read as the ranks of gold links"
        arrays, _ = load_arrays(path, _TYPES, FORMAT, unreadable=unreadable, other=other, remedy=remedy)
        if any(array.ndim != 1 for array in arrays.values()):
            raise InputError(other, path=path, remedy=remedy)
        if len({len(array) for array in arrays.values()}) != 1:
            raise InputError("holds arrays of different lengths", path=path, remedy=remedy)
        return GoldRanks(**arrays)


_TYPES: dict[str, Any] = dict.fromkeys(("source_ids", "target_ids", "source_ranks", "target_ranks"), np.int32)


def error_types(
    matching: Matching, gold: Links, ranks: GoldRanks | None = None, also_scored: Links | None = None
) -> NDArray[np.int8]:
    """The error type of every distinct gold link, (num_gold,), in the order of `distinct`.

    CORRECT: it was found. NOT_A_CANDIDATE: neither entity was a candidate of the other. WRONG_LINK: the source or the
    target has another link. NO_LINK: neither has one. Without `ranks` nothing is NOT_A_CANDIDATE. `also_scored` are
    pairs that the matcher is known to have scored besides the candidates.
    """
    links = distinct(gold)
    keys = pair_keys(links)
    result = np.full(len(links), NO_LINK, dtype=np.int8)
    has_link = np.isin(links.source_ids, matching.source_ids) | np.isin(links.target_ids, matching.target_ids)
    result[has_link] = WRONG_LINK
    if ranks is not None:
        was_candidate = ranks.best_ranks > 0
        if also_scored is not None:
            was_candidate |= np.isin(keys, pair_keys(also_scored))
        result[~was_candidate] = NOT_A_CANDIDATE
    result[np.isin(keys, pair_keys(matching))] = CORRECT
    return result


def distinct(links: Links) -> Links:
    """Each link once, sorted by source, then target."""
    keys = np.unique(pair_keys(links))
    return Links.of(keys >> 32, keys & 0xFFFFFFFF)


def _ranks(lists: Ids, rows: Ids, columns: Ids) -> Ids:
    """The rank of each column in the candidate list of its row, from 1; 0 if it is not in the list."""
    result = np.zeros(len(rows), dtype=np.int32)
    known = np.flatnonzero((rows >= 0) & (columns >= 0))
    if not lists.shape[1]:
        return result
    for start in range(0, len(known), BLOCK):
        part = known[start : start + BLOCK]
        same = lists[rows[part]] == columns[part][:, None]  # (part, k)
        result[part] = np.where(same.any(axis=1), same.argmax(axis=1) + 1, 0)
    return result
