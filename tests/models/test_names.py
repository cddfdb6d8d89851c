"""Names as vectors: what folds together, and what must not look alike."""

import numpy as np
import polars as pl
import pytest

from rlea.graph import GraphPair, KnowledgeGraph
from rlea.graph.names import plain
from rlea.models.names import NamesSettings, embed_names
from rlea.search.candidates import find_candidates


def pair_of(source, target):
    empty = pl.DataFrame(schema=dict.fromkeys(["head", "relation", "tail"], pl.String))
    return GraphPair("x", KnowledgeGraph.build(empty, entities=source), KnowledgeGraph.build(empty, entities=target))


def similarity(one, other, *more):
    """Cosine of two names; `more` stand on both sides."""
    pair = pair_of([one, *more], [other, *more])
    found = find_candidates(embed_names(pair), [pair.source.entity_index[one]], [pair.target.entity_index[other]], 1)
    return max(float(found.forward_scores[0, 0]), 0.0)


@pytest.mark.parametrize(
    ("name", "folded"),
    [
        ("Île-de-France", "ile de france"),
        ("AC/DC", "ac dc"),
        ("  Müller  ", "muller"),
        ("STRASSE_1", "strasse 1"),
        ("…", ""),
        ("ঢাকা (শহর)", "ঢাকা শহর"),  # vowel signs tell words apart
        ("दिल्ली", "दिलली"),
        ("❤️ 7", "7"),
    ],
)
def test_names_are_folded(name, folded):
    assert plain(name) == folded


def test_the_same_name_is_one_and_strangers_are_near_nothing():
    assert similarity("Île-de-France", "ile de france") == pytest.approx(1.0, abs=1e-5)
    assert similarity("Berlin", "Beethoven") < 0.3  # a first letter in common must not be all that counts
    assert similarity("Berlin", "xyz") == 0.0
    assert similarity("Zambia", "Zambie", "Berlin", "Oslo") > 0.4


def test_rare_pieces_count_for_more():
    others = [f"University of {city}" for city in ("Oslo", "Rome", "Bern", "Kiel")]
    near = similarity("University of Xanadu", "Xanadu", *others)
    far = similarity("University of Xanadu", "University", *others)
    assert near > far


def test_no_letters_at_all_gives_no_candidates():
    pair = pair_of(["…", "!!"], ["??"])
    embeddings = embed_names(pair)
    found = find_candidates(embeddings, np.arange(2), np.arange(1), 1)
    assert len(found.pairs) == 0


def test_settings_and_seed():
    pair = pair_of(["Berlin", "Oslo"], ["Bern", "Oslo"])
    one, two = embed_names(pair, seed=1), embed_names(pair, seed=2)
    assert (one.source != two.source).nnz == 0
    assert one.is_sparse
    assert embed_names(pair, NamesSettings(2, 2)).source.shape[1] < one.source.shape[1]
    assert one.info["uses"] == "names"
