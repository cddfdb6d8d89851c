"""What the equality of literals is to PARIS: its own, that of the same text, and that of the same text and type.

    python benchmarks/paris_literals.py --data DIR [--json FILE]

Without seeds, on the pairs of DIR (EN_FR_15K_V1, D_W_15K_V1) whose two graphs have attributes. For the other two
equalities every literal is replaced by a word of its own, the same for the same text (and datatype and language), so
that nothing is left of it to normalise.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace

from measuring import has_data, keep, parser_of, print_row

from rlea.evaluation.metrics import link_metrics
from rlea.evidence.paris import run_paris
from rlea.graph import GraphPair, KnowledgeGraph, Links
from rlea.io.readers import read_pair
from rlea.matchers.paris import take_pairs

PAIRS = ("EN_FR", "D_W")
EQUALITIES = ("own", "text", "text and type")


def opaque(graph: KnowledgeGraph, *, typed: bool) -> KnowledgeGraph:
    literals = graph.literals
    kinds = zip(literals.datatypes, literals.languages, strict=True) if typed else [("", "")] * len(literals)
    values = tuple(
        "v" + hashlib.sha1("\0".join((value, *kind)).encode()).hexdigest()
        for value, kind in zip(literals.values, kinds, strict=True)
    )
    nothing = ("",) * len(values)
    return replace(graph, literals=replace(literals, values=values, datatypes=nothing, languages=nothing))


def align(pair: GraphPair, gold: Links, equality: str) -> dict[str, object]:
    if equality != "own":
        graphs = [opaque(graph, typed=equality != "text") for graph in (pair.source, pair.target)]
        pair = GraphPair(pair.name, *graphs)
    found = run_paris(pair)
    links = link_metrics(take_pairs(found, pair.source, pair.target, 0), gold)
    scores = {name: round(getattr(links, name), 6) for name in ("precision", "recall", "f1")}
    return {"equality": equality, **scores, "matched": links.matched, "iterations": len(found.iterations)}


def main() -> None:
    options = parser_of(__doc__, data=True).parse_args()
    if not has_data(options):
        return
    rows, prints = [], {}
    for name in PAIRS:
        whole = read_pair(options.data / f"{name}_15K_V1", "1")
        gold = Links.union([whole.train, whole.valid, whole.test])
        pair = GraphPair(whole.name, whole.source, whole.target)
        prints[name] = whole.fingerprint
        for equality in EQUALITIES:
            rows.append({"pair": name, **align(pair, gold, equality)})
            print_row(rows[-1])
    keep(options.json, "paris_literals.py --data DIR --json FILE", rows=rows, fingerprints=prints, seed=0)


if __name__ == "__main__":
    main()
