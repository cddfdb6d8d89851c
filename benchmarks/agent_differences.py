"""What each difference between the paper's text and its authors' program does to the agent.

    python benchmarks/agent_differences.py --data DIR --vectors DIR [--pairs EN_FR D_W] [--json FILE]

Each case is the preset `paper` with one thing done as the program does it, or as we had to choose where both leave it
open. Vectors as in agent.py. Without --data nothing is run. With --json a case that is in the file is not run again.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial

from measuring import has_data, keep, of_policy, pairs_with_candidates, parser_of, policy_cells, timed, with_episodes

from rlea.evaluation.metrics import link_metrics
from rlea.matching import Task
from rlea.paper.agent import Agent
from rlea.paper.presets import PRESETS

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
    parser = parser_of(__doc__, data=True, vectors=True, episodes=500)
    parser.add_argument("--pairs", nargs="+", default=["EN_FR", "D_W"])
    options = parser.parse_args()
    if not has_data(options):
        return
    chosen = f"--pairs {' '.join(options.pairs)} --episodes {options.episodes}"
    command = f"agent_differences.py --data DIR --vectors DIR {chosen}"
    rows, fingerprints = [], {}
    if options.json and options.json.exists():
        known = json.loads(options.json.read_text())
        rows, fingerprints = known["rows"], known["fingerprints"]
    print("pair    Hits@1  precision  links  accepted  p mean   p std   case")
    for name, pair, vectors, found in pairs_with_candidates(options):
        fingerprints[name] = pair.fingerprint
        task = Task(pair.source, pair.target, pair.train, found)
        for case, settings in CASES.items():
            if any(row["pair"] == name and row["case"] == case for row in rows):
                continue
            agent, seconds = timed(partial(Agent(with_episodes(settings, options.episodes)).fit, pair, vectors))
            links = agent.match(task)
            scores = link_metrics(links, pair.test)
            row = {
                "pair": name,
                "case": case,
                "hits@1": scores.hits_at_1,
                "precision": scores.precision,
                "links": len(links),
                **of_policy(agent, task),
                "train_seconds": round(seconds, 1),
            }
            rows.append(row)
            shown = f"{name:8}{row['hits@1']:6.3f}{row['precision']:10.3f}{row['links']:8}{policy_cells(row)}"
            print(f"{shown}   {case}", flush=True)
            keep(options.json, command, rows=rows, fingerprints=fingerprints, seed=0)


if __name__ == "__main__":
    main()
