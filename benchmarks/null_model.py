"""How sure is the agent of links that are all wrong? And can a graph be its own null model?

    python benchmarks/null_model.py --data DIR [--pairs demo,D_W,...] [--shares 0,.25,1] [--json FILE]

A pair of graphs in which every entity has a counterpart is cut: a share of the links stays, and of each other link one
end is taken out of its graph, half of them on either side. So gold is complete, and a link that is not gold is wrong.
The agent aligns the rest without seeds. Then the same agent, as it was fitted, aligns two disjoint halves of the source
graph, and of the target graph: pairs without a single true link. If these are a null model, their links have the
confidences of the wrong links of the pair.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

import numpy as np

LEVELS = (0.1, 0.3, 0.5, 0.7, 0.9, 0.97)
TABLES = {"shops": ("abt.csv", "buy.csv", "|"), "bibliographies": ("dblp.csv", "acm.csv", "%")}


def some_entities(graph, ids):
    """The graph of these entities alone, and the new id of every old one (-1 for those that are gone)."""
    ids = np.sort(ids)
    new = np.full(graph.num_entities, -1, np.int64)
    new[ids] = np.arange(len(ids))
    triples = graph.triples[(new[graph.triples[:, 0]] >= 0) & (new[graph.triples[:, 2]] >= 0)]
    triples = np.column_stack([new[triples[:, 0]], triples[:, 1], new[triples[:, 2]]]).astype(np.int32)
    literals = graph.literals.take(np.flatnonzero(new[graph.literals.entity_ids] >= 0))
    literals = replace(literals, entity_ids=new[literals.entity_ids].astype(np.int32))
    entities, names = (tuple(texts[k] for k in ids.tolist()) for texts in (graph.entities, graph.names))
    return replace(graph, entities=entities, triples=triples, literals=literals, names=names), new


def cut(pair, gold, share, seed=0):
    """The pair with a share of its gold links, without entities whose counterpart is unknown; and these links."""
    from rlea.graph import GraphPair, Links

    order = np.random.default_rng([seed, round(1000 * share)]).permutation(len(gold))
    both, rest = np.split(order, [round(share * len(gold))])
    no_source, no_target = np.split(rest, [len(rest) // 2])
    source, new_source = some_entities(pair.source, gold.source_ids[np.concatenate([both, no_target])])
    target, new_target = some_entities(pair.target, gold.target_ids[np.concatenate([both, no_source])])
    links = Links.of(new_source[gold.source_ids[both]], new_target[gold.target_ids[both]])
    return GraphPair(f"{pair.name} {share:.0%}", source, target), links


def halves(graph, seed=0):
    """Two disjoint halves of a graph as a pair, in which no link is true."""
    from rlea.graph import GraphPair

    order = np.random.default_rng([seed, graph.num_entities]).permutation(graph.num_entities)
    one, other = (some_entities(graph, part)[0] for part in np.array_split(order, 2))
    return GraphPair("halves", one, other)


def read_pair(name, data):
    """The whole pair, and all its gold links."""
    import rlea
    from rlea.graph import Links

    if name in TABLES:
        return read_tables(data / "tables" / name, *TABLES[name])
    pair = rlea.read_demo() if name == "demo" else rlea.read(data / "openea-15k-v1" / f"{name}_15K_V1", fold="1")
    return pair, Links.union([pair.train, pair.valid, pair.test])


def read_tables(folder, first, second, separator):
    """Two tables with a row an entity: every cell is a literal, the first column after the id is the name."""
    import polars as pl

    from rlea.graph import LITERAL_COLUMNS, GraphPair, KnowledgeGraph, Links

    graphs = []
    for side, file in enumerate((first, second)):
        rows = pl.read_csv(folder / file, separator=separator, infer_schema=False)
        rows = rows.with_columns((f"{side}/" + pl.col("id")).alias("id"))
        cells = rows.unpivot(index="id", variable_name="attribute", value_name="value")
        cells = cells.rename({"id": "entity"}).filter(pl.col("value").fill_null("") != "")
        cells = cells.with_columns(datatype=pl.lit(""), language=pl.lit("")).select(LITERAL_COLUMNS)
        names = dict(zip(rows["id"], rows[rows.columns[1]].fill_null(""), strict=True))
        nothing = pl.DataFrame(schema=dict.fromkeys(("head", "relation", "tail"), pl.String))
        graphs.append(KnowledgeGraph.build(nothing, cells, names=names, entities=list(names)))
    known = pl.read_csv(folder / "gold.csv", separator=separator, infer_schema=False).rows()
    source, target = (graph.entity_index for graph in graphs)
    links = np.array([(source[f"0/{one}"], target[f"1/{other}"]) for one, other in known])
    return GraphPair(folder.name, *graphs), Links.of(links[:, 0], links[:, 1])


def levels(confidences):
    """The share of links with a confidence of each level or more."""
    return [round(float((confidences >= level).mean()), 4) if len(confidences) else 0.0 for level in LEVELS]


def measure(name, share, data):
    """One pair at one share: what its right and wrong links and those of the halves are given."""
    import rlea
    from rlea.evaluation.metrics import expected_calibration_error
    from rlea.search.pairs import Pairs, numbers

    pair, gold = cut(*read_pair(name, data), share)
    agent = rlea.Aligner().fit(pair)
    links = agent.match(pair, pool="all")
    right = np.isin(
        numbers(Pairs(links.source_ids, links.target_ids)), numbers(Pairs(gold.source_ids, gold.target_ids))
    )
    row = {"pair": name, "share": share, "fingerprint": pair.fingerprint, "gold": len(gold), "links": len(links)}
    row |= {"f1": round(2 * int(right.sum()) / max(1, len(links) + len(gold)), 4)}
    row |= {"ece": round(expected_calibration_error(links, gold, complete=True), 4)}
    row |= {"right": levels(links.confidences[right]), "wrong": levels(links.confidences[~right])}
    for side, graph in (("source halves", pair.source), ("target halves", pair.target)):
        row[side] = levels(agent.match(halves(graph), pool="all").confidences)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with openea-15k-v1 and tables")
    parser.add_argument("--pairs", default="shops,bibliographies,demo,D_W,EN_FR")
    parser.add_argument("--shares", default="0,.25,1")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    from rlea.record import as_json, describe_run

    rows = []
    for name in options.pairs.split(","):
        for share in map(float, options.shares.split(",")):
            rows.append(measure(name, share, options.data))
            print(json.dumps(rows[-1]), flush=True)
            if options.json:
                prints = {f"{row['pair']} {row['share']}": row["fingerprint"] for row in rows}
                record = describe_run(rows=rows, levels=LEVELS, fingerprints=prints, seed=0)
                record["command"] = "python benchmarks/null_model.py --data DIR"
                options.json.write_text(as_json(record), encoding="utf-8")


if __name__ == "__main__":
    main()
