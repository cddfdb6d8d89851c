"""Find silent stages: the longest times between two progress reports of a run, and where the program was meanwhile.

Example:  python scripts/progress_gaps.py D_W_15K_V1 --fold 1 --without-seeds
"""

from __future__ import annotations

import argparse
import faulthandler
import sys
import time
from dataclasses import replace
from pathlib import Path

from rlea import pipeline
from rlea.graph import Links

LIMIT = 2.0  # seconds after which silence is worth a line


def main() -> None:
    """Align a pair, and print every silence longer than the limit with the stage before it and the call stack."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pair", type=Path)
    parser.add_argument("--fold", default=None)
    parser.add_argument("--without-seeds", action="store_true", help="align all entities, from nothing")
    parser.add_argument("--matcher", default="auto")
    parser.add_argument("--limit", type=float, default=LIMIT)
    parser.add_argument("--output", type=Path, help="write the files of the run, too")
    chosen = parser.parse_args()
    start = last = time.perf_counter()
    before, longest, calls = "begin", 0.0, 0
    spent: dict[str, float] = {}  # seconds by the stage that was reported last
    stage_now = ["read"]

    def heard(now_at: str) -> None:
        nonlocal last, before, longest
        now = time.perf_counter()
        gap, longest = now - last, max(longest, now - last)
        if gap >= chosen.limit:
            print(f"{gap:6.1f} s silent after {before!r}, until {now_at!r} at {now - start:.1f} s", flush=True)
        last, before = now, now_at
        # The stack is printed by a thread of C: it also works while compiled code runs.
        faulthandler.dump_traceback_later(chosen.limit, file=sys.stdout)

    def report(stage: str, done: float, total: float, note: str = "") -> None:
        nonlocal calls
        calls += 1
        spent[stage_now[0]] = spent.get(stage_now[0], 0.0) + time.perf_counter() - last
        stage_now[0] = stage
        heard(f"{stage} {done:g}/{total:g} {note}".strip())

    heard("begin")
    pair = pipeline.read(chosen.pair, fold=chosen.fold)
    heard("read")
    if chosen.without_seeds:
        pair = replace(pair, train=Links.empty())
    result = pipeline.align(
        pair, matcher=chosen.matcher, pool="all" if chosen.without_seeds else "auto", progress=report
    )
    heard("align")
    if chosen.output is not None:
        pipeline.write(chosen.output, result)
        heard("write")
    faulthandler.cancel_dump_traceback_later()
    seconds = time.perf_counter() - start
    print("seconds:", ", ".join(f"{stage} {value:.1f}" for stage, value in spent.items()))
    print(f"{calls} reports in {seconds:.1f} s; the longest silence was {longest:.1f} s; {result!r}")


if __name__ == "__main__":
    main()
