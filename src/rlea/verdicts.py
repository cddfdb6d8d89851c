"""Verdicts of people on pairs: a log in the folder of a run, and what it says now.

The log is `verdicts.sqlite`. Rows are only ever added: to undo an answer is one more row that refers to it, and what
the log said after its first N rows can always be told again. A row is on the disk before anybody is told that it is
there: SQLite waits for the disk at every commit (`synchronous=EXTRA`), and keeps a rollback journal rather than a
write-ahead log, so that the one file is all there is to copy. Every row has a key that its writer made, so a request
that is sent twice counts once.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rlea.errors import InputError

VERDICTS = "verdicts.sqlite"  # in the folder of a run
ACCEPT, REJECT, SKIP, OTHER = ANSWERS = ("accept", "reject", "skip", "other")
UNDO, DISPUTED = "undo", "disputed"
LEASE_SECONDS = 300.0  # for which a pair that one person looks at is not handed to another
WAIT_SECONDS = 10.0  # for another process that writes
LONGEST = 200  # letters of a key and of the name of a reviewer
_FORMAT = 1
_SCHEMA = """
CREATE TABLE entries (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  key TEXT NOT NULL UNIQUE,
  answer TEXT NOT NULL CHECK (answer IN ('accept', 'reject', 'skip', 'other', 'undo')),
  source TEXT NOT NULL,
  target TEXT NOT NULL,
  instead TEXT NOT NULL,
  undoes INTEGER UNIQUE REFERENCES entries (number),
  reviewer TEXT NOT NULL,
  time TEXT NOT NULL,
  blind INTEGER NOT NULL,
  confidence REAL
);
CREATE TRIGGER no_change BEFORE UPDATE ON entries BEGIN SELECT RAISE (ABORT, 'rows are only added'); END;
CREATE TRIGGER no_removal BEFORE DELETE ON entries BEGIN SELECT RAISE (ABORT, 'rows are only added'); END;
CREATE TABLE leases (holder TEXT PRIMARY KEY, source TEXT NOT NULL, target TEXT NOT NULL, until REAL NOT NULL);
"""


@dataclass(frozen=True)
class Entry:
    """A row of the log: an answer, or that an earlier one is undone."""

    number: int  # from 1
    key: str  # made by the writer; no two rows have the same
    answer: str  # one of `ANSWERS`, or "undo"
    source: str
    target: str
    instead: str  # of "other": the target that is right
    undoes: int | None  # of "undo": the number of the answer
    reviewer: str
    time: str  # UTC, ISO 8601
    is_blind: bool  # whether scores were hidden from the reviewer
    confidence: float | None  # of the pair, as the run had it


@dataclass(frozen=True)
class Verdict:
    """What people say of a pair, all of their last answers together."""

    source: str
    target: str
    answer: str  # accept, reject, skip or disputed
    reviewers: tuple[str, ...]  # in the order of their answers
    time: str  # of the last answer
    reason: str = ""  # of a dispute


@dataclass(frozen=True)
class Verdicts:
    """What a log says now. A pair stands in one place only."""

    accepted: tuple[Verdict, ...] = ()
    rejected: tuple[Verdict, ...] = ()
    skipped: tuple[Verdict, ...] = ()
    disputed: tuple[Verdict, ...] = ()  # neither seeds nor forbidden

    def __iter__(self) -> Iterator[Verdict]:
        return iter((*self.accepted, *self.rejected, *self.skipped, *self.disputed))


def resolve(entries: Iterable[Entry], cardinality: str = "1:1") -> Verdicts:
    """What the log says: the last answer of every reviewer on a pair, unless it was undone.

    "Other" rejects its pair and accepts another. A pair that one reviewer accepts and another rejects is disputed, and
    so are accepted pairs that cannot all be right: under 1:1 those that share an entity.
    """
    entries = list(entries)
    undone = {entry.undoes for entry in entries}
    said: dict[tuple[str, str], dict[str, tuple[str, str]]] = {}  # pair -> reviewer -> answer and its time
    for entry in entries:
        if entry.answer == UNDO or entry.number in undone:
            continue
        answers = {entry.target: REJECT if entry.answer == OTHER else entry.answer}
        if entry.answer == OTHER:
            answers[entry.instead] = ACCEPT
        for target, answer in answers.items():
            of_pair = said.setdefault((entry.source, target), {})
            of_pair.pop(entry.reviewer, None)  # the last answer goes to the end
            of_pair[entry.reviewer] = answer, entry.time
    found: dict[tuple[str, str], Verdict] = {}
    for (source, target), by_reviewer in said.items():
        firm = {answer for answer, _ in by_reviewer.values()} - {SKIP}
        answer = DISPUTED if len(firm) > 1 else firm.pop() if firm else SKIP
        told = ", ".join(f"{who}: {answer}" for who, (answer, _) in by_reviewer.items()) if answer == DISPUTED else ""
        last = max(when for _, when in by_reviewer.values())
        found[source, target] = Verdict(source, target, answer, tuple(by_reviewer), last, told)
    for pair, reason in _exclusive([pair for pair, one in found.items() if one.answer == ACCEPT], cardinality):
        one = found[pair]
        found[pair] = Verdict(one.source, one.target, DISPUTED, one.reviewers, one.time, reason)
    parts = {ACCEPT: "accepted", REJECT: "rejected", SKIP: "skipped", DISPUTED: "disputed"}
    return Verdicts(
        **{name: tuple(one for one in found.values() if one.answer == answer) for answer, name in parts.items()}
    )


def _exclusive(accepted: Sequence[tuple[str, str]], cardinality: str) -> Iterator[tuple[tuple[str, str], str]]:
    """The accepted pairs of entities that have more than `cardinality` lets them have, with the reason."""
    sides = (0,) * (cardinality in ("1:1", "n:1")) + (1,) * (cardinality in ("1:1", "1:n"))
    for side in sides:
        having: dict[str, list[str]] = {}
        for pair in accepted:
            having.setdefault(pair[side], []).append(pair[1 - side])
        for pair in accepted:
            others = [other for other in having[pair[side]] if other != pair[1 - side]]
            if others:
                yield pair, f"{pair[side]} was also accepted with {', '.join(others)}"


class VerdictStore:
    """The log of a run. It may be used by several threads and opened by several processes at once."""

    def __init__(self, path: str | Path, *, must_exist: bool = False) -> None:
        self.path = Path(path)
        if must_exist and not self.path.is_file():
            remedy = "answer some questions first: rlea review, or rlea label"
            raise InputError("there are no verdicts", path=self.path, remedy=remedy)
        self._lock = threading.RLock()
        with self._told("cannot be opened as verdicts"):
            self._open()

    @contextmanager
    def _told(self, what: str = "cannot be read as verdicts, or written to") -> Iterator[None]:
        """One sentence for whatever is wrong with the file: it may be damaged behind its first page."""
        try:
            yield
        except sqlite3.Error as problem:
            reason = str(problem).rstrip(".")
            remedy = "check that it is what rlea wrote, and that you may write to its folder"
            raise InputError(f"{what} ({reason})", path=self.path, remedy=remedy) from problem

    def _open(self) -> None:
        self._database = sqlite3.connect(self.path, timeout=WAIT_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            for setting in ("journal_mode=DELETE", "synchronous=EXTRA", "fullfsync=1", "foreign_keys=1"):
                self._database.execute(f"PRAGMA {setting}")
            if not self._version():  # else nothing need be written: the folder may be for reading only
                with self._writing() as database:
                    if not self._version():  # nor has another process been faster
                        for statement in _statements(_SCHEMA):
                            database.execute(statement)
                        database.execute(f"PRAGMA user_version={_FORMAT}")
        except BaseException:
            self._database.close()
            raise

    def _version(self) -> int:
        """The format of the file, 0 of an empty one; any other than this program's is an error."""
        version = int(self._database.execute("PRAGMA user_version").fetchone()[0])
        is_empty = self._database.execute("SELECT 1 FROM sqlite_master").fetchone() is None
        if version != _FORMAT and not (version == 0 and is_empty):
            raise sqlite3.DatabaseError(f"its format is {version}, not {_FORMAT}")
        return version

    @staticmethod
    def of_run(folder: str | Path, *, must_exist: bool = False) -> VerdictStore:
        """The store in the folder of a run; made if it is not there, unless it must exist."""
        return VerdictStore(Path(folder) / VERDICTS, must_exist=must_exist)

    def close(self) -> None:
        """Close the file; what was answered is on the disk already."""
        with self._lock:
            self._database.close()

    def __enter__(self) -> VerdictStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction that nobody else writes in; it is on the disk when the block has ended well."""
        with self._lock, self._told():
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield self._database
            except BaseException:
                if self._database.in_transaction:  # else SQLite has rolled it back itself
                    self._database.execute("ROLLBACK")
                raise
            self._database.execute("COMMIT")

    # ---- answers ----------------------------------------------------------------------------------------------------

    def answer(
        self,
        source: str,
        target: str,
        answer: str,
        *,
        reviewer: str,
        key: str,
        instead: str = "",
        is_blind: bool = False,
        confidence: float | None = None,
    ) -> Entry:
        """Add an answer; when this returns, it is on the disk.

        `key` is any text that the caller makes for this answer: a second call with it adds nothing and returns the
        first entry. `instead` is the target that is right, if the answer is "other".
        """
        if answer not in ANSWERS:
            raise InputError(f"unknown answer {answer!r}", remedy=f"use one of {', '.join(ANSWERS)}")
        if (answer == OTHER) != bool(instead) or instead == target:
            raise InputError(
                "another target belongs to the answer 'other', and to no other answer", remedy="name one, or accept"
            )
        said = (answer, source, target, instead, _named(reviewer))
        with self._writing() as database:
            known = self._of_key(database, key)
            if known is None:
                values = (_keyed(key), *said[:4], None, said[4], _now(), int(is_blind), confidence)
                database.execute(_INSERT, values)
                known = self._of_key(database, key)
        assert known is not None
        if (known.answer, known.source, known.target, known.instead, known.reviewer) != said:
            raise InputError("the key of this answer belongs to another one", remedy="make a new key for every answer")
        return known

    def undo(self, *, reviewer: str, key: str, number: int | None = None) -> Entry | None:
        """Undo the last answer of a reviewer, or that of a number; None if there is nothing to undo.

        A reviewer undoes nobody else's answers.
        """
        reviewer = _named(reviewer)
        with self._writing() as database:
            known = self._of_key(database, key)
            if known is not None:
                if known.answer != UNDO or known.reviewer != reviewer:
                    raise InputError("the key of this request belongs to another one", remedy="make a new key")
                return known
            row = database.execute(
                f"SELECT {_COLUMNS} FROM entries AS own WHERE answer != 'undo' AND reviewer = ? AND (? IS NULL "
                "OR number = ?) AND NOT EXISTS (SELECT 1 FROM entries WHERE undoes = own.number) "
                "ORDER BY number DESC LIMIT 1",
                (reviewer, number, number),
            ).fetchone()
            if row is None:
                return None
            last = _entry(row)
            more = (reviewer, _now(), int(last.is_blind), last.confidence)
            database.execute(_INSERT, (_keyed(key), UNDO, last.source, last.target, last.instead, last.number, *more))
            return self._of_key(database, key)

    @staticmethod
    def _of_key(database: sqlite3.Connection, key: str) -> Entry | None:
        row = database.execute(f"SELECT {_COLUMNS} FROM entries WHERE key = ?", (key,)).fetchone()
        return None if row is None else _entry(row)

    def entries(self, *, after: int = 0, until: int | None = None) -> list[Entry]:
        """The rows of the log, oldest first: those with numbers above `after` and up to `until`."""
        with self._lock, self._told():
            rows = self._database.execute(
                f"SELECT {_COLUMNS} FROM entries WHERE number > ? AND (? IS NULL OR number <= ?) ORDER BY number",
                (after, until, until),
            ).fetchall()
            return [_entry(row) for row in rows]

    def current(self, cardinality: str = "1:1", *, until: int | None = None) -> Verdicts:
        """What the log says now, or said after its first `until` rows; see `resolve`."""
        return resolve(self.entries(until=until), cardinality)

    # ---- who looks at what ------------------------------------------------------------------------------------------

    def lease(self, source: str, target: str, holder: str, *, now: float | None = None) -> bool:
        """Keep a pair from others for some minutes; False if another holder has it. A holder has one pair at a time."""
        moment = time.time() if now is None else now
        with self._writing() as database:
            other = database.execute(
                "SELECT 1 FROM leases WHERE source = ? AND target = ? AND holder != ? AND until > ?",
                (source, target, holder, moment),
            ).fetchone()
            if other is not None:
                return False
            values = (_keyed(holder), source, target, moment + LEASE_SECONDS)
            database.execute("INSERT OR REPLACE INTO leases VALUES (?, ?, ?, ?)", values)
        return True

    def leased_to_others(self, holder: str, *, now: float | None = None) -> set[tuple[str, str]]:
        """The pairs that others look at."""
        moment = time.time() if now is None else now
        with self._lock, self._told():
            rows = self._database.execute(
                "SELECT source, target FROM leases WHERE holder != ? AND until > ?", (holder, moment)
            ).fetchall()
        return {(source, target) for source, target in rows}


_NAMES = ("key", "answer", "source", "target", "instead", "undoes", "reviewer", "time", "blind", "confidence")
_COLUMNS = ", ".join(("number", *_NAMES))
_INSERT = f"INSERT INTO entries ({', '.join(_NAMES)}) VALUES ({', '.join('?' * len(_NAMES))})"


def _entry(row: Sequence[Any]) -> Entry:
    values = dict(zip((field.name for field in fields(Entry)), row, strict=True))
    # SQLite keeps whatever a column is given, and a file may come from another hand.
    texts = (values[name] for name in ("key", "answer", "source", "target", "instead", "reviewer", "time"))
    is_right = all(isinstance(text, str) for text in texts) and values["answer"] in (*ANSWERS, UNDO)
    if (
        not is_right
        or not isinstance(values["undoes"], int | None)
        or not isinstance(values["confidence"], int | float | None)
    ):
        raise sqlite3.DatabaseError(f"row {values['number']} is no answer")
    return Entry(**values | {"is_blind": bool(values["is_blind"])})


def _statements(text: str) -> Iterator[str]:
    """The statements of a script; `executescript` would commit between them."""
    statement = ""
    for line in text.splitlines():
        statement += line + "\n"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _named(reviewer: str) -> str:
    """The name of a reviewer on one line."""
    name = " ".join(reviewer.split())
    if not 0 < len(name) <= LONGEST:
        raise InputError("an answer needs the name of a reviewer", remedy=f"give a name of 1 to {LONGEST} letters")
    return name


def _keyed(key: str) -> str:
    if not 0 < len(key) <= LONGEST:
        raise InputError("an answer needs a key of its own", remedy=f"give 1 to {LONGEST} letters")
    return key


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
