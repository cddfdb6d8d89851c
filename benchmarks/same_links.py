"""Are the links the same on every machine, and with every random seed? And what does that cost?

    python benchmarks/same_links.py --data DIR [--parts machines,seeds,time] [--before FOLDER] [--json FILE]

machines: the MD5 sum of links.tsv under every setting of scripts/test_machines.py, with one thread and with two. The
tasks are the demo pair, D_W without seeds, and EN_FR by structure alone (fold 1).
seeds: random seeds 0 to 4 on these, and on D_W with 300 seeds. Of links with a confidence of .9 and
more: the share in common of every two runs (both over either), and the share that the other run has at whatever
confidence. As a check that does not hang on what a seed draws: the same with one triple in a hundred left out.
time: `rlea align` on D_W (fold 1) with the program in FOLDER (a checkout of an earlier commit) and with this one, in
turn, by the wall clock, with compiled code loaded from disk.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parent.parent
TASKS = ("demo", "D_W no seeds", "D_W 300 seeds", "EN_FR structure")
THREADS = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS")


def load(task, data):
    """The pair, how it is aligned, and the gold links."""
    import rlea
    from rlea.demo import demo_folder
    from rlea.graph import GraphPair, Links
    from rlea.settings import AlignSettings

    if task == "demo":
        pair = rlea.read(demo_folder())
        return pair, AlignSettings(pool="all"), pair.test
    pair = rlea.read(data / f"{task.split()[0]}_15K_V1", fold="1")
    if task == "D_W no seeds":
        gold = Links.union([pair.train, pair.valid, pair.test])
        return GraphPair(pair.name, pair.source, pair.target), AlignSettings(), gold
    if task == "D_W 300 seeds":
        some = np.random.default_rng(0).permutation(len(pair.train))[:300]
        seeds = Links.of(pair.train.source_ids[some], pair.train.target_ids[some])
        return replace(pair, train=seeds), AlignSettings(pool="all"), pair.test
    return pair, AlignSettings(channels=("structure",)), pair.test


def align_once(task, data, seed=0, left_out=0.0, graphs=0):
    """One run; with `left_out`, without that share of the triples of either graph, drawn by `graphs`."""
    import rlea
    from rlea.evaluation.metrics import expected_calibration_error, link_metrics
    from rlea.graph import GraphPair

    pair, settings, gold = load(task, data)
    fingerprint = pair.fingerprint
    if left_out:
        sides = []
        for number, graph in enumerate((pair.source, pair.target)):
            kept = np.random.default_rng([graphs, number]).random(len(graph.triples)) >= left_out
            sides.append(replace(graph, triples=graph.triples[kept]))
        pair = GraphPair(pair.name, *sides, pair.train, pair.valid, pair.test, pair.fold)
    start = time.perf_counter()
    result = rlea.align(pair, replace(settings, seed=seed))
    seconds = time.perf_counter() - start
    with tempfile.TemporaryDirectory() as folder:
        rlea.write(folder, result)
        digest = hashlib.md5((Path(folder) / "links.tsv").read_bytes()).hexdigest()
    links = result.matching
    return {
        "task": task,
        "seed": seed,
        "md5": digest,
        "f1": round(link_metrics(links, gold).f1, 4),
        "ece": round(expected_calibration_error(links, gold), 4),
        "links": len(links),
        "sure": int((links.confidences >= 0.9).sum()),
        "seconds": round(seconds, 1),
        "fingerprint": fingerprint,
        "rows": [links.source_ids.tolist(), links.target_ids.tolist(), links.confidences.tolist()],
    }


def run_apart(environment, *arguments, source=ROOT):
    """The same in a process of its own, with other variables of the environment."""
    own = {**os.environ, "OMP_WAIT_POLICY": "passive", "PYTHONPATH": str(source / "src")}
    for name, value in environment.items():
        own.pop(name, None)
        if value is not None:
            own[name] = value
    command = [sys.executable, str(Path(__file__).resolve()), *map(str, arguments)]
    done = subprocess.run(command, env=own, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{environment}: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def over_machines(data, folder):
    sys.path.insert(0, str(ROOT / "scripts"))
    from test_machines import SETTINGS

    rows = []
    variants = {"two threads": dict.fromkeys(THREADS, "2")}
    skipped = {name: setting.missing() for name, setting in SETTINGS.items() if setting.missing()}
    variants |= {name: setting.variables() for name, setting in SETTINGS.items() if name not in skipped}

    def measure(name, task):
        # Code compiled for no processor in particular is kept apart; the others would all compile the same.
        cache = folder / ("generic" if name == "numba-generic" else "native")
        row = run_apart({**variants[name], "NUMBA_CACHE_DIR": str(cache)}, "--once", task, "--data", data)
        row.pop("rows")
        print(f"{name:20} {task:16} {row['md5']} F1 {row['f1']:.4f} {row['seconds']} s", flush=True)
        return {"setting": name, **row}

    tasks = ("EN_FR structure", "D_W no seeds", "demo")
    with ThreadPoolExecutor(2) as workers:
        for name in variants:
            rows += workers.map(measure, [name] * len(tasks), tasks)
    return rows, skipped


def over_seeds(data, folder):
    rows = []
    for task in TASKS:
        for kind, options in (
            ("seeds 0 to 4", [["--seed", seed] for seed in range(5)]),
            ("1 % of the triples left out, 3 draws", [["--left-out", 0.01, "--graphs", draw] for draw in range(3)]),
        ):
            cache, wanted = {"NUMBA_CACHE_DIR": str(folder / "native")}, ["--once", task, "--data", data]
            with ThreadPoolExecutor(2) as workers:
                runs = list(workers.map(run_apart, *zip(*([cache, *wanted, *more] for more in options), strict=True)))
            rows.append({"task": task, "kind": kind, **in_common(runs)})
            print(rows[-1], flush=True)
    return rows


def in_common(runs):
    """How far several runs agree in their sure links."""
    every = [dict(zip(zip(*run["rows"][:2], strict=True), run["rows"][2], strict=True)) for run in runs]
    sure = [{pair for pair, confidence in links.items() if confidence >= 0.9} for links in every]
    both, found = [], []
    for one, other in itertools.combinations(range(len(runs)), 2):
        both.append(len(sure[one] & sure[other]) / max(1, len(sure[one] | sure[other])))
        found += [len(sure[a] & every[b].keys()) / max(1, len(sure[a])) for a, b in ((one, other), (other, one))]
    return {
        "f1": [run["f1"] for run in runs],
        "ece": [run["ece"] for run in runs],
        "sure": [run["sure"] for run in runs],
        "in_common_least": round(min(both), 4),
        "in_common_mean": round(float(np.mean(both)), 4),
        "found_by_the_other_least": round(min(found), 4),
        "fingerprint": runs[0]["fingerprint"],
    }


def before_and_after(data, folder, before):
    rows = []
    for name, source in (("before", before), ("after", ROOT)) * 3:
        cache = folder / name
        with tempfile.TemporaryDirectory() as output:
            environment = {**os.environ, "PYTHONPATH": str(source / "src"), "NUMBA_CACHE_DIR": str(cache)}
            command = [sys.executable, "-c", "from rlea.cli import main; main()", "align", str(data / "D_W_15K_V1")]
            start = time.perf_counter()
            subprocess.run(
                [*command, "--fold", "1", "--quiet", "--output", output],
                env=environment,
                check=True,
                stdout=subprocess.DEVNULL,
            )
            seconds = time.perf_counter() - start
            commit = ["git", "-C", str(source), "rev-parse", "--short=12", "HEAD"]
            at = subprocess.run(commit, capture_output=True, text=True, check=True).stdout.strip()
            f1 = json.loads((Path(output) / "run.json").read_text())["result"]["f1"]
        rows.append({"program": name, "commit": at, "seconds": round(seconds, 1), "f1": round(f1, 4)})
        print(rows[-1], flush=True)
    # The first of either may have had to compile.
    best = {name: min(row["seconds"] for row in rows if row["program"] == name) for name in ("before", "after")}
    return {"runs": rows, "ratio": round(best["after"] / best["before"], 3)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with the 15K data sets")
    parser.add_argument("--parts", default="machines,seeds")
    parser.add_argument("--before", type=Path)
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "same_links", help="of compiled code")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--once", choices=TASKS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--left-out", type=float, default=0.0)
    parser.add_argument("--graphs", type=int, default=0)
    options = parser.parse_args()
    if options.once:
        print(json.dumps(align_once(options.once, options.data, options.seed, options.left_out, options.graphs)))
        return
    from rlea.record import as_json, describe_run

    kept = json.loads(options.json.read_text()) if options.json and options.json.exists() else {}
    for part in options.parts.split(","):
        found = {}
        if part == "machines":
            rows, skipped = over_machines(options.data, options.folder)
            found = {"machines": rows, "skipped": skipped}
        elif part == "seeds":
            found = {"seeds": over_seeds(options.data, options.folder)}
        elif part == "time" and options.before is not None:
            found = {"cost": before_and_after(options.data, options.folder, options.before)}
        else:
            sys.exit(f"unknown part {part!r}, or --before is missing; parts are machines, seeds, time")
        if options.json:
            rows = [*found.get("machines", []), *found.get("seeds", [])]
            prints = kept.get("fingerprints", {}) | {row["task"]: row["fingerprint"] for row in rows}
            record = describe_run(**found, fingerprints=prints, seed=0)
            commits = kept.get("commits", {}) | {part: record["commit"]}
            kept = {**kept, **record, "commits": commits}
            kept["command"] = "python benchmarks/same_links.py --data DIR --parts machines,seeds,time --before FOLDER"
            options.json.write_text(as_json(kept), encoding="utf-8")


if __name__ == "__main__":
    main()
