"""Links to learn from: the seeds, and where these are few, pseudo-seeds on which several channels agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rlea.agent.learning import ENOUGH_LINKS
from rlea.evidence.channel import Channel
from rlea.graph import Links
from rlea.progress import counted
from rlea.search.pairs import Floats, Pairs, leads, numbers

ENOUGH_SEEDS = ENOUGH_LINKS  # from so many on the agent learns from seeds alone
VOTES = 2  # channels that must find a pair mutual best for it to be a pseudo-seed
FEW = 50  # with fewer pseudo-seeds, one vote is enough


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """Links to learn from, and where they come from. Only seeds are certain: pseudo-seeds are decided, too."""

    seeds: Links
    pseudo_seeds: Links  # empty where the seeds are enough
    mutual_best: dict[str, int]  # number of mutual-best pairs of every channel that voted
    least: int = VOTES  # votes that every pseudo-seed has
    are_alike: bool = True  # seeds are like the other entities; else confidences are not calibrated on them

    @property
    def links(self) -> Links:
        """All to learn from, seeds first."""
        return Links.union([self.seeds, self.pseudo_seeds])

    @property
    def is_seeded(self) -> bool:
        """Whether the seeds alone are enough."""
        return are_enough(self.seeds)

    def tell(self) -> str:
        """One sentence for people."""
        unlike = "; seeds have far more or fewer edges or values than the rest, so confidences do not rest on them"
        return self._begin() + ("" if self.are_alike else unlike)

    def _begin(self) -> str:
        if self.is_seeded:
            return f"Started from {counted(len(self.seeds), 'seed')}"
        many = "two or more" if self.least > 1 else "one or more"
        channels = ", ".join(self.mutual_best)
        pseudo = f"{counted(len(self.pseudo_seeds), 'pair')} on which {many} of {channels} agree (mutual best)"
        if not len(self.seeds):
            return f"No seeds: started from {pseudo}"
        if not len(self.pseudo_seeds):
            return f"Started from {counted(len(self.seeds), 'seed')} alone: no channels agree on a pair"
        return f"Started from {counted(len(self.seeds), 'seed')} and {pseudo}"

    def as_dict(self) -> dict[str, Any]:
        """For the record."""
        counts = {"seeds": len(self.seeds), "pseudo_seeds": len(self.pseudo_seeds)}
        return {**counts, "mutual_best": self.mutual_best, "told": self.tell()}


def are_enough(seeds: Links) -> bool:
    """Whether there are enough seeds to learn from them alone."""
    return len(seeds) >= ENOUGH_SEEDS


def bootstrap(seeds: Links, channels: Sequence[Channel]) -> Bootstrap:
    """Take the seeds if they are enough, else look for pairs on which the channels agree."""
    if are_enough(seeds):
        return Bootstrap(seeds, Links.empty(), {})
    pairs, votes, mutual_best = count_votes(channels)
    free = ~(np.isin(pairs.source_ids, seeds.source_ids) | np.isin(pairs.target_ids, seeds.target_ids))
    pairs, votes = pairs.some(free), votes[free]
    # A pair counts if no other pair of either entity has as many votes.
    clear = np.ones(len(pairs), np.bool_)
    for ids in (pairs.source_ids, pairs.target_ids):
        clear &= leads(ids, votes, np.inf) > 0
    least = VOTES
    if np.count_nonzero(clear & (votes >= least)) < FEW:
        least = 1
    chosen = pairs.some(clear & (votes >= least))
    return Bootstrap(seeds, Links.of(chosen.source_ids, chosen.target_ids), mutual_best, least)


def count_votes(channels: Sequence[Channel]) -> tuple[Pairs, Floats, dict[str, int]]:
    """Pairs that some channel finds mutual best, by how many channels, and how many pairs each channel has."""
    parts = [channel.proposals.some(channel.is_best()) for channel in channels]
    nothing = np.zeros(0, np.int64)
    keys, counts = np.unique(np.concatenate([nothing, *map(numbers, parts)]), return_counts=True)
    pairs = Pairs((keys >> 32).astype(np.int32), (keys & 0xFFFFFFFF).astype(np.int32))
    named = {channel.columns[0]: len(part) for channel, part in zip(channels, parts, strict=True)}
    return pairs, counts.astype(np.float32), named
