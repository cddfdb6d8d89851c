"""`make test-machines`: planted tests that pass and fail, and that the settings do what they are named for."""

import json
import os
import signal
import subprocess
import sys
import time
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / "scripts" / "test_machines.py"


def load_script():
    spec = spec_from_file_location("machines_script", SCRIPT)
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look for the module that they are in
    spec.loader.exec_module(module)
    return module


machines = load_script()


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """A folder for planted tests, with its own settings of pytest, and one for caches."""
    for name in (*machines.THREADS, "PYTEST_ADDOPTS"):  # these tests may themselves be run with one thread
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "pytest.ini").write_text("[pytest]\n")
    return tmp_path


def run(desk, test, *arguments, settings="hash-seed"):
    """The script on a planted file of tests."""
    (desk / "tests" / "test_planted.py").write_text(test)
    return machines.main(
        ["--folder", str(desk / "kept"), "--tests", str(desk / "tests"), "--settings", settings, "--", *arguments]
    )


def test_tests_that_pass(desk, capsys):
    assert run(desk, "def test_it():\n    pass\n", settings="hash-seed,one-thread+numba-generic") == 0
    lines = capsys.readouterr().out.splitlines()
    first, second, table = lines[0], lines[1], lines[-2:]
    assert first.split()[:6] == ["hash-seed", "ok", "1", "passed", "0", "failed"]
    assert second.split()[0] == "one-thread+numba-generic"
    assert [row.split()[:5] for row in table] == [
        ["hash-seed", "ok", "1", "0", "0"], ["one-thread+numba-generic", "ok", "1", "0", "0"]
    ]  # fmt: skip


def test_tests_that_fail_under_one_setting_only(desk, capsys):
    test = "import os\n\ndef test_it():\n    assert os.environ.get('OMP_NUM_THREADS') != '1'\n\ndef test_else(): pass\n"
    assert run(desk, test, settings="hash-seed,one-thread,numba-generic") == 1
    shown = capsys.readouterr().out
    assert [row.split()[:5] for row in shown.splitlines()[-3:]] == [
        ["hash-seed", "ok", "2", "0", "0"],
        ["one-thread", "FAILED", "1", "1", "0"],
        ["numba-generic", "ok", "2", "0", "0"],
    ]
    assert "    FAILED test_planted.py::test_it" in shown


ERROR = "import pytest\n\n@pytest.fixture\ndef broken():\n    raise OSError\n\ndef test_it(broken): pass\n"
SKIPPED = "import pytest\n\ndef test_it():\n    pytest.skip()\n\ndef test_else(): pass\n"
TWO = "def test_one(): pass\n\ndef test_other(): assert False\n"


@pytest.mark.parametrize(
    ("test", "arguments", "code", "row"),
    [
        (ERROR, [], 1, ["FAILED", "0", "1", "0"]),
        (SKIPPED, [], 0, ["ok", "1", "0", "1"]),
        (TWO, ["-k", "one"], 0, ["ok", "1", "0", "0"]),
    ],
)
def test_errors_are_failures_skipped_tests_are_none_and_arguments_select(desk, capsys, test, arguments, code, row):
    assert run(desk, test, *arguments) == code
    assert capsys.readouterr().out.splitlines()[-1].split()[1:5] == row


@pytest.mark.parametrize(
    ("test", "arguments", "words"),
    [
        ("def test_it(): pass\n", ["-k", "nothing"], "no test was selected"),
        ("def test_it(): pass\n", ["--no-such-option"], "pytest was called wrongly"),
        ("raise SystemError\n", [], "it was interrupted"),
        ("import os\n\ndef test_it(): os._exit(9)\n", [], "it broke"),
    ],
)
def test_what_is_no_run_of_tests_is_a_failure(desk, capsys, test, arguments, words):
    assert run(desk, test, *arguments) == 1
    assert f"{words}, see {desk / 'kept' / 'hash-seed.log'}" in capsys.readouterr().out


def test_every_setting_has_its_own_cache(desk, capsys):
    test = "import os\n\ndef test_it():\n    print('CACHE', os.environ['NUMBA_CACHE_DIR'])\n"
    assert run(desk, test, "-s", settings="hash-seed,one-thread") == 0
    for name in ("hash-seed", "one-thread"):
        assert f"CACHE {desk / 'kept' / name}\n" in (desk / "kept" / f"{name}.log").read_text()


def test_settings_are_listed(capsys):
    assert machines.main(["--list"]) == 0
    shown = capsys.readouterr().out
    variables = ("ATEN_CPU_CAPABILITY", "OPENBLAS_CORETYPE", "NUMBA_CPU_NAME", "PYTHONHASHSEED", "HOME")
    assert all(words in shown for words in (*variables, *machines.SETTINGS))


@pytest.mark.parametrize("name", ["nope", "one-thread+nope", "one-thread,nope"])
def test_an_unknown_setting_ends_in_one_sentence(desk, capsys, name):
    assert run(desk, "", settings=name) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("error: unknown setting 'nope'; use some of aten-default, ")
    assert printed.err.count("\n") == 1


