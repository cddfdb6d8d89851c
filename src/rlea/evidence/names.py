"""The channel of names: by character n-grams, and by a sentence encoder where one is given."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from rlea.evidence import NAMES
from rlea.evidence.channel import Channel
from rlea.evidence.vectors import by_products
from rlea.graph import GraphPair, Links
from rlea.graph.size import is_large
from rlea.graph.texts import Texts
from rlea.progress import Progress
from rlea.search.candidates import find_candidates
from rlea.search.embeddings import Embeddings
from rlea.search.name_index import NameSearch, search_names
from rlea.search.pairs import Floats, Pairs
from rlea.search.rows import inner_products

PROPOSALS = 10  # nearest of every entity, both ways
ENCODED = 256  # dimensions of a sentence encoder's vectors
# Visits of an index of large graphs for one name, at the most: those that find a given share of the nearest grow with
# the number of names.
MOST_VISITS = 4000


class NameSearches:
    """The last search by name. What links teach of names is often nothing new, and a search takes minutes."""

    def __init__(self, proposed: int = PROPOSALS) -> None:
        """In large graphs so many partners are looked for."""
        self._proposed = proposed
        self._names: tuple[tuple[str, ...], tuple[str, ...]] | None = None
        self._found: NameSearch | None = None

    def __call__(
        self, pair: GraphPair, source: tuple[str, ...], target: tuple[str, ...], progress: Progress
    ) -> NameSearch:
        """Nearest names, both ways, where the entities of the two graphs are called so."""
        if self._found is None or self._names != (source, target):
            self._found = None  # first: two of them would be held
            called = replace(pair.source, names=Texts.of(source)), replace(pair.target, names=Texts.of(target))
            large = is_large(len(source), len(target))
            count, most = (self._proposed, MOST_VISITS) if large else (PROPOSALS, None)
            named = replace(pair, source=called[0], target=called[1])
            self._found = search_names(named, *pair.entity_ids, count, most_visits=most, progress=progress)
            self._names = source, target
        return self._found


def name_channels(
    pair: GraphPair, links: Links, encoder: str, progress: Progress, searches: NameSearches | None = None
) -> list[Channel]:
    """Names as strings, and their meanings by an encoder.

    `links` teach which attribute holds the names of entities with opaque identifiers; which entity is linked to which
    does not show in a score.
    """
    from rlea.models.name_vectors import name_vectors, readable_names

    back = Links(links.target_ids, links.source_ids)
    source, told_source = readable_names(pair.source, pair.target, links)
    target, told_target = readable_names(pair.target, pair.source, back)
    found = (searches or NameSearches())(pair, source, target, progress)
    info: dict[str, Any] = {"source": told_source, "target": told_target}
    if not found.is_exact:
        info |= {"recall": round(found.recall, 4), "sampled": found.sampled}
    proposals = Pairs.of_candidates(found.candidates)
    vectors = found.candidates.embeddings
    if is_large(pair.source.num_entities, pair.target.num_entities):  # of unit length already: no second copy
        vectors = Embeddings(vectors.source, vectors.target, name="names", measure="inner", is_fitted=False)
    channels = [by_products(NAMES, "name", "similarity of the names", vectors, proposals, info)]
    if encoder:
        meant = name_vectors(replace(pair, train=links), ENCODED, encoder=encoder)
        dense = Embeddings(meant.source, meant.target, measure="inner")
        close = Pairs.of_candidates(find_candidates(dense, *pair.entity_ids, PROPOSALS, progress))

        def meaning(pairs: Pairs) -> Floats:
            cosines = inner_products(meant.source, meant.target, pairs.source_ids, pairs.target_ids)
            return np.asarray(np.maximum(cosines, 0)[:, None], np.float32)

        # An entity without a name has the zero vector, which is as near to all as to any.
        close = close.some(meaning(close)[:, 0] > 0)
        told = ("similarity by the sentence encoder",)
        channels.append(Channel(NAMES, ("meaning",), close, meaning, {"encoder": encoder}, meanings=told))
    return channels
