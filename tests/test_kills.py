"""Commands that are killed at random moments (benchmarks/kills.py)."""

import signal
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    spec = spec_from_file_location("kills_script", BENCHMARKS / "kills.py")
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no such signal here")
def test_twenty_kills_leave_nothing_that_is_taken_for_a_result(script):
    names = ["align", "update", "embed", "train", "label"]
    rows = list(script.kills(20, 1, names))
    assert [row["command"] for row in rows] == names * 4
    assert [(row["command"], problem) for row in rows for problem in row["problems"]] == []


def test_what_is_a_stray(script, tmp_path):
    for name in (
        ".rlea-0123456789abcdef.tmp",
        ".rlea-writing.json",
        ".v.checkpoint.partial",
        "verdicts.sqlite-journal",
    ):
        (tmp_path / name).touch()
    for name in ("links.tsv", "v.safetensors", "verdicts.sqlite"):
        (tmp_path / name).touch()
    assert len(script.strays(tmp_path)) == 4


def test_a_result_that_is_whole_is_told_from_one_that_is_not(script, tmp_path):
    from rlea.io.writers.run_folder import write_run

    assert not script.whole_run(tmp_path)
    write_run(tmp_path / "out", {"links.tsv": "a"}, {"command": "rlea align"})
    assert script.whole_run(tmp_path)
    (tmp_path / "out" / "links.tsv").write_text("b")
    assert not script.whole_run(tmp_path)
    (tmp_path / "out" / "links.tsv").unlink()
    assert not script.whole_run(tmp_path)
