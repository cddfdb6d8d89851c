"""Train vectors and agent in turn, and keep what every round gives.

    python benchmarks/joint.py --data DIR --vectors DIR [--pairs D_W EN_FR] [--model aligne] [--rounds 2] [--folds 1]
        [--agents DIR] [--device auto] [--output results]

DIR of --data holds the 15K folders. Vectors are kept in DIR of --vectors: those of round 0 as
`benchmarks/embeddings.py` names them (aligne_D_W_1.safetensors), later ones as aligne_D_W_1_round1.safetensors; what is
there is not trained again, in a later round if it was trained on the same seeds. Agents are kept in --agents, as
`benchmarks/deciders.py` does. The record of every round goes to joint.json in the folder of --output. Without --data
nothing is run.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path

from deciders import PAIRS, SEED, program_commit, program_digest, report, say, trained_context

from rlea.agent.agents import describe_agent
from rlea.agent.context import ContextAgent
from rlea.embeddings import Embeddings
from rlea.graph import GraphPair, Links, choose_pool
from rlea.joint import train_jointly
from rlea.metrics import expected_calibration_error, link_metrics
from rlea.pipeline import embed_entities
from rlea.ranks import rank_metrics
from rlea.readers import read_pair
from rlea.readers.vectors import read_embeddings
from rlea.record import as_json, describe_run
from rlea.writers.atomic import atomic
from rlea.writers.vectors import write_embeddings


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--vectors", type=Path, default=Path())
    parser.add_argument("--pairs", nargs="+", default=list(PAIRS))
    parser.add_argument("--folds", nargs="+", default=["1"])
    parser.add_argument("--model", default="aligne")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--agents", type=Path)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--output", type=Path, default=Path("results"))
    options = parser.parse_args()
    if options.data is None:
        print("skipped: --data names the folder of the 15K data sets")
        return
    path, program = options.output / "joint.json", {"commit": program_commit(), "digest": program_digest()}
    options.output.mkdir(parents=True, exist_ok=True)
    for name in options.pairs:
        for fold in options.folds:
            pair = read_pair(options.data / f"{name}_15K_V1", fold=fold)
            records = run(pair, name, fold, options, program)
            runs = json.loads(path.read_text(encoding="utf-8"))["runs"] if path.exists() else {}
            own = f"{options.model} {name} {fold} "  # of an earlier run, which may have had more rounds
            runs = {key: record for key, record in runs.items() if not key.startswith(own)}
            with atomic(path) as temporary:
                temporary.write_text(as_json({"runs": runs | records}), encoding="utf-8")


def run(pair: GraphPair, name: str, fold: str, options: argparse.Namespace, program: dict) -> dict[str, dict]:
    """Records of all rounds on one pair and fold, by "model pair fold round"."""
    agent, _ = trained_context(pair, options.agents or options.vectors / "agents", fold, program)
    records: dict[str, dict] = {}

    def embed(grown: GraphPair, number: int) -> Embeddings:
        stem = f"{options.model}_{name}_{fold}" + (f"_round{number}" if number else "")
        file, digest = options.vectors / f"{stem}.safetensors", digest_of(grown.train)
        if file.exists():
            kept = read_embeddings(file, pair.source, pair.target)
            if number == 0 or kept.info.get("seeds_digest") == digest:
                return kept
        trained = embed_entities(grown, options.model, seed=SEED, progress=report(stem), device=options.device)
        trained.info["seeds_digest"] = digest
        write_embeddings(file, trained, pair.source, pair.target)
        return trained

    def note(number: int, agent: ContextAgent, vectors: Embeddings) -> None:
        links = agent.match(pair, vectors)
        _, _, target_ids = choose_pool(pair, "test")
        choices = [row["valid_aligned"] for row in agent.history if row["stage"] == "choice"]
        about, settings = describe_agent(agent), agent.settings
        num_choices = len(settings.given_weights) + 2 * len(settings.likenesses) - 1
        result = {
            "model": options.model,
            "pair": name,
            "fold": fold,
            "round": number,
            **link_metrics(links, pair.test, pool="test").as_dict(),
            "ece": expected_calibration_error(links, pair.test),
            "nearest": rank_metrics(vectors, pair.test, target_ids, pool="test").as_dict()["hits@1"],
            "valid_hits@1": max(choices[-num_choices:]) / len(pair.valid),
            "vectors": dict(vectors.info),
            "chosen": about["chosen"],
            "seed": SEED,
        }
        say(f"{name} {fold}  round {number}  Hits@1 {result['hits@1']:.4f}  nearest {result['nearest']:.4f}")
        record = describe_run(result=result, fingerprint=pair.fingerprint, notes=list(pair.notes))
        record["commit"] = program["commit"]
        record["command"] = (
            f"python benchmarks/joint.py --data DIR --vectors DIR --pairs {name} --folds {fold} "
            f"--model {options.model} --rounds {options.rounds}"
        )
        records[f"{options.model} {name} {fold} {number}"] = record

    joint = train_jointly(pair, embed, options.rounds, seed=SEED, agent=agent, on_round=note)
    for row in joint.rounds:
        records[f"{options.model} {name} {fold} {row['round']}"]["result"] |= {
            "sure": row["sure"],
            "valid_of_all": row["valid"],
        }
    return records


def digest_of(links: Links) -> str:
    """Which seeds vectors were trained on."""
    return hashlib.sha256(links.source_ids.tobytes() + links.target_ids.tobytes()).hexdigest()


if __name__ == "__main__":
    main()
