"""What the agent of the paper costs: seconds and memory of training and decoding, and how they grow.

    python benchmarks/agent_cost.py [--data DIR --vectors DIR] [--entities 100000] [--json FILE]

With --data and --vectors (see agent.py): 500 episodes on D_Y with a look at the validation links every 20, and the same
with 50 candidates in place of 10. Always: 100 episodes and a decode of a synthetic pair. Seconds include all but
reading and embedding: candidates, views of the graphs, episodes, validation.
"""

from __future__ import annotations

from dataclasses import replace

from measuring import keep, parser_of, print_row, timed, with_episodes

from rlea import peak_memory as memory
from rlea.evaluation.metrics import link_metrics
from rlea.graph import choose_pool
from rlea.io.readers import read_pair
from rlea.io.synthetic import SyntheticSettings, generate, synthetic_embeddings
from rlea.matching import Task
from rlea.models.embed import embed_entities
from rlea.paper.agent import Agent
from rlea.paper.presets import PRESETS
from rlea.search.candidates import find_candidates


def measure(name, pair, vectors, candidates, episodes):
    settings = with_episodes(replace(PRESETS["paper"], candidates=candidates), episodes)
    memory.reset_peak()
    agent, training = timed(lambda: Agent(settings).fit(pair, vectors))
    _, source_ids, target_ids = choose_pool(pair, "test")
    found, searching = timed(lambda: find_candidates(vectors, source_ids, target_ids, candidates))
    task = Task(pair.source, pair.target, pair.train, found)
    links, decoding = timed(lambda: agent.match(task))
    row = {
        "pair": name,
        "candidates": candidates,
        "episodes": episodes,
        "train_seconds": round(training, 1),
        "search_seconds": round(searching, 1),
        "decode_seconds": round(decoding, 2),
        "sources": len(source_ids),
        "links": len(links),
        "hits@1": round(link_metrics(links, pair.test).hits_at_1, 4),
        "peak_memory_mb": round(memory.peak_mb()),
    }
    print_row(row)
    return row


def main() -> None:
    options = parser_of(__doc__, data=True, vectors=True, entities=100_000).parse_args()
    # Compiled code is loaded before the clock runs.
    small = generate(SyntheticSettings(num_entities=200))
    measure("warm-up", small, synthetic_embeddings(small), 10, 2)
    rows, fingerprints, ratio = [], {}, None
    if options.data is not None:
        pair = read_pair(options.data / "D_Y_15K_V1")
        fingerprints["D_Y"] = pair.fingerprint
        vectors = embed_entities(pair, str(options.vectors / "aligne_D_Y.safetensors"))
        rows += [measure("D_Y", pair, vectors, k, 500) for k in (10, 50)]
        ratio = {key: round(rows[1][key] / rows[0][key], 2) for key in ("train_seconds", "decode_seconds")}
        print("50 candidates against 10:", ratio)
    pair = generate(SyntheticSettings(num_entities=options.entities))
    fingerprints["synthetic"] = pair.fingerprint
    rows.append(measure(f"synthetic {options.entities}", pair, synthetic_embeddings(pair), 10, 100))
    facts = {"rows": rows, "ratio_50_to_10": ratio, "fingerprints": fingerprints, "seed": 0}
    keep(options.json, "agent_cost.py --data DIR --vectors DIR", **facts)


if __name__ == "__main__":
    main()
