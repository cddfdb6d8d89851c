"""The README and the docs do what they say: examples run, tables are those of the recorded results."""

import gzip
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import rlea
from rlea.graph import GraphPair, Links
from rlea.io.writers.graphs import write_graph, write_pair

ROOT = Path(__file__).parent.parent
DEMO = ["rlea", "demo", "--output", "places"]
MOST = 100, 20, 200  # links of the demo pair for training, validation and tests
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(language):
    for page in PAGES:
        for number, block in enumerate(re.findall(rf"```{language}\n(.*?)```", page.read_text(), flags=re.S)):
            yield pytest.param(block, id=f"{page.name}-{number}")


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    """The files that the examples speak of, made from a part of the demo pair."""
    folder = tmp_path_factory.mktemp("shelf")
    whole = rlea.read_demo()
    links = [
        Links.of(part.source_ids[:most], part.target_ids[:most]) for part, most in zip(splits(whole), MOST, strict=True)
    ]
    every = Links.union(links)
    ids = np.unique(every.source_ids), np.unique(every.target_ids)
    placed = [
        Links.of(*(np.searchsorted(own, side) for own, side in zip(ids, (one.source_ids, one.target_ids), strict=True)))
        for one in links
    ]
    pair = GraphPair("demo", whole.source.some(ids[0]), whole.target.some(ids[1]), *placed)
    write_pair(folder / "D_W_15K_V1", pair, "nt")
    write_pair(folder / "tables", pair, "tsv")
    write_graph(folder / "staff.ttl", pair.target)
    (folder / "people.nt.gz").write_bytes(gzip.compress((folder / "D_W_15K_V1" / "source.nt").read_bytes()))
    (folder / "tables" / "source").rename(folder / "customers")
    (folder / "tables" / "target").rename(folder / "clients")
    shutil.copy(folder / "D_W_15K_V1" / "seeds.tsv", folder / "known.tsv")
    (folder / "known.csv").write_text((folder / "known.tsv").read_text().replace("\t", ","))
    return folder


def splits(pair):
    return pair.train, pair.valid, pair.test


@pytest.fixture
def desk(shelf, tmp_path, monkeypatch):
    """A folder with these files."""
    folder = shutil.copytree(shelf, tmp_path / "desk", ignore=shutil.ignore_patterns("places"))
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize("block", list(blocks("python")))
def test_python_examples_run(block, desk):
    names: dict = {}
    exec(compile(block, "example", "exec"), names)
    made = [value for name, value in names.items() if not name.startswith("__")]
    assert made


def test_recipes_of_the_house_run(tmp_path):
    """In a copy of the program: its new files, its changes of others, and the tests that it says to write."""
    for name in ("src", "tests"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    page = (ROOT / "docs" / "house.md").read_text()
    matcher = re.search(r"```python\n([^`]*)def csls_greedy(.*?)\npair = ", page, flags=re.S)
    (tmp_path / "src/rlea/matchers/csls_greedy.py").write_text(matcher[1] + "def match" + matcher[2])
    tests = ["tests/io/test_malformed.py"]
    for language, block in re.findall(r"```(py|diff)\n(.*?)```", page, flags=re.S):
        for part in re.split(r"^(?:# |--- )(?=src/|tests/)", block, flags=re.M)[1:]:
            place, body = part.split("\n", 1)
            path = tmp_path / place
            text = path.read_text() if path.exists() else ""
            if language == "diff":
                for change in body.split("@@\n"):
                    old, new = ("".join(re.findall(rf"^[ {sign}](.*\n)", change, flags=re.M)) for sign in "-+")
                    assert text.count(old) == 1, (place, old)
                    text = text.replace(old, new)
            else:
                text += ("\n\n" if text else "") + body
                tests += [place] if place.startswith("tests/") else []
            path.write_text(text)
    assert len(tests) == 7
    # Not compiled: in a copy nothing is kept from before.
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "src"), "NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:warnings", "-k", "not malformed or jsonl", *tests]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("block", list(blocks("sh")))
def test_shell_examples_run(block, desk, shelf, run_cli):
    commands = [shlex.split(line, comments=True) for line in block.splitlines() if line.strip()]
    assert commands
    for number, command in enumerate(commands):
        if command == DEMO and (shelf / "places").exists():
            shutil.copytree(shelf / "places", "places")
        elif command[0] == "rlea":
            command = [f"out{number}" if word == "out" else word for word in command]
            done = run_cli(*command[1:])
            assert done.code == 0, (command, done.err)
            if command == DEMO:  # once for all examples
                shutil.copytree("places", shelf / "places")
        else:
            assert command[0] in ("make", "python"), command
            if command[0] == "make":
                assert re.search(rf"^{command[1]}:", (ROOT / "Makefile").read_text(), flags=re.M)
            else:
                assert (ROOT / command[1]).exists()


@pytest.mark.parametrize("name", ["readme_tables", "reproduction_page", "context_pictures"])
def test_tables_and_pictures_are_those_of_the_results(name):
    script = ROOT / "scripts" / f"{name}.py"
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"run python scripts/{name}.py"


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        prose = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
        for target in re.findall(r"\]\(([^)#:]+)\)", prose):
            assert (page.parent / target).exists(), (page.name, target)


def test_the_table_of_equalities_is_the_recorded_one():
    record = json.loads((ROOT / "results" / "paris_literals.json").read_text(encoding="utf-8"))
    found = {(row["equality"], row["pair"]): f"{row['f1']:.3f}"[1:] for row in record["rows"]}
    table = (ROOT / "docs" / "paris.md").read_text(encoding="utf-8").split("## Why it finds more")[1]
    lines = [line for line in table.splitlines() if line.startswith("| their")]
    for line, equality in zip(lines, ("own", "text", "text and type"), strict=True):
        assert line.endswith(f"| {found[equality, 'EN_FR']} | {found[equality, 'D_W']} |")


def test_recorded_results_are_repeatable():
    """Every record names its command, commit, data and machine, and no path of the machine it was made on."""
    records = sorted((ROOT / "results").glob("*.json"))
    assert records
    for path in records:
        whole = json.loads(path.read_text())
        for record in whole["runs"].values() if "runs" in whole else [whole]:
            assert record["command"], path.name
            assert re.fullmatch(r"[0-9a-f]{12}", record["commit"]), (path.name, record["commit"])
            assert record.get("fingerprint") or record.get("fingerprints"), path.name
            assert record["machine"]["cores"] >= 1
        assert not re.search(r"(?<![\w.])/(home|root|tmp|work|opt|Users)/", path.read_text()), path.name
