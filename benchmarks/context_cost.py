"""What the agent costs with structure and vectors: seconds and memory of training, choosing and decoding.

    python benchmarks/context_cost.py [--data DIR --vectors DIR] [--entities 100000] [--json FILE]

With --data and --vectors (files such as aligne_D_W_1.safetensors): training, choosing and decoding on D_W. Always: a
synthetic pair is decoded by an agent that was trained on a small one of its kind; what it learned serves both. Seconds
leave out reading and embedding; those of decoding include the search of candidates.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from rlea import peak_memory as memory
from rlea.agent.agent import Aligner
from rlea.evaluation.metrics import link_metrics
from rlea.io.readers import read_pair
from rlea.io.synthetic import SyntheticSettings, generate, synthetic_embeddings
from rlea.models.embed import embed_entities
from rlea.record import as_json, describe_run


def timed(work):
    start = time.perf_counter()
    result = work()
    return result, round(time.perf_counter() - start, 2)


def decode(name, agent, pair, vectors, **more):
    memory.reset_peak()
    links, decoding = timed(lambda: agent.match(pair, [vectors], pool="test"))
    row = {
        "pair": name,
        **more,
        "decode_seconds": decoding,
        "decode_peak_memory_mb": round(memory.peak_mb()),
        "sources": len(pair.test),
        "links": len(links),
        "hits@1": round(link_metrics(links, pair.test).hits_at_1, 4),
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
    # Compiled code is loaded before the clock runs, and the agent for the large pair is trained.
    small = generate(SyntheticSettings(num_entities=2000))
    vectors = synthetic_embeddings(small)
    general = Aligner(channels=("structure",)).fit(small, [vectors])
    decode("warm-up", general, small, vectors)
    rows, fingerprints = [], {}
    if options.data is not None:
        pair = read_pair(options.data / "D_W_15K_V1")
        fingerprints["D_W"] = pair.fingerprint
        vectors = embed_entities(pair, str(options.vectors / "aligne_D_W_1.safetensors"))
        memory.reset_peak()
        agent = Aligner(channels=("structure",))
        _, training = timed(lambda: agent.fit(pair))
        peak = round(memory.peak_mb())
        _, choosing = timed(lambda: agent.choose(pair, [vectors]))
        costs = {"train_seconds": training, "train_peak_memory_mb": peak, "choose_seconds": choosing}
        rows.append(decode("D_W", agent, pair, vectors, **costs))
    pair = generate(SyntheticSettings(num_entities=options.entities))
    fingerprints["synthetic"] = pair.fingerprint
    rows.append(decode(f"synthetic {options.entities}", general, pair, synthetic_embeddings(pair)))
    if options.json:
        record = describe_run(rows=rows, fingerprints=fingerprints, seed=0)
        record["command"] = "python benchmarks/context_cost.py --data DIR --vectors DIR"
        options.json.write_text(as_json(record), encoding="utf-8")


if __name__ == "__main__":
    main()
