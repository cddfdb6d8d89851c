"""Answers that count at once, in a real browser: the page is up before they do, and shows what they changed."""

import os
from pathlib import Path

from review.test_browser import browser, serving, window  # noqa: F401
from review.test_live import PATIENCE, T, folder, made  # noqa: F401

WAIT = 1000 * PATIENCE
SHOTS = os.environ.get("RLEA_SCREENSHOTS", "")  # a folder, to look at the page


def shoot(page, name):
    if SHOTS:
        page.screenshot(path=Path(SHOTS) / f"{name}.png", full_page=True)


def look_up(page, name):
    """Search a pair by a part of an identifier of the source, and show it."""
    page.fill("#text", name)
    page.click("#found button:not([disabled])")
    page.wait_for_function("name => document.querySelector('.identifier').textContent === name", arg=name)


def test_an_answer_counts_for_its_neighbours(serving, window):  # noqa: F811
    page = window(serving.start())
    assert "Answers will count at once" in page.text_content("#live")
    look_up(page, "http://s.org/head00")
    page.wait_for_function("document.querySelector('#live').textContent === 'Answers count at once.'", timeout=WAIT)
    shoot(page, "ready")
    other = page.locator(".rivals button").first
    assert other.is_visible()
    page.keyboard.press("Escape")
    page.locator("body").press("1")
    page.wait_for_function("document.querySelector('#status').textContent.startsWith('Saved')")
    page.wait_for_function("document.querySelector('#live').textContent === 'Answers count at once.'", timeout=WAIT)
    page.wait_for_selector("#progress details")
    listed = page.locator("#progress details")
    assert listed.count() >= 1
    for place in range(listed.count()):
        listed.nth(place).locator("summary").click()
    shoot(page, "changed")
    page.locator("body").press("u")
    page.wait_for_function("document.querySelector('#status').textContent.startsWith('Undone')")
    page.wait_for_function("!document.querySelector('#progress').textContent.includes('Links added')", timeout=WAIT)
    assert window.problems == []


def test_a_killed_server_has_its_answers_counted_again(serving, window):  # noqa: F811
    from rlea.verdicts import VerdictStore

    page = window(serving.start())
    page.locator("body").press("y")
    page.wait_for_function("document.querySelector('#status').textContent.startsWith('Saved')")
    serving.kill()
    again = window(serving.start())
    again.wait_for_function("document.querySelector('#live').textContent === 'Answers count at once.'", timeout=WAIT)
    assert "1 answer" in again.text_content("#progress")
    with VerdictStore.of_run(serving.folder) as store:
        assert len(store.entries()) == 1
