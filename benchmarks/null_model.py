"""How sure is the agent of links that are all wrong? And can a graph be its own null model?

    python benchmarks/null_model.py --data DIR [--pairs demo,D_W,...] [--shares 0,.25,1] [--json FILE]

Pairs are cut as in `rlea reproduce overlap`: a share of the links stays, and a link that is not gold is wrong. The
agent aligns the rest without seeds. Then the same agent, as it was fitted, aligns two disjoint halves of the source
graph, and of the target graph: pairs without a single true link. If these are a null model, their links have the
confidences of the wrong links of the pair.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

LEVELS = (0.1, 0.3, 0.5, 0.7, 0.9, 0.97)


def halves(graph, seed=0):
    """Two disjoint halves of a graph as a pair, in which no link is true."""
    from rlea.graph import GraphPair

    order = np.random.default_rng([seed, graph.num_entities]).permutation(graph.num_entities)
    one, other = np.array_split(order, 2)
    return GraphPair("halves", graph.some(one), graph.some(other))


def levels(confidences):
    """The share of links with a confidence of each level or more."""
    return [round(float((confidences >= level).mean()), 4) if len(confidences) else 0.0 for level in LEVELS]


def measure(name, share, workspace):
    """One pair at one share: what its right and wrong links and those of the halves are given."""
    import rlea
    from rlea.evaluation.metrics import expected_calibration_error
    from rlea.experiments.overlap import NO_SEEDS, seen_and_judged
    from rlea.search.pairs import Pairs, numbers

    pair, gold = seen_and_judged(workspace, name, share, NO_SEEDS)
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
    from rlea.experiments.options import Options
    from rlea.experiments.workspace import Workspace
    from rlea.record import as_json, describe_run

    workspace = Workspace(Options(data=options.data))
    rows = []
    for name in options.pairs.split(","):
        for share in map(float, options.shares.split(",")):
            rows.append(measure(name, share, workspace))
            print(json.dumps(rows[-1]), flush=True)
            if options.json:
                prints = {f"{row['pair']} {row['share']}": row["fingerprint"] for row in rows}
                record = describe_run(rows=rows, levels=LEVELS, fingerprints=prints, seed=0)
                record["command"] = "python benchmarks/null_model.py --data DIR"
                options.json.write_text(as_json(record), encoding="utf-8")


if __name__ == "__main__":
    main()
