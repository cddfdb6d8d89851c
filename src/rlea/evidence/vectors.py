"""Channels of vectors: those of an embedding, scored by CSLS; and sparse ones, scored by their products."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rlea.evidence import VECTORS
from rlea.evidence.channel import Channel
from rlea.graph import Ids
from rlea.progress import Progress, silent
from rlea.search.candidates import Candidates, find_candidates, positions_in, prepare
from rlea.search.embeddings import Embeddings
from rlea.search.pairs import Floats, Pairs, numbers
from rlea.search.rows import multiply_sparse_pairs

NEAREST = 20  # of every entity, both ways
TYPICAL_SPREAD = 0.1  # standard deviation of CSLS over cosines, to which other measures are scaled


def vector_channels(
    parts: Sequence[Embeddings],
    source_ids: Ids,
    target_ids: Ids,
    progress: Progress = silent,
    *,
    nearest: int = NEAREST,
) -> list[Channel]:
    """A channel for every embedding. Those of the same name are numbered: what is learned goes by the column."""
    made: list[Channel] = []
    for part in parts:
        channel = vector_channel(part, source_ids, target_ids, progress, nearest=nearest)
        name, taken, number = channel.columns[0], {one.columns[0] for one in made}, 1
        while channel.columns[0] in taken:
            number += 1
            channel = replace(channel, columns=(f"{name} {number}",))
        made.append(channel)
    return made


def vector_channel(
    embeddings: Embeddings, source_ids: Ids, target_ids: Ids, progress: Progress = silent, *, nearest: int = NEAREST
) -> Channel:
    """Nearest pairs between two pools of entities, scored by CSLS: twice the similarity, less what hubs have of it.

    CSLS subtracts the mean similarity of the ten nearest of either entity. Entities outside the pools score 0.
    """
    found = find_candidates(embeddings, source_ids, target_ids, nearest, progress)
    csls = Csls(found)
    name = embeddings.info.get("model") or embeddings.name
    info = {"embedding": embeddings.name, "dimensions": int(embeddings.source.shape[1])}
    return Channel(
        VECTORS,
        (str(name).lower(),),
        Pairs.of_candidates(found),
        lambda pairs: csls(pairs)[:, None],
        info,
        meanings=("similarity of the vectors, less that of hubs (CSLS)",),
        is_fitted=embeddings.is_fitted,
        csls=csls,
    )


class Csls:
    """CSLS of any pairs of the pools; scores of candidates are looked up, those of other pairs computed."""

    def __init__(self, found: Candidates) -> None:
        self.found = found
        self.means = found.csls_means()
        pairs = found.pairs
        self.own = numbers(Pairs(pairs.rows, pairs.columns))
        self.order = np.argsort(self.own, kind="stable")
        csls = 2 * pairs.scores - self.means[0][pairs.rows] - self.means[1][pairs.columns]
        self.scale = scale_of(found, csls)

    def __call__(self, wanted: Pairs) -> Floats:
        found = self.found
        rows = positions_in(found.source_ids, wanted.source_ids)
        columns = positions_in(found.target_ids, wanted.target_ids)
        result = np.zeros(len(wanted), np.float32)
        inside = np.flatnonzero((rows >= 0) & (columns >= 0))
        rows, columns = rows[inside], columns[inside]
        asked = numbers(Pairs(rows, columns))
        scores, is_known = np.zeros(len(inside), np.float32), np.zeros(len(inside), np.bool_)
        if len(self.own):  # sparse vectors may have nothing in common
            places = self.order[np.minimum(np.searchsorted(self.own, asked, sorter=self.order), len(self.own) - 1)]
            is_known = self.own[places] == asked
            scores[is_known] = found.pairs.scores[places[is_known]]
        others = np.flatnonzero(~is_known)
        scores[others] = found.score_pairs(rows[others], columns[others])
        csls = 2 * scores - self.means[0][rows] - self.means[1][columns]
        result[inside] = np.float32(self.scale) * csls
        return result


def scale_of(candidates: Candidates, csls: Floats) -> float:
    """The factor that brings CSLS over any measure to the spread that it has over cosines."""
    if candidates.embeddings.measure == "cosine" or not len(csls):
        return 1.0
    return TYPICAL_SPREAD / max(float(csls.std()), 1e-9)


def by_products(
    name: str, column: str, meaning: str, vectors: Embeddings, proposals: Pairs, info: dict[str, Any]
) -> Channel:
    """A channel that scores pairs by the inner products of sparse vectors."""
    source, target = prepare(vectors.source, vectors), prepare(vectors.target, vectors)

    def score(wanted: Pairs) -> Floats:
        return multiply_sparse_pairs(source, target, wanted.source_ids, wanted.target_ids)[:, None]

    return Channel(name, (column,), proposals, score, info, meanings=(meaning,))
