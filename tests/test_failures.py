"""Faults of machine and program: one sentence, a code other than 0, and nothing half-written."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import rlea
from rlea import commands
from rlea.cli import failures
from rlea.errors import InputError
from rlea.io.writers.run_folder import check_whole
from rlea.io.writers.vectors import write_embeddings

GRAPH = "a\tnear\té\n"


def command(*arguments, **more):
    """Run `rlea` as a process of its own."""
    return subprocess.run([sys.executable, "-m", "rlea", *arguments], capture_output=True, **more)


@pytest.fixture
def graph(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.tsv").write_text(GRAPH, encoding="utf-8")
    return tmp_path / "a.tsv"


@pytest.fixture
def fail(monkeypatch):
    """Let `rlea evaluate` raise an error."""

    def set_error(error):
        def raising(*given, **more):
            raise error

        monkeypatch.setattr(commands, "evaluate_files", raising)

    return set_error


def test_what_slips_through_is_one_sentence_and_a_log(fail, run_cli, monkeypatch, tmp_path):
    monkeypatch.setattr(failures.tempfile, "tempdir", str(tmp_path))
    fail(ZeroDivisionError("division\nby zero"))
    done = run_cli("evaluate", "a", "b")
    assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
    assert "the program failed, which it should not (ZeroDivisionError: division by zero)" in done.err
    (log,) = tmp_path.glob("rlea-error-*.log")
    assert str(log) in done.err
    text = log.read_text()
    assert text.startswith("rlea evaluate a b\n")
    assert "Traceback" in text
    assert "in raising" in text


def test_debug_shows_the_traceback_and_keeps_no_log(fail, run_cli, monkeypatch, tmp_path):
    monkeypatch.setattr(failures.tempfile, "tempdir", str(tmp_path))
    fail(ZeroDivisionError("division by zero"))
    done = run_cli("--debug", "evaluate", "a", "b")
    assert done.code == 1
    assert "in raising" in done.err
    assert list(tmp_path.iterdir()) == []
    fail(InputError("is wrong"))
    done = run_cli("evaluate", "a", "b")  # each command says so for itself
    assert (done.code, done.err) == (2, "Error: is wrong.\n")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(28, "No space left on device", "out/links.tsv"), "out/links.tsv: No space left on device."),
        (MemoryError(), "out of memory; give smaller graphs"),
        (OSError("x"), "x."),
    ],
)
def test_a_machine_that_fails_is_no_bad_input(error, words, fail, run_cli):
    fail(error)
    done = run_cli("evaluate", "a", "b")
    assert (done.code, done.err.count("\n")) == (1, 1)
    assert words in done.err


def test_a_full_disk_is_named_and_leaves_nothing(monkeypatch, tmp_path):
    """Libraries have errors of their own for that."""
    from safetensors import SafetensorError

    def full(*given, **more):
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    pair = rlea.read([("a", "r", "b")], [("c", "r", "d")])
    vectors = rlea.Embeddings(np.ones((2, 2), np.float32), np.ones((2, 2), np.float32), "x")
    monkeypatch.setattr("safetensors.numpy.save_file", full)
    with pytest.raises(InputError, match=r"v\.safetensors: cannot be written \(.*No space left on device"):
        write_embeddings(tmp_path / "new" / "v.safetensors", vectors, pair.source, pair.target)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def result():
    names = [(f"{letter}{n}", f"{letter} {n * n}") for letter in "ab" for n in range(40)]
    sides = [[(f"{letter}{n}", "near", f"{letter}{7 * n % 40}") for n in range(40)] for letter in "ab"]
    pair = rlea.read(
        *({"triples": side, "names": own} for side, own in zip(sides, (names[:40], names[40:]), strict=True))
    )
    return rlea.align(pair, matcher="mutual")


def check_nothing_is_lost(result, folder):
    """A run into the folder of an earlier one fails, says so in a sentence, and leaves all as it was."""
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises((InputError, OSError)) as caught:
        rlea.write(folder, result, formats=("csv", "parquet", "jsonl"))
    assert "\n" not in str(caught.value)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    check_whole(folder, json.loads(before["run.json"]), json.loads(before["run.json"])["files"])


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such limits here")
@pytest.mark.parametrize("most", [0, 100, 5000])
def test_files_that_may_not_grow(most, result, tmp_path):
    import resource

    rlea.write(tmp_path, result)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        check_nothing_is_lost(result, tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture
def small_disk(tmp_path):
    """A file system of one megabyte."""
    if shutil.which("mount") is None:
        pytest.skip("there is no mount here")
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", tmp_path], capture_output=True)
    if made.returncode:
        pytest.skip("needs the right to mount a file system")
    yield tmp_path
    subprocess.run(["umount", tmp_path], check=True)


def test_a_disk_that_is_full_at_any_moment(result, small_disk):
    out = small_disk / "out"
    rlea.write(out, result)
    needed = sum(path.stat().st_size for path in out.iterdir())
    for free in (0, 4096, needed // 3, needed // 2):
        filler = small_disk / "filler"
        filler.write_bytes(bytes(shutil.disk_usage(small_disk).free - free))
        check_nothing_is_lost(result, out)
        filler.unlink()
    rlea.write(out, result)


@pytest.mark.parametrize(
    ("more", "variables"),
    [
        ([], {"PYTHONIOENCODING": "ascii"}),
        (["--json"], {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}),
    ],
    ids=["ASCII", "another locale"],
)
def test_a_terminal_without_a_character_gets_its_escape(more, variables, graph):
    places = {**os.environ, **variables}
    done = command("align", "a.tsv", "a.tsv", "--matcher", "mutual", "-q", *more, env=places)
    assert done.returncode == 0, done.stderr
    assert not more or json.loads(done.stdout)["matched"] == 2
    assert done.stdout.isascii()


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are text elsewhere")
def test_a_folder_whose_name_is_no_utf8(tmp_path):
    folder = os.fsencode(tmp_path) + b"/x\xff"
    os.mkdir(folder)
    with open(folder + b"/a.tsv", "w", encoding="utf-8") as file:
        file.write(GRAPH)
    matched = command("align", "a.tsv", "a.tsv", "--matcher", "mutual", "-q", "--output", folder + b"/out", cwd=folder)
    assert matched.returncode == 0, matched.stderr
    assert b"links.tsv" in os.listdir(folder + b"/out")
    done = command(b"explain", folder + b"/out", b"a")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("odd", ["%09", "%0A", "%0D", "%00"])
@pytest.mark.parametrize(
    ("command", "who"),
    [
        (("align", "b.nt", "a.nt"), "the target graph"),
        (("align", "b.nt", "c.nt", "a.nt"), "the graph a"),
        (("dedupe", "a.nt"), "the graph"),
    ],
)
def test_identifiers_that_no_file_could_hold_are_found_before_the_work(
    command, who, odd, run_cli, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.nt").write_text(f"<http://x> <http://r> <urn:rlea:a{odd}b> .\n")
    for name in ("b.nt", "c.nt"):
        (tmp_path / name).write_text("<http://a> <http://r> <http://c> .\n")
    for work in ("several.align", "pipeline.align", "agent.duplicates.find_duplicates"):  # in the order of imports
        monkeypatch.setattr(f"rlea.{work}", lambda *given, **more: pytest.fail("it began to work"))
    done = run_cli(*command, "--output", "out", "-q")
    assert done.code == 2
    assert f"{who} has the identifier 'a\\" in done.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "graph",
    [
        [("a\ud800", "r", "b")],
        {"triples": [("a", "r", "b")], "literals": [("a", "p", "\udc80")]},
        {"triples": [("a", "r", "b")], "names": [("a", "\ud800")]},
    ],
)
def test_halves_of_characters_in_memory_are_refused(graph):
    with pytest.raises(InputError, match="has a text with half a character in it"):
        rlea.read(graph, [("x", "r", "y")])
    with pytest.raises(InputError, match="has a text with half a character in it"):
        rlea.read([("a", "r", "b")], [("x", "r", "y")], seeds=[("a\ud800", "b")])


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are text elsewhere")
def test_graphs_whose_file_names_no_table_can_hold(tmp_path):
    names = [b"a\tb.tsv", b"a\xffb.tsv", b"=c.tsv"]
    for name in names:
        with open(os.path.join(os.fsencode(tmp_path), name), "w", encoding="utf-8") as file:
            file.write("".join(f"a{k}\tnear\ta{(k * 7 + 1) % 9}\n" for k in range(9)))
    done = command("align", *names, "--threshold", ".01", "-q", "--output", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = (tmp_path / "out" / "clusters.tsv").read_text(encoding="utf-8").splitlines()
    assert {len(row.split("\t")) for row in rows} == {5}


def test_a_reader_that_goes_away_is_no_traceback(graph):
    done = subprocess.Popen(
        [sys.executable, "-m", "rlea", "matchers", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert done.stdout is not None
    done.stdout.close()
    _, printed = done.communicate(timeout=120)
    assert b"Traceback" not in printed


@pytest.mark.parametrize(("number", "codes"), [(signal.SIGTERM, {143}), (signal.SIGINT, {130})])
def test_a_stopped_run_leaves_nothing_half_written(number, codes, graph, tmp_path):
    """Stopped while it writes, as it hangs there for this test."""
    program = (
        "import sys, time\n"
        "from rlea.io.writers import tsv\n"
        "from rlea import result\n"
        "def hang(*given, **more):\n"
        "    print('writing', flush=True)\n"
        "    time.sleep(60)\n"
        "tsv.put_table = hang\n"
        "sys.argv = ['rlea', 'align', 'a.tsv', 'a.tsv', '--matcher', 'mutual', '-q', '--output', 'out']\n"
        "from rlea.cli import main\n"
        "main()\n"
    )
    run = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert run.stdout is not None
    assert run.stdout.readline() == b"writing\n"
    time.sleep(0.1)
    run.send_signal(number)
    _, printed = run.communicate(timeout=60)
    assert run.returncode in codes, printed
    assert b"Traceback" not in printed
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("align kunde.csv clients.csv", "kunden.csv"),
        ("align kunden.csv cleints.csv", "clients.csv"),
        ("align kunden.csv clients.csv --seeds know.csv", "known.csv"),
        ("align kunden.csv clients.csv --different know.csv", "known.csv"),
        ("align kunden", "kunden.csv"),
        ("dedupe kundn.csv", "kunden.csv"),
        ("dedupe Kunden.xlsx", "kunden.csv"),
    ],
)
def test_a_mistyped_file_is_told_the_one_beside_it(run_cli, tmp_path, monkeypatch, line, wanted):
    monkeypatch.chdir(tmp_path)
    for name, identifier in (("kunden.csv", "a"), ("clients.csv", "b")):
        (tmp_path / name).write_text("id,name\n" + "".join(f"{identifier}{k},name {k}\n" for k in range(5)))
    (tmp_path / "known.csv").write_text("a1,b1\n")
    done = run_cli(*line.split())
    assert done.code == 2
    assert f"there is no such file or folder; did you mean {wanted}." in " ".join(done.err.split())


def test_an_interrupt_while_modules_are_imported_is_no_traceback():
    program = (
        "import sys\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'rlea.cli':\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "from rlea.__main__ import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")
