"""Text of the data where something would take it for more than that: terminals, pages, spreadsheets, JSON."""

from __future__ import annotations

import json
import re
from typing import Any

# Control characters but the line break, which also a terminal obeys (U+009B begins a command like ESC [), the
# overrides that turn the direction of all that follows, and halves of characters, which no stream can hold.
_COMMANDS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_FORMULA = re.compile(r"[=+@\-]")
_NUMBER = re.compile(r"[+-]?[0-9][0-9.,]*")
_UNSAFE_IN_JSON = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    """Text without characters that are commands: each becomes a blank."""
    return _COMMANDS.sub(" ", text)


def cell(text: str) -> str:
    """A label as one cell of a table: on one line, and never a formula, which a spreadsheet would run.

    >>> cell("=1+1"), cell("-5"), cell("Ada")
    ("'=1+1", '-5', 'Ada')
    """
    line = visible(text).replace("\n", " ")
    return f"'{line}" if _FORMULA.match(line) and not _NUMBER.fullmatch(line) else line


def json_line(value: Any, *, only_ascii: bool = False) -> str:
    """A value as JSON on one line that a terminal can show: what it would obey is escaped."""
    text = json.dumps(value, ensure_ascii=only_ascii, default=str)
    return _UNSAFE_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
