"""The channel of attributes: typed values that two entities share, and values that contradict each other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rlea.evidence import ATTRIBUTES
from rlea.evidence.channel import Channel
from rlea.graph import GraphPair, Links
from rlea.progress import Progress
from rlea.search.pairs import Floats, Pairs

MOST_SUPPORT, SUPPORT_UNIT = 20.0, 5.0  # log-odds beyond which more says nothing new; log-odds that are 1 as a score
CONFLICT_UNIT = 3.0


def attribute_channels(pair: GraphPair, links: Links, progress: Progress) -> list[Channel]:
    """Support and conflict of the values of pairs; `links` teach which attributes correspond."""
    from rlea.evidence.attributes import score_attributes

    found = score_attributes(replace(pair, train=links), progress=progress)

    def shown(pairs: Pairs) -> Floats:
        return np.column_stack(found.weigh(pairs.source_ids, pairs.target_ids))

    def score(pairs: Pairs) -> Floats:
        support, conflict = found.weigh(pairs.source_ids, pairs.target_ids)
        return np.column_stack([np.minimum(support, MOST_SUPPORT) / SUPPORT_UNIT, conflict / CONFLICT_UNIT])

    proposals = Pairs(found.source_ids, found.target_ids)
    columns, meanings = ("attributes", "conflict"), ("log-odds in favour", "log-odds against")
    return [Channel(ATTRIBUTES, columns, proposals, score, found.as_dict(), shown, meanings, against=("conflict",))]
