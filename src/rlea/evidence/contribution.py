"""What each channel contributed to the links of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rlea.evidence import STRUCTURE
from rlea.evidence.channel import Channel
from rlea.graph import Ids
from rlea.matching import Matching
from rlea.search.pairs import Pairs, numbers


def contributions(
    channels: Sequence[Channel], matching: Matching, wanted: Sequence[str], pool: tuple[Ids, Ids]
) -> list[dict[str, Any]]:
    """A row for every channel that was wanted, in that order.

    `proposed`: pairs of entities of the pool (source ids, target ids) that it brought into the game. `found`: links of
    which it finds the pair the best both ways. `alone`: those of them that no other channel finds so. Structure has no
    opinion of its own before matching begins: what it found are the links that no channel finds the best both ways, and
    these it found alone.
    """
    links = numbers(Pairs(matching.source_ids, matching.target_ids))
    found: dict[str, np.ndarray] = {}
    proposed: dict[str, list[np.ndarray]] = {}
    for channel in channels:
        pairs = channel.proposals
        inside = np.isin(pairs.source_ids, pool[0]) & np.isin(pairs.target_ids, pool[1])
        best = numbers(pairs)[channel.best()]
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
