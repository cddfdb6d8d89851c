"""The text of an XML file: its encoding by what it declares, and whether it is well-formed."""

from __future__ import annotations

import codecs
import re
from pathlib import Path
from typing import TYPE_CHECKING

from rlea.errors import InputError
from rlea.io.limits import ENTITIES, NESTING
from rlea.io.readers.text import check_text, decoded, read_bytes

if TYPE_CHECKING:
    from xml.parsers.expat import ExpatError

_INVALID_TOKEN = 4  # expat's code for a character that may not stand where it does
_DECLARATION = re.compile(rb"""\A\s*<\?xml\s[^>]*?\bencoding\s*=\s*["']([A-Za-z][A-Za-z0-9._-]*)["']""")
_REFERENCE = re.compile(r"&([^&;\s]+);")
_IN_TEXT = re.compile(r"""\A(\s*<\?xml\s[^>]*?)\s+encoding\s*=\s*["'][^"']*["']""")


def read_xml(path: Path) -> str:
    """The text of an XML file, without the name of its encoding.

    The RDF parser takes a file that was cut off for a whole one and gives no lines; expat does better on both, and
    refuses entities that expand without end.
    """
    from xml.parsers import expat

    text = _IN_TEXT.sub(r"\1", _decode(path))
    error = _xml_error(text, path)
    if error is not None and error.code == _INVALID_TOKEN:
        # Expat knows the letters of an old Unicode only, such as é but not ș; without them it judges the rest.
        error = _xml_error(re.sub(r"[^\x00-\x7f]", "x", text), path)
    if error is not None:
        problem = f"is no well-formed XML ({expat.errors.messages[error.code]})"
        remedy = "correct it there, or fetch the file again if it was cut off"
        raise InputError(problem, path=path, line=error.lineno, remedy=remedy) from error
    return text


def _decode(path: Path) -> str:
    content = read_bytes(path)
    declared = _DECLARATION.match(content)
    is_utf16 = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    name = declared[1].decode() if declared else "utf-16" if is_utf16 else "utf-8"
    try:
        encoding = codecs.lookup(name).name
    except LookupError as error:
        problem = f"declares the encoding {name}, which is not known"
        raise InputError(problem, path=path, line=1, remedy="save it as UTF-8, and declare that") from error
    if encoding == "utf-8":
        return decoded(path, content)
    try:
        text = content.decode(encoding)
    except (UnicodeDecodeError, LookupError) as error:
        start = error.start if isinstance(error, UnicodeDecodeError) else 0
        line = content.count(b"\n", 0, start) + 1
        problem = f"declares the encoding {name}, which it does not have"
        raise InputError(problem, path=path, line=line, remedy="save it as UTF-8, and declare that") from error
    check_text(path, text)
    return text


def _xml_error(text: str, path: Path) -> ExpatError | None:
    """What expat finds wrong; entities and nesting beyond the limits are raised as they are met.

    The RDF parser expands every entity that is declared, used or not, and expat only those that are used.
    """
    from xml.parsers import expat

    checker = expat.ParserCreate("utf-8", namespace_separator=" ")
    lengths: dict[str, int] = {}
    total = depth = 0
    deepest = NESTING.value

    def declare(name: str, is_parameter: bool, value: str | None, *places: str | None) -> None:
        nonlocal total
        references = [] if value is None else _REFERENCE.findall(value)
        lengths[name] = len(value or "") + sum(lengths.get(one, 0) for one in references)
        total += lengths[name]
        if total > ENTITIES.value:
            problem = "declares entities that stand for more than {} characters"
            raise ENTITIES.exceeded(problem, path, checker.CurrentLineNumber)

    def begin(name: str, attributes: list[str]) -> None:
        nonlocal depth
        depth += 1
        if depth > deepest:
            raise NESTING.exceeded("has more than {} elements within each other", path, checker.CurrentLineNumber)

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1

    checker.EntityDeclHandler = declare
    checker.ordered_attributes = True
    checker.StartElementHandler, checker.EndElementHandler = begin, end
    try:
        checker.Parse(text.encode(), True)
    except expat.ExpatError as error:
        return error
    return None
