"""Pictures of several lines, and pictures put together."""

import re
from xml.etree import ElementTree

from rlea.views.report.plots import HEIGHT, WIDTH, dots_plot, lines_plot, stack_plots


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


def test_dots_stand_on_the_line_of_their_row_by_their_value():
    picture = dots_plot({"as it is": {"D-W": 0.7, "EN-FR": 0.6}, "without <x>": {"D-W": 0.65}}, "Hits@1")
    name = "{http://www.w3.org/2000/svg}"
    root = ElementTree.fromstring(picture)
    dots = {dot.find(f"{name}title").text: dot for dot in root.iter(f"{name}circle") if len(dot)}
    assert set(dots) == {"as it is, D-W: 0.7000", "as it is, EN-FR: 0.6000", "without <x>, D-W: 0.6500"}
    places = {title: (float(dot.get("cx")), float(dot.get("cy"))) for title, dot in dots.items()}
    first, other, less = places.values()
    assert first[1] == other[1] < less[1]
    assert other[0] < less[0] < first[0]
    assert dots["as it is, D-W: 0.7000"].get("fill") == dots["without <x>, D-W: 0.6500"].get("fill")
    assert {"as it is", "without <x>", "Hits@1", "D-W", "EN-FR"} <= {text.text for text in root.iter(f"{name}text")}
    assert len(ElementTree.fromstring(dots_plot({}, "x"))) > 0


def test_a_value_far_below_stands_at_the_edge_in_figures():
    picture = dots_plot({"a": {"x": 0.7}, "b": {"x": 0.65}, "c": {"x": 0.1, "y": float("nan")}}, "Hits@1", least=0.5)
    name = "{http://www.w3.org/2000/svg}"
    root = ElementTree.fromstring(picture)
    assert len([dot for dot in root.iter(f"{name}circle") if len(dot)]) == 2
    assert "◂ 0.100" in {text.text for text in root.iter(f"{name}text")}
    assert "nan" not in picture
