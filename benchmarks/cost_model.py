"""What a run on a cluster costs as graphs grow: processor seconds, bytes and memory of every stage; its supersteps.

    python benchmarks/cost_model.py [--sizes 1000 2000 4000] [--workers 2] [--json FILE]
    python benchmarks/cost_model.py --passes 10000 30000 100000 [--json FILE]

Synthetic pairs without seeds, all evidence; with --passes, two passes alone over random priorities. The passes of the
program that was called are played by 16 shards in one process, which are timed one by one: how long a round waits for
the slowest of them, and how many bytes each shard is told and all of them answer.
"""

from __future__ import annotations

import time
from functools import partial
from typing import ClassVar

import numpy as np
from measuring import keep_rows, parser_of

from rlea import peak_memory
from rlea.agent.agent import Aligner
from rlea.agent.memory import Graphs
from rlea.agent.passes import PassSettings, Prior, Problem, play_fixed, playing_by
from rlea.evidence.channel import ScoreTable
from rlea.graph import Links
from rlea.io.synthetic import SyntheticSettings, generate
from rlea.scale.cluster import on_cluster
from rlea.scale.supersteps import SHARDS, WIDTH, LocalShards, play_in_supersteps
from rlea.search.pairs import Pairs

RIVALS = 9  # random pairs of every source, beside the right one


class Timed(LocalShards):
    """Shards that are timed one by one; `passes` has what each pass took."""

    passes: ClassVar[list[dict[str, float]]] = []

    def __init__(self, given):
        super().__init__(given)
        self.own = {"pairs": len(given.game.pair_source), "rounds": 0, "told": 0, "answered": 0}
        self.own |= {"seconds": 0.0, "slowest": 0.0, "links": 0}
        self.passes.append(self.own)

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


def main() -> None:
    parser = parser_of(__doc__, workers=2)
    parser.add_argument("--sizes", nargs="+", type=int, default=[1000, 2000, 4000, 8000])
    parser.add_argument("--passes", nargs="+", type=int, help="sizes of passes that are played alone")
    options = parser.parse_args()
    if options.passes:
        command = f"cost_model.py --passes {' '.join(map(str, options.passes))}"
        measure_pass(300)  # compiles
        rows = map(measure_pass, options.passes)
        keep_rows(options.json, command, rows, seed=0, settings={"width": WIDTH, "shards": SHARDS})
        return
    command = f"cost_model.py --sizes {' '.join(map(str, options.sizes))} --workers {options.workers}"
    measure(100, options.workers)  # compiles
    rows = (measure(size, options.workers) for size in options.sizes)
    keep_rows(options.json, command, rows, seed=0, settings={"width": WIDTH, "shards": SHARDS})


def measure(size, workers):
    pair = generate(SyntheticSettings(num_entities=size, name_noise=0.3, nameless=0.2, seeds=0.0, valid=0.0))
    right = set(zip(pair.test.source_ids.tolist(), pair.test.target_ids.tolist(), strict=True))
    Timed.passes.clear()
    peak_memory.reset_peak()
    start = time.process_time()
    with (
        on_cluster(f"local:{workers}", None, {"size": size}) as told,
        playing_by(partial(play_in_supersteps, Timed, WIDTH, SHARDS)),
    ):
        found = Aligner().fit(pair).match(pair)
    seconds = time.process_time() - start
    links = set(zip(found.source_ids.tolist(), found.target_ids.tolist(), strict=True))
    row = {
        "entities": size,
        "fingerprint": pair.fingerprint,
        "triples": len(pair.source.triples),
        "recall": len(links & right) / len(right),
    }
    row |= {"driver_seconds": seconds, "driver_peak_mb": peak_memory.peak_mb(), "stages": told.as_dict()["stages"]}
    return row | {"bytes_shared": told.bytes_shared, "num_passes": len(Timed.passes), "a_pass": of_passes()}


def of_passes():
    """The means of the passes so far, and how much longer rounds take than if all shards took the same time."""
    means = {name: round(float(np.mean([one[name] for one in Timed.passes])), 3) for name in Timed.passes[0]}
    return means | {"straggling": round(means["slowest"] * SHARDS / means["seconds"], 3)}


def measure_pass(size):
    """A first pass and one that remembers it over random priorities; right pairs have higher ones as a rule."""
    pair = generate(SyntheticSettings(num_entities=size, name_noise=0.0, seeds=0.0, valid=0.0))
    rng = np.random.default_rng(0)
    right = pair.test.source_ids, pair.test.target_ids
    rivals = np.repeat(right[0], RIVALS), rng.integers(0, size, RIVALS * size).astype(np.int32)
    pairs = Pairs.union([Pairs.of(*right), Pairs.of(*rivals)])
    counterpart = np.full(size, -1, np.int32)
    counterpart[right[0]] = right[1]
    is_right = counterpart[pairs.source_ids] == pairs.target_ids
    logits = rng.normal(np.where(is_right, 3.0, -3.0), 3.0).astype(np.float32)
    problem = Problem(Graphs.of_pair(pair), Links.empty(), *pair.entity_ids)
    prior = Prior(pairs, ScoreTable(pairs, logits, -6.0), lowest=-6.0, propagation=0.0)
    Timed.passes.clear()
    peak_memory.reset_peak()
    with playing_by(partial(play_in_supersteps, Timed, WIDTH, SHARDS)):
        found = play_fixed(problem, PassSettings(), prior)
    row = {
        "entities": size,
        "fingerprint": pair.fingerprint,
        "right": float((counterpart[found.source_ids] == found.target_ids).mean()),
    }
    return row | {"peak_mb": peak_memory.peak_mb(), "a_pass": of_passes()}


if __name__ == "__main__":
    main()
