"""The agent of the paper: what its presets reach, what the policy looks like, and what it costs.

    python benchmarks/agent.py --data DIR --vectors DIR [--pairs D_Y] [--presets paper] [--episodes 500] [--json FILE]

DIR of --data holds the 15K folders, DIR of --vectors the files that `rlea embed` wrote for them, such as
aligne_D_Y.safetensors. Without --data nothing is run. `greedy` is the one-to-one matching in descending similarity
over the same ten candidates.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from rlea import peak_memory as memory
from rlea.evaluation.metrics import link_metrics
from rlea.graph import choose_pool
from rlea.io.readers import read_pair
from rlea.matchers.greedy import match as greedy
from rlea.matching import Task
from rlea.models.embed import embed_entities
from rlea.paper.agent import Agent
from rlea.paper.presets import PRESETS
from rlea.record import as_json, describe_run
from rlea.search.candidates import find_candidates


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--vectors", type=Path, default=Path())
    parser.add_argument("--pairs", nargs="+", default=["EN_FR", "EN_DE", "D_W", "D_Y"])
    parser.add_argument("--presets", nargs="+", default=["paper", "released"])
    parser.add_argument("--episodes", type=int, default=500)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.data is None:
        print("skipped: --data names the folder of the 15K data sets")
        return
    rows, fingerprints = [], {}
    print("pair    matcher         Hits@1   links  accepted  p mean   p std  train s decode s")
    for name in options.pairs:
        pair = read_pair(options.data / f"{name}_15K_V1")
        fingerprints[name] = pair.fingerprint
        vectors = embed_entities(pair, str(options.vectors / f"aligne_{name}.safetensors"))
        _, source_ids, target_ids = choose_pool(pair, "test")
        found = find_candidates(vectors, source_ids, target_ids, 10)
        one_sided = replace(
            found, backward_rows=found.backward_rows[:, :0], backward_scores=found.backward_scores[:, :0]
        )
        task = Task(pair.source, pair.target, pair.train, one_sided)
        plain = greedy(task)
        rows.append({"pair": name, "matcher": "greedy", "hits@1": link_metrics(plain, pair.test).hits_at_1})
        rows[-1]["links"] = len(plain)
        print(f"{name:8}{'greedy':14}{rows[-1]['hits@1']:8.3f}{len(plain):8}", flush=True)
        for preset in options.presets:
            settings = PRESETS[preset]
            settings = replace(settings, train=replace(settings.train, episodes=options.episodes))
            memory.reset_peak()
            start = time.perf_counter()
            agent = Agent(settings).fit(pair, vectors)
            seconds = time.perf_counter() - start
            start = time.perf_counter()
            links = agent.match(task)
            decoding = time.perf_counter() - start
            _, chance = agent.probabilities(task)
            row = {
                "pair": name,
                "matcher": preset,
                "hits@1": link_metrics(links, pair.test).hits_at_1,
                "links": len(links),
                "same_as_greedy": float(np.isin(pairs(links), pairs(plain)).mean()) if len(links) else 0.0,
                "accepted": float((chance >= 0.5).mean()),
                "probability_mean": float(chance.mean()),
                "probability_std": float(chance.std()),
                "best_episode": agent.best_episode,
                "train_seconds": round(seconds, 1),
                "decode_seconds": round(decoding, 2),
                "peak_memory_mb": round(memory.peak_mb()),
                "history": [
                    row
                    for row in agent.history
                    if (row["episode"] - 1) % max(options.episodes // 50, 1) == 0 or "valid_aligned" in row
                ],
            }
            rows.append(row)
            print(
                f"{name:8}{preset:14}{row['hits@1']:8.3f}{row['links']:8}{row['accepted']:10.3f}"
                f"{row['probability_mean']:8.3f}{row['probability_std']:8.3f}{seconds:9.1f}{decoding:9.2f}",
                flush=True,
            )
    if options.json:
        record = describe_run(rows=rows, fingerprints=fingerprints, seed=0)
        chosen = (
            f"--pairs {' '.join(options.pairs)} --presets {' '.join(options.presets)} --episodes {options.episodes}"
        )
        record["command"] = f"python benchmarks/agent.py --data DIR --vectors DIR {chosen}"
        options.json.write_text(as_json(record), encoding="utf-8")


def pairs(links):
    return links.source_ids.astype(np.int64) << 32 | links.target_ids


if __name__ == "__main__":
    main()
