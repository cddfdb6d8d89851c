"""How long does it take until an answer in `rlea review` has counted for what is around it?

    rlea align source.nt target.nt --gold gold.tsv --output RUN
    python benchmarks/live.py --runs RUN --json results/live.json

Folders of runs, with commas. Their least confident links are asked about, and answered by the gold links; every answer
is decided again as the page has it done. Times are those of the clock and of the processor: where other processes
want the cores, only the latter compare.
"""

from __future__ import annotations

import json
import os
import time
from functools import partial
from pathlib import Path

import numpy as np


def times_of(work):
    """What a function returns, with milliseconds of the clock and of the processor."""
    start, used = time.perf_counter(), time.process_time()
    result = work()
    return result, 1000 * (time.perf_counter() - start), 1000 * (time.process_time() - used)


def percentiles(values):
    """The median, what 95 % stay below, and the longest."""
    return {name: float(np.percentile(values, at)) for name, at in (("p50_ms", 50), ("p95_ms", 95), ("most_ms", 100))}


def answer(live, source, target, is_right):
    """What an answer changes, and all links after it."""
    return live.answer(source, target, is_right=is_right), live.links


def rows_of(runs, questions):
    """A row for every run."""
    from rlea.agent.kept import KEPT
    from rlea.resumed import Resumed

    for folder in runs:
        resumed = Resumed.open(folder)
        pair = resumed.run.pair
        live, wall, used = times_of(resumed.live)
        row = {"pair": pair.name, "entities": [pair.source.num_entities, pair.target.num_entities]}
        row |= {"links": len(live.links), "kept_bytes": (Path(folder) / KEPT).stat().st_size}
        row |= {"making_seconds": wall / 1000, "making_cpu_seconds": used / 1000}
        gold = dict(zip(pair.test.source_ids.tolist(), pair.test.target_ids.tolist(), strict=True))
        links, clock, cpu, changed = live.links, [], [], []
        order = np.argsort(np.abs(links.confidences - 0.5), kind="stable")
        for place in order[:questions].tolist():
            source, target = int(links.source_ids[place]), int(links.target_ids[place])
            (changes, _), wall, used = times_of(partial(answer, live, source, target, gold.get(source) == target))
            clock.append(wall)
            cpu.append(used)
            changed.append(sum(one.source_id != source for one in changes))
        row |= {"questions": len(clock), "clock": percentiles(clock[1:]), "cpu": percentiles(cpu[1:])}  # warm
        yield row | {"changed_elsewhere": float(np.mean(changed)), "load": os.getloadavg()[0]}


def main() -> None:
    from measuring import keep_rows, parser_of

    options = parser_of(__doc__, runs="", questions=100).parse_args()
    runs = [run for run in options.runs.split(",") if run]
    if not runs:
        print("skipped: --runs names folders of runs")
        return
    command = f"live.py --runs {','.join('RUN' for _ in runs)} --questions {options.questions}"
    records = [json.loads((Path(run) / "run.json").read_text(encoding="utf-8")) for run in runs]
    fingerprints = [record["fingerprint"] for record in records]
    keep_rows(options.json, command, rows_of(runs, options.questions), fingerprints=fingerprints)


if __name__ == "__main__":
    main()
