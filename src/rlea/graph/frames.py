"""Graphs as frames of strings."""

from __future__ import annotations

import polars as pl

from rlea.graph import KnowledgeGraph


def triples_frame(graph: KnowledgeGraph) -> pl.DataFrame:
    """The columns head, relation, tail as identifiers."""
    entities, relations = graph.entities.series(), pl.Series(graph.relations, dtype=pl.String)
    columns = zip(("head", "relation", "tail"), (entities, relations, entities), graph.triples.T, strict=True)
    return pl.DataFrame({name: series.gather(ids.copy()) for name, series, ids in columns})


def literals_frame(graph: KnowledgeGraph) -> pl.DataFrame:
    """The columns entity, attribute, value, datatype, language."""
    literals = graph.literals
    return pl.DataFrame(
        {
            "entity": graph.entities.series().gather(literals.entity_ids),
            "attribute": pl.Series(graph.attributes, dtype=pl.String).gather(literals.attribute_ids),
            "value": literals.values.series(),
            "datatype": literals.datatypes.series(),
            "language": literals.languages.series(),
        }
    )
