"""The paper's sequential baseline, after BootEA (Sun et al., 2018): pairs by similarity, some matched at random."""

from __future__ import annotations

import numpy as np

from rlea.matchers.confidence import rate_pairs, similarities
from rlea.matchers.selection import descending, take_in_order
from rlea.matching import Matching, Task

THRESHOLD = 0.7  # as BootEA labels pairs
CANDIDATES = 10  # of a source: as many as the paper's agent sees


def match(task: Task, threshold: float = THRESHOLD, candidates_per_source: int = CANDIDATES) -> Matching:
    """One pass over the pairs in descending similarity; both entities leave once matched.

    A pair above the threshold is matched; any other with a probability equal to its similarity (clipped to [0, 1]),
    drawn from a generator that starts at `task.seed`.
    """
    candidates = task.candidates
    columns = candidates.forward_columns[:, :candidates_per_source]
    rows, places = np.nonzero(columns >= 0)
    columns, scores = columns[rows, places], candidates.forward_scores[rows, places]
    order = descending(scores, rows, columns, task.seed)
    similarity = similarities(candidates, scores)[order]
    # Drawn for every pair at once, also for pairs whose entities are taken by then: the outcome is the same.
    lucky = np.random.default_rng(task.seed).random(len(order)) < similarity
    order = order[(similarity > threshold) | lucky]
    taken = take_in_order(order, rows, columns, candidates.num_rows, candidates.num_columns)
    rows, columns = rows[taken], columns[taken]
    confidences = rate_pairs(candidates, rows, columns, scores[taken])
    return Matching.of(candidates.source_ids[rows], candidates.target_ids[columns], confidences)
