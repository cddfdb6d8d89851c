"""Let every decider decide over the same vectors and candidates, and keep what came of it, a line a cell.

    python benchmarks/deciders.py --data DIR --vectors DIR [--pairs D_W EN_FR] [--models aligne] [--folds 1]
        [--deciders nearest rlea] [--dangling 0.25] [--agents DIR] [--output results]

DIR of --data holds the 15K folders, DIR of --vectors the files that `benchmarks/embeddings.py` wrote, such as
aligne_D_W_1.safetensors; models are those with a file there unless they are named. The lines go to deciders.csv in the
folder of --output, the whole records to deciders.json beside it. `seconds` and `peak_memory_mb` of a line are those of
deciding, after training and with the candidates found; the record has those of training and choosing.
The agent that remembers learns nothing from vectors: it is trained once per pair and fold, kept in --agents (a folder
beside that of the vectors unless named) and fitted to each model's vectors on validation links.
With --dangling that share of the test targets is taken out of the pool, and their sources have nobody to be matched to.
A cell that is there, of the same program, settings, data and vectors, is not made again; each is written when it is
finished. Without --data nothing is run. `--add FILE.json ...` takes in records made elsewhere.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import numba
import numpy as np

import rlea
from rlea import memory
from rlea.agent.agent import Agent
from rlea.agent.agents import describe_agent
from rlea.agent.context import ContextAgent
from rlea.candidates import find_candidates
from rlea.embed import MODELS
from rlea.embeddings import Embeddings
from rlea.errors import InputError
from rlea.graph import GraphPair, Ids, Links, choose_pool
from rlea.matchers import MATCHERS
from rlea.matchers.confidence import keep_worthwhile
from rlea.matching import Matching, Task, toy_task
from rlea.metrics import coverage, expected_calibration_error, link_metrics
from rlea.pipeline import embed_entities
from rlea.readers import read_pair
from rlea.record import as_json, commit, describe_run
from rlea.writers.atomic import write_all

COLUMNS = (
    "model", "pair", "fold", "decider", "pool", "hits@1", "precision", "recall", "f1", "matched", "seconds",
    "peak_memory_mb", "commit", "seed",
)  # fmt: skip
PAIRS = ("EN_FR", "EN_DE", "D_W", "D_Y")
TRAINED = [name for name, model in MODELS.items() if model.trained]
PLAIN = ("nearest", "csls", "rinf", "sinkhorn", "hungarian", "stable", "seq", "best-first")
DECIDERS = (*PLAIN, "paper", "rlea")
WITH_DANGLING = ("hungarian", "best-first", "rlea")
CALIBRATED = ("best-first", "rlea")  # deciders whose confidences are meant as chances
CANDIDATES = 50
SEED = 0
MEMORY = (
    "peak resident memory of the one process for all deciders, counted anew at each stage where the system allows it; "
    "graphs, vectors and candidates are part of it"
)


@dataclass(frozen=True, eq=False)
class Cell:
    """What all deciders of a model, pair and fold share, and the identity of it."""

    model: str
    pair_name: str
    fold: str
    pair: GraphPair
    pool: str
    gold: Links
    settings: dict  # of the cell, the decider's own left out
    vectors_digest: str


@dataclass(frozen=True, eq=False)
class Decided:
    """Links of a decider with what it cost by stage, and what an agent says of itself."""

    matching: Matching
    seconds: dict[str, float]
    memory_mb: dict[str, float]
    agent: dict


# ---- what is kept ---------------------------------------------------------------------------------------------------


def key_of(record: dict) -> str:
    result = record["result"]
    words = [result[key] for key in ("model", "pair", "fold", "decider")]
    return " ".join(words if result["pool"] == "test" else [*words, result["pool"]])


def row_of(record: dict) -> dict:
    """The line of a record."""
    result = record["result"]
    row = {key: result[key] for key in ("model", "pair", "fold", "decider", "pool", "matched")}
    row |= {key: f"{result[key]:.4f}" for key in ("hits@1", "precision", "recall", "f1")}
    row |= {"seconds": f"{result['seconds']:.3f}", "peak_memory_mb": f"{result['peak_memory_mb']:.0f}"}
    return row | {"commit": record["commit"], "seed": record["seed"]}


def read_records(folder: Path) -> dict[str, dict]:
    path = folder / "deciders.json"
    return json.loads(path.read_text(encoding="utf-8"))["runs"] if path.exists() else {}


def keep(folder: Path, records: list[dict]) -> None:
    """Write lines and records in a fixed order, both files or neither; a later run of a cell takes its place."""
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder):
        known = read_records(folder) | {key_of(record): record for record in records}
        known = dict(sorted(known.items(), key=lambda item: order_of(item[1]["result"])))
        lines = [",".join(COLUMNS)]
        lines += [",".join(str(row[key]) for key in COLUMNS) for row in map(row_of, known.values())]
        table, whole = "\n".join(lines) + "\n", as_json({"runs": known})
        write_all(
            {
                folder / "deciders.json": lambda path: path.write_text(whole, encoding="utf-8"),
                folder / "deciders.csv": lambda path: path.write_text(table, encoding="utf-8"),
            }
        )


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One writer at a time: runs of different pairs may share a folder."""
    place = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(place, fcntl.LOCK_EX)
        yield
    finally:
        os.close(place)


