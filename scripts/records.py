"""Say which records in `results/` are of the program, the settings and the data as they are today.

    python scripts/records.py [--data DIR] [--all] [--json] [--check]      (or: make records)

FRESH    all that tells is as it would be recorded today: settings, code, data, seed
STALE    some of it differs: the record is of an older program, other defaults or other data; it says which
UNKNOWN  nothing differs, but not all of it can be told: no digest of the code was recorded, or the data is not at hand

Nothing is run or trained. --data (or RLEA_DATA) names the folder of the data sets. Vectors are compared where their
files lie in the folder of --work, and left out where they do not. Prints a table by file, every record with --all.
Exit code 0; with --check it is 1 where a record is stale.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from rlea.demo import demo_folder
from rlea.errors import InputError
from rlea.experiments import EXPERIMENTS
from rlea.experiments.deciders import DECIDERS
from rlea.experiments.grid import Cell, is_finished
from rlea.experiments.options import FOLDS, PAIRS, TRAINED, Options
from rlea.experiments.workspace import Inputs, Workspace
from rlea.graph import GraphPair
from rlea.io.synthetic import SyntheticSettings, generate
from rlea.pipeline import read
from rlea.progress import Progress, silent

ROOT = Path(__file__).parent.parent
FRESH, STALE, UNKNOWN = STATES = ("FRESH", "STALE", "UNKNOWN")
WORDS = {"fingerprint": "data", "gold": "data"}  # what entries of a record are called here, if not by their names
OF_DATA = ("fingerprint", "gold")
# As wide as an experiment goes. `main` has the cells of deciders of all experiments but those that take targets away.
WIDEST: dict[str, dict[str, tuple[str, ...]]] = {
    "main": {"models": TRAINED, "deciders": DECIDERS, "folds": FOLDS},
    "dangling": {"models": TRAINED, "deciders": DECIDERS, "folds": FOLDS, "pairs": PAIRS},
    "candidates": {"models": TRAINED, "folds": FOLDS},
    "ablation": {"models": TRAINED, "folds": FOLDS},
    "bootea": {"folds": FOLDS},
    "conventional": {},
    "evidence": {"folds": FOLDS},
    "scale": {},
    "overlap": {"pairs": EXPERIMENTS["overlap"].pairs},
}


@dataclass(frozen=True)
class Verdict:
    """What is to be said of one record."""

    file: str
    cell: str
    commit: str
    state: str
    why: tuple[str, ...] = ()  # what differs, or what cannot be told
    detail: str = ""


@lru_cache
def stand_in() -> GraphPair:
    """A pair in the place of one that is not at hand; nothing that it says is compared."""
    return generate(SyntheticSettings(num_entities=20, seed=0))


class ReadOnly(Workspace):
    """A workspace in which nothing is made: vectors are never trained, and a missing pair is replaced by a stand-in."""

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.lacks_pair = self.lacks_vectors = False  # of what was asked for since these were last reset
        self._fingerprints: dict[tuple[str, str], str | None] = {}

    def pair(self, name: str, fold: str) -> GraphPair:
        try:
            return super().pair(name, fold)
        except InputError:
            self.lacks_pair = True
            return stand_in()

    def vectors_digest(self, inputs: Inputs, progress: Progress) -> str:
        self.lacks_vectors = not inputs.vectors_path.exists()
        return "" if self.lacks_vectors else self.digest(inputs.vectors_path)

    def fingerprint(self, name: str, fold: str) -> str | None:
        """That of a data set or of the demo pair; None where it is not at hand."""
        key = (name, fold)
        if key not in self._fingerprints:
            self.lacks_pair = name not in (*PAIRS, "demo")
            pair = None if self.lacks_pair else read(demo_folder()) if name == "demo" else self.pair(name, fold)
            self._fingerprints[key] = None if pair is None or self.lacks_pair else pair.fingerprint
        return self._fingerprints[key]


# ---- cells of experiments -------------------------------------------------------------------------------------------


def cells_today(options: Options, experiment: str) -> tuple[ReadOnly, dict[tuple[str, str], Cell]]:
    """The cells that an experiment has today, by the file and the key that they would be kept under."""
    workspace = ReadOnly(Options(**{**asdict(options), **WIDEST[experiment]}))
    found = {}
    for grid in EXPERIMENTS[experiment].parts.grids(workspace):
        for cell in grid.cells:
            found[grid.store.path.name, grid.store.key(cell.result)] = cell
    return workspace, found


def judge_cell(file: str, key: str, record: dict[str, Any], cell: Cell, workspace: ReadOnly) -> Verdict:
    """A record beside what its cell would be recorded with today."""
    workspace.lacks_pair = workspace.lacks_vectors = False
    wanted = cell.wanted(silent)
    left_out = ("vectors",) if workspace.lacks_vectors else ()
    if workspace.lacks_pair:
        left_out += OF_DATA
    return judge(file, key, record, {name: value for name, value in wanted.items() if name not in left_out}, left_out)


def judge(file: str, key: str, record: dict[str, Any], wanted: dict[str, Any], left_out: Sequence[str] = ()) -> Verdict:
    """A record beside what is wanted of it; `left_out` cannot be told today."""
    commit = str(record.get("commit", ""))
    differing = [name for name in wanted if name in record and record[name] != wanted[name]]
    if differing:
        detail = "; ".join(f"{WORDS.get(name, name)}: {difference(record[name], wanted[name])}" for name in differing)
        return Verdict(file, key, commit, STALE, words_of(differing), detail)
    absent = [name for name in wanted if name not in record]
    if absent:
        return Verdict(file, key, commit, UNKNOWN, tuple(f"no {word} recorded" for word in words_of(absent)))
    if any(name in left_out for name in OF_DATA):
        return Verdict(file, key, commit, UNKNOWN, ("data not at hand",))
    assert is_finished(record, wanted)
    return Verdict(file, key, commit, FRESH, detail="vectors not compared" if "vectors" in left_out else "")


def words_of(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(WORDS.get(name, name) for name in names))


def difference(was: Any, now: Any, path: str = "") -> str:
    """Two values of JSON: the places where they differ."""
    if isinstance(was, dict) and isinstance(now, dict):
        keys = [key for key in {**was, **now} if was.get(key) != now.get(key)]
        return ", ".join(difference(was.get(key), now.get(key), f"{path}.{key}".lstrip(".")) for key in keys)
    shown = [text if len(text := json.dumps(value)) <= 40 else f"{text[:13]}…" for value in (was, now)]
    return f"{path} {shown[0]}, today {shown[1]}".lstrip()


# ---- records of benchmarks ------------------------------------------------------------------------------------------


def load_benchmark(name: str) -> ModuleType:
    """A file of benchmarks/ as a module."""
    spec = spec_from_file_location(f"benchmark_{name}", ROOT / "benchmarks" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def settings_of_training(record: dict[str, Any]) -> dict[str, Any]:
    """Settings that a model's training was recorded with, and those that it would have today."""
    result = record["result"]
    if result["model"] not in TRAINED:
        return {}
    return {
        "settings": (result["training"]["settings"], load_benchmark("embeddings").default_settings(result["model"]))
    }


