from __future__ import annotations

import os
from pathlib import Path

import pytest

from rlea.errors import InputError
from rlea.io.writers.atomic import atomic, check_writable, write_all


def names(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def put(text: str):
    return lambda path: path.write_text(text)


def test_file_appears_only_when_the_block_ends(tmp_path):
    path = tmp_path / "a.txt"
    with atomic(path) as temporary:
        temporary.write_text("new")
        assert temporary.parent == tmp_path  # a rename across file systems would copy
        assert not path.exists()
    assert path.read_text() == "new"
    assert names(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, GeneratorExit])
@pytest.mark.parametrize("before", [None, "old"])
def test_failure_leaves_things_as_they_were(tmp_path, error, before):
    path = tmp_path / "a.txt"
    if before is not None:
        path.write_text(before)
    with pytest.raises(error), atomic(path) as temporary:  # noqa: PT012
        temporary.write_text("half")
        raise error
    assert names(tmp_path) == (["a.txt"] if before else [])
    assert before is None or path.read_text() == before


def test_folders_are_made_and_removed_again_on_failure(tmp_path):
    path = tmp_path / "x" / "y" / "a.txt"
    with pytest.raises(ZeroDivisionError), atomic(path) as temporary:
        temporary.write_text(str(1 / 0))
    assert names(tmp_path) == []
    with atomic(path) as temporary:
        temporary.write_text("new")
    assert path.read_text() == "new"


def test_a_folder_that_got_another_file_meanwhile_stays(tmp_path):
    path = tmp_path / "x" / "a.txt"
    with pytest.raises(ZeroDivisionError), atomic(path):  # noqa: PT012
        (tmp_path / "x" / "other.txt").write_text("other")
        raise ZeroDivisionError
    assert names(tmp_path) == ["x", "x/other.txt"]


def test_block_that_writes_nothing_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError), atomic(tmp_path / "a.txt"):
        pass
    assert names(tmp_path) == []


def test_link_to_a_file_stays_a_link(tmp_path):
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to("real.txt")
    with atomic(tmp_path / "link.txt") as temporary:
        temporary.write_text("new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"


def test_new_file_has_the_usual_permissions(tmp_path):
    (tmp_path / "plain.txt").write_text("")
    with atomic(tmp_path / "a.txt") as temporary:
        temporary.write_text("new")
    assert (tmp_path / "a.txt").stat().st_mode == (tmp_path / "plain.txt").stat().st_mode


def test_places_that_cannot_be_written_are_told_before_the_work(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    for path, problem in (
        (tmp_path / "file" / "a.txt", f"{tmp_path}/file: is a file where a folder is needed"),
        (tmp_path / "file" / "deep" / "a.txt", f"{tmp_path}/file: is a file where a folder is needed"),
        (tmp_path / "folder", f"{tmp_path}/folder: is a folder where a file"),
        (tmp_path / ("n" * 300), "cannot be written \\(file name too long"),
        (Path("/proc/rlea/a.txt"), "/proc/rlea/a.txt: cannot be written"),
    ):
        with pytest.raises(InputError, match=problem), atomic(path):
            pytest.fail("the block was entered")
        with pytest.raises(InputError, match=problem):
            check_writable(path)
    assert names(tmp_path) == ["file", "folder"]


def test_asking_whether_a_file_can_be_written_leaves_nothing(tmp_path):
    (tmp_path / "a.txt").write_text("old")
    for path in (tmp_path / "a.txt", tmp_path / "x" / "y" / "b.txt", tmp_path / "c.txt"):
        assert check_writable(path) is None
    assert names(tmp_path) == ["a.txt"]
    assert (tmp_path / "a.txt").read_text() == "old"


def test_what_killed_programs_left_is_removed_and_what_is_being_written_is_not(tmp_path):
    old, new, other = ".rlea-0123456789abcdef.tmp", ".rlea-fedcba9876543210.tmp", ".rlea-notes.tmp"
    for name in (old, new, other):
        (tmp_path / name).write_text("half")
    for name in (old, other):
        os.utime(tmp_path / name, (1, 1))
    check_writable(tmp_path / "a.txt")
    assert names(tmp_path) == sorted([new, other])


def test_write_all_writes_everything_or_nothing(tmp_path):
    (tmp_path / "a.txt").write_text("old")
    seen = []

    def fail(path: Path) -> None:
        seen.append(path)
        path.write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_all({tmp_path / "a.txt": put("new"), tmp_path / "sub" / "b.txt": put("new"), tmp_path / "c.txt": fail})
    assert len(seen) == 1
    assert names(tmp_path) == ["a.txt"]
    assert (tmp_path / "a.txt").read_text() == "old"
    paths = [tmp_path / "a.txt", tmp_path / "sub" / "b.txt"]
    assert write_all(dict.fromkeys(paths, put("new"))) == paths
    assert [path.read_text() for path in paths] == ["new", "new"]
    assert names(tmp_path) == ["a.txt", "sub", "sub/b.txt"]


@pytest.mark.parametrize("links_work", [True, False])
def test_interrupt_between_renames_puts_the_old_files_back(tmp_path, monkeypatch, links_work):
    (tmp_path / "a.txt").write_text("old")
    replace, calls = os.replace, []

    def interrupted(source, target):
        calls.append(target)
        if len(calls) == 3:
            raise KeyboardInterrupt
        replace(source, target)

    def no_links(source, target):
        raise OSError("not on this file system")

    monkeypatch.setattr(os, "replace", interrupted)
    if not links_work:
        monkeypatch.setattr(os, "link", no_links)
    with pytest.raises(KeyboardInterrupt):
        write_all({tmp_path / name: put("new") for name in ("a.txt", "b.txt", "c.txt")})
    assert len(calls) >= 3
    assert names(tmp_path) == ["a.txt"]
    assert (tmp_path / "a.txt").read_text() == "old"


def test_one_path_twice_is_refused(tmp_path):
    with pytest.raises(ValueError, match="same path"):
        write_all({tmp_path / "a": put(""), tmp_path / "x" / ".." / "a": put("")})
