"""What the agent of the paper costs: seconds and memory of training and decoding, and how they grow.

    python benchmarks/agent_cost.py [--data DIR --vectors DIR] [--entities 100000] [--json FILE]

With --data and --vectors (see agent.py): 500 episodes on D_Y with a look at the validation links every 20, and the same
with 50 candidates in place of 10. Always: 100 episodes and a decode of a synthetic pair. Seconds include all but
reading and embedding: candidates, views of the graphs, episodes, validation.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path

from rlea import peak_memory as memory
from rlea.evaluation.metrics import link_metrics
from rlea.graph import choose_pool
from rlea.io.readers import read_pair
from rlea.io.synthetic import SyntheticSettings, generate, synthetic_embeddings
from rlea.matching import Task
from rlea.models.embed import embed_entities
from rlea.paper.agent import Agent
from rlea.paper.presets import PRESETS
from rlea.record import as_json, describe_run
from rlea.search.candidates import find_candidates


def measure(name, pair, vectors, candidates, episodes):
    settings = PRESETS["paper"]
    settings = replace(settings, candidates=candidates, train=replace(settings.train, episodes=episodes))
    memory.reset_peak()
    start = time.perf_counter()
    agent = Agent(settings).fit(pair, vectors)
    training = time.perf_counter() - start
    _, source_ids, target_ids = choose_pool(pair, "test")
    start = time.perf_counter()
    found = find_candidates(vectors, source_ids, target_ids, candidates)
    searching = time.perf_counter() - start
    task = Task(pair.source, pair.target, pair.train, found)
    start = time.perf_counter()
    links = agent.match(task)
    decoding = time.perf_counter() - start
    row = {
        "pair": name,
        "candidates": candidates,
        "episodes": episodes,
        "train_seconds": round(training, 1),
        "search_seconds": round(searching, 1),
        "decode_seconds": round(decoding, 2),
        "sources": len(source_ids),
        "links": len(links),
        "hits@1": round(link_metrics(links, pair.test).hits_at_1, 4),
        "peak_memory_mb": round(memory.peak_mb()),
    }
    print("  ".join(f"{key} {value}" for key, value in row.items()), flush=True)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--vectors", type=Path, default=Path())
    parser.add_argument("--entities", type=int, default=100_000)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    # Compiled code is loaded before the clock runs.
    small = generate(SyntheticSettings(num_entities=200))
    measure("warm-up", small, synthetic_embeddings(small), 10, 2)
    rows, fingerprints, ratio = [], {}, None
    if options.data is not None:
        pair = read_pair(options.data / "D_Y_15K_V1")
        fingerprints["D_Y"] = pair.fingerprint
        vectors = embed_entities(pair, str(options.vectors / "aligne_D_Y.safetensors"))
        rows += [measure("D_Y", pair, vectors, k, 500) for k in (10, 50)]
        ratio = {key: round(rows[1][key] / rows[0][key], 2) for key in ("train_seconds", "decode_seconds")}
        print("50 candidates against 10:", ratio)
    pair = generate(SyntheticSettings(num_entities=options.entities))
    fingerprints["synthetic"] = pair.fingerprint
    rows.append(measure(f"synthetic {options.entities}", pair, synthetic_embeddings(pair), 10, 100))
    if options.json:
        record = describe_run(rows=rows, ratio_50_to_10=ratio, fingerprints=fingerprints, seed=0)
        record["command"] = "python benchmarks/agent_cost.py --data DIR --vectors DIR"
        options.json.write_text(as_json(record), encoding="utf-8")


if __name__ == "__main__":
    main()
