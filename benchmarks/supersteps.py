"""The pass in supersteps beside the sequential one: the same flow, all evidence, no seeds or a fold's.

    python benchmarks/supersteps.py --data DIR [--pairs demo D_W ...] [--seeded] [--json FILE]

DIR holds the 15K folders. Without seeds all links of a pair are gold, for judging alone. Seconds are of the processor.
Without --data nothing is run.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial

from measuring import has_data, keep_rows, parser_of

import rlea
from rlea.agent.engine import play
from rlea.agent.passes import playing_by
from rlea.graph import Links
from rlea.scale.supersteps import SHARDS, WIDTH, LocalShards, play_in_supersteps


def main() -> None:
    parser = parser_of(__doc__, data=True)
    parser.add_argument("--pairs", nargs="+", default=["demo", "D_W", "EN_FR", "EN_DE", "D_Y"])
    parser.add_argument("--seeded", action="store_true", help="with the seeds of fold 1")
    options = parser.parse_args()
    if not has_data(options):
        return
    fingerprints = {}

    def rows():
        for name in options.pairs:
            pair = rlea.read_demo() if name == "demo" else rlea.read(options.data / f"{name}_15K_V1")
            fingerprints[name] = pair.fingerprint
            if not options.seeded:
                gold = Links.union([pair.train, pair.valid, pair.test])
                pair = replace(pair, train=Links.empty(), valid=Links.empty(), test=gold)
            yield compare(name, pair)

    command = f"supersteps.py --data DIR --pairs {' '.join(options.pairs)}" + (" --seeded" if options.seeded else "")
    facts = {"seed": 0, "fingerprints": fingerprints, "settings": {"width": WIDTH, "shards": SHARDS}}
    keep_rows(options.json, command, rows(), **facts)


def compare(name, pair):
    rounds = []

    class Counted(LocalShards):
        def __init__(self, given):
            super().__init__(given)
            rounds.append(0)

        def hear(self, news, round_):
            rounds[-1] += 1
            return super().hear(news, round_)

    row, links = {"pair": name}, []
    players = {"sequential": play, "supersteps": partial(play_in_supersteps, Counted, WIDTH, SHARDS)}
    for how, player in players.items():
        own = []

        def timed(*arguments, player=player, own=own):
            start = time.process_time()
            result = player(*arguments)
            own.append(time.process_time() - start)
            return result

        start = time.process_time()
        with playing_by(timed):
            result = rlea.align(pair, matcher="fused")
        row |= {f"{how}_f1": result.links.f1, f"{how}_links": len(result.matching)}
        row |= {f"{how}_seconds": round(time.process_time() - start, 1), f"{how}_pass_seconds": round(sum(own), 1)}
        links.append(set(zip(result.matching.source_ids.tolist(), result.matching.target_ids.tolist(), strict=True)))
    row["in_common"] = len(links[0] & links[1]) / max(1, len(links[0] | links[1]))
    return row | {"passes": len(rounds), "rounds_mean": sum(rounds) / max(1, len(rounds)), "rounds_most": max(rounds)}


if __name__ == "__main__":
    main()
