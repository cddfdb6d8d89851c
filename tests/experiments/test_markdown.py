"""The little Markdown of tables and remarks becomes HTML, and hostile text stays text."""

from hypothesis import given
from hypothesis import strategies as st

from rlea.experiments.page import render_markdown


def test_blocks():
    html = render_markdown("First\nline, **bold** and `code`.\n\n- one\n- two\n\n| a | n |\n|---|---|\n| x<br>y | .5 |")
    assert "<p>First line, <strong>bold</strong> and <code>code</code>.</p>" in html
    assert "<ul><li>one</li><li>two</li></ul>" in html
    assert "x<br>y" in html
    assert '<td class="num"><span class="short">.5</span></td>' in html
    assert '<span class="long">' in render_markdown(f"| a |\n|---|\n| {'word ' * 20} |")


@given(st.text(alphabet="<>&\"'|*`- \nab.1"))
def test_no_text_becomes_markup(text):
    html = str(render_markdown(f"start {text}"))
    for tag in ("<script", "<a", "<b>", "<1"):
        assert tag not in html


def test_script_is_text():
    assert "&lt;script&gt;" in render_markdown("| <script> |\n|---|\n| <script>alert(1)</script> |")
