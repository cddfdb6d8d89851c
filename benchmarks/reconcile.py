"""Is `rlea serve` right as often as it says, and fast enough?

    python benchmarks/reconcile.py --data DIR --json results/reconcile.json

- right: names of one side of a pair as queries against the other side, gold known. Half of the counterparts, or none,
  are taken out of the graph that is served, so that half of the queries have no answer, or all have one. Without
  properties, and for tables with the columns beside the name.
- cost: a synthetic graph, asked by HTTP from another process, one request after the other: batches of 1 and of 10
  misspelt names. Candidates are compared with those of a search through all names.
"""

from __future__ import annotations

import argparse
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

SHARES = (0.5, 1.0)  # of the counterparts that stay
COLUMNS = {"bibliographies": ("authors", "venue", "year"), "shops": ("description", "price")}


def pairs(data):
    """Name, served graph, asking graph, links from asking to served, and properties that both have."""
    import rlea
    from rlea.experiments.partial import TABLE_FILES, read_tables
    from rlea.graph import Links

    demo = rlea.read_demo()
    known = Links.union([demo.train, demo.valid, demo.test])
    yield "demo", demo.source, demo.target, Links(known.target_ids, known.source_ids), ()
    for name in TABLE_FILES:
        pair = read_tables(data / "tables" / name)
        yield name, pair.target, pair.source, pair.test, COLUMNS[name]


def measure_right(name, served, asking, gold, properties, share):
    """One row: how right the best candidate and `match` are."""
    from rlea.serve.facts import Facts
    from rlea.serve.reconciler import Query, Reconciler, Wanted

    gone = np.random.default_rng(0).permutation(len(gold))[round(share * len(gold)) :]
    graph = served.some(np.setdiff1d(np.arange(served.num_entities, dtype=np.int32), gold.target_ids[gone]))
    reconciler = Reconciler(graph)
    facts = Facts(asking)
    rows = []
    for source, target in zip(gold.source_ids.tolist(), gold.target_ids.tolist(), strict=True):
        wanted = [(column, tuple(Wanted(fact.text) for fact in facts.values(source, column))) for column in properties]
        found = reconciler.candidates(Query(asking.names[source], tuple(one for one in wanted if one[1])))
        ids = [graph.entities[one.entity] for one in found]
        right = served.entities[target]
        best = found[0].confidence if found else 0.0
        is_match = bool(found) and found[0].is_match
        rows.append((right in graph.entity_index, best, ids[:1] == [right], right in ids, is_match))
    there, confidences, right, listed, match = (np.array(column) for column in zip(*rows, strict=True))
    bins = np.minimum((10 * confidences).astype(int), 9)
    gaps = [abs(float((confidences - right)[bins == k].sum())) for k in range(10)]
    return {
        "part": "right",
        "pair": name,
        "served": graph.num_entities,
        "queries": len(rows),
        "answerable": int(there.sum()),
        "properties": list(properties),
        "right_first": float(right.sum() / there.sum()),
        "right_in_10": float(listed.sum() / there.sum()),
        "ece": sum(gaps) / len(rows),
        "mean_confidence": float(confidences.mean()),
        "mean_right": float(right.mean()),
        "matches": int(match.sum()),
        "match_precision": float(right[match].mean()) if match.any() else None,
        "match_recall": float((right & match).sum() / there.sum()),
        # Of every tenth of confidence: queries, mean confidence, share that is right.
        "reliability": [
            [int(own.sum()), round(float(confidences[own].mean()), 3), round(float(right[own].mean()), 3)]
            for own in (bins == k for k in range(10))
            if own.any()
        ],
    }


def ask(address, queries):
    """Send a batch; the seconds until the answer was read, and the answer."""
    body = urllib.parse.urlencode({"queries": json.dumps(queries)}).encode()
    start = time.perf_counter()
    with urllib.request.urlopen(address, body) as answer:
        found = json.loads(answer.read())
    return time.perf_counter() - start, found


