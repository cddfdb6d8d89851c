"""How long do people wait for the next pair in `rlea review` of 100,000 links?

    python benchmarks/review.py --json results/review.json

A synthetic pair, and the folder of a run with a link for every entity, planted confidences, five scored targets and
four channels each. The server is asked from another process, as the page asks it: the next pair, then an answer to it,
with different filters; searches; undo. An answer is measured until the server says that it is on the disk.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from pathlib import Path

import numpy as np

CHANNELS = ("name", "words", "attributes", "paris")
FILTERS = {
    "none": {},
    "least margin": {"order": "least margin"},
    "confidences, disagreement": {"low": "0.2", "high": "0.8", "disagree": "1"},
    "left out, words against": {"kind": "left out", "channel": "words against"},
}
RIVALS = 5


def write_run(folder, num_entities):
    """A pair as files, and the folder of a run on it; returns the fingerprint of the pair."""
    from rlea.agent.trace import DECISIONS, Trace
    from rlea.graph import Links
    from rlea.io.read import read
    from rlea.io.synthetic import LABEL, SyntheticSettings, write_synthetic
    from rlea.record import as_json, describe_run

    write_synthetic(folder / "pair", SyntheticSettings(num_entities, name_noise=0.1, seeds=0.0, valid=0.0, seed=3))
    files = [folder / "pair" / f"{side}.nt" for side in ("source", "target")]
    files = [path if path.exists() else path.with_suffix(".nt.gz") for path in files]
    pair, whole = read(*files), read(folder / "pair")
    gold = Links.union([whole.train, whole.valid, whole.test])
    rng = np.random.default_rng(0)
    order = np.argsort(gold.source_ids)
    source, target = gold.source_ids[order], gold.target_ids[order]
    confidences = rng.beta(2, 0.6, len(source)).astype(np.float32)
    is_link = confidences >= 0.2
    names = pair.source.entities, pair.target.entities
    rows = [
        f"{names[0][s]}\t{names[1][t]}\t{c:.6f}\n"
        for s, t, c in zip(
            source[is_link].tolist(), target[is_link].tolist(), confidences[is_link].tolist(), strict=True
        )
    ]
    run = folder / "run"
    run.mkdir()
    (run / "links.tsv").write_text("source\ttarget\tconfidence\n" + "".join(rows), encoding="utf-8")
    rivals = np.column_stack([target, rng.integers(0, len(names[1]), (len(target), RIVALS - 1))]).astype(np.int32)
    logits = np.sort(rng.normal(0, 3, rivals.shape), axis=1)[:, ::-1].astype(np.float32)
    features = rng.random((rivals.size, len(CHANNELS))).astype(np.float32)
    Trace(
        *(source, target, confidences, confidences),
        *(np.repeat(source, RIVALS), rivals.ravel(), logits.ravel(), features),
        CHANNELS,
    ).save(run / DECISIONS)
    alike = [{"source": LABEL, "target": LABEL, "strength": 1.0, "factor": 1.0}]
    evidence = [{"channel": name, "columns": [name], "meanings": [f"similarity by {name}"]} for name in CHANNELS]
    evidence[2]["correspondences"] = alike
    result = {"pair": "synthetic", "matcher": "fused", "embedding": "", "pool": "all"}
    result["overlap"] = {"shared": float(len(source))}
    facts = {"result": result, "inputs": dict(pair.inputs), "fingerprint": pair.fingerprint}
    (run / "run.json").write_text(
        as_json(describe_run(**facts, embedding_info={"evidence": evidence})), encoding="utf-8"
    )
    return pair.fingerprint, int(is_link.sum()), len(source)


class Client:
    """Requests to the server, timed by what they ask for."""

    def __init__(self, address):
        self.base, self.token = address.split("/?token=")
        self.seconds = {}

    def ask(self, path, name, body=None, **given):
        """What the server answers."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        address = f"{self.base}{path}?{urllib.parse.urlencode(given)}"
        start = time.perf_counter()
        with urllib.request.urlopen(urllib.request.Request(address, data, headers)) as answer:
            found = json.loads(answer.read())
        self.seconds.setdefault(name, []).append(time.perf_counter() - start)
        return found


def session(client, questions):
    """Answer questions with every filter, undo some, search."""
    for filters, given in FILTERS.items():
        for number in range(questions):
            found = client.ask("/api/next", f"next: {filters}", holder="h", reviewer="Ann", **given)["card"]
            ends = {side: found[side]["identifier"] for side in ("source", "target")}
            body = {**ends, "answer": ("accept", "reject", "skip")[number % 3], "reviewer": "Ann"}
            client.ask("/api/verdict", "answer", {**body, "key": f"{filters} {number}"})
            if number % 10 == 9:
                client.ask("/api/undo", "undo", {"reviewer": "Ann", "key": f"{filters} undo {number}"})
                client.ask("/api/search", "search", text=found["source"]["name"][:4])


def cpu_seconds(process):
    """The time that a process has worked, whatever else the machine does."""
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    from measuring import keep, parser_of

    options = parser_of(__doc__, entities=100_000, questions=100).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        fingerprint, links, pairs = write_run(Path(folder), options.entities)
        command = [sys.executable, "-u", "-m", "rlea", "review", f"{folder}/run", "--port", "0", "--no-browser", "-q"]
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            client = Client(process.stdout.readline().split(" at ")[1].split(" ")[0])
            row = {
                "entities": options.entities,
                "links": links,
                "pairs": pairs,
                "start_seconds": time.perf_counter() - start,
            }
            client.ask("/api/next", "first next", holder="h", reviewer="Ann")
            before = cpu_seconds(process.pid)
            session(client, options.questions)
            worked = cpu_seconds(process.pid) - before
            status = Path(f"/proc/{process.pid}/status").read_text().splitlines()
        finally:
            process.terminate()
            process.wait()
    row["cpu_ms"] = 1000 * worked / (options.questions * len(FILTERS))  # of a question: next, answer, some undone
    row["memory_mb"] = int(next(line for line in status if line.startswith("VmHWM")).split()[1]) * 1024 / 1e6
    row["load"] = os.getloadavg()[0]  # processes that wanted a core: others slow the answers down
    for name, seconds in client.seconds.items():
        milliseconds = 1000 * np.array(seconds)
        row[name] = {
            "requests": len(seconds),
            "p50_ms": round(float(np.percentile(milliseconds, 50)), 1),
            "p95_ms": round(float(np.percentile(milliseconds, 95)), 1),
            "most_ms": round(float(milliseconds.max()), 1),
        }
    row = {key: round(value, 1) if isinstance(value, float) else value for key, value in row.items()}
    print(json.dumps(row, indent=1))
    command = f"review.py --entities {options.entities} --questions {options.questions}"
    keep(options.json, command, rows=[row], fingerprint=fingerprint, seed=3)


if __name__ == "__main__":
    main()
