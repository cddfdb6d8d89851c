"""A self-contained HTML page and the pieces of its sections: no script, no network.

A page is a title and sections: `render_page("demo", [Section("Results", fact_table("result", rows))])`. Every piece
escapes the text that it is given and returns HTML.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

import jinja2
from markupsafe import Markup

from rlea.plain_text import visible


class Section(NamedTuple):
    """A part of a page. `html` is one piece or a sum of several; plain text is escaped."""

    heading: str  # may be empty
    html: Markup


class Plot(NamedTuple):
    """A plot with its title, and a note below it."""

    title: str
    svg: str  # from `rlea.views.report.plots`
    note: str = ""


def render_page(title: str, sections: Iterable[Section]) -> str:
    """The page as text: one file, light and dark, readable on a phone."""
    return visible(_environment().get_template("page.html.j2").render(title=title, sections=list(sections)))


def paragraph(text: str) -> Markup:
    """A few sentences."""
    return make("pieces.html.j2", "paragraph", text)


def tiles(figures: Sequence[tuple[str, str]]) -> Markup:
    """The main figures, as (figure, meaning)."""
    return make("pieces.html.j2", "tiles", figures)


def plot_cards(plots: Sequence[Plot]) -> Markup:
    """Plots side by side, as many as fit."""
    return make("pieces.html.j2", "plot_cards", plots)


def fact_table(title: str, rows: Sequence[tuple[str, str]]) -> Markup:
    """Names and values."""
    return make("pieces.html.j2", "table", (title, ""), rows, (1,))


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[int] = ()) -> Markup:
    """Rows of text under column names; columns `numbers` (from 0) are aligned right."""
    return make("pieces.html.j2", "table", columns, rows, numbers)


def side_by_side(parts: Sequence[Markup]) -> Markup:
    """Pieces in two columns; in one on a phone."""
    return make("pieces.html.j2", "side_by_side", parts)


def fold_away(summary: str, text: str) -> Markup:
    """Preformatted text that is shown on demand."""
    return make("pieces.html.j2", "fold_away", summary, text)


def make(template: str, macro: str, *given: Any) -> Markup:
    """The output of a macro of a template in this folder."""
    made: Markup = getattr(_environment().get_template(template).module, macro)(*given)
    return made


@cache
def _environment() -> jinja2.Environment:
    loader, undefined = jinja2.PackageLoader("rlea.views.report", "."), jinja2.StrictUndefined
    return jinja2.Environment(loader=loader, undefined=undefined, autoescape=True, trim_blocks=True, lstrip_blocks=True)
