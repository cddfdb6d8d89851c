"""Learn which question to ask from simulated sessions, and write the weights that come with the package.

    python scripts/learn_questions.py            # writes src/rlea/agent/question_values.json

The sessions are about synthetic pairs of many kinds, with their planted links, and about the demo pair. On no other
pair is anything learned: the pairs that `benchmarks/questions.py` measures are not among them. The same command writes
the same file again.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

import numpy as np

HOME = Path(__file__).parent.parent / "src" / "rlea" / "agent" / "question_values.json"
# What synthetic pairs look like: names that are clear or not, few edges or many, all shared or half.
KINDS = (
    {"name_noise": 0.3, "dangling": 0.5, "triples_per_entity": 4.0},
    {"name_noise": 0.5, "dangling": 0.3, "triples_per_entity": 3.0, "respell": 0.2},
    {"name_noise": 0.4, "nameless": 0.3, "dangling": 0.2, "values_per_entity": 0.5, "drop": 0.2},
    {"name_noise": 0.3, "nameless": 0.6, "dangling": 0.4, "drop": 0.2, "triples_per_entity": 5.0},
)


def pairs_to_learn_from(entities, draws):
    """Name, pair without seeds, and the right links."""
    from rlea.experiments.partial import cut
    from rlea.graph import GraphPair, Links
    from rlea.io.read import read_demo
    from rlea.io.synthetic import SyntheticSettings, generate

    for number, kind in enumerate(KINDS):
        for draw in range(draws):
            whole = generate(SyntheticSettings(num_entities=entities, seed=100 * draw + number, **kind))
            gold = Links.union([whole.train, whole.valid, whole.test])
            yield f"synthetic {number} {draw}", GraphPair(whole.name, whole.source, whole.target), gold
    whole = read_demo()
    known = Links.union([whole.train, whole.valid, whole.test])
    for share in (0.4, 0.8):
        yield f"demo {share:.0%}", *cut(whole, known, share, 5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--entities", type=int, default=300)
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--questions", type=int, default=60)
    parser.add_argument("--output", type=Path, default=HOME)
    options = parser.parse_args()
    import rlea
    from rlea.agent.live import LiveRun
    from rlea.agent.questions import FEATURES
    from rlea.agent.sessions import Person, Played, learn_values, play_out

    parts = []
    for name, pair, gold in pairs_to_learn_from(options.entities, options.draws):
        run = LiveRun.start(rlea.Aligner(), pair)
        part = play_out(run, Person(gold), questions=options.questions, seed=len(parts))
        parts.append(part)
        told = ", ".join(
            f"{word} {int(some.sum())} bring {part.gains[some].mean():.2f}"
            for word, some in (("yes", part.is_right), ("no", ~part.is_right))
            if some.any()
        )
        print(f"{name}: {run}, {told}", flush=True)
    played = Played.join(parts)
    values = learn_values(played)
    for number, name in enumerate([*FEATURES, "intercept"]):
        print(f"{name:20} yes {values.yes[number]:7.3f}  no {values.no[number]:7.3f}")
    for left in range(len(parts)):  # what is said of a pair that was not learned from
        others = learn_values(Played.join([part for place, part in enumerate(parts) if place != left]))
        from rlea.agent.questions import Situation

        own = parts[left]
        said = others(Situation(np.zeros(len(own.gains), np.int32), np.zeros(len(own.gains), np.int32), own.features))
        top = np.argsort(-said)[: len(said) // 5]
        print(f"left out {left}: the best fifth brings {own.gains[top].mean():.2f}, all {own.gains.mean():.2f}")
    about = {"questions": len(played.gains), "entities": options.entities, "draws": options.draws}
    options.output.write_text(json.dumps(replace(values).as_dict() | {"learned_from": about}, indent=1) + "\n")


if __name__ == "__main__":
    main()