def test_what_cannot_be_tried_here_is_skipped_with_a_note(desk, capsys, monkeypatch):
    monkeypatch.setattr(machines.platform, "machine", lambda: "aarch64")
    names = "aten-default,aten-avx2,openblas-haswell,openblas-prescott,openblas-prescott+one-thread,one-thread"
    assert run(desk, "def test_it(): pass\n", settings=names) == 0
    lines = capsys.readouterr().out.splitlines()
    for line in lines[:5]:
        assert line.split(maxsplit=2)[1:] == ["skipped", "for x86-64, and this is aarch64"]
    assert lines[5].split()[1:4] == ["ok", "1", "passed"]
    monkeypatch.setattr(machines.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(machines, "numpy_state", lambda: (["X86_V4"], {"X86_V3": False, "AVX2": False}))
    assert run(desk, "def test_it(): pass\n", settings="aten-avx2,openblas-haswell,numpy-baseline,aten-default") == 0
    lines = capsys.readouterr().out.splitlines()
    assert "no AVX2" in lines[0]
    assert "no AVX2" in lines[1]
    assert "nothing beyond its baseline" in lines[2]
    assert " ok " in lines[3]


@pytest.mark.parametrize("end", ["Ctrl-C", "terminate"])
def test_a_stop_ends_the_tests_and_says_what_was_done(desk, end):
    (desk / "tests" / "test_planted.py").write_text(
        "import os, pathlib, time\n\ndef test_it():\n    if os.environ.get('OMP_NUM_THREADS') == '1':\n"
        "        pathlib.Path('at-work').write_text(str(os.getpid()))\n        time.sleep(300)\n"
    )
    place = ["--folder", str(desk / "kept"), "--tests", str(desk / "tests")]
    command = [sys.executable, str(SCRIPT), *place, "--settings", "hash-seed,one-thread,numba-generic"]
    script = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    at_work = desk / "tests" / "at-work"
    give_up = time.monotonic() + 120
    while not (at_work.exists() and at_work.read_text()) and time.monotonic() < give_up:
        time.sleep(0.1)
    if end == "Ctrl-C":
        os.killpg(script.pid, signal.SIGINT)  # a terminal tells all of them
    else:
        script.terminate()
    printed, _ = script.communicate(timeout=120)
    assert script.returncode == 130
    rows = [line.split()[:2] for line in printed.splitlines()[-3:]]
    assert rows == [["hash-seed", "ok"], ["one-thread", "not"], ["numba-generic", "not"]]
    with pytest.raises(ProcessLookupError):
        os.kill(int(at_work.read_text()), 0)


PROBE = """
import json, os, tempfile, threadpoolctl, numba, numpy, torch
from numba.core.registry import cpu_target
core = (numpy._core if hasattr(numpy, "_core") else numpy.core)._multiarray_umath
try:
    os.makedirs(os.path.expanduser("~"), exist_ok=True)
    tempfile.TemporaryFile(dir=os.path.expanduser("~")).close()
    home = True
except OSError:
    home = False
print(json.dumps({
    "aten": torch.backends.cpu.get_cpu_capability(),
    "threads": [torch.get_num_threads(), numba.get_num_threads()],
    "blas": [one.get("architecture") for one in threadpoolctl.threadpool_info() if one["internal_api"] == "openblas"],
    "numba": cpu_target.target_context.codegen()._get_host_cpu_name(),
    "numpy": [name for name in core.__cpu_dispatch__ if core.__cpu_features__[name]],
    "seed": os.environ.get("PYTHONHASHSEED"),
    "home": home,
}))
"""


def probe(environment):
    done = subprocess.run([sys.executable, "-c", PROBE], env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_the_settings_do_what_they_are_named_for(tmp_path):
    """All that go together at once: they are of different libraries."""
    first = [name for name in ("aten-default", "openblas-prescott", "numba-generic", "numpy-baseline", "one-thread")
             if not machines.SETTINGS[name].missing()]  # fmt: skip
    told = probe(machines.environment_of("+".join([*first, "hash-seed", "read-only-home"]), tmp_path))
    assert (told["numba"], told["numpy"], told["threads"], told["home"]) == ("generic", [], [1, 1], False)
    assert told["seed"] == machines.SETTINGS["hash-seed"].variables()["PYTHONHASHSEED"]
    if "aten-default" in first:
        assert told["aten"] == "DEFAULT"
    if "openblas-prescott" in first and told["blas"]:
        assert not {"Haswell", "Zen", "SkylakeX", "Cooperlake", "Sapphirerapids"} & set(told["blas"])
    if not machines.wants_avx2():
        told = probe(machines.environment_of("aten-avx2+openblas-haswell", tmp_path))
        assert (told["aten"], set(told["blas"]) <= {"Haswell"}) == ("AVX2", True)
