"""Names as vectors: character n-grams weighted by how rare they are. Sparse, no training, no seeds."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cache

from rlea.graph import GraphPair, KnowledgeGraph
from rlea.graph.names import is_opaque, plain
from rlea.progress import Progress, silent
from rlea.search.bags import count_terms, having, weigh_terms
from rlea.search.embeddings import Embeddings


@dataclass(frozen=True)
class NamesSettings:
    """How names are cut into features."""

    shortest: int = 2  # two-letter pieces keep short names (states, codes) comparable
    longest: int = 4  # longer pieces only repeat what the shorter ones say


def embed_names(
    pair: GraphPair, settings: NamesSettings | None = None, *, seed: int = 0, progress: Progress = silent
) -> Embeddings:
    """TF-IDF vectors over character n-grams of the entities' names; rows are compared by cosine.

    `seed` is accepted as by every embedding and changes nothing.
    """
    settings = settings or NamesSettings()
    progress("names", 0, 1)
    cut = cache(lambda word: pieces(word, settings))  # words recur
    names = [plain(name) for graph in (pair.source, pair.target) for name in _meant(graph)]
    # A piece that occurs once connects nothing, but without it the rest would look too similar.
    counts = count_terms([piece for word in name.split() for piece in cut(word)] for name in names)
    both = weigh_terms(counts, having(counts))
    progress("names", 1, 1)
    info = {"model": "names", "settings": asdict(settings), "uses": "names"}
    count = pair.source.num_entities
    return Embeddings(both[:count], both[count:], name="names", measure="cosine", info=info, is_fitted=False)


def _meant(graph: KnowledgeGraph) -> list[str]:
    """The name of every entity, "" where it is only the number that its identifier ends in."""
    return [
        "" if is_opaque(name, identifier) else name
        for name, identifier in zip(graph.names, graph.entities, strict=True)
    ]


def pieces(word: str, settings: NamesSettings) -> list[str]:
    """The pieces of a word with a blank before and behind it, so that its ends differ from what is within.

    A word that is shorter than a piece is one piece, once.
    """
    padded = f" {word} "
    found = []
    for size in range(settings.shortest, settings.longest + 1):
        found += [padded[first : first + size] for first in range(max(len(padded) - size, 0) + 1)]
        if size >= len(padded):
            break
    return found
