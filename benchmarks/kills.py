"""Commands that are killed at random moments, and what is on the disk afterwards.

    python benchmarks/kills.py --kills 200 --json results/kills.json

Every kill takes one command, half of the time over what an earlier run has left, lets it work for a random part of the
time that it needs, and sends SIGKILL, SIGINT or SIGTERM. Then the folder is looked at: it holds the old result, the new
one, or something that the program itself refuses to take for a result. The same command is run once more to its end,
and must leave the result of a run that was left alone, and nothing else. For `label` all answers that were acknowledged
must be in the log. Nothing of this depends on how fast the machine is but where the kills fall.
"""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from measuring import keep_rows, parser_of

SIGNALS = {"SIGKILL": signal.SIGKILL, "SIGINT": signal.SIGINT, "SIGTERM": signal.SIGTERM}
ENDS = {"SIGINT": {130}, "SIGTERM": {143}, "SIGKILL": {-signal.SIGKILL}}
STRAY = re.compile(r"\.rlea-.*|\..*\.partial|.*-journal|.*-wal")
# Of our own frames: before it runs any of them, Python ends an interrupt in a traceback.
OWN_TRACEBACK = re.compile(r"Traceback.*rlea/(cli|commands|pipeline)", re.DOTALL)
# What differs between two runs of the same command: times, folders, machines.
PAIR: dict[str, Any] = {"num_entities": 80, "seeds": 0.4, "valid": 0.1, "name_noise": 0.2, "seed": 3}
GIVEN = ("pair", "run", "more.nt", "said", "work")  # no results, or of no interest
VARYING = ("run.json", "run.toml", "report.html", "v.json", "v.safetensors", "agent.json")


@dataclass(frozen=True)
class Command:
    """A command line, what it leaves, and how to see whether that is whole."""

    arguments: tuple[str, ...]
    output: str  # file or folder in the working folder
    is_whole: Callable[[Path], bool]  # of the working folder: the result is there, and the program takes it for one


def rlea(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "rlea", *arguments]


def whole_run(folder: Path) -> bool:
    """Whether the folder of a run has the files that its record lists."""
    from rlea.errors import InputError
    from rlea.io.writers.run_folder import check_whole, read_json

    record = read_json(folder / "out" / "run.json")
    try:
        check_whole(folder / "out", record, record.get("files", {}))
    except InputError:
        return False
    return all((folder / "out" / name).exists() for name in record.get("files", ["?"]))


def whole_arrays(name: str) -> Callable[[Path], bool]:
    """Whether a safetensors file can be read."""

    def look(folder: Path) -> bool:
        from rlea.errors import InputError
        from rlea.io.array_files import load_safetensors

        try:
            load_safetensors(folder / name, "unreadable", "")
        except InputError:
            return False
        return True

    return look


def whole_tables(folder: Path) -> bool:
    """Whether every record of a reproduction can be read."""
    try:
        return all(json.loads(path.read_text()) for path in (folder / "out").glob("*.json"))
    except ValueError:
        return False


COMMANDS = {
    "align": Command(("align", "pair", "--channels", "names,structure", "--output", "out", "-q"), "out", whole_run),
    "dedupe": Command(("dedupe", "pair/source.nt", "--output", "out", "-q"), "out", whole_run),
    "embed": Command(
        ("embed", "pair", "--model", "mtranse", "--epochs", "200", "--output", "v.safetensors", "-q"),
        "v.safetensors",
        whole_arrays("v.safetensors"),
    ),
    "train": Command(
        ("train", "pair", "--preset", "paper", "--episodes", "40", "--output", "agent.safetensors", "-q"),
        "agent.safetensors",
        whole_arrays("agent.safetensors"),
    ),
    "update": Command(("update", "run", "--source", "more.nt", "--output", "out", "-q"), "out", whole_run),
    "reproduce": Command(
        ("reproduce", "overlap", "--quick", "--work", "work", "--output", "out", "-q"), "out", whole_tables
    ),
}


def prepare(folder: Path, names: list[str]) -> None:
    """A small pair to work on, the same every time; for updates a run, and an entity that comes later."""
    from rlea.io.synthetic import LABEL, SyntheticSettings, write_synthetic

    write_synthetic(folder / "pair", SyntheticSettings(**PAIR))
    if "update" in names:
        known = (folder / "pair" / "source.nt").read_text().split()[0]
        (folder / "more.nt").write_text(
            f'<http://new/1> <{LABEL}> "late" .\n<http://new/1> <http://new/of> {known} .\n'
        )
        finish(("align", "pair", "--channels", "names,structure", "--output", "run", "-q"), folder)


