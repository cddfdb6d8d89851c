"""The page in a real browser: a session by keyboard, undo, reload, two windows, a server that is killed.

Needs the package playwright (the extra `browser`) and a Chromium; skipped where one of them is not found.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time

import pytest

from review.conftest import NUMBER, SCRIPT, S, T
from rlea.verdicts import VerdictStore

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.fixture(scope="module")
def browser():
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install 'rlea[browser]'")
    if CHROMIUM is None:
        pytest.skip("no chromium is installed")
    with api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


class Serving:
    """`rlea review` in a process that can be killed and started again at the same port."""

    def __init__(self, folder):
        self.folder, self.process = folder, None
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]

    def start(self):
        command = [sys.executable, "-u", "-m", "rlea", "review", str(self.folder), "--no-browser", "--quiet"]
        command += ["--reviewer", "Ann", "--port", str(self.port)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ})
        return self.process.stdout.readline().split(" at ")[1].split(" ")[0]

    def kill(self):
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            self.process.stdout.close()
            self.process = None


@pytest.fixture
def serving(folder):
    one = Serving(folder)
    yield one
    one.kill()


@pytest.fixture
def window(browser):
    """Pages of one browser, whose console must stay empty but for requests to a server that is gone."""
    context = browser.new_context(viewport={"width": 1300, "height": 900})
    problems = []

    def open_page(address):
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda said: problems.append(said.text) if said.type == "error" else None)
        page.on("request", lambda request: problems.append(request.url) if "127.0.0.1" not in request.url else None)
        page.goto(address)
        page.wait_for_selector(".ends")
        return page

    open_page.problems = problems
    yield open_page
    context.close()


def press(page, key):
    """Press a key and wait until the page says what came of it."""
    before = page.text_content("#status")
    page.keyboard.press(key)
    page.wait_for_function("before => document.getElementById('status').textContent !== before", arg=before)


def shown(page):
    return page.locator(".ends .identifier").all_text_contents()


def log(folder):
    with VerdictStore.of_run(folder) as store:
        return store.entries()


def test_thirty_verdicts_by_keyboard(site, window, folder):
    page = window(site.server.url)
    pairs, kinds = [], ["accept", "reject", "skip", "other"]
    for number in range(30):
        pairs.append(shown(page))
        press(page, "yns1"[number % 4])
        assert page.text_content("#status").startswith("Saved: ")
        entry = log(folder)[-1]  # on the disk when the page says so
        assert ([entry.source, entry.target], entry.answer) == (pairs[-1], kinds[number % 4])
    assert len(log(folder)) == 30
    assert len({tuple(pair) for pair in pairs}) == 30
    assert "30 answers, 30 of them yours" in page.text_content("#progress")
    press(page, "u")
    assert shown(page) == pairs[-1]
    assert log(folder)[-1].undoes == 30
    assert "29 answers" in page.text_content("#progress")
    assert window.problems == []


def test_a_page_that_is_loaded_again_shows_the_same_pair(site, window, folder):
    page = window(site.server.url)
    press(page, "y")
    pair = shown(page)
    page.reload()
    page.wait_for_selector(".ends")
    assert shown(page) == pair
    assert len(log(folder)) == 1
    assert "token" not in page.url


def test_two_windows_show_two_pairs_and_hear_of_each_other(site, window, folder):
    address = site.server.url
    first, second = window(address), window(address)
    assert shown(first) != shown(second)
    press(first, "y")
    press(second, "n")
    press(first, "y")
    assert "3 answers" in first.text_content("#progress")
    assert len({(one.source, one.target) for one in log(folder)}) == 3


@pytest.mark.slow
def test_a_killed_server_is_waited_for(window, serving, folder):
    """The answer that could not be sent is sent once the server is back: none is lost, none doubled."""
    page = window(serving.start())
    for number in range(2):
        press(page, "y")
        pair = shown(page)
        serving.kill()
        page.keyboard.press("n")
        page.wait_for_selector("#trouble:not([hidden])")
        assert "not saved yet" in page.text_content("#trouble")
        assert len(log(folder)) == 2 * number + 1
        address = serving.start()
        again = page.context.new_page()  # the new server has a new token, which this window fetches
        again.goto(address)
        again.close()
        page.wait_for_function("() => document.getElementById('status').textContent.startsWith('Saved')")
        page.wait_for_selector("#trouble", state="hidden")
        page.wait_for_function(
            "pair => document.querySelectorAll('.ends .identifier')[0].textContent !== pair", arg=pair[0]
        )
        entries = log(folder)
        assert len(entries) == 2 * number + 2
        assert ([entries[-1].source, entries[-1].target], entries[-1].answer) == (pair, "reject")
    assert len({one.key for one in log(folder)}) == 4


@pytest.mark.slow
def test_a_server_killed_at_any_moment_loses_and_doubles_nothing(serving, window, folder):
    """Killed before, while and after it keeps an answer, of every kind: the page goes on once it is back."""
    page, kinds = window(serving.start()), ["accept", "reject", "skip", "other", "accept", "undo"]
    for number, key in enumerate("yns1yu"):
        before = page.text_content("#status")
        page.keyboard.press(key)
        time.sleep(0.03 * number)
        serving.kill()
        again = page.context.new_page()
        again.goto(serving.start())
        again.close()
        page.wait_for_function("before => document.getElementById('status').textContent !== before", arg=before)
        page.wait_for_selector("#trouble", state="hidden")
        assert [one.answer for one in log(folder)] == kinds[: number + 1]
    entries = log(folder)
    assert len({one.key for one in entries}) == len(entries)
    assert shown(page) == [entries[-2].source, entries[-2].target]


def test_when_the_next_pair_does_not_come_the_answer_is_not_given_twice(site, window, folder):
    page = window(site.server.url)
    page.route("**/api/next*", lambda route: route.abort())
    pair = shown(page)
    page.keyboard.press("y")
    page.wait_for_selector("#trouble:not([hidden])")
    assert "Your last answer is saved" in page.text_content("#trouble")
    page.keyboard.press("y")  # the pair is still there, and keys wait
    page.unroute("**/api/next*")
    page.wait_for_selector("#trouble", state="hidden")
    assert shown(page) != pair
    assert len(log(folder)) == 1


def test_text_of_the_graphs_does_nothing(site, window, folder):
    with VerdictStore.of_run(folder) as store:
        store.answer(f"{S}t{NUMBER - 1}", f"{T}t{NUMBER - 1}", "accept", reviewer=SCRIPT, key="by a script")
    page = window(site.server.url)
    page.keyboard.press("/")
    page.keyboard.type("script")
    page.locator("#found button").first.click()
    page.wait_for_function("name => document.querySelector('.ends .name').textContent === name", arg=SCRIPT)
    assert page.title() != "stolen"
    assert page.locator("main img, main script").count() == 0
    assert shown(page) == [f"{S}t{NUMBER - 1}", f"{T}t{NUMBER - 1}"]
    assert SCRIPT in page.text_content(".said")
    assert window.problems == []


def test_another_target_by_search(site, window, folder):
    page = window(site.server.url)
    source = shown(page)[0]
    page.keyboard.press("o")
    page.keyboard.type("Town 35")
    page.keyboard.press("Enter")  # whatever is shown by then, it goes to what was typed
    page.wait_for_selector("#found button:focus")
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.getElementById('status').textContent.startsWith('Saved')")
    (entry,) = log(folder)
    assert (entry.source, entry.answer, entry.instead) == (source, "other", f"{T}t35")


def test_keys_in_fields_are_letters(site, window, folder):
    page = window(site.server.url)
    page.locator("#reviewer").fill("")
    page.locator("#reviewer").type("Sunny")
    page.keyboard.press("Tab")
    press(page, "y")
    (entry,) = log(folder)
    assert entry.reviewer == "Sunny"


def test_blind_mode_shows_no_score(site, window, folder):
    page = window(site.server.url)
    assert page.locator(".decision, .channels").count() == 2
    press(page, "b")
    assert page.locator(".decision, .channels, .why").count() == 0
    press(page, "y")
    assert log(folder)[0].is_blind
    assert page.locator(".decision, .channels, .why").count() == 0


def test_the_threshold_tells_what_to_expect(site, window):
    page = window(site.server.url)
    page.locator("#threshold").fill("90")
    assert page.text_content("#threshold-value") == "0.90"
    links, precision, _ = page.locator("#expected dd").all_text_contents()
    assert links == "4"  # 37, 38, 39, 40 of 41
    assert precision == "0.94"


@pytest.mark.parametrize("width", [390, 1300])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_and_can_be_read(browser, site, width, scheme):
    """No scrolling to the side, everything has a name, and text stands out from its ground (WCAG AA)."""
    context = browser.new_context(viewport={"width": width, "height": 844}, color_scheme=scheme)
    page = context.new_page()
    page.goto(site.server.url)
    page.wait_for_selector(".ends")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    nameless = page.evaluate(
        "() => [...document.querySelectorAll('button, input, select')].filter(e => !(e.textContent.trim() || "
        "e.labels?.length || e.ariaLabel)).map(e => e.outerHTML)"
    )
    assert nameless == []
    for landmark in ("header", "main", "aside", "[role=toolbar]", "#status[role=status][aria-live]", "[role=search]"):
        assert page.locator(landmark).count() == 1, landmark
    assert page.evaluate("document.activeElement.id") == "heading"
    poor = page.evaluate(CONTRAST)
    assert poor == []
    context.close()


CONTRAST = """() => {
  const parse = (text) => (text.match(/[\\d.]+/g) || [0, 0, 0, 0]).map(Number);
  const part = (v) => (v / 255 <= .03928 ? v / 255 / 12.92 : ((v / 255 + .055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => .2126 * part(r) + .7152 * part(g) + .0722 * part(b);
  const ground = (e) => {
    for (; e; e = e.parentElement) {
      const colour = parse(getComputedStyle(e).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const poor = [];
  for (const e of document.querySelectorAll('main *, aside *, header *, .actions *')) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || e.closest('svg') || e.closest('kbd') || e.disabled || !e.checkVisibility()) continue;
    const a = light(parse(getComputedStyle(e).color)), b = light(ground(e));
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (ratio < 4.5) poor.push([e.tagName, e.className, e.textContent.slice(0, 30), ratio]);
  }
  return poor;
}"""
