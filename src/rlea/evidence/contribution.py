"""What channels contributed, for people: readable features of single pairs, and counts over all links of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rlea.evidence import STRUCTURE
from rlea.evidence.channel import Channel
from rlea.graph import Ids
from rlea.matching import Matching
from rlea.search.pairs import Floats, Pairs, numbers


def feature_columns(channels: Sequence[Channel]) -> tuple[str, ...]:
    """The names of the columns of `readable_features`."""
    return tuple(column for channel in channels for column in channel.columns)


def readable_features(channels: Sequence[Channel], pairs: Pairs) -> Floats:
    """Features of pairs in units that people know, (num_pairs, num_columns)."""
    parts = [(channel.shown or channel.score)(pairs) for channel in channels]
    return np.concatenate([np.zeros((len(pairs), 0), np.float32), *parts], axis=1).astype(np.float32)


def contributions(
    channels: Sequence[Channel], matching: Matching, wanted: Sequence[str], pool: tuple[Ids, Ids]
) -> list[dict[str, Any]]:
    """One row per wanted channel, in that order, with three counts.

    `proposed`: pairs within the pool (source ids, target ids) that it proposed as candidates. `found`: links whose pair
    is its mutual best. `alone`: those of them that are the mutual best of no other channel. Structure scores nothing
    before matching begins: its links are those that are the mutual best of no channel, all of them found alone.
    """
    links = numbers(Pairs(matching.source_ids, matching.target_ids))
    found: dict[str, np.ndarray] = {}
    proposed: dict[str, list[np.ndarray]] = {}
    for channel in channels:
        pairs = channel.proposals
        inside = np.isin(pairs.source_ids, pool[0]) & np.isin(pairs.target_ids, pool[1])
        best = numbers(pairs)[channel.is_best()]
        found[channel.name] = found.get(channel.name, np.zeros(len(links), np.bool_)) | np.isin(links, best)
        proposed.setdefault(channel.name, []).append(numbers(pairs)[inside])
    count = np.sum(list(found.values()), axis=0) if found else np.zeros(len(links), np.int64)
    rows = []
    for name in wanted:
        own = count == 0 if name == STRUCTURE else found.get(name, np.zeros(len(links), np.bool_))
        alone = own if name == STRUCTURE else own & (count == 1)
        rows.append(
            {
                "channel": name,
                "proposed": len(np.unique(np.concatenate(proposed[name]))) if name in proposed else 0,
                "found": int(np.count_nonzero(own)),
                "alone": int(np.count_nonzero(alone)),
            }
        )
    return rows
