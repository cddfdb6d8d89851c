"""What each part of best-first matching adds, on validation links (test links are not read).

    python benchmarks/best_first.py --data DIR --vectors DIR [--json FILE]

DIR of --data holds the 15K folders (D_W_15K_V1, ...), DIR of --vectors the files that `rlea embed` wrote for them
(aligne_D_W.safetensors, ...). Sources and targets are those of the validation and test links together. Without
--data nothing is run.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from measuring import has_data, keep, parser_of, timed

from rlea.evaluation.metrics import link_metrics
from rlea.graph import Links
from rlea.io.readers import read_pair
from rlea.matchers.best_first import BestFirstSettings, match
from rlea.matching import Task
from rlea.models.embed import embed_entities
from rlea.search.candidates import find_candidates

DEFAULT = BestFirstSettings()
CASES = {
    "as it is": DEFAULT,
    "no evidence (CSLS, greedy)": replace(DEFAULT, evidence_weight=0.0, passes=1),
    "evidence weight 1": replace(DEFAULT, evidence_weight=1.0),
    "evidence weight 2": replace(DEFAULT, evidence_weight=2.0),
    "evidence weight 4": replace(DEFAULT, evidence_weight=4.0),
    "evidence weight 6": replace(DEFAULT, evidence_weight=6.0),
    "no pairs created by matches": replace(DEFAULT, creation=1e9),
    "creation from 0.1": replace(DEFAULT, creation=0.1),
    "creation from 0.01": replace(DEFAULT, creation=0.01),
    "floor 0": replace(DEFAULT, floor=0.0),
    "floor 0.02": replace(DEFAULT, floor=0.02),
    "no smoothing": replace(DEFAULT, smoothing=0.0),
    "smoothing 5": replace(DEFAULT, smoothing=5.0),
    "one pass": replace(DEFAULT, passes=1),
    "three passes": replace(DEFAULT, passes=3),
    "earlier matches at weight 0.25": replace(DEFAULT, kept_weight=0.25),
    "earlier matches at weight 1": replace(DEFAULT, kept_weight=1.0),
}


def task_of(pair, embedding):
    known = Links.union([pair.valid, pair.test])  # for the pools alone, each in an order of its own
    source_ids = np.random.default_rng(1).permutation(np.unique(known.source_ids))
    target_ids = np.random.default_rng(2).permutation(np.unique(known.target_ids))
    found = find_candidates(embed_entities(pair, embedding), source_ids, target_ids, 50)
    return Task(pair.source, pair.target, pair.train, found)


def main() -> None:
    options = parser_of(__doc__, data=True, vectors=True).parse_args()
    if not has_data(options):
        return
    tasks, fingerprints = {}, {}
    for name in ("EN_FR", "EN_DE", "D_W", "D_Y"):
        folder = options.data / f"{name}_15K_V1"
        file = options.vectors / f"aligne_{name}.safetensors"
        if folder.exists() and file.exists():
            pair = read_pair(folder)
            fingerprints[name] = pair.fingerprint
            tasks[f"{name} AlignE"] = pair, task_of(pair, str(file))
            if name.startswith("EN"):
                tasks[f"{name} names"] = pair, task_of(pair, "names")
    rows = []
    for label, settings in CASES.items():
        row = {"case": label}
        for name, (pair, task) in tasks.items():
            match(task, replace(settings, passes=1)) if not rows else None  # loads the compiled code
            links, seconds = timed(partial(match, task, settings))
            row[name] = {
                "hits@1": link_metrics(links, pair.valid, pool="valid and test").hits_at_1,
                "seconds": round(seconds, 2),
            }
        rows.append(row)
        shown = "  ".join(f"{row[name]['hits@1']:.3f} ({row[name]['seconds']:.1f} s)" for name in tasks)
        print(f"{label:32} {shown}", flush=True)
    facts = {"rows": rows, "fingerprints": fingerprints, "seed": 0, "links": "validation links of fold 1"}
    keep(options.json, "best_first.py --data DIR --vectors DIR", **facts)


if __name__ == "__main__":
    main()
