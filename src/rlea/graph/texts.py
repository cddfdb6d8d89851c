"""Many strings in little room: one array of bytes for all, or a number for each where few differ.

A million strings of Python take some 80 MB, and seconds to make; a graph has millions of identifiers, names and values,
and hardly any step looks at all of them. So they are kept as bytes, and each becomes a string when it is asked for.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from operator import eq
from typing import Any, overload

import numpy as np
import polars as pl
from numpy.typing import NDArray

_BLOCK_BYTES = 1 << 20  # of strings that are made at a time
_BLOCK_TEXTS = 1 << 16
_MOST_SHOWN = 12  # of strings in a repr


class TextColumn(Sequence[str]):
    """An immutable sequence of strings, equal to a tuple of the same strings."""

    @abstractmethod
    def _blocks(self) -> Iterator[Sequence[str]]:
        """All strings in order, many at a time."""

    @abstractmethod
    def _at(self, place: int) -> str: ...

    def _between(self, first: int, stop: int) -> Sequence[str]:
        return [self._at(place) for place in range(first, stop)]

    @abstractmethod
    def series(self) -> pl.Series:
        """The strings as a column."""

    def encoded(self) -> Iterator[Any]:
        """The strings as UTF-8 with a zero byte between each two, in pieces of bytes."""
        mark = b""
        for block in self._blocks():
            yield mark + "\x00".join(block).encode("utf-8", "surrogatepass")
            mark = b"\x00"

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[str, ...]: ...
    def __getitem__(self, place: int | slice) -> str | tuple[str, ...]:
        if isinstance(place, slice):
            first, stop, step = place.indices(len(self))
            if step == 1:
                return tuple(self._between(first, stop)) if first < stop else ()
            return tuple(self._at(one) for one in range(first, stop, step))
        if not -len(self) <= place < len(self):
            raise IndexError("there are not so many texts")
        return self._at(int(place) % len(self))

    def __iter__(self) -> Iterator[str]:
        for block in self._blocks():
            yield from block

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TextColumn | tuple):
            return NotImplemented
        return self is other or (len(self) == len(other) and all(map(eq, self, other)))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        if len(self) <= _MOST_SHOWN:
            return repr(tuple(self))
        return f"({', '.join(map(repr, self[:_MOST_SHOWN]))}, ... {len(self):,} in all)"


class Texts(TextColumn):
    """Strings as one array of bytes; text k is joined[starts[k] : starts[k + 1] - 1], as UTF-8.

    There is a zero byte between each two, so that many can be taken apart at once, and `joined` is the form in which
    the fingerprint of a graph has them. Neither array may be changed; both may lie in a file.

    >>> texts = Texts.of(["Wien", "", "Łódź"])
    >>> texts[2], texts == ("Wien", "", "Łódź"), texts.joined.nbytes
    ('Łódź', True, 13)
    """

    def __init__(self, joined: NDArray[np.uint8], starts: NDArray[np.int64]) -> None:
        self.joined = joined
        self.starts = starts  # (number + 1,); the last is where another one would begin
        self._bytes, self._starts = joined.data, starts.data

    @staticmethod
    def of(texts: Iterable[str]) -> Texts:
        """The strings of any sequence; that of `Texts` themselves are the same object."""
        if isinstance(texts, Texts):
            return texts
        if isinstance(texts, pl.Series):
            return _of_series(texts)
        pieces: list[bytes] = []
        lengths: list[Any] = []
        left = iter(texts)
        while block := list(islice(left, _BLOCK_TEXTS)):
            piece = "\x00".join(block).encode("utf-8", "surrogatepass")
            ends = np.flatnonzero(np.frombuffer(piece + b"\x00", np.uint8) == 0)
            if len(ends) != len(block):  # a text has zero bytes of its own
                ends = np.cumsum([len(text.encode("utf-8", "surrogatepass")) + 1 for text in block]) - 1
            pieces.append(piece)
            lengths.append(np.diff(ends, prepend=-1))
        starts = np.zeros(sum(map(len, lengths)) + 1, np.int64)
        np.cumsum(np.concatenate([np.zeros(0, np.int64), *lengths]), out=starts[1:])
        return Texts(np.frombuffer(b"\x00".join(pieces), np.uint8), starts)

    def has_longer(self, limit: int) -> bool:
        """Whether a text has more characters."""
        return any(len(self._at(place)) > limit for place in np.flatnonzero(np.diff(self.starts) > limit + 1).tolist())

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __reduce__(self) -> tuple[Any, ...]:
        return Texts, (np.array(self.joined), np.array(self.starts))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Texts):
            return np.array_equal(self.starts, other.starts) and np.array_equal(self.joined, other.joined)
        return super().__eq__(other)

    __hash__ = TextColumn.__hash__

    def series(self) -> pl.Series:
        parts = [pl.Series(list(block), dtype=pl.String) for block in self._blocks()]
        return pl.concat(parts, rechunk=True) if parts else pl.Series(dtype=pl.String)

    def encoded(self) -> Iterator[Any]:
        yield self.joined

    def _at(self, place: int) -> str:
        return str(self._bytes[self._starts[place] : self._starts[place + 1] - 1], "utf-8", "surrogatepass")

    def _between(self, first: int, stop: int) -> Sequence[str]:
        texts = str(self._bytes[self._starts[first] : self._starts[stop] - 1], "utf-8", "surrogatepass").split("\x00")
        return texts if len(texts) == stop - first else super()._between(first, stop)

    def _blocks(self) -> Iterator[Sequence[str]]:
        first = 0
        while first < len(self):
            stop = _end_of_block(self.starts, first)
            yield self._between(first, stop)
            first = stop


class CodedTexts(TextColumn):
    """Strings of which few differ: text k is levels[codes[k]].

    >>> CodedTexts.of(["en", "de", "en"]).levels
    ('en', 'de')
    """

    def __init__(self, codes: NDArray[Any], levels: tuple[str, ...]) -> None:
        self.codes = codes.astype(np.min_scalar_type(max(len(levels) - 1, 0)), copy=False)
        self.levels = levels

    @staticmethod
    def of(texts: Iterable[str]) -> CodedTexts:
        """The strings of any sequence; that of `CodedTexts` themselves are the same object."""
        if isinstance(texts, CodedTexts):
            return texts
        number: dict[str, int] = {}
        codes = np.fromiter((number.setdefault(text, len(number)) for text in texts), np.int64)
        return CodedTexts(codes, tuple(number))

    def take(self, rows: NDArray[np.intp]) -> CodedTexts:
        """The texts of these rows."""
        return CodedTexts(self.codes[rows], self.levels)

    def __len__(self) -> int:
        return len(self.codes)

    def series(self) -> pl.Series:
        return pl.Series(self.levels, dtype=pl.String).gather(self.codes.astype(np.uint32))

    def _at(self, place: int) -> str:
        return self.levels[int(self.codes[place])]

    def _between(self, first: int, stop: int) -> Sequence[str]:
        return list(map(self.levels.__getitem__, self.codes[first:stop].tolist()))

    def _blocks(self) -> Iterator[Sequence[str]]:
        for first in range(0, len(self), _BLOCK_TEXTS):
            yield self._between(first, min(first + _BLOCK_TEXTS, len(self)))


def _of_series(column: pl.Series) -> Texts:
    lengths = column.str.len_bytes().to_numpy()
    starts = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, dtype=np.int64, out=starts[1:])
    starts[1:] += np.arange(1, len(starts))
    joined = np.zeros(max(starts[-1] - 1, 0), np.uint8)
    first = 0
    while first < len(column):
        stop = _end_of_block(starts, first)
        piece = column[first:stop].str.join("\x00").cast(pl.Binary).item()
        joined[starts[first] : starts[stop] - 1] = np.frombuffer(piece, np.uint8)
        first = stop
    return Texts(joined, starts)


def _end_of_block(starts: NDArray[np.int64], first: int) -> int:
    """Where the block that begins with this text ends: behind the first, even if that is a long one."""
    last = int(np.searchsorted(starts, starts[first] + _BLOCK_BYTES, "right")) - 1
    return min(max(last, first + 1), len(starts) - 1)
