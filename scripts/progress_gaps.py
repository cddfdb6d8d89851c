"""Find silent stages: the longest times between two progress reports of a run, and where the program was meanwhile.

Also says how long stages took, and how good the estimates of the time left were. On a busy machine the seconds of CPU
are what to go by.

Example:  python scripts/progress_gaps.py D_W_15K_V1 --fold 1 --without-seeds
          python scripts/progress_gaps.py ours.csv theirs.csv
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
from rlea.plan import plan_stages
from rlea.progress import Overall, tell_left
from rlea.settings import AlignSettings

LIMIT = 2.0  # seconds after which silence is worth a line


class Listener:
    """A progress callback that notes when it was called."""

    def __init__(self, limit: float) -> None:
        self.limit, self.calls, self.stage, self.last_report = limit, 0, "read", "begin"
        self.start = self.last = time.perf_counter()
        self.last_cpu = time.process_time()
        self.longest = self.longest_cpu = 0.0
        self.spent: dict[str, float] = {}  # seconds by the stage that was reported last
        self.overall = Overall({}, self.start)
        self.estimates: list[tuple[float, float]] = []  # when, and seconds left

    def __call__(self, stage: str, done: float, total: float, note: str = "") -> None:
        now, cpu = time.perf_counter(), time.process_time()
        gap, gap_cpu, report = now - self.last, cpu - self.last_cpu, f"{stage} {done:g}/{total:g} {note}".strip()
        self.spent[self.stage] = self.spent.get(self.stage, 0.0) + gap
        self.longest, self.longest_cpu = max(self.longest, gap), max(self.longest_cpu, gap_cpu)
        if gap >= self.limit:
            silence = f"{gap:.1f} s of silence ({gap_cpu:.1f} s of CPU)"
            print(f"{silence} between {self.last_report!r} and {report!r}, at {now - self.start:.0f} s", flush=True)
        self.calls, self.stage, self.last_report, self.last, self.last_cpu = self.calls + 1, stage, report, now, cpu
        self.overall.report(stage, done, total)
        self.estimates.append((now, self.overall.left(now)))
        # The stack is printed by a thread of C: it also works while compiled code runs.
        faulthandler.dump_traceback_later(self.limit, file=sys.stdout)

    def conclude(self) -> None:
        """Print what there is to say in the end."""
        faulthandler.cancel_dump_traceback_later()
        end = time.perf_counter()
        for share in (0.1, 0.25, 0.5, 0.75, 0.9):
            wanted = self.start + share * (end - self.start)
            now, left = min(self.estimates, key=lambda one: abs(one[0] - wanted))
            print(f"after {now - self.start:.0f} s: {tell_left(left)} ({left:.0f} s); it took {end - now:.0f} s more")
        print("seconds:", ", ".join(f"{stage} {value:.1f}" for stage, value in self.spent.items()))
        print(f"{self.calls} reports in {end - self.start:.1f} s")
        print(f"longest silence: {self.longest:.1f} s; in CPU time {self.longest_cpu:.1f} s")


def main() -> None:
    """Align a pair, and print every silence longer than the limit, with the call stack at the limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pair", type=Path, nargs="+", help="a folder of a pair, or two graphs or tables")
    parser.add_argument("--fold", default=None)
    parser.add_argument("--without-seeds", action="store_true", help="align all entities, from nothing")
    parser.add_argument("--matcher", default="auto")
    parser.add_argument("--limit", type=float, default=LIMIT)
    parser.add_argument("--output", type=Path, help="write the files of the run, too")
    chosen = parser.parse_args()
    listener = Listener(chosen.limit)
    listener("read", 0, 1)
    pair = pipeline.read(*chosen.pair, fold=chosen.fold)
    if chosen.without_seeds:
        pair = replace(pair, train=Links.empty())
    settings = AlignSettings(matcher=chosen.matcher, pool="all" if chosen.without_seeds else "auto")
    listener.overall = Overall(plan_stages(pair, settings), time.perf_counter())
    result = pipeline.align(pair, settings, progress=listener)
    listener("write", 0, 1)
    if chosen.output is not None:
        pipeline.write(chosen.output, result)
        listener("write", 1, 1)
    listener.conclude()
    print(result)


if __name__ == "__main__":
    main()
