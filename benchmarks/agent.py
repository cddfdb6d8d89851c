"""The agent of the paper: what its presets reach, what the policy looks like, and what it costs.

    python benchmarks/agent.py --data DIR --vectors DIR [--pairs D_Y] [--presets paper] [--episodes 500] [--json FILE]

DIR of --data holds the 15K folders, DIR of --vectors the files that `rlea embed` wrote for them, such as
aligne_D_Y.safetensors. Without --data nothing is run. `greedy` is the one-to-one matching in descending similarity
over the same ten candidates.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from measuring import has_data, keep, of_policy, pairs_with_candidates, parser_of, policy_cells, timed, with_episodes

from rlea import peak_memory as memory
from rlea.evaluation.metrics import link_metrics
from rlea.matchers.greedy import match as greedy
from rlea.matching import Task
from rlea.paper.agent import Agent
from rlea.paper.presets import PRESETS


def main() -> None:
    parser = parser_of(__doc__, data=True, vectors=True, episodes=500)
    parser.add_argument("--pairs", nargs="+", default=["EN_FR", "EN_DE", "D_W", "D_Y"])
    parser.add_argument("--presets", nargs="+", default=["paper", "released"])
    options = parser.parse_args()
    if not has_data(options):
        return
    rows, fingerprints = [], {}
    print("pair    matcher         Hits@1   links  accepted  p mean   p std  train s decode s")
    for name, pair, vectors, found in pairs_with_candidates(options):
        fingerprints[name] = pair.fingerprint
        one_sided = replace(
            found, backward_rows=found.backward_rows[:, :0], backward_scores=found.backward_scores[:, :0]
        )
        task = Task(pair.source, pair.target, pair.train, one_sided)
        plain = greedy(task)
        rows.append({"pair": name, "matcher": "greedy", "hits@1": link_metrics(plain, pair.test).hits_at_1})
        rows[-1]["links"] = len(plain)
        print(f"{name:8}{'greedy':14}{rows[-1]['hits@1']:8.3f}{len(plain):8}", flush=True)
        for preset in options.presets:
            settings = with_episodes(PRESETS[preset], options.episodes)
            memory.reset_peak()
            agent, seconds = timed(partial(Agent(settings).fit, pair, vectors))
            links, decoding = timed(partial(agent.match, task))
            row = {
                "pair": name,
                "matcher": preset,
                "hits@1": link_metrics(links, pair.test).hits_at_1,
                "links": len(links),
                "same_as_greedy": float(np.isin(pairs(links), pairs(plain)).mean()) if len(links) else 0.0,
                **of_policy(agent, task),
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
            shown = f"{name:8}{preset:14}{row['hits@1']:8.3f}{row['links']:8}{policy_cells(row)}"
            print(f"{shown}{seconds:9.1f}{decoding:9.2f}", flush=True)
    chosen = f"--pairs {' '.join(options.pairs)} --presets {' '.join(options.presets)} --episodes {options.episodes}"
    command = f"agent.py --data DIR --vectors DIR {chosen}"
    keep(options.json, command, rows=rows, fingerprints=fingerprints, seed=0)


def pairs(links):
    return links.source_ids.astype(np.int64) << 32 | links.target_ids


if __name__ == "__main__":
    main()
