"""Approximate top-k search in both directions beside the exact one, on vectors with a planted alignment.

    make bench BENCH=approximate     (or: python benchmarks/approximate.py [--entities 100000] [--json FILE])

Each contender runs in a process of its own, so that peak memory is its own; the vectors are included. The vectors:

- curved: points of a bent surface of 16 dimensions, as trained vectors have few dimensions of their own;
- clustered: groups of about 50 within groups of about 2,000;
- random: no neighbourhoods at all but for the planted partner. No search by cells can find the rest of the k best.

Targets are the sources with noise, in another order. --exact-sources N searches exactly for the first N sources only
and scales the seconds to all (the exact search takes time in proportion).
"""

from __future__ import annotations

import argparse
import json

from measuring import keep, parser_of, run_apart, timed

COMPARED = 1000  # sources whose candidates are compared
SIZES = ("entities", "dim", "k", "exact_sources")


def vectors(kind: str, entities: int, dim: int):
    import numpy as np

    rng = np.random.default_rng(0)

    def draw(count, width=dim):
        return rng.standard_normal((count, width), dtype=np.float32)

    if kind == "random":
        source, noise = draw(entities), 0.5
    elif kind == "clustered":
        large, small = draw(max(entities // 2000, 1)), max(entities // 50, 1)
        groups = large[rng.integers(0, len(large), small)] + np.float32(0.7) * draw(small)
        source, noise = groups[rng.integers(0, small, entities)] + np.float32(0.5) * draw(entities), 0.5
    else:
        source, noise = np.tanh(np.float32(0.375) * (draw(entities, 16) @ draw(16))), 0.3
    order = rng.permutation(entities)
    target = source[order] + np.float32(noise) * draw(entities)
    for matrix in (source, target):
        matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    return source, target, np.argsort(order)


def search(contender: str, options: argparse.Namespace) -> dict:
    """Seconds and what was found: the candidates of some sources and whether the best one is the planted partner."""
    import numpy as np

    from rlea.peak_memory import peak_mb
    from rlea.search.approximate import search_approximately
    from rlea.search.candidates import find_candidates
    from rlea.search.embeddings import Embeddings

    source, target, truth = vectors(options.kind, options.entities, options.dim)
    embeddings, everyone = Embeddings(source, target), np.arange(options.entities)
    warm = np.arange(min(options.entities, 50))
    more: dict = {}
    if contender == "exact":
        rows = everyone[: options.exact_sources or None]
        find_candidates(embeddings, warm, warm, options.k)  # loads the compiled code
        found, seconds = timed(lambda: find_candidates(embeddings, rows, everyone, options.k))
        seconds = seconds * len(everyone) / len(rows)
        more["sources"] = len(rows)
    else:
        search_approximately(embeddings, warm, warm, options.k, probes=2)
        done, seconds = timed(lambda: search_approximately(embeddings, everyone, everyone, options.k))
        found, more = done.candidates, done.as_dict()
    first = found.forward_columns[:COMPARED]
    more["planted_is_best"] = float((first[:, 0] == truth[: len(first)]).mean())
    return {"contender": contender, "seconds": seconds, "peak_mb": peak_mb(), **more, "first": first.tolist()}


def main() -> None:
    parser = parser_of(__doc__, contenders=("exact", "approximate"), entities=100_000, dim=100, k=10)
    parser.add_argument("--kinds", default="curved,clustered", help="with commas: curved, clustered, random")
    parser.add_argument("--exact-sources", type=int, default=0, help="search exactly for so many only; 0 is all")
    parser.add_argument("--kind", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.contender:
        print(json.dumps(search(options.contender, options)))
        return
    sizes = [f"--{name.replace('_', '-')}={getattr(options, name)}" for name in SIZES]
    rows = []
    for kind in options.kinds.split(","):
        print(f"{kind}: top-{options.k}, {options.entities:,} x {options.entities:,}, {options.dim} dimensions")
        answers = {}
        for name in ("exact", "approximate"):
            answers[name] = row = run_apart(__file__, name, "--kind", kind, *sizes)
            print(f"  {name:12} {row['seconds']:8.1f} s {row['peak_mb']:8.0f} MB", flush=True)
        exact, near = answers["exact"], answers["approximate"]
        pairs = list(zip(exact.pop("first"), near.pop("first"), strict=False))
        compared = sum(len(set(one) & set(other)) for one, other in pairs) / sum(len(one) for one, _ in pairs)
        ratio = exact["seconds"] / near["seconds"]
        print(f"  exact / approximate {ratio:.1f}; {near['probes']} of {near['cells']} cells probed", end=", ")
        print(f"{100 * near['share_of_pairs']:.1f} % of the pairs scored", end="; ")
        print(f"recall {near['recall']:.3f} by its own measure, {compared:.3f} compared with exact")
        rows.append({"kind": kind, "ratio": ratio, "recall_compared": compared, "exact": exact, "approximate": near})
    command = f"approximate.py --kinds={options.kinds} {' '.join(sizes)}"
    keep(options.json, command, rows=rows, fingerprint="planted vectors, seed 0")


if __name__ == "__main__":
    main()
