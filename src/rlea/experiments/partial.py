"""Pairs of graphs that share only a part: what is left of a whole pair, tables, unrelated graphs.

Gold is complete in all of them: a link that is not gold is wrong.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from rlea.graph import LITERAL_COLUMNS, GraphPair, KnowledgeGraph, Links
from rlea.graph.names import plain
from rlea.io.readers.text import check_file

# Two tables, and what stands between the fields of a row.
TABLE_FILES = {"shops": ("abt.csv", "buy.csv", "|"), "bibliographies": ("dblp.csv", "acm.csv", "%")}


def cut(pair: GraphPair, gold: Links, share: float, seed: int = 0) -> tuple[GraphPair, Links]:
    """A pair with a share of its gold links and no other link that is true, and these links.

    Of each other link one end is taken out of its graph, half of them on either side. Entities that gold does not know
    are taken out, too: nobody could say whether they have a counterpart. Gold has to be one-to-one.
    """
    if any(len(np.unique(ids)) != len(gold) for ids in (gold.source_ids, gold.target_ids)):
        raise ValueError("an entity has two gold links")
    order = np.random.default_rng([seed, round(1000 * share)]).permutation(len(gold))
    both, rest = np.split(order, [round(share * len(gold))])
    no_source, no_target = np.split(rest, [len(rest) // 2])
    source_ids = np.sort(gold.source_ids[np.concatenate([both, no_target])])
    target_ids = np.sort(gold.target_ids[np.concatenate([both, no_source])])
    links = Links.of(
        np.searchsorted(source_ids, gold.source_ids[both]), np.searchsorted(target_ids, gold.target_ids[both])
    )
    name = f"{pair.name} {share:.0%}"
    return GraphPair(name, pair.source.some(source_ids), pair.target.some(target_ids)), links


def draw_seeds(links: Links, number: int, seed: int = 0) -> tuple[Links, Links]:
    """So many links at random, and the others."""
    order = np.random.default_rng([seed, len(links)]).permutation(len(links))
    chosen, rest = np.split(order, [number])
    seeds, others = (Links.of(links.source_ids[part], links.target_ids[part]) for part in (chosen, rest))
    return seeds, others


def read_tables(folder: Path) -> GraphPair:
    """Two tables with one row per entity: every field is a literal, the first after the id is the name."""
    first, second, separator = TABLE_FILES[folder.name]

    def rows_of(file: str) -> pl.DataFrame:
        check_file(folder / file)
        return pl.read_csv(folder / file, separator=separator, infer_schema=False)

    graphs = []
    for side, file in enumerate((first, second)):
        rows = rows_of(file).with_columns((f"{side}/" + pl.col("id")).alias("id"))
        cells = rows.unpivot(index="id", variable_name="attribute", value_name="value")
        cells = cells.rename({"id": "entity"}).filter(pl.col("value").fill_null("") != "")
        cells = cells.with_columns(datatype=pl.lit(""), language=pl.lit("")).select(LITERAL_COLUMNS)
        names = dict(zip(rows["id"], rows[rows.columns[1]].fill_null(""), strict=True))
        nothing = pl.DataFrame(schema=dict.fromkeys(("head", "relation", "tail"), pl.String))
        graphs.append(KnowledgeGraph.build(nothing, cells, names=names, entities=list(names)))
    source, target = graphs
    known = rows_of("gold.csv").rows()
    links = Links.of(
        [source.entity_index[f"0/{one}"] for one, _ in known], [target.entity_index[f"1/{other}"] for _, other in known]
    )
    return GraphPair(folder.name, source, target, test=links)


def unrelated(source: KnowledgeGraph, target: KnowledgeGraph, name: str) -> GraphPair:
    """Two graphs as a pair without a true link: a target is left out if its name has all words of a source's name."""
    known = {frozenset(_words(text)) for text in source.names}
    by_word: dict[str, list[frozenset[str]]] = {}
    for words in known:
        for word in words:
            by_word.setdefault(word, []).append(words)
    kept = []
    for number, text in enumerate(target.names):
        own = _words(text)
        if not any(words <= own for word in own for words in by_word.get(word, [])):
            kept.append(number)
    return GraphPair(name, source, target.some(np.array(kept, np.int32)))


def _words(text: str) -> set[str]:
    return set(plain(text).split())
