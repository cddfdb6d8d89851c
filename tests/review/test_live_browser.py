"""Answers that count at once, in a real browser: the page is up before they do, and shows what they changed."""

import os
from pathlib import Path

from review.test_browser import browser, serving, window  # noqa: F401
from review.test_live import PATIENCE, folder, made  # noqa: F401
from rlea.verdicts import VerdictStore

WAIT = 1000 * PATIENCE
SHOTS = os.environ.get("RLEA_SCREENSHOTS", "")  # a folder, to look at the page


def shoot(page, name):
    if SHOTS:
        for width in (390, 1300):
            for scheme in ("light", "dark"):
                page.set_viewport_size({"width": width, "height": 900})
                page.emulate_media(color_scheme=scheme)
                page.screenshot(path=Path(SHOTS) / f"{name}-{width}-{scheme}.png", full_page=True)


def counts(page):
    """Wait until all answers have counted."""
    page.locator("#live:text-is('Answers count at once.')").wait_for(timeout=WAIT)


def test_an_answer_counts_for_its_neighbours(window, serving):  # noqa: F811
    page = window(serving.start())
    assert "Answers will count at once" in page.text_content("#live")
    page.fill("#text", "http://s.org/head00")
    page.locator("#found button:not([disabled])").first.click()
    page.locator(".identifier:text-is('http://s.org/head00')").wait_for()
    counts(page)
    shoot(page, "ready")
    page.locator("body").press("1")
    page.locator("#status", has_text="Saved").wait_for()
    counts(page)
    listed = page.locator("#progress details")
    listed.first.wait_for()
    for place in range(listed.count()):
        listed.nth(place).locator("summary").click()
    shoot(page, "changed")
    page.locator("body").press("u")
    page.locator("#status", has_text="Undone").wait_for()
    page.locator("#progress", has_text="0 answers").wait_for()
    counts(page)
    page.locator("summary", has_text="Links added").wait_for(state="detached", timeout=WAIT)
    assert window.problems == []


def test_a_server_that_is_started_again_counts_what_was_answered(window, serving):  # noqa: F811
    page = window(serving.start())
    page.locator("body").press("y")
    page.locator("#status", has_text="Saved").wait_for()
    serving.kill()
    again = window(serving.start())
    counts(again)
    assert "1 answer," in again.text_content("#progress")
    with VerdictStore.of_run(serving.folder) as store:
        assert len(store.entries()) == 1
