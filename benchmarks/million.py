"""All evidence without seeds, from two files to links on disk, at 30,000 to a million entities a side.

    python benchmarks/million.py --folder DIR [--sizes 30000,100000,300000,1000000] [--hubs 3] [--json FILE]

Sizes that FILE has already, and that are not asked for, stay in it. The pairs are written to DIR once and used again:
five triples an entity and side, a tenth of them missing, a value an entity; three hubs that up to 100,000 entities
refer to (a thirtieth of all in pairs of 30,000 and fewer, where nothing is bounded); a tenth of the letters of target
names misspelt, a tenth of these names by other rules of spelling, a twentieth of the entities of either side without a
name, a fifth without a counterpart. There are no seeds, and gold is complete: the planted links are used for nothing
but the scores. Without --folder 3,000 entities are aligned in a temporary folder, to see that it works.

What `rlea align source.nt target.nt --gold test.tsv --gold-complete` does is done in a process of its own for each
size. Processor seconds (of all threads together) and peak memory are what the system says of that
process; stages begin and end where the program reports them. Wall seconds and the load of the machine stand beside.
"""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from measuring import keep, parser_of

PAIR = {"name_noise": 0.1, "respell": 0.1, "nameless": 0.05, "dangling": 0.2, "seeds": 0.0, "valid": 0.0}
SIZES = "30000,100000,300000,1000000"
LIMITS = {300_000: (960, 5_000), 1_000_000: (3600, 12_000)}  # processor seconds, MB
# What stages are called in the table: the first that fits the stage and the note of a report.
STAGES = (
    ("read", "^read"),
    ("null models", "^agent: null models"),
    ("confidences", "^agent: confidences"),
    ("pairs by all channels", "pairs by "),
    ("words", "words|letters|codes|rare terms"),
    ("names", "^names|^candidates|^recall| names"),
    ("attributes", "attributes"),
    ("PARIS", "paris"),
    ("learning", "^agent: (evidence|channels|games|supervision|calibration)"),
    ("decisions", "^agent: decisions"),
    ("evaluate", "^evaluate|^match"),
    ("write", "^write"),
)


class Clock:
    """Processor seconds by stage, as reports of progress come."""

    def __init__(self) -> None:
        self.stage, self.since, self.seconds = "read", time.process_time(), dict.fromkeys(name for name, _ in STAGES)
        self.seconds = dict.fromkeys(self.seconds, 0.0)

    def __call__(self, stage: str, done: float, total: float, note: str = "") -> None:
        now = time.process_time()
        self.seconds[self.stage] += now - self.since
        self.since = now
        told = f"{stage} {note}"
        self.stage = next((name for name, pattern in STAGES if re.search(pattern, told)), self.stage)


def align_once(place: Path) -> dict[str, Any]:
    """One run in this process: times, memory, scores."""
    import rlea

    clock, start = Clock(), time.perf_counter()
    pair = rlea.read(place / "source.nt", place / "target.nt", gold=place / "test.tsv")
    result = rlea.align(pair, gold_complete=True, progress=clock)
    clock("write", 0, 1)
    with tempfile.TemporaryDirectory(dir=place) as folder:
        rlea.write(folder, result)
    clock("read", 0, 1)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    unit = 1 if sys.platform == "darwin" else 1024
    links = result.links
    recalls = {
        columns[0]: one["recall"] for one in result.info["evidence"] if "recall" in one and (columns := one["columns"])
    }
    return {
        "entities": pair.source.num_entities,
        "triples": pair.source.num_triples,
        "largest_degree": largest_degree(pair.source),
        "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 1),
        "seconds": round(time.perf_counter() - start, 1),
        "peak_memory_mb": round(usage.ru_maxrss * unit / 1e6),
        "stages": {name: round(seconds, 1) for name, seconds in clock.seconds.items()},
        "precision": round(links.precision, 4),
        "recall": round(links.recall, 4),
        "f1": round(links.f1, 4),
        "shared": None if result.overlap is None else round(result.overlap.shared),
        "recall_of_searches": recalls,
        "load": round(os.getloadavg()[0], 1),
        "fingerprint": pair.fingerprint,
    }


def largest_degree(graph: Any) -> int:
    """Edges of the largest hub."""
    import numpy as np

    return int(np.bincount(graph.triples[:, [0, 2]].ravel()).max())


def make_pair(folder: Path, entities: int, hubs: int) -> Path:
    """The folder of the pair, written unless it is there."""
    from rlea.io.synthetic import SyntheticSettings, write_synthetic

    place = folder / f"pair_{entities}_{hubs}"
    if not place.exists():
        edges = 100_000 if entities > 30_000 else entities // 30
        write_synthetic(place, SyntheticSettings(num_entities=entities, hubs=hubs, hub_edges=edges, **PAIR))
    return place


def rows_of(path: Path | None, hubs: int, sizes: list[int]) -> list[dict[str, Any]]:
    """The rows of other sizes that the record has already: a million takes too long to be run for each of them."""
    if path is None or not path.exists():
        return []
    record = json.loads(path.read_text(encoding="utf-8"))
    if record.get("hubs") != hubs or record.get("pair") != PAIR:
        return []
    rows = [{"commit": record["commit"], **row} for row in record["rows"]]
    return [row for row in rows if row["entities"] not in sizes]


def exponent(rows: list[dict[str, Any]], value: Any) -> float | None:
    """The power of the number of entities by which something grows, fitted by least squares."""
    import numpy as np

    points = [(row["entities"], value(row)) for row in rows if value(row) >= 1.0]
    if len(points) < 2:
        return None
    sizes, values = np.log(np.array(points, float)).T
    return round(float(np.polyfit(sizes, values, 1)[0]), 2)


def main() -> None:
    from rlea.record import describe_run

    parser = parser_of(__doc__, hubs=3, sizes="")
    parser.add_argument("--folder", type=Path, help="for the pairs, which are kept")
    parser.add_argument("--once", type=Path, help="align the pair in this folder, in this process")
    options = parser.parse_args()
    if options.once:
        print(json.dumps(align_once(options.once)))
        return
    sizes = [int(size) for size in (options.sizes or (SIZES if options.folder else "3000")).split(",")]
    rows = rows_of(options.json, options.hubs, sizes)
    with tempfile.TemporaryDirectory() as temporary:
        for size in sizes:
            place = make_pair(options.folder or Path(temporary), size, options.hubs)
            command = [sys.executable, __file__, "--once", str(place)]
            answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            row = {**json.loads(answer.splitlines()[-1]), "commit": describe_run()["commit"]}
            print(json.dumps(row), flush=True)
            rows = sorted([*rows, row], key=lambda row: row["entities"])
            if size in LIMITS:
                seconds, memory = LIMITS[size]
                kept = row["cpu_seconds"] <= seconds and row["peak_memory_mb"] <= memory
                print(f"  {'within' if kept else 'beyond'} {seconds} processor seconds and {memory:,} MB", flush=True)
            grows = {name: exponent(rows, lambda row, name=name: row["stages"][name]) for name, _ in STAGES}
            grows["all"] = exponent(rows, lambda row: row["cpu_seconds"])
            grows["memory"] = exponent(rows, lambda row: row["peak_memory_mb"])
            if options.json:
                every = ",".join(str(row["entities"]) for row in rows)
                told = f"million.py --folder DIR --sizes {every} --hubs {options.hubs}"
                keep(options.json, told, rows=rows, exponents=grows, settings=PAIR, hubs=options.hubs, seed=0)
    print("  exponents", grows)


if __name__ == "__main__":
    main()
