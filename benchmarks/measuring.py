"""What benchmarks share: their options, the 15K pairs with vectors, contenders in processes of their own, records.

Imports stand inside the functions: what a contender does not need is not to be part of its memory.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path


def parser_of(about, *, data=False, vectors=False, contenders=(), **numbers):
    """A parser with --json, with --data, --vectors and --contender where they are wanted, and with numbers by name."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--json", type=Path, help="write the rows with the record of the run to this file")
    if data:
        parser.add_argument("--data", type=Path, help="folder of the 15K data sets")
    if vectors:
        parser.add_argument("--vectors", type=Path, default=Path(), help="folder of the files that `rlea embed` wrote")
    if contenders:
        parser.add_argument("--contender", choices=list(contenders), help=argparse.SUPPRESS)
    for name, usual in numbers.items():
        parser.add_argument(f"--{name}", type=type(usual), default=usual)
    return parser


def has_data(options):
    """Whether --data is given; says so if not."""
    if options.data is None:
        print("skipped: --data names the folder of the 15K data sets")
    return options.data is not None


def pairs_with_candidates(options):
    """Name, pair, AlignE's vectors and the ten nearest test targets, of each of `options.pairs`."""
    from rlea.graph import choose_pool
    from rlea.io.readers import read_pair
    from rlea.models.embed import embed_entities
    from rlea.search.candidates import find_candidates

    for name in options.pairs:
        pair = read_pair(options.data / f"{name}_15K_V1")
        vectors = embed_entities(pair, str(options.vectors / f"aligne_{name}.safetensors"))
        _, source_ids, target_ids = choose_pool(pair, "test")
        yield name, pair, vectors, find_candidates(vectors, source_ids, target_ids, 10)


def with_episodes(settings, episodes):
    """The settings of the paper's agent with so many episodes of training."""
    return replace(settings, train=replace(settings.train, episodes=episodes))


def of_policy(agent, task):
    """How many pairs the paper's agent would accept, and how far its probabilities vary."""
    _, chance = agent.probabilities(task)
    return {
        "accepted": float((chance >= 0.5).mean()),
        "probability_mean": float(chance.mean()),
        "probability_std": float(chance.std()),
        "best_episode": agent.best_episode,
    }


def policy_cells(row):
    """The same as cells of a printed line."""
    return f"{row['accepted']:10.3f}{row['probability_mean']:8.3f}{row['probability_std']:8.3f}"


def timed(work):
    """What a function returns, and the seconds that it took."""
    start = time.perf_counter()
    result = work()
    return result, time.perf_counter() - start


def print_row(row):
    """Names and values in a line."""
    print("  ".join(f"{key} {value}" for key, value in row.items()), flush=True)


def run_apart(file, contender, *arguments):
    """What a contender prints last, as JSON: it runs in a process of its own, so that peak memory is its own."""
    command = [sys.executable, file, "--contender", contender, *arguments]
    answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(answer.splitlines()[-1])


def keep_rows(path, command, rows, **facts):
    """Print rows as they come, and write those so far with the record of the run: the whole of it may take long."""
    found = []
    for row in rows:
        found.append({key: round(value, 4) if isinstance(value, float) else value for key, value in row.items()})
        print(json.dumps(found[-1]), flush=True)
        keep(path, command, rows=found, **facts)


def keep(path, command, **facts):
    """Write facts with the record of the run, if there is a path; `command` is what repeats it."""
    from rlea.record import as_json, describe_run

    own = [row["fingerprint"] for row in facts.get("rows", []) if "fingerprint" in row]
    if own and not {"fingerprint", "fingerprints"} & facts.keys():
        facts["fingerprints"] = list(dict.fromkeys(own))
    if path:
        record = describe_run(**facts) | {"command": f"python benchmarks/{command}"}
        path.write_text(as_json(record), encoding="utf-8")
