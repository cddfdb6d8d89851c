"""Mutations of files: of their bytes, and of the pieces that formats are made of."""

from __future__ import annotations

import json
import re
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

# Pieces that readers have stumbled over, or that mean something in a format.
TOKENS = [
    *(b"", b"\x00", b"\xff", b"\xef\xbb\xbf", b"\r", b"\t", b"\n\n", b'"', b"'", b"<", b">", b"<>", b"_:", b"[" * 300),
    *(b"\xed\xa0\x80", b"%ED%A0%80", b"\\uD800", b"\\u0000", b"&a;", b"<!DOCTYPE r [<!ENTITY a 'b'>]>"),
    b"urn:rlea:%00",
    *(b"NaN", b"-1", b"1e999", b"99999999999999999999", "²".encode(), "٢٠٢٠-٠١-٠١".encode(), "\u202e".encode()),
    *(b"=1+1", b"\x1b[2J", b"null", b"true", b"{}", b"[]", b"A" * 5000, b"@prefix : <x> .", b"^^<http://x>", b"@en"),
]
SWELLS = 0.02  # share of the mutations that make a file large
_SWOLLEN = 200_000  # bytes: then what takes the square of its input is a hang
_PIECES = re.compile(rb"[A-Za-z0-9_]+|\s+|.", re.DOTALL)
_VALUES: list[Any] = [None, True, -1, 0, 1e308, 10**30, "", "x", "²", [], {}, [[]], {"a": None}]


def of_bytes(content: bytes, chance: Random) -> bytes:
    """Flip, drop, repeat or put in a few bytes."""
    result = bytearray(content)
    for _ in range(chance.randint(1, 6)):
        place, length = chance.randint(0, len(result)), chance.choice((1, 1, 2, 8, 60))
        how = chance.randrange(5)
        if how == 0 and place < len(result):
            result[place] ^= 1 << chance.randrange(8)
        elif how == 1:
            del result[place : place + length]
        elif how == 2:
            result[place:place] = result[place : place + length] * chance.choice((1, 1, 3, 50))
        elif how == 3:
            result[place:place] = chance.choice(TOKENS)
        else:
            result[place : place + length] = chance.randbytes(length)
    return bytes(result)


def of_pieces(content: bytes, chance: Random) -> bytes:
    """Exchange, drop, repeat or replace words, spaces and marks."""
    pieces = _PIECES.findall(content)
    for _ in range(chance.randint(1, 4)):
        if not pieces:
            break
        one, other = chance.randrange(len(pieces)), chance.randrange(len(pieces))
        how = chance.randrange(4)
        if how == 0:
            pieces[one], pieces[other] = pieces[other], pieces[one]
        elif how == 1:
            pieces[one:one] = pieces[other : other + chance.randint(1, 30)]
        elif how == 2:
            del pieces[one : one + chance.randint(1, 10)]
        else:
            pieces[one] = chance.choice(TOKENS)
    return b"".join(pieces)


def swollen(content: bytes, chance: Random) -> bytes:
    """A part of the file thousands of times over, or around another part: what takes the square of that?"""
    pieces = _PIECES.findall(content)
    if not pieces:
        return content
    first = chance.randrange(len(pieces))
    start, part, rest = (
        b"".join(pieces[one:other])
        for end in [first + chance.randint(1, 40)]
        for one, other in ((0, first), (first, end), (end, len(pieces)))
    )
    times = max(_SWOLLEN // len(part), 1)
    if chance.random() < 0.5:
        return start + part * times + rest
    inner = chance.randint(0, len(rest))
    last = chance.choice((b"]", b"}", b")", b">", b'"', rest[inner : inner + len(part)]))
    return start + part * times + rest[:inner] + last * times + rest[inner:]


def of_json(value: Any, chance: Random) -> Any:
    """Another value at a random place of a JSON value, or one key more or less."""
    if isinstance(value, dict | list) and value and chance.random() < 0.85:
        copy = dict(value) if isinstance(value, dict) else list(value)
        key = chance.choice(list(copy) if isinstance(copy, dict) else range(len(copy)))
        if chance.random() < 0.1:
            del copy[key]
        else:
            copy[key] = of_json(copy[key], chance)
        return copy
    return chance.choice(_VALUES)


def of_safetensors(content: bytes, chance: Random) -> bytes:
    """Mutate the header of a safetensors file, or the JSON within it, and keep the lengths right."""
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    inner = header.get("__metadata__", {})
    if chance.random() < 0.8:  # else the hash alone would find every other change
        for key, told in inner.items():
            inner[key] = json.dumps({name: part for name, part in json.loads(told).items() if name != "sha256"})
    if chance.random() < 0.2:
        start = chance.randint(0, len(content) - 8 - size)
        content = content[: 8 + size + start] + of_bytes(content[8 + size + start :], chance)
    elif inner and chance.random() < 0.7:
        key = chance.choice(list(inner))
        inner[key] = json.dumps(of_json(json.loads(inner[key]), chance))
    else:
        header = of_json(header, chance)
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + content[8 + size :]


def of_sqlite(content: bytes, chance: Random) -> bytes:
    """Another value at a random place of a database, or another table."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.sqlite"
        path.write_bytes(content)
        base = sqlite3.connect(path)
        try:
            base.executescript("PRAGMA ignore_check_constraints=1; PRAGMA foreign_keys=0")
            for kind in ("TRIGGER", "VIEW"):
                for (name,) in base.execute(
                    "SELECT name FROM sqlite_master WHERE type = ?", (kind.lower(),)
                ).fetchall():
                    base.execute(f'DROP {kind} "{name}"')
            tables = [row[0] for row in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            table = chance.choice([name for name in tables if not name.startswith("sqlite_")])
            columns = [row[1] for row in base.execute(f'PRAGMA table_info("{table}")')]
            column = chance.choice(columns)
            how = chance.randrange(6)
            if how == 0:
                base.execute(f'ALTER TABLE "{table}" RENAME COLUMN "{column}" TO "other"')
            elif how == 1:
                base.execute(f'ALTER TABLE "{table}" RENAME TO "other"')
            elif how == 2:
                base.execute(f"PRAGMA user_version={chance.choice((0, 2, -1, 2**31 - 1))}")
            else:
                value = chance.choice(
                    [None, -1, 2**63 - 1, 1e308, float("nan"), "", "x" * 5000, b"\xff\x00", "\0", "²"]
                )
                text = "CAST(x'ff80' AS TEXT)" if chance.random() < 0.1 else "?"
                given = () if text != "?" else (value,)
                where = f"rowid = {chance.randint(1, 6)}" if chance.random() < 0.8 else "1"
                base.execute(f'UPDATE OR REPLACE "{table}" SET "{column}" = {text} WHERE {where}', given)
            base.commit()
        except sqlite3.Error:
            pass  # the change is one that the database does not take
        finally:
            base.close()
        return path.read_bytes()


def mutate(name: str, content: bytes, chance: Random) -> bytes:
    """A mutation of a file, by what its name says it is."""
    ways: list[Callable[[bytes, Random], bytes]] = [of_bytes, of_pieces]
    if name.endswith((".safetensors", ".checkpoint")):
        ways = [of_bytes, of_safetensors, of_safetensors]
    elif name.endswith(".sqlite"):
        ways = [of_bytes, of_sqlite, of_sqlite]
    elif name.endswith((".json", ".jsonld")):
        ways.append(lambda own, luck: json.dumps(of_json(json.loads(own), luck)).encode())
    if chance.random() < SWELLS and not name.endswith((".sqlite", ".safetensors", ".checkpoint")):
        ways = [swollen]
    return chance.choice(ways)(content, chance)
