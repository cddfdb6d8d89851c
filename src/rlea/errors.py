"""The one exception that users are meant to see."""

from __future__ import annotations

from pathlib import Path


class InputError(Exception):
    """Bad input: one sentence that names the file, the line and the remedy.

    The command line prints the sentence and exits with code 2; it prints and writes nothing else.

    >>> import rlea
    >>> rlea.read("nowhere")
    Traceback (most recent call last):
        ...
    rlea.errors.InputError: nowhere: there is no such folder...
    """

    def __init__(
        self, problem: str, *, path: str | Path | None = None, line: int | None = None, remedy: str = ""
    ) -> None:
        place = "" if path is None else f"{path}"
        if line is not None:
            place += f", line {line}"
        text = f"{place}: {problem}" if place else problem
        if remedy:
            text = f"{text.rstrip('.')}; {remedy}"
        super().__init__(text if text.endswith(".") else text + ".")
        self.path = path
        self.line = line
