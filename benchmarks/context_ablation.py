"""What each part of the context agent adds, on validation links (test links are not read).

    python benchmarks/context_ablation.py --data DIR --vectors DIR [--pairs D_W EN_FR] [--cases ...] [--output results]

DIR of --data holds the 15K folders (D_W_15K_V1, ...), DIR of --vectors the files that `rlea embed` wrote for them
(aligne_D_W_1.safetensors, ...). Everyone without a seed is to be matched. The games that the agents learn from are
played once a pair and shared by all cases. Every finished case is written at once to context_ablation.json; a case that
is there is not run again. Without --data nothing is run.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

from rlea.agent.context import ContextAgent, ContextSettings, KeySettings, num_right, shuffled
from rlea.agent.features import GROUPS
from rlea.agent.holdout import Game, make_games, others
from rlea.agent.memory import Board
from rlea.agent.passes import PassSettings, Scene, given_csls, play_fixed
from rlea.io.readers import read_pair
from rlea.io.writers.atomic import atomic
from rlea.models.embed import embed_entities
from rlea.record import as_json, describe_run
from rlea.search.candidates import find_candidates

DEFAULT = ContextSettings()
HELD_IN = "games that see vectors fitted to the held-out seeds"
CASES: dict[str, ContextSettings] = {
    "as it is": DEFAULT,
    "nothing learned (fixed passes)": replace(DEFAULT, passes=replace(DEFAULT.passes, learned=0)),
    "one learned pass": replace(DEFAULT, passes=replace(DEFAULT.passes, learned=1)),
    "matches move no keys within a pass": replace(DEFAULT, passes=replace(DEFAULT.passes, moves=0.0)),
    "learned from one state": replace(DEFAULT, states=1),
    "no re-estimated vectors in the fixed key": replace(DEFAULT, passes=replace(DEFAULT.passes, likeness=0.0)),
    **{f"without {group}": replace(DEFAULT, key=KeySettings(without=(group,))) for group in GROUPS},
    HELD_IN: DEFAULT,
    "reinforcement alone, 300 episodes": replace(DEFAULT, supervised=False, states=1, episodes=300),
    "supervision, then 150 episodes": replace(DEFAULT, episodes=150),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--vectors", type=Path, default=Path())
    parser.add_argument("--pairs", nargs="+", default=["D_W", "EN_FR"])
    parser.add_argument("--cases", nargs="+", default=list(CASES))
    parser.add_argument("--output", type=Path, default=Path("results"))
    options = parser.parse_args()
    if options.data is None:
        print("skipped: --data names the folder of the 15K data sets")
        return
    path = options.output / "context_ablation.json"
    runs = json.loads(path.read_text())["runs"] if path.exists() else {}
    for name in options.pairs:
        left = [case for case in options.cases if f"{name} {case}" not in runs]
        if left:
            for case, record in run_cases(name, left, options.data, options.vectors):
                runs[f"{name} {case}"] = record
                with atomic(path) as temporary:
                    temporary.write_text(as_json({"runs": runs}), encoding="utf-8")


def see_given(game, embeddings):
    """The same game with the candidates of the given vectors in it."""
    found = find_candidates(embeddings, game.scene.source_ids, game.scene.target_ids, DEFAULT.candidates)
    scene = replace(game.scene, given=found)
    return Game(scene, game.asked, game.hidden, play_fixed(scene, DEFAULT.passes))


def run_cases(name, cases, data, vectors):
    """Records of cases on one pair, one after the other."""
    pair = read_pair(data / f"{name}_15K_V1")
    embeddings = embed_entities(pair, str(vectors / f"aligne_{name}_1.safetensors"))
    board = Board.of(pair.source, pair.target)
    games = make_games(board, pair, pair.train, DEFAULT.games, DEFAULT.passes)
    # Without cross-fitting: the given vectors were trained on all seeds, those that a game asks for among them.
    held_in = [see_given(game, embeddings) for game in games] if HELD_IN in cases else []
    source_ids, target_ids = (shuffled(ids, k) for k, ids in enumerate(others(pair, pair.train)))
    given = find_candidates(embeddings, source_ids, target_ids, DEFAULT.candidates)
    scene = Scene(board, pair.train, source_ids, target_ids, given)
    firsts: dict[PassSettings, object] = {}
    for case in cases:
        settings = CASES[case]
        start = time.perf_counter()
        agent = ContextAgent(settings)
        own = [
            Game(game.scene, game.asked, game.hidden, game.first) for game in (held_in if case == HELD_IN else games)
        ]
        agent.learn(own)
        agent.calibrate(own)
        seconds = time.perf_counter() - start
        fixed = replace(settings.passes, learned=0, moves=0.0)
        decisions = firsts.setdefault(fixed, None) or play_fixed(scene, fixed)
        firsts[fixed] = decisions
        more = settings.given_weights[0] * given_csls(scene, decisions.pairs)
        for _ in range(settings.passes.learned):
            decisions = agent.run_pass(scene, decisions, more)
        result = {
            "pair": name,
            "case": case,
            "valid_hits@1": num_right(decisions, pair.valid) / len(pair.valid),
            "learning_seconds": round(seconds, 1),
            "seed": 0,
            "settings": asdict(settings),
        }
        print(f"{name}  {case:45s} {result['valid_hits@1']:.4f}  {seconds:.0f} s", file=sys.stderr, flush=True)
        record = describe_run(result=result, fingerprint=pair.fingerprint, notes=list(pair.notes), seed=0)
        record["command"] = (
            f"python benchmarks/context_ablation.py --data DIR --vectors DIR --pairs {name} --cases '{case}'"
        )
        yield case, record


if __name__ == "__main__":
    main()
