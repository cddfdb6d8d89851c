"""The page of a run: what it counts, what it draws and where."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

import rlea
from rlea.evaluation.metrics import expected_calibration_error, link_metrics
from rlea.graph import Links
from rlea.matching import Matching
from rlea.views.report import run
from rlea.views.report.hardest import PICTURES
from rlea.views.report.learning import CURVE_POINTS, choice_rows, learning_plots
from rlea.views.report.run import judge_links, link_plots

from .test_plots import X0, X1, Y0, Y1, all_places, places, shapes, texts


@pytest.fixture(scope="module")
def result():
    return rlea.align(rlea.read_demo(), matcher="mutual")


def render_run(result, **more):
    """The page as `align` makes it."""
    record = {"result": result.summary(), "embedding_info": result.info}
    return run.render_run(
        result.pair, result.matching, record, trace=result.trace, gold_ranks=result.gold_ranks, **more
    )


# ---- plots ---------------------------------------------------------------------------------------------------------


def test_plots_of_confidence(result):
    drawn = [plot.svg for plot in link_plots(result.matching, result.matching, result.pair.test, False)]
    assert ["guide" in svg for svg in drawn] == [False, False, True]
    assert [len(shapes(svg, "polyline")) for svg in drawn] == [0, 2, 1]
    words = len(texts(drawn[2])) - len(texts(drawn[2], **{"class": "tick"}))
    assert words == 2  # the names of the axes and nothing else
    assert {"precision", "recall"} <= set(texts(drawn[1]))


def test_precision_and_recall_over_the_threshold():
    """Correct at 1.0, wrong at 0.5, correct at 0.25; a fourth gold link is not found."""
    matching = Matching.of([0, 1, 2], [0, 3, 2], [1.0, 0.5, 0.25])
    svg = link_plots(matching, matching, Links.of([0, 1, 2, 3], [0, 1, 2, 3]), False)[1].svg
    for line, values in zip(all_places(svg), ([1, 1 / 2, 2 / 3], [1 / 4, 1 / 4, 2 / 4]), strict=True):
        expected = [(X0 + x * (X1 - X0), Y0 + y * (Y1 - Y0)) for x, y in zip((1, 0.5, 0.25), values, strict=True)]
        assert line == [pytest.approx(point, abs=0.06) for point in expected]


# ---- page -----------------------------------------------------------------------------------------------------------


def test_links_are_judged_as_the_metrics_judge_them(result):
    right, wrong = judge_links(result.matching, result.pair.test)
    assert (right.sum(), wrong.sum()) == (result.links.correct, result.links.judged - result.links.correct)
    gold = Links.of([0, 1], [10, 11])
    right, wrong = judge_links(Matching.of([0, 1, 5, 7], [10, 12, 11, 13], [1, 1, 1, 1]), gold)
    assert right.tolist() == [True, False, False, False]
    assert wrong.tolist() == [False, True, True, False]


def test_without_gold_nothing_is_judged(result):
    pair = replace(result.pair, test=Links.empty())
    text = render_run(replace(result, pair=pair, links=None, ranks=None, coverage=None, gold_ranks=None))
    assert "there are no gold links, so nothing is judged" in text
    assert "judged by gold" not in text
    assert ">verdict</th>" not in text
    assert "calibration error" not in text
    assert "Errors by type" not in text
    assert "Least confident links" in text
    assert len(re.findall("<svg", text)) == 1 + PICTURES


def test_the_page_of_a_run(result):
    few = Links(result.pair.test.source_ids[:100], result.pair.test.target_ids[:100])
    links = link_metrics(result.matching, few)
    assert links.judged < links.matched
    text = render_run(replace(result, pair=replace(result.pair, test=few), links=links, gold_ranks=None))
    unjudged = links.matched - links.judged
    assert f"<b>{links.judged}</b><span>judged by gold: {links.correct} correct; {unjudged} not judged" in text
    assert f"precision, of {links.judged} judged" in text
    text = render_run(result)
    error = expected_calibration_error(result.matching, result.pair.test)
    assert f"expected calibration error: {error:.3f}" in text
    num_wrong = result.links.judged - result.links.correct
    assert f"({num_wrong:,} in total)" in text
    links = "".join(re.findall(r'<table class="links">.*?</table>', text, flags=re.S))
    assert links.count('<td class="num">') == 2 * run.ROWS + min(run.ROWS, num_wrong)
    nothing = Matching.of([], [], [])
    text = render_run(replace(result, matching=nothing, links=link_metrics(nothing, result.pair.test)))
    assert "<b>0</b><span>links</span>" in text


def test_an_agent_shows_its_training(result):
    history = [{"episode": 1 + n, "aligned": 10 * n, "length": 50 - n, "reward": n / 2 - 1} for n in range(5)]
    aligned, length, reward = (places(plot.svg) for plot in learning_plots({"agent": {"history": history}}))
    assert aligned == reward == [(pytest.approx(X0 + n * (X1 - X0) / 4), Y0 + n * (Y1 - Y0) / 4) for n in range(5)]
    assert (length[0], length[-1]) == ((X0, Y1), (X1, Y0))
    text, without = render_run(replace(result, info={"agent": {"history": history}})), render_run(result)
    assert text.count("<svg") == without.count("<svg") + 3
    assert ("No learning curves" in without, "No learning curves" in text) == (True, False)
    # A long history is shown as means.
    history = [{"episode": n, "aligned": n % 2, "length": 3, "reward": -1.0} for n in range(4000)]
    aligned, length, _ = (places(plot.svg) for plot in learning_plots({"agent": {"history": history}}))
    assert len(aligned) == CURVE_POINTS
    assert {y for _, y in aligned} == {y for _, y in length} == {(Y0 + Y1) / 2}
    # A record of another version may hold anything.
    for info in ({"agent": 3}, {"agent": {"history": [1, {"episode": "x"}]}}, {"history": [["a"], 2, {"epoch": 1}]}):
        assert learning_plots(info) == choice_rows(info) == []


def test_the_course_of_every_training_is_drawn():
    """Vectors by their validation, joint rounds, the agent's loss in each of its stages."""
    history = [{"stage": f"state {n // 3}", "epoch": n + 1, "loss": 9.0 - n} for n in range(6)]
    history.append({"stage": "choice", "propagation": 0.67, "vectors": [3.0], "valid_aligned": 22})
    info = {
        "history": [
            {"epoch": 10, "loss": 5.0, "valid_hits_at_1": 0.1},
            {"epoch": 20, "loss": 3.0, "valid_hits_at_1": 0.3},
            {"epoch": 30, "loss": 4.0, "valid_hits_at_1": 0.2},
        ],
        "joint": [{"round": 0, "sure": 100, "valid": 0.6}, {"round": 1, "sure": 140, "valid": 0.7}],
        "agent": {"history": history},
    }
    hits, falling, found, sure, loss = learning_plots(info)
    assert places(hits.svg) == [(X0, Y0), ((X0 + X1) / 2, Y1), (X1, (Y0 + Y1) / 2)]
    assert places(falling.svg) == [(X0, Y1), ((X0 + X1) / 2, Y0), (X1, (Y0 + Y1) / 2)]
    assert places(found.svg) == places(sure.svg) == [(X0, Y0), (X1, Y1)]
    assert len(shapes(loss.svg, "polyline")) == 2
    assert hits.note == "of the round that was kept"
    ticks = texts(sure.svg, text_anchor="middle")
    assert ticks[:2] == ["0", "1"]  # rounds have no half
    assert "0.5" not in ticks
    again = learning_plots({**info, "resumed_at": [4, 8]})
    assert again[0].note == "from epoch 8, where training was resumed"
    assert learning_plots({"history": info["history"]})[0].note == ""


@pytest.mark.parametrize(
    ("chosen", "marked"),
    [((0.67, (3.0, 1.0), True), 1), ((0.0, (3.0, 1.0), True), 3), ((0.0, (3.0, 1.0), False), 4), (None, None)],
)
def test_what_the_agent_chose_is_marked_among_what_it_tried(chosen, marked):
    """Several may be as good: what counts is what it took."""
    keys, both = ("propagation", "vectors", "is_learned"), [3.0, 1.0]
    tried = [(0.67, [1.0, 1.0], True), (0.67, both, True), (0.67, both, False), (0.0, both, True), (0.0, both, False)]
    history = [{"stage": "choice", **dict(zip(keys, one, strict=True)), "valid_aligned": 24} for one in tried]
    weights = {} if chosen is None else dict(zip(keys, chosen, strict=True))
    rows = choice_rows({"agent": {"history": history, "weights": weights}})
    assert [row[:3] for row in rows[1:3]] == [("0.67", "3, 1", "24"), ("0.67", "fixed passes only", "24")]
    assert [place for place, row in enumerate(rows) if row[3]] == ([] if marked is None else [marked])
    assert choice_rows({"agent": {"history": [{"stage": "choice", "likeness": 0.67, "valid_aligned": 2}]}}) == []