def order_of(result: dict) -> tuple:
    def place(known: tuple | list, key: str) -> tuple:
        name = result[key]
        return (known.index(name), "") if name in known else (len(known), name)

    return (
        result["pool"] != "test", result["pool"], place(PAIRS, "pair"), place(TRAINED, "model"), result["fold"],
        place(DECIDERS, "decider"),
    )  # fmt: skip


def is_there(record: dict | None, wanted: dict) -> bool:
    """Whether a record is of the run that would be made today."""
    return record is not None and all(record.get(key) == value for key, value in wanted.items())


def program_commit() -> str:
    """The commit; what this program itself writes to results/ is no change of the program."""
    name = commit()
    if not name.endswith("+"):
        return name
    command = ["git", "status", "--porcelain", "--untracked-files=no", "--", ":/", ":(top,exclude)results"]
    folder = Path(rlea.__file__).parent
    changed = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout.strip()
    return name if changed else name.removesuffix("+")


def program_digest() -> str:
    """SHA-256 of the package's code: unlike the commit it changes with the package, and with nothing else."""
    folder = Path(rlea.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(f"{path.relative_to(folder).as_posix()}\n{path.stat().st_size}\n".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# ---- deciding -------------------------------------------------------------------------------------------------------


class Stages:
    """Seconds and peak memory by stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.memory_mb: dict[str, float] = {}

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        memory.reset_peak()
        start = time.perf_counter()
        yield
        self.seconds[stage] = time.perf_counter() - start
        self.memory_mb[stage] = round(memory.peak_mb(), 1)


def settings_of(decider: str) -> dict:
    """What a decider is trained with, as a record has it; nothing for the others."""
    if decider == "paper":
        return json.loads(as_json(asdict(Agent("paper").settings)))
    return json.loads(as_json(asdict(ContextAgent().settings))) if decider == "rlea" else {}


def decide(decider: str, pair: GraphPair, task: Task, agents: Path, fold: str, program: dict) -> Decided:
    """Train where the decider is trained, then decide; no decider sees a test link."""
    stages, vectors = Stages(), task.candidates.embeddings
    if decider == "paper":
        agent = Agent("paper", seed=SEED)
        with stages("training"):
            agent.fit(pair, vectors, progress=report("paper"))
        with stages("deciding"):
            matching = agent.match(task)
        return Decided(matching, stages.seconds, stages.memory_mb, told(agent))
    if decider == "rlea":
        context, about = trained_context(pair, agents, fold, program)
        if len(pair.valid):
            with stages("choosing"):
                context.choose(pair, vectors, progress=report("rlea"))
        with stages("deciding"):
            matching = context.match(task)
        seconds = {"training": about["seconds"], **stages.seconds}
        return Decided(matching, seconds, {"training": about["peak_memory_mb"], **stages.memory_mb}, told(context))
    MATCHERS[decider](toy_task(vectors))  # loads compiled code, which is not part of deciding
    with stages("deciding"):
        matching = MATCHERS[decider](task)
    return Decided(matching, stages.seconds, stages.memory_mb, {})


def told(agent: Agent | ContextAgent) -> dict:
    """What an agent says of itself beside its settings; of its history, what was tried on validation links."""
    about = describe_agent(agent)
    rows = [row for row in about.pop("history") if "valid_aligned" in row]
    del about["settings"]
    return about | {"history": rows}


def trained_context(pair: GraphPair, folder: Path, fold: str, program: dict) -> tuple[ContextAgent, dict]:
    """The agent of a pair and fold with the record of its training: from its file, or trained and put there."""
    stem = f"{pair.name.removesuffix('_15K_V1')}_{fold}"
    path, beside = folder / f"rlea_{stem}.safetensors", folder / f"rlea_{stem}.json"
    wanted = {
        "program": program["digest"], "fingerprint": pair.fingerprint, "settings": settings_of("rlea"), "seed": SEED
    }  # fmt: skip
    if path.exists() and beside.exists():
        about = json.loads(beside.read_text(encoding="utf-8"))
        # The file's own digest tells a stop between writing the two files.
        if is_there(about, wanted) and about["file"] == file_digest(path):
            return ContextAgent.load(path), about
    say(f"{stem}  training the agent that remembers")
    stages, agent = Stages(), ContextAgent(seed=SEED)
    with stages("training"):
        agent.fit(pair, None, progress=report("rlea"))
    folder.mkdir(parents=True, exist_ok=True)
    agent.save(path)
    about = {"seconds": stages.seconds["training"], "peak_memory_mb": stages.memory_mb["training"]}
    about |= {"file": file_digest(path), **wanted}
    write_all({beside: lambda place: place.write_text(as_json(about), encoding="utf-8")})
    return ContextAgent.load(path), about


def choose_dangling(pair: GraphPair, share: float) -> tuple[Links, Ids]:
    """The test links that are left when a share of their targets is taken away, and the targets taken."""
    targets = np.unique(pair.test.target_ids)
    taken = np.random.default_rng([SEED, 5]).permutation(targets)[: round(share * len(targets))]
    left = ~np.isin(pair.test.target_ids, taken)
    return Links.of(pair.test.source_ids[left], pair.test.target_ids[left]), taken


# ---- the run --------------------------------------------------------------------------------------------------------


def run_cell(cell: Cell, decider: str, task: Task, found: dict, agents: Path, program: dict, wanted: dict) -> dict:
    """The record of one decider in one cell."""
    decided = decide(decider, cell.pair, task, agents, cell.fold, program)
    matching, candidates = decided.matching, task.candidates
    facts: dict = {}
    if decider in CALIBRATED:
        facts["ece"] = expected_calibration_error(matching, cell.gold)
    if decider == "rlea" and cell.settings["dangling"]:
        facts["uncut"] = link_metrics(matching, cell.gold, pool=cell.pool).as_dict()
        matching = keep_worthwhile(matching, min(candidates.num_rows, candidates.num_columns))
        facts["threshold"] = float(matching.confidences.min()) if len(matching) else None
    result = {
        "model": cell.model,
        "pair": cell.pair_name,
        "fold": cell.fold,
        "decider": decider,
        **link_metrics(matching, cell.gold, pool=cell.pool).as_dict(),
        **facts,
        "seconds": decided.seconds["deciding"],
        "seconds_by_stage": found["seconds"] | decided.seconds,
        "peak_memory_mb": decided.memory_mb["deciding"],
        "peak_memory_mb_by_stage": found["memory_mb"] | decided.memory_mb,
        "memory": MEMORY,
        "threads": numba.get_num_threads(),
        "sources": candidates.num_rows,
        "targets": candidates.num_columns,
        "coverage": found["coverage"],
    }
    record = describe_run(result=result, agent=decided.agent, **wanted)
    dangling = f" --dangling {cell.settings['dangling']:g}" if cell.settings["dangling"] else ""
    record["command"] = (
        f"python benchmarks/deciders.py --data DIR --vectors DIR --pairs {cell.pair_name} --models {cell.model} "
        f"--deciders {decider} --folds {cell.fold}{dangling}"
    )
    # The commit as the run began: a later one is not what is running.
    record["commit"] = program["commit"]
    return record


def run_model(cell: Cell, vectors_path: Path, deciders: list[str], options: argparse.Namespace, program: dict) -> int:
    """All deciders over one model's vectors; how many could not be run."""
    title = f"{cell.model:9}{cell.pair_name:6} {cell.fold}"
    wanted = {
        name: {
            "settings": cell.settings | {"decider": name, "agent": settings_of(name)},
            "program": program["digest"],
            "fingerprint": cell.pair.fingerprint,
            "vectors": cell.vectors_digest,
            "seed": SEED,
        }
        for name in deciders
    }
    known = read_records(options.output)
    missing = []
    for name in deciders:
        result = {"model": cell.model, "pair": cell.pair_name, "fold": cell.fold, "decider": name, "pool": cell.pool}
        if is_there(known.get(key_of({"result": result})), wanted[name]):
            say(f"{title}  {name:11} is there")
        else:
            missing.append(name)
    if not missing:
        return 0
    vectors = embed_entities(cell.pair, str(vectors_path))
    task, found = make_task(cell, vectors)
    failed = 0
    for name in missing:
        try:
            record = run_cell(cell, name, task, found, options.agents, program, wanted[name])
        except InputError as problem:
            say(f"{title}  {name:11} failed: {problem}")
            failed += 1
            continue
        keep(options.output, [record])
        result = record["result"]
        more = "".join(f"  {key} {result[key]:.3f}" for key in ("f1", "ece") if key in result)
        say(f"{title}  {name:11} Hits@1 {result['hits@1']:.4f}{more}  {result['seconds']:.2f} s")
    return failed


def make_task(cell: Cell, vectors: Embeddings) -> tuple[Task, dict]:
    """The task that all deciders of a cell are given, and what finding its candidates cost."""
    _, source_ids, target_ids = choose_pool(cell.pair, "test")
    target_ids = target_ids[np.isin(target_ids, cell.gold.target_ids)]  # keeps the pool's random order
    stages = Stages()
    with stages("candidates"):
        candidates = find_candidates(vectors, source_ids, target_ids, CANDIDATES)
        _ = candidates.pairs  # made on first use, and the first decider is not to pay for all
    task = Task(cell.pair.source, cell.pair.target, cell.pair.train, candidates, SEED)
    facts = {"seconds": stages.seconds, "memory_mb": stages.memory_mb, "coverage": coverage(candidates, cell.gold)}
    return task, facts


def run_all(options: argparse.Namespace) -> int:
    """Every cell that is asked for; how many could not be run."""
    share = options.dangling
    deciders = options.deciders or list(WITH_DANGLING if share else DECIDERS)
    toy = toy_task(Embeddings(np.eye(1, dtype=np.float32), np.eye(1, dtype=np.float32)))
    for name in deciders:
        if name in PLAIN:
            MATCHERS[name](toy)  # its code is read now, before its digest is taken
    program = {"commit": program_commit(), "digest": program_digest()}
    if not program["commit"] or program["commit"].endswith("+"):
        say("files are changed since the commit, or there is none: records of this run are for trying out")
    failed = 0
    for fold in options.folds:
        for pair_name in options.pairs:
            known = {path.name: path for path in sorted(options.vectors.glob(f"*_{pair_name}_{fold}.safetensors"))}
            names = [name.removesuffix(f"_{pair_name}_{fold}.safetensors") for name in known]
            models = options.models or sorted(names, key=lambda name: (name not in TRAINED, name))
            if not models:
                say(f"{pair_name} {fold}  there are no vectors of it")
                continue
            pair = read_pair(options.data / f"{pair_name}_15K_V1", fold)
            gold, _ = choose_dangling(pair, share)
            settings = {"candidates": CANDIDATES, "pool": "test", "dangling": share}
            pool = f"test-{100 * share:g}%" if share else "test"
            for model in models:
                path = options.vectors / f"{model}_{pair_name}_{fold}.safetensors"
                if not path.exists():
                    say(f"{model:9}{pair_name:6} {fold}  skipped: there is no {path.name}")
                    continue
                cell = Cell(model, pair_name, fold, pair, pool, gold, settings, file_digest(path))
                try:
                    failed += run_model(cell, path, deciders, options, program)
                except InputError as problem:
                    say(f"{model:9}{pair_name:6} {fold}  failed: {problem}")
                    failed += 1
    return failed


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def report(name: str, every: float = 30.0):
    """A callback that says now and then how far training is."""
    last = time.monotonic()

    def progress(stage: str, done: float, total: float, note: str = "") -> None:
        nonlocal last
        if time.monotonic() - last >= every:
            last = time.monotonic()
            say(f"  {name}: {stage} {done:.0f} of {total:.0f}  {note}")

    return progress


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--vectors", type=Path, default=Path("runs"))
    parser.add_argument("--pairs", nargs="+", default=list(PAIRS))
    parser.add_argument("--models", nargs="+")
    parser.add_argument("--deciders", nargs="+", choices=DECIDERS)
    parser.add_argument("--folds", nargs="+", default=["1"])
    parser.add_argument("--dangling", type=float, default=0.0)
    parser.add_argument("--agents", type=Path)
    parser.add_argument("--output", type=Path, default=Path("results"))
    parser.add_argument("--add", type=Path, nargs="+", default=[])
    options = parser.parse_args()
    if not 0 <= options.dangling < 1:
        parser.error("--dangling is a share from 0 to below 1")
    if options.add:
        for path in options.add:
            keep(options.output, list(json.loads(path.read_text(encoding="utf-8"))["runs"].values()))
        return
    if options.data is None:
        print("skipped: --data names the folder of the 15K data sets")
        return
    options.agents = options.agents or options.vectors.parent / "agents"
    if run_all(options):
        sys.exit("some cells could not be run")


if __name__ == "__main__":
    main()
