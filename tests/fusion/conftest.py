"""Channels made by hand, graphs of a few words, and planted pairs of some hundred entities."""

import numpy as np
import polars as pl
import pytest

from rlea.evidence.channel import Channel, Table
from rlea.graph import LITERAL_COLUMNS, GraphPair, KnowledgeGraph, Links
from rlea.io.synthetic import SyntheticSettings, generate
from rlea.search.pairs import Pairs


def pairs_from(rows):
    """Pairs of (source, target) rows, in any order."""
    rows = np.array(sorted((int(s), int(t)) for s, t in rows), np.int32).reshape(-1, 2)
    return Pairs(rows[:, 0].copy(), rows[:, 1].copy())


def make_channel(name, said, column=None):
    """A channel that says a number of each pair of a dict, and 0 of all others."""
    pairs = pairs_from(said)
    scores = np.array([said[key] for key in zip(pairs.source_ids.tolist(), pairs.target_ids.tolist(), strict=True)])
    table = Table(pairs, scores.astype(np.float32))
    return Channel(name, (column or name,), pairs, lambda wanted: table(wanted)[:, None])


def make_graph(triples=(), literals=(), entities=()):
    """A graph from (head, relation, tail) and (entity, attribute, value) rows."""
    edges = pl.DataFrame(list(triples), schema=dict.fromkeys(["head", "relation", "tail"], pl.String), orient="row")
    rows = [(*row, "", "") for row in literals]
    told = pl.DataFrame(rows, schema=dict.fromkeys(LITERAL_COLUMNS, pl.String), orient="row")
    return KnowledgeGraph.build(edges, told, entities=entities)


def links_of(matching):
    """Links as a set."""
    return set(zip(matching.source_ids.tolist(), matching.target_ids.tolist(), strict=True))


def bytes_of(matching):
    """All of a matching, confidences to the last bit."""
    return matching.source_ids.tobytes(), matching.target_ids.tobytes(), matching.confidences.tobytes()


def gold_of(pair):
    """All links of a pair."""
    return Links.union([pair.train, pair.valid, pair.test])


def unlinked(pair, seeds=None):
    """The pair as a user has it: graphs, and seeds if any."""
    return GraphPair(pair.name, pair.source, pair.target, train=seeds or Links.empty())


@pytest.fixture(scope="package")
def planted():
    """300 entities a graph; a third of the names is missing on either side, and the others are misspelt."""
    return generate(SyntheticSettings(300, seeds=0.5, name_noise=0.3, nameless=0.3, values_per_entity=2.0, seed=5))
