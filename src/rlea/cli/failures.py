"""What the command line says when something goes wrong: one sentence, a code other than 0, and a log of what it was.

Code 2 is bad input, 1 is a machine or a program that failed, 130 and 143 are interrupts.
"""

from __future__ import annotations

import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from rlea.views.terminal import as_text, err

SHOW = False  # --debug: tracebacks are shown


def tell(problem: Exception) -> int:
    """Print one sentence about an error, and return the exit code."""
    from rlea.errors import InputError

    if SHOW:
        sys.stderr.write("".join(traceback.format_exception(problem)))
    if isinstance(problem, InputError):
        text, code = str(problem), 2
    elif isinstance(problem, MemoryError):
        text, code = "out of memory; give smaller graphs, or a machine with more memory.", 1
    elif isinstance(problem, OSError):
        place = "" if problem.filename is None else f"{str(problem.filename)[:1000]}: "
        text, code = f"{place}{problem.strerror or problem}.", 1
    else:
        reason = " ".join(str(problem).split())[:200]
        text = f"the program failed, which it should not ({type(problem).__name__}{': ' if reason else ''}{reason})."
        if not SHOW:
            text += f" {_keep(problem)}"
        code = 1
    err.print(f"[red]Error:[/red] {as_text(text)}", soft_wrap=True, highlight=False)
    return code


def _keep(problem: Exception) -> str:
    """Write the traceback to a temporary file, and say where; --debug shows it where no file can be written."""
    from rlea.record import command

    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="rlea-error-", suffix=".log", delete=False, encoding="utf-8", errors="backslashreplace"
        ) as file:
            file.write(command() + "\n\n" + "".join(traceback.format_exception(problem)))
        return f"Please report it with {file.name}; `rlea --debug` shows the same."
    except OSError:
        return "`rlea --debug` shows where; please report it."


def forgiving_output() -> None:
    """Where the terminal or a pipe cannot hold a character, its escape is printed in its place."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            with suppress(ValueError, OSError):
                reconfigure(errors="backslashreplace")


@contextmanager
def end_on_terminate() -> Iterator[None]:
    """End on SIGTERM as on an interrupt: what was being written is taken away, as it is not whole."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
