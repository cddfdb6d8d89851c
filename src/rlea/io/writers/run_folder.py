"""The folder of a run: what is written there, what may be replaced, and how a reader knows that it is whole.

`run.json` lists the files of the run with their SHA-256 and is renamed into place after all of them, so a folder whose
files are not those of its record was left by a run that was killed, or changed by hand. Only files that the record
lists, and that are as the run left them, are ever replaced or removed: anything else there is somebody else's.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from glob import glob
from pathlib import Path
from typing import Any

from rlea.errors import InputError
from rlea.io.writers.atomic import LEFTOVER, made_folder, staged
from rlea.record import as_dict, as_json

RECORD = "run.json"
RUN_CONFIG = "run.toml"  # beside it: the options
OTHER = "name a new folder for the output, or move the file away"
_JOURNAL = ".rlea-writing.json"  # what is being renamed: after a kill, these files are of a run as well
_held: set[Path] = set()  # folders that this process has claimed


@contextmanager
def claimed(folder: str | Path | None) -> Iterator[None]:
    """Keep other runs out of a folder while the block runs; None is no folder.

    The folder is made, and removed again if nothing was put there. A second run is refused at once, as both would
    write the same files.
    """
    if folder is None:
        yield
        return
    place = Path(os.path.realpath(folder))
    if place in _held:  # by an outer block
        yield
        return
    with made_folder(place / RECORD):
        lock = _lock(place)
        _held.add(place)
        try:
            yield
        finally:
            _held.discard(place)
            if lock is not None:
                os.close(lock)


def write_run(
    folder: str | Path,
    writers: Mapping[str, str | Callable[[Path], Any]],
    record: Mapping[str, Any],
    inputs: Iterable[str | Path] = (),
) -> list[Path]:
    """Write the files of a run, and its record with their hashes after them: all or none. Returns their paths.

    Files of an earlier run that this one does not have are removed. `inputs` are what the run was made from.
    """
    folder = Path(folder)
    with claimed(folder):
        check_free(folder, writers, inputs)
        own = _own_files(folder)
        gone = [name for name in own if name not in (*writers, RECORD) and _is_ours(folder / name, own[name])]
        return _write(folder, writers, dict(record), {}, gone)


def add_files(folder: str | Path, writers: Mapping[str, str | Callable[[Path], Any]]) -> list[Path]:
    """Write further files into the folder of a run, such as its page made anew, and list them in its record."""
    folder = Path(folder)
    with claimed(folder):
        record = read_json(folder / RECORD)
        listed = as_dict(record.get("files"))
        if listed:  # records of earlier versions list none
            check_free(folder, writers)
        return _write(folder, writers, record, listed)[:-1]


def check_free(folder: str | Path, names: Iterable[str], inputs: Iterable[str | Path] = ()) -> None:
    """Refuse to write what would destroy an input, or a file that no run left there. To be asked before long work."""
    folder = Path(folder)
    own = _own_files(folder)
    names = [*dict.fromkeys((*names, RECORD))]
    refuse_inputs([folder, *(folder / name for name in names)], inputs)
    for name in names:
        path = folder / name
        if os.path.lexists(path) and name != RECORD and not _is_ours(path, own.get(name, ())):
            why = "was changed since the run wrote it" if name in own else "was not written by a run in this folder"
            raise InputError(f"{why}, and would be overwritten", path=path, remedy=OTHER)
    if (folder / RECORD).exists() and "command" not in read_json(folder / RECORD):
        raise InputError("is not the record of a run, and would be overwritten", path=folder / RECORD, remedy=OTHER)


def refuse_inputs(outputs: Iterable[str | Path], inputs: Iterable[str | Path]) -> None:
    """Refuse outputs that are inputs too, by whatever name: what a run reads it must not destroy."""
    there = [Path(path) for path in outputs if os.path.exists(path)]
    for given in _files_of(inputs):
        for path in there:
            if path.samefile(given):
                raise InputError("is an input, and would be an output as well", path=path, remedy=OTHER)


def _files_of(inputs: Iterable[str | Path]) -> Iterator[Path]:
    """The files and folders that inputs name, also by a pattern; addresses name none."""
    for given in map(str, inputs):
        yield from [Path(given)] if os.path.exists(given) else map(Path, glob(given, recursive=True))


def check_whole(folder: Path, record: Mapping[str, Any], names: Iterable[str]) -> None:
    """Refuse the folder of a run if one of these files is not as its record lists it.

    Records of earlier versions list none. A file that is gone is for its reader to miss.
    """
    listed = as_dict(record.get("files"))
    for name in names:
        path = folder / name
        if name in listed and path.is_file() and file_hash(path) != listed[name]:
            problem = f"is not the file that {RECORD} lists: it was changed, or a run was stopped while writing"
            raise InputError(problem, path=path, remedy="align again, into a new folder")


def file_hash(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write(
    folder: Path,
    writers: Mapping[str, str | Callable[[Path], Any]],
    record: dict[str, Any],
    listed: Mapping[str, Any],
    gone: Iterable[str] = (),
) -> list[Path]:
    """Write files and the record, and remove those of `gone`. After a kill the journal still says what was ours."""
    _sweep(folder)
    journal = folder / _JOURNAL
    paths = [folder / name for name in (*writers, RECORD)]
    try:
        with staged(paths) as temporaries:
            for content, temporary in zip(writers.values(), temporaries[:-1], strict=True):
                if isinstance(content, str):
                    put_text(temporary, content)
                else:
                    content(temporary)
            new = {name: file_hash(temporary) for name, temporary in zip(writers, temporaries[:-1], strict=True)}
            record["files"] = dict(sorted({**listed, **new}.items()))
            put_text(temporaries[-1], as_json(record))
            put_text(journal, as_json({"files": {name: file_hash(folder / name) for name in gone} | new}))
        for name in gone:
            (folder / name).unlink(missing_ok=True)
    finally:
        journal.unlink(missing_ok=True)
    return paths


def put_text(path: Path, text: str) -> None:
    """Write UTF-8. What no UTF-8 can hold, as the bytes of an odd file name, is written as the escape of JSON."""
    path.write_text(text, encoding="utf-8", newline="\n", errors="backslashreplace")


def _own_files(folder: Path) -> dict[str, tuple[str, ...]]:
    """The files that runs have left in a folder, each with the hashes it may have."""
    found: dict[str, tuple[str, ...]] = {}
    for path in (folder / RECORD, folder / _JOURNAL):
        for name, known in as_dict(read_json(path).get("files")).items():
            # A record may come from another hand: nothing outside of the folder is a file of the run.
            if isinstance(known, str) and Path(name).name == name:
                found[name] = (*found.get(name, ()), known)
    return found


def _is_ours(path: Path, known: Iterable[str]) -> bool:
    return path.is_file() and not path.is_symlink() and file_hash(path) in known


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file; an empty one where there is none."""
    if not path.is_file():  # a pipe would be waited for
        return {}
    try:
        return as_dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, RecursionError):
        return {}


def _sweep(folder: Path) -> None:
    """Remove what a run that was killed while writing has left; the folder is claimed, so nobody else is writing."""
    for path in folder.iterdir():
        if LEFTOVER.fullmatch(path.name) and not path.is_dir():
            path.unlink(missing_ok=True)


def _lock(folder: Path) -> int | None:
    """A lock on the folder itself, which leaves no file behind; None where the system has no such locks."""
    try:
        import fcntl
    except ImportError:
        return None
    lock = None
    with suppress(OSError):  # a folder may be writable without being readable; some file systems have no locks
        lock = os.open(folder, os.O_RDONLY)
    if lock is None:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(lock)
        raise InputError("another run writes to this folder", path=folder, remedy="wait, or name another") from error
    except OSError:
        os.close(lock)
        return None
    return lock
