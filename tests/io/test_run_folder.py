"""The folder of a run: its record comes last and lists its files, and nothing else there is replaced or removed."""

import json
import os
import signal
import subprocess
import sys

import pytest

from rlea.errors import InputError
from rlea.io.writers import run_folder
from rlea.io.writers.run_folder import add_files, check_free, check_whole, claimed, read_json, write_run

RECORD = {"command": "rlea align", "result": {}}
FIRST = {"links.tsv": "first", "decisions": lambda path: path.write_bytes(b"first")}
SECOND = {"links.tsv": "second", "page": "second"}


def contents(folder):
    """The files but the record, hidden ones too."""
    return {path.name: path.read_text() for path in folder.iterdir() if path.name != "run.json"}


def test_a_run_replaces_an_earlier_one_and_takes_away_what_it_has_no_part_in(tmp_path):
    out = tmp_path / "out"
    (tmp_path / "out").mkdir()
    (out / "notes.txt").write_text("mine")
    assert write_run(out, FIRST, RECORD) == [out / "links.tsv", out / "decisions", out / "run.json"]
    write_run(out, SECOND, RECORD)
    assert contents(out) == {"notes.txt": "mine", "links.tsv": "second", "page": "second"}
    record = read_json(out / "run.json")
    assert record == {**RECORD, "files": {name: run_folder.file_hash(out / name) for name in SECOND}}
    check_whole(out, record, record["files"])


@pytest.mark.parametrize("name", ["links.tsv", "decisions", "run.json"])
def test_a_file_of_somebody_else_is_never_overwritten(name, tmp_path):
    (tmp_path / name).write_text("mine")
    with pytest.raises(InputError, match=r"would be overwritten; name a new folder"):
        write_run(tmp_path, FIRST, RECORD)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(name, "mine")]


def test_a_file_of_somebody_else_is_never_removed(tmp_path):
    (tmp_path / "attributes.tsv").write_text("mine")
    write_run(tmp_path, FIRST, RECORD)
    (tmp_path / "decisions").write_text("changed")
    write_run(tmp_path, {"links.tsv": "second"}, RECORD)
    assert contents(tmp_path) == {"attributes.tsv": "mine", "links.tsv": "second", "decisions": "changed"}


def test_a_file_that_was_changed_is_not_overwritten(tmp_path):
    write_run(tmp_path, FIRST, RECORD)
    (tmp_path / "links.tsv").write_text("corrected by hand")
    with pytest.raises(InputError, match=r"links\.tsv: was changed since the run wrote it, and would be overwritten"):
        write_run(tmp_path, SECOND, RECORD)
    assert (tmp_path / "links.tsv").read_text() == "corrected by hand"


def test_a_record_of_another_hand_gives_nothing_away(tmp_path):
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "out").mkdir()
    known = run_folder.file_hash(tmp_path / "mine")
    record = {**RECORD, "files": {"../mine": known, "links.tsv": 7}}
    (tmp_path / "out" / "run.json").write_text(json.dumps(record))
    write_run(tmp_path / "out", FIRST, RECORD)
    assert (tmp_path / "mine").read_text() == "mine"


@pytest.mark.parametrize("how", ["itself", "symbolic", "hard", "pattern"])
def test_an_output_that_is_an_input_is_refused(how, tmp_path):
    write_run(tmp_path / "out", FIRST, RECORD)
    path = given = tmp_path / "out" / "links.tsv"
    if how == "pattern":
        given = tmp_path / "out" / "link*.tsv"
    elif how != "itself":
        given = tmp_path / "seeds.tsv"
        given.symlink_to(path) if how == "symbolic" else os.link(path, given)
    with pytest.raises(InputError, match="is an input, and would be an output as well"):
        write_run(tmp_path / "out", SECOND, RECORD, [given])
    assert path.read_text() == "first"


def test_the_folder_of_an_input_is_refused(tmp_path):
    (tmp_path / "source.tsv").write_text("a\tr\tb\n")
    with pytest.raises(InputError, match="is an input"):
        check_free(tmp_path, FIRST, [tmp_path])
    check_free(tmp_path / "out", FIRST, [tmp_path, "https://example.org/x.nt", ""])