def no_settings(record: dict[str, Any]) -> dict[str, Any]:
    return {}


# What is known of a record beside its data, by the beginning of the file's name; most keep no settings.
KNOWN: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "embeddings": settings_of_training,
    "vectors": settings_of_training,
    "embed_": settings_of_training,
}


def judge_other(file: str, key: str, record: dict[str, Any], workspace: ReadOnly) -> Verdict:
    """A record that is no cell of an experiment: it keeps no digest of the code, so that it can be stale, not fresh."""
    told = next((function for name, function in KNOWN.items() if file.startswith(name)), no_settings)(record)
    result = record.get("result", record)
    digests = record.get("fingerprints")
    if not isinstance(digests, dict):  # of pairs without a name nothing can be told
        digests = {result.get("pair", ""): record.get("fingerprint")}
    for name, was in digests.items():
        now = workspace.fingerprint(str(name).removesuffix("_15K_V1"), str(result.get("fold") or "1"))
        if now is not None:
            told[f"data of {name}"] = (was, now)
    was = {name: value[0] for name, value in told.items()} | {"commit": record.get("commit", "")}
    wanted = {name: value[1] for name, value in told.items()} | {"code": None}
    return judge(file, key, was, wanted)


# ---- all of them ----------------------------------------------------------------------------------------------------


