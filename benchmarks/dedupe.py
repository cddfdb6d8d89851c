"""Are planted duplicates found, and none where there are none?

    python benchmarks/dedupe.py --data DIR --json FILE

Copies of a share of the entities are planted in a graph, in clusters of two to five, with typos, missing fields and
fields exchanged (`rlea.experiments.planted`). F1 is of pairs within clusters. What the tables have of duplicates
themselves is not known: a pair of theirs counts as wrong, and with nothing planted all pairs found do. Rows that are
equal in all fields before anything is planted cannot be told apart by anybody: `f1_equal` counts them, and the copies
of either, as the same thing.
"""

from __future__ import annotations

from itertools import combinations

from measuring import has_data, keep_rows, parser_of

SHARES, BINS = (0.0, 0.05, 0.3), 10
# The constants were chosen with the first four in view; the other two were only looked at.
TABLES = {"abt": ("shops", 0), "buy": ("shops", 1), "dblp": ("bibliographies", 0), "acm": ("bibliographies", 1)}
GRAPHS = ("abt", "buy", "dblp", "demo", "acm", "demo french")


def graph_of(name, data):
    """A graph of the demo pair, or one of the tables."""
    import rlea
    from rlea.experiments.partial import read_tables

    if name.startswith("demo"):
        return rlea.read_demo().source if name == "demo" else rlea.read_demo().target
    folder, side = TABLES[name]
    pair = read_tables(data / "tables" / folder)
    return (pair.source, pair.target)[side]


def pairs_of(graph, clusters):
    """Pairs of ids within clusters of identifiers, the smaller first."""
    ids = graph.entity_index
    return {tuple(sorted((ids[one], ids[other]))) for own in clusters for one, other in combinations(own, 2)}


def join_equal(graph, clusters):
    """The clusters, and entities that are equal in all fields and edges, with the clusters of either joined."""
    facts, edges = graph.literals, graph.triples.tolist()
    records = {one: [graph.names[one]] for one in range(graph.num_entities)}
    for row in zip(facts.entity_ids.tolist(), facts.attribute_ids.tolist(), facts.values, strict=True):
        records[row[0]].append(str(row[1:]))
    for head, relation, tail in edges:
        records[head].append(f"{relation} > {tail}")
        records[tail].append(f"{relation} < {head}")
    planted = {own[0]: own for own in clusters}
    joined = {}
    for one, record in records.items():
        name = graph.entities[one]
        joined.setdefault(tuple(sorted(record)), []).extend(planted.get(name, [name]))
    return list(joined.values())


def measure(name, graph, share, seed=7):
    """Figures of one graph with a share of its entities duplicated."""
    import rlea
    from rlea.experiments.planted import plant_duplicates

    planted, clusters = plant_duplicates(graph, share, seed)
    known = pairs_of(planted, clusters)
    with_equal = pairs_of(planted, join_equal(graph, clusters))
    found = rlea.dedupe(planted)
    right = {ends: ends in known for ends in found.confidences}
    num_equal = len(with_equal.intersection(found.confidences))
    gaps = [0.0] * BINS
    for ends, confidence in found.confidences.items():
        gaps[min(int(BINS * confidence), BINS - 1)] += confidence - right[ends]
    num_right = sum(right.values())
    return {
        "graph": name,
        "entities": planted.num_entities,
        "share": share,
        "planted": len(known),
        "pairs": len(right),
        "clusters": len(found),
        "precision": num_right / max(1, len(right)),
        "recall": num_right / max(1, len(known)),
        "f1": 2 * num_right / max(1, len(right) + len(known)),
        "equal": num_equal - num_right,  # pairs found of rows that were equal, and of their copies
        "f1_equal": 2 * num_equal / max(1, len(right) + len(with_equal)),
        "ece": sum(map(abs, gaps)) / max(1, len(right)),
        "seconds": round(found.seconds["match"], 1),
        "fingerprint": planted.fingerprint,
    }


def rows_of(data):
    """One row for every graph and share."""
    for name in GRAPHS:
        graph = graph_of(name, data)
        for share in SHARES:
            yield measure(name, graph, share)


def main() -> None:
    options = parser_of(__doc__, data=True).parse_args()
    if has_data(options):
        prints = {name: graph_of(name, options.data).fingerprint for name in GRAPHS}
        keep_rows(options.json, "dedupe.py --data DIR", rows_of(options.data), fingerprints=prints, seed=7)


if __name__ == "__main__":
    main()
