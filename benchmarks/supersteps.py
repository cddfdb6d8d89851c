"""The pass in supersteps beside the sequential one: the same flow, all evidence, no seeds or a fold's.

    python benchmarks/supersteps.py --data DIR [--pairs demo D_W ...] [--seeded] [--json FILE]
    python benchmarks/supersteps.py --widths 0.5 1 2 4 8 1000 [--json FILE]

With --widths, first passes of the demo pair and a synthetic one, from the same state, by the width of a round. DIR has
the 15K folders. Without seeds all links of a pair are gold, for judging alone. Seconds are of the processor.
Without --data nothing is run.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial

import numpy as np
from measuring import has_data, keep_rows, parser_of

import rlea
from rlea.agent.agent import Aligner
from rlea.agent.engine import play
from rlea.agent.passes import playing_by
from rlea.evidence import CHANNELS
from rlea.graph import Links
from rlea.io.synthetic import SyntheticSettings, generate
from rlea.scale.supersteps import SHARDS, WIDTH, LocalShards, play_in_supersteps


def main() -> None:
    parser = parser_of(__doc__, data=True)
    parser.add_argument("--pairs", nargs="+", default=["demo", "D_W", "EN_FR", "EN_DE", "D_Y"])
    parser.add_argument("--seeded", action="store_true", help="with the seeds of fold 1")
    parser.add_argument("--widths", nargs="+", type=float)
    options = parser.parse_args()
    if options.widths:
        command = f"supersteps.py --widths {' '.join(f'{width:g}' for width in options.widths)}"
        keep_rows(options.json, command, by_width(options.widths), seed=0, settings={"shards": SHARDS})
        return
    if not has_data(options):
        return
    fingerprints = {}

    def rows():
        for name in options.pairs:
            pair = rlea.read_demo() if name == "demo" else rlea.read(options.data / f"{name}_15K_V1")
            fingerprints[name] = pair.fingerprint
            if not options.seeded:
                pair = without_links(pair)
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


def by_width(widths):
    """What a first pass finds, sequential and by every width."""
    synthetic = SyntheticSettings(num_entities=5000, name_noise=0.4, nameless=0.3, seeds=0.0, valid=0.0)
    for name, pair in (("demo", rlea.read_demo()), ("synthetic", generate(synthetic))):
        gold = Links.union([pair.train, pair.valid, pair.test])
        right = set(zip(gold.source_ids.tolist(), gold.target_ids.tolist(), strict=True))
        kept = []

        def keep(*arguments, kept=kept):
            kept.append([one.copy() if isinstance(one, np.ndarray) else one for one in arguments])
            return play(*arguments)

        with playing_by(keep):
            Aligner(channels=CHANNELS if name == "demo" else ("structure", "names")).fit(without_links(pair))
        first, expected = kept[0], set()
        for width in (None, *widths):
            rounds = []

            class Counted(LocalShards):
                def hear(self, news, round_, rounds=rounds):
                    rounds.append(round_)
                    return super().hear(news, round_)

            player = play if width is None else partial(play_in_supersteps, Counted, width, SHARDS)
            (source, target, *_), _, _ = player(*(one.copy() if isinstance(one, np.ndarray) else one for one in first))
            links = set(zip(source.tolist(), target.tolist(), strict=True))
            expected = expected or links
            row = {"pair": name, "entities": pair.source.num_entities, "width": width, "links": len(links)}
            row["fingerprint"] = pair.fingerprint
            row |= {"right": len(links & right), "same": len(links & expected) / len(expected)}
            yield row | {"rounds": len(links) if width is None else len(rounds)}


def without_links(pair):
    """The pair without seeds; its links are for judging alone."""
    gold = Links.union([pair.train, pair.valid, pair.test])
    return replace(pair, train=Links.empty(), valid=Links.empty(), test=gold)


if __name__ == "__main__":
    main()
