"""Small pictures as inline SVG: no script, no network, sharp at any size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 420, 260
LEFT, RIGHT, TOP, BOTTOM = 56, 12, 12, 36


@dataclass(frozen=True)
class Line:
    """A named line of points with both coordinates in [0, 1]."""

    name: str
    points: Sequence[tuple[float, float]]
    css: str  # the class that gives its colour


def line_plot(lines: Sequence[Line], x_label: str, y_label: str, *, diagonal: bool = False) -> str:
    """Lines over the unit square, with a legend where there are several."""
    parts = [_frame(x_label, y_label)]
    if diagonal:
        parts.append(f'<line class="guide" x1="{_x(0)}" y1="{_y(0)}" x2="{_x(1)}" y2="{_y(1)}"/>')
    for line in lines:
        points = " ".join(f"{_x(x)},{_y(y)}" for x, y in line.points)
        parts.append(f'<polyline class="{line.css}" points="{points}"/>')
        if len(line.points) <= 12:
            parts += [f'<circle class="{line.css}" cx="{_x(x)}" cy="{_y(y)}" r="3.5"/>' for x, y in line.points]
    if len(lines) > 1:
        for number, line in enumerate(lines):
            y = _y(0.22 - 0.09 * number)
            parts.append(f'<line class="{line.css}" x1="{_x(0.05)}" y1="{y}" x2="{_x(0.12)}" y2="{y}"/>')
            parts.append(f'<text x="{_x(0.14)}" y="{y + 4}">{line.name}</text>')
    return _svg(parts, f"{y_label} against {x_label}")


def bar_plot(counts: Sequence[int], x_label: str, y_label: str) -> str:
    """Bars of equal width over [0, 1]; the tallest fills the height."""
    parts = [_frame(x_label, y_label, y_ticks=False)]
    tallest = max(counts, default=0) or 1
    for number, count in enumerate(counts):
        low, high = number / len(counts), (number + 1) / len(counts)
        top = _y(count / tallest)
        parts.append(
            f'<rect class="bar" x="{_x(low) + 1}" y="{top}" width="{_x(high) - _x(low) - 2:.1f}" '
            f'height="{_y(0) - top:.1f}"><title>{low:.1f} to {high:.1f}: {count:,}</title></rect>'
        )
    return _svg(parts, f"{y_label} against {x_label}")


def _x(value: float) -> float:
    return round(LEFT + value * (WIDTH - LEFT - RIGHT), 1)


def _y(value: float) -> float:
    return round(HEIGHT - BOTTOM - value * (HEIGHT - TOP - BOTTOM), 1)


def _frame(x_label: str, y_label: str, *, y_ticks: bool = True) -> str:
    parts = []
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts.append(f'<text class="tick" text-anchor="middle" x="{_x(tick)}" y="{_y(0) + 15}">{tick:g}</text>')
        parts.append(f'<line class="grid" x1="{_x(0)}" y1="{_y(tick)}" x2="{_x(1)}" y2="{_y(tick)}"/>')
        if y_ticks:
            parts.append(f'<text class="tick" text-anchor="end" x="{LEFT - 6}" y="{_y(tick) + 4}">{tick:g}</text>')
    parts.append(f'<text text-anchor="middle" x="{_x(0.5)}" y="{HEIGHT - 4}">{x_label}</text>')
    middle = _y(0.5)
    parts.append(f'<text text-anchor="middle" transform="rotate(-90 14 {middle})" x="14" y="{middle}">{y_label}</text>')
    return "".join(parts)


def _svg(parts: Sequence[str], label: str) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">{"".join(parts)}</svg>'
