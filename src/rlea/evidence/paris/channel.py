"""The channel of PARIS: probabilities from the facts of both graphs and the links that are certain."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rlea.arithmetic import log
from rlea.evidence import PARIS
from rlea.evidence.channel import Channel, ScoreTable
from rlea.graph import GraphPair, Links
from rlea.graph.hubs import prune_hubs
from rlea.graph.size import is_large
from rlea.progress import Progress, silent
from rlea.search.pairs import Pairs, is_near

PROPOSALS = 10  # best pairs of every entity, both ways
# Pairs that a value, or a pair of neighbours, may be evidence for in large graphs. A hundred by a hundred tell next to
# nothing there, and the work would grow with the square of the graphs.
MOST_IN_LARGE = 10_000
MOST_CERTAINTY, CERTAINTY_UNIT = 12.0, 5.0  # -log of the doubt beyond which more says nothing new; and what is 1


def paris_channels(pair: GraphPair, links: Links, progress: Progress = silent) -> list[Channel]:
    """PARIS from links that it takes for certain: it repeats these, so it is to be asked about others.

    Names are facts to it, like literals.
    """
    from rlea.evidence.paris import ParisSettings, run_paris

    known, settings = replace(pair, train=links), ParisSettings(use_names=True)
    if is_large(pair.source.num_entities, pair.target.num_entities):
        known = replace(known, source=prune_hubs(pair.source), target=prune_hubs(pair.target))
        settings = replace(settings, max_pairs=MOST_IN_LARGE)
    found = run_paris(known, settings, progress=progress)
    certainty = np.asarray(np.minimum(-log(found.doubts), MOST_CERTAINTY) / CERTAINTY_UNIT, np.float32)
    every = Pairs(found.source_ids, found.target_ids)
    near = is_near(every, certainty, PROPOSALS) if len(every) else np.zeros(0, np.bool_)
    pairs = every.some(near)
    scores = ScoreTable(pairs, certainty[near])
    probabilities = ScoreTable(every, np.asarray(1 - found.doubts, np.float32))
    info = {"iterations": len(found.iterations), "schema": found.schema}
    return [
        Channel(
            PARIS,
            ("paris",),
            pairs,
            lambda wanted: scores(wanted)[:, None],
            info,
            lambda wanted: probabilities(wanted)[:, None],
            ("probability",),
        )
    ]
