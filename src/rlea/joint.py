"""Joint rounds: the agent's sure links become seeds of the model, and the model's new vectors become the agent's.

The vectors are trained anew each time, with the links that the agent is sure of taken in as if they were seeds; none
of an entity that has a validation link, or these could no longer tell when to stop training. Vectors fitted to a link
vouch for it, right or wrong, so the sure links are cut into two parts and the model is trained twice, each time without
one of them: about an entity only those vectors speak that were trained without its link. The agent itself keeps to the
true seeds: what it learned does not hang on the vectors, only how much they count is chosen again. A round that finds
fewer validation links than the best so far is the last, and so is one whose links hardly differ from those before.
Test links play no part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlea.agent.context import ContextAgent
from rlea.candidates import prepare
from rlea.embeddings import Embeddings
from rlea.graph import GraphPair, Links
from rlea.matchers.confidence import keep_sure
from rlea.matching import Matching
from rlea.progress import Progress, silent

SURE = 0.9  # share of the links taken as seeds that should be right
PARTS = 2  # of the sure links, each left out of one training
SAME = 0.99  # share of links that stay, from which on another round would change nothing


@dataclass(frozen=True, eq=False)
class Joint:
    """The best round: its vectors, and the agent as it chose for them; how all rounds went."""

    vectors: Embeddings
    agent: ContextAgent
    rounds: list[dict[str, Any]]  # round, sure, same, valid


def train_jointly(
    pair: GraphPair,
    embed: Callable[[list[GraphPair], int], list[Embeddings]],  # trains on pairs with (more) seeds; the round's number
    num_rounds: int,  # after the first
    *,
    seed: int = 0,
    progress: Progress = silent,
    checkpoint: Path | None = None,  # of the agent
) -> Joint:
    """Train model and agent in turn."""
    agent = ContextAgent(seed=seed)
    [vectors] = embed([pair], 0)
    num_parts = 1 if vectors.measure == "manhattan" else PARTS  # distances of several vectors cannot be mixed as one
    agent.fit(pair, vectors, progress=progress, checkpoint=checkpoint)
    rounds: list[dict[str, Any]] = []
    best_score, best, chosen = -1.0, vectors, agent.chosen
    previous: Links | None = None
    for number in range(num_rounds + 1):
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
        taken = without(sure, pair.valid)
        part_of = np.random.default_rng([seed, 17, number]).permutation(len(taken)) % num_parts
        more = [pick(taken, part_of != k) for k in range(num_parts)] if num_parts > 1 else [taken]
        grown = [replace(pair, train=Links.union([pair.train, links])) for links in more]
        trained = embed(grown, number + 1)
        vectors = trained[0] if num_parts == 1 else speak_apart(trained, taken, part_of)
        if len(pair.valid):
            agent.choose(pair, vectors, progress=progress)
    agent.chosen = chosen
    return Joint(best, agent, rounds)


def without(links: Links, others: Links) -> Links:
    """The links that have no entity in common with the others."""
    return pick(links, ~(np.isin(links.source_ids, others.source_ids) | np.isin(links.target_ids, others.target_ids)))


def pick(links: Links, chosen: NDArray[np.bool_]) -> Links:
    """Some of the links."""
    return Links.of(links.source_ids[chosen], links.target_ids[chosen])


def speak_apart(trained: list[Embeddings], links: Links, part_of: NDArray[np.int64]) -> Embeddings:
    """One set of vectors out of several, the k-th of which was trained without the links of part k.

    A pair's score is the mean of two: the cosine by the vectors trained without the link of its source entity, and that
    by those trained without the link of its target entity. About an entity without a link all speak alike. Written as
    one inner product: every set of vectors stands there twice, weighed once by the source and once by the target.
    """
    num_parts = len(trained)
    sides = []
    for side, ids in (("source", links.source_ids), ("target", links.target_ids)):
        units = [prepare(getattr(vectors, side), vectors) for vectors in trained]
        weights = np.full((len(units[0]), num_parts), 1 / num_parts, np.float32)
        weights[ids] = np.arange(num_parts) == part_of[:, None]
        plain, weighed = units, [unit * weights[:, k : k + 1] for k, unit in enumerate(units)]
        sides.append(np.concatenate(weighed + plain if side == "source" else plain + weighed, axis=1) * np.sqrt(0.5))
    first = trained[0]
    info = {**first.info, "parts": [vectors.info for vectors in trained]}
    return Embeddings(sides[0].astype(np.float32), sides[1].astype(np.float32), first.name, "inner", info)


def share_found(matching: Matching, links: Links) -> float:
    """The share of the links that were found."""
    found = dict(zip(matching.source_ids.tolist(), matching.target_ids.tolist(), strict=True))
    pairs = zip(links.source_ids.tolist(), links.target_ids.tolist(), strict=True)
    return float(np.mean([found.get(s) == t for s, t in pairs]))


def share_kept(before: Links, after: Links) -> float:
    """The share of the links after that were there before; 1 without any."""
    if not len(after):
        return 1.0
    known = set(zip(before.source_ids.tolist(), before.target_ids.tolist(), strict=True))
    now = zip(after.source_ids.tolist(), after.target_ids.tolist(), strict=True)
    return float(np.mean([link in known for link in now]))
