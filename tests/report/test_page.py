"""The page of a run: what it counts, what it draws and where."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

import rlea
from rlea.demo import demo_folder
from rlea.graph import Links
from rlea.matching import Matching
from rlea.metrics import expected_calibration_error, link_metrics
from rlea.report import page, plots
from rlea.report.page import judge_links, learning_plots, link_plots, render_run
from rlea.report.plots import Axis, bar_plot, line_plot


@pytest.fixture(scope="module")
def result():
    return rlea.align(rlea.read(demo_folder()), rlea.AlignSettings("names", "mutual"))


def shapes(svg, tag):
    return list(ElementTree.fromstring(svg).iter(tag))


def places(svg):
    """The points of the line, in pixels."""
    (line,) = shapes(svg, "polyline")
    return [tuple(map(float, place.split(","))) for place in line.get("points").split()]


# ---- plots ----------------------------------------------------------------------------------------------------------

X0, X1 = plots.LEFT, plots.WIDTH - plots.RIGHT
Y0, Y1 = plots.HEIGHT - plots.BOTTOM, plots.TOP  # pixels count downwards


def test_a_line_goes_through_its_points():
    svg = line_plot([(0, 0), (0.5, 1), (1, 0.25)], "recall", "precision")
    assert places(svg) == [(X0, Y0), ((X0 + X1) / 2, Y1), (X1, Y0 + (Y1 - Y0) / 4)]
    assert [(float(dot.get("cx")), float(dot.get("cy"))) for dot in shapes(svg, "circle")] == places(svg)


def test_a_line_of_many_points_has_no_dots():
    many = [(number / 99, 0.5) for number in range(100)]
    svg = line_plot(many, "x", "y")
    assert (len(places(svg)), shapes(svg, "circle")) == (100, [])


def test_axes_are_scaled_to_the_data():
    x_axis, y_axis = Axis.around([10, 30]), Axis.around([-5.0, 15.0, 0.0])
    svg = line_plot([(10, -5), (20, 15), (30, 5)], "episode", "reward", x_axis=x_axis, y_axis=y_axis)
    assert places(svg) == [(X0, Y0), ((X0 + X1) / 2, Y1), (X1, (Y0 + Y1) / 2)]
    ticks = [text.text for text in shapes(svg, "text") if text.get("class") == "tick"]
    assert ticks == ["10", "20", "30", "-5", "5", "15"]


def test_an_axis_of_one_value_has_it_in_the_middle():
    axis = Axis.around([7.0, 7.0])
    assert axis.share(7.0) == 0.5
    assert (Axis.around([]).low, Axis.around([np.nan, 2.0, 4.0]).high) == (0.0, 4.0)


def test_bars_have_the_height_of_their_counts_and_numbers_beside_them():
    svg = bar_plot([0, 6, 1200, 300], "confidence", "links")
    bars = shapes(svg, "rect")
    heights = [float(bar.get("height")) for bar in bars]
    assert heights == pytest.approx([(Y0 - Y1) * share for share in (0, 0.005, 1, 0.25)], abs=0.06)
    assert [float(bar.get("y")) + height for bar, height in zip(bars, heights, strict=True)] == pytest.approx([Y0] * 4)
    labels = [text.text for text in shapes(svg, "text") if text.get("text-anchor") == "end"]
    assert labels == ["0", "600", "1,200"]


def test_bars_say_where_they_stand():
    titles = [title.text for title in shapes(bar_plot(range(20), "confidence", "links"), "title")]
    assert titles[1] == "0.05 to 0.10: 1"
    assert titles[19] == "0.95 to 1.00: 19"


def test_no_links_make_an_empty_picture():
    svg = bar_plot([0] * 20, "confidence", "links")
    assert {float(bar.get("height")) for bar in shapes(svg, "rect")} == {0.0}
    assert [text.text for text in shapes(svg, "text") if text.get("text-anchor") == "end"] == ["0", "1"]
    assert places(line_plot([], "x", "y")) == []


def test_only_the_calibration_has_a_diagonal_and_one_line_needs_no_legend(result):
    drawn = [plot.svg for plot in link_plots(result)]
    assert ["guide" in svg for svg in drawn] == [False, False, True]
    for svg in drawn[1:]:
        words = [text.text for text in shapes(svg, "text") if text.get("class") != "tick"]
        assert len(shapes(svg, "polyline")) == 1
        assert len(words) == 2  # the names of the axes and nothing else


# ---- page -----------------------------------------------------------------------------------------------------------


def test_links_are_judged_as_the_metrics_judge_them(result):
    right, wrong = judge_links(result.matching, result.pair.test)
    assert (right.sum(), wrong.sum()) == (result.links.correct, result.links.matched - result.links.correct)
    gold = Links.of([0, 1], [10, 11])
    right, wrong = judge_links(Matching.of([0, 1, 5, 7], [10, 12, 11, 13], [1, 1, 1, 1]), gold)
    assert right.tolist() == [True, False, False, False]
    assert wrong.tolist() == [False, True, True, False]


def test_the_tiles_say_of_how_many(result):
    few = Links(result.pair.test.source_ids[:100], result.pair.test.target_ids[:100])
    pair = replace(result.pair, test=few)
    links = link_metrics(result.matching, few)
    text = render_run(replace(result, pair=pair, links=links), {})
    assert links.ignored > 0
    assert f"<b>{links.matched}</b><span>judged by gold: {links.correct} right; {links.ignored} not judged" in text
    assert f"precision, of {links.matched} judged" in text


def test_the_page_shows_how_far_the_confidence_is_off(result):
    error = expected_calibration_error(result.matching, result.pair.test)
    assert f"mean distance: {error:.2f}" in render_run(result, {})


def test_without_gold_nothing_is_judged(result):
    pair = replace(result.pair, test=Links.empty())
    text = render_run(replace(result, pair=pair, links=None, ranks=None, coverage=None), {})
    assert "judged" not in text
    assert ">verdict</th>" not in text
    assert "mean distance" not in text
    assert len(re.findall("<svg", text)) == 1


def test_only_rows_that_are_shown_are_made(result, monkeypatch):
    made = []
    make = page._row
    monkeypatch.setattr(page, "_row", lambda *given: made.append(given) or make(*given))
    text = render_run(result, {})
    num_wrong = result.links.matched - result.links.correct
    assert len(made) == 2 * page.ROWS + min(page.ROWS, num_wrong) < len(result.matching)
    assert f"({num_wrong:,} in all)" in text
    assert text.count('class="num">0.') + text.count('class="num">1.') == len(made)


def test_no_links_make_a_page(result):
    nothing = Matching.of([], [], [])
    text = render_run(replace(result, matching=nothing, links=link_metrics(nothing, result.pair.test)), {})
    assert "<b>0</b><span>links</span>" in text


def test_an_agent_shows_how_it_learnt(result):
    history = [{"episode": 1 + n, "aligned": 10 * n, "length": 50 - n, "reward": n / 2 - 1} for n in range(5)]
    aligned, length, reward = (places(plot.svg) for plot in learning_plots(history))
    assert aligned == reward == [(pytest.approx(X0 + n * (X1 - X0) / 4), Y0 + n * (Y1 - Y0) / 4) for n in range(5)]
    assert (length[0], length[-1]) == ((X0, Y1), (X1, Y0))
    text = render_run(replace(result, info={"agent": {"history": history}}), {})
    assert text.count("<svg") == 6
    assert "How the agent learnt" in text
    assert "How the agent learnt" not in render_run(result, {})


def test_a_long_history_is_shown_in_means():
    history = [{"episode": n, "aligned": n % 2, "length": 3, "reward": -1.0} for n in range(4000)]
    aligned, length, _ = (places(plot.svg) for plot in learning_plots(history))
    assert len(aligned) == page.CURVE_POINTS
    assert {y for _, y in aligned} == {y for _, y in length} == {(Y0 + Y1) / 2}
