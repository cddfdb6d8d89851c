"""Pages of any kind: a title, sections, and pieces that let nothing foreign out."""

from __future__ import annotations

import re
from html import escape
from html.parser import HTMLParser

import pytest
from markupsafe import Markup

from rlea.views.report import page
from rlea.views.report.page import Plot, Section, paragraph, render_page, table
from rlea.views.report.plots import line_plot

HOSTILE = '<script>alert("x")</script>\'&'
VOID = {"meta", "br", "hr", "img", "input", "link"}


class Nesting(HTMLParser):
    """Every element that is opened is closed, in order."""

    def __init__(self):
        super().__init__()
        self.open, self.seen = [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def parsed(text):
    reader = Nesting()
    reader.feed(text)
    reader.close()
    assert reader.open == []
    return reader


PIECES = {
    "paragraph": paragraph,
    "tiles": lambda text: page.tiles([("1", text), (text, "b")]),
    "plot_cards": lambda text: page.plot_cards([Plot(text, line_plot([(0, 1)], text, text), text)]),
    "fact_table": lambda text: page.fact_table(text, [(text, text)]),
    "table": lambda text: table([text, "n"], [[text, "1"]], [1]),
    "side_by_side": lambda text: page.side_by_side([paragraph(text), page.fact_table("", [])]),
    "fold_away": lambda text: page.fold_away(text, text),
}


@pytest.mark.parametrize("name", PIECES)
def test_a_piece_escapes_what_it_is_given(name):
    made = PIECES[name](HOSTILE)
    assert isinstance(made, Markup)
    assert "<script" not in made
    assert "alert" in made
    parsed(made)


def test_a_page_has_its_sections_in_order_and_is_whole():
    sections = [Section("", paragraph("first")), *(Section(f"Of {name}", make("b")) for name, make in PIECES.items())]
    text = render_page(f"all {HOSTILE}", sections)
    reader = parsed(text)
    assert reader.seen.count("h1") == reader.seen.count("title") == 1
    assert re.findall(r"<h2>(.*?)</h2>", text) == [f"Of {name}" for name in PIECES]
    assert text.index("first") < text.index("Of paragraph")
    assert f"<h1>all {escape(HOSTILE).replace('&quot;', '&#34;').replace('&#x27;', '&#39;')}</h1>" in text
    assert "script" not in reader.seen
    assert not re.search(r"<(script|link|img|iframe|object|embed)\b|@import|url\(|\b(src|href)=|https?:", text)
    assert '<meta name="viewport" content="width=device-width' in text
    assert "&lt;script" in render_page("t", [Section("s", HOSTILE)])  # plain text in place of a piece
    cells = re.findall(r"<t[hd][^>]*>", table(["a", "b"], [["x", "1"]], [1]))
    assert cells == ["<th>", '<th class="num">', "<td>", '<td class="num">']
