"""What became of every gold link, and where its ends stood among each other's candidates.

For looking at errors after a run, never for deciding: like `metrics`, it reads test links.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rlea.errors import InputError
from rlea.graph import Ids, Links
from rlea.io.array_files import load_arrays, put_arrays

if TYPE_CHECKING:
    from rlea.matching import Matching
    from rlea.search.candidates import CandidateLists

FORMAT = "rlea standing 1"
AT_ONCE = 1 << 16  # gold links looked up together: 13 MB at 50 candidates

RIGHT, LOST, LEFT_OUT, UNREACHED = range(4)  # the fates of a gold link


@dataclass(frozen=True, eq=False)
class Standing:
    """Every gold link once, by source and target, with its places among the candidates, from 1; 0 for none."""

    source_ids: Ids  # (num_gold,)
    target_ids: Ids  # (num_gold,)
    source_places: Ids  # (num_gold,) of the right target among the candidates of the source
    target_places: Ids  # (num_gold,) of the right source among the candidates of the target

    def __len__(self) -> int:
        return len(self.source_ids)

    @staticmethod
    def of(candidates: CandidateLists, gold: Links) -> Standing:
        """Look every gold link up, both ways; entities outside the pools have no place."""
        links = distinct(gold)
        rows = _positions(candidates.source_ids, links.source_ids)
        columns = _positions(candidates.target_ids, links.target_ids)
        return Standing(
            links.source_ids,
            links.target_ids,
            _places(candidates.forward_columns, rows, columns),
            _places(candidates.backward_rows, columns, rows),
        )

    @property
    def best_places(self) -> Ids:
        """The better of the two places, 0 where there is neither: the pair was no candidate."""
        far = np.iinfo(np.int32).max
        places = np.minimum(*(np.where(own > 0, own, far) for own in (self.source_places, self.target_places)))
        return np.where(places == far, 0, places).astype(np.int32)

    def is_of(self, gold: Links) -> bool:
        """Whether these are the gold links that it speaks of."""
        links = distinct(gold)
        return np.array_equal(self.source_ids, links.source_ids) and np.array_equal(self.target_ids, links.target_ids)

    def put(self, path: Path) -> None:
        """Write it as safetensors (no pickle), for a caller who sees to the whole."""
        put_arrays(path, {name: getattr(self, name) for name in _TYPES}, FORMAT)

    @staticmethod
    def load(path: str | Path) -> Standing:
        """As it was written."""
        remedy = "align again, or remove it: the report can be made without it"
        other = "does not hold the standing of gold links"
        unreadable = "cannot be read as the standing of gold links"
        arrays, _ = load_arrays(path, _TYPES, FORMAT, unreadable=unreadable, other=other, remedy=remedy)
        if any(array.ndim != 1 for array in arrays.values()):
            raise InputError(other, path=path, remedy=remedy)
        if len({len(array) for array in arrays.values()}) != 1:
            raise InputError("holds arrays that do not fit together", path=path, remedy=remedy)
        return Standing(**arrays)


_TYPES: dict[str, Any] = dict.fromkeys(("source_ids", "target_ids", "source_places", "target_places"), np.int32)


def follow_links(
    matching: Matching, gold: Links, standing: Standing | None = None, in_play: Links | None = None
) -> NDArray[np.int8]:
    """The fate of every distinct gold link, in the order of `distinct`, so that the fates add up to the gold links.

    RIGHT: it was found. UNREACHED: its two ends were no candidates of each other. LOST: the source or the target has
    another link. LEFT_OUT: neither has one. Without `standing` nobody is UNREACHED; `in_play` are pairs that a matcher
    is known to have weighed beside the candidates.
    """
    links = distinct(gold)
    fates = np.full(len(links), LEFT_OUT, dtype=np.int8)
    has_link = np.isin(links.source_ids, matching.source_ids) | np.isin(links.target_ids, matching.target_ids)
    fates[has_link] = LOST
    if standing is not None:
        reached = standing.best_places > 0
        if in_play is not None:
            reached |= np.isin(pair_keys(links), pair_keys(in_play))
        fates[~reached] = UNREACHED
    fates[np.isin(pair_keys(links), pair_keys(matching))] = RIGHT
    return fates


def distinct(links: Links) -> Links:
    """Every link once, by source then target."""
    keys = np.unique(pair_keys(links))
    return Links.of(keys >> 32, keys & 0xFFFFFFFF)


def pair_keys(pairs: Links | Matching) -> NDArray[np.int64]:
    """One number per pair."""
    return (pairs.source_ids.astype(np.int64) << 32) | pairs.target_ids.astype(np.int64)


def _positions(pool: Ids, wanted: Ids) -> NDArray[np.int64]:
    """Where entities stand in a pool, -1 where they do not."""
    if not len(pool):
        return np.full(len(wanted), -1, dtype=np.int64)
    order = np.argsort(pool, kind="stable")
    places = order[np.minimum(np.searchsorted(pool, wanted, sorter=order), len(pool) - 1)]
    return np.where(pool[places] == wanted, places, -1)


def _places(lists: Ids, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> Ids:
    """The place of each column in the list of its row, from 1; 0 where it is not in it."""
    result = np.zeros(len(rows), dtype=np.int32)
    known = np.flatnonzero((rows >= 0) & (columns >= 0))
    if not lists.shape[1]:
        return result
    for start in range(0, len(known), AT_ONCE):
        part = known[start : start + AT_ONCE]
        same = lists[rows[part]] == columns[part][:, None]  # (part, k)
        result[part] = np.where(same.any(axis=1), same.argmax(axis=1) + 1, 0)
    return result
