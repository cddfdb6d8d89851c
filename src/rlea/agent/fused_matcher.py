"""All evidence as a matcher, and PARIS beside it: both look at the graphs themselves and take no vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rlea.agent.fused import FusedAgent, FusionSettings
from rlea.agent.memory import Floats
from rlea.agent.trace import Trace
from rlea.evidence import CHANNELS, EVIDENCE, PARIS
from rlea.evidence.channel import Channel
from rlea.evidence.channels import Evidence
from rlea.evidence.contribution import contributions, feature_columns, readable_features
from rlea.graph import GraphPair, Ids
from rlea.graph.schema import Schema
from rlea.matching import Matching, Task
from rlea.progress import Progress, silent
from rlea.search.candidates import Candidates
from rlea.search.embeddings import Embeddings
from rlea.search.pairs import Pairs

KEPT = 10  # best pairs of every entity that are told as its candidates


@dataclass(frozen=True, eq=False)
class Found:
    """Links, and what there is to tell about them."""

    matching: Matching
    candidates: Candidates  # the pairs that were weighed, the best of every entity
    trace: Trace | None = None  # what was decided, step by step
    schema: Schema = field(default_factory=Schema)  # what corresponds beside entities
    info: dict[str, Any] = field(default_factory=dict)  # for the record


def match(task: Task) -> Matching:
    """One-to-one links by all evidence; the candidates of the task say no more than who is to be matched."""
    pair, pool = GraphPair("", task.source, task.target, train=task.seeds), task.candidates
    return find_by_all(pair, pool.source_ids, pool.target_ids, seed=task.seed).matching


def find_by_all(
    pair: GraphPair,
    source_ids: Ids,
    target_ids: Ids,
    channels: Sequence[str] = CHANNELS,
    *,
    encoder: str = "",
    seed: int = 0,
    cut: Callable[[Matching], Matching] | None = None,
    progress: Progress = silent,
) -> Found:
    """Learn from the seeds, or from what channels agree on, and decide. Validation and test links are not read.

    `cut` leaves links out in the end; what channels contributed is told of those that stay.
    """
    evidence = Evidence(pair, encoder=encoder, progress=progress)
    agent = FusedAgent(FusionSettings(channels=tuple(channels)), seed=seed).fit(
        pair, evidence=evidence, progress=progress
    )
    decisions = agent.decide(source_ids, target_ids)[-1]
    matching = decisions.matching if cut is None else cut(decisions.matching)
    assert agent.beginning is not None
    heard = agent.channels_for(agent.beginning.seeds)
    schema = next((channel.info["schema"] for channel in heard if channel.name == PARIS), Schema())
    worth = np.zeros(len(decisions.pairs), np.float32) if decisions.worth is None else decisions.worth
    info = {
        "beginning": agent.beginning.as_dict(),
        "channels": contributions(heard, matching, channels, (source_ids, target_ids)),
        "heard": [_tell(channel) for channel in heard],
        "agent": {"history": agent.history, "calibration": vars(agent.calibration)},
    }
    return Found(
        matching,
        candidates_of(decisions.pairs, worth, source_ids, target_ids),
        Trace.of(decisions, lambda pairs: readable_features(heard, pairs), feature_columns(heard)),
        schema,
        info,
    )


def _tell(channel: Channel) -> dict[str, Any]:
    """What is known about a channel, for the record; what corresponds in the schemas has files of its own."""
    about = {key: value for key, value in channel.info.items() if key != "schema"}
    return {"channel": channel.name, "says": list(channel.columns), **about}


def find_by_paris(
    pair: GraphPair,
    source_ids: Ids,
    target_ids: Ids,
    *,
    seed: int = 0,
    cut: Callable[[Matching], Matching] | None = None,
    progress: Progress = silent,
) -> Found:
    """PARIS alone, from the seeds or from nothing; `cut` leaves links out in the end."""
    from rlea.evidence.paris import run_paris
    from rlea.matchers.paris import take_pairs

    found = run_paris(pair, progress=progress)
    kept = np.isin(found.source_ids, source_ids) & np.isin(found.target_ids, target_ids)
    matching = take_pairs(found, pair.source, pair.target, seed, kept)
    pairs = Pairs(found.source_ids[kept], found.target_ids[kept])
    candidates = candidates_of(pairs, found.probabilities[kept].astype(np.float32), source_ids, target_ids)
    info = {"iterations": len(found.iterations)}
    return Found(matching if cut is None else cut(matching), candidates, schema=found.schema, info=info)


def candidates_of(pairs: Pairs, scores: Floats, source_ids: Ids, target_ids: Ids, k: int = KEPT) -> Candidates:
    """Scored pairs as candidates of two pools: the k best of every entity, both ways; pairs outside are left out."""
    rows, columns = (
        _positions(pool, ids) for pool, ids in ((source_ids, pairs.source_ids), (target_ids, pairs.target_ids))
    )
    inside = (rows >= 0) & (columns >= 0)
    rows, columns, scores = rows[inside], columns[inside], scores[inside]
    forward = _best(rows, columns, scores, len(source_ids), k)
    backward = _best(columns, rows, scores, len(target_ids), k)
    nothing = np.zeros((0, 1), np.float32)
    return Candidates(source_ids, target_ids, *forward, *backward, Embeddings(nothing, nothing, name=EVIDENCE))


def _positions(pool: Ids, ids: Ids) -> Ids:
    place = np.full(int(max(pool.max(initial=-1), ids.max(initial=-1))) + 1, -1, np.int32)
    place[pool] = np.arange(len(pool), dtype=np.int32)
    return place[ids]


def _best(own: Ids, other: Ids, scores: Floats, count: int, k: int) -> tuple[Ids, Floats]:
    order = np.lexsort((other, -scores, own))
    starts = np.searchsorted(own[order], np.arange(count))
    rank = np.arange(len(order)) - starts[own[order]] if len(order) else np.zeros(0, np.int64)
    ids, best = np.full((count, k), -1, np.int32), np.full((count, k), -np.inf, np.float32)
    near = rank < k
    ids[own[order][near], rank[near]] = other[order][near]
    best[own[order][near], rank[near]] = scores[order][near]
    return ids, best
