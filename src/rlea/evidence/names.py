"""The channel of names: by character n-grams, and by a sentence encoder where one is given."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rlea.evidence import NAMES
from rlea.evidence.channel import Channel
from rlea.evidence.vectors import by_products
from rlea.graph import GraphPair, Links
from rlea.graph.texts import Texts
from rlea.progress import Progress
from rlea.search.candidates import find_candidates
from rlea.search.embeddings import Embeddings
from rlea.search.pairs import Floats, Pairs
from rlea.search.rows import inner_products

PROPOSALS = 10  # nearest of every entity, both ways
ENCODED = 256  # dimensions of a sentence encoder's vectors


def name_channels(pair: GraphPair, links: Links, encoder: str, progress: Progress) -> list[Channel]:
    """Names as strings, and their meanings by an encoder.

    `links` teach which attribute holds the names of entities with opaque identifiers; which entity is linked to which
    does not show in a score.
    """
    from rlea.models.name_vectors import name_vectors, readable_names
    from rlea.search.name_index import search_names

    back = Links(links.target_ids, links.source_ids)
    source, told_source = readable_names(pair.source, pair.target, links)
    target, told_target = readable_names(pair.target, pair.source, back)
    named_source = replace(pair.source, names=Texts.of(source))
    named_target = replace(pair.target, names=Texts.of(target))
    named = replace(pair, source=named_source, target=named_target)
    found = search_names(named, *pair.entity_ids, PROPOSALS, progress=progress)
    info = {"source": told_source, "target": told_target}
    proposals = Pairs.of_candidates(found.candidates)
    channels = [by_products(NAMES, "name", "similarity of the names", found.candidates.embeddings, proposals, info)]
    if encoder:
        vectors = name_vectors(replace(pair, train=links), ENCODED, encoder=encoder)
        dense = Embeddings(vectors.source, vectors.target, measure="inner")
        close = Pairs.of_candidates(find_candidates(dense, *pair.entity_ids, PROPOSALS, progress))

        def meaning(pairs: Pairs) -> Floats:
            cosines = inner_products(vectors.source, vectors.target, pairs.source_ids, pairs.target_ids)
            return np.asarray(np.maximum(cosines, 0)[:, None], np.float32)

        # An entity without a name has the zero vector, which is as near to all as to any.
        close = close.some(meaning(close)[:, 0] > 0)
        told = ("similarity by the sentence encoder",)
        channels.append(Channel(NAMES, ("meaning",), close, meaning, {"encoder": encoder}, meanings=told))
    return channels
