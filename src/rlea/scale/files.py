"""Objects in files that several processes read: arrays are mapped, not copied, so that processes share their pages.

A file holds a pickle and, behind it, the bytes of its arrays. Such files are a run's own, written and read by the same
program: they are as private as the program, and no format to exchange data in.
"""

from __future__ import annotations

import mmap
import os
import pickle
import platform
import struct
from pathlib import Path
from typing import Any

ALIGNMENT = 64
_HEAD = struct.Struct("<Q")


def write_object(path: Path, value: Any) -> int:
    """Write an object whole or not at all; the size of the file."""
    from ray import cloudpickle

    buffers: list[pickle.PickleBuffer] = []
    content = cloudpickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    raw = [buffer.raw() for buffer in buffers]
    sizes = pickle.dumps([len(content), *(part.nbytes for part in raw)])
    # Two processes may do the same part, if one of them was taken for lost.
    partial = path.with_name(f".{path.name}.{platform.node()}.{os.getpid()}")
    with partial.open("wb") as file:
        file.write(_HEAD.pack(len(sizes)) + sizes)
        for part in (content, *raw):
            file.write(bytes(-file.tell() % ALIGNMENT))
            file.write(part)
        size = file.tell()
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
    return size


def read_object(path: Path) -> Any:
    """An object as it was written. Its arrays can be changed, which changes no file and no other process."""
    with path.open("rb") as file:
        view = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
    (size,) = _HEAD.unpack_from(view)
    place = _HEAD.size + size
    parts = []
    for count in pickle.loads(view[_HEAD.size : place]):
        place += -place % ALIGNMENT
        parts.append(view[place : place + count])
        place += count
    return pickle.loads(parts[0], buffers=parts[1:])
