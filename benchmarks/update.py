"""What does `rlea update` cost, and what does it find, beside one run over all?

    python benchmarks/update.py --data DATA --json results/update.json

Pairs without seeds. A half of the entities is aligned; the others come in batches, each entity with its counterpart, a
triple with the later of its two ends. Entities without a gold link are there from the start; a link of theirs counts as
wrong. Every step is a process of its own, as a person runs it. Seconds are those of the clock and of the processor:
where other processes want the cores, only the latter compare.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

START = 0.5  # share of the entities that the first run has
SIDES = ("source", "target")


def write_parts(pair, gold, batches, seed, folder):
    """The graphs in parts, 0 for the first run, as N-Triples; the whole of them as well."""
    from rlea.graph import KnowledgeGraph
    from rlea.graph.frames import literals_frame, triples_frame
    from rlea.io.writers.graphs import write_graph

    shares = np.random.default_rng(seed).permutation(len(gold)) / len(gold)
    when = np.where(shares < START, 0, 1 + np.floor((shares - START) / (1 - START) * batches)).astype(int)
    for side, graph, ids in zip(SIDES, (pair.source, pair.target), (gold.source_ids, gold.target_ids), strict=True):
        write_graph(folder / f"{side}.nt", graph)
        ranks = np.zeros(graph.num_entities, int)
        ranks[ids] = when
        triples, literals = triples_frame(graph), literals_frame(graph)
        of_triples = np.maximum(ranks[graph.triples[:, 0]], ranks[graph.triples[:, 2]])
        of_literals = ranks[graph.literals.entity_ids]
        for part in range(batches + 1):
            own = KnowledgeGraph.build(triples.filter(of_triples == part), literals.filter(of_literals == part))
            write_graph(folder / f"{side}{part}.nt", own)
    return when


def step(*arguments):
    """Run `rlea`; seconds of the clock and of the processor, and what it prints as JSON."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-m", "rlea", *map(str, arguments), "--json"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"seconds": time.perf_counter() - start, "cpu_seconds": used}, json.loads(done.stdout)


def score(run, pair, gold, there):
    """F1 of the links of a run by the gold links whose entities are there."""
    lines = (run / "links.tsv").read_text(encoding="utf-8").splitlines()[1:]
    found = {tuple(line.split("\t")[:2]) for line in lines}
    names = pair.source.entities, pair.target.entities
    right = {
        (names[0][s], names[1][t])
        for s, t, is_there in zip(gold.source_ids.tolist(), gold.target_ids.tolist(), there.tolist(), strict=True)
        if is_there
    }
    return {"links": len(found), "gold": len(right), "f1": 2 * len(found & right) / max(1, len(found) + len(right))}


def rows_of(options, pair, gold):
    """The first run, the batches, and one run over all."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        when = write_parts(pair, gold, options.batches, options.seed, folder)
        run = folder / "run"
        cost, _ = step("align", *(folder / f"{side}0.nt" for side in SIDES), "--output", run)
        yield {"step": "first run", **cost, **score(run, pair, gold, when == 0)}
        for part in range(1, options.batches + 1):
            more = [word for side in SIDES for word in (f"--{side}", folder / f"{side}{part}.nt")]
            cost, told = step("update", run, *more)
            new = {"new": told["new_source_entities"] + told["new_target_entities"], "changes": told["changes"]}
            yield {"step": f"batch {part}", **cost, **score(run, pair, gold, when <= part), **new}
        whole = folder / "whole"
        known = folder / "gold.tsv"  # for `benchmarks/live.py`, which may go on from here
        ends = zip(gold.source_ids.tolist(), gold.target_ids.tolist(), strict=True)
        names = pair.source.entities, pair.target.entities
        known.write_text("".join(f"{names[0][s]}\t{names[1][t]}\n" for s, t in ends), encoding="utf-8")
        cost, _ = step(
            "align", *(folder / f"{side}.nt" for side in SIDES), "--gold", known, "--pool", "all", "--output", whole
        )
        yield {"step": "one run over all", **cost, **score(whole, pair, gold, when >= 0)}


def main() -> None:
    from measuring import has_data, keep_rows, parser_of

    options = parser_of(__doc__, data=True, pairs="demo,D_W_15K_V1", batches=5, seed=0).parse_args()
    names = options.pairs.split(",")
    if names != ["demo"] and not has_data(options):
        return
    from rlea.graph import Links
    from rlea.io.read import read_demo
    from rlea.io.readers import read_pair

    pairs = {}
    for name in names:
        whole = read_demo() if name == "demo" else read_pair(options.data / name)
        pairs[name] = whole, Links.union([whole.train, whole.valid, whole.test])
    command = f"update.py --pairs {options.pairs} --batches {options.batches} --seed {options.seed} --data DATA"
    rows = (
        {"pair": name, **row, "load": os.getloadavg()[0]}
        for name, own in pairs.items()
        for row in rows_of(options, *own)
    )
    fingerprints = [pair.fingerprint for pair, _ in pairs.values()]
    keep_rows(options.json, command, rows, start=START, fingerprints=fingerprints, seed=options.seed)


if __name__ == "__main__":
    main()
