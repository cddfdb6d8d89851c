"""What a change of the program did to its figures, its time and its memory: an earlier checkout and this one, in turn.

    python benchmarks/before_after.py --before FOLDER --data DIR --vectors DIR [--parts figures,cost] [--json FILE]

figures: F1 of one run each (fold 1, random seed 0) by structure alone with the vectors of models, by all evidence with
and without seeds, and of the demo pair. With this program also all evidence together with vectors, which the earlier
one cannot use.
cost: seconds by the wall clock and of the processors, and peak memory of `rlea align` on D_W and EN_FR, three times in
turn, compiled code on disk.

Vectors are files MODEL_PAIR.safetensors, so that both programs see the same; each is made by

    rlea embed DIR/D_W_15K_V1 --fold 1 --model aligne --output VECTORS/aligne_D_W.safetensors
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAIRS = ("D_W", "EN_FR", "EN_DE", "D_Y")
STRUCTURE = [("structure", pair, model) for model in ("aligne", "sea") for pair in PAIRS]
EVIDENCE = [(kind, pair, "") for kind in ("seeds", "no seeds") for pair in PAIRS]
ROWS = [*STRUCTURE, ("structure", "D_W", "rdgcn"), *EVIDENCE, ("no seeds", "demo", "")]
NEW_ROWS = [("seeds", "D_W", "aligne"), ("seeds", "D_W", "rdgcn")]


def align_once(kind, name, model, data, vectors):
    """One run of whichever program is on the path."""
    import rlea
    from rlea.demo import demo_folder
    from rlea.graph import GraphPair, Links

    pair = rlea.read(demo_folder()) if name == "demo" else rlea.read(data / f"{name}_15K_V1", fold="1")
    if kind == "no seeds" and name != "demo":
        gold = Links.union([pair.train, pair.valid, pair.test])
        pair = GraphPair(pair.name, pair.source, pair.target, test=gold)
    options = {"pool": "all"} if kind == "no seeds" else {}
    digest = ""
    if model:
        file = vectors / f"{model}_{name}.safetensors"
        digest = hashlib.sha256(file.read_bytes()).hexdigest()[:16]
        several = not isinstance(rlea.AlignSettings().embedding, str)
        options["embedding"] = (str(file),) if several else str(file)
        options["matcher"] = "rlea" if kind == "structure" else "fused"
    start = time.perf_counter()
    result = rlea.align(pair, rlea.AlignSettings(**options))
    seconds = round(time.perf_counter() - start, 1)
    return {"f1": round(result.links.f1, 4), "seconds": seconds, "vectors": digest, "fingerprint": pair.fingerprint}


def environment(source, cache):
    return {
        **os.environ,
        "OMP_WAIT_POLICY": "passive",
        "PYTHONPATH": str(source / "src"),
        "NUMBA_CACHE_DIR": str(cache),
    }


def measure_figures(programs, options):
    rows = []
    for kind, name, model in [*ROWS, *NEW_ROWS]:
        row = {"evidence": kind, "pair": name, "model": model}
        for program, source in programs.items():
            if program == "before" and (kind, name, model) in NEW_ROWS:
                continue
            command = [
                sys.executable,
                str(Path(__file__).resolve()),
                "--once",
                kind,
                name,
                model,
                "--data",
                options.data,
            ]
            command += ["--vectors", options.vectors]
            own = environment(source, options.folder / program)
            done = subprocess.run(command, env=own, capture_output=True, text=True, check=False)
            if done.returncode:
                sys.exit(f"{program} {row}: {done.stderr[-2000:]}")
            found = json.loads(done.stdout.splitlines()[-1])
            row |= {program: found["f1"], "vectors": found["vectors"], "fingerprint": found["fingerprint"]}
        rows.append(row)
        print(f"{kind:10} {name:6} {model:7} {row.get('before', '')} -> {row['after']}", flush=True)
    both = [row for row in rows if "before" in row]
    means = {program: round(sum(row[program] for row in both) / len(both), 4) for program in programs}
    print(f"mean {means}", flush=True)
    prints = {f"{row['evidence']} {row['pair']}": row["fingerprint"] for row in rows}
    return {"rows": rows, "mean": means, "fingerprints": prints}


def measure_cost(programs, options):
    runs = []
    for name in ("D_W", "EN_FR"):
        for program, source in list(programs.items()) * 3:
            with tempfile.TemporaryDirectory() as output:
                command = [sys.executable, "-c", "from rlea.cli import main; main()", "align"]
                command += [str(options.data / f"{name}_15K_V1"), "--fold", "1", "--quiet", "--output", output]
                own = environment(source, options.folder / program)
                start = time.perf_counter()
                process = subprocess.Popen(command, env=own, stdout=subprocess.DEVNULL)
                _, status, used = os.wait4(process.pid, 0)
                seconds = time.perf_counter() - start
                if status:
                    sys.exit(f"{program} {name} failed")
            runs.append(
                {
                    "pair": name,
                    "program": program,
                    "seconds": round(seconds, 1),
                    "processor_seconds": round(used.ru_utime + used.ru_stime, 1),
                    "memory_mb": peak_mb(used),
                }
            )
            print(runs[-1], flush=True)
    # The first run of either may have had to compile.
    ratios = {}
    for name in ("D_W", "EN_FR"):
        for what in ("seconds", "processor_seconds", "memory_mb"):
            best = {
                program: min(run[what] for run in runs if (run["pair"], run["program"]) == (name, program))
                for program in programs
            }
            ratios[f"{name} {what}"] = round(best["after"] / best["before"], 3)
    print(ratios, flush=True)
    return {"runs": runs, "ratios": ratios}


def peak_mb(used: resource.struct_rusage) -> int:
    """Peak memory of a process that has ended; Linux counts it in KiB."""
    return round(used.ru_maxrss * 1024 / 1e6)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, help="a checkout of an earlier commit")
    parser.add_argument("--data", type=Path, required=True, help="folder with the 15K data sets")
    parser.add_argument("--vectors", type=Path, help="folder with vectors")
    parser.add_argument("--parts", default="figures,cost")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "before_after", help="of compiled code")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--once", nargs=3)
    options = parser.parse_args()
    if options.once:
        print(json.dumps(align_once(*options.once, options.data, options.vectors)))
        return
    from rlea.record import as_json, describe_run

    programs = {"before": options.before.resolve(), "after": ROOT}
    commit = ["git", "-C", str(programs["before"]), "rev-parse", "--short=12", "HEAD"]
    at = subprocess.run(commit, capture_output=True, text=True, check=True).stdout.strip()
    kept = json.loads(options.json.read_text()) if options.json and options.json.exists() else {}
    for part in options.parts.split(","):
        measured = {"figures": measure_figures, "cost": measure_cost}[part](programs, options)
        record = describe_run(**{part: measured}, seed=0)
        kept = {
            **kept,
            **record,
            "commits": kept.get("commits", {}) | {part: {"before": at, "after": record["commit"]}},
        }
        kept["fingerprints"] = kept.get("figures", {}).get("fingerprints", {})
        kept["command"] = "python benchmarks/before_after.py --before FOLDER --data DIR --vectors DIR"
        if options.json:
            options.json.write_text(as_json(kept), encoding="utf-8")


if __name__ == "__main__":
    main()
