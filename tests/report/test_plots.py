"""Pictures of several lines, and pictures put together."""

import re
from xml.etree import ElementTree

from rlea.report.plots import HEIGHT, WIDTH, lines_plot, stack_plots


def test_every_line_has_its_points_a_look_of_its_own_and_a_name():
    picture = lines_plot({"full": [(0, 0), (10, 5)], "less <b>": [(0, 5), (10, 0)]}, "episode", "reward")
    root = ElementTree.fromstring(picture)
    lines = root.findall("polyline")
    first, second = ([tuple(map(float, p.split(","))) for p in line.get("points").split()] for line in lines)
    assert first[0][1] == second[1][1] > first[1][1] == second[0][1]  # up is less on the screen
    assert first[0][0] == second[0][0] < first[1][0]
    assert lines[0].get("style") != lines[1].get("style")
    assert {"full", "less <b>"} <= {text.text for text in root.findall("text")}


def test_a_stack_is_a_picture_of_its_own_with_every_plot_in_its_place():
    plot = lines_plot({"a": [(0, 1), (1, 2)]}, "x", "y")
    root = ElementTree.fromstring(stack_plots([plot] * 5, columns=3))
    name = "{http://www.w3.org/2000/svg}"
    assert root.tag == f"{name}svg"
    assert root.get("viewBox") == f"0 0 {3 * WIDTH} {2 * HEIGHT}"
    places = [(int(part.get("x")), int(part.get("y"))) for part in root.findall(f"{name}svg")]
    assert places == [(0, 0), (WIDTH, 0), (2 * WIDTH, 0), (0, HEIGHT), (WIDTH, HEIGHT)]
    assert not re.search(r"http(?!://www\.w3\.org)", stack_plots([plot], 1))


def test_lines_without_points_make_an_empty_picture():
    assert "polyline" in lines_plot({"a": []}, "x", "y")
    assert "nan" not in lines_plot({"a": [(0, float("nan")), (1, 1)]}, "x", "y")
