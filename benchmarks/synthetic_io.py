"""How long it takes, and how much memory, to write and read a synthetic pair of a million entities a side.

Every phase runs in a process of its own, so that its peak memory is its own. The command behind the figures:

    python benchmarks/synthetic_io.py [--entities 1000000] [--triples 5.3] [--formats nt tsv] [--json FILE]

The files (1.8 GB as N-Triples) go to a temporary
folder, or to one below `--folder`, and are removed at the end.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from measuring import keep, parser_of

from rlea.peak_memory import peak_mb


def write(folder: Path, format_: str, entities: int, triples: float) -> dict[str, Any]:
    from rlea.io.synthetic import SyntheticSettings, write_synthetic

    write_synthetic(folder, SyntheticSettings(num_entities=entities, triples_per_entity=triples), format_)
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {"megabytes": round(sum(path.stat().st_size for path in files) / 1e6, 1)}


def read(folder: Path, format_: str, entities: int, triples: float) -> dict[str, Any]:
    from rlea.io.readers import read_pair

    pair = read_pair(folder)
    return {
        "entities": [pair.source.num_entities, pair.target.num_entities],
        "triples": [pair.source.num_triples, pair.target.num_triples],
        "literals": [len(pair.source.literals), len(pair.target.literals)],
        "links": [len(pair.train), len(pair.valid), len(pair.test)],
        "fingerprint": pair.fingerprint[:12],
    }


def phase(function: Callable[..., dict[str, Any]], connection: Any, *arguments: Any) -> None:
    start = time.perf_counter()
    facts = function(*arguments)
    seconds = round(time.perf_counter() - start, 1)
    # On a machine with other work on it, the seconds of the processor say more than those of the clock.
    cpu_seconds = round(time.process_time(), 1)
    connection.send({"seconds": seconds, "cpu_seconds": cpu_seconds, "peak_mb": round(peak_mb()), **facts})


def run(function: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    # A fresh interpreter: a fork would start with the memory of this one.
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=phase, args=(function, sender, *arguments))
    process.start()
    sender.close()
    try:
        result: dict[str, Any] = receiver.recv()
    except EOFError as error:
        process.join()
        raise SystemExit(f"{function.__name__} ended with code {process.exitcode}") from error
    process.join()
    return {"phase": function.__name__, **result}


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--entities", type=int, default=1_000_000)
    parser.add_argument(
        "--triples", type=float, default=5.3, help="facts per entity, before some are dropped and others added"
    )
    parser.add_argument("--formats", nargs="+", default=["nt", "tsv"], choices=["nt", "tsv"])
    parser.add_argument("--folder", type=Path, default=None, help="where to put the temporary folder")
    options = parser.parse_args()
    results = []
    print(f"{'format':8}{'phase':8}{'seconds':>10}{'CPU s':>10}{'peak MB':>10}")
    for format_ in options.formats:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            for function in (write, read):
                arguments = (Path(folder) / "pair", format_, options.entities, options.triples)
                result = {"format": format_, **run(function, *arguments)}
                figures = f"{result['seconds']:>10.1f}{result['cpu_seconds']:>10.1f}{result['peak_mb']:>10}"
                print(f"{format_:8}{result['phase']:8}{figures}", flush=True)
                results.append(result)
    sizes = f"--entities {options.entities} --triples {options.triples} --formats {' '.join(options.formats)}"
    facts = {"rows": results, "load": os.getloadavg()[0], "fingerprint": results[-1]["fingerprint"]}
    keep(options.json, f"synthetic_io.py {sizes}", **facts)


if __name__ == "__main__":
    main()
