"""Exact top-10 search, 100,000 x 100,000 at 100 dimensions: ours (both directions at once) beside faiss's flat index.

    make bench BENCH=search          (or: python benchmarks/search.py [--entities 100000] [--json FILE])

Each contender runs in a process of its own, so that peak memory is its own; the vectors (80 MB) are included.
"""

from __future__ import annotations

import json
import time

from measuring import keep, parser_of, run_apart


def vectors(entities: int, dim: int):
    import numpy as np

    rng = np.random.default_rng(0)
    source = rng.standard_normal((entities, dim), dtype=np.float32)
    target = rng.standard_normal((entities, dim), dtype=np.float32)
    for matrix in (source, target):
        matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    return source, target


def ours(entities: int, dim: int, k: int):
    import numpy as np

    from rlea.search.candidates import find_candidates
    from rlea.search.embeddings import Embeddings

    source, target = vectors(entities, dim)
    embeddings = Embeddings(source, target, measure="inner")
    find_candidates(embeddings, np.arange(50), np.arange(50), k)  # loads the compiled code
    start = time.perf_counter()
    found = find_candidates(embeddings, np.arange(entities), np.arange(entities), k)
    return time.perf_counter() - start, found.forward_columns


def faiss_once(entities: int, dim: int, k: int):
    import faiss

    source, target = vectors(entities, dim)
    start = time.perf_counter()
    index = faiss.IndexFlatIP(dim)
    index.add(target)
    _, ids = index.search(source, k)
    return time.perf_counter() - start, ids


def faiss_twice(entities: int, dim: int, k: int):
    import faiss

    source, target = vectors(entities, dim)
    start = time.perf_counter()
    ids = None
    for queries, base in ((target, source), (source, target)):
        index = faiss.IndexFlatIP(dim)
        index.add(base)
        _, ids = index.search(queries, k)
    return time.perf_counter() - start, ids


CONTENDERS = {
    "rlea, both directions": ours,
    "faiss flat, one direction": faiss_once,
    "faiss flat, both directions": faiss_twice,
}


def main() -> None:
    options = parser_of(__doc__, contenders=CONTENDERS, entities=100_000, dim=100, k=10).parse_args()
    if options.contender:
        from rlea.peak_memory import peak_mb

        seconds, ids = CONTENDERS[options.contender](options.entities, options.dim, options.k)
        checksum = [sorted(row) for row in ids[:50].tolist()]
        print(json.dumps({"contender": options.contender, "seconds": seconds, "peak_mb": peak_mb(), "first": checksum}))
        return
    sizes = [f"--{key}={getattr(options, key)}" for key in ("entities", "dim", "k")]
    rows = [run_apart(__file__, name, *sizes) for name in CONTENDERS]
    firsts = [row.pop("first") for row in rows]
    same = all(first == firsts[0] for first in firsts)
    print(f"exact top-{options.k}, {options.entities:,} x {options.entities:,}, {options.dim} dimensions")
    for row in rows:
        print(f"{row['contender']:30} {row['seconds']:8.1f} s {row['peak_mb']:8.0f} MB")
    print(f"ratio to faiss, both directions: {rows[2]['seconds'] / rows[0]['seconds']:.2f}; same ids: {same}")
    command = f"search.py --entities {options.entities} --dim {options.dim} --k {options.k}"
    keep(options.json, command, rows=rows, same_ids=same, fingerprint="random vectors, seed 0")


if __name__ == "__main__":
    main()
