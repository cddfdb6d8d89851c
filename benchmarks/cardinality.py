"""Are links found where targets are split in two, and are none made up where they are not?

    python benchmarks/cardinality.py --data DIR --pairs demo,D_W_15K_V1 --json FILE

No seeds, all entities that gold knows. A share of the targets is split in two: every literal and edge goes to one half
or to both. `1:1` on the whole pair is what `1:n` on the split pair is compared with. `ece` is the mean distance between
confidences and the share of right links. Rows of other pairs that the file has stay in it.
"""

from __future__ import annotations

import json

from measuring import parser_of

CARDINALITIES = ("1:1", "1:n", "n:m")
SHARES = (0.0, 0.3, 1.0)
LARGE, LARGE_SHARES = 5000, (0.0, 0.3)  # of larger pairs fewer and the first two, which take minutes each


def score(links, gold):
    """Precision, recall and F1 of links, each pair for itself."""
    found, known = (set(zip(one.source_ids.tolist(), one.target_ids.tolist(), strict=True)) for one in (links, gold))
    right = len(found & known)
    return {
        "links": len(found),
        "gold": len(known),
        "precision": right / max(1, len(found)),
        "recall": right / max(1, len(known)),
        "f1": 2 * right / max(1, len(found) + len(known)),
    }


def read_pair(name, data):
    """The demo, or a folder of the 15K data sets."""
    import rlea

    return rlea.read_demo() if name == "demo" else rlea.read(data / "openea-15k-v1" / name)


def rows_of(name, data):
    """One row for every share and cardinality."""
    import rlea
    from rlea.evaluation.metrics import expected_calibration_error
    from rlea.experiments.partial import cut
    from rlea.experiments.planted import split_targets
    from rlea.graph import GraphPair, Links

    read = read_pair(name, data)
    gold = Links.union([read.train, read.valid, read.test])
    whole, gold = cut(GraphPair(name, read.source, read.target), gold, 1.0)
    is_large = len(gold) > LARGE
    for share in LARGE_SHARES if is_large else SHARES:
        pair, known = split_targets(whole, gold, share) if share else (whole, gold)
        for cardinality in CARDINALITIES[: 2 if is_large else 3]:
            result = rlea.align(pair, pool="all", cardinality=cardinality)
            merged = result.info.get("merged", {}).get("target", 0)
            row = {"pair": name, "split": share, "cardinality": cardinality, **score(result.matching, known)}
            row["ece"] = expected_calibration_error(result.matching, known, complete=True)
            yield {**row, "merged": merged, "fingerprint": pair.fingerprint}


def main() -> None:
    parser = parser_of(__doc__, data=True)
    parser.add_argument("--pairs", default="demo,D_W_15K_V1")
    options = parser.parse_args()
    names = options.pairs.split(",")
    from rlea.record import as_json, describe_run

    path = options.json
    known = json.loads(path.read_text(encoding="utf-8")) if path and path.exists() else {}
    rows, runs = known.get("rows", []), known.get("runs", {})
    for name in names:
        rows = [row for row in rows if row["pair"] != name]
        for row in rows_of(name, options.data):
            rows.append({key: round(value, 4) if isinstance(value, float) else value for key, value in row.items()})
            print(json.dumps(rows[-1]), flush=True)
            if path:
                run = describe_run(fingerprint=read_pair(name, options.data).fingerprint, seed=0)
                run["command"] = f"python benchmarks/cardinality.py --data DIR --pairs {name}"
                runs[name] = run
                path.write_text(as_json({"rows": rows, "runs": runs}), encoding="utf-8")


if __name__ == "__main__":
    main()
