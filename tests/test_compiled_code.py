"""Compiled code: kept where numba keeps it, or in a private temporary folder where that cannot be written."""

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import rlea
from rlea import compiled_code


@pytest.fixture
def temporary(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    return tmp_path


def test_a_folder_that_can_be_written_is_left_to_numba(monkeypatch, temporary):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(temporary / "new"))
    monkeypatch.setattr(compiled_code, "can_write", lambda folder: folder == temporary / "new")
    compiled_code.find_cache_folder()
    assert os.environ["NUMBA_CACHE_DIR"] == str(temporary / "new")


def test_without_one_there_is_a_private_folder(monkeypatch, temporary):
    monkeypatch.setattr(compiled_code, "can_write", lambda folder: False)
    compiled_code.find_cache_folder()
    folder = Path(os.environ["NUMBA_CACHE_DIR"])
    assert folder.parent == temporary
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert compiled_code.private_folder() == folder  # the same in the next run, which need not compile again


def test_a_folder_that_others_may_write_to_is_not_taken(temporary):
    first = compiled_code.private_folder()
    first.chmod(0o777)
    second = compiled_code.private_folder()
    assert second != first
    assert stat.S_IMODE(second.stat().st_mode) == 0o700


def test_what_is_no_folder_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    assert compiled_code.can_write(tmp_path / "new" / "newer")
    assert not compiled_code.can_write(tmp_path / "file" / "cache")


def test_compiled_functions_are_imported_where_nothing_of_the_package_or_the_home_can_be_written(tmp_path):
    """As in a container that runs under a foreign user id, or is read-only."""
    package, temporary = tmp_path / "rlea", tmp_path / "temporary"
    package.mkdir()
    temporary.mkdir()
    for name in ("__init__.py", "compiled_code.py", "arithmetic.py"):
        shutil.copy(Path(rlea.__file__).parent / name, package)
    (package / "__pycache__").touch()  # a file: not even root can make the folder
    places = {**os.environ, "HOME": os.devnull, "TMPDIR": str(temporary), "PYTHONPATH": str(tmp_path)}
    for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
        places.pop(name, None)
    program = "import rlea.arithmetic, os; print(rlea.__file__, os.environ['NUMBA_CACHE_DIR'])"
    done = subprocess.run([sys.executable, "-c", program], env=places, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    own, folder = map(Path, done.stdout.split())
    assert (own.parent, folder.parent) == (package, temporary)
