"""Files written whole or not at all: first under a temporary name in the same folder, then renamed."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from rlea.errors import InputError

LEFTOVER = re.compile(r"\.rlea-[0-9a-f]{16}\.tmp")  # a temporary file that was not renamed
LEFT_AFTER = 3600.0  # seconds without a write


@contextmanager
def atomic(path: str | Path) -> Iterator[Path]:
    """A temporary path to write to, which becomes `path` when the block ends well.

    If the block raises anything, the temporary file is removed and a file that stood at `path` stays as it was.
    Missing folders are made, and removed again on failure.
    """
    with staged([path]) as (temporary,):
        yield temporary


def write_all(writers: Mapping[Path, Callable[[Path], None]]) -> list[Path]:
    """Call every writer with a temporary path and rename all files once the last is complete; returns the paths."""
    paths = list(writers)
    with staged(paths) as temporaries:
        for writer, temporary in zip(writers.values(), temporaries, strict=True):
            writer(temporary)
    return paths


@contextmanager
def staged(paths: Sequence[str | Path]) -> Iterator[list[Path]]:
    """As `atomic` for several files: all of them appear together, or none does.

    Every temporary file must have been written when the block ends.
    """
    # Through a symbolic link the file behind it is replaced, as a plain write would do.
    places = [Path(os.path.realpath(path)) for path in paths]
    if len(set(places)) != len(places):
        raise ValueError("two of the files to be written have the same path")
    temporaries = [_temporary(place) for place in places]
    made: list[Path] = []
    try:
        for place in places:
            _make_folder(place, made)
        yield temporaries
        for temporary in temporaries:
            _open_to_others(temporary)
            _sync(temporary)
        _rename(list(zip(temporaries, places, strict=True)))
        for folder in {place.parent for place in places}:
            _sync(folder)
    except BaseException as error:
        for temporary in temporaries:
            with suppress(OSError):  # report the first error, not one of the cleanup
                temporary.unlink(missing_ok=True)
        _remove_folders(made)
        # Libraries have errors of their own for a disk that is full.
        if isinstance(error, Exception) and type(error).__module__.partition(".")[0] in ("safetensors", "polars"):
            reason = " ".join(str(error).split())[:200]
            remedy = "make room, or choose another folder"
            raise InputError(f"cannot be written ({reason})", path=places[0], remedy=remedy) from error
        raise


@contextmanager
def made_folder(path: str | Path) -> Iterator[None]:
    """The folder of a file for the time of the block, and for good if something was put there."""
    made: list[Path] = []
    try:
        _make_folder(Path(os.path.realpath(path)), made)
        yield
    finally:
        _remove_folders(made)


def check_writable(path: str | Path) -> None:
    """Raise where a file could not be written, and leave nothing behind: to be asked before long work, not after it.

    For a folder of results, ask for one of the files in it. What killed programs left there an hour ago or more is
    removed: nobody writes to one file for so long without a pause, and others may be writing there now.
    """
    with made_folder(path):
        place = Path(os.path.realpath(path))
        with suppress(OSError):  # a folder may be writable without being readable
            for left in [one for one in place.parent.iterdir() if LEFTOVER.fullmatch(one.name)]:
                if time.time() - left.lstat().st_mtime > LEFT_AFTER and not left.is_dir():
                    left.unlink(missing_ok=True)


def _temporary(place: Path) -> Path:
    return place.with_name(f".rlea-{secrets.token_hex(8)}.tmp")


def _remove_folders(made: Sequence[Path]) -> None:
    for folder in reversed(made):
        with suppress(OSError):  # another program may have put a file there
            folder.rmdir()


def _make_folder(place: Path, made: list[Path]) -> None:
    """Make the folder of a file and note the new folders in `made`; raise where the file cannot be written."""
    try:
        if place.is_dir():
            raise InputError("is a folder where a file is to be written", path=place, remedy="give another file name")
        missing = [folder for folder in place.parents if not folder.exists()]
        existing = place.parents[len(missing)]
        if not existing.is_dir():
            raise InputError("is a file where a folder is needed", path=existing, remedy="name a folder, or a new one")
        for folder in reversed(missing):
            folder.mkdir()
            made.append(folder)
        # Found out now rather than after the work: the first thing any writer does is to make a file here.
        probe = _temporary(place)
        probe.touch(exist_ok=False)
        probe.unlink()
    except OSError as error:
        reason = (error.strerror or "unknown reason").lower()
        remedy = "choose a folder that you may write to"
        raise InputError(f"cannot be written ({reason})", path=place, remedy=remedy) from error


def _open_to_others(path: Path) -> None:
    """The permissions that a plain write gives; some libraries make their files readable by the owner alone."""
    mask = os.umask(0)
    os.umask(mask)
    path.chmod(0o666 & ~mask)


def _sync(path: Path) -> None:
    """Wait until a file or folder is on the disk, so that a rename never outlives its content."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except PermissionError:  # a folder may be writable without being readable
        return
    try:
        os.fsync(descriptor)
    except OSError:
        if not path.is_dir():  # some file systems cannot sync folders
            raise
    finally:
        os.close(descriptor)


def _rename(moves: Sequence[tuple[Path, Path]]) -> None:
    """Rename all, or put back what stood there before."""
    if len(moves) == 1:
        os.replace(*moves[0])
        return
    kept: list[tuple[Path, Path | None]] = []
    try:
        for temporary, place in moves:
            kept.append((place, _keep(place)))
            os.replace(temporary, place)
    except BaseException:
        for place, copy in kept:
            if copy is None:
                place.unlink(missing_ok=True)
            else:
                os.replace(copy, place)
        raise
    for _, copy in kept:
        if copy is not None:
            copy.unlink()


def _keep(place: Path) -> Path | None:
    """A second name for an existing file; None where there is no file."""
    if not place.exists():
        return None
    copy = _temporary(place)
    try:
        os.link(place, copy)
    except OSError:  # no hard links on this file system
        shutil.copy2(place, copy)
    return copy
