"""A graph with what was added to it later: entities, triples and literals of both, each once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from rlea.graph import GraphPair, Ids, KnowledgeGraph, Links
from rlea.graph.frames import literals_frame, triples_frame


def union_of(graph: KnowledgeGraph, added: Sequence[KnowledgeGraph]) -> KnowledgeGraph:
    """One graph of several.

    Names are chosen as for a graph that was read at once, unless those of the first were given: then entities keep
    theirs, and the others have those that they came with.
    """
    if not added:
        return graph
    own = _built([graph], {})
    is_chosen = own.names == graph.names
    names = {} if is_chosen else {name: text for one in [*added[::-1], graph] for name, text in _names(one).items()}
    return replace(_built([graph, *added], names), columns=graph.columns)


def _names(graph: KnowledgeGraph) -> dict[str, str]:
    return dict(zip(graph.entities, graph.names, strict=True))


def _built(graphs: Sequence[KnowledgeGraph], names: dict[str, str]) -> KnowledgeGraph:
    return KnowledgeGraph.build(
        pl.concat([triples_frame(graph) for graph in graphs]),
        pl.concat([literals_frame(graph) for graph in graphs]),
        names=names,
        entities=dict.fromkeys(name for graph in graphs for name in graph.entities),
        notes=tuple(dict.fromkeys(note for graph in graphs for note in graph.notes)),
    )


def grown(pair: GraphPair, source: KnowledgeGraph, target: KnowledgeGraph) -> GraphPair:
    """The same links between larger graphs, in which entities have other numbers."""
    ids = new_ids(pair.source, source), new_ids(pair.target, target)
    train, valid, test = (placed(links, *ids) for links in (pair.train, pair.valid, pair.test))
    barred = pair.cannot_link.joined(*ids)
    return replace(pair, source=source, target=target, train=train, valid=valid, test=test, cannot_link=barred)


def new_ids(graph: KnowledgeGraph, larger: KnowledgeGraph) -> Ids:
    """The number of every entity of a graph in a larger one, (num_entities,)."""
    index = larger.entity_index
    return np.array([index[name] for name in graph.entities], np.int32)


def placed(links: Links, source_ids: Ids, target_ids: Ids) -> Links:
    """Links by other numbers."""
    return Links.of(source_ids[links.source_ids], target_ids[links.target_ids])
