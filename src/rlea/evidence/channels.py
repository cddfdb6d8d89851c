"""The channels of a pair of graphs: names, words, attributes, and PARIS from links that are known."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rlea.agent.memory import Floats
from rlea.arithmetic import log
from rlea.evidence import ATTRIBUTES, NAMES, PARIS, WORDS
from rlea.evidence.channel import Channel, Table
from rlea.graph import GraphPair, Ids, Links
from rlea.progress import Progress, silent
from rlea.search.candidates import Candidates, find_candidates, prepare
from rlea.search.embeddings import Embeddings
from rlea.search.pairs import Pairs, is_near
from rlea.search.rows import inner_products, multiply_sparse_pairs

PROPOSALS = 10  # best pairs of every entity that a channel brings into the game, both ways
MOST_SEARCHED = 3_000_000_000  # pairs of entities; of more, words are not searched: the search is exact and quadratic
ENCODED = 256  # dimensions of a sentence encoder's vectors
MOST_SUPPORT, SUPPORT_UNIT = 20.0, 5.0  # log-odds of attributes beyond say no more; and what is 1 on our scale
MOST_CERTAINTY, CERTAINTY_UNIT = 12.0, 5.0  # -log of PARIS's doubt, likewise
CONFLICT_UNIT = 3.0


def collect(
    pair: GraphPair, links: Links, wanted: Sequence[str], *, encoder: str = "", progress: Progress = silent
) -> list[Channel]:
    """The wanted ones of names, words and attributes that have something to say.

    `links` teach which attribute holds the names of entities with opaque identifiers, and which attributes correspond;
    which entity is linked to which does not show in what a channel says of them.
    """
    channels: list[Channel] = []
    if NAMES in wanted:
        channels += _names(pair, links, encoder, progress)
    if WORDS in wanted:
        channels += _words(pair, progress)
    if ATTRIBUTES in wanted:
        channels.append(_attributes(pair, links, progress))
    # Words of large graphs are not searched, but have their say about the pairs of others.
    return [channel for channel in channels if len(channel.proposals) or not channel.info.get("searched", True)]


def reason(pair: GraphPair, links: Links, *, progress: Progress = silent) -> Channel:
    """PARIS from links that it takes for certain: it says of them what it was told, so ask it about others.

    Names are facts to it, like literals.
    """
    from rlea.evidence.paris import ParisSettings, run_paris

    known = GraphPair(pair.name, pair.source, pair.target, train=links)
    found = run_paris(known, ParisSettings(use_names=True), progress=progress)
    certainty = np.asarray(np.minimum(-log(found.doubts), MOST_CERTAINTY) / CERTAINTY_UNIT, np.float32)
    pairs = Pairs(found.source_ids, found.target_ids)
    near = is_near(pairs, certainty, PROPOSALS) if len(pairs) else np.zeros(0, np.bool_)
    pairs, certainty = Pairs(pairs.source_ids[near], pairs.target_ids[near]), certainty[near]
    table = Table(pairs, certainty)
    probabilities = Table(Pairs(found.source_ids, found.target_ids), np.asarray(1 - found.doubts, np.float32))
    info = {"iterations": len(found.iterations), "schema": found.schema}
    return Channel(
        PARIS,
        ("paris",),
        pairs,
        lambda wanted: table(wanted)[:, None],
        info,
        lambda wanted: probabilities(wanted)[:, None],
    )


def _names(pair: GraphPair, links: Links, encoder: str, progress: Progress) -> list[Channel]:
    from rlea.models.name_vectors import name_vectors, readable_names
    from rlea.search.name_index import search_names

    back = Links(links.target_ids, links.source_ids)
    source, told_source = readable_names(pair.source, pair.target, links)
    target, told_target = readable_names(pair.target, pair.source, back)
    named = replace(pair, source=replace(pair.source, names=source), target=replace(pair.target, names=target))
    found = search_names(named, *_everybody(pair), PROPOSALS, progress=progress)
    info = {"source": told_source, "target": told_target}
    channels = [_of_sparse(NAMES, "name", found.candidates.embeddings, pairs_of(found.candidates), info)]
    if encoder:
        vectors = name_vectors(replace(pair, train=links), ENCODED, encoder=encoder)
        dense = Embeddings(vectors.source, vectors.target, measure="inner")
        close = pairs_of(find_candidates(dense, *_everybody(pair), PROPOSALS, progress))

        def meaning(pairs: Pairs) -> Floats:
            cosines = inner_products(vectors.source, vectors.target, pairs.source_ids, pairs.target_ids)
            return np.asarray(np.maximum(cosines, 0)[:, None], np.float32)

        told = meaning(close)[:, 0] > 0  # who has no name is as near to all as to any
        close = Pairs(close.source_ids[told], close.target_ids[told])
        channels.append(Channel(NAMES, ("meaning",), close, meaning, {"encoder": encoder}))
    return channels


def _words(pair: GraphPair, progress: Progress) -> list[Channel]:
    from rlea.evidence.words import word_vectors

    channels = []
    is_searched = pair.source.num_entities * pair.target.num_entities <= MOST_SEARCHED
    for column, vectors in zip(("words", "words around"), word_vectors(pair), strict=True):
        found = Pairs(np.zeros(0, np.int32), np.zeros(0, np.int32))
        if is_searched:
            found = pairs_of(find_candidates(vectors, *_everybody(pair), PROPOSALS, progress))
        info = {"words": int(vectors.source.shape[1]), "searched": is_searched}
        channels.append(_of_sparse(WORDS, column, vectors, found, info))
    return channels


def _attributes(pair: GraphPair, links: Links, progress: Progress) -> Channel:
    from rlea.evidence.attributes import score_attributes

    found = score_attributes(replace(pair, train=links), progress=progress)

    def score(pairs: Pairs) -> Floats:
        support, conflict = found.weigh(pairs.source_ids, pairs.target_ids)
        return np.column_stack([np.minimum(support, MOST_SUPPORT) / SUPPORT_UNIT, conflict / CONFLICT_UNIT])

    def told(pairs: Pairs) -> Floats:
        return np.column_stack(found.weigh(pairs.source_ids, pairs.target_ids))

    proposals = Pairs(found.source_ids, found.target_ids)
    return Channel(ATTRIBUTES, ("attributes", "conflict"), proposals, score, found.as_dict(), told)


def _of_sparse(name: str, column: str, vectors: Embeddings, proposals: Pairs, info: dict[str, Any]) -> Channel:
    source, target = prepare(vectors.source, vectors), prepare(vectors.target, vectors)

    def score(wanted: Pairs) -> Floats:
        return multiply_sparse_pairs(source, target, wanted.source_ids, wanted.target_ids)[:, None]

    return Channel(name, (column,), proposals, score, info)


def pairs_of(candidates: Candidates) -> Pairs:
    """Candidates by the ids of their entities."""
    pairs = candidates.pairs
    return Pairs.of(candidates.source_ids[pairs.rows], candidates.target_ids[pairs.columns])


def _everybody(pair: GraphPair) -> tuple[Ids, Ids]:
    return np.arange(pair.source.num_entities, dtype=np.int32), np.arange(pair.target.num_entities, dtype=np.int32)


class Evidence:
    """The channels of one pair of graphs, each made once for the links that it is made with."""

    def __init__(self, pair: GraphPair, *, encoder: str = "", progress: Progress = silent) -> None:
        self.pair, self.encoder, self.progress = pair, encoder, progress
        self.seconds: dict[tuple[str, bytes], float] = {}  # that making each took
        self.asked: set[tuple[str, bytes]] = set()  # who was asked for; whoever counts costs may clear it
        self._kept: dict[tuple[str, bytes], list[Channel]] = {}

    def collect(self, links: Links, wanted: Sequence[str]) -> list[Channel]:
        """As `collect`, in the order of the names here."""
        # Words hang on no links.
        return [
            channel
            for name in (NAMES, WORDS, ATTRIBUTES)
            if name in wanted
            for channel in self._made(name, Links.empty() if name == WORDS else links)
        ]

    def reason(self, links: Links) -> list[Channel]:
        """PARIS from links, if it has found anything."""
        return self._made(PARIS, links)

    def _made(self, name: str, links: Links) -> list[Channel]:
        key = name, links.source_ids.tobytes() + b"|" + links.target_ids.tobytes()
        self.asked.add(key)
        if key not in self._kept:
            start = time.perf_counter()
            if name == PARIS:
                found = reason(self.pair, links, progress=self.progress)
                self._kept[key] = [found] if len(found.proposals) else []
            else:
                self._kept[key] = collect(self.pair, links, [name], encoder=self.encoder, progress=self.progress)
            self.seconds[key] = time.perf_counter() - start
        return self._kept[key]
