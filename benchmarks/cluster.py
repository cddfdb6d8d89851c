"""Runs on a cluster of this machine: the same links by any number of workers, and what a killed worker costs.

    python benchmarks/cluster.py --data DIR [--pairs demo D_W] [--json FILE]

All evidence, no seeds. `killed`: the worker of the sixth part is killed when that is done, before its result is kept.
Seconds are of the processors of all processes. Without --data nothing is run.
"""

from __future__ import annotations

import hashlib
import os
import signal
import time
from dataclasses import replace
from pathlib import Path

from measuring import has_data, keep_rows, parser_of

import rlea
from rlea.graph import Links
from rlea.scale import cluster

KILLED = 5  # the part that kills its worker


def main() -> None:
    parser = parser_of(__doc__, data=True)
    parser.add_argument("--pairs", nargs="+", default=["demo", "D_W"])
    parser.add_argument("--how", nargs="+", default=["here", "local:1", "local:2", "local:4", "killed"])
    options = parser.parse_args()
    if not has_data(options):
        return
    fingerprints = {}

    def rows():
        for name in options.pairs:
            pair = rlea.read_demo() if name == "demo" else rlea.read(options.data / f"{name}_15K_V1")
            fingerprints[name] = pair.fingerprint
            gold = Links.union([pair.train, pair.valid, pair.test])
            pair = replace(pair, train=Links.empty(), valid=Links.empty(), test=gold)
            for how in options.how:
                yield {"pair": name, "how": how} | measure(pair, how)

    command = f"cluster.py --data DIR --pairs {' '.join(options.pairs)} --how {' '.join(options.how)}"
    keep_rows(options.json, command, rows(), seed=0, fingerprints=fingerprints)


def measure(pair, how):
    kept = cluster.do_part
    start, wall = time.process_time(), time.perf_counter()
    try:
        if how == "killed":
            cluster.do_part = do_or_die(kept)
        result = rlea.align(pair, matcher="fused", cluster="local:2" if how == "killed" else how)
    finally:
        cluster.do_part = kept
    links, told = result.matching, result.info["cluster"]
    parts = (links.source_ids, links.target_ids, links.confidences)
    driver = time.process_time() - start
    workers = 0.0 if how == "here" else sum(stage["seconds"] for stage in told["stages"].values())
    return {
        "f1": result.links.f1,
        "links": len(links),
        "md5": hashlib.md5(b"".join(part.tobytes() for part in parts)).hexdigest(),
        "seconds_driver": driver,
        "seconds_workers": workers,
        "wall_seconds": time.perf_counter() - wall,
        "peak_mb_driver": result.peak_memory_mb,
        "peak_mb_worker": max(told["peak_memory_mb_by_worker"].values()),
        "bytes": told["bytes_shared"] + sum(stage["bytes"] for stage in told["stages"].values()),
    }


def do_or_die(original):
    """Parts as they are done, but for one whose worker is killed, and whose result is lost."""

    def work(content, path, wanted):
        place = Path(path)
        if place.name.startswith(f"{KILLED:06d}-"):
            try:
                os.close(os.open(place.parent / "killed", os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return original(content, path, wanted)
            original(content, path, wanted)
            place.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        return original(content, path, wanted)

    return work


if __name__ == "__main__":
    main()
