"""Small pictures as inline SVG: no script, no network, sharp at any size."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from unicodedata import east_asian_width

import numpy as np

WIDTH, HEIGHT = 420, 260
LEFT, RIGHT, TOP, BOTTOM = 56, 16, 12, 36
# Colours that people with any colour vision tell apart, and a dash for those who print in grey.
LINES = (("#0072b2", "none"), ("#d55e00", "6 3"), ("#009e73", "2 3"), ("#cc79a7", "8 3 2 3"), ("#e69f00", "12 4"))
MARKED_POINTS = 12  # a line of few points shows where they are


@dataclass(frozen=True)
class Axis:
    """A stretch of numbers along one side of a plot, with the places that are labelled."""

    low: float = 0.0
    high: float = 1.0
    ticks: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75, 1.0)

    @classmethod
    def around(cls, values: Sequence[float]) -> Axis:
        """From the least to the greatest value, labelled at the ends and halfway; one value stands in the middle."""
        finite = [value for value in values if np.isfinite(value)]
        low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
        if low == high:
            return cls(low - 0.5, high + 0.5, (low,))
        return cls(low, high, (low, (low + high) / 2, high))

    def share(self, value: float) -> float:
        """Where a value stands between the ends: 0 at the low one, 1 at the high one."""
        return (value - self.low) / (self.high - self.low)


UNIT = Axis()


def line_plot(
    points: Sequence[tuple[float, float]],
    x_label: str,
    y_label: str,
    *,
    x_axis: Axis = UNIT,
    y_axis: Axis = UNIT,
    diagonal: bool = False,
) -> str:
    """One line through the points (x, y), over the unit square unless axes are given."""
    parts = [_frame(x_label, y_label, x_axis, y_axis)]
    if diagonal:
        parts.append(f'<line class="guide" x1="{_x(0)}" y1="{_y(0)}" x2="{_x(1)}" y2="{_y(1)}"/>')
    places = [(_x(x_axis.share(x)), _y(y_axis.share(y))) for x, y in points if np.isfinite(x) and np.isfinite(y)]
    parts.append(f'<polyline points="{" ".join(f"{x},{y}" for x, y in places)}"/>')
    if len(places) <= MARKED_POINTS:
        parts += [f'<circle cx="{x}" cy="{y}" r="3.5"/>' for x, y in places]
    return _svg(parts, f"{y_label} against {x_label}")


def lines_plot(
    lines: Mapping[str, Sequence[tuple[float, float]]],
    x_label: str,
    y_label: str,
    *,
    x_axis: Axis | None = None,
    y_axis: Axis | None = None,
) -> str:
    """Several lines through points (x, y), told apart by colour and dash and named above the frame."""
    every = [point for line in lines.values() for point in line]
    x_axis = x_axis or Axis.around([x for x, _ in every])
    y_axis = y_axis or Axis.around([y for _, y in every])
    parts = [_frame(x_label, y_label, x_axis, y_axis)]
    left = float(LEFT)
    for number, (name, line) in enumerate(lines.items()):
        colour, dash = LINES[number % len(LINES)]
        places = [(_x(x_axis.share(x)), _y(y_axis.share(y))) for x, y in line if np.isfinite(x) and np.isfinite(y)]
        style = f'style="fill:none;stroke:{colour};stroke-width:2" stroke-dasharray="{dash}"'
        parts.append(f'<polyline {style} points="{" ".join(f"{x},{y}" for x, y in places)}"/>')
        parts.append(f'<line {style} x1="{left:.1f}" y1="6" x2="{left + 18:.1f}" y2="6"/>')
        parts.append(f'<text class="tick" x="{left + 22:.1f}" y="10">{escape(name)}</text>')
        left += 34 + 5.6 * len(name)  # about the width of a letter of this size
    return _svg(parts, f"{y_label} against {x_label}")


def growth_plot(lines: Mapping[str, Sequence[tuple[float, float]]], x_label: str, y_label: str) -> str:
    """Lines through points (x, y) above zero over logarithmic axes, named on the right; a picture that stands alone."""
    width, height, left, right, top, bottom = 760, 400, 70, 240, 16, 44
    every = [(x, y) for line in lines.values() for x, y in line if x > 0 and y > 0]
    (x_low, x_high), (y_low, y_high) = (_powers([point[axis] for point in every]) for axis in (0, 1))

    def x_of(value: float) -> float:
        return round(left + (math.log10(value) - x_low) / (x_high - x_low) * (width - left - right), 1)

    def y_of(value: float) -> float:
        return round(height - bottom - (math.log10(value) - y_low) / (y_high - y_low) * (height - top - bottom), 1)

    parts = []
    for power in range(x_low, x_high + 1):
        x = x_of(10.0**power)
        parts.append(f'<line class="grid" x1="{x}" y1="{top}" x2="{x}" y2="{height - bottom}"/>')
        label = _number(10.0**power)
        parts.append(f'<text class="tick" text-anchor="middle" x="{x}" y="{height - bottom + 16}">{label}</text>')
    for power in range(y_low, y_high + 1):
        y = y_of(10.0**power)
        parts.append(f'<line class="grid" x1="{left}" y1="{y}" x2="{width - right}" y2="{y}"/>')
        parts.append(f'<text class="tick" text-anchor="end" x="{left - 6}" y="{y + 4}">{_number(10.0**power)}</text>')
    for number, (name, line) in enumerate(lines.items()):
        colour, dash = LINES[number % len(LINES)]
        style = f'style="fill:none;stroke:{colour};stroke-width:2" stroke-dasharray="{dash}"'
        # Colours come again after the fifth line, with another mark.
        is_second = number >= len(LINES)
        places = [(x_of(x), y_of(y)) for x, y in line if x > 0 and y > 0]
        parts.append(f'<polyline {style} points="{" ".join(f"{x},{y}" for x, y in places)}"/>')
        key = top + 14 + 20 * number
        parts.append(f'<line {style} x1="{width - right + 16}" y1="{key}" x2="{width - right + 44}" y2="{key}"/>')
        fill = "#fff" if is_second else colour
        for x, y in [*places, (width - right + 30, key)]:
            parts.append(f'<circle cx="{x}" cy="{y}" r="4" style="fill:{fill};stroke:{colour};stroke-width:2"/>')
        parts.append(f'<text x="{width - right + 50}" y="{key + 4}">{escape(name)}</text>')
    middle = (left + width - right) / 2
    parts.append(f'<text text-anchor="middle" x="{middle}" y="{height - 6}">{escape(x_label)}</text>')
    turn = f'transform="rotate(-90 16 {height / 2})" x="16" y="{height / 2}"'
    parts.append(f'<text text-anchor="middle" {turn}>{escape(y_label)}</text>')
    return _alone(parts, width, height)


def _powers(values: Sequence[float]) -> tuple[int, int]:
    """The powers of ten around positive values: at least one step apart."""
    logs = [float(np.log10(value)) for value in values] or [0.0]
    low, high = int(np.floor(min(logs))), int(np.ceil(max(logs)))
    return low, max(high, low + 1)


def dots_plot(rows: Mapping[str, Mapping[str, float]], x_label: str, least: float = -np.inf) -> str:
    """A line for every row with its name on the left, and on it a dot for every value.

    `rows` is {name of the row: {name of the colour: value}}; a picture that stands alone, as high as it has rows.
    Values below `least` stand at the left edge in figures, so that one of them does not crowd all the others.
    """
    rows = {title: {k: v for k, v in values.items() if np.isfinite(v)} for title, values in rows.items()}
    names = list(dict.fromkeys(name for values in rows.values() for name in values))
    axis = Axis.around([value for values in rows.values() for value in values.values() if value >= least])
    step, width = 22, 720
    margin = round(min(330, 30 + 6.6 * max((len(title) for title in rows), default=0)))
    height = step * len(rows) + 60

    def x_of(value: float) -> float:
        return round(margin + axis.share(value) * (width - margin - 20), 1)

    parts = []
    left = width - 20 - sum(30 + 6.2 * len(name) for name in names)
    for number, name in enumerate(names):
        parts.append(f'<circle cx="{left:.0f}" cy="10" r="5" fill="{LINES[number % len(LINES)][0]}"/>')
        parts.append(f'<text x="{left + 9:.0f}" y="14">{escape(name)}</text>')
        left += 30 + 6.2 * len(name)  # about the width of a letter of this size
    for tick in axis.ticks:
        x = x_of(tick)
        parts.append(f'<line class="grid" x1="{x}" y1="22" x2="{x}" y2="{height - 34}"/>')
        parts.append(f'<text class="tick" text-anchor="middle" x="{x}" y="{height - 20}">{_number(tick)}</text>')
    for place, (title, values) in enumerate(rows.items()):
        y = 36 + step * place
        parts.append(f'<text text-anchor="end" x="{margin - 10}" y="{y + 4}">{escape(title)}</text>')
        parts.append(f'<line class="grid" x1="{margin}" y1="{y}" x2="{width - 20}" y2="{y}"/>')
        for number, name in enumerate(names):
            colour = LINES[number % len(LINES)][0]
            if name in values and values[name] < least:
                parts.append(f'<text style="fill:{colour}" x="{margin + 4}" y="{y + 4}">◂ {values[name]:.3f}</text>')
            elif name in values:
                parts.append(
                    f'<circle cx="{x_of(values[name])}" cy="{y}" r="5" fill="{colour}">'
                    f"<title>{escape(title)}, {escape(name)}: {values[name]:.4f}</title></circle>"
                )
    parts.append(f'<text text-anchor="middle" x="{(margin + width) / 2}" y="{height - 4}">{escape(x_label)}</text>')
    return _alone(parts, width, height)


def stack_plots(plots: Sequence[str], columns: int) -> str:
    """Plots side by side in rows as one picture that stands alone (a file of its own, on a white ground)."""
    rows = -(-len(plots) // columns)
    parts = []
    for number, plot in enumerate(plots):
        x, y = number % columns * WIDTH, number // columns * HEIGHT
        parts.append(plot.replace("<svg ", f'<svg x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" ', 1))
    return _alone(parts, columns * WIDTH, rows * HEIGHT)


def bar_plot(counts: Sequence[int], x_label: str, y_label: str) -> str:
    """Bars of equal width over [0, 1]; the tallest fills the height."""
    tallest = max(counts, default=0) or 1
    y_axis = Axis(0, tallest, tuple(sorted({0, tallest // 2, tallest})))
    parts = [_frame(x_label, y_label, UNIT, y_axis)]
    for number, count in enumerate(counts):
        low, high = number / len(counts), (number + 1) / len(counts)
        top = _y(y_axis.share(count))
        parts.append(
            f'<rect class="bar" x="{_x(low) + 1:.1f}" y="{top}" width="{_x(high) - _x(low) - 2:.1f}" '
            f'height="{_y(0) - top:.1f}"><title>{low:.2f} to {high:.2f}: {count:,}</title></rect>'
        )
    return _svg(parts, f"{y_label} against {x_label}")


def stacked_bar(parts: Sequence[tuple[str, int]], label: str) -> str:
    """One bar cut in parts (name, count), each as wide as its share; its n-th part has the class `part-n`.

    The bar takes whatever width and height the page gives it.
    """
    total = sum(count for _, count in parts) or 1
    pieces, left = [], 0.0
    for number, (name, count) in enumerate(parts):
        width = 100 * count / total
        pieces.append(
            f'<rect class="part-{number}" x="{left:.3f}" y="0" width="{width:.3f}" height="10">'
            f"<title>{escape(name)}: {count:,}</title></rect>"
        )
        left += width
    return (
        f'<svg class="stack" viewBox="0 0 100 10" preserveAspectRatio="none" role="img" aria-label="{escape(label)}">'
        f"{''.join(pieces)}</svg>"
    )


# ---- two neighbourhoods ---------------------------------------------------------------------------------------------

PAIR_WIDTH, ROW, HEAD = 340, 36, 30  # about the width of a phone, so that letters keep their size there
TEXT_EDGE, DOT_EDGE = 15, 157  # from the outer side to the words, and to the dot
# Letters that fit between the two.
HEAD_LETTERS, RELATION_LETTERS, NAME_LETTERS = 16, 22, 18


@dataclass(frozen=True)
class Neighbour:
    """A neighbour in a picture: what it is called, through which relations, and whether it has a link of any kind."""

    name: str
    relations: str
    is_linked: bool


def pair_plot(
    names: tuple[str, str],
    sides: tuple[Sequence[Neighbour], Sequence[Neighbour]],
    joins: Sequence[tuple[int, int, str]],
    more: tuple[int, int] = (0, 0),
) -> str:
    """Two entities with their neighbours below them, source on the left; linked neighbours are joined by lines.

    `joins` are (row on the left, row on the right, class of the line); `more` is how many neighbours are not drawn.
    """
    rows = max(len(side) + (left > 0) for side, left in zip(sides, more, strict=True))
    height = HEAD + ROW * max(rows, 1)
    parts = [f'<line class="pair" x1="{DOT_EDGE}" y1="14" x2="{PAIR_WIDTH - DOT_EDGE}" y2="14"/>']
    for left, right, kind in joins:
        ends = f'x1="{DOT_EDGE}" y1="{_row(left)}" x2="{PAIR_WIDTH - DOT_EDGE}" y2="{_row(right)}"'
        parts.append(f'<line class="join {escape(kind)}" {ends}/>')
    for is_target, (name, side, left_out) in enumerate(zip(names, sides, more, strict=True)):
        parts += _half(bool(is_target), name, side, left_out)
    label = f"Neighbours of {names[0]} and of {names[1]}"
    size = f'viewBox="0 0 {PAIR_WIDTH} {height}"'
    return f'<svg class="pairs" {size} role="img" aria-label="{escape(label)}">{"".join(parts)}</svg>'


def _half(is_target: bool, name: str, side: Sequence[Neighbour], left_out: int) -> list[str]:
    def x_of(edge: float) -> float:
        return PAIR_WIDTH - edge if is_target else edge

    anchor = "end" if is_target else "start"

    def words(kind: str, text: str, y: float, width: int) -> str:
        short = shorten(text, width)
        title = f"<title>{escape(text)}</title>" if short != text else ""
        return (
            f'<text class="{kind}" text-anchor="{anchor}" x="{x_of(TEXT_EDGE)}" y="{y}">{escape(short)}{title}</text>'
        )

    parts = [
        f'<text class="entity" text-anchor="{anchor}" x="{x_of(2)}" y="18">{escape(shorten(name, HEAD_LETTERS))}'
        f"<title>{escape(name)}</title></text>",
        f'<circle class="linked" cx="{x_of(DOT_EDGE)}" cy="14" r="4.5"/>',
    ]
    if side or left_out:
        last = _row(len(side) - 1 + (left_out > 0))
        parts.append(f'<path class="tree" d="M{x_of(5)} 25V{last}"/>')
    for number, one in enumerate(side):
        y = _row(number)
        parts.append(f'<path class="tree" d="M{x_of(5)} {y}H{x_of(12)}"/>')
        parts.append(words("tick", one.relations, y - 3, RELATION_LETTERS))
        parts.append(words("name", one.name, y + 10, NAME_LETTERS))
        dot = "linked" if one.is_linked else "open"
        parts.append(f'<circle class="{dot}" cx="{x_of(DOT_EDGE)}" cy="{y}" r="4"/>')
    if left_out:
        y = _row(len(side))
        parts.append(f'<path class="tree" d="M{x_of(5)} {y}H{x_of(12)}"/>')
        parts.append(words("tick", f"and {left_out:,} more", y + 4, RELATION_LETTERS))
    elif not side:
        parts.append(words("tick", "no neighbours", _row(0) + 4, RELATION_LETTERS))
    return parts


def _row(number: int) -> int:
    return HEAD + ROW * number + ROW // 2


def shorten(text: str, width: int) -> str:
    """A text of at most `width` letters; wide ones, such as Chinese, count twice."""
    taken = 0
    for place, letter in enumerate(text):
        taken += 2 if east_asian_width(letter) in "WF" else 1
        if taken > width:
            return text[: max(place - 1, 1)].rstrip() + "…"
    return text


# ---- parts ----------------------------------------------------------------------------------------------------------


def _x(share: float) -> float:
    return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)


def _y(share: float) -> float:
    return round(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM), 1)


def _frame(x_label: str, y_label: str, x_axis: Axis, y_axis: Axis) -> str:
    parts = []
    for tick in x_axis.ticks:
        x = _x(x_axis.share(tick))
        parts.append(f'<text class="tick" text-anchor="middle" x="{x}" y="{_y(0) + 15}">{_number(tick)}</text>')
    for tick in y_axis.ticks:
        y = _y(y_axis.share(tick))
        parts.append(f'<line class="grid" x1="{_x(0)}" y1="{y}" x2="{_x(1)}" y2="{y}"/>')
        parts.append(f'<text class="tick" text-anchor="end" x="{LEFT - 6}" y="{y + 4:.1f}">{_number(tick)}</text>')
    parts.append(f'<text text-anchor="middle" x="{_x(0.5)}" y="{HEIGHT - 4}">{escape(x_label)}</text>')
    middle = _y(0.5)
    parts.append(
        f'<text text-anchor="middle" transform="rotate(-90 12 {middle})" x="12" y="{middle}">{escape(y_label)}</text>'
    )
    return "".join(parts)


def _number(value: float) -> str:
    """Short enough for the margin: 0.25, 12.5, 1,200, 1.25M."""
    if abs(value) >= 1_000_000:
        return f"{value / 1_000_000:.3g}M"
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.3g}"


def _alone(parts: Sequence[str], width: int, height: int) -> str:
    """A picture that is a file of its own, on a white ground."""
    style = "text{font:12px sans-serif;fill:#444}.tick{font-size:11px}.grid{stroke:#ddd}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">'
        f'<style>{style}</style><rect width="100%" height="100%" fill="#fff"/>{"".join(parts)}</svg>\n'
    )


def _svg(parts: Sequence[str], label: str) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(label)}">{"".join(parts)}</svg>'
