"""Attack every reader: `python -m fuzz.run --minutes 60` from tests/, or `make fuzz MINUTES=60`.

A finding is anything but a value or an InputError, ten seconds for one file, or a gigabyte of memory for it. Its input
goes to the folder of findings; once mended it belongs into tests/fuzz/corpus, which every test run reads.
"""

from __future__ import annotations

import argparse
import faulthandler
import resource
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

from fuzz.mutate import mutate
from fuzz.targets import Target, make_targets, read_random_values
from rlea.errors import InputError

MOST_SECONDS, MOST_MB = 10.0, 1000.0
CORPUS = Path(__file__).parent / "corpus"


def attack(target: Target, content: bytes, work: Path) -> str:
    """Read one mutated file; what was wrong, or empty."""
    shutil.copytree(target.folder, work, dirs_exist_ok=True)
    path = work / target.file
    path.write_bytes(content)
    return judge(lambda: target.read(path))


def judge(call: object) -> str:
    """Call, and say what was wrong; empty for a value or a sentence."""
    assert callable(call)
    before, start = _peak_mb(), time.monotonic()
    faulthandler.dump_traceback_later(6 * MOST_SECONDS, exit=True)  # what hangs in compiled code ends with the process
    try:
        call()
    except InputError as problem:
        if len(str(problem)) > 4000 or "\n" in str(problem):
            return f"a message of {len(str(problem))} characters or several lines"
    except BaseException:  # a panic of compiled code is no Exception
        return traceback.format_exc()
    finally:
        faulthandler.cancel_dump_traceback_later()
    if time.monotonic() - start > MOST_SECONDS:
        return f"{time.monotonic() - start:.0f} seconds"
    if _peak_mb() - before > MOST_MB:
        return f"{_peak_mb() - before:.0f} MB"
    return ""


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


def main() -> int:
    """Attack for some minutes; the number of findings is the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--findings", type=Path, default=Path("findings"))
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    found: Counter[str] = Counter()
    end = time.monotonic() + 60 * options.minutes
    with tempfile.TemporaryDirectory() as folder:
        targets = make_targets(Path(folder) / "good")
        for target, content, number in cases(targets, options.seed):
            if time.monotonic() > end:
                break
            problem = attack(target, content, Path(folder) / "work" / target.name)
            counts[target.name] += 1
            if number % 100 == 0:
                counts["values"] += 1
                problem = problem or judge(lambda number=number: read_random_values(Random(f"{options.seed} {number}")))
            if problem:
                found[target.name] += 1
                place = options.findings / target.name
                place.mkdir(parents=True, exist_ok=True)
                (place / f"{options.seed}-{number}{Path(target.file).suffix}").write_bytes(content)
                (place / f"{options.seed}-{number}.txt").write_text(problem)
    for name, count in sorted(counts.items()):
        sys.stdout.write(f"{name:28} {count:8,} cases {found[name]:5} findings\n")
    sys.stdout.write(f"seed {options.seed}: {counts.total():,} cases, {found.total()} findings\n")
    return min(found.total(), 100)


if __name__ == "__main__":
    sys.exit(main())
