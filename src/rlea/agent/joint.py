"""Joint rounds: the agent's sure links become seeds of the model, and the model's new vectors become the agent's.

The vectors are trained anew each time, with the links that the agent is sure of taken in as if they were seeds; none
of an entity that has a validation link, or these could no longer tell when to stop training (it also leaves their
counterparts free, so that validation links gain more from a round than others do). The agent itself keeps to
the true seeds: what it learned does not hang on the vectors, only how much they count is chosen again. A round that
finds fewer validation links than the best so far is the last, and so is one whose links hardly differ from those
before. Test links play no part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from rlea.agent.context import ContextAgent, num_right
from rlea.graph import GraphPair, Links
from rlea.matching import Matching, keep_sure
from rlea.progress import Progress, silent
from rlea.search.embeddings import Embeddings

SURE = 0.9  # share of the links taken as seeds that should be right
SAME = 0.99  # share of links that stay, from which on another round would change nothing


@dataclass(frozen=True, eq=False)
class Joint:
    """The best round: its vectors, and the agent as it chose for them; how all rounds went."""

    vectors: Embeddings
    agent: ContextAgent
    rounds: list[dict[str, Any]]  # round, sure, same, valid


def train_jointly(
    pair: GraphPair,
    embed: Callable[[GraphPair, int], Embeddings],  # trains on a pair with (more) seeds; the round's number
    num_rounds: int,  # after the first
    *,
    seed: int = 0,
    progress: Progress = silent,
    checkpoint: Path | None = None,  # of the agent
    agent: ContextAgent | None = None,  # one that was trained on the pair before
    on_round: Callable[[int, ContextAgent, Embeddings], None] | None = None,
) -> Joint:
    """Train model and agent in turn; `on_round` is told of every round once the agent has chosen for its vectors."""
    vectors = embed(pair, 0)
    if agent is None:
        agent = ContextAgent(seed=seed).fit(pair, vectors, progress=progress, checkpoint=checkpoint)
    elif len(pair.valid):
        agent.choose(pair, vectors, progress=progress)
    rounds: list[dict[str, Any]] = []
    best_score, best, chosen = -1.0, vectors, agent.chosen
    previous: Links | None = None
    for number in range(num_rounds + 1):
        if on_round is not None:
            on_round(number, agent, vectors)
        decided = agent.match(pair, vectors, pool="all")
        links = keep_sure(decided, SURE)
        sure = Links.of(links.source_ids, links.target_ids)
        score = share_found(decided, pair.valid) if len(pair.valid) else None
        same = 0.0 if previous is None else share_kept(previous, sure)
        rounds.append({"round": number, "sure": len(sure), "same": same, "valid": score})
        progress("joint", number, num_rounds, f"{len(sure):,} sure links")
        if score is not None and score < best_score:
            break
        best_score, best, chosen = score or 0.0, vectors, agent.chosen
        if number == num_rounds or same >= SAME:
            break
        previous = sure
        vectors = embed(replace(pair, train=Links.union([pair.train, without(sure, pair.valid)])), number + 1)
        if len(pair.valid):
            agent.choose(pair, vectors, progress=progress)
    agent.chosen = chosen
    return Joint(best, agent, rounds)


def without(links: Links, others: Links) -> Links:
    """The links that have no entity in common with the others."""
    apart = ~(np.isin(links.source_ids, others.source_ids) | np.isin(links.target_ids, others.target_ids))
    return Links.of(links.source_ids[apart], links.target_ids[apart])


def share_found(matching: Matching, links: Links) -> float:
    """The share of the links that were found."""
    return num_right(matching, links) / len(links)


def share_kept(before: Links, after: Links) -> float:
    """The share of the links after that were there before; 1 without any."""
    if not len(after):
        return 1.0
    known = set(zip(before.source_ids.tolist(), before.target_ids.tolist(), strict=True))
    now = zip(after.source_ids.tolist(), after.target_ids.tolist(), strict=True)
    return float(np.mean([link in known for link in now]))
