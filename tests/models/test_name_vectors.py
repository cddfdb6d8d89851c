import sys
import types
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from rlea.errors import InputError
from rlea.graph import LITERAL_COLUMNS, GraphPair, KnowledgeGraph, Links
from rlea.io.synthetic import SyntheticSettings, generate
from rlea.models.name_vectors import name_vectors, readable_names
from rlea.models.names import embed_names

WORDS = ["Amber Field", "Brown Bridge", "Copper Hill", "Dusty Lane", "Elder Wood", "Frosty Lake", "Grey Harbour"]


def opaque_pair(num_seeds: int) -> GraphPair:
    """A graph with names and one of codes, whose attributes hold: names, a nickname, nothing but digits."""
    size = len(WORDS)
    readable = [f"http://a.org/{word.replace(' ', '_')}" for word in WORDS]
    codes = [f"http://b.org/Q{100 + i}" for i in range(size)]
    chain = {"head": readable[:-1], "relation": ["r"] * (size - 1), "tail": readable[1:]}
    coded = {"head": codes[:-1], "relation": ["s"] * (size - 1), "tail": codes[1:]}
    rows = [(codes[i], "title", WORDS[i], "", "") for i in range(size - 1)]  # the last one has no title
    rows += [(code, "nickname", "Same Nickname", "", "") for code in codes]
    rows += [(code, "number", "12345", "", "") for code in codes]
    literals = pl.DataFrame(rows, schema=LITERAL_COLUMNS, orient="row")
    source = KnowledgeGraph.build(pl.DataFrame(chain))
    # The names are codes on purpose: otherwise the titles would be found by looking.
    target = KnowledgeGraph.build(pl.DataFrame(coded), literals, names=dict.fromkeys(codes, "Q1"))
    seeds = Links.of(np.arange(num_seeds), np.arange(num_seeds))
    return GraphPair("opaque", source, target, train=seeds)


def test_seeds_show_which_attribute_holds_the_names():
    pair = opaque_pair(5)
    names, told = readable_names(pair.target, pair.source, pair.train)
    assert names == (*WORDS[:-1], "")
    assert told == {"nameless": 1, "opaque_identifiers_named_by": {"title": 6}}
    names, told = readable_names(pair.source, pair.target, pair.train)
    assert (names, told) == (tuple(WORDS), {"nameless": 0})


def test_too_few_seeds_show_nothing():
    pair = opaque_pair(4)
    assert readable_names(pair.target, pair.source, pair.train) == (("",) * 7, {"nameless": 7})


def test_vectors_of_one_name_are_one_vector_and_of_none_zero():
    vectors = name_vectors(opaque_pair(5), 64, seed=3)
    np.testing.assert_allclose(vectors.source[:-1], vectors.target[:-1], atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(vectors.source, axis=1), 1, atol=1e-5)
    assert not vectors.target[-1].any()
    assert vectors.info == {
        "name_vectors": "character n-grams, projected to 64 dimensions",
        "source_names": {"nameless": 0},
        "target_names": {"nameless": 1, "opaque_identifiers_named_by": {"title": 6}},
    }


def test_the_projection_keeps_similarities_and_follows_from_the_seed(monkeypatch: pytest.MonkeyPatch):
    pair = generate(SyntheticSettings(num_entities=100, name_noise=0.2))
    exact = embed_names(pair)
    full = (exact.source @ exact.target.T).toarray()
    vectors = name_vectors(pair, 400, seed=1)
    np.testing.assert_allclose(vectors.source @ vectors.target.T, full, atol=5 / np.sqrt(400))
    assert (name_vectors(pair, 400, seed=1).source == vectors.source).all()
    assert (name_vectors(pair, 400, seed=2).source != vectors.source).any()
    monkeypatch.setattr("rlea.models.name_vectors._FEATURES", 100)  # in pieces the same directions are drawn
    np.testing.assert_allclose(name_vectors(pair, 400, seed=1).source, vectors.source, atol=1e-5)


def test_graphs_without_readable_names_have_zero_vectors():
    pair = opaque_pair(0)
    coded = GraphPair("codes", pair.target, pair.target, train=Links.of([0], [0]))
    vectors = name_vectors(coded, 8)
    assert not vectors.source.any()
    assert vectors.info["source_names"]["nameless"] == 7


def test_a_sentence_encoder_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(InputError, match=r"needs the package sentence-transformers; pip install .rlea\[encoder\]"):
        name_vectors(opaque_pair(5), 8, encoder=str(tmp_path))


@pytest.mark.parametrize("dim", [3, 8])
def test_a_sentence_encoder_gives_the_vectors(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, dim: int):
    class Encoder:
        def __init__(self, folder: str, device: str) -> None:
            assert (folder, device) == (str(tmp_path), "cpu")

        def encode(self, texts: list[str], show_progress_bar: bool) -> np.ndarray:
            return np.array([[len(text), text.count("e"), text.count(" "), text.count("r"), 1] for text in texts])

    monkeypatch.setitem(sys.modules, "sentence_transformers", types.SimpleNamespace(SentenceTransformer=Encoder))
    vectors = name_vectors(opaque_pair(5), dim, encoder=str(tmp_path))
    assert vectors.source.shape == (7, dim)
    np.testing.assert_allclose(vectors.source[:-1], vectors.target[:-1], atol=1e-6)
    assert len(np.unique(vectors.source.round(5), axis=0)) > 3
    assert vectors.info["name_vectors"] == f"sentence encoder {tmp_path}"
    with pytest.raises(InputError, match="is no folder of a sentence encoder"):
        name_vectors(opaque_pair(5), dim, encoder=str(tmp_path / "absent"))
