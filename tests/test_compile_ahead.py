"""Compiling on two cores: started once, waited for, never left behind; the toy pair compiles all that a run needs."""

import os
import subprocess
import sys

import pytest

from rlea.agent import compile_ahead
from rlea.evidence.attributes.evidence import _weigh_pairs


class Process:
    def __init__(self):
        self.did = []

    def wait(self):
        self.did.append("wait")

    def kill(self):
        self.did.append("kill")


def test_nothing_is_started_where_it_is_done_or_there_is_one_core(monkeypatch):
    monkeypatch.setattr(compile_ahead.subprocess, "Popen", lambda *given, **more: pytest.fail("it was started"))
    for done, cores in ((True, 2), (False, 1), (False, None)):
        monkeypatch.setattr(compile_ahead, "is_compiled", lambda done=done: done)
        monkeypatch.setattr(os, "cpu_count", lambda cores=cores: cores)
        with compile_ahead.compiling_ahead() as started:
            assert started is None
            compile_ahead.finish_compiling(started)


@pytest.fixture
def started(monkeypatch):
    """Commands that were started, each with a process that does nothing."""
    commands = []
    monkeypatch.setattr(compile_ahead, "is_compiled", lambda: False)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(compile_ahead.subprocess, "Popen", lambda command, **_: commands.append(command) or Process())
    return commands


def test_the_other_process_compiles_the_channels(started, monkeypatch):
    reported = []
    with compile_ahead.compiling_ahead() as process:
        assert started == [[sys.executable, "-P", "-m", "rlea.agent.compile_ahead"]]
        monkeypatch.setattr(compile_ahead, "compile_game", lambda: process.did.append("game"))
        compile_ahead.finish_compiling(process, lambda *given: reported.append(given[:3]))
        assert process.did == ["game", "wait"]
    assert reported == [("compile", number, 2) for number in range(3)]


def test_the_other_process_imports_nothing_of_the_current_folder(monkeypatch, tmp_path):
    (tmp_path / "numba.py").write_text("open('imported', 'w').close()")
    commands = []
    with monkeypatch.context() as patch:
        patch.setattr(compile_ahead, "is_compiled", lambda: False)
        patch.setattr(os, "cpu_count", lambda: 2)
        patch.setattr(compile_ahead.subprocess, "Popen", lambda command, **_: commands.append(command) or Process())
        with compile_ahead.compiling_ahead():
            pass
    options = commands[0][: commands[0].index("-m")]
    subprocess.run([*options, "-c", "import numba"], check=True, cwd=tmp_path)
    assert not (tmp_path / "imported").exists()


def test_an_interrupted_run_leaves_no_process_behind(started):
    with pytest.raises(KeyboardInterrupt), compile_ahead.compiling_ahead() as process:
        raise KeyboardInterrupt
    assert process.did == ["kill", "wait"]


def test_compiled_is_what_lies_on_disk(monkeypatch, tmp_path):
    class Stats:
        cache_path: str | None = str(tmp_path)

    monkeypatch.setattr(type(_weigh_pairs), "stats", Stats())
    assert not compile_ahead.is_compiled()
    (tmp_path / "evidence._weigh_pairs-249.py311.nbi").touch()
    assert compile_ahead.is_compiled()
    monkeypatch.setattr(Stats, "cache_path", None)
    assert compile_ahead.is_compiled()


def test_the_toy_pair_can_be_aligned():
    compile_ahead.compile_game()
    compile_ahead.compile_channels()
    assert compile_ahead.is_compiled()


@pytest.mark.slow
def test_after_the_toy_pair_nothing_is_left_to_compile(tmp_path):
    """Types count: other arrays, even if only read, would be compiled anew."""
    program = (
        "from numba.core import event\n"
        "from rlea import pipeline\n"
        "from rlea.agent import compile_ahead\n"
        "from rlea.demo import demo_folder\n"
        "compile_ahead.compile_game()\n"
        "compile_ahead.compile_channels()\n"
        "with event.install_recorder('numba:compile') as seen:\n"
        "    pipeline.align(pipeline.read(demo_folder()), pipeline.AlignSettings(pool='all'))\n"
        "print(len(seen.buffer))"
    )
    places = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=places)
    assert done.stdout.split()[-1] == "0"
