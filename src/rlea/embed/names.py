"""Names as vectors: character n-grams weighted by how rare they are. Sparse, no training, no seeds."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import asdict, dataclass

import numpy as np

from rlea.embeddings import Embeddings
from rlea.graph import GraphPair
from rlea.names import is_vowel_sign
from rlea.progress import Progress, silent

_OTHERS = re.compile(r"[\W_]+")  # all but letters and digits


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
    """A name without case, accents and punctuation, so that "Île-de-France" meets "ile de france".

    Vowel signs of Indic and like scripts stay: without them many words would be the same.
    """
    if name.isascii():
        return _OTHERS.sub(" ", name.lower()).strip()
    decomposed = unicodedata.normalize("NFKD", name).casefold()
    return " ".join(decomposed.translate(spelling(decomposed)).split())


def spelling(text: str) -> dict[int, str | None]:
    """What becomes of the characters of a decomposed text, for `str.translate`: accents go, punctuation is a blank."""
    characters = set(text)
    others = (one for one in characters if _OTHERS.match(one) and not is_vowel_sign(one))
    return {ord(one): None if unicodedata.combining(one) else " " for one in others}