def measure_cost(num_entities, num_queries):
    """Start-up, memory and latency of `rlea serve`, and what a search through all names would have found."""
    from rlea.io.readers import read_graph
    from rlea.io.synthetic import SyntheticSettings, generate
    from rlea.io.writers.graphs import write_graph
    from rlea.serve.name_search import NameSearch

    pair = generate(SyntheticSettings(num_entities=num_entities, name_noise=0.1, seed=3))
    texts = [name for name in pair.target.names if name]
    texts = [texts[k] for k in np.random.default_rng(0).permutation(len(texts))[:num_queries]]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.nt.gz"
        write_graph(path, pair.source)
        served = read_graph(path)
        start = time.perf_counter()
        command = [sys.executable, "-u", "-m", "rlea.cli", "serve", str(path), "--port", "0", "--quiet"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        address = process.stdout.readline().split(" at ")[1].split(" ")[0]
        started = time.perf_counter() - start
        status = Path(f"/proc/{process.pid}/status")
        row = {"part": "cost", "entities": num_entities, "queries": num_queries, "start_seconds": started}
        try:
            for size in (1, 10):
                batches = [texts[k : k + size] for k in range(0, len(texts), size)]
                seconds, worked = [], []
                for batch in [batches[0], *batches]:
                    asked = {f"q{k}": {"query": text} for k, text in enumerate(batch)}
                    before = cpu_seconds(process.pid)
                    seconds.append(ask(address, asked)[0])
                    worked.append(cpu_seconds(process.pid) - before)
                for name, values in (("", seconds), ("cpu_", worked)):
                    milliseconds = 1000 * np.array(values[1:])  # the first compiles
                    row[f"batch_{size}_{name}ms"] = float(milliseconds.mean())
                    for share in (50, 95):
                        row[f"batch_{size}_{name}p{share}_ms"] = float(np.percentile(milliseconds, share))
            row["load"] = os.getloadavg()[0]  # processes that wanted a core: others slow the answers down
            lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
            row["peak_memory_mb"] = int(lines["VmHWM"].split()[0]) * 1024 / 1e6
            row["memory_mb"] = int(lines["VmRSS"].split()[0]) * 1024 / 1e6
        finally:
            process.terminate()
            process.wait()
    row["candidate_recall"] = recall_of(NameSearch.build(served), served, texts[:200])
    return row


def cpu_seconds(process):
    """The time that all threads of a process have worked, whatever else the machine does: its own clock on Linux."""
    return time.clock_gettime((~process << 3) | 2)


def recall_of(search, graph, texts, k=10):
    """The share of the k best names by products with all names that the index finds, by score."""
    from scipy.sparse import csc_matrix

    shape = (len(search.owners), len(search.rarities) - 1)
    whole = csc_matrix((search.weights, search.names, search.starts), shape=shape).tocsr()
    shares = []
    for text in texts:
        scores = np.asarray((whole @ query_vector(search, text)).ravel())
        best = np.zeros(graph.num_entities)
        np.maximum.at(best, search.owners, scores)
        edge = np.sort(best)[-k]
        found, _ = search.find(text, k)
        shares.append(float((best[found] >= edge - 1e-6).sum() / k))
    return float(np.mean(shares))


def query_vector(search, text):
    """The same weights as in `NameSearch.find`, written anew and for all pieces."""
    from rlea.serve.name_search import pieces_of

    vector, square = np.zeros(len(search.rarities) - 1), 0.0
    for piece, count in pieces_of(text).items():
        number = search.numbers.get(piece, -1)
        weight = (1 + np.log(count)) * search.rarities[number]
        square += weight**2
        if number >= 0:
            vector[number] = weight
    return vector / np.sqrt(square)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder with tables; without it only the cost is measured")
    parser.add_argument("--entities", type=int, default=100_000, help="of the graph whose cost is measured")
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    from measuring import keep

    rows, prints = [], {}

    def add(row):
        rows.append({key: round(value, 4) if isinstance(value, float) else value for key, value in row.items()})
        print(json.dumps(rows[-1]), flush=True)

    if options.data:
        for name, served, asking, gold, columns in pairs(options.data):
            prints[name] = served.fingerprint
            for share in SHARES:
                for properties in dict.fromkeys(((), columns)):
                    add(measure_right(name, served, asking, gold, properties, share))
    add(measure_cost(options.entities, options.queries))
    command = f"reconcile.py --data DIR --entities {options.entities} --queries {options.queries}"
    keep(options.json, command, rows=rows, fingerprints=prints, seed=0)


if __name__ == "__main__":
    main()
