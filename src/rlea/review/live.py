"""The live part of a review: answers count at once, in a process beside the page.

What that takes is the graphs and all evidence, which are read and collected again: a part of the time of the run, in
which the page is up already. A process of its own cannot slow the page down, and whatever happens to it, the page goes
on: verdicts are on the disk before this process hears of them.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlea.agent.kept import KEPT
from rlea.agent.live import Change, LiveRun
from rlea.agent.questions import Asker, shipped_values
from rlea.errors import InputError
from rlea.matching import Matching
from rlea.record import as_dict, is_number
from rlea.resumed import Resumed

Answers = Mapping[tuple[int, int], bool]  # ids of a pair -> whether it is right

MAKING, READY, DECIDING, FAILED = "making", "ready", "deciding", "failed"
SHARE = 0.4  # of the time of a run that collecting its evidence takes, where the agent was kept


@dataclass(frozen=True, eq=False)
class Decided:
    """The links after some answers."""

    links: Matching  # all of the agent, with corrected confidences
    gains: NDArray[np.float64]  # (num_links,) what an answer is expected to bring; -inf for those that have one
    changes: Sequence[Change]  # by the last answers
    seconds: float  # that it took

    @staticmethod
    def of(live: LiveRun, asker: Asker, changes: Sequence[Change] = (), start: float = 0.0) -> Decided:
        """A live run as it is now; `start` is when it began to decide."""
        links, situation = live.links, asker.situation()
        gains = np.full(len(links), -np.inf)
        gains[np.isin(links.source_ids, situation.source_ids)] = shipped_values()(situation)
        return Decided(links, gains, changes, time.perf_counter() - start if start else 0.0)


class LiveAnswers:
    """A process that decides again what answers touch. All methods return at once, but for `wait`."""

    def __init__(self, folder: str | Path, seconds: float = 0.0) -> None:
        """`seconds` is how long it should take until answers count."""
        self.decided: Decided | None = None
        self.status, self.reason = MAKING, ""
        self._ready_at = time.monotonic() + seconds
        self._changed = threading.Condition()
        self._wanted: Answers = {}
        self._sent: Answers = {}
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(str(folder), theirs), daemon=True)
        self._process.start()
        theirs.close()
        for work in (self._listen, self._send):
            threading.Thread(target=work, daemon=True).start()

    @staticmethod
    def of_run(folder: str | Path, record: Mapping[str, Any]) -> LiveAnswers:
        """For the run in a folder."""
        seconds = as_dict(as_dict(record.get("result")).get("seconds")).values()
        whole = sum(float(one) for one in seconds if is_number(one))
        return LiveAnswers(folder, whole * (SHARE if (Path(folder) / KEPT).is_file() else 1.0))

    def close(self) -> None:
        """End the process."""
        with self._changed:
            self.status, self.reason = FAILED, "the review has ended"
            self._changed.notify_all()
        self._process.terminate()
        self._process.join(5)

    def tell(self, answers: Answers) -> None:
        """These are all answers that stand now."""
        with self._changed:
            self._wanted = dict(answers)
            if self.status == READY and self._wanted != self._sent:
                self.status = DECIDING
            self._changed.notify_all()

    def wait(self, seconds: float) -> bool:
        """Wait until the last answers have counted; False if they have not by then."""
        with self._changed:
            self._changed.wait_for(lambda: self.status != DECIDING, seconds)
            return self.status == READY

    @property
    def text(self) -> str:
        """A sentence for people."""
        with self._changed:
            if self.status == MAKING:
                return f"Answers will count at once {self._when()}. Those given before will count then."
            if self.status == FAILED:
                return f"Answers do not count at once: {self.reason}. They are kept all the same."
            return "Deciding again what the answers touch." if self.status == DECIDING else "Answers count at once."

    def _when(self) -> str:
        left = self._ready_at - time.monotonic()
        if left < 5:
            return "in a few seconds" if left > -30 else "soon"
        return f"in about {round(left, -1) or 10:.0f} s" if left < 90 else f"in about {left / 60:.0f} min"

    # ---- the other process ------------------------------------------------------------------------------------------

    def _send(self) -> None:
        """Send answers when the process waits for some; it is never sent more than it reads at once."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self.status in (DECIDING, FAILED))
                if self.status == FAILED:
                    return
                if self._sent is self._wanted:  # under way
                    self._changed.wait()
                    continue
                answers = self._sent = self._wanted
                self._is_under_way = True
            try:
                self._connection.send(answers)
            except (OSError, ValueError):
                return  # the other thread hears of it as well
            with self._changed:
                self._changed.wait_for(lambda: not self._is_under_way or self.status == FAILED)

    def _listen(self) -> None:
        """Take what the process says, until it ends."""
        reason = ""
        while not reason:
            try:
                kind, told = self._connection.recv()
            except (EOFError, OSError):
                self._process.join(5)
                reason = f"the process that decides has ended ({self._process.exitcode})"
                break
            with self._changed:
                if kind == FAILED:
                    reason = told
                    break
                self.decided = told
                if kind == DECIDING:  # more is to come
                    self._changed.notify_all()
                    continue
                self._is_under_way = False
                self.status = READY if self._wanted == self._sent else DECIDING
                self._changed.notify_all()
        with self._changed:
            if self.status != FAILED:
                self.status, self.reason = FAILED, reason
            self._is_under_way = False
            self._changed.notify_all()

    _is_under_way = False


def _serve(folder: str, connection: Connection) -> None:
    """Make the run live, then decide again for every message; what cannot be done ends the process with a reason."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal, for the page: that ends this process as well
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        live = Resumed.open(folder).live()
        asker, start = Asker(live), 0.0
        connection.send((READY, Decided.of(live, asker)))

        def tell(changes: Sequence[Change]) -> None:
            """What the neighbours make of it, while what these touch is still decided."""
            connection.send((DECIDING, Decided.of(live, asker, changes, start)))

        live.on_round = tell
        while True:
            answers = connection.recv()
            start = time.perf_counter()
            changes = live.become(answers)
            connection.send((READY, Decided.of(live, asker, changes, start)))
    except (EOFError, BrokenPipeError):
        return
    except InputError as problem:
        reason = str(problem).rstrip(".")
    except MemoryError:
        reason = "there is too little memory"
    except Exception as problem:  # a defect: the page goes on without
        reason = f"the process that decides has failed ({type(problem).__name__})"
    connection.send((FAILED, reason))


def _end_with_parent() -> None:
    """End when the page is gone, however that came; else a process without use would go on working."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(0)
