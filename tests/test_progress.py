"""Progress: ticks, the one bar of all stages, and the seconds of each."""

from __future__ import annotations

import itertools
import re

import pytest

import rlea
from rlea.graph import Links
from rlea.io.synthetic import SyntheticSettings, generate, write_synthetic
from rlea.plan import plan_stages
from rlea.progress import Overall, StageLog, tick, ticking
from rlea.views import terminal


def test_ticks_repeat_the_last_report_of_their_block():
    heard = []
    tick("nobody listens")
    with ticking(lambda *report: heard.append(report)) as report:
        tick("nothing was reported yet")
        report("games", 1, 3, "begin")
        tick("deciding")
    tick("nobody listens any more")
    assert heard == [("games", 1, 3, "begin"), ("games", 1, 3, "deciding")]


def test_the_bar_of_all_stages_never_goes_back():
    overall = Overall({"a": 10.0, "b": 30.0, "c": 60.0}, now=100.0)
    shares = []
    for report in (("a", 1, 2), ("unknown", 1, 1), ("b", 0, 3), ("a", 0, 2), ("b", 3, 3), ("c", 5, 4)):
        overall.report(*report)
        shares.append(round(overall.share, 6))
    assert shares == [0.05, 0.05, 0.1, 0.1, 0.4, 1.0]
    assert overall.left(now=500.0) == 0


def test_the_time_left_goes_by_the_speed_of_the_run():
    overall = Overall({"a": 100.0, "b": 100.0}, now=0.0)
    assert overall.left(now=0.0) == 200
    overall.report("b", 0, 1)
    assert overall.left(now=100.0) == pytest.approx(100)
    assert 200 < overall.left(now=300.0) < 300  # three times as slow as planned, a part of which is still believed
    assert Overall({}, now=0.0).left(now=1.0) == 0


def test_the_log_has_a_line_for_each_stage():
    lines, now = [], [0.0]
    log = StageLog(lines.append, lambda: now[0])
    reports = [(1, "read", 0, ""), (3, "games", 0, "first"), (4, "games", 0, "a tick"), (9, "write", 0, "")]
    for second, stage, done, note in reports:
        now[0] = second
        log.report(stage, done, note)
    now[0] = 10
    log.end()
    assert lines == ["read: 2.0 s", "games: 6.0 s (first)", "write: 1.0 s", "done after 10.0 s"]


@pytest.mark.parametrize("seeds", [0.5, 0.0])
@pytest.mark.parametrize("matcher", ["fused", "best-first", "paris"])
def test_the_plan_has_the_stages_of_a_run_in_their_order(matcher, seeds):
    pair = generate(SyntheticSettings(240, seeds=seeds, seed=1)) if seeds else no_seeds()
    heard = []
    rlea.align(pair, matcher=matcher, pool="all", progress=lambda stage, *_: heard.append(stage))
    plan = plan_stages(pair, rlea.AlignSettings(matcher=matcher))
    *planned, last = plan
    assert last == "write"
    first = [heard.index(stage) for stage in planned]
    assert first == sorted(first)
    assert all(seconds > 0 for seconds in plan.values())


@pytest.mark.parametrize("seeds", [0.5, 0.0])
def test_long_stages_of_the_agent_tick(seeds):
    pair = generate(SyntheticSettings(240, seeds=seeds, seed=1)) if seeds else no_seeds()
    heard = []
    rlea.align(pair, pool="all", progress=lambda *report: heard.append(report[:3]))
    ticked = {report[0] for before, report in itertools.pairwise(heard) if before == report}
    late = ("supervision", "calibration") if seeds else ("null models", "confidences")
    assert {f"agent: {name}" for name in ("channels", "games", "decisions", *late)} <= ticked


def no_seeds():
    pair = generate(SyntheticSettings(240, seeds=0.5, seed=1))
    return rlea.GraphPair(pair.name, pair.source, pair.target, train=Links.empty())


def test_no_plan_where_the_time_is_not_known():
    pair = no_seeds()
    assert plan_stages(pair, rlea.AlignSettings(matcher="rlea", preset="paper", embedding="aligne")) == {}
    assert next(iter(plan_stages(pair, rlea.AlignSettings(embedding="aligne")))) == "aligne"


def test_lines_and_bars_say_how_long_it_may_take(monkeypatch, capsys):
    seen = []
    reporter = terminal.Reporter(lambda *report: seen.append(report))
    reporter("read", 0, 1)
    reporter.expect({})
    reporter("read", 1, 1)
    reporter.expect({"a": 50.0, "b": 50.0})
    reporter("b", 0, 1, "a note")
    assert seen[:2] == [("read", 0, 1, ""), ("read", 1, 1, "")]
    assert seen[2][:2] == ("b", 0.5)
    assert re.fullmatch(r"a note, (about \d+|a few) s left", seen[2][3])
    with terminal.make_bars(transient=True) as bars:
        reporter = terminal.Reporter(terminal.bar_reporter(bars), bars)
        reporter("read", 0, 1)
        reporter.expect({"a": 50.0, "b": 50.0})
        reporter("b", 0, 1, "a note")
        (task,) = bars.tasks
        assert (task.description.strip(), task.completed) == ("b", 0.5)
        assert "left" in task.fields["note"]


def test_verbose_and_log_say_what_stages_took(run_cli, tmp_path):
    write_synthetic(tmp_path / "pair", SyntheticSettings(60, seeds=0.3, seed=5))
    log = tmp_path / "logs" / "run.log"
    arguments = ["align", tmp_path / "pair", "--matcher", "mutual", "--log", log]
    done = run_cli(*arguments, "--verbose", "-q")
    assert done.code == 0, done.err
    stages = re.findall(r"^([a-z ]+): \d+\.\d s", done.err, re.M)
    assert stages[0] == "read"
    assert stages[-1] == "write"
    lines = log.read_text().splitlines()
    assert all(re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00 ", line) for line in lines)
    assert [line.split(" ", 1)[1].split(":")[0] for line in lines][1:-1] == stages
    assert re.search(r" done after \d+\.\d s$", lines[-1])
    # A second run adds to it, and bad input is in it.
    assert run_cli(*arguments, "--gold", tmp_path / "no.tsv").code == 2
    more = log.read_text().splitlines()
    assert more[: len(lines)] == lines
    assert " error: " in more[-2] or " error: " in more[-3]
    assert " stopped after " in more[-1]


def test_a_log_that_cannot_be_written_is_refused(run_cli, tmp_path):
    done = run_cli("align", tmp_path, "--log", tmp_path)
    assert done.code == 2
    assert "is a folder" in done.err.replace("\n", " ")
