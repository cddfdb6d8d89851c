"""The report of graphs full of markup, commands and addresses, in a real browser: nothing of it runs or is fetched."""

import os
from pathlib import Path

import rlea
from review.test_browser import browser  # noqa: F401

SHOTS = os.environ.get("RLEA_SCREENSHOTS", "")  # a folder, to look at the page
HOSTILE = [
    "<script>document.title='stolen'</script>",
    "<img src=http://stolen.example/x onerror=\"document.title='stolen'\">",
    "</td></table></body><h1 id=stolen>",
    "</style><style>body{display:none}</style>",
    "\"><svg onload=document.title='stolen'>",
    "' onmouseover='document.title=1' x='",
    "{{7*7}}{% raw %}",
    "\u202egnp.exe\u2066 turned",
    "=HYPERLINK(1)",
    "&lt;b&gt; &amp;amp;",
    "two\nlines\tand \x1b[2J \x9b31m",
    "../../etc/passwd",
]


def hostile_side(letter):
    """Entities whose identifiers, names, attributes, values and relations are hostile."""
    ends = [f"javascript:document.title='{letter}{n}'" for n in range(len(HOSTILE))]
    triples = [(one, HOSTILE[0], other) for one, other in zip(ends, ends[1:] + ends[:1], strict=True)]
    literals = [(one, HOSTILE[n % 3], f"{text} {n}") for n, (one, text) in enumerate(zip(ends, HOSTILE, strict=True))]
    return {"triples": triples, "literals": literals, "names": list(zip(ends, HOSTILE, strict=True))}, ends


def test_a_report_of_hostile_graphs_runs_and_fetches_nothing(browser, tmp_path):  # noqa: F811
    (source, ones), (target, others) = hostile_side("a"), hostile_side("b")
    gold = list(zip(ones, others[1:] + others[:1], strict=True))  # wrong, so that errors are shown as well
    result = rlea.align(rlea.read(source, target, gold=gold), channels=("names",), keep="all")
    rlea.write(tmp_path, result)
    asked, problems = [], []
    page = browser.new_context(viewport={"width": 1300, "height": 900}).new_page()
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("dialog", lambda dialog: (problems.append(dialog.message), dialog.dismiss()))
    page.goto((tmp_path / "report.html").as_uri())
    for summary in page.locator("summary").all():
        summary.click()
    if SHOTS:
        page.screenshot(path=Path(SHOTS) / "hostile-report.png", full_page=True)
    text = page.inner_text("body")
    assert page.evaluate("getComputedStyle(document.body).display") != "none"
    assert "stolen" not in page.title()
    assert page.locator("#stolen, body script, body img, svg[onload], [onmouseover]").count() == 0
    assert "javascript:" not in [page.evaluate("link => link.protocol", link) for link in page.query_selector_all("a")]
    assert "<script>document.title='stolen'</script>" in text
    assert "{{7*7}}{% raw %}" in text
    assert not set(text) & set("\x1b\x9b\u202e\u2066")
    assert [url for url in asked if not url.startswith("file:")] == problems == []
