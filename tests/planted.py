"""Graphs, channels and pairs of graphs whose answer is known, for tests of evidence and agent."""

import numpy as np
import polars as pl

from rlea.evidence.channel import Channel, ScoreTable
from rlea.graph import LITERAL_COLUMNS, GraphPair, KnowledgeGraph, Links
from rlea.io.synthetic import SyntheticSettings, generate
from rlea.search.pairs import Pairs


def make_graph(triples=(), literals=(), entities=()):
    """A graph from (head, relation, tail) and (entity, attribute, value[, datatype[, language]]) rows."""
    edges = pl.DataFrame(list(triples), schema=dict.fromkeys(["head", "relation", "tail"], pl.String), orient="row")
    rows = [(*row, "", "")[: len(LITERAL_COLUMNS)] for row in literals]
    values = pl.DataFrame(rows, schema=dict.fromkeys(LITERAL_COLUMNS, pl.String), orient="row")
    return KnowledgeGraph.build(edges, values, entities=entities)


def make_pair(source, target, seeds=(), **links):
    """A pair of graphs; seeds are pairs of identifiers."""
    known = Links.of([source.entity_index[one] for one, _ in seeds], [target.entity_index[other] for _, other in seeds])
    return GraphPair("", source, target, train=known, **links)


def make_pairs(rows):
    """Pairs from (source, target) rows in any order."""
    rows = np.array(sorted((int(s), int(t)) for s, t in rows), np.int32).reshape(-1, 2)
    return Pairs(rows[:, 0].copy(), rows[:, 1].copy())


def make_table(scores, default=0.0):
    """The scores of a dict from pairs to numbers."""
    return ScoreTable(make_pairs(scores), np.array([scores[pair] for pair in sorted(scores)], np.float32), default)


def make_channel(name, scores, column=None):
    """A channel that proposes the pairs of a dict and has its numbers as scores."""
    table = make_table(scores)
    return Channel(name, (column or name,), table.pairs, lambda wanted: table(wanted)[:, None])


def rows_of(links):
    """Links, pairs or decisions as (source, target) rows, in their order."""
    return list(zip(links.source_ids.tolist(), links.target_ids.tolist(), strict=True))


def links_of(links):
    """The same as a set."""
    return set(rows_of(links))


def bytes_of(matching):
    """All of a matching, confidences to the last bit."""
    return matching.source_ids.tobytes(), matching.target_ids.tobytes(), matching.confidences.tobytes()


def arrays_of(candidates):
    """All of the candidate lists, both ways."""
    names = "forward_columns", "forward_scores", "backward_rows", "backward_scores"
    return [getattr(candidates, name) for name in names]


def take(links, places):
    """Some of the links."""
    return Links.of(links.source_ids[places], links.target_ids[places])


def gold_of(pair):
    """All links of a pair."""
    return Links.union([pair.train, pair.valid, pair.test])


def unlinked(pair, seeds=None):
    """The pair as a user has it: graphs, and seeds if any."""
    return GraphPair(pair.name, pair.source, pair.target, train=seeds or Links.empty())


def make_planted():
    """300 entities a graph, 150 seeds; a third of the names is missing on either side, the others are misspelt."""
    return generate(SyntheticSettings(300, seeds=0.5, name_noise=0.3, nameless=0.3, values_per_entity=2.0, seed=5))