def test_a_symbolic_link_is_not_followed(tmp_path):
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "links.tsv").symlink_to(tmp_path / "mine")
    with pytest.raises(InputError, match="would be overwritten"):
        write_run(tmp_path / "out", FIRST, RECORD)
    assert (tmp_path / "mine").read_text() == "mine"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names here")
def test_a_pipe_in_place_of_the_record_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "run.json")
    with pytest.raises(InputError, match="is not the record of a run, and would be overwritten"):
        write_run(tmp_path, FIRST, RECORD)
    assert read_json(tmp_path / "run.json") == {}


def test_further_files_are_listed(tmp_path):
    write_run(tmp_path, FIRST, RECORD)
    assert add_files(tmp_path, {"page": "one"}) == [tmp_path / "page"]
    add_files(tmp_path, {"page": "two"})
    assert set(read_json(tmp_path / "run.json")["files"]) == {"links.tsv", "decisions", "page"}
    write_run(tmp_path, {"links.tsv": "second"}, RECORD)
    assert contents(tmp_path) == {"links.tsv": "second"}


def test_what_a_killed_run_left_is_swept(tmp_path):
    (tmp_path / ".rlea-0123456789abcdef.tmp").write_text("half")
    (tmp_path / ".rlea-notes.tmp").write_text("mine")
    write_run(tmp_path, FIRST, RECORD)
    assert set(contents(tmp_path)) == {"links.tsv", "decisions", ".rlea-notes.tmp"}


KILLED = """
import os, signal, sys
from pathlib import Path
from rlea.io.writers import atomic, run_folder
left, replace, unlink = int(sys.argv[2]), os.replace, Path.unlink

def counted(call):
    def counting(*given, **more):
        global left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*given, **more)
    return counting

os.replace, Path.unlink = counted(replace), counted(unlink)
run_folder.write_run(sys.argv[1], {"links.tsv": "second", "page": "second"}, {"command": "rlea align", "time": 2})
print("done")
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no such signal here")
def test_killed_at_every_rename_the_record_tells_and_the_next_run_goes_on(tmp_path):
    """Wherever a run is killed, its folder is that of the old run or of the new one, or is seen to be neither."""
    seen = set()
    for number in range(40):
        out = tmp_path / str(number)
        write_run(out, FIRST, RECORD)
        done = subprocess.run([sys.executable, "-c", KILLED, str(out), str(number)], capture_output=True, text=True)
        record = read_json(out / "run.json")
        try:
            check_whole(out, record, record["files"])
            seen.add("new" if "time" in record else "old")
            name = "second" if "time" in record else "first"
            assert (out / "links.tsv").read_text() == name
        except InputError:
            seen.add("neither")
        write_run(out, {"links.tsv": "third"}, RECORD)
        assert contents(out) == {"links.tsv": "third"}, number
        if done.returncode == 0:
            break
    assert done.stdout == "done\n"
    assert seen == {"old", "neither", "new"}


def test_two_runs_into_one_folder_are_refused(tmp_path):
    out = tmp_path / "out"
    other = "import sys; from rlea.io.writers.run_folder import claimed\nwith claimed(sys.argv[1]): pass"
    with claimed(out):
        write_run(out, FIRST, RECORD)  # the run itself may
        done = subprocess.run([sys.executable, "-c", other, str(out)], capture_output=True, text=True)
    assert f"InputError: {out}: another run writes to this folder" in done.stderr
    assert subprocess.run([sys.executable, "-c", other, str(out)], capture_output=True).returncode == 0


def test_a_claimed_folder_with_nothing_in_it_is_gone_again(tmp_path):
    with claimed(tmp_path / "new" / "out"):
        pass
    with pytest.raises(ZeroDivisionError), claimed(tmp_path / "new" / "out"):
        raise ZeroDivisionError
    assert not (tmp_path / "new").exists()
