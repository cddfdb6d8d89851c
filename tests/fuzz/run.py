"""Attack every reader and the whole flow: `python -m fuzz.run --minutes 60` from tests/, or `make fuzz MINUTES=60`.

A finding is anything but a value or an InputError, ten seconds for one case, or a gigabyte of memory for it. Its input
goes to the folder of findings; once mended it belongs into tests/fuzz/corpus, which every test run reads. Values and
pairs are made from the seed and the number of the case alone: `--flow SEED:NUMBER` runs one of them again. A case that
takes the process with it is found in `current` in the folder of findings.
"""

from __future__ import annotations

import argparse
import faulthandler
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

from fuzz.flow import align_random_pair, dedupe_random_graph
from fuzz.mutate import mutate
from fuzz.targets import PARTS, Target, make_targets, read_random_values
from rlea.errors import InputError

MOST_SECONDS, MOST_MB = 10.0, 1000.0
HANGS, WAITS = 120.0, 3600.0  # what hangs in compiled code, or waits for something, ends with the process
MOST_ADDRESSES = 64 << 30  # of the process: what asks for more gets a MemoryError, and other programs stay alive
CORPUS = Path(__file__).parent / "corpus"
# Made up in memory: what is attacked, after how many files, and what makes one case.
MADE_UP: dict[str, tuple[int, Callable[[Random], Any]]] = {
    "values": (50, read_random_values),
    "pairs through the flow": (10, align_random_pair),
    "duplicates and several graphs": (60, dedupe_random_graph),
}


def attack(target: Target, content: bytes, work: Path) -> str:
    """Read one mutated file; what was wrong, or empty."""
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(target.folder, work)
    path = work / target.file
    path.write_bytes(content)
    return judge(lambda: target.read(path))


def judge(call: object) -> str:
    """Call, and say what was wrong; empty for a value or a sentence."""
    assert callable(call)
    before, start, busy = _peak_mb(), time.monotonic(), time.process_time()
    try:
        with _ended_if_it_hangs():
            call()
    except InputError as problem:
        if len(str(problem)) > 4000 or "\n" in str(problem):
            return f"a message of {len(str(problem))} characters or several lines"
    except BaseException:  # a panic of compiled code is no Exception
        return traceback.format_exc()
    # Both: a busy machine makes everything slow, and several threads at work take more than the time that passes.
    seconds = min(time.monotonic() - start, time.process_time() - busy)
    if seconds > MOST_SECONDS:
        return f"{seconds:.0f} seconds"
    if _peak_mb() - before > MOST_MB:
        return f"{_peak_mb() - before:.0f} MB"
    return ""


@contextmanager
def _ended_if_it_hangs() -> Iterator[None]:
    """End the process with a traceback after HANGS seconds of its processor time, or WAITS by the clock.

    The clock alone would end cases of a busy machine, where a process may get no processor for minutes.
    """
    faulthandler.dump_traceback_later(WAITS, exit=True)
    if hasattr(signal, "setitimer"):
        faulthandler.register(signal.SIGPROF, chain=True)  # and then the process ends, as it does by default
        signal.setitimer(signal.ITIMER_PROF, HANGS)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_PROF, 0)
            faulthandler.unregister(signal.SIGPROF)


def cases(targets: list[Target], seed: int) -> Iterator[tuple[Target, bytes, int]]:
    """Mutated files without end: target, content, number of the case. The same seed gives the same cases."""
    good = [(target, (target.folder / target.file).read_bytes()) for target in targets]
    number = 0
    while True:
        for target, content in good:
            number += 1
            yield target, mutate(target.file, content, Random(f"{seed} {number}")), number


def corpus_cases(targets: list[Target]) -> Iterator[tuple[Target, bytes]]:
    """All that was ever found: files of corpus/NAME OF TARGET/."""
    named = {target.name: target for target in targets}
    for path in sorted(CORPUS.glob("*/*")):
        yield named[path.parent.name], path.read_bytes()


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def warm_up(targets: list[Target], work: Path) -> None:
    """Read every good file, and align some pairs: compiling is no part of any case."""
    for target in targets:
        problem = attack(target, (target.folder / target.file).read_bytes(), work / target.name)
        if problem and "seconds" not in problem and "MB" not in problem:
            sys.stderr.write(f"the good file of {target.name}: {problem}\n")
    for number in range(30):
        judge(lambda number=number: align_random_pair(Random(number)))


def main() -> int:
    """Attack for some minutes; the number of findings is the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--findings", type=Path, default=Path("findings"))
    parser.add_argument("--flow", help="run the made-up cases of one SEED:NUMBER again, and show what is wrong")
    parser.add_argument("--parts", default="", help=f"only these, separated by commas: {', '.join((*PARTS, *MADE_UP))}")
    options = parser.parse_args()
    parts = [name.strip() for name in options.parts.split(",") if name.strip()]
    warnings.simplefilter("error")
    if options.flow:
        seed, number = options.flow.split(":")
        for name, (_, make) in MADE_UP.items():
            sys.stdout.write(f"{name}: {judge(lambda make=make: make(Random(f'{seed} {number}'))) or 'nothing'}\n")
        return 0
    counts: Counter[str] = Counter()
    found: Counter[str] = Counter()
    current = options.findings / "current"
    current.mkdir(parents=True, exist_ok=True)

    def keep(name: str, problem: str, number: int, content: bytes, suffix: str = "") -> None:
        counts[name] += 1
        if problem:
            found[name] += 1
            place = options.findings / name
            place.mkdir(parents=True, exist_ok=True)
            if content:
                (place / f"{options.seed}-{number}{suffix}").write_bytes(content)
            (place / f"{options.seed}-{number}.txt").write_text(problem, encoding="utf-8", errors="backslashreplace")

    with tempfile.TemporaryDirectory() as folder:
        targets = make_targets(Path(folder) / "good", parts)
        warm_up(targets, Path(folder) / "work")
        resource.setrlimit(resource.RLIMIT_AS, (MOST_ADDRESSES, MOST_ADDRESSES))
        end = time.monotonic() + 60 * options.minutes
        for target, content, number in cases(targets, options.seed):
            if time.monotonic() > end:
                break
            (current / "name").write_text(f"{target.name}, case {options.seed}:{number}\n")
            (current / "content").write_bytes(content)
            problem = attack(target, content, Path(folder) / "work" / target.name)
            keep(target.name, problem, number, content, Path(target.file).suffix)
            for name, (every, make) in MADE_UP.items():
                if number % every == 0 and (not parts or name in parts):
                    (current / "name").write_text(f"{name}, case {options.seed}:{number}\n")
                    problem = judge(lambda make=make, number=number: make(Random(f"{options.seed} {number}")))
                    keep(name, problem, number, b"")
    shutil.rmtree(current)
    for name, count in sorted(counts.items()):
        sys.stdout.write(f"{name:32} {count:8,} cases {found[name]:5} findings\n")
    sys.stdout.write(f"seed {options.seed}: {counts.total():,} cases, {found.total()} findings\n")
    return min(found.total(), 100)


if __name__ == "__main__":
    sys.exit(main())
