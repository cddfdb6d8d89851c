"""Best-first matching: the surest pair is matched first, and every match speaks for the pairs of its neighbours.

Key of a pair (s, t), higher is earlier:

    CSLS(s, t) + evidence_weight * sqrt(evidence(s, t))

evidence(s, t) sums, over every pair of neighbours (n, m) that is already matched (the seeds to begin with) and over
the relations that lead to them, how far the two relations correspond among the matches so far, times how identifying
the less identifying of the two is. An accepted pair raises the keys of its neighbours' pairs, and brings pairs into
the game that similarity alone did not propose. Nothing is learned; the order does the work.

Further passes reconsider: they start again from the seeds, with the matches of the pass before as evidence at reduced
weight until their entities are decided anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlea.agent.engine import Game, Rules, Side, make_vectors, no_extra, play, sort_rows
from rlea.agent.memory import MAX_RELATIONS
from rlea.evidence.vectors import scale_of
from rlea.graph import Ids, KnowledgeGraph, Links
from rlea.graph.neighbourhood import Neighbourhood
from rlea.matching import Matching, Task


@dataclass(frozen=True)
class BestFirstSettings:
    """Weights of the key and rules of the game, chosen on validation links (docs/best-first.md)."""

    evidence_weight: float = 3.0  # lambda of the formula; 2 to 4 are alike
    creation: float = 0.03  # a match brings a new pair into the game when this step alone gives it so much evidence
    floor: float = 0.005  # weaker steps come from hubs, cost a third of the time and change nothing
    smoothing: float = 1.0  # pseudo-count against relations seen only once or twice
    passes: int = 2  # the first and one reconsideration; a third adds nothing
    kept_weight: float = 0.5  # of the matches of the pass before, as some of them are wrong
    temperature: float = 0.12  # of the confidence, in units of the key: least calibration error on validation links
    nobody: float = 0.3  # key at which an entity is as likely to have no counterpart as this one


def match(task: Task, settings: BestFirstSettings | None = None) -> Matching:
    """One-to-one links, best first."""
    settings = settings or BestFirstSettings()
    game = _set_up(task)
    evidence = settings.evidence_weight, settings.creation, settings.floor, settings.smoothing, settings.kept_weight
    numbers: Any = [np.float32(number) for number in (*evidence, settings.temperature, settings.nobody)]
    rules = Rules._make([*numbers, np.uint64(task.seed), False, np.float32(0.0)])
    earlier = Links.empty()
    # Of oriented relations, (source relations, target relations). The first pass estimates it as matches grow.
    correspondence = np.zeros((len(game.source.functionality), len(game.target.functionality)), np.float32)
    for number in range(max(settings.passes, 1)):
        known = (task.seeds.source_ids, task.seeds.target_ids, earlier.source_ids, earlier.target_ids)
        links, correspondence, _ = play(game, *known, correspondence, number > 0, rules)
        source_ids, target_ids, _, confidences = links
        earlier = Links.of(source_ids, target_ids)
    return Matching.of(source_ids, target_ids, confidences)


def _set_up(task: Task) -> Any:
    candidates = task.candidates
    row_means, column_means = candidates.csls_means()
    source = _side(task.source, candidates.source_ids, row_means)
    target = _side(task.target, candidates.target_ids, column_means)
    pairs = candidates.pairs
    csls = 2 * pairs.scores - row_means[pairs.rows] - column_means[pairs.columns]
    scale = scale_of(candidates, csls)
    pair_source, pair_target = candidates.source_ids[pairs.rows], candidates.target_ids[pairs.columns]
    base = (scale * csls).astype(np.float32)
    sort_rows(pairs.row_starts, pair_source, pair_target, base, np.uint64(task.seed))
    list_starts = np.zeros(task.source.num_entities, np.int64)
    list_ends = np.zeros(task.source.num_entities, np.int64)
    list_starts[candidates.source_ids], list_ends[candidates.source_ids] = pairs.row_starts[:-1], pairs.row_starts[1:]
    vectors = make_vectors(candidates, scale)
    return Game(
        source, target, vectors, no_extra(), pair_source, pair_target, base, list_starts, list_ends, task.cannot_link
    )


def _side(graph: KnowledgeGraph, pool: Ids, means: NDArray[np.float32]) -> Any:
    around = Neighbourhood.of(graph, MAX_RELATIONS)
    all_means = np.zeros(graph.num_entities, np.float32)
    all_means[pool] = means
    is_open = np.zeros(graph.num_entities, np.bool_)
    is_open[pool] = True
    return Side(around.starts, around.relation_ids, around.neighbour_ids, around.functionality, all_means, is_open)
