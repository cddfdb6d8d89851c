"""Plots: every point where it belongs, every line named."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from rlea.views.report import plots
from rlea.views.report.plots import Axis, bar_plot, dots_plot, growth_plot, line_plot, lines_plot, stack_plots

SVG = "{http://www.w3.org/2000/svg}"
X0, X1 = plots.LEFT, plots.WIDTH - plots.RIGHT
Y0, Y1 = plots.HEIGHT - plots.BOTTOM, plots.TOP  # pixels count downwards


def shapes(svg, tag):
    return list(ElementTree.fromstring(svg).iter(tag))


def all_places(svg):
    """The points of every line, in pixels."""
    lines = shapes(svg, "polyline")
    return [[tuple(map(float, place.split(","))) for place in line.get("points").split()] for line in lines]


def places(svg):
    """The points of the only line, in pixels."""
    (line,) = all_places(svg)
    return line


def texts(svg, **attributes):
    """All texts, or those with an attribute of that value."""
    wanted = {(name.replace("_", "-"), value) for name, value in attributes.items()}
    return [text.text for text in shapes(svg, "text") if wanted <= set(text.items())]


def test_a_line_goes_through_its_points():
    svg = line_plot([(0, 0), (0.5, 1), (1, 0.25)], "recall", "precision")
    assert places(svg) == [(X0, Y0), ((X0 + X1) / 2, Y1), (X1, Y0 + (Y1 - Y0) / 4)]
    assert [(float(dot.get("cx")), float(dot.get("cy"))) for dot in shapes(svg, "circle")] == places(svg)
    many = line_plot([(number / 99, 0.5) for number in range(100)], "x", "y")
    assert (len(places(many)), shapes(many, "circle")) == (100, [])  # too many for dots


def test_axes_are_scaled_to_the_data():
    x_axis, y_axis = Axis.around([10, 30]), Axis.around([-5.0, 15.0, 0.0])
    svg = line_plot([(10, -5), (20, 15), (30, 5)], "episode", "reward", x_axis=x_axis, y_axis=y_axis)
    assert places(svg) == [(X0, Y0), ((X0 + X1) / 2, Y1), (X1, (Y0 + Y1) / 2)]
    assert texts(svg, **{"class": "tick"}) == ["10", "20", "30", "-5", "5", "15"]
    single = Axis.around([7.0, 7.0])
    assert (single.share(7.0), single.ticks) == (0.5, (7.0,))
    assert (Axis.around([]).low, Axis.around([np.nan, 2.0, 4.0]).high) == (0.0, 4.0)


def test_bars_have_the_height_of_their_counts_and_numbers_beside_them():
    svg = bar_plot([0, 6, 1200, 300], "confidence", "links")
    bars = shapes(svg, "rect")
    heights = [float(bar.get("height")) for bar in bars]
    assert heights == pytest.approx([(Y0 - Y1) * share for share in (0, 0.005, 1, 0.25)], abs=0.06)
    assert [float(bar.get("y")) + height for bar, height in zip(bars, heights, strict=True)] == pytest.approx([Y0] * 4)
    assert texts(svg, text_anchor="end") == ["0", "600", "1,200"]
    titles = [title.text for title in shapes(bar_plot(range(20), "confidence", "links"), "title")]
    assert (titles[1], titles[19]) == ("0.05 to 0.10: 1", "0.95 to 1.00: 19")


def test_no_links_make_an_empty_picture():
    svg = bar_plot([0] * 20, "confidence", "links")
    assert {float(bar.get("height")) for bar in shapes(svg, "rect")} == {0.0}
    assert texts(svg, text_anchor="end") == ["0", "1"]
    assert places(line_plot([], "x", "y")) == []


def test_every_line_has_its_points_a_look_of_its_own_and_a_name():
    picture = lines_plot({"full": [(0, 0), (10, 5)], "less <b>": [(0, 5), (10, 0)]}, "episode", "reward")
    first, second = all_places(picture)
    assert first[0][1] == second[1][1] > first[1][1] == second[0][1]  # up is less on the screen
    assert first[0][0] == second[0][0] < first[1][0]
    assert len({line.get("style") for line in shapes(picture, "polyline")}) == 2
    assert {"full", "less <b>"} <= set(texts(picture))


def test_stacked_plots_are_one_picture():
    plot = lines_plot({"a": [(0, 1), (1, 2)]}, "x", "y")
    root = ElementTree.fromstring(stack_plots([plot] * 5, columns=3))
    assert root.tag == f"{SVG}svg"
    assert root.get("viewBox") == f"0 0 {3 * plots.WIDTH} {2 * plots.HEIGHT}"
    places = [(int(part.get("x")), int(part.get("y"))) for part in root.findall(f"{SVG}svg")]
    assert places == [(0, 0), (plots.WIDTH, 0), (2 * plots.WIDTH, 0), (0, plots.HEIGHT), (plots.WIDTH, plots.HEIGHT)]
    assert not re.search(r"http(?!://www\.w3\.org)", stack_plots([plot], 1))


def test_lines_without_points_make_an_empty_picture():
    assert "polyline" in lines_plot({"a": []}, "x", "y")
    assert "nan" not in lines_plot({"a": [(0, float("nan")), (1, 1)]}, "x", "y")


def test_dots_stand_on_the_line_of_their_row_by_their_value():
    picture = dots_plot({"as it is": {"D-W": 0.7, "EN-FR": 0.6}, "without <x>": {"D-W": 0.65}}, "Hits@1")
    root = ElementTree.fromstring(picture)
    dots = {dot.find(f"{SVG}title").text: dot for dot in root.iter(f"{SVG}circle") if len(dot)}
    assert set(dots) == {"as it is, D-W: 0.7000", "as it is, EN-FR: 0.6000", "without <x>, D-W: 0.6500"}
    places = {title: (float(dot.get("cx")), float(dot.get("cy"))) for title, dot in dots.items()}
    first, other, less = places.values()
    assert first[1] == other[1] < less[1]
    assert other[0] < less[0] < first[0]
    assert dots["as it is, D-W: 0.7000"].get("fill") == dots["without <x>, D-W: 0.6500"].get("fill")
    assert {"as it is", "without <x>", "Hits@1", "D-W", "EN-FR"} <= {text.text for text in root.iter(f"{SVG}text")}
    assert len(ElementTree.fromstring(dots_plot({}, "x"))) > 0


def test_a_value_far_below_stands_at_the_edge_in_figures():
    picture = dots_plot({"a": {"x": 0.7}, "b": {"x": 0.65}, "c": {"x": 0.1, "y": float("nan")}}, "Hits@1", least=0.5)
    root = ElementTree.fromstring(picture)
    assert len([dot for dot in root.iter(f"{SVG}circle") if len(dot)]) == 2
    assert "◂ 0.100" in {text.text for text in root.iter(f"{SVG}text")}
    assert "nan" not in picture


def circles(svg):
    return [(float(x), float(y)) for x, y in re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', svg)]


def test_a_square_law_is_a_straight_line_of_slope_two():
    svg = growth_plot({"square": [(10.0**p, 10.0 ** (2 * p)) for p in (1, 2, 3)]}, "n", "seconds")
    (x1, y1), (x2, y2), (x3, y3) = circles(svg)[:3]
    assert abs((x2 - x1) - (x3 - x2)) < 0.2
    assert abs((y1 - y2) - (y2 - y3)) < 0.2
    assert y3 < y2 < y1


def test_names_ticks_and_points_that_cannot_be_drawn():
    lines = {f"<{number}>": [(1000.0, 0.5), (1_000_000.0, 20.0), (10.0, 0.0)] for number in range(7)}
    svg = growth_plot(lines, "entities", "seconds")
    assert svg.startswith("<svg ")
    assert svg.count("&lt;") == 7
    assert len(circles(svg)) == 7 * 3  # two points and the mark beside the name
    assert ">1,000<" in svg
    assert ">1M<" in svg
    assert growth_plot({}, "entities", "seconds").startswith("<svg ")
