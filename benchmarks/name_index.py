"""Top-k search by name in both directions through the index beside the exact one, on synthetic names, a tenth misspelt.

    make bench BENCH=name_index      (or: python benchmarks/name_index.py [--entities 30000] [--json FILE])

Each contender runs in a process of its own, so that peak memory is its own; the graphs (almost without triples) are
included. Both are timed from names to candidates: the exact one makes the vectors of the n-grams as the index does and
searches them with `find_candidates`. The index's seconds include the measurement of its recall. CPU seconds are those
of all threads together. --exact-sources N searches exactly for the first N sources only and scales the seconds of the
search to all (it takes time in proportion); 0 searches for all, -1 leaves the exact search out.
"""

from __future__ import annotations

import argparse
import json
import time

from measuring import keep, parser_of, run_apart

COMPARED = 1000  # sources whose candidates are compared
SIZES = ("entities", "k", "recall", "exact_sources")


def search(contender: str, options: argparse.Namespace) -> dict:
    """Seconds and what was found: the scores of some sources, and how often the planted partner is a candidate."""
    import numpy as np

    from rlea.io.synthetic import SyntheticSettings, generate
    from rlea.peak_memory import peak_mb, reset_peak
    from rlea.search.candidates import find_candidates
    from rlea.search.name_index import search_names
    from rlea.search.name_pieces import embed_name_pieces

    few = {"triples_per_entity": 1.0, "values_per_entity": 0.0, "name_noise": 0.1}
    toy = generate(SyntheticSettings(num_entities=60, **few))
    warm = np.arange(60)
    search_names(toy, warm, warm, options.k)  # loads the compiled code
    find_candidates(embed_name_pieces(toy), warm, warm, options.k)
    pair = generate(SyntheticSettings(num_entities=options.entities, **few))
    everyone = np.arange(options.entities, dtype=np.int32)
    reset_peak()
    more: dict = {}
    start, cpu = time.perf_counter(), time.process_time()
    if contender == "exact":
        rows = everyone[: options.exact_sources or None]
        vectors = embed_name_pieces(pair)
        begun, cpu_begun = time.perf_counter(), time.process_time()
        found = find_candidates(vectors, rows, everyone, options.k)
        scale = len(everyone) / len(rows)
        seconds = begun - start + (time.perf_counter() - begun) * scale
        cpu_seconds = cpu_begun - cpu + (time.process_time() - cpu_begun) * scale
        more["sources"] = len(rows)
    else:
        done = search_names(pair, everyone, everyone, options.k, recall=options.recall)
        seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu
        found, more = done.candidates, done.as_dict()
    truth = np.full(options.entities, -1)
    for links in (pair.train, pair.valid, pair.test):
        truth[links.source_ids] = links.target_ids
    hits = found.forward_columns == truth[: len(found.forward_columns), None]
    more |= {"planted_is_best": float(hits[:, 0].mean()), "planted_is_candidate": float(hits.any(axis=1).mean())}
    told = {"contender": contender, "seconds": seconds, "cpu_seconds": cpu_seconds, "peak_mb": peak_mb(), **more}
    return {**told, "first": found.forward_scores[:COMPARED].tolist()}


def main() -> None:
    parser = parser_of(__doc__, contenders=("exact", "index"), entities=30_000, k=10, recall=0.95)
    parser.add_argument(
        "--exact-sources", type=int, default=0, help="search exactly for so many only; 0 is all, -1 none"
    )
    options = parser.parse_args()
    if options.contender:
        print(json.dumps(search(options.contender, options)))
        return
    sizes = [f"--{name.replace('_', '-')}={getattr(options, name)}" for name in SIZES]
    print(f"names, top-{options.k}, {options.entities:,} x {options.entities:,}")
    rows = {}
    for name in ("exact", "index") if options.exact_sources >= 0 else ("index",):
        rows[name] = row = run_apart(__file__, name, *sizes)
        print(
            f"  {name:6} {row['seconds']:8.1f} s {row['cpu_seconds']:8.1f} CPU s {row['peak_mb']:8.0f} MB", flush=True
        )
    index = rows["index"]
    firsts = {name: row.pop("first") for name, row in rows.items()}
    more: dict = {}
    if "exact" in rows:
        pairs = list(zip(firsts["exact"], firsts["index"], strict=False))
        found = sum(sum(score >= exact[-1] - 1e-6 for score in own) for exact, own in pairs)
        more["ratio"] = rows["exact"]["seconds"] / index["seconds"]
        more["cpu_ratio"] = rows["exact"]["cpu_seconds"] / index["cpu_seconds"]
        more["recall_compared"] = found / sum(len(exact) for exact, _ in pairs)
        print(f"  exact / index {more['ratio']:.1f}, by CPU seconds {more['cpu_ratio']:.1f}", end="; ")
        print(f"recall compared with exact {more['recall_compared']:.4f}")
    visits = "all" if index["budgets"] is None else "at most {:,} and {:,}".format(*index["budgets"])
    print(f"  {visits} visits a name, {100 * index['share_of_visits']:.2f} % of all", end="; ")
    print(f"recall {index['recall']:.4f} by its own measure; planted partner among the {options.k}", end=": ")
    print(f"{index['planted_is_candidate']:.4f}")
    facts = {"rows": list(rows.values()), **more, "fingerprint": "synthetic names, noise 0.1, seed 0"}
    keep(options.json, f"name_index.py {' '.join(sizes)}", **facts)


if __name__ == "__main__":
    main()
