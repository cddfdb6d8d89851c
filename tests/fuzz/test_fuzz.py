"""The fuzzer at fixed seeds, and all that it ever found."""

import shutil
import signal
import subprocess
import sys
from itertools import islice
from pathlib import Path
from random import Random

import pytest

from fuzz import flow, run
from fuzz.targets import make_targets, read_random_values
from rlea.errors import InputError

HERE = Path(__file__).parent
CASES = 600
PAIRS = 12


@pytest.fixture(scope="module")
def targets(tmp_path_factory):
    return make_targets(tmp_path_factory.mktemp("fuzz") / "good")


def test_good_files_are_read(targets, tmp_path):
    for number, target in enumerate(targets):
        folder = shutil.copytree(target.folder, tmp_path / str(number))  # verdicts are added to it
        assert target.read(folder / target.file) is not None


def test_nothing_that_was_found_is_back(targets, tmp_path):
    problems = [run.attack(target, content, tmp_path / target.name) for target, content in run.corpus_cases(targets)]
    assert len(problems) >= 5
    assert [problem for problem in problems if problem] == []


def test_mutated_files_end_in_a_value_or_a_sentence(targets, tmp_path):
    for target, content, number in islice(run.cases(targets, 1), CASES):
        assert not run.attack(target, content, tmp_path / target.name), f"{target.name}, case {number}"


def test_random_values_are_read():
    for seed in range(4):
        assert not run.judge(lambda seed=seed: read_random_values(Random(seed)))


def test_hostile_pairs_go_through_every_matcher_and_back():
    for seed in range(PAIRS):
        assert not run.judge(lambda seed=seed: flow.align_random_pair(Random(seed), trained=0.0)), f"pair {seed}"


def test_hostile_graphs_are_searched_for_duplicates():
    assert not run.judge(lambda: flow.dedupe_random_graph(Random(1)))


def test_every_part_has_targets_of_its_own(tmp_path):
    names = [target.name for target in make_targets(tmp_path, ["graphs", "answers"])]
    assert len(set(names)) == len(names)
    assert {"graph x.nt", "sparql rows.json"} <= set(names)
    assert not any(name.startswith("agent") for name in names)


def test_the_same_seed_gives_the_same_cases(targets):
    first, again = (list(islice(run.cases(targets, 7), 60)) for _ in range(2))
    assert [(target.name, content) for target, content, _ in first] == [
        (one.name, content) for one, content, _ in again
    ]


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there is no such clock here")
def test_what_hangs_ends_with_a_traceback_by_its_own_time_and_not_by_the_clock():
    program = "from fuzz import run\nrun.HANGS = 0.3\nrun.judge(lambda: time.sleep(0.5))\nrun.judge(lambda: spin())"
    program = f"import time\ndef spin():\n    while True: pass\n{program}\n"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=HERE.parent)
    assert done.returncode == -signal.SIGPROF
    assert "in spin" in done.stderr
    assert "sleep" not in done.stderr


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (None, ""),
        (InputError("is wrong"), ""),
        (ValueError("x"), "Traceback"),
        (InputError("x\ny"), "lines"),
    ],
)
def test_a_finding_is_whatever_is_neither(error, words):
    def call():
        if error is not None:
            raise error

    assert (run.judge(call) == "") == (words == "")
    assert words in run.judge(call)
