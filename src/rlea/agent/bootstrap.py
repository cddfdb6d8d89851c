"""How a run begins: with the seeds, and where these are few, with pairs that several channels agree on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rlea.agent.learning import ENOUGH_LINKS
from rlea.agent.memory import Floats
from rlea.evidence.channel import Channel
from rlea.graph import Links
from rlea.progress import counted
from rlea.search.pairs import Pairs, leads, numbers

ENOUGH_SEEDS = ENOUGH_LINKS  # from so many on the agent learns from seeds alone
WITNESSES = 2  # that must find a pair the best both ways for it to be learned from
FEW = 50  # with fewer agreed pairs, those of a single witness are taken as well


@dataclass(frozen=True, eq=False)
class Beginning:
    """Links to learn from, and where they come from. Only seeds are certain; agreed pairs are decided like others."""

    seeds: Links
    agreed: Links  # empty where the seeds are enough
    witnesses: dict[str, int]  # mutual-best pairs of every column that was asked
    least: int = WITNESSES  # witnesses that every agreed pair has

    @property
    def links(self) -> Links:
        """All to learn from, seeds first."""
        return Links.union([self.seeds, self.agreed])

    @property
    def is_seeded(self) -> bool:
        return are_enough(self.seeds)

    def tell(self) -> str:
        """One sentence for people."""
        if self.is_seeded:
            return f"it began with {counted(len(self.seeds), 'seed')}"
        many = "two or more" if self.least > 1 else "one or more"
        agreed = (
            f"{counted(len(self.agreed), 'pair')} that {many} of {', '.join(self.witnesses)} find the best both ways"
        )
        if not len(self.seeds):
            return f"there are no seeds: it began with {agreed}"
        few = f"{len(self.seeds):,} seeds, which are few" if len(self.seeds) > 1 else "one seed"
        seeds = f"it began with {few}"
        return f"{seeds}, and {agreed}" if len(self.agreed) else f"{seeds}, and no pairs that channels agree on"

    def as_dict(self) -> dict[str, Any]:
        """For the record."""
        return {
            "seeds": len(self.seeds),
            "agreed": len(self.agreed),
            "witnesses": self.witnesses,
            "told": self.tell(),
        }


def are_enough(seeds: Links) -> bool:
    """Whether there are seeds enough to learn from them alone; then no witness is asked."""
    return len(seeds) >= ENOUGH_SEEDS


def begin(seeds: Links, channels: Sequence[Channel]) -> Beginning:
    """Take the seeds if they are enough, else look for pairs that the channels agree on."""
    if are_enough(seeds):
        return Beginning(seeds, Links.empty(), {})
    pairs, counts, witnesses = vote(channels)
    free = ~(np.isin(pairs.source_ids, seeds.source_ids) | np.isin(pairs.target_ids, seeds.target_ids))
    pairs, counts = Pairs(pairs.source_ids[free], pairs.target_ids[free]), counts[free]
    # A pair counts if nobody else has as many witnesses for one of its two entities.
    clear = np.ones(len(pairs), np.bool_)
    for ids in (pairs.source_ids, pairs.target_ids):
        clear &= leads(ids, counts, np.inf) > 0
    least = WITNESSES
    if np.count_nonzero(clear & (counts >= least)) < FEW:
        least = 1
    chosen = clear & (counts >= least)
    return Beginning(seeds, Links.of(pairs.source_ids[chosen], pairs.target_ids[chosen]), witnesses, least)


def vote(channels: Sequence[Channel]) -> tuple[Pairs, Floats, dict[str, int]]:
    """Pairs that stand out for some channel, for how many, and how many pairs each finds."""
    found = [channel.best() for channel in channels]
    parts = [
        Pairs(channel.proposals.source_ids[best], channel.proposals.target_ids[best])
        for channel, best in zip(channels, found, strict=True)
    ]
    nothing = np.zeros(0, np.int64)
    keys, counts = np.unique(np.concatenate([nothing, *map(numbers, parts)]), return_counts=True)
    pairs = Pairs((keys >> 32).astype(np.int32), (keys & 0xFFFFFFFF).astype(np.int32))
    named = {channel.columns[0]: len(part) for channel, part in zip(channels, parts, strict=True)}
    return pairs, counts.astype(np.float32), named
