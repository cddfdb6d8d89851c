"""What a run on a cluster costs as graphs grow: processor seconds, bytes and memory of every stage; its supersteps.

    python benchmarks/cost_model.py [--sizes 5000 10000 20000] [--workers 2] [--json FILE]

Synthetic pairs without seeds, all evidence. The passes of the program that was called are played by 16 shards in one
process, which are timed one by one: how long a round waits for the slowest of them, how many bytes are told and
answered. Passes within null models count among these.
"""

from __future__ import annotations

import time
from functools import partial

import numpy as np
from measuring import keep_rows, parser_of

from rlea import peak_memory
from rlea.agent.agent import Aligner
from rlea.agent.passes import playing_by
from rlea.io.synthetic import SyntheticSettings, generate
from rlea.scale.cluster import on_cluster
from rlea.scale.supersteps import SHARDS, WIDTH, LocalShards, play_in_supersteps


def main() -> None:
    parser = parser_of(__doc__, workers=2)
    parser.add_argument("--sizes", nargs="+", type=int, default=[5000, 10_000, 20_000, 40_000])
    options = parser.parse_args()
    command = f"cost_model.py --sizes {' '.join(map(str, options.sizes))} --workers {options.workers}"
    measure(100, options.workers)  # compiles
    rows = (measure(size, options.workers) for size in options.sizes)
    keep_rows(options.json, command, rows, seed=0, settings={"width": WIDTH, "shards": SHARDS})


def measure(size, workers):
    pair = generate(SyntheticSettings(num_entities=size, name_noise=0.3, nameless=0.2, seeds=0.0, valid=0.0))
    right = set(zip(pair.test.source_ids.tolist(), pair.test.target_ids.tolist(), strict=True))
    passes = []

    class Timed(LocalShards):
        """Shards that are timed one by one."""

        def __init__(self, given):
            super().__init__(given)
            self.own = {"pairs": len(given.game.pair_source), "rounds": 0, "told": 0, "answered": 0}
            self.own |= {"seconds": 0.0, "slowest": 0.0, "links": 0}
            passes.append(self.own)

        def timed(self, work):
            answers, seconds = [], []
            for shard in self.shards:
                start = time.process_time()
                answers.append(work(shard))
                seconds.append(time.process_time() - start)
            self.own["seconds"] += sum(seconds)
            self.own["slowest"] += max(seconds)
            return answers

        def count(self, accepted, round_):
            return self.timed(lambda shard: shard.count(accepted))

        def hear(self, news, round_):
            self.own["rounds"] += 1
            self.own["links"] += len(news.accepted)
            self.own["told"] += sum(part.nbytes for part in (news.accepted, news.told, news.kept, news.withdrawn))
            self.own["told"] += 0 if news.counts is None else sum(part.nbytes for part in news.counts)
            return self.answered(self.timed(lambda shard: shard.hear(news)))

        def highest(self, round_):
            return self.timed(lambda shard: shard.highest())

        def offer(self, lowest, round_):
            return self.answered(self.timed(lambda shard: shard.offer(lowest)))

        def answered(self, offers):
            both = (part for one in offers for part in (*one.by_source, *one.by_target))
            self.own["answered"] += sum(part.nbytes for part in both)
            return offers

    peak_memory.reset_peak()
    start = time.process_time()
    with (
        on_cluster(f"local:{workers}", None, {"size": size}) as told,
        playing_by(partial(play_in_supersteps, Timed, WIDTH, SHARDS)),
    ):
        found = Aligner().fit(pair).match(pair)
    seconds = time.process_time() - start
    links = set(zip(found.source_ids.tolist(), found.target_ids.tolist(), strict=True))
    row = {"entities": size, "triples": len(pair.source.triples), "recall": len(links & right) / len(right)}
    row |= {"driver_seconds": seconds, "driver_peak_mb": peak_memory.peak_mb(), "stages": told.as_dict()["stages"]}
    row |= {"bytes_shared": told.bytes_shared, "num_passes": len(passes)}
    means = {name: float(np.mean([one[name] for one in passes])) for name in passes[0]}
    straggling = sum(one["slowest"] for one in passes) * SHARDS / sum(one["seconds"] for one in passes)
    return row | {"a_pass": {name: round(mean, 3) for name, mean in means.items()}, "straggling": straggling}


if __name__ == "__main__":
    main()
