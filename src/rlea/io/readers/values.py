"""Which tails of a table of triples are values ("Basel", "1971-09-15", "120.5") and not entities.

A table has one column for both. The tails of a relation are values if

- none of them stands as a head, and
- nearly all of them look unlike the identifiers of the graph, which its heads show.

What looks unlike an identifier depends on what the heads are:

| heads | a tail is no identifier if it |
|---|---|
| IRIs | is no IRI and no `prefix:name` |
| `prefix:name`, `kind/name`, `/m/0d3k` | has no such prefix |
| codes (`p2`, `Q42`, `12`) | has no digit, or is of one of the forms below |
| anything else, such as names | is of one of the forms below |

The forms are those that no head has: text with spaces, a number with decimals, a date, text in quotes. In doubt a tail
is an entity: whole numbers and single words are identifiers in many graphs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import polars as pl

from rlea.io.readers.columns import Table
from rlea.io.readers.literals import split_literals
from rlea.progress import counted

_MOST = 0.95  # share of heads that make a rule; a few are dirty in every file
_NEARLY_ALL = 0.9  # share of a relation's tails that must look unlike identifiers
_IRI = r"^<?[A-Za-z][A-Za-z0-9+.\-]*://"
# A prefix has a letter, unlike the day in 15/09/1971 and the hour in 12:30.
_CURIE = rf"{_IRI}|^_:\S+$|^<?urn:|^[^\s/:#\"]*[A-Za-z_][^\s/:#\"]*:\S+$"
_PREFIXED = rf"{_CURIE}|^/\S+$|^[^\s/:#\"]*[A-Za-z_][^\s/:#\"]*[/#]\S+$"
_CODE = r"^[^\s\d]{0,6}\d+[^\s]{0,12}$"
_FORMS = (
    r"\s",
    r"^[+-]?\d+[.,]\d+(?:[eE][+-]?\d+)?%?$|^[+-]?\d+(?:\.\d+)?[eE][+-]?\d+$",
    r"^[+-]?\d{4,}-\d\d(?:-\d\d(?:[T ].*)?)?$|^\d{1,2}[./]\d{1,2}[./]\d{2,4}$|^\d{1,2}:\d\d(?::\d\d)?$",
    r'^"',
)


def tell_values(triples: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame | None, str]:
    """Triples of entities, the literals among them (None if there are none), and a note on what was decided.

    `triples` has the string columns head, relation and tail; literals have entity, attribute, value, datatype,
    language.

    >>> rows = [("city/1", "near", "city/2"), ("city/2", "near", "city/1"), ("city/1", "name", "Basel")]
    >>> told = tell_values(pl.DataFrame(rows, schema=["head", "relation", "tail"], orient="row"))
    >>> told[1]["value"].to_list()
    ['Basel']
    """
    heads = triples["head"].unique()
    tails = triples.select("relation", "tail").unique()
    judged = tails.with_columns(
        is_head=tails["tail"].is_in(heads.implode()), is_odd=_looks_unlike(heads, tails["tail"])
    )
    by_relation = judged.group_by("relation").agg(pl.col("is_head").any(), pl.col("is_odd").mean())
    chosen = by_relation.filter(~pl.col("is_head"), pl.col("is_odd") >= _NEARLY_ALL)["relation"].sort()
    if chosen.is_empty():
        return triples, None, ""
    is_value = triples["relation"].is_in(chosen.implode())
    rows = triples.filter(is_value)
    literals = rows.select(entity="head", attribute="relation").hstack(split_literals(rows["tail"]))
    listed = ", ".join(chosen[:5].to_list()) + (", ..." if len(chosen) > 5 else "")
    number = counted(len(chosen), "relation")
    note = f"the tails of {number} ({listed}) are read as values, not as entities, as they look unlike its identifiers"
    return triples.filter(~is_value), literals, note


def values_apart(tables: Mapping[str, Table]) -> tuple[Mapping[str, Table], tuple[str, ...]]:
    """The tables of a graph with the values of a lone text file of triples as literals, and notes.

    Where there are tables of literals or names beside it, or columns in Parquet or in memory, whoever made them has
    told entities from values.
    """
    given = tables["triples"]
    if len(tables) > 1 or given.unit != "line" or given.frame.is_empty():
        return tables, ()
    triples, literals, note = tell_values(given.frame.select("head", "relation", "tail"))
    if literals is None:
        return tables, ()
    told = {"triples": replace(given, frame=triples), "literals": replace(given, frame=literals)}
    return told, (f"{given.path.name}: {note}",)


def _looks_unlike(heads: pl.Series, tails: pl.Series) -> pl.Series:
    """Whether each tail looks unlike the heads."""

    def share(pattern: str) -> float:
        return float(heads.str.contains(pattern).mean() or 0.0)  # type: ignore[arg-type]

    for heads_are, identifier in ((_IRI, _CURIE), (_PREFIXED, _PREFIXED)):
        if share(heads_are) >= _MOST:
            return ~tails.str.contains(identifier)
    odd = pl.repeat(False, len(tails), dtype=pl.Boolean, eager=True)
    if share(_CODE) >= _MOST:
        # IRIs and the like are identifiers whatever the heads are.
        odd = ~tails.str.contains(r"\d") & ~tails.str.contains(_PREFIXED)
    for form in _FORMS:
        if share(form) <= 1 - _MOST:
            odd = odd | (tails.str.contains(form) & ~tails.str.contains(_IRI))
    return odd
