"""From two files of a million named entities each to one-to-one links on disk, by the command that a user would type.

    python benchmarks/million.py --folder DIR [--entities 1000000] [--json FILE] [-- MORE OPTIONS OF rlea align]

The pair is written to DIR once and used again: five triples an entity and side, a tenth of them missing, a tenth of the
letters of target names misspelt, a fifth of these names by other rules of spelling, a twentieth of the entities of
either side without a name. There are no seeds; the planted links are used for nothing but the scores. Ten candidates an
entity are searched for unless other options are given. Without --folder 3,000 entities are aligned in a temporary
folder, to see that it works.

The command runs in a process of its own, and its peak memory and CPU seconds are what the system says of that process.
"write" is what is left of its seconds beside the stages that it records: links in all formats, the report, the record,
and the start of the interpreter.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from measuring import keep, parser_of

from rlea.io.synthetic import SyntheticSettings, write_synthetic

NAMES = {"name_noise": 0.1, "respell": 0.2, "nameless": 0.05}
LIMITS = {"seconds": 1800, "peak_memory_mb": 12_000}  # on two cores, at a million
SHOWN = ("hits@1", "precision", "recall", "f1", "coverage", "matched", "correct")


def make_pair(folder: Path, entities: int) -> Path:
    """The folder of the pair, written unless it is there."""
    place = folder / f"pair_{entities}"
    if not place.exists():
        write_synthetic(place, SyntheticSettings(num_entities=entities, seeds=0.0, valid=0.0, **NAMES))
    return place


def align(pair: Path, output: Path, more: list[str]) -> dict[str, Any]:
    """Run the command; seconds by stage, peak memory, scores and sizes of what was written."""
    command = ["align", "source.nt", "target.nt", "--gold", "test.tsv", "--output", str(output), "--json", *more]
    start = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "rlea.cli", *command], cwd=pair, stdout=subprocess.PIPE)
    assert process.stdout is not None
    answer = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - start
    if process.returncode:
        sys.exit(f"rlea {' '.join(command)} ended with code {process.returncode}")
    summary = json.loads(answer)
    stages = {"read": 0.0, **summary["seconds"]}
    stages["write"] = round(seconds - sum(stages.values()), 3)
    unit = 1 if sys.platform == "darwin" else 1024
    return {
        "seconds": round(seconds, 1),
        "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 1),
        "peak_memory_mb": round(usage.ru_maxrss * unit / 1e6, 1),
        "stages": stages,
        **{name: summary[name] for name in (*SHOWN, "candidates", "search", "ranks")},
        "megabytes_written": {path.name: round(path.stat().st_size / 1e6, 2) for path in sorted(output.iterdir())},
        "options": more,
    }


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--folder", type=Path, help="for the pair, which is kept, and the links")
    parser.add_argument("--entities", type=int, default=None, help="on each side; a million if a folder is given")
    parser.add_argument("more", nargs="*", help="options of `rlea align`, behind --; default: best-first")
    options = parser.parse_args()
    options.more = options.more or ["--matcher", "best-first", "--candidates", "10"]
    entities = options.entities or (1_000_000 if options.folder else 3_000)
    with tempfile.TemporaryDirectory(dir=options.folder) as temporary:
        pair = make_pair(options.folder or Path(temporary), entities)
        row = align(pair.resolve(), Path(temporary).resolve() / "links", options.more)
        print(f"{entities:,} entities a side: {row['seconds']:.0f} s, {row['cpu_seconds']:.0f} CPU s", end=", ")
        print(f"{row['peak_memory_mb']:,.0f} MB")
        print("  " + ", ".join(f"{stage} {value:.1f}" for stage, value in row["stages"].items()))
        print("  " + ", ".join(f"{name} {row[name]:.4g}" for name in SHOWN))
        print(f"  search {row['search']}")
        print(f"  megabytes {row['megabytes_written']}")
        if entities >= 1_000_000:
            kept = all(row[name] <= most for name, most in LIMITS.items())
            print(f"  {'within' if kept else 'beyond'} 30 minutes and 12 GB")
        if options.json:
            facts = {"entities": entities, "names": NAMES, "limits": LIMITS, "load": os.getloadavg()[0]}
            written = json.loads((Path(temporary) / "links" / "run.json").read_text(encoding="utf-8"))
            command = f"million.py --folder DIR --entities {entities} -- {' '.join(options.more)}"
            keep(options.json, command, rows=[row], **facts, fingerprint=written["fingerprint"], seed=0)


if __name__ == "__main__":
    main()