def run(command: list[str], folder: Path, **more: Any) -> subprocess.Popen[bytes]:
    with (folder / "said").open("ab") as said:
        return subprocess.Popen(command, cwd=folder, stdout=more.pop("stdout", said), stderr=said, **more)


def finish(arguments: tuple[str, ...], folder: Path) -> None:
    process = run(rlea(*arguments), folder)
    if process.wait():
        raise SystemExit(f"{' '.join(arguments)}: {(folder / 'said').read_text()[-2000:]}")


def files_of(folder: Path) -> dict[str, bytes]:
    """All files but those that are given, and those that differ from run to run."""
    own = {path.relative_to(folder): path for path in folder.rglob("*") if path.is_file()}
    return {name.as_posix(): path.read_bytes() for name, path in own.items() if name.parts[0] not in GIVEN}


def strays(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if STRAY.fullmatch(path.name))


def measure(name: str, folder: Path) -> tuple[float, dict[str, bytes]]:
    """How long a command takes that is left alone, once all is compiled, and what it leaves."""
    for again in (False, True):
        for output in ("out", "work"):
            shutil.rmtree(folder / output, ignore_errors=True)
        start = time.monotonic()
        finish(COMMANDS[name].arguments, folder)
        if again:
            return time.monotonic() - start, files_of(folder)
    raise AssertionError


def kill(name: str, place: Path, before: Path | None, took: float, chance: Random) -> dict[str, Any]:
    """One kill, and what was found: `state` after it, `problems` then and after the next run."""
    command = COMMANDS[name]
    folder = shutil.copytree(place / "given", place / "now")
    if before is not None:
        shutil.copytree(before, folder, dirs_exist_ok=True)
    signal_name = chance.choice(list(SIGNALS))
    process = run(rlea(*command.arguments), folder)
    try:
        process.wait(chance.uniform(0, 1.1 * took))
    except subprocess.TimeoutExpired:
        process.send_signal(SIGNALS[signal_name])
    code = process.wait(300)
    problems = []
    said = (folder / "said").read_text(errors="replace")
    if OWN_TRACEBACK.search(said) or (code and code not in ENDS[signal_name] and code != -SIGNALS[signal_name]):
        problems.append(f"ended with {code}: {said[-2000:]}")
    is_there = (folder / command.output).exists()
    is_whole = is_there and command.is_whole(folder)
    state = "finished" if code == 0 else "whole" if is_whole else "not whole, and seen to be" if is_there else "nothing"
    if is_there and not is_whole and command.output.endswith(".safetensors"):
        problems.append(f"{command.output} is damaged")
    if signal_name != "SIGKILL" and strays(folder):
        problems.append(f"left {', '.join(strays(folder))}")
    return {"command": name, "signal": signal_name, "over": before is not None, "state": state, "problems": problems}


def look_after(name: str, place: Path, known: dict[str, bytes], row: dict[str, Any]) -> None:
    """Run the command again to its end, and compare what it leaves with that of a run that was left alone."""
    folder = place / "now"
    process = run(rlea(*COMMANDS[name].arguments), folder)
    if process.wait():
        row["problems"].append(f"cannot go on: {(folder / 'said').read_text()[-500:]}")
        return
    if left := strays(folder):
        row["problems"].append(f"left for ever: {', '.join(left)}")
    found = files_of(folder)
    if not COMMANDS[name].is_whole(folder):
        row["problems"].append("the result of the next run is not whole")
    if extra := sorted(found.keys() ^ known.keys()):
        row["problems"].append(f"other files than a run that was left alone: {', '.join(extra)}")
    differing = [one for one in found.keys() & known.keys() if found[one] != known[one] and not varies(one, name)]
    if differing:
        row["problems"].append(f"other content than a run that was left alone: {', '.join(sorted(differing))}")


def varies(path: str, name: str) -> bool:
    """Whether a file holds times, or names of folders, or counts of restarts."""
    return Path(path).name in VARYING or name == "reproduce"


