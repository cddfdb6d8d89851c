"""Which question should a person be asked? F1 by the number of questions, for every strategy.

    python benchmarks/questions.py --data DIR --json results/questions.json
    python benchmarks/questions.py --data DIR --json results/questions.json --cells shops,demo --questions 500

A simulated person answers from all right links, which nothing else sees. Pairs are cut as in `rlea reproduce overlap`,
so gold is complete and a link that is not gold is wrong. Ten pairs are asked about before the run decides again, 25 of
the large pairs. F1 is that of the links that would be written by default, at the confidences as the answers correct
them.

Beside it: F1 had the answers changed the asked pairs alone (`f1_alone`; the rest of the gain is about other entities),
and the calibration error of the links without an answer, before and after what the answers say of confidences.

Runs differ by the cut, and by what is random in a strategy. Of a whole pair nothing else differs, so strategies without
chance are run once there; the record says how many runs there are. A session that was recorded for these settings and
this code is not run again, so an interrupted benchmark goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

# Name, pair, share of the links that is left, channels (all if empty), seeds, runs, questions at a time.
CELLS = {
    "shops": ("shops", 1.0, (), 0, 1, 10),
    "shops-half": ("shops", 0.5, (), 0, 5, 10),
    "demo-half": ("demo", 0.5, (), 0, 5, 10),
    "D_W-25": ("D_W", 0.25, (), 0, 5, 25),
    "EN_FR-structure": ("EN_FR", 1.0, ("structure",), 100, 5, 25),
    "D_W": ("D_W", 1.0, (), 0, 1, 25),
    "EN_DE": ("EN_DE", 1.0, (), 0, 1, 25),
}
TOLD = (0, 10, 20, 50, 100, 150, 200, 250, 300, 400, 500)  # numbers of questions at which figures are taken
CHANCE = ("random",)  # strategies that draw


def what_is_seen(workspace, cell, draw):
    """The pair without a gold link, and the right links."""
    from rlea.experiments.partial import cut, draw_seeds
    from rlea.graph import GraphPair, Links

    name, share, _, seeds, *_ = CELLS[cell]
    whole = workspace.pair(name, "1")
    known = Links.union([whole.train, whole.valid, whole.test])
    pair, links = cut(whole, known, share, draw)
    train, gold = draw_seeds(links, seeds, draw)
    return GraphPair(pair.name, pair.source, pair.target, train=train), gold


def start(pair, channels):
    """A live run, and what it would write."""
    import rlea
    from rlea.agent.live import LiveRun
    from rlea.agent.sessions import Written
    from rlea.graph import choose_pool
    from rlea.result import Overlap

    aligner = rlea.Aligner(**({"channels": channels} if channels else {})).fit(pair)
    _, source_ids, target_ids = choose_pool(pair, "all")
    outcome = aligner.decide(pair, source_ids, target_ids)
    run = LiveRun(aligner, outcome.state(), outcome.last.matching)
    most, expected = min(len(source_ids), len(target_ids)), float(outcome.last.matching.confidences.sum())
    if outcome.right is None:
        return run, Written(most, expected, most, is_all=True)
    overlap = Overlap.of(outcome.right, outcome.recall, most, len(pair.train))
    return run, Written(overlap.shared, expected, most, overlap.least_confidence)


def figures(stage, written, first, gold):
    """What is measured of a session after some questions; `first` are the links that were written before any."""
    import numpy as np

    from rlea.agent.sessions import answers_alone
    from rlea.evaluation.metrics import expected_calibration_error, link_metrics
    from rlea.matching import Matching

    kept, links = written.links(stage.run), stage.run.links
    alone = answers_alone(first, stage.answers)
    asked = {(source, target) for source, target, _ in stage.answers}
    is_new = np.array(
        [one not in asked for one in zip(links.source_ids.tolist(), links.target_ids.tolist(), strict=True)], bool
    )
    others = links.some(is_new)
    raw = [
        stage.run.confidence(*one) for one in zip(others.source_ids.tolist(), others.target_ids.tolist(), strict=True)
    ]
    raw = Matching.of(others.source_ids, others.target_ids, raw)
    return {
        "questions": stage.questions,
        "f1": link_metrics(kept, gold, complete=True).f1,
        "f1_alone": link_metrics(alone, gold, complete=True).f1,
        "written": len(kept),
        "ece": expected_calibration_error(others, gold, complete=True),
        "ece_raw": expected_calibration_error(raw, gold, complete=True),
        "yes": sum(right for _, _, right in stage.answers),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with openea-15k-v1 and tables")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--cells", default=",".join(CELLS), help="with commas, in place of all")
    parser.add_argument("--strategies", help="with commas, in place of all")
    parser.add_argument("--questions", type=int, default=500)
    parser.add_argument("--runs", type=int, default=5, help="at most so many of each")
    parser.add_argument("--errs", type=float, default=0.0, help="share of the answers that are wrong")
    options = parser.parse_args()
    from rlea.agent import agent, live, questions, sessions
    from rlea.agent.questions import STRATEGIES, WEIGHTS
    from rlea.experiments.code_version import code_version
    from rlea.experiments.options import Options
    from rlea.experiments.workspace import Workspace
    from rlea.record import as_json, describe_run

    workspace = Workspace(Options(data=options.data / "openea-15k-v1"))
    known = json.loads(options.json.read_text(encoding="utf-8")) if options.json and options.json.exists() else {}
    rows, runs = known.get("rows", []), known.get("runs", {})
    code = code_version(agent, live, questions, sessions)
    weights = Path(questions.__file__).with_name(WEIGHTS).read_text(encoding="utf-8")
    started = None, None
    strategies = options.strategies.split(",") if options.strategies else list(STRATEGIES)
    for cell, draw in ((cell, draw) for cell in options.cells.split(",") for draw in range(options.runs)):
        *_, num_runs, batch = CELLS[cell]
        wanted, todo = {"code": code, "batch": batch, "most": options.questions}, []
        for name in strategies:
            if draw >= num_runs and name not in CHANCE and not options.errs:
                continue
            key = {"cell": cell, "strategy": name, "run": draw, "errs": options.errs}
            own = wanted | ({"weights": weights} if name == "learned" else {})
            old = [row for row in rows if all(row[field] == value for field, value in key.items())]
            if not old or {field: old[0]["made"].get(field) for field in own} != own:
                todo.append((name, key, own))
        if not todo:
            continue
        is_whole = CELLS[cell][1] == 1.0 and not CELLS[cell][3]
        if started[0] != (cell, 0 if is_whole else draw):
            pair, gold = what_is_seen(workspace, cell, draw)
            begin = time.process_time()
            started = (cell, 0 if is_whole else draw), start(pair, CELLS[cell][2])
            print(f"{cell} {draw}: {started[1][0]} in {time.process_time() - begin:.0f} s of the processor", flush=True)
        run, written = started[1]
        person, first = sessions.Person(gold, options.errs, draw), written.links(run)
        for name, key, own in todo:
            begin, used = time.perf_counter(), time.process_time()
            size = {"questions": options.questions, "batch": batch}
            stages = sessions.session(run, person, name, **size, seed=draw)
            curve = [figures(stage, written, first, gold) for stage in stages if stage.questions in TOLD]
            seconds, used = time.perf_counter() - begin, time.process_time() - used
            curve = [{k: round(v, 4) if isinstance(v, float) else v for k, v in one.items()} for one in curve]
            rows = [row for row in rows if any(row[field] != value for field, value in key.items())]
            rows.append({**key, "gold": len(gold), "curve": curve, "seconds": round(seconds, 1)})
            rows[-1] |= {"cpu_seconds": round(used, 1), "made": own}
            shown = " ".join(f"{one['questions']}:{one['f1']:.4f}" for one in curve)
            print(f"{cell} {draw} {name}: {shown} ({used:.0f} s of the processor)", flush=True)
            record = describe_run(fingerprint=pair.fingerprint, seed=draw)
            more = f" --errs {options.errs}" if options.errs else ""
            record["command"] = f"python benchmarks/questions.py --data DIR --cells {cell} --strategies {name}{more}"
            runs[f"{cell} {name} {draw} {options.errs}"] = record
            if options.json:
                options.json.write_text(as_json({"rows": rows, "runs": runs}), encoding="utf-8")


if __name__ == "__main__":
    main()
