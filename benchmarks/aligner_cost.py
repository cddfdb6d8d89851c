"""What the agent costs with structure and vectors: seconds and memory of training, choosing and decoding.

    python benchmarks/aligner_cost.py [--data DIR --vectors DIR] [--entities 100000] [--json FILE]

With --data and --vectors (files such as aligne_D_W_1.safetensors): training, choosing and decoding on D_W. Always: a
synthetic pair is decoded by an agent that was trained on a small one of its kind; what it learned serves both. Seconds
leave out reading and embedding; those of decoding include the search of candidates. The record is
results/context_cost.json.
"""

from __future__ import annotations

from measuring import keep, parser_of, print_row, timed

from rlea import peak_memory as memory
from rlea.agent.agent import Aligner
from rlea.evaluation.metrics import link_metrics
from rlea.io.readers import read_pair
from rlea.io.synthetic import SyntheticSettings, generate, synthetic_embeddings
from rlea.models.embed import embed_entities


def decode(name, agent, pair, vectors, **more):
    memory.reset_peak()
    links, decoding = timed(lambda: agent.match(pair, [vectors], pool="test"))
    row = {
        "pair": name,
        **more,
        "decode_seconds": round(decoding, 2),
        "decode_peak_memory_mb": round(memory.peak_mb()),
        "sources": len(pair.test),
        "links": len(links),
        "hits@1": round(link_metrics(links, pair.test).hits_at_1, 4),
    }
    print_row(row)
    return row


def main() -> None:
    options = parser_of(__doc__, data=True, vectors=True, entities=100_000).parse_args()
    # Compiled code is loaded before the clock runs, and the agent for the large pair is trained.
    small = generate(SyntheticSettings(num_entities=2000))
    vectors = synthetic_embeddings(small)
    general = Aligner(channels=("structure",)).fit(small, [vectors])
    decode("warm-up", general, small, vectors)
    rows, fingerprints = [], {}
    if options.data is not None:
        pair = read_pair(options.data / "D_W_15K_V1")
        fingerprints["D_W"] = pair.fingerprint
        vectors = embed_entities(pair, str(options.vectors / "aligne_D_W_1.safetensors"))
        memory.reset_peak()
        agent = Aligner(channels=("structure",))
        _, training = timed(lambda: agent.fit(pair))
        peak = round(memory.peak_mb())
        _, choosing = timed(lambda: agent.choose(pair, [vectors]))
        costs = {"train_seconds": round(training, 2), "train_peak_memory_mb": peak}
        costs["choose_seconds"] = round(choosing, 2)
        rows.append(decode("D_W", agent, pair, vectors, **costs))
    pair = generate(SyntheticSettings(num_entities=options.entities))
    fingerprints["synthetic"] = pair.fingerprint
    rows.append(decode(f"synthetic {options.entities}", general, pair, synthetic_embeddings(pair)))
    keep(options.json, "aligner_cost.py --data DIR --vectors DIR", rows=rows, fingerprints=fingerprints, seed=0)


if __name__ == "__main__":
    main()
