"""Compressed files: gzip, bzip2, xz and Zstandard, known by their first bytes, whatever they are called."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from rlea.errors import InputError
from rlea.io.limits import UNPACKED, UNPACKED_FREE

_PIECE = 1 << 16  # bytes of an archive at a time; unpacked they may be a thousand times as many


def _unpack_zstd(raw: IO[bytes]) -> Iterator[bytes]:
    """The content of an archive, which may have several frames; one that is cut off is an EOFError."""
    import zstandard

    unpacker = None
    while piece := raw.read(_PIECE):
        while piece:
            # Dumps are packed with windows of up to 2 GB (`zstd --long=31`).
            unpacker = unpacker or zstandard.ZstdDecompressor(max_window_size=2**31).decompressobj()
            try:
                yield unpacker.decompress(piece)
            except zstandard.ZstdError as error:
                raise EOFError from error
            piece = unpacker.unused_data
            if unpacker.eof:
                unpacker = None
    if unpacker is not None:
        raise EOFError


class _Pieces(io.RawIOBase):
    """A stream of pieces; the library's own stream takes an archive that is cut off for a whole one."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = piece
        part, self._rest = self._rest[: len(buffer)], self._rest[len(buffer) :]
        buffer[: len(part)] = part
        return len(part)


class _Limited(io.RawIOBase):
    """An unpacked stream that may not be many times as large as its archive, or a few bytes would fill the memory."""

    def __init__(self, stream: IO[bytes], path: Path) -> None:
        self._stream, self._path = stream, path
        self._left = max(UNPACKED_FREE, UNPACKED.value * path.stat().st_size)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._stream.read(min(len(buffer), _PIECE))
        self._left -= len(piece)
        if self._left < 0:
            raise UNPACKED.exceeded("unpacks to more than {} times its size", self._path)
        buffer[: len(piece)] = piece
        return len(piece)


# Extension -> the first bytes of such files, and what opens them.
_PACKINGS: dict[str, tuple[bytes, Callable[[IO[bytes]], Any]]] = {
    ".gz": (b"\x1f\x8b", lambda raw: gzip.GzipFile(fileobj=raw)),
    ".bz2": (b"BZh", bz2.BZ2File),
    ".xz": (b"\xfd7zXZ\x00", lzma.LZMAFile),
    ".zst": (b"\x28\xb5\x2f\xfd", lambda raw: io.BufferedReader(_Pieces(_unpack_zstd(raw)))),
}
_NAMES = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zst": "Zstandard"}


def without_packing(name: str) -> str:
    """A file name without the extension of a compression.

    >>> without_packing("dump.nt.zst")
    'dump.nt'
    """
    ending = Path(name.lower()).suffix
    return name[: -len(ending)] if ending in _PACKINGS else name


@contextmanager
def unpacked(path: Path) -> Iterator[IO[bytes]]:
    """The content of a file as a stream, unpacked if it is compressed; all failures of reading are InputErrors.

    A file without compression is taken as it is, even under a name such as `x.nt.gz`: some servers unpack what they
    send. Only a file of such a name that is neither text nor an archive is refused.
    """
    packing = ""
    try:
        with path.open("rb") as raw:
            head = raw.read(512)
            raw.seek(0)
            packing = next((ending for ending, (magic, _) in _PACKINGS.items() if head.startswith(magic)), "")
            ending = path.suffix.lower()
            if not packing and ending in _PACKINGS and b"\x00" in head:
                problem = f"is no {_NAMES[ending]} archive, though it is called {ending}"
                raise InputError(problem, path=path, remedy="fetch it again, or name it by what it is")
            if not packing:
                yield raw
                return
            with _PACKINGS[packing][1](raw) as stream:
                yield cast(IO[bytes], io.BufferedReader(_Limited(stream, path), _PIECE))
    except (EOFError, zlib.error, lzma.LZMAError) as error:
        raise _broken(path, packing) from error
    except OSError as error:
        # The libraries for gzip and bzip2 report damage as an OSError, which then has no number of the system.
        if packing and error.errno is None:
            raise _broken(path, packing) from error
        reason = (error.strerror or "unknown reason").lower()
        remedy = "check the file and its permissions"
        raise InputError(f"cannot be read ({reason})", path=path, remedy=remedy) from error


def _broken(path: Path, packing: str) -> InputError:
    remedy = "fetch or compress the file again, or unpack it first"
    return InputError(f"the {_NAMES[packing]} data is damaged or cut off", path=path, remedy=remedy)
