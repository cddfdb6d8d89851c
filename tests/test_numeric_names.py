"""Entities that are called by a number alone: as the last part of an identifier it is a code, and no name."""

import numpy as np
import pytest

import rlea
from rlea.evidence.names import name_channels
from rlea.graph import Links
from rlea.models.names import embed_names
from rlea.progress import silent
from rlea.search.name_pieces import embed_name_pieces

N = 60


@pytest.fixture
def shuffled():
    """Two graphs of one shape, whose numbers are dealt anew: equal numbers are never the same entity."""
    order = np.random.default_rng(0).permutation(N)
    while (order == np.arange(N)).any():
        order = np.random.default_rng(int(order[0]) + 1).permutation(N)
    edges = np.random.default_rng(3).integers(0, N, (4 * N, 2))
    first = [(f"http://a.org/{h}", "next", f"http://a.org/{t}") for h, t in edges.tolist()]
    second = [(f"http://b.org/{order[h]}", "follows", f"http://b.org/{order[t]}") for h, t in edges.tolist()]
    return rlea.read(first, second)


def test_numbers_of_identifiers_link_nothing(shuffled):
    names = shuffled.source.entities, shuffled.target.entities
    with pytest.raises(rlea.InputError, match="nothing to begin with"):
        rlea.align(shuffled)
    found = rlea.align(shuffled, matcher="best-first").matching
    for s, t in zip(found.source_ids.tolist(), found.target_ids.tolist(), strict=True):
        assert names[0][s].rpartition("/")[2] != names[1][t].rpartition("/")[2]


def test_both_searches_by_name_have_one_rule(shuffled):
    for vectors in (embed_names(shuffled), embed_name_pieces(shuffled)):
        assert vectors.source.nnz == vectors.target.nnz == 0
    (channel,) = name_channels(shuffled, Links.empty(), "", silent)
    assert not len(channel.proposals)


def test_a_label_may_be_a_number():
    label = "http://www.w3.org/2000/01/rdf-schema#label"
    graphs = [
        ([("http://x.org/a1", "r", "http://x.org/a2")], [(f"http://x.org/a{n}", label, str(1984 + n)) for n in (1, 2)])
        for _ in range(2)
    ]
    pair = rlea.read(*({"triples": triples, "literals": literals} for triples, literals in graphs))
    for vectors in (embed_names(pair), embed_name_pieces(pair)):
        assert vectors.source.nnz > 0
