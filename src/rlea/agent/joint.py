"""Joint rounds: the agent's sure links become seeds of an embedding model, whose new vectors become the agent's.

Vectors are trained anew each round, with the links that the agent is sure of as extra seeds; none of an entity that
has a validation link, or these could no longer say when to stop training. (That also leaves their counterparts free,
so validation links gain more from a round than others do.) The agent itself keeps to the true seeds: what it learned
does not depend on the vectors, only their weight is chosen again. A round that finds fewer validation links than the
best so far is the last, and so is one whose links hardly differ from those before. Test links are not read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rlea.agent.agent import Aligner, num_right
from rlea.graph import GraphPair, Links
from rlea.matching import keep_sure
from rlea.progress import Progress, silent
from rlea.search.embeddings import Embeddings
from rlea.search.pairs import Pairs, numbers

SURE = 0.9  # share of the links taken as seeds that should be right
SAME = 0.99  # share of links that stay, from which on another round would change nothing


@dataclass(frozen=True, eq=False)
class Joint:
    """The best round: its vectors, and the agent with the weights chosen for them; how all rounds went."""

    vectors: Embeddings
    agent: Aligner
    rounds: list[dict[str, Any]]  # round, sure, same, valid


def train_jointly(
    pair: GraphPair,
    embed: Callable[[GraphPair, int], Embeddings],  # trains on a pair with (more) seeds; the round's number
    num_rounds: int,  # after the first
    agent: Aligner,
    *,
    progress: Progress = silent,
    on_round: Callable[[int, Aligner, Embeddings], None] | None = None,
) -> Joint:
    """Train model and agent in turn; an agent that is fitted already is only weighed anew.

    `on_round` is called in every round once the weights for its vectors are chosen.
    """
    vectors = embed(pair, 0)
    if not agent.is_fitted:
        agent.fit(pair, progress=progress)
    agent.choose(pair, [vectors], progress=progress)
    rounds: list[dict[str, Any]] = []
    best_score, best = -1.0, (vectors, agent.weights, agent.final_calibration)
    previous: Links | None = None
    for number in range(num_rounds + 1):
        if on_round is not None:
            on_round(number, agent, vectors)
        decided = agent.match(pair, [vectors], pool="all")
        links = keep_sure(decided, SURE)
        sure = Links.of(links.source_ids, links.target_ids)
        score = num_right(decided, pair.valid) / len(pair.valid) if len(pair.valid) else None
        same = 0.0 if previous is None else share_kept(previous, sure)
        rounds.append({"round": number, "sure": len(sure), "same": same, "valid": score})
        progress("joint", number, num_rounds, f"{len(sure):,} sure links")
        if score is not None and score < best_score:
            break
        best_score, best = score or 0.0, (vectors, agent.weights, agent.final_calibration)
        if number == num_rounds or same >= SAME:
            break
        previous = sure
        vectors = embed(replace(pair, train=Links.union([pair.train, without(sure, pair.valid)])), number + 1)
        agent.choose(pair, [vectors], progress=progress)
    kept, agent.weights, agent.final_calibration = best
    return Joint(kept, agent, rounds)


def without(links: Links, others: Links) -> Links:
    """The links that have no entity in common with the others."""
    apart = ~(np.isin(links.source_ids, others.source_ids) | np.isin(links.target_ids, others.target_ids))
    return Links.of(links.source_ids[apart], links.target_ids[apart])


def share_kept(before: Links, after: Links) -> float:
    """The share of the links after that were there before; 1 without any."""
    if not len(after):
        return 1.0
    first, second = (numbers(Pairs(part.source_ids, part.target_ids)) for part in (before, after))
    return float(np.isin(second, first).mean())
