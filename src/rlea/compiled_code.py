"""Where numba keeps compiled code: a folder that can be written, asked for before any compiled function is imported.

numba takes NUMBA_CACHE_DIR, else a folder beside the source, else the cache folder of the user. Where none of them can
be written (another user's installation, a read-only container), importing a compiled function would be an error.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path


def find_cache_folder() -> None:
    """Name a private temporary folder to numba if it could write to none of its own."""
    source = Path(__file__).parent
    given = os.environ.get("NUMBA_CACHE_DIR")
    if not any(map(can_write, ([Path(given)] if given else []) + [source / "__pycache__", _of_user()])):
        os.environ["NUMBA_CACHE_DIR"] = str(private_folder())


def can_write(folder: Path) -> bool:
    """Whether files can be made in a folder, which may have to be made itself."""
    try:
        while not folder.exists() and folder != folder.parent:
            folder = folder.parent
        return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)
    except OSError:
        return False


def private_folder() -> Path:
    """A folder of temporary files that is this user's alone, the same in every run where that is safe.

    Compiled code is loaded and run, so a folder that another user made or may write to is not taken.
    """
    import tempfile

    user = os.getuid() if hasattr(os, "getuid") else None
    try:
        folder = Path(tempfile.gettempdir()) / f"rlea-compiled-{user}"
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        if user is not None and stat.S_ISDIR(found.st_mode) and found.st_uid == user and not found.st_mode & 0o077:
            return folder
    except OSError:
        pass
    return Path(tempfile.mkdtemp(prefix="rlea-compiled-"))


def _of_user() -> Path:
    """The cache folder of the user, as numba looks for it."""
    given = os.environ.get("XDG_CACHE_HOME")
    return Path(given) if given else Path(os.path.expanduser("~")) / ".cache"
