"""The figures of `rlea demo` as mean and spread: over random seeds, and with one triple in a hundred left out.

    python benchmarks/demo_seeds.py --json results/demo_seeds.json

A seed draws little where there are no networks to train, as in the demo, so equal figures say little about steadiness;
the second kind is the harder check. `over` says how many runs a row is the mean of, `_std` is the standard deviation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from measuring import keep_rows, parser_of

MATCHERS = ("nearest", "hungarian", "best-first", "fused")
FIGURES = ("precision", "recall", "f1")
LEFT_OUT = 0.01


def without_some(graph: Any, *chance: int) -> Any:
    """A graph without a share of its triples."""
    kept = np.random.default_rng(chance).random(len(graph.triples)) >= LEFT_OUT
    return replace(graph, triples=graph.triples[kept])


def rows(seeds: int, draws: int) -> Iterator[dict[str, Any]]:
    """Mean and spread of every matcher, by what was varied."""
    import rlea

    pair = rlea.read_demo()
    some = [
        replace(pair, source=without_some(pair.source, draw, 0), target=without_some(pair.target, draw, 1))
        for draw in range(draws)
    ]
    for kind, given in (("seeds", [(pair, seed) for seed in range(seeds)]), ("triples", [(one, 0) for one in some])):
        found: dict[str, list[Any]] = {name: [] for name in MATCHERS}
        for one, seed in given:
            for result in rlea.compare(one, list(MATCHERS), pool="all", seed=seed):
                found[result.settings.matcher].append(result)
        for name, results in found.items():
            row: dict[str, Any] = {"kind": kind, "matcher": name, "over": len(results)}
            for key in FIGURES:
                values = [getattr(result.links, key) for result in results]
                row |= {key: float(np.mean(values)), f"{key}_std": float(np.std(values))}
                row |= {f"{key}_least": min(values), f"{key}_most": max(values)}
            spent = [sum(result.seconds.get(stage, 0.0) for stage in ("train", "match")) for result in results]
            row["seconds"] = float(np.mean(spent))
            yield row


def main() -> None:
    parser = parser_of(__doc__, seeds=5, draws=3)
    options = parser.parse_args()
    command = f"demo_seeds.py --seeds {options.seeds} --draws {options.draws}"
    import rlea

    fingerprint = rlea.read_demo().fingerprint
    keep_rows(options.json, command, rows(options.seeds, options.draws), fingerprint=fingerprint)


if __name__ == "__main__":
    main()
