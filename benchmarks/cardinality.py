"""Are links found where targets are split in two, and are none made up where they are not?

    python benchmarks/cardinality.py --data DIR --pairs demo,D_W_15K_V1 --json FILE

No seeds, all entities that gold knows. A share of the targets is split in two: every literal and edge goes to one half
or to both. `1:1` on the whole pair is what `1:n` on the split pair is compared with.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

SHARES = (0.0, 0.3, 1.0)
LARGE, LARGE_SHARES = 5000, (0.0, 0.3)  # of larger pairs fewer, which take minutes each


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


def rows_of(name, data):
    """One row for every share and cardinality."""
    import rlea
    from rlea.experiments.partial import cut
    from rlea.experiments.planted import split_targets
    from rlea.graph import GraphPair, Links

    read = rlea.read_demo() if name == "demo" else rlea.read(data / "openea-15k-v1" / name)
    gold = Links.union([read.train, read.valid, read.test])
    whole, gold = cut(GraphPair(name, read.source, read.target), gold, 1.0)
    for share in LARGE_SHARES if len(gold) > LARGE else SHARES:
        pair, known = split_targets(whole, gold, share) if share else (whole, gold)
        for cardinality in ("1:1", "1:n"):
            result = rlea.align(pair, pool="all", cardinality=cardinality)
            merged = result.info.get("merged", {}).get("target", 0)
            row = {"pair": name, "split": share, "cardinality": cardinality, **score(result.matching, known)}
            yield {**row, "merged": merged, "fingerprint": pair.fingerprint}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with openea-15k-v1")
    parser.add_argument("--pairs", default="demo,D_W_15K_V1")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    import rlea
    from rlea.record import as_json, describe_run

    rows, prints = [], {}
    for name in options.pairs.split(","):
        read = rlea.read_demo() if name == "demo" else rlea.read(options.data / "openea-15k-v1" / name)
        prints[name] = read.fingerprint
        for row in rows_of(name, options.data):
            rows.append({key: round(value, 4) if isinstance(value, float) else value for key, value in row.items()})
            print(json.dumps(rows[-1]), flush=True)
            if options.json:
                record = describe_run(rows=rows, fingerprints=prints, seed=0)
                record["command"] = f"python benchmarks/cardinality.py --data DIR --pairs {options.pairs}"
                options.json.write_text(as_json(record), encoding="utf-8")


if __name__ == "__main__":
    main()
