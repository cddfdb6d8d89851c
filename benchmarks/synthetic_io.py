"""What reading costs as graphs grow: seconds and peak memory, from N-Triples, Parquet and graphs on disk.

    python benchmarks/synthetic_io.py --folder DIR [--sizes 30000 100000] [--triples 10.6] [--before SRC] [--json FILE]

Pairs are written to DIR once and used again: about ten triples and two literals an entity and side. Parquet and graphs
on disk are what `rlea convert` makes of them. A reading is that of both graphs of a pair, in a process of its own, with
one thread. --before names the folder `src` of another version of this program, which reads the same files for
comparison. Without --folder 1,000 entities are read in a temporary folder, to see that it works.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from measuring import keep, parser_of

import rlea
from rlea.io.synthetic import SyntheticSettings, write_synthetic

FORMATS = {"nt": ".nt", "parquet": "", "rlea": ".rlea"}  # of `rlea convert`, and how the graphs of a pair end there
NAMELESS = 0.05
READ = """
import json, sys, time
import rlea
from rlea.peak_memory import peak_mb
rlea.read([("a", "r", "b")], [("x", "r", "y")])  # imports what every reading needs
ready = time.perf_counter(), time.process_time()
pair = rlea.read(*sys.argv[1:])
done = time.perf_counter(), time.process_time()
print(json.dumps({
    "seconds": done[0] - ready[0],
    "cpu_seconds": done[1] - ready[1],
    "peak_mb": peak_mb(),
    "triples": [pair.source.num_triples, pair.target.num_triples],
    "literals": [len(pair.source.literals), len(pair.target.literals)],
    "fingerprint": pair.fingerprint[:12],
}))
"""
THREADS = ("POLARS_MAX_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def make_files(folder: Path, entities: int, triples: float) -> dict[str, tuple[Path, Path]]:
    """The two graphs of a pair by format, written unless they are there."""
    place = folder / f"pair_{entities}"
    if not place.exists():
        settings = SyntheticSettings(num_entities=entities, triples_per_entity=triples, nameless=NAMELESS)
        write_synthetic(place, settings)
    for format_ in FORMATS:
        if format_ != "nt" and not (place / format_).exists():
            subprocess.run(
                [sys.executable, "-m", "rlea", "convert", place, place / format_, "--to", format_], check=True
            )
    return {
        format_: tuple(
            place / ("" if format_ == "nt" else format_) / f"{side}{ending}" for side in ("source", "target")
        )
        for format_, ending in FORMATS.items()
    }


def read(files: tuple[Path, Path], source: Path) -> dict[str, Any]:
    """What reading costs by the program in a folder `src`."""
    environment = os.environ | dict.fromkeys(THREADS, "1") | {"PYTHONPATH": str(source.resolve())}
    command = [sys.executable, "-c", READ, *map(str, files)]
    answer = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
    return json.loads(answer)


def megabytes(files: tuple[Path, Path]) -> float:
    every = [path for file in files for path in (file.rglob("*") if file.is_dir() else [file])]
    return sum(path.stat().st_size for path in every) / 1e6


def measure(folder: Path, sizes: list[int], triples: float, before: Path | None) -> Iterator[dict[str, Any]]:
    """A row for every size, format and program."""
    own = Path(rlea.__file__).parents[1]
    for entities in sizes:
        every = make_files(folder, entities, triples)
        for format_, files in every.items():
            # The first reading warms the cache of the disk for the one after it, so that is read by nobody before.
            for program, source in (("before", before), ("now", own)):
                if source is None or (program == "before" and format_ == "rlea"):
                    continue
                row = {"entities": entities, "format": format_, "program": program, **read(files, source)}
                yield row | {"megabytes": megabytes(files), "load": os.getloadavg()[0]}


def exponents(rows: list[dict[str, Any]], what: str) -> dict[str, float]:
    """By which power of the number of entities a cost grows, fitted to the logarithms by least squares."""
    found = {}
    for kind in dict.fromkeys((row["format"], row["program"]) for row in rows):
        own = [row for row in rows if (row["format"], row["program"]) == kind]
        points = [(math.log(row["entities"]), math.log(row[what])) for row in own]
        means = [sum(part) / len(points) for part in zip(*points, strict=True)]
        spread = sum((x - means[0]) ** 2 for x, _ in points)
        if spread:
            slope = sum((x - means[0]) * (y - means[1]) for x, y in points) / spread
            found[" ".join(kind)] = round(slope, 3)
    return found


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--folder", type=Path, help="for the pairs, which are kept")
    parser.add_argument("--sizes", type=int, nargs="+", help="entities on each side", default=None)
    parser.add_argument(
        "--triples", type=float, default=10.6, help="an entity, before some are dropped and others added"
    )
    parser.add_argument("--before", type=Path, help="the folder src of another version")
    options = parser.parse_args()
    sizes = options.sizes or ([30_000, 100_000, 300_000, 1_000_000] if options.folder else [1_000])
    command = f"synthetic_io.py --folder DIR --sizes {' '.join(map(str, sizes))} --triples {options.triples}"
    command += " --before SRC" if options.before else ""
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as temporary:
        for row in measure(options.folder or Path(temporary), sizes, options.triples, options.before):
            rows.append({key: round(value, 3) if isinstance(value, float) else value for key, value in row.items()})
            print(json.dumps(rows[-1]), flush=True)
            grows = {what: exponents(rows, what) for what in ("cpu_seconds", "peak_mb")}
            prints: dict[str, str] = {}
            for one in rows:  # every format and program has to give the same graphs
                assert prints.setdefault(str(one["entities"]), one["fingerprint"]) == one["fingerprint"], one
            keep(options.json, command, rows=rows, exponents=grows, fingerprints=prints, seed=0)
    print(json.dumps(grows))


if __name__ == "__main__":
    main()
