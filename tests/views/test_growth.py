"""The picture of growth: logarithmic, every line named, every point where it belongs."""

import re

from rlea.views.report.plots import growth_plot


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
