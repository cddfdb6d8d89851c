"""Names as vectors: character n-grams weighted by how rare they are. Sparse, no training, no seeds."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import asdict, dataclass

import numpy as np

from rlea.embeddings import Embeddings
from rlea.graph import GraphPair
from rlea.progress import Progress, silent


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
    from sklearn.feature_extraction.text import TfidfVectorizer

    settings = settings or NamesSettings()
    source = [plain(name) for name in pair.source.names]
    target = [plain(name) for name in pair.target.names]
    vectorizer = TfidfVectorizer(
        analyzer="char_wb",
        ngram_range=(settings.shortest, settings.longest),
        lowercase=False,
        min_df=1,  # a piece that occurs once connects nothing, but without it the rest would look too similar
        sublinear_tf=True,
        dtype=np.float32,
    )
    progress("names", 0, 1)
    try:
        both = vectorizer.fit_transform(source + target).tocsr()
    except ValueError:  # no name has a letter: nothing is comparable, which is an answer too
        from scipy.sparse import csr_matrix

        both = csr_matrix(np.zeros((len(source) + len(target), 1), dtype=np.float32))
    progress("names", 1, 1)
    info = {"model": "names", "settings": asdict(settings), "uses": "names"}
    return Embeddings(both[: len(source)], both[len(source) :], name="names", measure="cosine", info=info)


def plain(name: str) -> str:
    """A name without case, accents and punctuation, so that "Île-de-France" meets "ile de france"."""
    decomposed = unicodedata.normalize("NFKD", name).casefold()
    letters = "".join(character for character in decomposed if not unicodedata.combining(character))
    return re.sub(r"[\W_]+", " ", letters).strip()
