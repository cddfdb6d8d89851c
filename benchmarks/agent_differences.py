"""What each difference between the paper's text and its authors' program does to the agent.

    python benchmarks/agent_differences.py --data DIR --vectors DIR [--pairs EN_FR D_W] [--json FILE]

Each case is the preset `paper` with one thing done as the program does it, or as we had to choose where both leave it
open. Vectors as in agent.py. Without --data nothing is run. With --json a case that is in the file is not run again.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from rlea.evaluation.metrics import link_metrics
from rlea.graph import choose_pool
from rlea.io.readers import read_pair
from rlea.matching import Task
from rlea.models.embed import embed_entities
from rlea.paper.agent import Agent
from rlea.paper.presets import PRESETS
from rlea.record import as_json, describe_run
from rlea.search.candidates import find_candidates

PAPER = PRESETS["paper"]


def with_policy(**changes):
    return replace(PAPER, policy=replace(PAPER.policy, **changes))


def with_training(**changes):
    return replace(PAPER, train=replace(PAPER.train, **changes))


def with_env(**changes):
    return replace(PAPER, env=replace(PAPER.env, **changes))


CASES = {
    "paper": PAPER,
    # As the program does it.
    "all layers start at zero": with_policy(zero_start=True),
    "no activation": with_policy(activation=False),
    "best similarity of all pairs in the difficulty": replace(PAPER, best_of="all"),
    "one step in eight learned from": with_training(update_share=0.125),
    "no factor gamma^i": with_training(discount_steps=False),
    "actions drawn at test time": replace(PAPER, sampled=True),
    "released (all of these)": PRESETS["released"],
    # Where text and program are silent or leave a choice.
    "two layers": with_policy(num_layers=2),
    "attention in place of the mean": with_policy(encoder="gat"),
    "no baseline": with_training(baseline=False),
    "no curriculum": with_env(curriculum=False),
    "no skipping": with_env(dynamics=False),
    "updates of 512 steps": with_training(batch_steps=512),
    "trained against all targets": replace(PAPER, pool="all"),
    "wrong matches cost 1": with_env(false_match=-1.0),
    "wrong matches cost 1, no factor gamma^i": replace(
        with_env(false_match=-1.0), train=replace(PAPER.train, discount_steps=False)
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--vectors", type=Path, default=Path())
    parser.add_argument("--pairs", nargs="+", default=["EN_FR", "D_W"])
    parser.add_argument("--episodes", type=int, default=500)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.data is None:
        print("skipped: --data names the folder of the 15K data sets")
        return
    rows, fingerprints = [], {}
    if options.json and options.json.exists():
        known = json.loads(options.json.read_text())
        rows, fingerprints = known["rows"], known["fingerprints"]
    print("pair    Hits@1  precision  links  accepted  p mean   p std   case")
    for name in options.pairs:
        pair = read_pair(options.data / f"{name}_15K_V1")
        fingerprints[name] = pair.fingerprint
        vectors = embed_entities(pair, str(options.vectors / f"aligne_{name}.safetensors"))
        _, source_ids, target_ids = choose_pool(pair, "test")
        found = find_candidates(vectors, source_ids, target_ids, 10)
        task = Task(pair.source, pair.target, pair.train, found)
        for case, settings in CASES.items():
            if any(row["pair"] == name and row["case"] == case for row in rows):
                continue
            settings = replace(settings, train=replace(settings.train, episodes=options.episodes))
            start = time.perf_counter()
            agent = Agent(settings).fit(pair, vectors)
            seconds = time.perf_counter() - start
            links = agent.match(task)
            scores = link_metrics(links, pair.test)
            _, chance = agent.probabilities(task)
            row = {
                "pair": name,
                "case": case,
                "hits@1": scores.hits_at_1,
                "precision": scores.precision,
                "links": len(links),
                "accepted": float((chance >= 0.5).mean()),
                "probability_mean": float(chance.mean()),
                "probability_std": float(np.std(chance)),
                "best_episode": agent.best_episode,
                "train_seconds": round(seconds, 1),
            }
            rows.append(row)
            print(
                f"{name:8}{row['hits@1']:6.3f}{row['precision']:10.3f}{row['links']:8}{row['accepted']:10.3f}"
                f"{row['probability_mean']:8.3f}{row['probability_std']:8.3f}   {case}",
                flush=True,
            )
            if options.json:
                record = describe_run(rows=rows, fingerprints=fingerprints, seed=0)
                chosen = f"--pairs {' '.join(options.pairs)} --episodes {options.episodes}"
                record["command"] = f"python benchmarks/agent_differences.py --data DIR --vectors DIR {chosen}"
                options.json.write_text(as_json(record), encoding="utf-8")


if __name__ == "__main__":
    main()
