"""The one exception that users are meant to see."""

from __future__ import annotations

from pathlib import Path

_LONGEST = 1000  # characters of each part: a sentence that quotes a whole file is none


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]} … {text[-_LONGEST // 2 :]}"


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
        place = "" if path is None else _cut(f"{path}")
        problem, remedy = _cut(problem), _cut(remedy)
        if line is not None:
            place += f", line {line}"
        text = f"{place}: {problem}" if place else problem
        if remedy:
            text = f"{text.rstrip('.')}; {remedy}"
        super().__init__(text if text.endswith(".") else text + ".")
        self.path = path
        self.line = line