def records_in(folder: Path) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """File (without suffix), cell and record."""
    for path in sorted(folder.glob("*.json")):
        whole = json.loads(path.read_text(encoding="utf-8"))
        for key, record in whole["runs"].items() if "runs" in whole else [("", whole)]:
            yield path.stem, key, record


def judge_all(options: Options) -> list[Verdict]:
    """All records of a folder, in the order of the files."""
    records = list(records_in(options.output))
    files = {file for file, _, _ in records}
    verdicts: dict[tuple[str, str], Verdict] = {}
    stores = set()
    for experiment in WIDEST:
        workspace, cells = cells_today(options, experiment)
        stores |= {file for file, _ in cells}
        here = [
            (file, key, record) for file, key, record in records if (file, key) in cells and (file, key) not in verdicts
        ]
        # Those of one data set and fold together: the workspace holds but one.
        here.sort(key=lambda row: [str(row[2]["result"].get(name, "")) for name in ("pair", "fold")])
        for file, key, record in here:
            verdicts[file, key] = judge_cell(file, key, record, cells[file, key], workspace)
    workspace = ReadOnly(options)
    for file, key, record in records:
        if (file, key) in verdicts:
            continue
        if file in stores:
            verdict = Verdict(file, key, record["commit"], UNKNOWN, ("no such cell today",))
        else:
            verdict = judge_other(file, key, record, workspace)
        verdicts[file, key] = verdict
    assert files == {file for file, _ in verdicts}
    return [verdicts[file, key] for file, key, _ in records]


def table(verdicts: Sequence[Verdict], everything: bool) -> str:
    """Counts by file with the reasons; every record beneath, if wished."""
    lines = [f"{'file':26}{'records':>8}{'fresh':>7}{'stale':>7}{'unknown':>9}  why"]
    groups: dict[str, list[Verdict]] = {}
    for one in verdicts:
        groups.setdefault(one.file, []).append(one)
    for file, own in [*groups.items(), ("all", list(verdicts))]:
        counts = Counter(one.state for one in own)
        reasons = Counter(reason for one in own if one.state != FRESH for reason in one.why)
        many = len(own) > 1
        why = ", ".join(f"{reason} ({count})" if many else reason for reason, count in reasons.most_common())
        numbers = f"{len(own):8}{counts[FRESH]:7}{counts[STALE]:7}{counts[UNKNOWN]:9}"
        lines.append(f"{file:26}{numbers}  {why}".rstrip())
        if everything and file != "all":
            for one in own:
                why = "; ".join(part for part in (", ".join(one.why), one.detail) if part)
                lines.append(f"    {one.state:8}{one.commit:14}{one.cell or '-'}{f'  ({why})' if why else ''}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    place = os.environ.get("RLEA_DATA")
    parser.add_argument("--data", type=Path, default=Path(place) if place else None, help="folder of the data sets")
    parser.add_argument("--results", type=Path, default=ROOT / "results", help="folder of the records")
    parser.add_argument("--work", type=Path, default=ROOT / "runs", help="folder of vectors")
    parser.add_argument("--all", action="store_true", help="every record, with what differs")
    parser.add_argument("--json", action="store_true", help="every record, as JSON")
    parser.add_argument("--check", action="store_true", help="exit code 1 where a record is stale")
    options = parser.parse_args(arguments)
    verdicts = judge_all(Options(data=options.data, work=options.work, output=options.results))
    if options.json:
        print(json.dumps([asdict(one) for one in verdicts], indent=1, ensure_ascii=False))
    else:
        print(table(verdicts, options.all))
    return int(options.check and any(one.state == STALE for one in verdicts))


if __name__ == "__main__":
    sys.exit(main())
