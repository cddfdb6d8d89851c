"""A small subset of Markdown as HTML: paragraphs, lists, tables, bold and code."""

from __future__ import annotations

import re

from markupsafe import Markup, escape

from rlea.views.report.page import table

SHORT = 40  # cells of at most this many letters stay on one line
_CODE = re.compile(r"`([^`]+)`")
_BOLD = re.compile(r"\*\*([^*]+)\*\*")


def render_markdown(text: str) -> Markup:
    """Blocks are separated by blank lines; anything else is shown as it is written."""
    return Markup("\n").join(_block(block) for block in re.split(r"\n\s*\n", text.strip()) if block)


def _block(block: str) -> Markup:
    lines = block.splitlines()
    if len(lines) > 1 and lines[0].startswith("|") and set(lines[1]) <= set("|-"):
        head, _, *rows = (_cells(line) for line in lines)
        numbers = [place for place in range(len(head)) if all(_is_number(row[place]) for row in rows)]
        return table([_inline(cell) for cell in head], [[_cell(cell) for cell in row] for row in rows], numbers)
    if all(line.startswith("- ") for line in lines):
        return Markup("<ul>{}</ul>").format(
            Markup("").join(Markup("<li>{}</li>").format(_inline(line[2:])) for line in lines)
        )
    return Markup("<p>{}</p>").format(_inline(" ".join(lines)))


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _is_number(cell: str) -> bool:
    return re.match(r"(\*\*)?[-+]?[\d.]", cell) is not None or cell in ("-", "")


def _inline(text: str) -> Markup:
    safe = str(escape(text)).replace("&lt;br&gt;", "<br>")
    return Markup(_BOLD.sub(r"<strong>\1</strong>", _CODE.sub(r"<code>\1</code>", safe)))


def _cell(text: str) -> Markup:
    """Short cells stay on one line, so that names and figures do not break on a narrow page; long ones get room."""
    shape = '<span class="short">{}</span>' if len(text) <= SHORT else '<span class="long">{}</span>'
    return Markup(shape).format(_inline(text)) if text else Markup("")
