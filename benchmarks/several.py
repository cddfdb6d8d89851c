"""Do clusters of three graphs keep what the runs of every two graphs found?

    python benchmarks/several.py --json FILE

Three views of one synthetic graph, each with all of its entities or a part of them, drawn for each view by itself. No
seeds. F1 of the pairs within clusters, beside the mean F1 of the three pairwise runs.
"""

from __future__ import annotations

from itertools import combinations

from measuring import keep_rows, parser_of

VIEWS, SHARES = 3, (1.0, 0.7, 0.4)


def f1(found, known):
    """Of two sets."""
    return 2 * len(found & known) / max(1, len(found) + len(known))


def measure(name, graph, share):
    """Clusters and pairwise runs of three views of a graph."""
    from rlea.experiments.planted import make_view
    from rlea.several import align_several

    views = [make_view(graph, share, view) for view in range(VIEWS)]
    result = align_several([view for view, _ in views])
    pairwise, found, known = [], set(), set()
    for one, other in combinations(range(VIEWS), 2):
        place = {thing: number for number, thing in enumerate(views[other][1].tolist())}
        gold = {(number, place[thing]) for number, thing in enumerate(views[one][1].tolist()) if thing in place}
        links = result.links[one, other]
        pairwise.append(f1(set(zip(links.source_ids.tolist(), links.target_ids.tolist(), strict=True)), gold))
        found |= {(one, other, *ends) for ends in result.pairs_of(one, other)}
        known |= {(one, other, *ends) for ends in gold}
    return {
        "graph": name,
        "entities": graph.num_entities,
        "share": share,
        "pairwise": [round(value, 4) for value in pairwise],
        "mean": sum(pairwise) / len(pairwise),
        "clusters": f1(found, known),
        "fingerprint": graph.fingerprint,
    }


def main() -> None:
    options = parser_of(__doc__).parse_args()
    from rlea.io.synthetic import SyntheticSettings, generate

    graph = generate(SyntheticSettings(num_entities=1000)).source
    rows = (measure("synthetic", graph, share) for share in SHARES)
    keep_rows(options.json, "several.py", rows, fingerprints={"synthetic": graph.fingerprint}, seed=0)


if __name__ == "__main__":
    main()
