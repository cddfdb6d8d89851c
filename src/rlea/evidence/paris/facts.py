"""The facts of both graphs as arrays for compiled code, with the functionality of every relation and attribute."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rlea.evidence.paris.literals import PRECISION_NAMES, literal_keys
from rlea.graph import Ids, KnowledgeGraph
from rlea.graph.names import is_opaque
from rlea.graph.neighbourhood import Neighbourhood, most_frequent
from rlea.progress import tick

Doubles = NDArray[np.float64]
Starts = NDArray[np.int64]

RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
NAME = "(name)"  # the attribute of entity names, where names are used as facts


@dataclass(frozen=True, eq=False)
class Values:
    """The literals of one graph whose value the other graph has too. Values have the same ids in both graphs.

    The facts of entity e are starts[e]:starts[e + 1] of `attribute_ids` and `value_ids`; the facts of value v are
    value_starts[v]:value_starts[v + 1] of `value_attribute_ids` and `value_entity_ids`.
    """

    attributes: tuple[str, ...]
    inverse_functionality: Doubles  # (num_attributes,) over all facts, also those whose value the other graph lacks
    starts: Starts  # (num_entities + 1,)
    attribute_ids: Ids  # (num_facts,)
    value_ids: Ids  # (num_facts,)
    value_starts: Starts  # (num_values + 1,)
    value_attribute_ids: Ids  # (num_facts,)
    value_entity_ids: Ids  # (num_facts,)


@dataclass(frozen=True, eq=False)
class Facts:
    """One graph: triples seen from both ends (loops left out), literals, and the classes of its entities."""

    relations: tuple[str, ...]
    edges: Neighbourhood
    values: Values
    classes: tuple[str, ...]
    class_starts: Starts  # (num_entities + 1,)
    class_ids: Ids  # (num_statements,)

    @property
    def num_entities(self) -> int:
        return len(self.edges.starts) - 1

    @property
    def edge_arrays(self) -> tuple[Starts, Ids, Ids]:
        """Triples by entity, for compiled code."""
        return self.edges.starts, self.edges.relation_ids, self.edges.neighbour_ids

    @property
    def value_arrays(self) -> tuple[Starts, Ids, Ids]:
        """Literals by entity, for compiled code."""
        return self.values.starts, self.values.attribute_ids, self.values.value_ids


def gather_facts(
    source: KnowledgeGraph, target: KnowledgeGraph, *, use_names: bool = False, max_predicates: int = 2000
) -> tuple[Facts, Facts]:
    """The facts of both graphs; with `use_names`, the name of every entity is one of them.

    Of more than `max_predicates` relations, attributes or classes of a graph only the most frequent count.
    """
    tick("reading facts")
    first = _literal_facts(source, use_names)
    tick("reading facts")
    second = _literal_facts(target, use_names)
    tick("comparing facts")
    # A day and a year are compared as years. The year of a day is a fact of its own attribute: it identifies less than
    # the day does.
    first, second = _with_coarser(first, _precisions(second)), _with_coarser(second, _precisions(first))
    first, second = _most_frequent_attributes(first, max_predicates), _most_frequent_attributes(second, max_predicates)
    shared = first.select("key").unique().join(second.select("key").unique(), on="key", how="semi").sort("key")
    numbers = shared.with_row_index("value")
    return _facts(source, first, numbers, max_predicates), _facts(target, second, numbers, max_predicates)


def _literal_facts(graph: KnowledgeGraph, use_names: bool) -> pl.DataFrame:
    """Entity id, attribute, key, precision and coarser keys of every literal except classes."""
    literals = graph.literals
    attributes = pl.Series(graph.attributes, dtype=pl.String)
    frame = pl.DataFrame(
        {
            "entity": literals.entity_ids,
            "attribute": attributes.gather(literals.attribute_ids),
            "value": pl.Series(literals.values, dtype=pl.String),
            "datatype": pl.Series(literals.datatypes, dtype=pl.String),
        },
        schema_overrides={"entity": pl.Int32, "attribute": pl.String},
    ).filter(pl.col("attribute") != RDF_TYPE)
    if use_names:
        named = pl.DataFrame(
            {
                "entity": np.arange(graph.num_entities, dtype=np.int32),
                "attribute": pl.repeat(NAME, graph.num_entities, dtype=pl.String, eager=True),
                "value": pl.Series(graph.names, dtype=pl.String),
                "datatype": pl.repeat("", graph.num_entities, dtype=pl.String, eager=True),
            }
        )
        numbers = named.filter(~pl.col("value").str.contains(r"\p{L}"))  # few, but where identifiers are numbers
        opaque = [
            entity
            for entity, name in numbers.select("entity", "value").iter_rows()
            if is_opaque(name, graph.entities[entity])
        ]
        if opaque:
            named = named.filter(~pl.col("entity").is_in(pl.Series(opaque, dtype=pl.Int32).implode()))
        frame = pl.concat([frame, named])
    # Values repeat, so each is read once.
    distinct = frame.select("value", "datatype").unique(maintain_order=True)
    keys = pl.concat([distinct, literal_keys(distinct)], how="horizontal")
    frame = frame.join(keys, on=["value", "datatype"], how="left", maintain_order="left")
    return frame.select("entity", "attribute", "key", "precision", "coarser").filter(pl.col("key").is_not_null())


def _precisions(rows: pl.DataFrame) -> set[int]:
    return set(rows["precision"].drop_nulls().unique().to_list())


def _with_coarser(rows: pl.DataFrame, other_precisions: set[int]) -> pl.DataFrame:
    """Entity, attribute and key of every fact; dates also at the coarser precisions that the other graph has."""
    parts = [rows.select("entity", "attribute", "key")]
    for precision in sorted(other_precisions):
        finer = rows.filter(pl.col("precision") > precision)
        if len(finer):
            name = pl.format("{} ({})", "attribute", pl.lit(PRECISION_NAMES[precision]))
            key = pl.col("coarser").list.get(precision)
            parts.append(finer.select("entity", name.alias("attribute"), key.alias("key")))
    return pl.concat(parts).drop_nulls("key").unique()


def _most_frequent_attributes(rows: pl.DataFrame, count: int) -> pl.DataFrame:
    frequency = rows.group_by("attribute").len().sort([-pl.col("len").cast(pl.Int64), "attribute"])
    return rows if len(frequency) <= count else rows.join(frequency.head(count), on="attribute", how="semi")


def _facts(graph: KnowledgeGraph, rows: pl.DataFrame, numbers: pl.DataFrame, max_predicates: int) -> Facts:
    counts = (
        rows.group_by("attribute")
        .agg(pl.len().alias("facts"), pl.col("key").n_unique())
        .sort("attribute")
        .with_row_index("a")
    )
    facts = counts["facts"].to_numpy().astype(np.float64)
    rows = (
        rows.join(counts.select("attribute", "a"), on="attribute").join(numbers, on="key").sort("entity", "a", "value")
    )
    entity, attribute, value = (rows[name].to_numpy().astype(np.int32) for name in ("entity", "a", "value"))
    by_value = np.lexsort((entity, attribute, value))
    values = Values(
        tuple(counts["attribute"].to_list()),
        counts["key"].to_numpy() / facts,  # the harmonic mean over the values
        group_starts(entity, graph.num_entities),
        attribute,
        value,
        group_starts(value, len(numbers)),
        attribute[by_value],
        entity[by_value],
    )
    classes, class_entity, class_ids = _classes(graph, max_predicates)
    # Classes are aligned from their members and are no evidence for entities, as in the paper.
    typing = [number for number, name in enumerate(graph.relations) if name == RDF_TYPE]
    untyped = replace(graph, triples=graph.triples[~np.isin(graph.triples[:, 1], typing)]) if typing else graph
    relations = graph.relations
    if len(relations) > max_predicates:
        relations = tuple(relations[number] for number in most_frequent(untyped, max_predicates))
    edges = Neighbourhood.of(untyped, max_predicates)
    return Facts(relations, edges, values, classes, group_starts(class_entity, graph.num_entities), class_ids)


def _classes(graph: KnowledgeGraph, most: int) -> tuple[tuple[str, ...], Ids, Ids]:
    """The largest classes, and (entity, class) memberships sorted by entity; from triples and literals."""
    parts = [pl.DataFrame(schema={"entity": pl.Int32, "class": pl.String})]
    if RDF_TYPE in graph.relations:
        triples = graph.triples[graph.triples[:, 1] == graph.relations.index(RDF_TYPE)]
        entities = pl.Series(graph.entities, dtype=pl.String)
        parts.append(pl.DataFrame({"entity": triples[:, 0].copy(), "class": entities.gather(triples[:, 2].copy())}))
    if RDF_TYPE in graph.attributes:
        literals = graph.literals
        rows = np.flatnonzero(literals.attribute_ids == graph.attributes.index(RDF_TYPE))
        values = pl.Series(literals.values, dtype=pl.String)
        parts.append(pl.DataFrame({"entity": literals.entity_ids[rows], "class": values.gather(rows)}))
    statements = pl.concat(parts).unique().sort("entity", "class")
    sizes = statements.group_by("class").len().sort([-pl.col("len").cast(pl.Int64), "class"])
    if len(sizes) > most:
        statements = statements.join(sizes.head(most), on="class", how="semi", maintain_order="left")
    classes = statements.select(pl.col("class").unique().sort())
    numbered = statements.join(classes.with_row_index("number"), on="class", how="left", maintain_order="left")
    return (
        tuple(classes["class"].to_list()),
        statements["entity"].to_numpy().astype(np.int32),
        numbered["number"].to_numpy().astype(np.int32),
    )


def group_starts(groups: Ids, num_groups: int) -> Starts:
    """Where the rows of each group begin if rows are sorted by group; (num_groups + 1,)."""
    starts = np.zeros(num_groups + 1, dtype=np.int64)
    if len(groups):
        np.cumsum(np.bincount(groups, minlength=num_groups), out=starts[1:])
    return starts