def kill_review(place: Path, run_folder: Path, chance: Random) -> dict[str, Any]:
    """`rlea label` that is killed between answers: what it has acknowledged is in the log."""
    from rlea.verdicts import VerdictStore

    folder = shutil.copytree(place / "given", place / "now")
    shutil.copytree(run_folder, folder, dirs_exist_ok=True)
    signal_name = chance.choice(list(SIGNALS))
    process = run(
        rlea("label", "out", "--reviewer", "Ada", "-q"), folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    asked = chance.randint(0, 8)
    path = folder / "out" / "verdicts.sqlite"
    answered = 0
    problems: list[str] = []
    for _ in range(asked):
        try:
            process.stdin.write(b"y\n")
            process.stdin.flush()
        except BrokenPipeError:
            break
    end = time.monotonic() + chance.uniform(0, 8)
    while time.monotonic() < end and answered < asked:
        time.sleep(0.02)
        answered = count_answers(path)
    process.send_signal(SIGNALS[signal_name])
    process.stdin.close()
    process.stdout.read()
    process.wait(300)
    if path.exists():
        with VerdictStore(path) as store:
            entries = store.entries()
        if len(entries) < answered or [one.number for one in entries] != list(range(1, len(entries) + 1)):
            problems.append(f"{answered} answers were on the disk, and {len(entries)} are left")
    said = (folder / "said").read_text(errors="replace")
    if OWN_TRACEBACK.search(said):
        problems.append(said[-2000:])
    again = run(rlea("label", "out", "--reviewer", "Ada", "-q", "--number", "1"), folder, stdin=subprocess.PIPE)
    again.communicate(b"y\n")
    if again.returncode or count_answers(path) < answered:
        problems.append(f"cannot go on: {(folder / 'said').read_text()[-500:]}")
    if left := strays(folder):
        problems.append(f"left for ever: {', '.join(left)}")
    state = f"{'some' if answered else 'no'} answers kept"
    return {"command": "label", "signal": signal_name, "over": True, "state": state, "problems": problems}


def count_answers(path: Path) -> int:
    """How many answers are on the disk, as another process sees them."""
    import sqlite3

    if not path.exists():
        return 0
    base = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=5)
    try:
        return int(base.execute("SELECT count(*) FROM entries").fetchone()[0])
    except sqlite3.Error:  # not made yet
        return 0
    finally:
        base.close()


def kills(number: int, seed: int, names: list[str]) -> Iterator[dict[str, Any]]:
    """So many kills, the commands in turn."""
    chance = Random(seed)
    with tempfile.TemporaryDirectory() as base:
        place = Path(base)
        prepare(place / "given", names)
        took, known, before = dict[str, float](), dict[str, dict[str, bytes]](), dict[str, Path]()
        for name in dict.fromkeys([*(name for name in names if name != "label"), *["align"] * ("label" in names)]):
            old = place / f"old {name}"
            shutil.copytree(place / "given", old)
            took[name], known[name] = measure(name, old)
            for given in ("pair", "run"):
                shutil.rmtree(old / given, ignore_errors=True)
            before[name] = old
        for count in range(number):
            name = names[count % len(names)]
            shutil.rmtree(place / "now", ignore_errors=True)
            if name == "label":
                row = kill_review(place, before["align"], chance)
            else:
                over = before[name] if chance.random() < 0.5 else None
                row = kill(name, place, over, took[name], chance)
                look_after(name, place, known[name], row)
            yield row


def main() -> None:
    parser = parser_of(__doc__, kills=20, seed=0, commands=",".join([*COMMANDS, "label"]))
    options = parser.parse_args()
    from rlea.io.synthetic import SyntheticSettings, generate

    rows = list(kills(options.kills, options.seed, options.commands.split(",")))
    counted = Counter((row["command"], row["signal"], row["state"]) for row in rows)
    wrong = Counter(row["command"] for row in rows if row["problems"])
    for row in rows:
        for problem in row["problems"]:
            print(f"{row['command']}, {row['signal']}: {problem}")
    table = (
        {"command": command, "signal": name, "state": state, "kills": count}
        for (command, name, state), count in sorted(counted.items())
    )
    keep_rows(
        options.json,
        f"kills.py --kills {options.kills} --seed {options.seed}",
        table,
        fingerprints={"synthetic": generate(SyntheticSettings(**PAIR)).fingerprint},
        kills=len(rows),
        problems=dict(wrong),
        seed=options.seed,
    )
    raise SystemExit(min(sum(wrong.values()), 100))


if __name__ == "__main__":
    main()
